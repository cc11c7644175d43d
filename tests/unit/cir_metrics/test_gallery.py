"""What a gallery of embeddings takes and refuses."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from metrics_twins import best_first
from says import refusal

from cir_metrics import gallery
from cir_metrics.gallery import Gallery, threads_of_blas

IDS = ["a", "b", "c"]
IMAGES = np.eye(3, dtype=np.float32)
ONE = np.array([[1, 2, 3]], dtype=np.float32)


TOO_LONG = "holds NaN, infinity or numbers too large to score. Fix: find where they arose, or normalise."
ALIKE = "the gallery 3 of float32. Fix: embed and store both alike."


@pytest.mark.parametrize(
    ("embeddings", "ids", "text"),
    [
        (np.eye(3, dtype=int), None, "gallery: embeddings of shape (3, 3) and type int64 ... pass float32"),
        (np.zeros((0, 3)), None, "gallery: embeddings of shape (0, 3) and type float64 ... pass float32 or"),
        (np.zeros(3), None, "gallery: embeddings of shape (3,) and type float64 ... pass float32 or"),
        ([[0.0, 1.0], [float("nan"), 0.0]], None, f"gallery[1] {TOO_LONG}"),
        (IMAGES, ["a", "b"], "2 ids but 3 gallery embeddings. Fix: name each row."),
        (IMAGES, ["a", "b", "a"], "ids[2] is 'a', which stands at [0] already ... keep the first"),
    ],
)
def test_malformed_galleries_are_refused(embeddings: Any, ids: Any, text: str) -> None:
    with refusal(text):
        Gallery(embeddings, ids)


@pytest.mark.parametrize(
    ("queries", "text"),
    [
        (ONE.astype(np.float64), f"queries have 3 dimensions of float64, {ALIKE}"),
        (ONE[:, :2], f"queries have 2 dimensions of float32, {ALIKE}"),
        (ONE * np.float32(np.inf), f"queries[0] {TOO_LONG}"),
        (ONE * np.float32(1e38), "queries[0] and the gallery are so long that a score ... normalise both"),
    ],
)
def test_malformed_queries_are_refused(queries: Any, text: str) -> None:
    with refusal(text):
        Gallery(IMAGES).target_ranks(queries, np.array([0]))


def test_doubles_too_large_to_square_are_refused() -> None:
    with refusal(f"gallery[0] {TOO_LONG}"):
        Gallery([[1e200]])


@pytest.mark.parametrize("block", [0, -1, 2.0, True])
def test_a_block_is_a_number_of_queries(block: Any) -> None:
    with refusal(f"block={block!r}; it is a number of queries, 1 or more. Fix: leave it out."):
        Gallery(IMAGES).target_ranks(ONE, np.array([0]), block=block)


def test_targets_cutoffs_and_excluded_images_are_checked_as_for_scores() -> None:
    gallery = Gallery(IMAGES, IDS)
    with refusal("targets[0] holds 3; columns are 0 to 2. Fix: correct it."):
        gallery.target_ranks(ONE, np.array([3]))
    with refusal("targets for 2 queries, scores for 1. Fix: give each its own."):
        gallery.best_target_ranks(ONE, np.array([1, 2]))
    with refusal("excluded[0] is 1, a target of that query. Fix: exclude another."):
        gallery.target_ranks(ONE, [np.array([0, 1])], excluded=[1])
    with refusal("k=0; a cutoff is a whole number, 1 or more. Fix: pass k=10, say."):
        gallery.top_k(ONE, 0)
    with refusal("a ranking names images; this gallery has no ids. Fix: Gallery(..., ids=...)."):
        Gallery(IMAGES).top_k(ONE, 1)


def test_one_pass_gives_rankings_and_ranks() -> None:
    found = Gallery(IMAGES, IDS).search(ONE, 5, targets=[np.array([0, 2])], excluded=[1])
    assert found.rankings == [["c", "a"]]
    assert [each.tolist() for each in found.ranks or []] == [[2, 1]]
    assert found.best_ranks.tolist() == [1]
    nothing = Gallery(IMAGES).search(ONE)
    assert (nothing.rankings, nothing.ranks, nothing.best_ranks) == (None, None, None)


def test_a_gallery_whose_only_image_is_excluded_ranks_nothing() -> None:
    assert Gallery(np.ones((1, 2)), ["a"]).top_k(np.ones((1, 2)), 3, excluded=[0]) == [[]]


def test_halves_are_read_as_singles() -> None:
    assert Gallery(IMAGES.astype(np.float16), IDS).top_k(ONE.astype(np.float16), 3) == [["c", "b", "a"]]


def test_a_gallery_may_stay_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "gallery.npy"
    np.save(path, IMAGES)
    mapped = np.load(path, mmap_mode="r")
    gallery = Gallery(mapped, IDS)
    assert len(gallery) == 3
    assert np.shares_memory(gallery._vectors, mapped)
    assert gallery.target_ranks(ONE, np.array([0])).tolist() == [3]


def test_numbers_below_the_smallest_normal_one_are_told_apart() -> None:
    tiny = np.array([[3e-20], [2e-20], [1e-20]], dtype=np.float32)
    # Their products underflow float32 to nothing.
    queries = np.array([[1e-30]], dtype=np.float32)
    assert Gallery(tiny).target_ranks(queries, np.array([[0, 1, 2]])).tolist() == [[1, 2, 3]]


@pytest.mark.parametrize("k", [1, 5, 8])
@pytest.mark.parametrize("levels", [2, 50])
def test_the_best_of_a_large_gallery_are_those_of_a_plain_sort(k: int, levels: int) -> None:
    """Wide enough for the bound by groups, which small galleries never take; few levels give many ties."""
    rng = np.random.default_rng(k)
    vectors = rng.integers(-levels, levels + 1, (16 * 4 * 8 + 7, 3)).astype(np.float32)
    queries = rng.integers(-levels, levels + 1, (40, 3)).astype(np.float32)
    ids = [f"{number:04d}" for number in rng.permutation(len(vectors))]
    excluded = np.where(np.arange(40) % 3 == 0, -1, (queries @ vectors.T).argmax(axis=1))
    found = Gallery(vectors, ids).search(queries, k, excluded=excluded)
    for place, (query, left_out, ranking) in enumerate(zip(queries, excluded, found.rankings, strict=True)):
        scores = {name: float(vector @ query) for name, vector in zip(ids, vectors, strict=True)}
        if left_out >= 0:
            del scores[ids[left_out]]
        assert ranking == best_first(scores, str(place))[:k]


@pytest.mark.parametrize("threads", [2, 3, 50])
def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    random = np.random.default_rng(5)
    # Few values, so that many scores tie; and other numbers of targets from query to query.
    images = random.integers(-1, 2, (300, 6)).astype(np.float32)
    queries = random.integers(-1, 2, (41, 6)).astype(np.float32)
    targets = [random.choice(299, size, replace=False) for size in random.integers(1, 6, 41)]
    ids = [f"image {number}" for number in range(300)]
    asked: dict[str, Any] = {"targets": targets, "excluded": np.full(41, 299), "block": 16}

    def search() -> Any:
        return Gallery(images, ids).search(queries, 20, **asked)

    alone = search()
    monkeypatch.setattr(gallery, "_SMALL", 0)
    monkeypatch.setattr(gallery, "threads_of_blas", lambda: threads)
    found = search()
    assert found.rankings == alone.rankings
    assert [ranks.tolist() for ranks in found.ranks] == [ranks.tolist() for ranks in alone.ranks]
    assert found.best_ranks.tolist() == alone.best_ranks.tolist()


@pytest.mark.parametrize(("value", "threads"), [("1", 1), ("0", 1), ("", None), ("100000", None)])
def test_the_environment_says_how_many_threads(
    monkeypatch: pytest.MonkeyPatch, value: str, threads: int | None
) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert threads_of_blas() == (threads or cores)
