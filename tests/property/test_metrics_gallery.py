"""Ranks straight from embeddings are those of the scores by definition, whatever the block."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from metrics_twins import best_first
from numpy.typing import NDArray

from cir_metrics.gallery import Gallery
from cir_metrics.ranking import best_target_ranks, target_ranks, top_k

Vectors = NDArray[Any]

N_QUERIES, N_GALLERY, N_DIMENSIONS = 5, 12, 3
IDS = [f"image_{number:02d}" for number in range(N_GALLERY)]

types = st.sampled_from([np.float32, np.float64])
# Small whole numbers: every product is exact in any order, and ties are common.
whole = st.integers(-2, 2).map(float)
blocks = st.integers(1, N_QUERIES + 2)
orders = st.permutations(range(N_GALLERY))


@st.composite
def questions(draw: st.DrawFn, elements: st.SearchStrategy[float]) -> tuple[Vectors, Vectors]:
    kind = draw(types)
    make = lambda n: draw(arrays(np.float64, (n, N_DIMENSIONS), elements=elements)).astype(kind)  # noqa: E731
    return make(N_QUERIES), make(N_GALLERY)


any_question = st.one_of(questions(whole), questions(st.floats(-1, 1)))


@st.composite
def target_lists(draw: st.DrawFn) -> tuple[list[NDArray[np.int64]], NDArray[np.int64]]:
    """One to four targets a query, and an image left out that is none of them, or none."""
    targets, excluded = [], []
    for _ in range(N_QUERIES):
        order = draw(orders)
        count = draw(st.integers(1, 4))
        targets.append(np.array(order[:count]))
        excluded.append(draw(st.sampled_from([-1, order[-1]])))
    return targets, np.array(excluded)


def scores_twin(queries: Vectors, gallery: Vectors) -> NDArray[np.float64]:
    """The definition: every pair on its own, in double precision."""
    wide_queries, wide_gallery = queries.astype(np.float64), gallery.astype(np.float64)
    return np.array([[np.sum(query * image) for image in wide_gallery] for query in wide_queries])


@given(questions(whole), target_lists(), blocks)
def test_whole_numbers_rank_as_their_matrix_product(
    question: tuple[Vectors, Vectors], wanted: tuple[list[NDArray[np.int64]], NDArray[np.int64]], block: int
) -> None:
    (queries, gallery), (targets, excluded) = question, wanted
    scores = queries @ gallery.T
    found = Gallery(gallery, IDS).search(queries, 4, targets=targets, excluded=excluded, block=block)
    assert found.best_ranks is not None
    expected = target_ranks(scores, targets, excluded=excluded)
    assert [each.tolist() for each in found.ranks] == [each.tolist() for each in expected]
    assert (found.best_ranks == best_target_ranks(scores, targets, excluded=excluded)).all()
    assert found.rankings == top_k(scores, IDS, 4, excluded=excluded)


@given(any_question, target_lists(), blocks, st.integers(1, N_GALLERY + 1))
def test_ranks_are_those_of_the_scores_by_definition(
    question: tuple[Vectors, Vectors],
    wanted: tuple[list[NDArray[np.int64]], NDArray[np.int64]],
    block: int,
    k: int,
) -> None:
    (queries, gallery), (targets, excluded) = question, wanted
    scores = scores_twin(queries, gallery)
    asked = Gallery(gallery, IDS)
    ranks = asked.target_ranks(queries, targets, excluded=excluded, block=block)
    expected = target_ranks(scores, targets, excluded=excluded)
    assert [each.tolist() for each in ranks] == [each.tolist() for each in expected]
    best = asked.best_target_ranks(queries, targets, excluded=excluded, block=block)
    assert (best == best_target_ranks(scores, targets, excluded=excluded)).all()
    assert asked.top_k(queries, k, excluded=excluded, block=block) == top_k(scores, IDS, k, excluded=excluded)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_copies_of_an_image_always_tie(kind: type[np.floating[Any]]) -> None:
    """Where a matrix product rounds two columns of one image differently, they still tie."""
    random = np.random.default_rng(3)
    queries = random.standard_normal((150, 96)).astype(kind)
    gallery = np.repeat(random.standard_normal((40, 96)).astype(kind), 5, axis=0)
    copies = np.arange(0, 200, 5)[np.arange(150) % 40][:, None] + np.arange(5)
    ranks = Gallery(gallery).target_ranks(queries, copies)
    assert (ranks == ranks[:, :1]).all()
    assert (ranks % 5 == 0).all()
    assert (Gallery(gallery).best_target_ranks(queries, copies) == ranks[:, 0] - 4).all()


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_no_bit_depends_on_block_company_or_place(kind: type[np.floating[Any]]) -> None:
    random = np.random.default_rng(5)
    n_queries, n_gallery = 150, 700
    queries = random.standard_normal((n_queries, 33)).astype(kind)
    # Neighbours a rounding apart: what a matrix product says of them is chance.
    near = random.standard_normal((n_gallery // 7, 33)).astype(kind)
    gallery = np.concatenate([near * kind(1 + step * np.finfo(kind).eps) for step in range(7)])
    targets = random.integers(0, n_gallery, (n_queries, 2))
    targets[:, 1] = (targets[:, 0] + 1 + targets[:, 1] % (n_gallery - 1)) % n_gallery
    whole = Gallery(gallery).target_ranks(queries, targets, block=n_queries)
    expected = target_ranks(scores_twin(queries, gallery), targets)
    assert (whole == expected).all()
    for block in (1, 2, 7, 64, 149, 1000):
        assert (Gallery(gallery).target_ranks(queries, targets, block=block) == whole).all()
    order = random.permutation(n_gallery)
    moved = Gallery(gallery[order]).target_ranks(queries, np.argsort(order)[targets])
    assert (moved == whole).all()
    alone = [Gallery(gallery).target_ranks(queries[q : q + 1], targets[q : q + 1])[0] for q in range(20)]
    assert (np.array(alone) == whole[:20]).all()


def test_constant_embeddings_win_nothing() -> None:
    found = Gallery(np.ones((90, 4)), [f"{n:02d}" for n in range(90)]).search(
        np.ones((3, 4)), 2, targets=np.array([0, 40, 89]), excluded=[1, -1, 0]
    )
    assert np.array(found.ranks).tolist() == [89, 90, 89]
    for place, (ranking, left_out) in enumerate(zip(found.rankings or [], [1, None, 0], strict=True)):
        scores = {f"{n:02d}": 1 for n in range(90) if n != left_out}
        assert ranking == best_first(scores, str(place))[:2]
