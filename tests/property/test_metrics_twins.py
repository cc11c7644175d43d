"""Every metric equals a slow reading of its formula, written here in plain Python from the papers."""

from __future__ import annotations

import string
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cir_metrics import kernels, measures
from cir_metrics.evaluation import evaluate_multi_turn, evaluate_single_turn

GALLERY = list(string.ascii_lowercase[:14])
KS = (1, 2, 3, 5, 10, 50)


# --- the formulas, one query at a time, in fractions ---


def rank_of(target: str, ranking: list[str]) -> int | None:
    return ranking.index(target) + 1 if target in ranking else None


def recall_twin(ranking: list[str], target: str, k: int) -> Fraction:
    rank = rank_of(target, ranking)
    return Fraction(int(rank is not None and rank <= k))


def ap_twin(ranking: list[str], positives: set[str], k: int) -> Fraction:
    total = Fraction(0)
    for j in range(1, min(k, len(ranking)) + 1):
        if ranking[j - 1] in positives:
            total += Fraction(sum(image in positives for image in ranking[:j]), j)
    return total / min(len(positives), k)


def pnr_twin(ranking: list[str], positives: set[str], negatives: set[str], k: int, variant: str) -> Fraction:
    total = Fraction(0)
    for j in range(1, min(k, len(ranking)) + 1):
        if ranking[j - 1] not in positives:
            continue
        precision = Fraction(sum(image in positives for image in ranking[:j]), j)
        before = [x for x in range(1, j) if ranking[x - 1] in negatives]
        if variant == "equation":
            weight = sum(Fraction(x, j) for x in before) / len(before) if before else Fraction(1)
        elif j == 1:
            weight = Fraction(0)
        else:
            weight = 1 + (
                sum(Fraction(x - 1, j - 1) for x in before) / len(before) if before else Fraction(0)
            )
        total += weight * precision
    return total / min(len(positives), k)


def best_rank(ranking: list[str], positives: set[str]) -> int | None:
    ranks = [rank for rank in (rank_of(positive, ranking) for positive in positives) if rank is not None]
    return min(ranks) if ranks else None


def hit(ranking: list[str], positives: set[str], k: int) -> bool:
    rank = best_rank(ranking, positives)
    return rank is not None and rank <= k


def hits_twin(sessions: list[list[list[str]]], positives: list[set[str]], k: int, turn: int) -> Fraction:
    found = 0
    for session, ids in zip(sessions, positives, strict=True):
        last = min(turn, len(session))
        found += max(hit(session[index], ids, k) for index in range(last))
    return Fraction(found, len(sessions))


def auc_twin(sessions: list[list[list[str]]], positives: list[set[str]], k: int) -> Fraction:
    longest = max(len(session) for session in sessions)
    curve = [hits_twin(sessions, positives, k, turn) for turn in range(1, longest + 1)]
    if longest == 1:
        return curve[0]
    area = Fraction(0)
    for left, right in pairwise(curve):
        area += (left + right) / 2
    return area / (longest - 1)


def rank_twin(ranking: list[str], positives: set[str]) -> tuple[int, bool]:
    rank = best_rank(ranking, positives)
    return (len(ranking) + 1, True) if rank is None else (rank, False)


def median_twin(values: list[int]) -> Fraction:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return (
        Fraction(ordered[middle]) if len(ordered) % 2 else Fraction(ordered[middle - 1] + ordered[middle], 2)
    )


def mean(values: list[Fraction]) -> float:
    return float(sum(values, Fraction(0)) / len(values))


# --- random input ---


@st.composite
def rankings(draw: st.DrawFn) -> list[str]:
    shuffled = draw(st.permutations(GALLERY))
    return list(shuffled[: draw(st.integers(1, len(GALLERY)))])


@st.composite
def queries(draw: st.DrawFn) -> dict[str, Any]:
    shuffled = draw(st.permutations(GALLERY))
    n_positives = draw(st.integers(1, 6))
    n_negatives = draw(st.integers(0, 6))
    positives = list(shuffled[:n_positives])
    return {
        "ranking": draw(rankings()),
        "target": positives[0],
        "positives": positives,
        "negatives": list(shuffled[n_positives : n_positives + n_negatives]),
    }


@st.composite
def subset_queries(draw: st.DrawFn) -> dict[str, Any]:
    subset = list(draw(st.permutations(GALLERY))[:6])
    others = list(draw(st.permutations(subset[1:])))
    return {
        "ranking": others[: draw(st.integers(1, 5))],
        "target": draw(st.sampled_from(subset[1:])),
        "reference": subset[0],
        "subset": sorted(subset),
    }


@st.composite
def sessions(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "turns": draw(st.lists(rankings(), min_size=1, max_size=6)),
        "positives": draw(st.lists(st.sampled_from(GALLERY), min_size=1, max_size=3, unique=True)),
    }


def pick(rows: list[dict[str, Any]], *fields: str) -> list[dict[str, Any]]:
    return [{field: row[field] for field in fields} for row in rows]


# --- comparisons ---

