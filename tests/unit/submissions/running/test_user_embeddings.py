"""Embeddings of one's own become rank files: a plain twin, ids in any order, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from benchmark_world.user_scores import BENCHMARK, IMAGES, KEYS, SESSIONS, TURNS, best_first, for_real_cirr
from numpy.typing import NDArray
from says import refusal

import submissions
from cir_datasets.rows.benchmark import SUBSET, AskedRanking, Benchmark
from submissions.errors import MethodError
from submissions.running import user_embeddings
from submissions.running.user_embeddings import rank_file_from_embeddings

SECOND = AskedRanking(SUBSET, removes_reference=True, on_board=True)

DRAWN = np.random.default_rng(0)
QUERIES = DRAWN.standard_normal((len(KEYS), 8)).astype(np.float32)
VECTORS = (DRAWN.standard_normal((len(IMAGES), 8)) * DRAWN.uniform(0.1, 9, (len(IMAGES), 1))).astype(
    np.float32
)
VECTORS[7] = VECTORS[3]  # Two images that always tie.


def made(
    queries: Any = QUERIES, images: Any = VECTORS, benchmark: Any = BENCHMARK, **change: Any
) -> submissions.RankFile:
    ids = {"query_ids": KEYS, "image_ids": IMAGES, "method": "Mine"}
    found = rank_file_from_embeddings(benchmark, queries, images, **{**ids, **change})
    assert isinstance(found, submissions.RankFile)
    return found


def check_twin(
    benchmark: Benchmark, queries: NDArray[np.float32], vectors: NDArray[np.float32], *, normalise: bool
) -> None:
    """Plain numpy of one query at a time, in double precision."""
    ids, gallery = benchmark.query_ids, list(benchmark.gallery or ())
    found = made(queries, vectors, benchmark, query_ids=ids, image_ids=gallery, normalise=normalise)
    if normalise:
        queries, vectors = (
            (each / np.linalg.norm(each.astype(np.float64), axis=1, keepdims=True)).astype(np.float32)
            for each in (queries, vectors)
        )
    own = vectors.astype(np.float64)
    for row, query in zip(benchmark.rows(), queries, strict=True):
        key, reference = row["query_id"], row["reference_image_id"]
        scores = (own * query.astype(np.float64)).sum(axis=1)
        of = dict(zip(gallery, scores.tolist(), strict=True))
        subset = {image: of[image] for image in SECOND.images(row)}
        assert found.subset_rankings[key] == best_first(subset, key)[:3]
        del of[reference]
        assert found.rankings[key] == best_first(of, key)[:50]


@pytest.mark.parametrize("normalise", [True, False])
def test_rankings_are_what_one_query_at_a_time_gives(normalise: bool) -> None:
    check_twin(BENCHMARK, QUERIES, VECTORS, normalise=normalise)
    assert made().rankings != made(normalise=False).rankings


@pytest.mark.slow
def test_rankings_of_real_annotations_are_what_one_query_at_a_time_gives() -> None:
    benchmark = for_real_cirr()
    draws = np.random.default_rng(1)
    queries = draws.standard_normal((len(benchmark.query_ids), 16)).astype(np.float32)
    vectors = draws.standard_normal((len(benchmark.gallery or ()), 16)).astype(np.float32)
    check_twin(benchmark, queries, vectors, normalise=True)


def test_ids_types_and_holders_change_nothing(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    expected = made().to_json()
    rows, columns = np.arange(len(KEYS))[::-1], np.arange(len(IMAGES))[::-1]
    turned = {"query_ids": np.array(KEYS)[rows], "image_ids": [IMAGES[column] for column in columns]}
    assert made(QUERIES[rows], VECTORS[columns], **turned).to_json() == expected
    assert made(query_ids=None, image_ids=None, by_position=True).to_json() == expected
    np.save(tmp_path / "images.npy", VECTORS)
    mapped = np.load(tmp_path / "images.npy", mmap_mode="r")
    for cells in (1, 100, 4_000_000):
        monkeypatch.setattr(user_embeddings, "_CELLS", cells)
        assert made(images=mapped).to_json() == expected
        assert made(torch.from_numpy(QUERIES), VECTORS.astype(np.float64)).to_json() == expected
    assert submissions.validate(made(), BENCHMARK).errors == ()


def test_sessions_are_named_by_session_and_turn() -> None:
    images = list(SESSIONS.gallery or ())
    draws = np.random.default_rng(1)
    queries, vectors = draws.standard_normal((len(TURNS), 4)), draws.standard_normal((len(images), 4))
    found = made(queries, vectors, SESSIONS, query_ids=TURNS[::-1], image_ids=images)
    assert submissions.validate(found, SESSIONS).errors == ()
    assert (
        found.rankings == made(queries[::-1], vectors, SESSIONS, query_ids=TURNS, image_ids=images).rankings
    )


def spoilt(vectors: NDArray[np.float32], row: int, value: float) -> NDArray[np.float32]:
    changed = vectors.copy()
    changed[row] = value
    return changed


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"queries": QUERIES.T}, "query_embeddings: shape (8, 6); there are 6 query ids. Fix: transpose"),
        ({"images": VECTORS[:-1]}, "image_embeddings: shape (59, 8); there are 60 image ids"),
        ({"images": VECTORS[:, :7]}, "query_embeddings have 8 dimensions, image_embeddings 7"),
        ({"images": spoilt(VECTORS, 4, np.nan)}, f"image_embeddings[4] is not finite ... '{IMAGES[4]}'"),
        ({"queries": spoilt(QUERIES, 2, np.inf)}, f"query_embeddings[2] is not finite ... query '{KEYS[2]}'"),
        ({"queries": QUERIES.astype(float) * 1e-300}, "query_embeddings[0] is too small or too large"),
        ({"queries": spoilt(QUERIES, 5, 0)}, f"query_embeddings[5] is all zeros: query '{KEYS[5]}'"),
        ({"queries": QUERIES.astype(np.int8)}, "query_embeddings: type int8; embeddings are float16 to"),
        ({"queries": QUERIES.astype(float) * 1e300, "normalise": False}, "[0] is not finite as float32"),
        ({"images": "images.npy"}, "image_embeddings: of type str"),
        ({"queries": QUERIES[:, :0]}, "query_embeddings: shape (6, 0)"),
        # What is wrong with ids is said as for scores: test_own_scores.
        ({"query_ids": [KEYS[1], *KEYS[1:]]}, "query_ids[0] and query_ids[1] are both"),
        ({"benchmark": "fashioniq/val"}, "query_embeddings is of type ndarray; fashioniq/val is a suite"),
    ],
    ids=lambda value: value[:25] if isinstance(value, str) else "",
)
def test_what_cannot_be_ranked_is_refused_with_place_and_fix(change: dict[str, Any], text: str) -> None:
    with refusal(text, MethodError):
        made(**change)
