"""History aggregation beside a slow reading of its formulas, on turns with and without words and pictures."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cir_metrics.errors import UnknownNameError
from submissions.errors import MethodError
from submissions.running.aggregation import (
    AGGREGATIONS,
    FeedbackWeights,
    aggregate,
    aggregate_feedback,
    aggregate_scores,
    aggregation,
    feedback_weights,
)

Vector = list[float]

TURNS = st.lists(st.integers(1, 5), min_size=1, max_size=4)


def made(seed: int, rows: int, dimensions: int = 4, *, silent: float = 0.2) -> NDArray[np.float32]:
    """Vectors of length 1, some of them zeros: turns of which the method reads nothing."""
    random = np.random.default_rng(seed)
    vectors = random.standard_normal((rows, dimensions))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[random.random(rows) < silent] = 0.0
    return vectors.astype(np.float32)


def norm(vector: Vector) -> Vector:
    length = math.sqrt(sum(value * value for value in vector))
    return [value / length for value in vector] if length else list(vector)


def added(*parts: tuple[float, Vector]) -> Vector:
    return [sum(weight * vector[i] for weight, vector in parts) for i in range(len(parts[0][1]))]


def plain(name: str, alpha: float, session: list[Vector]) -> list[Vector]:
    """The formulas of the module's docstring, a turn at a time."""
    found = []
    for last in range(1, len(session) + 1):
        so_far = session[:last]
        if name == "latest":
            says = [vector for vector in so_far if any(vector)]
            found.append(norm(says[-1]) if says else so_far[-1])
        else:
            weights = [1.0 if name == "average" else alpha ** (last - 1 - place) for place in range(last)]
            summed = added(*zip(weights, so_far, strict=True))
            found.append(norm([value / sum(weights) for value in summed]))
    return found


def split(vectors: NDArray[np.float32], turns: list[int]) -> list[list[Vector]]:
    ends = np.cumsum(turns)
    return [vectors[end - count : end].tolist() for end, count in zip(ends, turns, strict=True)]


@given(TURNS, st.integers(0, 10_000), st.sampled_from(["latest", "average", "weighted"]), st.floats(0.05, 1))
def test_aggregations_are_their_formulas(turns: list[int], seed: int, name: str, alpha: float) -> None:
    vectors = made(seed, sum(turns))
    how = aggregation(name, alpha=alpha if name == "weighted" else None)
    found = aggregate(how, vectors, turns)
    wanted = [vector for session in split(vectors, turns) for vector in plain(name, alpha, session)]
    assert found.dtype == np.float32
    assert found == pytest.approx(np.array(wanted), abs=1e-6)


def test_the_weights_and_alpha_are_the_papers() -> None:
    """CIRCLED, section 6.3 and equation 9 with the weights of the session construction."""
    assert aggregation("weighted").alpha == 0.8
    assert feedback_weights() == FeedbackWeights(selected=0.08, rejected=0.29, words=0.44, shown=10)


def plain_feedback(
    session: list[Vector],
    references: list[Vector],
    rows: list[int],
    gallery: list[Vector],
    shown: int,
    shares: FeedbackWeights,
) -> list[Vector]:
    """Equation 9 a turn at a time: the images shown are those that v of the turn before ranks first."""
    found = [norm(session[0])]
    for turn in range(1, len(session)):
        before, selected = found[-1], references[turn]
        parts = [(1.0, before), (shares.words, session[turn])]
        if any(selected):
            parts.append((shares.selected, selected))
            order = sorted(
                range(len(gallery)),
                key=lambda image: -sum(a * b for a, b in zip(before, gallery[image], strict=True)),
            )
            others = [gallery[image] for image in order[:shown] if image != rows[turn]]
            if others and any(before):
                mean = [sum(column) / len(others) for column in zip(*others, strict=True)]
                parts.append((-shares.rejected, mean))
        found.append(norm(added(*parts)))
    return found


@given(TURNS, st.integers(0, 10_000), st.integers(1, 6))
def test_feedback_is_its_formula(turns: list[int], seed: int, shown: int) -> None:
    random = np.random.default_rng(seed)
    gallery = made(seed + 1, 9, silent=0.0)
    vectors = made(seed, sum(turns))
    rows = random.integers(-1, len(gallery), sum(turns))
    references = np.where(rows[:, None] >= 0, gallery[rows], np.float32(0))
    shares = FeedbackWeights(selected=0.08, rejected=0.29, words=0.44, shown=shown)

    def top(
        queries: NDArray[np.float32], left_out: NDArray[np.int64], places: NDArray[np.int64]
    ) -> list[NDArray[np.int64]]:
        assert (left_out == -1).all()
        assert len(places) == len(queries)
        scores = queries.astype(np.float64) @ gallery.astype(np.float64).T
        return list(np.argsort(-scores, axis=1)[:, :shown])

    found = aggregate_feedback(vectors, turns, references, rows, gallery, top, weights=shares)
    wanted: list[Vector] = []
    for session, own, places in zip(
        split(vectors, turns), split(references, turns), split(rows[:, None], turns), strict=True
    ):
        at = [int(place[0]) for place in places]
        wanted += plain_feedback(session, own, at, gallery.tolist(), shown, shares)
    assert found == pytest.approx(np.array(wanted), abs=2e-6)


