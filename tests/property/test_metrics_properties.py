"""What holds of every metric, or of one, whatever the rankings: each property by its name."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from metrics_worlds import GALLERY, KS, best_ranks, evaluated, is_single, queries, rows_of, sessions

from cir_metrics import evaluate_multi_turn, evaluate_single_turn, measures
from cir_metrics import evaluation as coding
from cir_metrics.catalogue import METRICS
from cir_metrics.ranking import target_ranks, top_k

COMPUTATIONS = [(name, variant) for name, entry in METRICS.items() for variant in entry.variants]
BOUNDED = [(name, variant) for name, variant in COMPUTATIONS if name != "mean_rank"]


def same(one: dict[str, float], two: dict[str, float]) -> None:
    assert one == pytest.approx(two, abs=1e-12, rel=0)


def renamed(value: Any, names: dict[str, str]) -> Any:
    """The same lists and dicts with other image ids."""
    if isinstance(value, str):
        return names[value]
    if isinstance(value, dict):
        return {key: renamed(each, names) for key, each in value.items()}
    return [renamed(each, names) for each in value]


# --- what must not matter ---


@pytest.mark.parametrize(("name", "variant"), COMPUTATIONS)
@given(data=st.data())
def test_order_of_queries_never_matters(name: str, variant: str, data: st.DataObject) -> None:
    rows = data.draw(rows_of(name))
    shuffled = data.draw(st.permutations(rows))
    same(evaluated(name, rows, KS, variant), evaluated(name, shuffled, KS, variant))


@pytest.mark.parametrize(("name", "variant"), COMPUTATIONS)
@given(data=st.data())
def test_names_of_images_never_matter(name: str, variant: str, data: st.DataObject) -> None:
    rows = data.draw(rows_of(name))
    names = dict(
        zip(GALLERY, data.draw(st.permutations([f"x/{image}.png" for image in GALLERY])), strict=True)
    )
    same(evaluated(name, rows, KS, variant), evaluated(name, renamed(rows, names), KS, variant))


@pytest.mark.parametrize(("name", "variant"), BOUNDED)
@given(data=st.data(), k=st.sampled_from(KS))
def test_what_stands_behind_k_never_matters(name: str, variant: str, data: st.DataObject, k: int) -> None:
    rows = data.draw(rows_of(name))

    def longer(ranking: list[str], allowed: list[str]) -> list[str]:
        """The first k images, and behind them any others."""
        tail = [image for image in allowed if image not in ranking[:k]]
        more = data.draw(st.permutations(tail)) if tail else []
        return [*ranking[:k], *(more if len(ranking) >= k else [])]

    changed = []
    for row in rows:
        reference = row["reference"]
        allowed = [image for image in reference.get("subset", GALLERY) if image != reference.get("reference")]
        turns = [row["prediction"]] if is_single(name) else row["prediction"]
        new = [longer(ranking, allowed) for ranking in turns]
        changed.append({"prediction": new[0] if is_single(name) else new, "reference": reference})
    same(evaluated(name, rows, (k,), variant), evaluated(name, changed, (k,), variant))


@given(
    scores=st.lists(st.lists(st.integers(-3, 3), min_size=9, max_size=9), min_size=1, max_size=6),
    order=st.permutations(range(9)),
    data=st.data(),
)
def test_order_of_the_gallery_never_matters(scores: Any, order: list[int], data: st.DataObject) -> None:
    matrix = np.array(scores, dtype=np.float64)
    columns = data.draw(st.lists(st.integers(0, 8), min_size=len(matrix), max_size=len(matrix)))
    targets = np.array(columns)
    moved = np.argsort(order)[targets]
    ranks, again = target_ranks(matrix, targets), target_ranks(matrix[:, order], moved)
    assert ranks.tolist() == again.tolist()
    for k in (1, 3, 9):
        assert measures.recall_at_k(ranks, k) == measures.recall_at_k(again, k)


@given(
    scores=st.lists(st.permutations(range(9)), min_size=1, max_size=6),
    order=st.permutations(range(9)),
    k=st.sampled_from((1, 3, 9)),
)
def test_order_of_the_gallery_never_matters_to_top_k(scores: Any, order: list[int], k: int) -> None:
    # Distinct scores: among equals top_k takes the first of the gallery, and ranks count them as lost.
    matrix = np.array(scores, dtype=np.float64)
    ids = [f"image_{number}" for number in range(9)]
    assert top_k(matrix, ids, k) == top_k(matrix[:, order], [ids[column] for column in order], k)


# --- bounds ---


@pytest.mark.parametrize(("name", "variant"), BOUNDED)
@given(data=st.data())
def test_values_lie_within_their_range(name: str, variant: str, data: st.DataObject) -> None:
    values = evaluated(name, data.draw(rows_of(name)), KS, variant).values()
    assert all(0 <= value <= 1 + 1e-12 for value in values) or variant == "released_code"
    assert all(0 <= value < 2 for value in values)


@given(data=st.data())
def test_mean_rank_lies_between_one_and_the_longest_list_plus_one(data: st.DataObject) -> None:
    rows = data.draw(rows_of("mean_rank"))
    values = evaluated("mean_rank", rows, ())
    longest = max(len(row["prediction"]) for row in rows)
    assert 1 <= values["mean_rank"] <= longest + 1
    assert 1 <= values["median_rank"] <= longest + 1
    assert 0 <= values["censored"] <= len(rows)


@given(st.lists(queries(), min_size=1, max_size=8))
def test_perfect_rankings_score_one(rows: Any) -> None:
    perfect = [{**row, "prediction": row["reference"]["positives"]} for row in rows]
    assert evaluated("recall_at_k", perfect, (1,)) == {"recall@1": 1.0}
    assert evaluated("mean_rank", perfect, ()) == {"mean_rank": 1.0, "median_rank": 1.0, "censored": 0}
    same(evaluated("map_at_k", perfect, (5,)), {"map@5": 1.0})
    same(evaluated("pnr_map", perfect, (5,)), {"pnr_map@5": 1.0})


@pytest.mark.parametrize("n_gallery", [2, 10, 100])
def test_a_constant_scorer_wins_nothing(n_gallery: int) -> None:
    scores, n = np.full((20, n_gallery), 0.5), np.arange(20) % n_gallery
    ranks = target_ranks(scores, n)
    assert ranks.tolist() == [n_gallery] * 20
    table = ranks[:, None].repeat(3, axis=1)
    turns = np.full(20, 3)
    k = n_gallery - 1
    assert measures.recall_at_k(ranks, k) == measures.recall_subset(ranks, k) == 0.0
    assert measures.map_subset(ranks, k) == 0.0
    assert measures.final_recall(table, turns, k) == measures.hits_auc(table, turns, k) == 0.0
    assert measures.final_mrr(table, turns, k) == 0.0
    assert measures.hits_at_k(table, turns, k).tolist() == [0.0] * 3
    assert measures.mean_rank(ranks) == measures.median_rank(ranks) == n_gallery


# --- better rankings, better values ---


def swapped(ranking: list[str], better: int, positives: list[str]) -> list[str]:
    """The ranking with the positive at place `better + 1` moved up by one place."""
    assert ranking[better + 1] in positives
    moved = list(ranking)
    moved[better], moved[better + 1] = moved[better + 1], moved[better]
    return moved


def a_positive_that_can_move_up(data: st.DataObject, ranking: list[str], positives: list[str]) -> int | None:
    places = [
        place
        for place in range(len(ranking) - 1)
        if ranking[place + 1] in positives and ranking[place] not in positives
    ]
    return data.draw(st.sampled_from(places)) if places else None


@given(row=queries(), data=st.data())
def test_moving_a_positive_up_never_lowers_recall_or_map(row: Any, data: st.DataObject) -> None:
    ranking, positives = row["prediction"], row["reference"]["positives"]
    place = a_positive_that_can_move_up(data, ranking, positives)
    if place is None:
        return
    better = {**row, "prediction": swapped(ranking, place, positives)}
    for name in ("recall_at_k", "map_at_k"):
        before, after = evaluated(name, [row], KS), evaluated(name, [better], KS)
        assert all(after[printed] >= before[printed] - 1e-12 for printed in before)
    assert evaluated("mean_rank", [better], ())["mean_rank"] <= evaluated("mean_rank", [row], ())["mean_rank"]


@pytest.mark.parametrize("name", ["recall_subset", "map_subset"])
@given(data=st.data())
def test_moving_the_target_up_never_lowers_the_metrics_of_the_subset(name: str, data: st.DataObject) -> None:
    (row,) = data.draw(rows_of(name).map(lambda rows: rows[:1]))
    place = a_positive_that_can_move_up(data, row["prediction"], [row["reference"]["target"]])
    if place is None:
        return
    better = {**row, "prediction": swapped(row["prediction"], place, [row["reference"]["target"]])}
    before, after = evaluated(name, [row], KS), evaluated(name, [better], KS)
    assert all(after[printed] >= before[printed] for printed in before)


@given(row=sessions(), data=st.data())
def test_moving_a_positive_up_at_a_turn_never_lowers_hits(row: Any, data: st.DataObject) -> None:
    turn = data.draw(st.integers(0, len(row["prediction"]) - 1))
    positives = row["reference"]["positives"]
    place = a_positive_that_can_move_up(data, row["prediction"][turn], positives)
    if place is None:
        return
    turns = list(row["prediction"])
    turns[turn] = swapped(turns[turn], place, positives)
    for name in ("hits_at_k", "hits_auc", "final_recall", "final_mrr"):
        before, after = evaluated(name, [row], KS), evaluated(name, [{**row, "prediction": turns}], KS)
        assert all(after[printed] >= before[printed] - 1e-12 for printed in before)


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


# --- how the metrics stand to each other ---


@given(row=queries(), k=st.sampled_from(KS))
def test_pnr_map_never_exceeds_map(row: Any, k: int) -> None:
    pnr, plain = evaluated("pnr_map", [row], (k,)), evaluated("map_at_k", [row], (k,))
    assert pnr[f"pnr_map@{k}"] <= plain[f"map@{k}"] + 1e-12


@given(row=queries(), k=st.sampled_from(KS))
def test_pnr_map_equals_map_exactly_when_no_hard_negative_stands_in_front(row: Any, k: int) -> None:
    ranking, reference = row["prediction"][:k], row["reference"]
    positives = [place for place, image in enumerate(ranking) if image in reference["positives"]]
    negatives = [place for place, image in enumerate(ranking) if image in reference["negatives"]]
    in_front = bool(positives and negatives and negatives[0] < positives[-1])
    pnr = evaluated("pnr_map", [row], (k,))[f"pnr_map@{k}"]
    plain = evaluated("map_at_k", [row], (k,))[f"map@{k}"]
    assert (pnr < plain - 1e-9) if in_front else (pnr == pytest.approx(plain, abs=1e-12))


@given(rows=st.lists(sessions(), min_size=1, max_size=8), k=st.sampled_from(KS))
def test_hits_never_fall_from_turn_to_turn(rows: Any, k: int) -> None:
    curve = list(evaluated("hits_at_k", rows, (k,)).values())
    assert curve == sorted(curve)


@given(rows=st.lists(sessions(), min_size=1, max_size=8), k=st.sampled_from(KS))
def test_auc_lies_between_hits_at_the_first_and_at_the_last_turn(rows: Any, k: int) -> None:
    curve = list(evaluated("hits_at_k", rows, (k,)).values())
    auc = evaluated("hits_auc", rows, (k,))[f"hits_auc@{k}"]
    assert curve[0] - 1e-12 <= auc <= curve[-1] + 1e-12


@given(rows=st.lists(sessions(), min_size=1, max_size=8), k=st.sampled_from(KS))
def test_final_recall_never_exceeds_hits_at_the_last_turn(rows: Any, k: int) -> None:
    last = list(evaluated("hits_at_k", rows, (k,)).values())[-1]
    assert evaluated("final_recall", rows, (k,))[f"final_recall@{k}"] <= last + 1e-12


GROWING = ["recall_at_k", "recall_subset", "map_subset", "final_recall", "final_mrr", "hits_auc"]


@given(rows=st.lists(sessions(), min_size=1, max_size=8), k=st.sampled_from(KS))
def test_final_mrr_lies_between_recall_at_one_and_recall_at_k(rows: Any, k: int) -> None:
    recalls = evaluated("final_recall", rows, (1, k))
    value = evaluated("final_mrr", rows, (k,))[f"final_mrr@{k}"]
    assert recalls["final_recall@1"] - 1e-12 <= value <= recalls[f"final_recall@{k}"] + 1e-12
    # Whoever is found within K, and not first, counts one half at most and 1/K at least.
    later = recalls[f"final_recall@{k}"] - recalls["final_recall@1"]
    assert later / k - 1e-12 <= value - recalls["final_recall@1"] <= later / 2 + 1e-12


@given(rows=st.lists(sessions(), min_size=1, max_size=8), k=st.sampled_from(KS))
def test_the_cut_takes_less_than_one_kth_from_final_mrr(rows: Any, k: int) -> None:
    values = evaluated("final_mrr", rows, (k, len(GALLERY)))
    assert 0 <= values[f"final_mrr@{len(GALLERY)}"] - values[f"final_mrr@{k}"] < 1 / k


@pytest.mark.parametrize("name", GROWING)
@given(data=st.data())
def test_a_larger_k_never_lowers_the_value(name: str, data: st.DataObject) -> None:
    values = list(evaluated(name, data.draw(rows_of(name)), KS).values())
    assert all(left <= right + 1e-12 for left, right in pairwise(values))


@given(data=st.data())
def test_map_subset_is_map_with_the_target_as_only_positive(data: st.DataObject) -> None:
    rows = data.draw(rows_of("map_subset"))
    plain = [
        {"prediction": row["prediction"], "reference": {"positives": [row["reference"]["target"]]}}
        for row in rows
    ]
    ours = evaluated("map_subset", rows, KS)
    assert list(ours.values()) == pytest.approx(list(evaluated("map_at_k", plain, KS).values()), abs=1e-12)
    assert ours["map_subset@1"] == evaluated("recall_subset", rows, KS)["recall_subset@1"]


# --- edges ---


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


@given(row=queries(), k=st.sampled_from(KS))
def test_pnr_map_is_map_where_there_are_no_hard_negatives(row: Any, k: int) -> None:
    row = {**row, "reference": {**row["reference"], "negatives": []}}
    pnr, plain = evaluated("pnr_map", [row], (k,)), evaluated("map_at_k", [row], (k,))
    assert pnr[f"pnr_map@{k}"] == pytest.approx(plain[f"map@{k}"], abs=1e-12)


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


@pytest.mark.parametrize(("name", "variant"), BOUNDED)
@given(data=st.data())
def test_an_absent_target_scores_nothing(name: str, variant: str, data: st.DataObject) -> None:
    rows = data.draw(rows_of(name))

    def without(ranking: list[str], reference: dict[str, Any]) -> list[str]:
        relevant = reference.get("positives", [reference.get("target")])
        return [image for image in ranking if image not in relevant] or ["elsewhere"]

    lost = []
    for row in rows:
        reference, prediction = row["reference"], row["prediction"]
        if METRICS[name].reads_subset:
            other = [x for x in reference["subset"] if x not in (reference["target"], reference["reference"])]
            lost.append({"prediction": other, "reference": reference})
        elif is_single(name):
            lost.append({"prediction": without(prediction, reference), "reference": reference})
        else:
            turns = [without(ranking, reference) for ranking in prediction]
            lost.append({"prediction": turns, "reference": reference})
    assert set(evaluated(name, lost, KS, variant).values()) == {0.0}


def test_an_absent_target_has_no_rank_of_its_own() -> None:
    row = {"prediction": ["a", "b"], "reference": {"positives": ["z"]}}
    assert evaluated("mean_rank", [row], ()) == {"mean_rank": 3.0, "median_rank": 3.0, "censored": 1}
    assert best_ranks([["a", "b"]], [["z"]], 2).tolist() == [coding.UNLISTED]
