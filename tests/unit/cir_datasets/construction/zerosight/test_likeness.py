"""Thresholds: at their exact values, in blocks, and against a twin in plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cir_datasets.construction.zerosight import likeness
from cir_datasets.construction.zerosight.likeness import in_bands, similar, too_like
from cir_datasets.construction.zerosight.options import Thresholds, load_thresholds
from cir_datasets.construction.zerosight.queries import target_rows

PAPER = load_thresholds("paper")


def at(*cosines: float) -> np.ndarray:
    """Vectors of the plane at these cosines to the first axis."""
    return np.array([[c, np.sqrt(1 - c * c)] for c in cosines], np.float32)


@pytest.mark.parametrize(
    ("cosine", "stays"), [(0.349999, False), (0.35, True), (0.42, True), (0.5, True), (0.500001, False)]
)
def test_bands_hold_their_ends(cosine: float, stays: bool) -> None:
    semantic = at(1, 0.7)
    ((_, found),) = in_bands([0], at(1, cosine), semantic, PAPER)
    assert found == ([1] if stays else [])


@pytest.mark.parametrize(
    ("cosine", "stays"), [(0.649999, False), (0.65, True), (0.75, True), (0.750001, False)]
)
def test_the_semantic_band_holds_its_ends(cosine: float, stays: bool) -> None:
    ((_, found),) = in_bands([0], at(1, 0.4), at(1, cosine), PAPER)
    assert found == ([1] if stays else [])


@pytest.mark.parametrize(("cosine", "goes"), [(0.849999, False), (0.85, True), (0.850001, True)])
def test_the_later_of_two_goes_from_the_limit_on(cosine: float, goes: bool) -> None:
    assert too_like(at(1, cosine), [0, 1], 0.85) == [None, 0 if goes else None]


def test_dropping_is_greedy() -> None:
    # The second is too like the first and goes; the third is too like the second alone, and stays.
    angles = np.radians([0, 25, 50])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    assert too_like(vectors, [0, 1, 2], 0.9) == [None, 0, None]


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = np.random.default_rng(0).normal(size=(300, 6)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    bands = Thresholds(
        reference_visual=0.5,
        reference_semantic=0.8,
        target_visual=(0.2, 0.6),
        target_semantic=(-0.5, 0.5),
        mutual_visual=0.85,
        neighbour=0.59,
    )
    whole = (
        list(in_bands(range(0, 300, 7), vectors, vectors[::-1], bands)),
        too_like(vectors, range(300), 0.7),
    )
    for name, size in (("_BLOCK", 16), ("_REFERENCES", 5), ("_FRAMES", 31)):
        monkeypatch.setattr(likeness, name, size)
    assert (
        list(in_bands(range(0, 300, 7), vectors, vectors[::-1], bands)),
        too_like(vectors, range(300), 0.7),
    ) == whole


def test_a_similarity_has_six_digits() -> None:
    assert similar(at(1), at(0.123456789)).tolist() == [0.123457]


numbers = st.lists(st.integers(-9, 9), min_size=4, max_size=4).filter(any)


@given(st.lists(numbers, min_size=2, max_size=12), st.lists(numbers, min_size=12, max_size=12), st.data())
def test_every_triple_obeys_its_thresholds(
    first: list[list[int]], second: list[list[int]], data: st.DataObject
) -> None:
    visual, semantic = (
        (lambda a: a / np.linalg.norm(a, axis=1, keepdims=True))(np.array(rows, np.float64)).astype(
            np.float32
        )
        for rows in (first, second[: len(first)])
    )
    edges = sorted(data.draw(st.lists(st.integers(-10, 10), min_size=4, max_size=4)))
    thresholds = Thresholds(
        reference_visual=0.5,
        reference_semantic=0.8,
        target_visual=(edges[0] / 10, edges[2] / 10),
        target_semantic=(edges[1] / 10, edges[3] / 10),
        mutual_visual=data.draw(st.integers(0, 10)) / 10,
        neighbour=0.59,
    )
    images = [f"v/{place:06d}.jpg" for place in range(len(first))]
    for place, row in enumerate(target_rows("v", images, images, visual, semantic, thresholds)):
        assert [target["image"] for target in row["targets"]] == _slow_targets(
            place, images, visual, semantic, thresholds
        )
        assert bool(row.get("failed")) == (len(row["targets"]) < 2)
        for target in row["targets"]:
            assert thresholds.target_visual[0] <= target["visual"] <= thresholds.target_visual[1]
            assert thresholds.target_semantic[0] <= target["semantic"] <= thresholds.target_semantic[1]
            assert target["image"] != row["reference"]


def _slow_targets(
    reference: int, images: list[str], visual: np.ndarray, semantic: np.ndarray, thresholds: Thresholds
) -> list[str]:
    """One frame after the other, in plain Python."""

    def cosine(vectors: np.ndarray, one: int, other: int) -> float:
        return round(sum(float(a) * float(b) for a, b in zip(vectors[one], vectors[other], strict=True)), 6)

    kept: list[int] = []
    for frame in range(len(images)):
        low, high = thresholds.target_visual
        lower, higher = thresholds.target_semantic
        if (
            frame != reference
            and low <= cosine(visual, reference, frame) <= high
            and lower <= cosine(semantic, reference, frame) <= higher
            and all(cosine(visual, frame, other) < thresholds.mutual_visual for other in kept)
        ):
            kept.append(frame)
    return [images[frame] for frame in kept]
