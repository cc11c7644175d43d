"""What a slow reading of the formulas (`test_metrics_twins`) does not decide: names of images, and edges."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from metric_rows import GALLERY, KS, best_ranks, evaluated, queries, rows_of, sessions

from cir_metrics import evaluate_multi_turn, evaluate_single_turn
from cir_metrics import evaluation as coding
from cir_metrics.catalogue import METRICS

COMPUTATIONS = [(name, variant) for name, entry in METRICS.items() for variant in entry.variants]


def same(one: dict[str, float], two: dict[str, float]) -> None:
    assert one == pytest.approx(two, abs=1e-12, rel=0)


def renamed(value: Any, names: dict[str, str]) -> Any:
    """The same lists and dicts with other image ids."""
    if isinstance(value, str):
        return names[value]
    if isinstance(value, dict):
        return {key: renamed(each, names) for key, each in value.items()}
    return [renamed(each, names) for each in value]


@pytest.mark.parametrize(("name", "variant"), COMPUTATIONS)
@given(data=st.data())
def test_names_of_images_never_matter(name: str, variant: str, data: st.DataObject) -> None:
    rows = data.draw(rows_of(name))
    names = dict(
        zip(GALLERY, data.draw(st.permutations([f"x/{image}.png" for image in GALLERY])), strict=True)
    )
    same(evaluated(name, rows, KS, variant), evaluated(name, renamed(rows, names), KS, variant))


@pytest.mark.parametrize(("string", "value"), [("NPNP", 1 / 4), ("NPPN", 17 / 72)])
def test_moving_a_positive_up_can_lower_pnr_map(string: str, value: float) -> None:
    # The second P of NPNP moves up by one place, and the value falls from 0.25 to 0.2361.
    ranking = [f"{letter}{place}" for place, letter in enumerate(string)]
    positives = [image for image in ranking if image[0] == "P"]
    negatives = [image for image in ranking if image[0] == "N"]
    reference = {"positives": positives, "negatives": negatives}
    row = {"prediction": ranking, "reference": reference}
    same(evaluated("pnr_map", [row], (4,)), {"pnr_map@4": value})
    # mAP, which sees no hard negatives, rises.
    same(evaluated("map_at_k", [row], (4,)), {"map@4": {"NPNP": 1 / 2, "NPPN": 7 / 12}[string]})


@given(st.lists(queries(), min_size=1, max_size=8))
def test_an_empty_ranking_is_a_miss(rows: Any) -> None:
    lists = [[], *(row["prediction"] for row in rows)]
    references = [rows[0]["reference"], *(row["reference"] for row in rows)]
    results = evaluate_single_turn(["recall@10", "map@10", "pnr_map@10", "mean_rank"], lists, references)
    for name in ("recall@10", "map@10", "pnr_map@10"):
        assert results.per_query[name][0] == 0
    assert results.per_query["mean_rank"][0] == max(map(len, lists)) + 1
    assert results.per_query["censored"][0] == 1


def test_an_empty_ranking_of_a_subset_or_a_turn_is_a_miss() -> None:
    reference = {"target": "b", "reference": "a", "subset": ["a", "b", "c"]}
    names = ["recall_subset@3", "map_subset@3"]
    results = evaluate_single_turn(names, None, [reference] * 2, subset_rankings=[[], ["b"]])
    assert results.values == {"recall_subset@3": 0.5, "map_subset@3": 0.5}
    results = evaluate_multi_turn(["hits@1", "final_recall@1"], [[["b"], []]], [{"positives": ["b"]}])
    assert results.values == {"hits@1@turn1": 1.0, "hits@1@turn2": 1.0, "final_recall@1": 0.0}


def test_a_ranking_shorter_than_k_is_divided_as_a_whole_one() -> None:
    # Nothing stands behind the end of a list; the divisor is min(|G|, K) all the same.
    row = {
        "prediction": ["n", "p1"],
        "reference": {"target": "p2", "positives": ["p1", "p2"], "negatives": ["n"]},
    }
    assert evaluated("map_at_k", [row], (50,)) == {"map@50": 1 / 4}
    assert evaluated("pnr_map", [row], (50,)) == {"pnr_map@50": 1 / 8}
    assert evaluated("recall_at_k", [row], (50,)) == {"recall@50": 0.0}
    assert evaluated("mean_rank", [row], ()) == {"mean_rank": 2.0, "median_rank": 2.0, "censored": 0}


def test_average_precision_divides_by_k_where_positives_are_more() -> None:
    positives = ["p1", "p2", "p3", "p4", "p5"]
    row = {"prediction": positives, "reference": {"positives": positives, "negatives": []}}
    same(evaluated("map_at_k", [row], (1, 3, 5)), {"map@1": 1.0, "map@3": 1.0, "map@5": 1.0})
    late = {**row, "prediction": ["x", "p1", "p2"]}
    # (1/2 + 2/3) / min(5, 3)
    same(evaluated("map_at_k", [late], (3,)), {"map@3": 7 / 18})
    same(evaluated("pnr_map", [late], (3,)), {"pnr_map@3": 7 / 18})


@given(rows=st.lists(sessions(), min_size=1, max_size=8), k=st.sampled_from(KS))
def test_the_area_over_one_turn_is_the_hits_at_that_turn(rows: Any, k: int) -> None:
    # L_max = 1: Eq. 13 divides by zero, and the area is Hits@K(1) by our definition.
    rows = [{**row, "prediction": row["prediction"][:1]} for row in rows]
    hits = evaluated("hits_at_k", rows, (k,))
    assert list(hits) == [f"hits@{k}@turn1"]
    assert evaluated("hits_auc", rows, (k,))[f"hits_auc@{k}"] == pytest.approx(
        hits[f"hits@{k}@turn1"], abs=1e-12
    )
    assert evaluated("final_recall", rows, (k,))[f"final_recall@{k}"] == hits[f"hits@{k}@turn1"]


def test_an_absent_target_has_no_rank_of_its_own() -> None:
    row = {"prediction": ["a", "b"], "reference": {"positives": ["z"]}}
    assert evaluated("mean_rank", [row], ()) == {"mean_rank": 3.0, "median_rank": 3.0, "censored": 1}
    assert best_ranks([["a", "b"]], [["z"]], 2).tolist() == [coding.UNLISTED]