several = {"min_size": 1, "max_size": 8}


def close(actual: float, expected: float) -> None:
    assert actual == pytest.approx(expected, abs=1e-12, rel=0)


@given(st.lists(queries(), **several))
def test_recall_at_k(rows: list[dict[str, Any]]) -> None:
    lists = [row["ranking"] for row in rows]
    results = evaluate_single_turn([f"recall@{k}" for k in KS], lists, pick(rows, "target"))
    for k in KS:
        expected = [recall_twin(row["ranking"], row["target"], k) for row in rows]
        close(results.values[f"recall@{k}"], mean(expected))
        assert results.per_query[f"recall@{k}"].tolist() == [float(each) for each in expected]


@given(st.lists(subset_queries(), **several))
def test_recall_subset(rows: list[dict[str, Any]]) -> None:
    lists = [row["ranking"] for row in rows]
    references = pick(rows, "target", "reference", "subset")
    metrics = [f"recall_subset@{k}" for k in (1, 2, 3, 5)]
    results = evaluate_single_turn(metrics, None, references, subset_rankings=lists)
    for k in (1, 2, 3, 5):
        expected = [recall_twin(row["ranking"], row["target"], k) for row in rows]
        close(results.values[f"recall_subset@{k}"], mean(expected))


@given(st.lists(queries(), **several))
def test_map_at_k(rows: list[dict[str, Any]]) -> None:
    lists = [row["ranking"] for row in rows]
    results = evaluate_single_turn([f"map@{k}" for k in KS], lists, pick(rows, "positives"))
    for k in KS:
        expected = [ap_twin(row["ranking"], set(row["positives"]), k) for row in rows]
        close(results.values[f"map@{k}"], mean(expected))
        assert results.per_query[f"map@{k}"].tolist() == pytest.approx(
            [float(each) for each in expected], abs=1e-12
        )


@given(st.lists(queries(), **several), st.sampled_from(["equation", "released_code"]))
def test_pnr_map(rows: list[dict[str, Any]], variant: str) -> None:
    lists = [row["ranking"] for row in rows]
    references = pick(rows, "positives", "negatives")
    metrics = [f"pnr_map@{k}" for k in KS]
    results = evaluate_single_turn(metrics, lists, references, variants={"pnr_map": variant})
    for k in KS:
        expected = [
            pnr_twin(row["ranking"], set(row["positives"]), set(row["negatives"]), k, variant) for row in rows
        ]
        close(results.values[f"pnr_map@{k}"], mean(expected))


@given(st.lists(queries(), **several))
def test_mean_rank(rows: list[dict[str, Any]]) -> None:
    lists = [row["ranking"] for row in rows]
    results = evaluate_single_turn(["mean_rank"], lists, pick(rows, "positives"))
    expected = [rank_twin(row["ranking"], set(row["positives"])) for row in rows]
    ranks = [rank for rank, _ in expected]
    close(results.values["mean_rank"], mean([Fraction(rank) for rank in ranks]))
    close(results.values["median_rank"], float(median_twin(ranks)))
    assert results.values["censored"] == sum(unlisted for _, unlisted in expected)
    assert results.per_query["mean_rank"].tolist() == ranks


@given(st.lists(sessions(), **several))
def test_multi_turn_metrics(rows: list[dict[str, Any]]) -> None:
    turns = [row["turns"] for row in rows]
    positives = [set(row["positives"]) for row in rows]
    metrics = [f"{name}@{k}" for name in ("hits", "final_recall", "hits_auc") for k in KS]
    results = evaluate_multi_turn([*metrics, "mean_rank"], turns, pick(rows, "positives"))
    longest = max(len(session) for session in turns)
    for k in KS:
        for turn in range(1, longest + 1):
            close(results.values[f"hits@{k}@turn{turn}"], float(hits_twin(turns, positives, k, turn)))
        assert f"hits@{k}@turn{longest + 1}" not in results.values
        final = [
            Fraction(int(hit(session[-1], ids, k))) for session, ids in zip(turns, positives, strict=True)
        ]
        close(results.values[f"final_recall@{k}"], mean(final))
        close(results.values[f"hits_auc@{k}"], float(auc_twin(turns, positives, k)))
    last = [rank_twin(session[-1], ids) for session, ids in zip(turns, positives, strict=True)]
    close(results.values["mean_rank"], mean([Fraction(rank) for rank, _ in last]))
    assert results.values["censored"] == sum(unlisted for _, unlisted in last)


@given(st.lists(queries(), **several), st.sampled_from(KS))
def test_plain_functions_agree_with_evaluation(rows: list[dict[str, Any]], k: int) -> None:
    lists = [row["ranking"] for row in rows]
    references = pick(rows, "target", "positives", "negatives")
    metrics = [f"recall@{k}", f"map@{k}", f"pnr_map@{k}"]
    values = evaluate_single_turn(metrics, lists, references).values
    positive = kernels.encode(lists, [row["positives"] for row in rows], len(GALLERY))
    negative = kernels.encode(lists, [row["negatives"] for row in rows], len(GALLERY))
    ranks = kernels.first_ranks(kernels.encode(lists, [[row["target"]] for row in rows], len(GALLERY)))
    counts = np.array([len(row["positives"]) for row in rows])
    close(measures.recall_at_k(ranks, k), values[f"recall@{k}"])
    close(measures.map_at_k(positive, counts, k), values[f"map@{k}"])
    close(measures.pnr_map(positive, negative, counts, k), values[f"pnr_map@{k}"])


