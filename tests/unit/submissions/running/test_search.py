"""Search: exact lists and ranks beside a plain loop, indexes with the recall that they have."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest
from metrics_twins import best_first
from numpy.typing import NDArray

from cir_datasets.errors import install_lines
from cir_metrics.errors import MissingExtraError, UnknownNameError
from submissions.errors import MethodError
from submissions.running.search import SEARCHES, Ranked, Searcher


def vectors(seed: int, rows: int, dimensions: int = 16) -> NDArray[np.float32]:
    made = np.random.default_rng(seed).standard_normal((rows, dimensions))
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def world(images: int = 400, queries: int = 30) -> tuple[NDArray[np.float32], list[str], NDArray[np.float32]]:
    gallery = vectors(1, images)
    # One image twice, and two that were skipped: ties.
    gallery[7] = gallery[3]
    gallery[[10, 11]] = 0.0
    return gallery, [f"im{number:04d}" for number in range(images)], vectors(2, queries)


def plain(
    gallery: NDArray[np.float32],
    ids: list[str],
    query: NDArray[np.float32],
    k: int,
    left_out: int,
    place: int,
) -> list[str]:
    scores = (gallery.astype(np.float64) * query.astype(np.float64)).sum(axis=1)
    order = best_first(dict(zip(ids, scores, strict=True)), str(place))
    return [image for image in order if left_out < 0 or image != ids[left_out]][:k]


@pytest.mark.parametrize("how", ["exact", "flat"])
def test_exact_search_is_a_loop_over_the_gallery(how: str) -> None:
    gallery, ids, queries = world()
    excluded = np.where(np.arange(len(queries)) % 2 == 0, np.arange(len(queries)), -1)
    targets = (np.arange(len(queries)) + 40) % len(ids)
    found = Searcher(gallery, ids, how).search(queries, 25, excluded=excluded, targets=targets)
    for place, query in enumerate(queries):
        assert found.rankings[place] == plain(gallery, ids, query, 25, int(excluded[place]), place)
        scores = gallery.astype(np.float64) @ query.astype(np.float64)
        if excluded[place] >= 0:
            scores[excluded[place]] = -np.inf
        assert found.ranks[place] == np.count_nonzero(scores >= scores[targets[place]] - 1e-12)
    assert (found.recall is None) == (how == "exact")
    assert found.recall in (None, 1.0)


@pytest.mark.parametrize("how", ["flat", "hnsw", "ivfpq"])
def test_an_index_says_how_much_it_finds(how: str) -> None:
    gallery, ids, queries = world(images=2000, queries=40)
    excluded = np.arange(len(queries))
    searcher = Searcher(gallery, ids, how)
    found = searcher.search(queries, 10, excluded=excluded)
    exact = Searcher(gallery, ids).search(queries, 10, excluded=excluded)
    held = [
        len(set(mine) & set(theirs)) / 10 for mine, theirs in zip(found.rankings, exact.rankings, strict=True)
    ]
    assert found.recall == pytest.approx(np.mean(held))
    assert found.measured == 40
    assert re.fullmatch(rf"{how} \(FAISS.*\), recall@10 {found.recall:.4f} over 40 queries", found.note(10))
    assert all(len(set(each)) == len(each) for each in found.rankings)
    assert all(ids[place] not in each for place, each in enumerate(found.rankings))
    again = Searcher(gallery, ids, how).search(queries, 10, excluded=excluded)
    assert again.rankings == found.rankings
    # What an index finds is ordered by the score of the definition, as everything else is.
    for query, ranking in zip(queries, found.rankings, strict=True):
        scores = [float(gallery[ids.index(image)].astype(np.float64) @ query) for image in ranking]
        assert scores == sorted(scores, reverse=True)


def test_target_ranks_are_exact_whatever_finds_the_lists() -> None:
    gallery, ids, queries = world(images=600)
    targets = np.arange(len(queries)) + 100
    by_index = Searcher(gallery, ids, "hnsw").search(queries, 5, targets=targets)
    exact = Searcher(gallery, ids).search(queries, 5, targets=targets)
    assert by_index.ranks.tolist() == exact.ranks.tolist()


def test_skipped_images_come_after_all_that_were_seen() -> None:
    """Also after those whose score is below zero: what was not seen must not be worth more than what was."""
    gallery = np.array([[1, 0], [0, 0], [-1, 0], [0, 0]], dtype=np.float32)
    query = np.array([[1, 0]], dtype=np.float32)
    found = Searcher(gallery, ["a", "d", "c", "b"], missing=frozenset({"d", "b"}))
    orders = set()
    for name in ("q1", "q2", "q3", "q4", "q5", "q6"):
        skipped = best_first({"b": 0, "d": 0}, name)
        assert found.search(query, 4, query_ids=[name]).rankings == [["a", "c", *skipped]]
        assert found.search(query, 3, query_ids=[name]).rankings == [["a", "c", skipped[0]]]
        assert found.order(query[0], ["b", "c", "d"], 2, name) == ["c", skipped[0]]
        assert found.order(query[0], ["d", "b"], 2, name) == skipped
        orders.add(skipped[0])
    assert orders == {"b", "d"}
    ranks = [found.search(query, 1, targets=np.array([row])).ranks for row in range(4)]
    assert [each.tolist() for each in ranks] == [[1], [4], [2], [4]]


@pytest.mark.parametrize("how", ["exact", "flat", "hnsw"])
def test_skipped_images_are_ranked_last_as_a_plain_loop_ranks_them(how: str) -> None:
    gallery, ids, queries = world(images=120)
    missing = frozenset(ids[row] for row in range(0, 120, 5))
    excluded = np.array([place * 3 if place % 4 else -1 for place in range(len(queries))])
    targets = (np.arange(len(queries)) * 3 + 1) % 120
    found = Searcher(gallery, ids, how, missing=missing).search(
        queries, 110, excluded=excluded, targets=targets
    )
    for place, query in enumerate(queries):
        whole = plain(gallery, ids, query, 120, int(excluded[place]), place)
        wanted = [image for image in whole if image not in missing]
        seen = len(wanted)
        wanted += best_first(dict.fromkeys((image for image in whole if image in missing), 0), str(place))
        assert found.rankings[place] == wanted[:110], place
        target = ids[targets[place]]
        if target in missing:
            assert found.ranks[place] == len(wanted)
        else:
            score = {image: float(gallery[ids.index(image)].astype(np.float64) @ query) for image in whole}
            at_least = sum(score[image] >= score[target] - 1e-12 for image in wanted[:seen])
            assert found.ranks[place] == at_least


def test_where_nothing_was_seen_all_targets_are_last() -> None:
    found = Searcher(np.zeros((3, 2), dtype=np.float32), ["c", "b", "a"], "hnsw", missing=frozenset("abc"))
    query = np.array([[1, 0]], dtype=np.float32)
    answer = found.search(query, 3, targets=np.array([1]), excluded=np.array([0]))
    assert answer.rankings == [best_first({"a": 0, "b": 0}, "0")]
    assert answer.ranks.tolist() == [2]


@pytest.mark.parametrize(("how", "images", "k"), [("hnsw", 400, 399), ("ivfpq", 3000, 1000)])
def test_an_index_that_has_too_few_candidates_is_filled_up(how: str, images: int, k: int) -> None:
    gallery, ids, queries = world(images=images)
    excluded = np.arange(len(queries))
    found = Searcher(gallery, ids, how).search(queries, k, excluded=excluded)
    assert [len(ranking) for ranking in found.rankings] == [k] * len(queries)
    assert all(len(set(ranking)) == k for ranking in found.rankings)
    assert found.recall is not None
    assert found.recall > 0.5


def test_a_query_that_says_nothing_ranks_by_chance_and_wins_nothing() -> None:
    gallery, ids, _ = world()
    silent = np.zeros((1, 16), dtype=np.float32)
    found = Searcher(gallery, ids).search(silent, 3, query_ids=["q"], targets=np.array([0]))
    assert found.rankings == [best_first(dict.fromkeys(ids, 0), "q")[:3]]
    assert found.ranks.tolist() == [len(ids)]


def test_a_k_beyond_the_gallery_lists_every_image_once() -> None:
    gallery, ids, queries = world(images=20, queries=2)
    for how in ("exact", "flat", "hnsw"):
        found = Searcher(gallery, ids, how).search(queries, 50, excluded=np.array([0, -1]))
        assert [len(each) for each in found.rankings] == [19, 20], how


def test_a_few_images_are_ordered_alone() -> None:
    gallery, ids, queries = world()
    few = ["im0300", "im0003", "im0007", "im0010"]
    searcher = Searcher(gallery, ids)
    whole = plain(gallery, ids, queries[0], len(ids), -1, 0)
    assert searcher.order(queries[0], few, 4) == sorted(few, key=whole.index)
    assert searcher.order(queries[0], few, 2) == sorted(few, key=whole.index)[:2]
    assert searcher.order(queries[0], [], 3) == []


def test_best_rows_are_rows() -> None:
    gallery, ids, queries = world()
    searcher = Searcher(gallery, ids)
    rows = searcher.best_rows(queries, 10)
    assert [[ids[row] for row in each] for each in rows] == searcher.search(queries, 10).rankings


def test_recall_is_never_rounded_up_to_all() -> None:
    assert Ranked([], "hnsw", 0.99999, 1000).note(10) == "hnsw, recall@10 0.9999 over 1,000 queries"
    assert Ranked([], "hnsw", 1.0, 1000).note(10) == "hnsw, recall@10 1.0000 over 1,000 queries"
    assert Ranked([]).note(10) == ""


def test_unknown_searches_and_galleries_too_small_for_one_are_refused() -> None:
    gallery, ids, _ = world(images=100)
    with pytest.raises(
        UnknownNameError, match=r"no search 'hsnw'. Did you mean 'hnsw'\? Fix: use one of exact, flat"
    ):
        Searcher(gallery, ids, "hsnw")
    with pytest.raises(MethodError, match="ivfpq learns 256 codes, and the gallery has 100 images"):
        Searcher(gallery, ids, "ivfpq")
    assert SEARCHES[0] == "exact"


def test_an_index_without_faiss_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    gallery, ids, queries = world(images=20)
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingExtraError, match=re.escape(install_lines("retrieval"))):
        Searcher(gallery, ids, "hnsw")
    assert len(Searcher(gallery, ids).search(queries, 3).rankings) == len(queries)


@pytest.mark.parametrize("seed", range(20))
def test_neighbours_that_a_product_cannot_tell_are_ordered_by_the_definition(seed: int) -> None:
    """Copies that differ in their last digits, beside images that lie far apart."""
    random = np.random.default_rng(seed)
    base = vectors(seed, 60, 48)
    near = base[:20] * (1 + random.integers(-2, 3, (20, 1)) * 6e-8)
    nearer = base[:20] + random.standard_normal((20, 48)) * 1e-8
    gallery = np.concatenate([base, base[:20], near, nearer]).astype(np.float32)
    ids = [f"im{number:03d}" for number in random.permutation(len(gallery))]
    queries = np.concatenate([base[:3], vectors(seed + 100, 3, 48)])
    left_out = random.integers(-1, len(gallery), len(queries))
    for k in (1, 7, 40, 200):
        found = Searcher(gallery, ids).search(queries, k, excluded=left_out).rankings
        wanted = [
            plain(gallery, ids, query, k, int(row), place)
            for place, (query, row) in enumerate(zip(queries, left_out, strict=True))
        ]
        assert found == wanted, k
