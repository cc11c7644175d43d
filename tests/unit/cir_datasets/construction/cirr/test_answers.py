"""What annotators hand in: read, checked, and none of it lost."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from cir_datasets.construction.cirr.answers import (
    agreement,
    annotation_form,
    annotators_of,
    captions_of,
    further_tasks,
    open_pairs,
    soft_targets,
)
from cir_datasets.construction.cirr.pairs import pairs_of
from cir_datasets.construction.cirr.pipeline import run_of
from cir_datasets.construction.cirr.plan import CirrPlan
from cir_datasets.construction.cirr.tasks import tasks_of, write_tasks
from cir_datasets.construction.review.answers import checked_answers, read_answers
from cir_datasets.construction.review.form import ReviewForm
from cir_datasets.errors import RecordError
from cir_metrics.errors import CallError

FORM = annotation_form()
IMAGE = Image.new("RGB", (8, 8))
PAIRS = pairs_of({"subset": 0, "split": "test", "members": list("abcdef")})
TASKS = tasks_of(PAIRS, annotators=1, shared=0, seed=0)


def answer(number: int, caption: str = "", **more: Any) -> dict[str, Any]:
    row = {"task": f"t1-0-{number}", "caption": caption, "mark": "", "annotator": "ann", "run": "r"}
    return {**row, "seconds": None, "file": "f.json", **more}


def reasons(*answers: dict[str, Any], form: ReviewForm = FORM, tasks: Any = TASKS) -> list[str | None]:
    return [row.get("failed") for row in checked_answers(form, answers, tasks, run="r")]


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (answer(0, "two dogs on grass"), None),
        (answer(0), "caption is empty"),
        (answer(0, "!?"), "caption is too short: 0 different words, at least 3 are asked for"),
        (answer(0, "more dogs"), "caption is too short: 2 different words, at least 3 are asked for"),
        (answer(0, "asdf asdf Asdf"), "caption is too short: 1 different words, at least 3 are asked for"),
        (answer(0, "\u628a\u7ea2\u8272\u7684\u72d7\u6362\u6210\u84dd\u8272\u7684\u732b"), None),
        (
            answer(0, "\u7ea2\u8272\u3002"),
            "caption is too short: 2 different words, at least 3 are asked for",
        ),
        (answer(0, "dog " * 300), "caption is longer than 1,000 characters"),
        (answer(0, "two do\0gs on grass"), "caption holds U+0000, a character that is not seen"),
        (answer(0, "two \x1b[31mdogs on grass"), "caption holds U+001B, a character that is not seen"),
        (answer(0, "two \u202edogs on grass"), "caption holds U+202E, a character that is not seen"),
        (answer(0, "zwei H\u00fcndchen auf Gras"), None),
        (answer(0, FORM.examples[0].upper()), "caption is copied from the instructions"),
        (answer(0, "two dogs on grass", run="other"), "it answers pairs of another run"),
        (answer(0, "two dogs on grass", task="t1-9-9"), "there is no such pair"),
        (answer(0, mark="same"), None),
        (answer(0, mark="boring"), "mark 'boring' is not known. Use one of same, no_difference, unrelated"),
        (
            answer(0, "two dogs on grass", mark="same"),
            "caption is answered, and mark is 'same', which does without it",
        ),
    ],
)
def test_an_answer_is_refused_with_a_reason(one: dict[str, Any], why: str | None) -> None:
    assert reasons(one) == [why]


def checked(*answers: dict[str, Any]) -> list[tuple[str, str | None]]:
    rows = checked_answers(FORM, answers, TASKS, run="r")
    return [(row["caption"] or row["mark"], row.get("failed")) for row in rows]


def test_what_a_page_saves_again_is_passed_over_and_what_is_corrected_takes_its_place() -> None:
    one, two = answer(0, "two dogs on grass"), answer(1, "a cat on grass")
    later = [one, answer(1, "a black cat on grass"), answer(2, "no dog at all")]
    assert checked(one, two, *later) == [
        ("two dogs on grass", None),
        ("a black cat on grass", None),
        ("no dog at all", None),
    ]
    assert checked(answer(0, "dogs"), answer(0, "cats"), one) == [("two dogs on grass", None)]
    assert checked(one, answer(0, mark="same")) == [("same", None)]
    # A good answer stays where a later one could not be used.
    assert checked(one, answer(0, "dogs"), answer(0, "two dogs", run="other"))[0] == (
        "two dogs on grass",
        None,
    )
    lazy = [answer(0, "make it nicer"), answer(6, "make it nicer")]
    assert {why for _, why in checked(*lazy)} == {"the same words for several pairs with this reference"}
    corrected = [one, answer(6, "a cat on grass")]
    assert checked(*lazy, *corrected) == [("two dogs on grass", None), ("a cat on grass", None)]


def test_an_annotator_who_gives_a_name_later_is_the_same_one() -> None:
    first, named = answer(0, "two dogs on grass", annotator=""), answer(0, "two dogs on grass")
    for order in ([first, named], [named, first]):
        (row,) = checked_answers(FORM, order, TASKS, run="r")
        assert (row["annotator"], row["caption"]) == ("ann", "two dogs on grass")


def test_a_task_is_answered_by_one_annotator() -> None:
    first, other = answer(0, "two dogs on grass"), answer(0, "three dogs on grass", annotator="bob")
    assert reasons(first, other) == [None, "it was answered before, by another annotator"]
    assert reasons(answer(0, "dogs"), other)[1] is None


def test_the_same_words_for_many_pairs_are_refused_all() -> None:
    lazy = [answer(number, "make it look nicer") for number in (1, 2, 3)]
    assert reasons(*lazy) == ["the same words for 3 pairs"] * 3
    assert reasons(*lazy[:2]) == [None, None]
    assert reasons(*lazy, form=annotation_form(most_alike=3)) == [None] * 3


def test_the_same_words_may_not_lead_from_a_reference_to_several_targets() -> None:
    # Pairs 0, 6, 7 and 8 begin at the first image.
    found = reasons(
        answer(0, "Two dogs, please."), answer(6, "two dogs please"), answer(7, "three dogs please")
    )
    assert found == ["the same words for several pairs with this reference"] * 2 + [None]


def test_words_of_another_annotator_are_refused_but_for_the_same_pair() -> None:
    tasks = tasks_of(PAIRS, annotators=2, shared=9, seed=0)
    mine = answer(1, "two dogs on grass")
    theirs = answer(2, "Two dogs on grass", annotator="bob", task="t2-0-2")
    same_pair = answer(1, "two dogs on grass", annotator="bob", task="t2-0-1")
    assert reasons(mine, theirs, tasks=tasks) == [None, "the words of another annotator's pair t1-0-1"]
    assert reasons(mine, same_pair, tasks=tasks) == [None, None]


def test_a_pair_has_its_first_good_caption_and_open_pairs_are_asked_again() -> None:
    tasks = tasks_of(PAIRS[:4], annotators=2, shared=4, seed=0)
    handed = [
        answer(0, "two dogs on grass"),
        answer(0, "a pair of dogs", task="t2-0-0", annotator="bob"),
        answer(1, "dogs"),
        answer(2, mark="unrelated"),
    ]
    rows = captions_of(PAIRS[:4], checked_answers(FORM, handed, tasks, run="r"))
    assert rows[0] == {
        "pair": "0-0",
        "caption": "two dogs on grass",
        "by": "ann",
        "further": ["a pair of dogs"],
    }
    assert rows[1]["failed"] == "1 answers, all refused"
    assert rows[2]["failed"] == "annotators say: They have nothing to do with each other."
    assert rows[3]["failed"] == "no answer yet"
    assert [pair["pair"] for pair in open_pairs(PAIRS[:4], rows)] == ["0-1", "0-3"]


@pytest.mark.parametrize(("mark", "score"), [("same", 1.0), ("no_difference", 0.5), ("unrelated", -1.0)])
def test_a_marked_pair_is_a_soft_target_of_the_queries_from_its_reference(mark: str, score: float) -> None:
    tasks = tasks_of(PAIRS, annotators=1, shared=9, seed=0)
    others = [place for place, pair in enumerate(PAIRS) if pair["reference"] == PAIRS[0]["reference"]]
    rows = captions_of(PAIRS, checked_answers(FORM, [answer(others[-1], mark=mark)], tasks, run="r"))
    soft = soft_targets(PAIRS, rows)
    beside = {"image_id": PAIRS[others[-1]]["target"], "score": score}
    for pair in PAIRS:
        is_of_reference = pair["reference"] == PAIRS[0]["reference"]
        assert soft[pair["pair"]][0] == {"image_id": pair["target"], "score": 1.0}
        assert soft[pair["pair"]][1:] == ([beside] if is_of_reference else [])
    assert len(others) > 2
    assert soft_targets(PAIRS, captions_of(PAIRS, [])) == {}


def test_tasks_given_out_again_are_known_by_their_round() -> None:
    handed = [answer(0, task=task) for task in ("r1-1-0-3", "r3-1-0-3", "r1-1-9-9", "t1-0-0")]
    assert [task["task"] for task in further_tasks(handed, PAIRS, rounds=2)] == ["r1-1-0-3"]


def test_annotators_are_counted_and_compared() -> None:
    tasks = tasks_of(PAIRS, annotators=2, shared=9, seed=0)
    handed = [
        answer(1, "two dogs on grass", seconds=10.0),
        answer(2, "two cats", seconds=20.0),
        answer(1, "two cats on grass", annotator="bob", task="t2-0-1"),
        answer(3, "a blue roof instead"),
        answer(3, mark="same", annotator="bob", task="t2-0-3"),
        answer(3, mark="same", annotator="bob", task="t2-0-3"),
    ]
    rows = checked_answers(FORM, handed, tasks, run="r")
    ann, bob = annotators_of(rows)
    assert ann == {
        "annotator": "ann",
        "answers": 3,
        "refused": 1,
        "marked": 0,
        "median_words": 4,
        "median_seconds": 15.0,
    }
    # What was handed in again counts once.
    assert (bob["answers"], bob["refused"], bob["marked"], bob["median_seconds"]) == (2, 0, 1, None)
    # Of the two couples one decided alike; its captions share 3 of 5 words.
    assert agreement(rows) == {"pairs": 2, "decided_alike": 0.5, "shared_words": 0.6}


def test_tasks_are_dealt_out_by_subset_and_some_go_to_everybody() -> None:
    pairs = [
        pair
        for number in range(4)
        for pair in pairs_of(
            {"subset": number, "split": "test", "members": [f"{number}{one}" for one in "abcdef"]}
        )
    ]
    tasks = tasks_of(pairs, annotators=2, shared=5, seed=0)
    by_page = [{task["pair"] for task in tasks if task["page"] == page} for page in (1, 2)]
    assert by_page[0] | by_page[1] == {pair["pair"] for pair in pairs}
    assert len(by_page[0] & by_page[1]) == 5
    assert len({task["task"] for task in tasks}) == len(tasks) == 36 + 5


def test_files_of_pages_and_of_a_crowd_platform_are_read(tmp_path: Path) -> None:
    page = tmp_path / "page.json"
    mine = {"task": "t1-0-0", "caption": " two  dogs ", "mark": "", "seconds": 4.25}
    page.write_text(json.dumps({"format": 1, "run": "r", "page": 1, "annotator": "ann", "answers": [mine]}))
    (row,) = read_answers(FORM, page)
    assert (row["caption"], row["seconds"], row["run"], row["file"]) == ("two dogs", 4.2, "r", "page.json")
    crowd = tmp_path / "crowd.csv"
    crowd.write_text(
        "\ufeffHITId,WorkerId,WorkTimeInSeconds,Input.task,Input.run,Answer.caption\n"
        "h,w7,31,t1-0-0,r,'=SUM of two dogs\n",
        encoding="utf-8",
    )
    (row,) = read_answers(FORM, crowd)
    assert (row["annotator"], row["caption"], row["seconds"], row["mark"]) == (
        "w7",
        "=SUM of two dogs",
        31,
        "",
    )


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "no rows"),
        (b"a,b\n1,2\n", "line 1 does not name the columns task, caption"),
        (b"{", "it is not JSON"),
        (b'{"answers": 3}', 'no list "answers"'),
        (b'[{"task": "t", "caption": "two dogs"}]', 'no list "answers"'),
        (b'{"answers":' + b"[" * 100_000, "it is not JSON"),
        (b'{"answers": [{"task": "t", "seconds": "inf"}]}', "answer 1: seconds is not a number from 0"),
        (b"task,caption,seconds\nt,two dogs,-4\n", "line 2: seconds is not a number from 0"),
        (b"task,caption,annotator\nt,two dogs," + b"a" * 201, "line 2: annotator is longer than 200"),
        (b'task,caption\nt,two dogs\nt,"three dogs\n', "line 3: it is not CSV"),
        (b"task,caption\nt,two dogs, on grass\n", "line 2: 3 fields, and line 1 names 2"),
        (b"task,caption\nt," + b"dog " * 40_000, "line 2: it is not CSV: field larger"),
        (b"task\ttext\nt\ttwo dogs\n", "line 1 does not name the columns caption"),
        ("task,caption\nt,zwei H\u00fcndchen\n".encode("latin-1"), "byte 21 is not UTF-8"),
        ("task,caption\nt,two dogs\n".encode("utf-16")[:-1], "is not UTF-8"),
        (b'{"answers": [{"task": 3}]}', "answer 1: task is not text"),
        (b'{"answers": [{"task": "t", "seconds": "soon"}]}', "seconds is not a number"),
    ],
)
def test_a_file_that_is_something_else_is_named(tmp_path: Path, content: bytes, what: str) -> None:
    file = tmp_path / "answers.txt"
    file.write_bytes(content)
    with pytest.raises(RecordError, match=what) as caught:
        read_answers(FORM, file)
    assert "answers.txt" in str(caught.value)
    assert "Fix:" in str(caught.value)


def test_a_file_of_a_spreadsheet_with_semicolons_and_decimal_commas_is_read(tmp_path: Path) -> None:
    file = tmp_path / "answers.csv"
    file.write_text('\ufefftask;caption;seconds\nt1-0-0;"two dogs, on grass";4,2\n', encoding="utf-8")
    (row,) = read_answers(FORM, file)
    assert (row["place"], row["caption"], row["seconds"]) == ("line 2", "two dogs, on grass", 4.2)


def test_nothing_that_is_written_for_spreadsheets_is_a_formula_or_a_number(tmp_path: Path) -> None:
    given = {"run": run_of({"seed": 1}), "title": "=1+1", "open_picture": lambda image: IMAGE}
    write_tasks(tmp_path, TASKS, form=FORM, **given)
    with (tmp_path / "tasks.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 9
    for row in rows:
        # A name of digits, or 12e4567, would come back as another number.
        assert all(row[name][0].isalpha() for name in row if name != "page")


def test_limits_below_one_are_refused() -> None:
    with pytest.raises(CallError, match="1 or more"):
        CirrPlan(name="mine", min_words=0)
