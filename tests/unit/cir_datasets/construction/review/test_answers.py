"""Forms of all kinds of question: what a file says, what is refused, and how far people agree."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cir_datasets.construction.review.agreement import agreement, import_answers, krippendorff_alpha
from cir_datasets.construction.review.answers import accepted_answers, checked_answers, read_answers
from cir_datasets.construction.review.form import ReviewForm, load_form
from cir_datasets.construction.review.page import page_html
from cir_datasets.errors import ConstructionError, RecordError

FORM = """
name: judged
item: [clip, clips]
keys: [version]
pictures:
  - {field: clip, label: the clip}
texts:
  - {field: judge, label: The model says}
questions:
  - {name: right, kind: choice, label: Is the model right?, needed: true, choices: {yes: yes, no: no}}
  - {name: quality, kind: stars, label: How good is it?}
  - {name: begins, kind: number, label: First second, min: 0, max: 60, of: seconds}
  - {name: why, kind: text, label: Why?, unless: {right: [yes]}, min_words: 2, most_alike: 2}
  - {name: frames, kind: sort, label: Frames, pictures: frames, choices: {shown: shown, hidden: hidden}}
"""
ITEMS: list[dict[str, Any]] = [
    {
        "id": f"c{number}",
        "version": "1",
        "clip": f"{number}.mp4",
        "judge": "a red star",
        "frames": [f"{number}a.jpg", f"{number}b.jpg"],
        "seconds": 9 if number % 2 else None,
    }
    for number in range(4)
]


@pytest.fixture
def form(tmp_path: Path) -> ReviewForm:
    (tmp_path / "judged.yaml").write_text(FORM)
    return load_form(tmp_path / "judged.yaml")


def saved(folder: Path, name: str, *answers: dict[str, Any], **common: Any) -> Path:
    whole = {"form": "judged", "run": "", "annotator": name, **common}
    path = folder / f"{name or 'nobody'}.json"
    path.write_text(json.dumps({**whole, "answers": [{"version": "1", **one} for one in answers]}))
    return path


def refusal(form: ReviewForm, folder: Path, **answer: Any) -> str | None:
    rows = read_answers(form, saved(folder, "ann", {"id": "c1", "right": "no", **answer}))
    (row,) = checked_answers(form, rows, ITEMS)
    return row.get("failed")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"quality": 5, "begins": 0, "why": "no star", "shown": ["1a.jpg"], "hidden": "1b.jpg"}, None),
        ({"right": "No"}, None),
        ({"right": ""}, "right is empty"),
        ({"right": "nein"}, "right 'nein' is not known. Use one of yes, no"),
        ({"quality": 6}, "quality '6' is not a whole number from 1 to 5"),
        ({"quality": 0}, "quality '0' is not a whole number from 1 to 5"),
        ({"begins": "1.5"}, "begins '1.5' is not a whole number from 0 to 60"),
        ({"id": "c2", "begins": 3}, "begins is not asked of this clip"),
        ({"why": "bad"}, "why is too short: 1 different words, at least 2 are asked for"),
        ({"right": "yes", "why": "no star"}, "why is answered, and right is 'yes', which does without it"),
        ({"shown": ["2a.jpg"]}, "2a.jpg is not one of its frames"),
        ({"shown": ["1a.jpg"], "hidden": ["1a.jpg"]}, "an image is named twice"),
        ({"version": "0"}, "its version is not that of the clip now: look at it again"),
        ({"id": "c9"}, "there is no such clip"),
    ],
)
def test_each_kind_of_question_is_checked(
    form: ReviewForm, tmp_path: Path, answer: dict[str, Any], why: str | None
) -> None:
    assert refusal(form, tmp_path, **answer) == why


def test_answers_of_several_people_are_merged_and_compared(form: ReviewForm, tmp_path: Path) -> None:
    files = [
        saved(tmp_path, "ann", {"id": "c0", "right": "yes", "quality": 4}, {"id": "c1", "right": "no"}),
        saved(tmp_path, "bob", {"id": "c0", "right": "yes", "quality": 5}, {"id": "c1", "right": "no"}),
        saved(tmp_path, "", {"id": "c0", "right": "no", "why": "no star"}, {"id": "c1", "right": "?"}),
    ]
    made = import_answers(form, ITEMS, files)
    assert [row["failed"] for row in made.answers if "failed" in row] == [
        "right '?' is not known. Use one of yes, no"
    ]
    assert {row["annotator"] for row in made.answers} == {"ann", "bob", "nobody.json"}
    first, second, third = made.merged[:3]
    assert (first["id"], first["answers"], first["right"], first["quality"]) == ("c0", 3, "yes", 4.5)
    assert (first["why"], second["right"]) == ("no star", "no")
    assert (third["answers"], third["right"]) == (0, None)
    # Units: yes yes no; no no.
    assert made.alpha["right"] == pytest.approx(slow_alpha([[0, 1], [0, 1], [1, np.nan]], "nominal"))
    assert made.alpha["begins"] is None


def slow_alpha(values: Sequence[Sequence[float]], level: str) -> float:
    """Krippendorff's alpha as his book defines it: observed over expected disagreement, pair by pair."""
    units = [[one for one in unit if one == one] for unit in zip(*values, strict=True)]
    units = [unit for unit in units if len(unit) > 1]
    every = [one for unit in units for one in unit]
    ordered = sorted(set(every))

    def distance(one: float, two: float) -> float:
        if level == "nominal":
            return float(one != two)
        if level == "interval":
            return (one - two) ** 2
        low, high = sorted((one, two))
        between = sum(every.count(value) for value in ordered if low <= value <= high)
        return float(between - (every.count(one) + every.count(two)) / 2) ** 2

    observed = sum(sum(distance(*pair) for pair in permutations(unit, 2)) / (len(unit) - 1) for unit in units)
    expected = sum(distance(*pair) for pair in permutations(every, 2)) / (len(every) - 1)
    return 1 - observed / expected


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_alpha_is_that_of_the_definition(level: Any) -> None:
    pytest.importorskip("krippendorff", reason="needs the extra `construction`")
    draws = np.random.default_rng(7)
    for people in (2, 3, 5):
        values = draws.integers(1, 6, (people, 12)).astype(float)
        values[draws.random(values.shape) < 0.2] = np.nan
        assert krippendorff_alpha(values.tolist(), level) == pytest.approx(slow_alpha(values.tolist(), level))
    # The example of Krippendorff's "Computing Krippendorff's alpha-reliability" (2011), part C.
    gap = np.nan
    book = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, gap, gap, gap],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, gap, 3],
        [gap, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, gap],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, gap],
    ]
    printed = {"nominal": 0.743, "ordinal": 0.815, "interval": 0.849}
    assert krippendorff_alpha(book, level) == pytest.approx(printed[level], abs=0.0005)


