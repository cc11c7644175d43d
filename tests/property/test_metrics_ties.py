"""Equal scores: a hash of query and image orders them, the same everywhere, and worth nothing to any id."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import benchmark_world as worlds
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from metrics_twins import best_first, tie_key
from numpy.typing import NDArray
from programs import run_program

import submissions
from cir_metrics.errors import InputError
from cir_metrics.gallery import Gallery
from cir_metrics.ranking import best_of, top_k
from cir_metrics.ties import Ties, tie_keys
from submissions import make_rank_file
from submissions.methods.turns import Turn
from submissions.running.search import Searcher
from submissions.transform.fuse import _reciprocals, _rrf

ROOT = Path(__file__).resolve().parents[2]
IMAGES, QUERIES, K = 24, 4000, 6
IDS = [f"im{number:02d}" for number in range(IMAGES)]
NAMES = [f"query-{number}" for number in range(QUERIES)]
# Any text may be an id, a lone surrogate included.
texts = st.text(st.characters() | st.characters(categories=["Cs"]), max_size=8)


@given(texts, st.lists(texts, min_size=1, max_size=12, unique=True))
def test_keys_are_those_of_a_plain_reading(query: str, images: list[str]) -> None:
    wanted = [tie_key(query, image) for image in images]
    assert tie_keys(query, images).tolist() == wanted
    ties = Ties(images)
    some = np.arange(len(images))[::-2]
    assert ties.keys([query], some).tolist() == [wanted[row] for row in some]
    both = np.zeros(len(images), dtype=np.int64)
    assert ties.keys([query, "another"], np.arange(len(images)), both).tolist() == wanted


def test_keys_are_the_same_on_every_machine_and_in_every_process() -> None:
    pinned = [16488839199148167146, 935351515816049491]
    assert tie_keys("12063", ["dev-1042-2-img1", "é"]).tolist() == pinned
    code = "from cir_metrics.ranking import *; print(top_k([[0.0] * 9] * 3, list('abcdefghi'), 9))"
    for seed in ("0", "77"):
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        done = run_program([sys.executable, "-c", code], env=environment)
        assert done.stdout.strip() == str(top_k(np.zeros((3, 9)), list("abcdefghi"), 9))


def by_matrix(ids: Sequence[str]) -> list[list[str]]:
    return top_k(np.zeros((QUERIES, len(ids))), ids, K, query_ids=NAMES)


def by_row_numbers(ids: Sequence[str]) -> list[list[str]]:
    return top_k(np.zeros((QUERIES, len(ids))), ids, K)


def by_embeddings(ids: Sequence[str]) -> list[list[str]]:
    return Gallery(np.ones((len(ids), 2)), ids).top_k(np.ones((QUERIES, 2)), K, query_ids=NAMES)


def by_scores_of_a_few(ids: Sequence[str]) -> list[list[str]]:
    return [best_of(dict.fromkeys(ids, 0.5), K, name) for name in NAMES]


def by_fusion(ids: Sequence[str]) -> list[list[str]]:
    """Each image stands at each rank once, so that all get the same sum."""
    rounds = [[*ids[start:], *ids[:start]] for start in range(len(ids))]
    units = _reciprocals(len(ids), 60)
    return [_rrf(rounds, units, K, name) for name in NAMES[:1500]]


def by_index(ids: Sequence[str]) -> list[list[str]]:
    pytest.importorskip("faiss")
    vectors = np.ones((len(ids), 4), dtype=np.float32)
    searcher = Searcher(vectors, ids, "flat")
    queries = np.ones((1500, 4), dtype=np.float32)
    return searcher.search(queries, K, query_ids=NAMES[:1500]).rankings


def by_nothing_seen(ids: Sequence[str]) -> list[list[str]]:
    searcher = Searcher(np.zeros((len(ids), 2), np.float32), ids, missing=frozenset(ids))
    return searcher.search(np.ones((QUERIES, 2), np.float32), K, query_ids=NAMES).rankings


WAYS: list[Callable[[Sequence[str]], list[list[str]]]] = [
    by_matrix,
    by_row_numbers,
    by_embeddings,
    by_scores_of_a_few,
    by_fusion,
    by_index,
    by_nothing_seen,
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_constant_scores_give_every_image_the_same_chance_of_every_place(
    way: Callable[[Sequence[str]], list[list[str]]],
) -> None:
    place = {image: number for number, image in enumerate(IDS)}
    ranked = np.array([[place[image] for image in ranking] for ranking in way(IDS)])
    assert ranked.shape[1] == K
    expected = len(ranked) / IMAGES
    for column in ranked.T:
        counts = np.bincount(column, minlength=IMAGES)
        # Chi-square with 23 degrees of freedom: above 60 once in 30,000 times.
        assert ((counts - expected) ** 2 / expected).sum() < 60
    # Nor does the place of one image tell that of another: pairs at the first two places.
    pairs = np.bincount(ranked[:, 0] * IMAGES + ranked[:, 1], minlength=IMAGES**2)
    off_diagonal = pairs[np.arange(IMAGES**2) % (IMAGES + 1) != 0]
    share = len(ranked) / len(off_diagonal)
    spread = np.sqrt(2 * len(off_diagonal))
    assert abs(((off_diagonal - share) ** 2 / share).sum() - len(off_diagonal)) < 5 * spread


@pytest.mark.parametrize("name", ["", "0", "aaaa", "zzzz", "im11x", "query-3", "query"])
def test_no_name_helps_its_image(name: str) -> None:
    """The target, renamed: first or last in the alphabet, first or last in the gallery, or like a query."""
    for row in (0, IMAGES - 1):
        ids = [*IDS[:row], name or "0", *IDS[row + 1 :]]
        found = np.mean([(name or "0") in ranking for ranking in by_matrix(ids)])
        chance = K / IMAGES
        assert abs(found - chance) < 4 * np.sqrt(chance * (1 - chance) / QUERIES)


def test_two_images_keep_their_order_whatever_else_ties() -> None:
    """Leaving an image out moves no other past its neighbour: subsets and galleries agree."""
    for name in NAMES[:50]:
        whole = best_first(dict.fromkeys(IDS, 0), name)
        assert best_of(dict.fromkeys(IDS[::3], 0), IMAGES, name) == [i for i in whole if i in IDS[::3]]
        (few,) = top_k(np.zeros((1, 8)), IDS[::3], 8, query_ids=[name])
        assert few == [image for image in whole if image in IDS[::3]]


class Constant:
    """A method that tells nothing."""

    needs_pictures: ClassVar[bool] = False
    aggregation: ClassVar[str] = "latest"

    def method(self) -> submissions.Method:
        return submissions.Method(name="Constant")

    def scores(self, turns: Sequence[Turn], gallery: Any) -> NDArray[np.float64]:
        return np.zeros((len(turns), len(gallery.ids)))


@pytest.mark.slow
def test_constant_scores_of_a_rank_file_score_what_chance_does() -> None:
    """CIRR: in every subset the target is the first by id, and would win by an order of ids."""
    benchmark = worlds.cirr(gallery=1000 + 6, queries=900)
    benchmark = worlds.Benchmark.from_rows(benchmark.spec, benchmark.rows()[100:], benchmark.gallery)
    made = make_rank_file(benchmark, Constant())
    for row in benchmark.rows():
        query, reference = row["query_id"], row["reference_image_id"]
        others = [image for image in benchmark.gallery or () if image != reference]
        members = [image for image in row["subset_image_ids"] if image != reference]
        assert made.rankings[query] == best_first(dict.fromkeys(others, 0), query)[:50]
        assert (made.subset_rankings or {})[query] == best_first(dict.fromkeys(members, 0), query)[:3]
    report = submissions.score(made, benchmark)
    for metric, chance in (("recall_subset@1", 1 / 5), ("recall_subset@2", 2 / 5), ("recall@50", 50 / 1005)):
        sigma = np.sqrt(chance * (1 - chance) / len(benchmark))
        assert abs(report.metrics[metric] - chance) < 4 * sigma, metric


def test_turns_of_a_session_break_their_ties_apart() -> None:
    benchmark = worlds.circled()
    made = make_rank_file(benchmark, Constant())
    for session, turns in made.rankings.items():
        for number, ranking in enumerate(turns, start=1):
            wanted = best_first(dict.fromkeys(benchmark.gallery or (), 0), f"{session}#{number}")
            assert ranking == wanted[:10]
        assert len({json.dumps(turn) for turn in turns}) == len(turns)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("ab", "query_ids is 'ab'; a list is a list of query ids. Fix: pass a list of strings."),
        (["a"], "query_ids is 1 ids, with 2 queries. Fix: give each query its own."),
        (["a", 7.5], "query_ids[1] is 7.5; a query id is a string. Fix: write '7.5' if that is the id."),
    ],
)
def test_malformed_query_ids_are_refused(given: Any, text: str) -> None:
    for search in (
        lambda: top_k(np.zeros((2, 3)), ["x", "y", "z"], 1, query_ids=given),
        lambda: Gallery(np.ones((3, 1)), ["x", "y", "z"]).top_k(np.ones((2, 1)), 1, query_ids=given),
    ):
        with pytest.raises(InputError) as caught:
            search()
        assert str(caught.value) == text
