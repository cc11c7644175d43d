"""trec_eval agrees where it defines the same thing, and differs where the cards say it does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import pytrec_eval
from metric_rows import evaluated, random_rows, results_of

RUNS = 5000
KS = (1, 3, 5, 10, 30)
Row = dict[str, Any]


def relevant_ids(rows: Sequence[Row], single: bool) -> list[list[str]]:
    return [[row["reference"]["target"]] if single else row["reference"]["positives"] for row in rows]


def trec(
    rows: Sequence[Row], relevant: Sequence[Sequence[str]], measures: set[str]
) -> list[dict[str, float]]:
    """trec_eval's values, one dict a query; every query a run of its own length."""
    qrel = {str(query): dict.fromkeys(ids, 1) for query, ids in enumerate(relevant)}
    run = {
        str(query): {image: float(-place) for place, image in enumerate(row["prediction"])}
        for query, row in enumerate(rows)
    }
    values = pytrec_eval.RelevanceEvaluator(qrel, measures).evaluate(run)
    return [values[str(query)] for query in range(len(rows))]


def column(values: Sequence[dict[str, float]], name: str) -> list[float]:
    return [each[name] for each in values]


def cut(name: str) -> str:
    return f"{name}.{','.join(map(str, KS))}"


@pytest.mark.parametrize("name", ["recall_at_k", "recall_subset"])
def test_recall_equals_the_success_of_trec_eval(name: str) -> None:
    rows = random_rows(name, RUNS, seed=1)
    theirs = trec(rows, relevant_ids(rows, single=True), {cut("success")})
    results = results_of(name, rows, KS)
    for k, ours in zip(KS, results.per_query.values(), strict=True):
        assert ours.tolist() == column(theirs, f"success_{k}")
        assert list(results.values.values())[KS.index(k)] == pytest.approx(
            np.mean(column(theirs, f"success_{k}")), abs=1e-12
        )


def test_hits_at_the_first_turn_and_final_recall_are_success_of_the_best_target() -> None:
    rows = random_rows("hits_at_k", RUNS, seed=2)
    for place, name, suffix in ((0, "hits_at_k", "@turn1"), (-1, "final_recall", "")):
        own = [{"prediction": row["prediction"][place], "reference": row["reference"]} for row in rows]
        theirs = trec(own, relevant_ids(own, single=False), {cut("success")})
        results = results_of(name, rows, KS)
        for k in KS:
            (printed,) = [each for each in results.per_query if each.endswith(f"@{k}{suffix}")]
            assert results.per_query[printed].tolist() == column(theirs, f"success_{k}")


def test_reciprocals_of_our_ranks_are_trec_evals() -> None:
    rows = random_rows("mean_rank", RUNS, seed=3)
    theirs = column(trec(rows, relevant_ids(rows, single=False), {"recip_rank"}), "recip_rank")
    results = results_of("mean_rank", rows, ())
    listed = results.per_query["censored"] == 0
    ours = np.where(listed, 1 / results.per_query["mean_rank"], 0.0)
    assert ours.tolist() == pytest.approx(theirs, abs=1e-12)
    assert 0 < listed.sum() < RUNS


def test_final_mrr_is_the_reciprocal_rank_of_the_last_turn_cut_to_k() -> None:
    rows = random_rows("final_mrr", RUNS, seed=8)
    results = results_of("final_mrr", rows, KS)
    for k in KS:
        cut_rows = [{"prediction": row["prediction"][-1][:k], "reference": row["reference"]} for row in rows]
        theirs = column(trec(cut_rows, relevant_ids(cut_rows, single=False), {"recip_rank"}), "recip_rank")
        assert results.per_query[f"final_mrr@{k}"].tolist() == pytest.approx(theirs, abs=1e-12)


def test_map_subset_is_the_reciprocal_rank_once_k_reaches_the_subset() -> None:
    rows = random_rows("map_subset", RUNS, seed=4)
    theirs = trec(rows, relevant_ids(rows, single=True), {"recip_rank", cut("map_cut")})
    results = results_of("map_subset", rows, KS)
    for k in KS:
        ours = results.per_query[f"map_subset@{k}"].tolist()
        assert ours == pytest.approx(column(theirs, f"map_cut_{k}"), abs=1e-12)
    assert results.per_query["map_subset@5"].tolist() == pytest.approx(
        column(theirs, "recip_rank"), abs=1e-12
    )


def test_map_agrees_wherever_k_reaches_the_number_of_positives() -> None:
    rows = random_rows("map_at_k", RUNS, seed=5)
    theirs = trec(rows, relevant_ids(rows, single=False), {cut("map_cut")})
    results = results_of("map_at_k", rows, KS)
    counts = np.array([len(row["reference"]["positives"]) for row in rows])
    for k in KS:
        ours, other = results.per_query[f"map@{k}"], np.array(column(theirs, f"map_cut_{k}"))
        reached = counts <= k
        assert reached.sum() > RUNS // 20
        assert ours[reached].tolist() == pytest.approx(other[reached].tolist(), abs=1e-12)
        # With more positives than K trec_eval divides by all of them.
        assert (ours * np.minimum(counts, k)).tolist() == pytest.approx((other * counts).tolist(), abs=1e-10)
    assert (counts > 3).any()


def test_map_of_one_positive_agrees_at_every_k() -> None:
    rows = random_rows("map_at_k", RUNS, seed=6)
    rows = [
        {**row, "reference": {"positives": row["reference"]["positives"][:1], "negatives": []}}
        for row in rows
    ]
    theirs = trec(rows, relevant_ids(rows, single=False), {cut("map_cut")})
    for name, printed in (("map_at_k", "map"), ("pnr_map", "pnr_map")):
        results = results_of(name, rows, KS)
        for k in KS:
            ours = results.per_query[f"{printed}@{k}"].tolist()
            assert ours == pytest.approx(column(theirs, f"map_cut_{k}"), abs=1e-12)


def test_trec_evals_own_recall_is_another_measure() -> None:
    rows = [{"prediction": ["a", "b"], "reference": {"target": "a", "positives": ["a", "z"]}}]
    assert evaluated("recall_at_k", rows, (1,)) == {"recall@1": 1.0}
    assert column(trec(rows, relevant_ids(rows, single=False), {"recall.1"}), "recall_1") == [0.5]
