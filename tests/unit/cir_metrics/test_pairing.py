"""Data frames and series at the metrics' doors: their index says which query a row is of."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cir_metrics
from cir_metrics import Results, evaluate_multi_turn, evaluate_single_turn
from cir_metrics.errors import InputError

ROWS = [{"query_id": "q1", "target_image_id": "a"}, {"query_id": "q2", "target_image_id": "b"}]
NAMED = pd.DataFrame(ROWS).set_index("query_id")
RIGHT = pd.DataFrame([["b", "z"], ["a", "z"]], index=["q2", "q1"])
"""Right answers to both queries, in another order than the references."""
HALF = pd.DataFrame([["a", "z"], ["z", "a"]], index=["q1", "q2"])
PADDED = ["q1", "q2", "q2", "q2"]
SESSIONS = [
    {"session_id": "s1", "ground_truth_ids": ["a"], "num_turns": 2},
    {"session_id": "s2", "ground_truth_ids": ["b"], "num_turns": 2},
]
OF_SUBSET = [{**row, "reference_image_id": "r", "subset_image_ids": ["r", "a", "b"]} for row in ROWS]


def recall(rankings: Any, references: Any) -> Results:
    return evaluate_single_turn(["recall@1"], rankings, references)


@pytest.fixture(autouse=True)
def no_silent_warning() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        yield


@pytest.fixture
def module(tmp_path: Any) -> Any:
    import evaluate

    return evaluate.load("recall_at_k", keep_in_memory=True, cache_dir=str(tmp_path / "cache"))


REFERENCES = {
    "dicts": ROWS,
    "a frame with a column of ids": pd.DataFrame(ROWS),
    "a frame with an index of ids": NAMED,
    "a frame whose index has another name": NAMED.rename_axis("other"),
    "a frame with both, of which the column counts": pd.DataFrame(ROWS, index=["x", "y"]),
    "a series of dicts": pd.Series([{"target": "a"}, {"target": "b"}], index=["q1", "q2"]),
}
RANKINGS = {
    "a frame": RIGHT,
    "a series of lists": pd.Series([["b", "z"], ["a", "z"]], index=["q2", "q1"]),
}


@pytest.mark.parametrize("rankings", RANKINGS.values(), ids=RANKINGS)
@pytest.mark.parametrize("references", REFERENCES.values(), ids=REFERENCES)
def test_rankings_are_joined_with_references_by_query_id(rankings: Any, references: Any) -> None:
    assert recall(rankings, references).values == {"recall@1": 1.0}


def test_values_stand_in_the_order_of_the_references() -> None:
    assert recall(HALF.iloc[::-1], ROWS).per_query["recall@1"].tolist() == [1, 0]
    assert recall(HALF, ROWS[::-1]).per_query["recall@1"].tolist() == [0, 1]


def test_a_number_and_a_text_are_one_id() -> None:
    rows = [{"query_id": 7, "target_image_id": "a"}, {"query_id": "5", "target_image_id": "b"}]
    assert recall(RIGHT.set_axis(["5", "7"]), rows).values == {"recall@1": 1.0}
    assert recall(RIGHT.set_axis([5, 7]), pd.DataFrame(rows)).values == {"recall@1": 1.0}
    assert recall(RIGHT.set_axis(np.array([5, 7])), rows).values == {"recall@1": 1.0}


@pytest.mark.parametrize(
    ("rankings", "references"),
    [
        (HALF.loc[PADDED], NAMED.loc[PADDED]),
        (HALF.loc[PADDED], NAMED),
        (HALF, NAMED.loc[PADDED]),
        (HALF.loc[PADDED], ROWS),
        (HALF.loc[PADDED[::-1]], [ROWS[0], ROWS[1], ROWS[1]]),
        ([["a"], ["z"], ["z"]], NAMED.loc[PADDED[:3]]),
    ],
)
def test_equal_answers_to_one_query_count_once_with_a_warning(rankings: Any, references: Any) -> None:
    with pytest.warns(UserWarning, match="repeated answers, to 'q2' first"):
        found = recall(rankings, references)
    assert (found.values, found.n) == ({"recall@1": 0.5}, 2)


def test_different_answers_to_one_query_are_refused() -> None:
    other = pd.concat([HALF, RIGHT.loc[["q2"]]])
    for references in (ROWS, NAMED, NAMED.loc[["q1", "q2", "q2"]]):
        with pytest.raises(InputError, match="answers 'q2', which has another answer"):
            recall(other, references)
    contradicted = pd.concat([NAMED, pd.DataFrame([{"target_image_id": "c"}], index=["q2"])])
    with pytest.raises(InputError, match="answers 'q2', which has another answer or reference"):
        recall(HALF, contradicted)


POSITIONAL = {
    "the default index": (RIGHT[::-1].reset_index(drop=True), ROWS),
    "no index, and references with one": ([["a"], ["b"]], NAMED),
    "references without ids": (RIGHT[::-1], [{"target": "a"}, {"target": "b"}]),
    "one of two ids is not said, and the other fits": (RIGHT[::-1], [ROWS[0], {"target": "b"}]),
    "a slice of the default index": (RIGHT[::-1].set_axis(range(2, 4)), ROWS),
    "a default index that was written to a file": (RIGHT[::-1].set_axis(np.array([0, 1])), ROWS),
    "one index of both, beside ids": (RIGHT[::-1].set_axis([9, 4]), pd.DataFrame(ROWS, index=[9, 4])),
    "one index of both, which is no id": (RIGHT[::-1].set_axis([9.5, 4.5]), NAMED.set_axis([9.5, 4.5])),
}


@pytest.mark.parametrize(("rankings", "references"), POSITIONAL.values(), ids=POSITIONAL)
def test_rows_without_ids_are_taken_by_position(rankings: Any, references: Any) -> None:
    assert recall(rankings, references).values == {"recall@1": 1.0}


FRAME, SOME, TURNED = pd.DataFrame(ROWS), RIGHT.drop("q1"), RIGHT[::-1]
MORE = pd.concat([RIGHT, RIGHT.loc[["q1"]].set_axis([5])])
PARTLY_NAMED = [{"target": "a"}, {"query_id": "q1", "target": "b"}]
RESET, ALIGN = "rankings.reset_index(drop=True)", "rankings.set_axis(references.index)"
REFUSED: list[tuple[Any, Any, str, str]] = [
    (MORE, ROWS, "rankings have a row of 5, which no reference is of. Fix: drop it, ", "rankings.drop([5])"),
    (SOME, ROWS, "references[0] is of 'q1'", "[row for row in references if row['query_id'] != 'q1']"),
    (SOME, FRAME, "references[0] is of 'q1', of which", "references[references['query_id'] != 'q1']"),
    (SOME, NAMED.rename(index={"q1": 1}), "references[0] is of '1', of which", "references.drop([1])"),
    (TURNED.set_axis([9, 4]), ROWS, "the index of rankings holds 9 and other labels, none of which", RESET),
    (TURNED.set_axis([1.5, 0.5]), ROWS, "the index of rankings holds 1.5 and other labels", RESET),
    (TURNED.set_axis(["q2", "x"]), ROWS, "rankings have a row of 'x', which no reference is of", RESET),
    (TURNED.set_axis([9, 4]), FRAME, "have different indexes. Fix: where both are in one order", ALIGN),
    (TURNED.reset_index(drop=True), NAMED, "rankings and references have different indexes", ALIGN),
    (RIGHT.set_axis([1, 0]), FRAME, "Fix: bring them into one order", "rankings.loc[references.index]"),
    (TURNED, PARTLY_NAMED, "references[0] does not say its query id", RESET),
    (RIGHT, FRAME.set_axis(["q2", "q1"]), "have one index, and the ids", "references.set_index('query_id')"),
]


@pytest.mark.parametrize(("rankings", "references", "said", "code"), REFUSED)
def test_what_cannot_be_joined_is_refused_with_a_fix_that_works(
    rankings: Any, references: Any, said: str, code: str
) -> None:
    with pytest.raises(InputError) as caught:
        recall(rankings, references)
    assert said in str(caught.value)
    assert code in str(caught.value)
    given = {"rankings": rankings, "references": references}
    mended = eval(code, {}, given)
    given["rankings" if code.startswith("rankings") else "references"] = mended
    assert recall(**given).values == {"recall@1": 1.0}


def test_rankings_of_subsets_are_joined_too() -> None:
    subsets = pd.Series([["b", "a"], ["a", "b"]], index=["q2", "q1"])
    wanted = ["recall_subset@1"]
    found = evaluate_single_turn(wanted, None, OF_SUBSET, subset_rankings=subsets)
    assert found.values == {"recall_subset@1": 1.0}
    both = evaluate_single_turn([*wanted, "recall@1"], [["a"], ["b"]], OF_SUBSET, subset_rankings=subsets)
    assert both.values == {"recall_subset@1": 1.0, "recall@1": 1.0}
    with pytest.warns(UserWarning, match="1 repeated answers, to 'q1' first"):
        padded = evaluate_single_turn(
            [*wanted, "recall@1"], RIGHT, OF_SUBSET, subset_rankings=subsets.loc[["q1", "q2", "q1"]]
        )
    assert (padded.values, padded.n) == (both.values, 2)


def test_sessions_are_joined_by_their_ids() -> None:
    right = pd.Series([[["z"], ["b"]], [["z"], ["a"]]], index=["s2", "s1"])
    indexed = pd.DataFrame(SESSIONS).set_index("session_id")
    for references in (SESSIONS, pd.DataFrame(SESSIONS), indexed):
        for rankings in (right, pd.DataFrame(right.tolist(), index=right.index)):
            found = evaluate_multi_turn(["final_recall@1"], rankings, references)
            assert found.values == {"final_recall@1": 1.0}
    with pytest.warns(UserWarning, match="1 repeated answers, to 's1' first"):
        padded = evaluate_multi_turn(["final_recall@1"], right.loc[["s1", "s2", "s1"]], indexed)
    assert (padded.values, padded.n) == ({"final_recall@1": 1.0}, 2)


@pytest.mark.parametrize("references", REFERENCES.values(), ids=REFERENCES)
def test_the_modules_join_by_query_id(references: Any, module: Any) -> None:
    assert module.compute(predictions=RIGHT, references=references, ks=[1]) == {"recall@1": 1.0}
    module.add_batch(predictions=RIGHT, references=references)
    assert module.compute(ks=[1]) == {"recall@1": 1.0}


def test_the_modules_count_a_padded_frame_once(module: Any) -> None:
    with pytest.warns(UserWarning, match="repeated answers, to 'q2' first"):
        found = module.compute(predictions=HALF.loc[PADDED], references=NAMED.loc[PADDED], ks=[1])
    assert found == {"recall@1": 0.5}
    module.add_batch(predictions=HALF, references=NAMED)
    with pytest.warns(UserWarning, match="1 repeated answers, to 'q2' first"):
        module.add_batch(predictions=HALF.loc[["q2"]], references=NAMED.loc[["q2"]])
    assert module.compute(ks=[1]) == {"recall@1": 0.5}


def test_slices_of_frames_with_the_default_index_are_added_batch_by_batch(module: Any) -> None:
    rankings = pd.DataFrame([["a"], ["b"], ["c"], ["z"]])
    rows = [{"query_id": f"q{n}", "target_image_id": image} for n, image in enumerate("abcd")]
    for references in (rows, pd.DataFrame(rows), pd.DataFrame(rows).drop(columns="query_id")):
        for start in (0, 2):
            batch = slice(start, start + 2)
            module.add_batch(predictions=rankings[batch], references=references[batch])
        assert module.compute(ks=[1]) == {"recall@1": 0.75}


def test_picked_references_see_a_query_that_an_index_says_twice() -> None:
    assert cir_metrics.references(NAMED) == [{"target": "a"}, {"target": "b"}]
    with pytest.raises(InputError, match=r"rows\[2\] is of 'q2', as a row before it is"):
        cir_metrics.references(NAMED.loc[PADDED])
