"""The random floor: closed forms against every possible order of a small gallery, counted with fractions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations, product

import benchmark_world as worlds
import numpy as np
import pytest

from cir_datasets.rows.benchmark import Benchmark
from submissions.report.grouping import Chance, chance

G = 7


def orders(n: int, h: int) -> Iterator[str]:
    """All orders of n positives, h hard negatives and the rest of G images, by kind; each is as likely."""
    for positives in combinations(range(G), n):
        for negatives in combinations([place for place in range(G) if place not in positives], h):
            yield "".join("P" if p in positives else "N" if p in negatives else "." for p in range(G))


def mean(of: Callable[[str], Fraction], n: int, h: int = 0) -> float:
    values = [of(order) for order in orders(n, h)]
    return float(sum(values, Fraction()) / len(values))


def average_precision(order: str, n: int, k: int, weigh: Callable[[str, int], Fraction]) -> Fraction:
    total = Fraction()
    for rank in range(1, min(k, G) + 1):
        if order[rank - 1] == "P":
            total += Fraction(order[:rank].count("P"), rank) * weigh(order, rank)
    return total / min(n, k)


def no_weight(order: str, rank: int) -> Fraction:
    return Fraction(1)


def equation(order: str, rank: int) -> Fraction:
    before = [place for place in range(1, rank) if order[place - 1] == "N"]
    return Fraction(sum(before), len(before) * rank) if before else Fraction(1)


def released_code(order: str, rank: int) -> Fraction:
    if rank == 1:
        return Fraction(0)
    before = [place for place in range(1, rank) if order[place - 1] == "N"]
    return (
        1 + Fraction(sum(place - 1 for place in before), len(before) * (rank - 1)) if before else Fraction(1)
    )


def ranker(n: int, h: int = 0, depth: int = 5, turns: int | None = None, others: int = 5) -> Chance:
    def one(value: int) -> np.ndarray:
        return np.array([value], dtype=np.int64)

    return Chance(G, depth, one(n), one(h), one(others), None if turns is None else one(turns))


def value(of: Chance, printed: str) -> float:
    values = of.values(printed)
    return float(values[0])


@pytest.mark.parametrize("k", [1, 2, 5, 7, 9])
@pytest.mark.parametrize(("n", "h"), [(1, 0), (1, 3), (2, 2), (3, 4), (7, 0), (1, 6)])
def test_the_floor_of_average_precision_equals_the_mean_over_all_orders(n: int, h: int, k: int) -> None:
    of = ranker(n, h)
    for metric, variant, weigh in (
        ("map", "", no_weight),
        ("pnr_map", "", equation),
        ("pnr_map", ":released_code", released_code),
    ):
        expected = mean(lambda order, w=weigh: average_precision(order, n, k, w), n, h)  # type: ignore[misc]
        assert value(of, f"{metric}@{k}{variant}") == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("k", [1, 3, 7, 20])
def test_the_floor_of_recall_and_mrr_equals_the_mean_over_all_orders(k: int) -> None:
    assert value(ranker(1), f"recall@{k}") == pytest.approx(min(k, G) / G)
    for n in (1, 2, 4):
        expected = mean(lambda order: Fraction(int("P" in order[:k])), n)
        assert value(ranker(n, turns=1), f"final_recall@{k}") == pytest.approx(expected, abs=1e-12)
        expected = mean(lambda order: Fraction("P" in order[:k], order.index("P") + 1), n)
        assert value(ranker(n, turns=1), f"final_mrr@{k}") == pytest.approx(expected, abs=1e-12)


def test_the_floor_of_the_mean_rank_equals_the_mean_over_all_orders() -> None:
    for n, depth in product((1, 2, 4), (3, 5, 7)):
        of = ranker(n, depth=depth)
        expected = mean(lambda order, d=depth: Fraction(min(order.index("P"), d) + 1), n)  # type: ignore[misc]
        assert value(of, "mean_rank") == pytest.approx(expected, abs=1e-12)
        missed = mean(lambda order, d=depth: Fraction(int("P" not in order[:d])), n)  # type: ignore[misc]
        assert value(of, "censored") == pytest.approx(missed, abs=1e-12)
        assert of.values("median_rank") is None


def test_chance_in_the_subset_is_k_of_five() -> None:
    of = ranker(1)
    assert [value(of, f"recall_subset@{k}") for k in (1, 2, 3, 5, 6)] == [0.2, 0.4, 0.6, 1.0, 1.0]
    assert value(of, "map_subset@3") == pytest.approx((1 + 1 / 2 + 1 / 3) / 5)


def test_hits_are_one_minus_all_misses_and_stand_still_behind_the_last_turn() -> None:
    p = 2 / G
    of = Chance(G, 5, np.array([1, 1]), np.array([0, 0]), np.array([0, 0]), np.array([3, 1]))
    assert of.hits(2).tolist() == [
        pytest.approx([p, 1 - (1 - p) ** 2, 1 - (1 - p) ** 3]),
        pytest.approx([p, p, p]),
    ]
    by_turn = [value(of, f"hits@2@turn{turn}") for turn in (1, 2, 3, 4)]
    assert by_turn == pytest.approx([p, 1 - (1 - p) ** 2, 1 - (1 - p) ** 3, 1 - (1 - p) ** 3])
    first, second, third = by_turn[:3]
    assert value(of, "hits_auc@2") == pytest.approx((first + 2 * second + third) / 4)


def test_the_gallery_is_what_the_protocol_ranks() -> None:
    removed, kept = chance(worlds.cirr()), chance(worlds.circo())
    assert (removed.images, kept.images) == (69, 60)
    assert removed.second_others.tolist() == [5] * 6
    assert kept.positives.tolist() == [3] * 4


def test_without_a_list_the_cards_count_is_taken_and_without_a_count_there_is_no_floor() -> None:
    unlisted = worlds.circo(gallery=None)
    counted = chance(unlisted)
    assert counted.images == 123403
    spec = unlisted.spec
    config = spec.config.model_copy(update={"gallery": None})
    card = spec.card.model_copy(update={"configs": {spec.config_name: config}})
    nothing = Benchmark.from_rows(type(spec)(card, spec.config_name), unlisted.rows(), None)
    assert chance(nothing) is None
