"""The evaluate modules in one process: incremental use, rows as references, and what they refuse."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from says import refusal

import cir_metrics
from cir_metrics.catalogue import METRICS
from cir_metrics.errors import InputError
from cir_metrics.lists import evaluate_single_turn

SUBSET = {"target": "b", "reference": "a", "subset": ["a", "b", "c", "d", "e", "f"]}
GOOD: dict[str, tuple[Any, dict[str, Any]]] = {
    "recall_at_k": (["a", "b"], {"target": "b"}),
    "recall_subset": (["c", "b"], SUBSET),
    "map_subset": (["c", "b"], SUBSET),
    "map_at_k": (["a", "b"], {"positives": ["b"]}),
    "pnr_map": (["a", "b"], {"positives": ["b"], "negatives": ["a"]}),
    "hits_at_k": ([["a", "b"], ["b", "a"]], {"positives": ["b"]}),
    "final_recall": ([["a", "b"], ["b", "a"]], {"positives": ["b"]}),
    "final_mrr": ([["a", "b"], ["b", "a"]], {"positives": ["b"]}),
    "hits_auc": ([["a", "b"], ["b", "a"]], {"positives": ["b"]}),
    "turn_recall": ([["a", "b"], ["b", "a"]], {"turn_targets": ["b", "a"]}),
    "mean_rank": (["a", "b"], {"positives": ["b"]}),
}
QUERY = {
    "query_id": "12",
    "reference_image_id": "a",
    "captions": ["red"],
    "relative_caption": "red",
    "target_image_id": "b",
    "positive_image_ids": ["b"],
    "negative_image_ids": ["n"],
    "subset_image_ids": ["a", "b", "c", "d", "e", "f"],
    "aspects": [],
}
SESSION = {"session_id": "s", "subset": "x", "ground_truth_ids": ["b"], "num_turns": 2, "turns": [{}, {}]}
CHAIN = {**SESSION, "turns": [{"target_image_id": "a"}, {"target_image_id": "b"}]}


@pytest.fixture
def load(tmp_path: Path) -> Any:
    import evaluate

    def load_into_a_folder_of_its_own(name: str, keep_in_memory: bool = True) -> Any:
        return evaluate.load(name, keep_in_memory=keep_in_memory, cache_dir=str(tmp_path / "cache"))

    return load_into_a_folder_of_its_own


@pytest.mark.parametrize("name", METRICS)
def test_every_module_refuses_what_is_malformed_and_stores_nothing_of_it(name: str, load: Any) -> None:
    """What that is, `test_inputs` says: here is one of each kind."""
    prediction, reference = GOOD[name]
    multi = METRICS[name].protocols == ("multi_turn",)
    module = load(name)
    lacking = {key: value for key, value in reference.items() if key != next(iter(reference))}
    for predictions, references, start in (
        ([prediction, [[]] if multi else []], [reference] * 2, "predictions[1]"),
        ([prediction] * 2, [reference, lacking], f"references[1] lacks '{next(iter(reference))}'"),
        ([prediction], [reference] * 2, "1 predictions but 2 references"),
        ([], [], "predictions and references are empty"),
        (None, [reference], "predictions is None; it must be a list"),
    ):
        for call in (module.compute, module.add_batch):
            with pytest.raises(InputError, match=f"^{re.escape(start)}"):
                call(predictions=predictions, references=references)
    with refusal(f"{name}: nothing was added. Fix: pass predictions and references."):
        module.compute()


@pytest.mark.parametrize("name", METRICS)
def test_every_module_refuses_wrong_keywords(name: str, load: Any) -> None:
    prediction, reference = GOOD[name]
    module = load(name)
    takes = {"pnr_map": "ks, variant", "mean_rank": "gallery_size"}.get(name, "ks")
    with refusal(f"{name} has no keyword 'k'. Fix: use predictions, references, {takes}."):
        module.compute(predictions=[prediction], references=[reference], k=5)
    with refusal(f"{name} has no keyword 'extra'. Fix: use predictions, references."):
        module.add_batch(predictions=[prediction], references=[reference], extra=1)
    with refusal(f"{name} has no keyword 'extra'. Fix: use prediction, reference."):
        module.add(prediction=prediction, reference=reference, extra=1)
    with refusal(f"{name} has no keyword 'predictions'. Fix: use prediction, reference."):
        module.add(prediction=prediction, reference=reference, predictions=prediction)
    if "ks" in takes:
        with refusal("k=0; a cutoff is a whole number, 1 or more. Fix: pass k=10, say."):
            module.compute(predictions=[prediction], references=[reference], ks=(5, 0))


@pytest.mark.parametrize("keep_in_memory", [True, False])
@pytest.mark.parametrize("name", METRICS)
def test_incremental_use_equals_one_call(name: str, keep_in_memory: bool, load: Any) -> None:
    prediction, reference = GOOD[name]
    module = load(name, keep_in_memory)
    whole = module.compute(predictions=[prediction] * 4, references=[reference] * 4)
    module.add(prediction=prediction, reference=reference)
    module.add_batch(predictions=[prediction] * 2, references=[reference] * 2)
    assert module.compute(predictions=[prediction], references=[reference]) == whole
    assert {type(value) for key, value in whole.items() if key != "censored"} == {float}
    # The module starts afresh.
    with refusal(f"{name}: nothing was added. Fix: pass predictions and references."):
        module.compute()
    with pytest.raises(InputError, match=r"^predictions\[0\] is None"):
        module.add(prediction=None, reference=reference)
    assert module.compute(predictions=[prediction], references=[reference]) == whole


def test_positions_count_from_the_first_that_was_added(load: Any) -> None:
    module = load("recall_at_k")
    module.add(prediction=["a"], reference={"target": "a"})
    module.add_batch(predictions=[["a"]] * 2, references=[{"target": "a"}] * 2)
    with refusal("predictions[4] is an empty ranking. Fix: name at least one image."):
        module.add_batch(predictions=[["a"], []], references=[{"target": "a"}] * 2)
    with refusal("references[3] lacks 'target'"):
        module.add(prediction=["a"], reference={})


def test_what_is_refused_leaves_nothing_behind(load: Any) -> None:
    metric = load("recall_at_k")
    rows = [{"query_id": str(n), "target_image_id": f"{n:012d}"} for n in range(30)]
    with pytest.raises(InputError, match="no ranking holds any"):
        metric.compute(predictions=[[f"zz{n}"] for n in range(30)], references=rows, ks=(1,))
    good = [[row["target_image_id"]] for row in rows]
    assert metric.compute(predictions=good, references=rows, ks=(1,)) == {"recall@1": 1.0}


def test_one_query_has_one_reference(load: Any) -> None:
    rows = [{"query_id": "q", "target_image_id": target} for target in ("a", "b")]
    with pytest.raises(InputError, match="another answer or reference"):
        load("recall_at_k").compute(predictions=[["a"], ["a"]], references=rows, ks=(1,))
    with pytest.raises(InputError, match="another answer or reference"):
        cir_metrics.evaluate_single_turn(["recall@1"], [["a"], ["a"]], rows)
    sessions = [{"session_id": "s", "ground_truth_ids": [target], "num_turns": 1} for target in ("a", "b")]
    with pytest.raises(InputError, match="another answer or reference"):
        cir_metrics.evaluate_multi_turn(["hits@1"], [[["a"]], [["a"]]], sessions)


@pytest.mark.parametrize("name", METRICS)
def test_prepared_rows_are_taken_as_references(name: str, load: Any) -> None:
    prediction, _ = GOOD[name]
    multi = METRICS[name].protocols == ("multi_turn",)
    row = CHAIN if multi else QUERY
    module = load(name)
    values = module.compute(predictions=[prediction], references=[row])
    assert module.compute(predictions=[prediction], references=cir_metrics.references([row])) == values


def test_a_dataset_is_a_list_of_rows(load: Any) -> None:
    import datasets

    rows = datasets.Dataset.from_list([QUERY, {**QUERY, "query_id": "13"}])
    values = load("pnr_map").compute(predictions=[["n", "b"], ["b", "n"]], references=rows, ks=(5,))
    assert values == {"pnr_map@5": 0.625}


def test_a_session_needs_one_ranking_a_turn(load: Any) -> None:
    for name in ("hits_at_k", "final_recall", "final_mrr", "hits_auc", "mean_rank"):
        with refusal("predictions[0] has 1 rankings, its session 2 turns. Fix: give one ranking a turn."):
            load(name).compute(predictions=[[["b"]]], references=[SESSION])
    with refusal("predictions[0] is one ranking, its reference a session. Fix: give one ranking a turn."):
        load("mean_rank").compute(predictions=[["b"]], references=[SESSION])


def test_turns_need_targets_of_their_own_one_a_ranking(load: Any) -> None:
    module = load("turn_recall")
    assert module.compute(predictions=[[["a"], ["a", "b"]]], references=[CHAIN], ks=(1,)) == {
        "turn_recall@1": 0.5
    }
    with refusal("references[0] (session_id 's') lacks 'turn_targets'. Fix: pass a row of a benchmark that"):
        module.compute(predictions=[[["a"], ["b"]]], references=[SESSION])
    for targets in (["a"], ["a", "b", "a"]):
        number = len(targets)
        with refusal(f"predictions[0] has 2 rankings, its session {number} turns. Fix: give one ranking a"):
            module.compute(predictions=[[["a"], ["b"]]], references=[{"turn_targets": targets}])


def test_subset_rankings_hold_the_other_members(load: Any) -> None:
    module = load("recall_subset")
    with refusal("predictions[0][1] is the reference image 'a'; it is not ranked. Fix: drop it."):
        module.compute(predictions=[["b", "a"]], references=[SUBSET])
    with refusal("predictions[0][1] is 'z', which is not in the subset. Fix: rank its members."):
        module.compute(predictions=[["b", "z"]], references=[SUBSET])


def test_gallery_size_is_taken_and_not_read(load: Any) -> None:
    predictions, references = [["a"], ["a", "b", "c"], ["c", "b", "a"]], [{"positives": ["b"]}] * 3
    with pytest.warns(DeprecationWarning, match="gallery_size is not read"):
        found = load("mean_rank").compute(predictions=predictions, references=references, gallery_size=2)
    assert found == {"mean_rank": 2.0, "median_rank": 2.0, "censored": 1}


def test_variant_is_chosen_by_name(load: Any) -> None:
    module = load("pnr_map")
    references = [{"positives": ["b"], "negatives": ["n"]}]
    arguments = {"predictions": [["n", "b"]], "references": references, "ks": [5]}
    assert (
        module.compute(**arguments) == module.compute(**arguments, variant="equation") == {"pnr_map@5": 0.25}
    )
    assert module.compute(**arguments, variant="released_code") == {"pnr_map@5": 0.5}
    with refusal("variant='paper': pnr_map has no such variant ... use one of 'equation', 'released_code'"):
        module.compute(**arguments, variant="paper")


@pytest.mark.parametrize("name", METRICS)
def test_module_describes_itself(name: str, load: Any) -> None:
    module = load(name)
    assert module.name == name
    assert module.citation == METRICS[name].source
    assert METRICS[name].description in module.description
    for word in ("predictions", "references", *METRICS[name].fields):
        assert word in module.inputs_description
    assert "InputError" in module.compute.__doc__
    assert set(module.features["references"]) == set(METRICS[name].fields)


def test_shared_classes_stay_abstract() -> None:
    # evaluate takes the first concrete class of a script, and would take an imported one.
    from cir_metrics import module

    shared = [each for each in vars(module).values() if inspect.isclass(each) and "Metric" in each.__name__]
    ours = [each for each in shared if each.__module__ == "cir_metrics.module"]
    assert {each.__name__ for each in ours} == {"RankingMetric"}
    assert [each.__name__ for each in ours if not inspect.isabstract(each)] == []
    # Scripts of 0.1.0, which `cir metrics install` has copied, name three others.
    assert module.SingleTurnMetric is module.SubsetMetric is module.MultiTurnMetric is module.RankingMetric


def test_a_ranking_is_of_the_querys_own_gallery(load: Any) -> None:
    rows = [
        {"query_id": "1", "target_image_id": "b", "gallery_image_ids": ["a", "b", "c"]},
        {"query_id": "2", "target_image_id": "c", "gallery_image_ids": ["b", "c"]},
    ]
    assert cir_metrics.references(rows)[1] == {"target": "c", "gallery": ["b", "c"]}
    module = load("recall_at_k")
    for given in (rows, cir_metrics.references(rows)):
        values = module.compute(predictions=[["a", "b"], ["c", "b"]], references=given, ks=(1, 2))
        assert values == {"recall@1": 0.5, "recall@2": 1.0}
        assert evaluate_single_turn(["recall@1"], [["a"], ["c"]], given).values == {"recall@1": 0.5}
        with pytest.raises(InputError, match=r"\[1\]\[1\] is 'a', which is not in the query's own gallery"):
            module.compute(predictions=[["a"], ["c", "a"]], references=given)
        with pytest.raises(InputError, match=r"rankings\[1\]\[0\] is 'a'"):
            evaluate_single_turn(["recall@1"], [["a"], ["a"]], given)
    lacking = [{"target": "a", "gallery": ["b", "c"]}]
    with pytest.raises(InputError, match=r"\[0\]: 'a' is a target .* not in the query's own gallery"):
        module.compute(predictions=[["b"]], references=lacking)
    with pytest.raises(InputError, match="not in the query's own gallery"):
        evaluate_single_turn(["recall@1"], [["b"]], lacking)