@given(st.lists(st.lists(st.integers(1, 30), min_size=1, max_size=6), **several), st.sampled_from(KS))
def test_plain_functions_of_sessions_read_nothing_behind_the_last_turn(
    table: list[list[int]], k: int
) -> None:
    num_turns = np.array([len(ranks) for ranks in table])
    padded = np.zeros((len(table), 7), dtype=np.int64)
    for row, ranks in zip(padded, table, strict=True):
        row[: len(ranks)] = ranks
    curve = measures.hits_at_k(padded, num_turns, k)
    assert len(curve) == num_turns.max()
    for turn, value in enumerate(curve, start=1):
        close(float(value), np.mean([min(ranks[:turn]) <= k for ranks in table]))
    close(measures.final_recall(padded, num_turns, k), np.mean([ranks[-1] <= k for ranks in table]))
    steps = len(curve) - 1
    area = sum((curve[i] + curve[i + 1]) / 2 for i in range(steps)) / steps if steps else curve[0]
    close(measures.hits_auc(padded, num_turns, k), float(area))


# --- properties ---


@given(queries(), st.sampled_from(KS))
def test_the_equation_never_exceeds_map_and_equals_it_without_hard_negatives(
    row: dict[str, Any], k: int
) -> None:
    metrics = [f"map@{k}", f"pnr_map@{k}"]
    with_negatives = evaluate_single_turn(
        metrics, [row["ranking"]], pick([row], "positives", "negatives")
    ).values
    assert 0 <= with_negatives[f"pnr_map@{k}"] <= with_negatives[f"map@{k}"] + 1e-12 <= 1 + 2e-12
    reference = {"positives": row["positives"], "negatives": []}
    without = evaluate_single_turn(metrics, [row["ranking"]], [reference]).values
    close(without[f"pnr_map@{k}"], without[f"map@{k}"])


@given(queries(), st.sampled_from(KS))
def test_released_code_stays_below_two(row: dict[str, Any], k: int) -> None:
    references = pick([row], "positives", "negatives")
    variants = {"pnr_map": "released_code"}
    value = evaluate_single_turn([f"pnr_map@{k}"], [row["ranking"]], references, variants=variants).values
    assert 0 <= value[f"pnr_map@{k}"] < 2


@given(st.lists(sessions(), **several), st.sampled_from(KS))
def test_hits_never_fall_and_auc_lies_between_first_and_last(rows: list[dict[str, Any]], k: int) -> None:
    turns = [row["turns"] for row in rows]
    values = evaluate_multi_turn([f"hits@{k}", f"hits_auc@{k}"], turns, pick(rows, "positives")).values
    curve = [value for name, value in values.items() if name.startswith("hits@")]
    assert curve == sorted(curve)
    assert curve[0] - 1e-12 <= values[f"hits_auc@{k}"] <= curve[-1] + 1e-12


@given(st.lists(queries(), **several), st.randoms(use_true_random=False))
def test_order_of_queries_never_matters(rows: list[dict[str, Any]], random: Any) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)
    metrics = ["recall@3", "map@5", "pnr_map@5", "mean_rank"]
    fields = ("target", "positives", "negatives")
    one = evaluate_single_turn(metrics, [row["ranking"] for row in rows], pick(rows, *fields)).values
    two = evaluate_single_turn(metrics, [row["ranking"] for row in shuffled], pick(shuffled, *fields)).values
    assert one == pytest.approx(two, abs=1e-12)


@given(st.lists(queries(), **several))
def test_perfect_rankings_score_one(rows: list[dict[str, Any]]) -> None:
    lists = [row["positives"] for row in rows]
    results = evaluate_single_turn(
        ["recall@1", "map@5", "pnr_map@5", "mean_rank"], lists, pick(rows, "target", "positives", "negatives")
    )
    assert results.values["recall@1"] == results.values["mean_rank"] == 1
    close(results.values["map@5"], 1.0)
    close(results.values["pnr_map@5"], 1.0)


@given(st.lists(queries(), **several))
def test_an_empty_ranking_is_a_miss(rows: list[dict[str, Any]]) -> None:
    lists = [[], *(row["ranking"] for row in rows)]
    references = pick([rows[0], *rows], "target", "positives", "negatives")
    results = evaluate_single_turn(["recall@10", "map@10", "pnr_map@10", "mean_rank"], lists, references)
    for name in ("recall@10", "map@10", "pnr_map@10"):
        assert results.per_query[name][0] == 0
    assert results.per_query["mean_rank"][0] == max(map(len, lists)) + 1
    assert results.per_query["censored"][0] == 1
