"""Malformed predictions and references: the message names position and value, and how to mend it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from says import refusal

import cir_metrics
from cir_metrics import evaluate_multi_turn, evaluate_single_turn
from cir_metrics.errors import CirError, InputError, UnknownNameError
from cir_metrics.ids import check_ids
from cir_metrics.inputs import check_reference, check_session
from cir_metrics.sums import check_cutoffs

QUERY = {
    "query_id": "12",
    "reference_image_id": "r",
    "captions": ["red"],
    "relative_caption": "red",
    "target_image_id": "a",
    "positive_image_ids": ["a", "b"],
    "negative_image_ids": ["n"],
    "subset_image_ids": ["r", "a", "c"],
    "aspects": [],
    "pairid": 12,
}
WITHHELD = {**QUERY, "target_image_id": None, "positive_image_ids": []}
SESSION = {"session_id": "s_1", "subset": "x", "ground_truth_ids": ["a"], "num_turns": 2, "turns": [{}, {}]}


def test_input_error_is_a_value_error_with_exit_code_1() -> None:
    assert issubclass(InputError, ValueError)
    assert issubclass(InputError, CirError)
    assert InputError.exit_code == 1


# --- references(rows) ---


def test_references_picks_the_fields_of_queries_and_sessions() -> None:
    assert cir_metrics.references([QUERY, SESSION]) == [
        {
            "target": "a",
            "reference": "r",
            "subset": ["r", "a", "c"],
            "positives": ["a", "b"],
            "negatives": ["n"],
        },
        {"positives": ["a"], "num_turns": 2},
    ]


def test_references_leaves_out_what_is_null_or_an_empty_subset() -> None:
    row = {**QUERY, "target_image_id": None, "subset_image_ids": []}
    assert cir_metrics.references([row]) == [{"reference": "r", "positives": ["a", "b"], "negatives": ["n"]}]


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (["a"], "rows[0] is ['a']; a row is a dict. Fix: pass the rows of a benchmark."),
        ({"image_id": "a"}, "rows[0] has none of 'target_image_id', 'reference_image_id', ... pass queries"),
        (WITHHELD, "rows[0] (query_id '12'): its ground truth is withheld. Fix: ask the publisher's server."),
    ],
)
def test_a_malformed_reference_is_refused_with_its_fix(row: Any, text: str) -> None:
    with refusal(text):
        cir_metrics.references([row])


# --- rankings ---


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "predictions[3] is None; a ranking is a list of image ids. Fix: pass a list of strings."),
        ("abc", "predictions[3] is 'abc'; a ranking is a list of image ids. Fix: pass a list of strings."),
        ({"a": 1}, "predictions[3] is {'a': 1} ... pass a list of strings"),
        (7, "predictions[3] is 7; a ranking is a list of image ids. Fix: pass a list of strings."),
        ([], "predictions[3] is an empty ranking. Fix: name at least one image."),
        (["a", None], "predictions[3][1] is None; an image id is a string. Fix: drop it."),
        (["a", 1.5], "predictions[3][1] is 1.5 ... write '1.5' if that is the id"),
        ([["a"]], "predictions[3][0] is ['a'] ... write \"['a']\" if that is the id"),
        ({"a", "b"}, "predictions[3] is a set, which has no order ... pass a list, in the order that is"),
        (frozenset("a"), "predictions[3] is a set, which has no order ... pass a list, in the order that is"),
        (["a", "b\ud800"], "predictions[3][1] is 'b\\ud800' ... write the id as it was before it was"),
        (["a", ""], "predictions[3][1] is an empty string, which is not an image id. Fix: name the image."),
        (["a", "b", "c", "b"], "predictions[3][3] is 'b', which stands at [1] already ... keep the first"),
    ],
)
def test_malformed_rankings_are_refused(value: Any, text: str) -> None:
    with refusal(text):
        check_ids(value, "predictions[3]", what="ranking")


@pytest.mark.parametrize("given", [{("a",)}, 7, "ab"])
@pytest.mark.parametrize("name", ["rankings", "references"])
def test_queries_are_a_list(name: str, given: Any) -> None:
    arguments = {"rankings": [["a"]], "references": [{"target": "a"}], name: given}
    said = "a set, which has no order" if isinstance(given, set) else repr(given)
    with pytest.raises(InputError, match=f"^{name} is {said}; it must be a list"):
        evaluate_single_turn(["recall@1"], **arguments)


def test_positives_have_no_order_so_that_a_set_will_do() -> None:
    checked = check_reference({"positives": {"a"}, "negatives": set()}, "references[0]", ["positives"])
    assert checked == {"positives": ["a"]}


def test_arrays_and_tuples_are_rankings_too() -> None:
    ids = check_ids(np.array(["b", "a"]), "predictions[0]", what="ranking")
    assert ids == ["b", "a"]
    assert {type(each) for each in ids} == {str}
    assert check_ids(("b", "a"), "predictions[0]", what="ranking") == ["b", "a"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "predictions[0] is None; a session is a list of rankings. Fix: give one ranking a turn."),
        ([], "predictions[0] has no turn. Fix: give one ranking a turn."),
        (["a", "b"], "predictions[0] is one ranking ... write a single turn as [ranking]"),
        ({("a",), ("b",)}, "predictions[0] is a set, which has no order ... pass a list, in the order that"),
        ([["a"], {"b"}], "predictions[0][1] is a set, which has no order ... pass a list, in the order that"),
        ([["a"], []], "predictions[0][1] is an empty ranking. Fix: name at least one image."),
        ([["a"], None], "predictions[0][1] is None ... pass a list of strings"),
        ([["a"], ["b", None]], "predictions[0][1][1] is None; an image id is a string. Fix: drop it."),
    ],
)
def test_malformed_sessions_are_refused(value: Any, text: str) -> None:
    with refusal(text):
        check_session(value, "predictions[0]", {}, allow_empty=False)


def test_each_turn_is_of_the_sessions_own_gallery() -> None:
    with refusal("predictions[0][1][0] is 'z' ... rank the images of its gallery_image_ids"):
        check_session([["a"], ["z"]], "predictions[0]", {"gallery": ["a", "b"]})


# --- references ---

SIGNED, SUBSET = ["positives", "negatives"], ["target", "reference", "subset"]


@pytest.mark.parametrize(
    ("value", "fields", "text"),
    [
        ("a", ["target"], "references[2] is 'a' ... take them from cir_metrics.references(rows)"),
        ({"targets": "a"}, ["target"], "references[2] has the unknown key 'targets' ... use 'target',"),
        ({"target": "a", "colour": "red"}, ["target"], "references[2] has the unknown key ... use 'target',"),
        ({"positives": ["a"]}, SIGNED, "references[2] lacks 'negatives'"),
        ({"target": None}, ["target"], "references[2]['target'] is None ... drop it"),
        ({"target": 5.0}, ["target"], "references[2]['target'] is 5.0 ... write '5' if that is the id"),
        ({"target": ""}, ["target"], "references[2]['target'] is an empty string ... name the image"),
        ({"target": "\ud800"}, ["target"], "references[2]['target'] is '\\ud800' ... write the id as it was"),
        ({"positives": []}, ["positives"], "references[2]['positives'] is an empty list"),
        ({"positives": "a"}, ["positives"], "references[2]['positives'] is 'a' ... pass a list of strings"),
        ({"positives": ["a", "a"]}, ["positives"], "references[2]['positives'][1] is 'a' ... keep the first"),
        ({"positives": ["a"], "negatives": None}, SIGNED, "references[2]['negatives'] is None ... pass"),
        ({"positives": ["a", "b"], "negatives": ["c", "b"]}, SIGNED, "references[2]: 'b' is both"),
        ({"target": "a", "reference": "r", "subset": ["a"]}, SUBSET, "references[2]: reference 'r' is not"),
        ({"target": "a", "reference": "r", "subset": ["r"]}, SUBSET, "references[2]: target 'a' is not"),
        ({"target": "r", "reference": "r", "subset": ["r"]}, SUBSET, "references[2]: 'r' is both target"),
        ({"positives": ["a"], "num_turns": 0}, ["positives"], "references[2]['num_turns']=0"),
        ({**QUERY, "target_image_id": None}, ["target"], "references[2] (query_id '12') ... use a metric"),
        ({**QUERY, "subset_image_ids": []}, ["subset"], "references[2] (query_id '12') ... use a metric"),
        (SESSION, ["target"], "references[2] (session_id 's_1') lacks 'target_image_id' ... pass a row of"),
        ({**SESSION, "ground_truth_ids": []}, ["positives"], "references[2]['ground_truth_ids'] is an empty"),
    ],
)
def test_malformed_references_are_refused(value: Any, fields: list[str], text: str) -> None:
    with refusal(text):
        check_reference(value, "references[2]", fields)


def test_a_reference_is_projected_to_what_the_metric_needs() -> None:
    assert check_reference(QUERY, "references[0]", ["positives"]) == {"positives": ["a", "b"]}
    assert check_reference(SESSION, "references[0]", ["positives"]) == {"positives": ["a"], "num_turns": 2}
    full = cir_metrics.references([QUERY])[0]
    assert check_reference(full, "references[0]", ["target"]) == {"target": "a"}


# --- cutoffs ---


@pytest.mark.parametrize(
    ("ks", "text"),
    [
        ((5, 0), "k=0; a cutoff is a whole number, 1 or more. Fix: pass k=10, say."),
        ([-1], "k=-1; a cutoff is a whole number, 1 or more. Fix: pass k=10, say."),
        ((2.0,), "k=2.0; a cutoff is a whole number, 1 or more. Fix: pass k=10, say."),
        ((True,), "k=True; a cutoff is a whole number, 1 or more. Fix: pass k=10, say."),
        (("5",), "k='5'; a cutoff is a whole number, 1 or more. Fix: pass k=10, say."),
        (5, "ks=5; give a tuple or list of cutoffs. Fix: pass ks=(5, 10), or ks=(5,) for one."),
        (None, "ks=None; give a tuple or list of cutoffs. Fix: pass ks=(5, 10), or ks=(5,) for one."),
        ("5", "ks='5'; give a tuple or list of cutoffs. Fix: pass ks=(5, 10), or ks=(5,) for one."),
        ((), "ks=() is empty. Fix: name at least one cutoff, such as ks=(5,)."),
    ],
)
def test_malformed_cutoffs_are_refused(ks: Any, text: str) -> None:
    with refusal(text):
        check_cutoffs(ks)


def test_cutoffs_keep_their_order_and_lose_repeats() -> None:
    assert check_cutoffs([10, np.int64(5), 10]) == (10, 5)


# --- evaluation ---


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((["recall@1"], [["a"]], []), "1 rankings but 0 references. Fix: give one a query."),
        ((["recall@1"], [], []), "rankings and references are empty: a mean over no queries"),
        (("recall@1", [["a"]], [QUERY]), "metrics='recall@1' is one name. Fix: pass a list, ['recall@1']."),
        (([], [["a"]], [QUERY]), "metrics is empty. Fix: name at least one metric, such as 'recall@10'."),
        ((["hits@10"], [["a"]], [QUERY]), "hits_at_k is a metric of sessions, ... leave it out"),
        ((["recall_subset@1"], [["a"]], [QUERY]), "recall_subset ranks the subset ... pass subset_rankings"),
        ((["map@5", "recall_subset@1"], None, [QUERY]), "no rankings ... pass rankings"),
        ((["mean_rank"], [[]], [QUERY]), "mean_rank: every ranking is empty, so a miss has no rank"),
        ((["recall@1"], [["b", "b"]], [QUERY]), "rankings[0][1] is 'b' ... keep the first"),
    ],
)
def test_single_turn_evaluation_refuses(arguments: Any, text: str) -> None:
    with refusal(text):
        evaluate_single_turn(*arguments)


@pytest.mark.parametrize(
    ("subset_rankings", "text"),
    [
        ([["r"]], "subset_rankings[0][0] is the reference image 'r'; it is not ranked. Fix: drop it."),
        ([["a", "z"]], "subset_rankings[0][1] is 'z', which is not in the subset. Fix: rank its members."),
        ([], "0 subset_rankings but 1 references. Fix: give one a query."),
    ],
)
def test_malformed_subset_rankings_are_refused(subset_rankings: Any, text: str) -> None:
    with refusal(text):
        evaluate_single_turn(["recall_subset@1"], None, [QUERY], subset_rankings=subset_rankings)


def test_an_unknown_metric_is_named() -> None:
    with pytest.raises(UnknownNameError, match=r"'recal@5'\. Did you mean 'recall@5'"):
        evaluate_single_turn(["recal@5"], [["a"]], [QUERY])


def test_multi_turn_evaluation_refuses() -> None:
    with refusal("recall_at_k is a metric of queries, and this benchmark has sessions. Fix: leave it out."):
        evaluate_multi_turn(["recall@5"], [[["a"], ["a"]]], [SESSION])
    with refusal("rankings[0] has 1 rankings, its session 2 turns. Fix: give one ranking a turn."):
        evaluate_multi_turn(["hits@5"], [[["a"]]], [SESSION])


def test_target_is_never_replaced_by_positives() -> None:
    with refusal("references[0] lacks 'target' ... add it; cir_metrics.references(rows)"):
        evaluate_single_turn(["recall@1"], [["a"]], [{"positives": ["a"]}])


def test_dataset_rows_are_references() -> None:
    metrics = ["recall@1", "map@2", "pnr_map@2", "recall_subset@1", "mean_rank"]
    results = evaluate_single_turn(metrics, [["n", "a"]], [QUERY], subset_rankings=[["a"]])
    assert results.values == {
        "recall@1": 0.0,
        "map@2": 0.25,
        "pnr_map@2": 0.125,
        "recall_subset@1": 1.0,
        "mean_rank": 2.0,
        "median_rank": 2.0,
        "censored": 0,
    }
    assert results.n == 1
    assert type(results.values["censored"]) is int
    assert {type(value) for name, value in results.values.items() if name != "censored"} == {float}
    assert evaluate_multi_turn(["hits@1"], [[["a"], ["b"]]], [SESSION]).values["hits@1@turn2"] == 1.0


def test_per_session_values_are_there_for_every_turn() -> None:
    results = evaluate_multi_turn(
        ["hits@1", "mean_rank"], [[["b"], ["a"]], [["c"], []]], [SESSION, {**SESSION, "session_id": "s_2"}]
    )
    assert {name: values.tolist() for name, values in results.per_query.items()} == {
        "hits@1@turn1": [0.0, 0.0],
        "hits@1@turn2": [1.0, 0.0],
        "mean_rank": [1.0, 2.0],
        "censored": [0, 1],
    }
