"""What an edit must leave and change, by aspect: valid ones pass, each mutation fails by its rule."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from fisd_runs import run, shapes_captions
from hypothesis import given, settings
from hypothesis import strategies as st

from cir_datasets.common.paths import data_home
from cir_datasets.construction.backends import Failed, Question
from cir_datasets.construction.fisd.captions import CaptionFile, SourceCaption
from cir_datasets.construction.fisd.edit_checks import edit_fault
from cir_datasets.construction.fisd.generators import ShapesGenerator
from cir_datasets.construction.fisd.making import MadeFisd, make_fisd
from cir_datasets.construction.fisd.manners import English, ShapesLanguage, default_nouns
from cir_datasets.construction.fisd.options import ASPECTS, CARDINALITY, FisdOptions
from cir_datasets.construction.fisd.outcome import refusals
from cir_datasets.shapes import Draws

pytest.importorskip("HanTa", reason="needs the extra `statistics`")

ENGLISH = English(default_nouns())
SUBJECTS = ("woman", "farmer", "child", "dog")
THINGS = ("hat", "umbrella", "guitar", "kite", "tennis racket")
PLACES = ("window", "river", "castle", "railway station")
NEW = ("zebra", "bicycle", "piano")
LONG = "Let it be another animal, and let it stand in heavy rain behind a fence, " + "with more of all " * 4
NONSENSE = ("a red circle", "a red circle and a blue cross")


def code(aspect: str, before: str, request: str, after: str) -> str | None:
    fault = edit_fault(aspect, before, request, after)
    return None if fault is None else fault.code


caption = st.tuples(st.sampled_from(SUBJECTS), st.sampled_from(THINGS), st.sampled_from(PLACES))
quick = settings(max_examples=30)


@quick
@given(caption, st.sampled_from(NEW))
def test_an_addition_keeps_all_words_and_adds_a_thing_that_is_asked_for(
    words: tuple[str, str, str], new: str
) -> None:
    subject, thing, place = words
    before, request = f"A {subject} with a {thing} at a {place}", f"Add a {new}."
    assert code("addition", before, request, f"{before} and two small {new}s") is None
    assert code("addition", before, request, f"{new}s are at a {place}: a {subject} has a {thing}") is None
    assert code("addition", before, request, f"A {subject} at a {place} and a {new}") == "word_lost"
    assert code("addition", before, request, f"A {new} with a {thing} at a {place}") == "word_lost"
    assert (
        code("addition", before, request, f"The {subject} with a {thing} at the {place}") == "nothing_added"
    )
    assert code("addition", before, "Add a lamp.", f"{before} and a {new}") == "not_requested"
    assert code("addition", before, f"Remove the {new}.", f"{before} and a {new}") == "opposite"
    many = f"{before}, a {new}, a lamp, an owl and a ladder"
    assert code("addition", before, request, many) == "too_much_added"
    assert code("addition", before, *NONSENSE) == "word_lost"


@quick
@given(caption, st.sampled_from(NEW))
def test_a_negation_takes_what_is_asked_for_and_nothing_else(words: tuple[str, str, str], new: str) -> None:
    subject, thing, place = words
    before, request = f"A {subject} holding a {thing} at a {place}", f"Leave out the {thing}s."
    assert code("negation", before, request, f"A {subject} at a {place}") is None
    assert (
        code("negation", before, request, f"A {subject} without a {thing} at a {place}") == "nothing_removed"
    )
    assert code("negation", before, request, f"A {subject} with a {new} at a {place}") == "something_added"
    assert code("negation", before, f"Add a {thing}.", f"A {subject} at a {place}") == "opposite"
    assert code("negation", before, request, f"A {subject}") == "not_requested"
    assert code("negation", before, request, f"A {thing} at a {place}") == "not_requested"
    assert code("negation", f"{before} with a {new}", f"No {new}.", before) is None
    assert code("negation", before, "Remove all of it.", "nothing") in ("something_added", "not_requested")
    assert code("negation", before, *NONSENSE) == "something_added"


@quick
@given(caption, st.sampled_from(NEW))
def test_a_change_replaces_one_thing_or_its_look(words: tuple[str, str, str], new: str) -> None:
    subject, thing, place = words
    before, request = f"Two {subject}s and a red {thing} at a {place}", f"Swap the {thing} for a {new}."
    after = f"Two {subject}s and a red {new} at a {place}"
    assert code("change", before, request, after) is None
    assert code("change", before, "Make it blue.", before.replace("red", "blue")) is None
    assert code("change", before, "Make it blue.", after) == "not_requested"
    assert code("change", before, request, after.replace("Two", "Three")) == "other_number"
    assert code("change", before, request, f"Two {subject}s at a {place}") == "nothing_added"
    assert code("change", before, request, f"{before} and a {new}") == "nothing_removed"
    assert code("change", before, f"a {new}", f"Two red {new}s on a moon") == "too_much_lost"
    many = f"{after} with a lamp, with an owl and with a ladder"
    assert code("change", before, request, many) == "too_much_added"
    assert code("change", f"A {subject} swims", *NONSENSE) == "nothing_remains"


@quick
@given(caption, st.sampled_from(NEW))
def test_a_background_is_another_one_behind_the_same_foreground(
    words: tuple[str, str, str], new: str
) -> None:
    subject, thing, place = words
    before, request = f"A small {subject} and a {thing} at a {place}", "Show it on a snowy mountain."
    assert code("background", before, request, f"A small {subject} and a {thing} on a snowy mountain") is None
    assert (
        code("background", before, "Snow, please.", f"A small {subject} and a {thing} in a snowy field")
        is None
    )
    assert (
        code(
            "background",
            before,
            "Blur the background.",
            f"A small {subject} and a {thing} at a blurred {place}",
        )
        is None
    )
    assert code("background", before, request, f"A small {new} on a snowy mountain") == "foreground_lost"
    assert (
        code("background", before, request, f"A {subject} and a {thing} on a mountain") == "foreground_lost"
    )
    assert code("background", before, f"Add a {new}.", f"{before} and a {new}") == "setting_kept"
    assert (
        code("background", before, request, f"The small {subject} and the {thing} in a {place}")
        == "nothing_changed"
    )
    assert (
        code("background", before, f"a {new}", f"A small {subject} and a {thing} on a beach")
        == "not_requested"
    )
    assert code("background", before, *NONSENSE) == "foreground_lost"


@quick
@given(caption)
def test_a_complex_edit_changes_much_and_leaves_something(words: tuple[str, str, str]) -> None:
    subject, thing, place = words
    before = f"A {subject} with a {thing} at a {place}"
    assert code("complex", before, LONG, f"A zebra with a {thing} behind a fence in heavy rain") is None
    assert code("complex", before, LONG, f"A {subject} with a {thing} at a wet {place}") == "nothing_changed"
    assert code("complex", before, LONG, f"A {subject}, a cactus, a spoon and an owl") == "not_requested"
    assert code("complex", before, LONG, "A zebra behind a fence in heavy rain") == "nothing_remains"


@quick
@given(
    st.sampled_from(default_nouns()),
    st.integers(1, 10),
    st.integers(1, 10),
    st.sampled_from(["ours", "paper"]),
)
def test_another_number_of_the_same_things(
    noun: tuple[str, str], one: int, other: int, templates: str
) -> None:
    english = English(default_nouns(), templates=templates)
    request = english.number_request(noun[0], one, other, Draws("test", one))
    before, after = (english.counted(noun[0], number) for number in (one, other))
    fault = english.edit_fault(CARDINALITY, before, request, after)
    assert (None if fault is None else fault.code) == (None if one != other else "same_number")
    assert edit_fault(CARDINALITY, before, request, f"{after} and a pear") is not None
    lost = edit_fault(CARDINALITY, before, request, "a photo of a real-life image of four pears")
    assert lost is not None
    assert lost.code == "word_lost"


def test_the_papers_templates_are_a_set_beside_ours() -> None:
    ours, paper = (English(default_nouns(), templates=name) for name in ("ours", "paper"))
    assert ours.identity["requests"] != paper.identity["requests"]
    assert paper.counted("dog", 4) == "a real-life image of four dogs"
    said = {paper.number_request("dog", 4, 1, Draws("test", seed)) for seed in range(400)}
    assert len(said) == 18
    assert sum("from four to one" in each for each in said) == 9
    assert {"Shift the object count from four to one.", "Update the object tally to one."} <= said


class Speaker:
    """Answers of a list, each question the next one of its caption; hard negatives are of another animal."""

    def __init__(self, *answers: tuple[str, str] | Failed) -> None:
        self._answers = list(answers)
        self.retries: list[str] = []

    identity: Mapping[str, Any] = {}

    def ask(self, prompt: str, questions: Sequence[Question]) -> list[Any]:
        if prompt == "hard_negative":
            return [{"negative_caption": "a small red star on a wooden background"} for _ in questions]
        found = []
        for question in questions:
            self.retries.append(question.words["retry"])
            answer = self._answers[min(len(self.retries), len(self._answers)) - 1]
            if isinstance(answer, Failed):
                found.append(answer)
            else:
                found.append(dict(zip(("relative_caption", "target_caption"), answer, strict=True)))
        return found


BEFORE = "a small red star on a sandy background"
SNOWY = ("a snowy background", "a small red star on a snowy background")
BLUE = ("a blue star", "a small blue star on a sandy background")
DOG = ("a dog", "a dog on a sofa")


def made_of(folder: Path, *answers: tuple[str, str] | Failed) -> tuple[MadeFisd, Speaker]:
    """A run of one caption and the aspect `background`."""
    speaker = Speaker(*answers)
    file = CaptionFile("a.txt", "0", (SourceCaption(BEFORE, "a.txt, line 1"),))
    options = FisdOptions(per_aspect=1, spare=0)
    made = make_fisd(
        folder,
        {"background": [file]},
        manner=ShapesLanguage(),
        words=speaker,  # type: ignore[arg-type]
        generator=ShapesGenerator(),
        options=options,
    )
    return made, speaker


def refused_in(made: MadeFisd) -> list[tuple[str, ...]]:
    """The rows of the table of refusals."""
    table = refusals(made.workspace)
    assert table is not None
    return [tuple(cell.text for cell in cells) for cells in table.rows]


def test_a_refused_edit_is_asked_for_again_with_its_reason_and_stays_in_the_row(tmp_path: Path) -> None:
    made, speaker = made_of(tmp_path / "out", BLUE, DOG, SNOWY)
    assert len(made.queries) == 1
    first, second, third = speaker.retries
    assert first == ""
    assert "a blue star -> a small blue star on a sandy background (its change is change)" in second
    assert second.splitlines()[1] in third
    assert "a dog -> a dog on a sofa (" in third
    (row,) = made.workspace.rows("edits", tuple)
    assert [each["code"] for each in row["refused"]] == ["other_aspect", "no_scene"]
    assert refused_in(made) == [
        ("background", "no_scene", "1", "0"),
        ("background", "other_aspect", "1", "0"),
    ]


@pytest.mark.parametrize(
    ("answers", "asked", "failed", "lost"),
    [
        ([BLUE], 3, "edits: other_aspect: its change is change", 1),
        ([BLUE, Failed("it refuses to answer")], 2, "edits: it refuses to answer", 0),
        ([("a snowy background", BEFORE)], 3, "edits: unchanged: ", 1),
        ([("a green star", SNOWY[1])], 3, "edits: not_requested: ", 1),
    ],
)
def test_after_the_last_attempt_the_triplet_fails_with_the_rule_that_it_breaks(
    tmp_path: Path, answers: list[Any], asked: int, failed: str, lost: int
) -> None:
    made, speaker = made_of(tmp_path / "out", *answers)
    assert len(speaker.retries) == asked
    assert [each.failed is not None and each.failed.startswith(failed) for each in made.triplets] == [True]
    assert sum(int(cells[3]) for cells in refused_in(made)) == lost


def test_the_oracle_breaks_no_rule(tmp_path: Path) -> None:
    made = run(tmp_path / "out", shapes_captions(tmp_path), options=FisdOptions(per_aspect=8, spare=0))
    assert refusals(made.workspace) is None
    assert len(made.queries) == 8 * len(ASPECTS)


class Nonsense:
    """The same words to every question, as a stub says them."""

    identity: Mapping[str, Any] = {}

    def ask(self, prompt: str, questions: Sequence[Question]) -> list[dict[str, str]]:
        names = ("negative_caption",) if prompt == "hard_negative" else ("relative_caption", "target_caption")
        return [dict(zip(names, NONSENSE, strict=False)) for _ in questions]


def test_nonsense_ends_with_nothing_kept_and_reasons_counted(tmp_path: Path) -> None:
    sources = tuple(
        SourceCaption(f"A {one} with a {thing} at a {place}", "a.txt")
        for one in SUBJECTS
        for thing in THINGS
        for place in PLACES
    )
    files = {aspect: [CaptionFile("a.txt", "0", sources)] for aspect in ASPECTS[1:]}
    made = make_fisd(
        tmp_path / "out",
        files,
        manner=ENGLISH,
        words=Nonsense(),  # type: ignore[arg-type]
        generator=ShapesGenerator(),
        options=FisdOptions(per_aspect=3, spare=0),
    )
    assert made.queries == ()
    assert {cells[0] for cells in refused_in(made)} == set(ASPECTS[1:])
    assert [sum(int(cells[place]) for cells in refused_in(made)) for place in (2, 3)] == [45, 15]


@pytest.mark.slow
@pytest.mark.real_data
def test_of_the_captions_of_circo_few_good_edits_are_refused_and_no_others_caption_is_taken() -> None:
    home = data_home()
    if home is None or not (home / "CIRCO").is_dir():
        pytest.skip("needs CIRCO's own files below CIR_DATA_HOME")
    files = [home / "CIRCO" / "annotations" / f"{split}.json" for split in ("val", "test")]
    concepts = {row["shared_concept"] for file in files for row in json.loads(file.read_text("utf-8"))}
    captions = [each for each in sorted(concepts) if ENGLISH.lacks("addition", each) is None]
    others = [*captions[len(captions) // 2 :], *captions[: len(captions) // 2]]
    assert len(captions) > 800
    good = [code("addition", each, "Put a zebra there.", f"{each} next to a zebra") for each in captions]
    assert sum(found is not None for found in good) <= 0.005 * len(captions)
    replaced = [each for each in captions if " man " in each]
    good = [code("change", each, "Let it be a robot.", each.replace("man", "robot", 1)) for each in replaced]
    assert sum(found is not None for found in good) <= 0.05 * len(replaced)
    for aspect in ("addition", "negation", "background", "change"):
        pairs = zip(captions, others, strict=True)
        taken = [one for one, two in pairs if code(aspect, one, "Put a zebra there.", two) is None]
        assert taken == []
