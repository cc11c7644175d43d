"""Judging sessions, how far judges agree, and what sessions are compared with."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import pytest

import cir_datasets
from cir_datasets.construction.backends import Failed, Question
from cir_datasets.construction.circled.comparison import compared, shapes_chains
from cir_datasets.construction.circled.judging import (
    SCALES,
    Judge,
    agreement_table,
    judged,
    krippendorff_alpha,
    scores_table,
)
from cir_datasets.construction.circled.queries import drawn, queries_of
from cir_datasets.errors import ConstructionError
from cir_datasets.shapes import difference, scene
from cir_metrics.errors import UnknownNameError
from submissions.embeddings.pictures import ShapesPictures
from submissions.language.loading import load_language
from submissions.making.backends import LanguageWords

VAL = cir_datasets.load("shapes/val")
SESSIONS = cir_datasets.load("shapes/multiturn_val").rows()[:12]


class Marks:
    """A judge that gives numbers, and none of what it refuses."""

    def __init__(self, marks: Sequence[int], refused: int | None = None) -> None:
        self.marks = marks
        self.refused = refused
        self.questions: Sequence[Question] = ()

    def ask(self, prompt: str, questions: Sequence[Question]) -> list[dict[str, Any] | Failed]:
        assert prompt == "session"
        self.questions = questions
        found: list[dict[str, Any] | Failed] = [
            dict.fromkeys(SCALES, mark)
            for mark, _ in zip(itertools.cycle(self.marks), questions, strict=False)
        ]
        if self.refused is not None:
            found[self.refused] = Failed("refused by the model")
        return found


def judge(name: str, marks: Sequence[int], refused: int | None = None) -> Judge:
    return Judge(name, Marks(marks, refused))  # type: ignore[arg-type]


def test_a_judge_sees_each_session_alone_with_its_target_last() -> None:
    one = judge("a", [3])
    judged(one, "mine", SESSIONS)
    asked = one.words.questions  # type: ignore[attr-defined]
    assert len(asked) == len(SESSIONS)
    for question, session in zip(asked, SESSIONS, strict=True):
        said = [turn["relative_caption"] for turn in session["turns"]]
        assert question.words["utterances"].splitlines() == said
        assert question.pictures[-1] == session["ground_truth_ids"][0]
        assert list(question.pictures[:-1]) == [turn["reference_image_id"] for turn in session["turns"]]


def test_a_judge_sees_the_target_that_the_words_aimed_at() -> None:
    one = judge("a", [3])
    several = [row for row in SESSIONS if len(row["ground_truth_ids"]) > 1] or [
        {**row, "ground_truth_ids": [*row["ground_truth_ids"], "other"]} for row in SESSIONS
    ]
    aims = {row["session_id"]: row["ground_truth_ids"][-1] for row in several[1:]}
    judged(one, "mine", several, {**aims, several[1]["session_id"]: "of no session"})
    first, second, *others = one.words.questions  # type: ignore[attr-defined]
    assert first.pictures[-1] == several[0]["ground_truth_ids"][0]
    assert second.pictures[-1] == several[1]["ground_truth_ids"][0]
    assert [asked.pictures[-1] for asked in others] == [row["ground_truth_ids"][-1] for row in several[2:]]


def test_a_failed_session_keeps_its_reason_and_is_in_no_mean() -> None:
    rows = judged(judge("a", [2, 4], refused=0), "mine", SESSIONS[:3])
    assert rows[0]["failed"] == "refused by the model"
    (line,) = scores_table(rows).rows
    assert [cell.text for cell in line[:4]] == ["mine", "a", "2", "1"]
    assert line[-1].text == "3.00 ± 1.41"


def test_a_source_of_several_subsets_and_all_together_have_rows_of_their_sessions() -> None:
    rows = judged(judge("a", [1, 2]), "circled/cirr_val", SESSIONS[:2])
    rows += judged(judge("a", [5]), "circled/circo_val", SESSIONS[:1])
    rows += judged(judge("a", [3, 3], refused=1), "mixed_cirr_val/test", SESSIONS[:2])
    rows += judged(judge("a", [4]), "mixed_circo_val/test", SESSIONS[:1])
    pools = {f"mixed_{name}_val/test": "concatenation" for name in ("cirr", "circo")}
    found = {
        line[0].text: (line[2].text, line[3].text, line[-1].text) for line in scores_table(rows, pools).rows
    }
    assert list(found)[:4] == [
        "circled/cirr_val",
        "circled/circo_val",
        "mixed_cirr_val/test",
        "mixed_circo_val/test",
    ]
    assert list(found)[4:] == ["circled", "concatenation", "total"]
    # Marks 1, 2, 5 and 3, 4: each session weighs the same, a failed one nothing.
    assert found["circled"] == ("3", "0", "2.67 ± 2.08")
    assert found["concatenation"] == ("2", "1", "3.50 ± 0.71")
    assert found["total"] == ("5", "1", "3.00 ± 1.58")


def test_the_oracle_finds_sessions_of_shapes_better_than_queries_put_together() -> None:
    rows = queries_of(VAL)
    sources = {"sessions": SESSIONS, "concatenated": compared(rows, "concatenation", "c", limit=30)}
    sources["chains"] = shapes_chains(VAL.gallery or (), 30)
    found = []
    for name, sessions in sources.items():
        ids = {turn["reference_image_id"] for row in sessions for turn in row["turns"]}
        ids |= {row["ground_truth_ids"][0] for row in sessions}
        words = LanguageWords(load_language("oracle"), ShapesPictures(name, sorted(ids)))
        found += judged(Judge("oracle", words), name, sessions)
    overall = {line[0].text: line[-1].value or 0.0 for line in scores_table(found).rows}
    assert overall["sessions"] > overall["concatenated"] > overall["chains"]


def test_alpha_is_that_of_a_worked_example() -> None:
    # Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), section D: four observers.
    nan = math.nan
    values = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, nan, nan, nan],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, nan, 3],
        [nan, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, nan],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, nan],
    ]
    assert krippendorff_alpha(values) == pytest.approx(0.815, abs=0.0005)
    assert krippendorff_alpha([[3, 3], [3, 3]]) is None


def test_agreement_is_by_scale_and_needs_two_judges() -> None:
    first = judged(judge("a", [1, 3, 5]), "mine", SESSIONS)
    second = judged(judge("b", [1, 3, 5], refused=2), "mine", SESSIONS)
    assert agreement_table(first) is None
    table = agreement_table(first + second)
    assert [line[0].text for line in table.rows] == list(SCALES)
    assert {line[1].text for line in table.rows} == {"1.000"}
    against = agreement_table(first + judged(judge("b", [5, 3, 1]), "mine", SESSIONS))
    assert all((line[1].value or 0) < 0 for line in against.rows)


def test_a_draw_depends_on_the_seed_and_keeps_the_order() -> None:
    rows = cir_datasets.load("shapes/multiturn_val").rows()
    one, other = (drawn(rows, "session_id", 60, seed) for seed in (0, 1))
    assert len(one) == len(other) == 60
    assert one != other
    assert [row["session_id"] for row in one] == sorted(row["session_id"] for row in one)
    assert drawn(rows[:5], "session_id", 60, 0) == rows[:5]


def test_a_chain_asks_for_the_next_image() -> None:
    for session in shapes_chains(VAL.gallery or (), 20, seed=4):
        references = [turn["reference_image_id"] for turn in session["turns"]]
        for turn, image in zip(
            session["turns"], [*references[1:], *session["ground_truth_ids"]], strict=True
        ):
            wanted = difference(scene(turn["reference_image_id"]), scene(image), viewpoint=True)
            assert turn["relative_caption"] == wanted


def test_chains_of_queries_go_along_targets_and_do_not_run_in_circles() -> None:
    edges = ["ab", "bc", "ca", "cd", "xy"]
    rows = [
        {
            "query": edge,
            "reference": edge[0],
            "caption": f"to {edge[1]}",
            "targets": [edge[1]],
            "annotated": edge[1],
        }
        for edge in edges
    ]
    paths = [
        "".join(turn["reference_image_id"] for turn in row["turns"]) + row["ground_truth_ids"][0]
        for row in compared(rows, "chains", "s")
    ]
    assert paths == ["abcd", "bca", "cab"]
    with pytest.raises(ConstructionError, match="no session by chains"):
        compared(rows[-1:], "chains", "s")
    with pytest.raises(UnknownNameError, match="chains"):
        compared(rows, "chain", "s")


def test_a_concatenation_holds_different_queries() -> None:
    for row in compared(queries_of(VAL), "concatenation", "s", limit=50):
        asked = {(turn["reference_image_id"], turn["relative_caption"]) for turn in row["turns"]}
        assert len(asked) == row["num_turns"] in range(2, 7)