def test_of_what_is_sorted_each_picture_is_compared(form: ReviewForm, tmp_path: Path) -> None:
    pytest.importorskip("krippendorff", reason="needs the extra `construction`")
    rows = [
        row
        for name, shown in (("ann", "1a.jpg"), ("bob", "1a.jpg 1b.jpg"))
        for row in read_answers(form, saved(tmp_path, name, {"id": "c1", "right": "no", "shown": shown}))
    ]
    good = checked_answers(form, rows, ITEMS)
    assert agreement(form, ITEMS, good)["frames"] == pytest.approx(slow_alpha([[0, 2], [0, 0]], "nominal"))


def test_a_table_of_a_spreadsheet_is_read_with_its_quoted_line_breaks(
    form: ReviewForm, tmp_path: Path
) -> None:
    path = tmp_path / "answers.csv"
    path.write_bytes(
        b"\xef\xbb\xbfid;version;right;why\r\n"
        b'c1;1;NO;"not a ""star"";\r\nit is a heart"\r\nc2;1;yes;\r\n\r\nc3;1;no;\'=odd one\r\n'
    )
    rows = checked_answers(form, read_answers(form, path), ITEMS)
    assert [(row["place"], row["right"], row["why"]) for row in rows] == [
        ("line 2", "no", 'not a "star"; it is a heart'),
        ("line 4", "yes", ""),
        ("line 6", "no", "=odd one"),
    ]
    assert not any("failed" in row for row in rows)


def test_a_file_that_is_taken_in_whole_names_every_fault_or_is_taken_in(
    form: ReviewForm, tmp_path: Path
) -> None:
    path = tmp_path / "answers.csv"
    path.write_text("id,version,right,quality\nc1,1,no,9\nc1,1,maybe,\nc7,1,no,\nc2,1,,\n")
    with pytest.raises(ConstructionError) as caught:
        accepted_answers(form, path, {item["id"]: item for item in ITEMS})
    said = str(caught.value)
    assert "4 faults in 4 rows" in said
    assert "line 2, clip 'c1': quality '9'" in said
    assert "line 3, clip 'c1': it is there twice" in said
    assert "line 4, clip 'c7': there is no such clip" in said
    assert "Fix: " in said


def test_answers_of_another_form_are_refused(form: ReviewForm, tmp_path: Path) -> None:
    path = saved(tmp_path, "ann", {"id": "c1"}, form="fisd")
    with pytest.raises(RecordError, match=r"it answers the form 'fisd', not 'judged'\. Fix: "):
        read_answers(form, path)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("kind: stars", "kind: smiles"),
        ("keys: [version]", "keys: [right]"),
        ("unless: {right:", "unless: {wrong:"),
        ("kind: sort, label: Frames, pictures: frames,", "kind: sort, label: Frames,"),
        (
            "kind: choice, label: Is the model right?, needed: true, choices: {yes: yes, no: no}",
            "kind: choice, label: a",
        ),
    ],
)
def test_a_form_that_asks_nothing_sensible_is_refused(tmp_path: Path, change: str, why: str) -> None:
    assert change in FORM
    (tmp_path / "form.yaml").write_text(FORM.replace(change, why))
    with pytest.raises(ConstructionError, match=r"form\.yaml: (?s:.)*Fix: "):
        load_form(tmp_path / "form.yaml")


