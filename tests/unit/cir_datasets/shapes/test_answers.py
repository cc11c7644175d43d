"""The questions of shapes have the answers that its rows name, read by a reader of the tests' own."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import pytest
import shapes_reader
from shapes_reader import Pictures, Statement, edits, fulfils
from slowly import some

from cir_datasets.shapes import Scene, Thing, split

STEP = {"val": 1, "train": 6}
"""Of the larger split every sixth question: each is searched for in 22,392 pictures."""
EACH = pytest.mark.parametrize("part", ["val", *some(("train",), ())])
READINGS = pytest.mark.parametrize("at_least", [False, True], ids=["a-is-one", "a-is-one-or-more"])

RED = Thing("triangle", "red", "small", "plain", (4,))
STAR = Thing("star", "white", "large", "plain", (0, 1))


@cache
def gallery(part: str) -> Pictures:
    found = split(part)
    return Pictures(dict(zip(found.image_ids, found.scenes, strict=True)))


@pytest.mark.parametrize(
    ("caption", "said"),
    [
        ("no red triangles", [Statement(number=0, shape="triangle", colour="red")]),
        (
            "two small dotted orange crosses on a sandy background, seen at a tilt",
            [
                Statement(view="tilted"),
                Statement(number=2, size="small", texture="dotted", colour="orange", shape="cross"),
                Statement(background="sandy"),
            ],
        ),
        (
            "a star on the right, an orange heart at the top left, a snowy background and also one moon",
            [
                Statement(number=1, article=True, shape="star", cell=5),
                Statement(number=1, article=True, colour="orange", shape="heart", cell=0),
                Statement(background="snowy"),
                Statement(number=1, shape="moon"),
            ],
        ),
        (
            "a plain cross in the middle, a moon at the bottom, seen from far away",
            [
                Statement(view="far"),
                Statement(number=1, article=True, texture="plain", shape="cross", cell=4),
                Statement(number=1, article=True, shape="moon", cell=7),
            ],
        ),
        ("a stony background", [Statement(background="stony")]),
        ("seen straight on", [Statement(view="straight")]),
    ],
)
def test_the_reader_understands_what_a_caption_states(caption: str, said: list[Statement]) -> None:
    assert list(shapes_reader.statements(caption)) == said


@pytest.mark.parametrize("caption", ["a pink elephant", "a large", "some stars"])
def test_the_reader_knows_what_it_does_not_understand(caption: str) -> None:
    with pytest.raises(ValueError, match="not understood"):
        shapes_reader.statements(caption)


def test_the_reader_finds_what_answers_as_well() -> None:
    """The two ways in which shapes called a right answer a hard negative, before version 2."""
    reference, target = Scene((RED, STAR), "sandy"), Scene((STAR,), "sandy")
    blue = Scene((Thing("triangle", "blue", "small", "plain", (4,)), STAR), "sandy")
    square = Scene((Thing("square", "red", "small", "plain", (4,)), STAR), "sandy")
    further = Scene((Thing("square", "red", "large", "plain", (4,)), STAR), "sandy")
    pictures = Pictures(
        {"target": target, "blue": blue, "square": square, "further": further, "same": reference}
    )
    assert pictures.fulfilling("no red triangle") == {"target", "blue", "square", "further"}
    assert pictures.as_near("no red triangle", reference, target) == {"target", "blue", "square"}
    assert edits("no red triangle", reference, further) == 2

    striped = Scene((STAR, Thing("triangle", "red", "small", "striped", (4,))), "sandy")
    two = Scene((STAR, Thing("triangle", "red", "small", "plain", (4, 5))), "sandy")
    pictures = Pictures({"plain": reference, "striped": striped, "two": two})
    assert pictures.as_near("also a small red triangle", target, reference) == {"plain", "striped"}
    assert pictures.as_near("also a small plain red triangle", target, reference) == {"plain"}
    loose = pictures.as_near("also a small plain red triangle", target, reference, at_least=True)
    assert loose == {"plain", "two"}


def test_edits_count_layout_where_it_is_named_alone() -> None:
    moved = Scene((Thing("triangle", "red", "small", "plain", (8,)), STAR), "sandy", "far")
    reference = Scene((RED, STAR), "sandy")
    assert edits("a snowy background", reference, moved) == 0
    assert edits("a triangle at the bottom right, seen from far away", reference, moved) == 2
    assert fulfils("a triangle at the bottom right, seen from far away", moved)
    assert not fulfils("a triangle at the bottom right, seen from far away", reference)


@pytest.mark.slow
@EACH
@READINGS
def test_positives_fulfil_their_caption_and_no_reference_does(part: str, at_least: bool) -> None:
    scenes = gallery(part).scenes
    for row in split(part).queries:
        caption, reference = row["relative_caption"], scenes[row["reference_image_id"]]
        assert not fulfils(caption, reference, at_least=at_least), row
        for image in row["positive_image_ids"]:
            assert fulfils(caption, scenes[image], at_least=at_least), (row, image)
            assert edits(caption, reference, scenes[image]) == len(row["changes"]), (row, image)


@EACH
@READINGS
def test_nothing_but_positives_fulfils_a_caption_in_as_few_edits(part: str, at_least: bool) -> None:
    pictures = gallery(part)
    for row in split(part).queries[:: STEP[part]]:
        reference, target = (pictures.scenes[row[f"{name}_image_id"]] for name in ("reference", "target"))
        found = pictures.as_near(row["relative_caption"], reference, target, at_least=at_least)
        assert sorted(found) == row["positive_image_ids"], (row, found)


@EACH
@READINGS
def test_ground_truth_fulfils_every_turn_and_no_reference_its_own(part: str, at_least: bool) -> None:
    scenes = gallery(part).scenes
    for row in split(part).sessions:
        truths = [scenes[image] for image in row["ground_truth_ids"]]
        for turn in row["turns"]:
            caption = turn["relative_caption"]
            assert not fulfils(caption, scenes[turn["reference_image_id"]], at_least=at_least), row
            assert all(fulfils(caption, truth, at_least=at_least) for truth in truths), (row, turn)


@EACH
def test_the_next_reference_has_what_was_said_and_is_nearer(part: str) -> None:
    scenes = gallery(part).scenes
    for row in split(part).sessions:
        truth = scenes[row["ground_truth_ids"][0]]
        for turn, following in pairwise(row["turns"]):
            caption = turn["relative_caption"]
            reference, nearer = (scenes[each["reference_image_id"]] for each in (turn, following))
            assert fulfils(caption, nearer), (row, turn)
            assert edits(caption, nearer, truth) < edits(caption, reference, truth), (row, turn)


@EACH
@READINGS
def test_nothing_but_ground_truth_fulfils_the_last_turn_in_as_few_edits(part: str, at_least: bool) -> None:
    pictures = gallery(part)
    for row in split(part).sessions:
        last = row["turns"][-1]
        reference = pictures.scenes[last["reference_image_id"]]
        truth = pictures.scenes[row["ground_truth_ids"][0]]
        found = pictures.as_near(last["relative_caption"], reference, truth, at_least=at_least)
        assert sorted(found) == row["ground_truth_ids"], (row, found)