def test_feedback_leaves_out_the_reference_that_the_turn_before_removed() -> None:
    gallery = np.eye(4, dtype=np.float32)
    asked: list[tuple[list[int], list[int]]] = []

    def top(
        queries: NDArray[np.float32], left_out: NDArray[np.int64], places: NDArray[np.int64]
    ) -> list[NDArray[np.int64]]:
        asked.append((left_out.tolist(), places.tolist()))
        return [np.array([1, 2]) for _ in queries]

    vectors = gallery[[0, 1, 2]]
    rows = np.array([3, 1, 0])
    aggregate_feedback(vectors, [3], gallery[rows], rows, gallery, top, removed=True)
    assert asked == [([3], [0]), ([1], [1])]


def test_a_turn_that_says_nothing_adds_nothing() -> None:
    """Chat has no reference, relevance feedback no words: what the method cannot read is a row of zeros."""
    vectors = np.array([[1, 0], [0, 0], [0, 1]], dtype=np.float32)
    for name in ("latest", "average", "weighted"):
        found = aggregate(aggregation(name), vectors, [3])
        assert found[1].tolist() == [1.0, 0.0], name
    silent = np.zeros((2, 2), dtype=np.float32)
    assert aggregate(aggregation("weighted"), silent, [2]).tolist() == [[0, 0], [0, 0]]
    chat = aggregate_feedback(vectors, [3], silent[[0, 0, 0]], np.full(3, -1), vectors, lambda *_: [])
    shares = feedback_weights()
    assert chat[2] == pytest.approx(norm([1.0, shares.words]), abs=1e-6)


@given(TURNS, st.integers(0, 10_000), st.sampled_from(["latest", "average", "weighted"]))
def test_scores_are_aggregated_as_vectors_are(turns: list[int], seed: int, name: str) -> None:
    """A score is linear in the query: both ways order images alike, but for the length of the query."""
    vectors = made(seed, sum(turns), silent=0.0)
    gallery = made(seed + 1, 6, silent=0.0).astype(np.float64)
    scores = vectors.astype(np.float64) @ gallery.T
    aggregate_scores(aggregation(name), scores, turns)
    by_vectors = aggregate(aggregation(name), vectors, turns).astype(np.float64) @ gallery.T
    for one, other in zip(scores, by_vectors, strict=True):
        length = np.linalg.norm(one) / np.linalg.norm(other)
        assert one == pytest.approx(other * length, abs=1e-5)


@pytest.mark.parametrize(
    ("name", "alpha", "error", "text"),
    [
        (
            "latst",
            None,
            UnknownNameError,
            "no aggregation 'latst'. Did you mean 'latest'? Fix: use one of latest,",
        ),
        ("latest", 0.5, MethodError, "alpha=0.5: latest has no alpha. Fix: leave it out, or use weighted."),
        ("weighted", 0.0, MethodError, "alpha=0.0; it is more than 0 and at most 1."),
        ("weighted", 1.5, MethodError, "alpha=1.5; it is more than 0 and at most 1."),
        ("weighted", math.nan, MethodError, "alpha=nan; it is more than 0 and at most 1."),
    ],
)
def test_unknown_aggregations_and_wrong_alphas_are_refused(
    name: str, alpha: float | None, error: type[Exception], text: str
) -> None:
    with pytest.raises(error) as caught:
        aggregation(name, alpha=alpha)
    assert text in str(caught.value)


def test_feedback_needs_vectors_and_a_gallery() -> None:
    with pytest.raises(MethodError, match="a method without weights has none"):
        aggregate_scores(aggregation("feedback"), np.zeros((1, 1)), [1])
    with pytest.raises(MethodError, match="feedback searches the gallery at every turn"):
        aggregate(aggregation("feedback"), made(0, 1), [1])


def test_a_rank_file_says_which_it_was() -> None:
    assert [aggregation(name).text for name in AGGREGATIONS] == [
        "latest",
        "average",
        "weighted (alpha 0.8)",
        "feedback (0.08 selected, -0.29 rejected, 0.44 words, 10 shown)",
    ]