@pytest.mark.parametrize("name", ["cirr", "fisd", "zerosight"])
def test_forms_of_the_package_are_pages(name: str) -> None:
    form = load_form(name)
    shown = [one.field for one in (*form.pictures, *form.texts)] + form.sorted_pictures
    item = {**dict.fromkeys(shown, ""), form.id: "</script><b>", **dict.fromkeys(form.keys, 1)}
    html = page_html(form, [item], title="<i>")
    assert "</script><b>" not in html
    assert "<h1>&lt;i&gt;</h1>" in html


def test_people_without_a_name_whose_browsers_chose_one_file_name_are_two(
    form: ReviewForm, tmp_path: Path
) -> None:
    files = []
    for place, right in (("ann", "yes"), ("bob", "no")):
        (tmp_path / place).mkdir()
        files.append(saved(tmp_path / place, "", {"id": "c0", "right": right}))
    review = import_answers(form, ITEMS, files)
    assert [(row["annotator"], row["right"]) for row in review.answers] == [
        ("ann/nobody.json", "yes"),
        ("bob/nobody.json", "no"),
    ]
    assert import_answers(form, ITEMS, files[:1]).answers[0]["annotator"] == "nobody.json"


def test_answers_to_unknown_items_keep_their_ids(form: ReviewForm, tmp_path: Path) -> None:
    path = saved(tmp_path, "ann", {"id": "c8", "right": "yes"}, {"id": "c9", "right": "no"})
    assert [row["id"] for row in import_answers(form, ITEMS, [path]).answers] == ["c8", "c9"]
    assert all(row["failed"] for row in import_answers(form, ITEMS, [path]).answers)


def test_a_field_of_an_item_is_no_answer_of_a_person(form: ReviewForm) -> None:
    assert page_html(form, [{**ITEMS[0], "why": "it was named so"}], title="") == page_html(
        form, ITEMS[:1], title=""
    )


@pytest.mark.parametrize(
    ("items", "why"),
    [([ITEMS[0], ITEMS[0]], "item 2: id 'c0' is that of an earlier item"), ([{"version": "1"}], "no 'id'")],
)
def test_items_whose_answers_could_not_be_told_apart_make_no_page(
    form: ReviewForm, items: Sequence[dict[str, Any]], why: str
) -> None:
    with pytest.raises(ConstructionError, match=why):
        page_html(form, items, title="")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "field: clip,",
            "field: clp,",
            "shows the field 'clp', which no item has. Did you mean 'clip'? Items",
        ),
        (
            "field: judge",
            "field: model",
            "the field 'model', which no item has. Items have clip, frames, id,",
        ),
        (
            "pictures: frames",
            "pictures: frame",
            "the field 'frame', which no item has. Did you mean 'frames'?",
        ),
    ],
)
def test_a_form_that_shows_what_no_item_has_makes_no_page(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    (tmp_path / "judged.yaml").write_text(FORM.replace(old, new))
    with pytest.raises(ConstructionError, match=said.replace("?", "[?]")):
        page_html(load_form(tmp_path / "judged.yaml"), ITEMS, title="")


def test_a_picture_that_answers_cannot_name_is_refused(form: ReviewForm) -> None:
    with pytest.raises(ConstructionError, match="item 1: answers cannot name the picture"):
        page_html(form, [ITEMS[0] | {"frames": ['a "b" c.jpg']}], title="")


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"shown": ["red car.jpg", "a.jpg"]}, None),
        ({"shown": 'a.jpg "red  car.jpg"'}, None),
        ({"shown": 'a.jpg "red car.jpg"', "hidden": '"red car.jpg"'}, "an image is named twice"),
        ({"shown": "red car.jpg"}, "red is not one of its frames"),
    ],
)
def test_pictures_whose_names_have_blanks_are_sorted(
    form: ReviewForm, tmp_path: Path, said: dict[str, Any], why: str | None
) -> None:
    items = [ITEMS[0] | {"frames": ["a.jpg", "red car.jpg"]}]
    files = [saved(tmp_path, "ann", {"id": "c0", "right": "no", **said})]
    review = import_answers(form, items, files)
    assert review.answers[0].get("failed") == why
    assert sorted(review.merged[0]["shown"]) == ([] if why else ["a.jpg", "red car.jpg"])
