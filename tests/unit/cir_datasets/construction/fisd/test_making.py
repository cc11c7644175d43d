"""A whole run on shapes: what pairs differ in, what is dropped and why, resuming, faults of backends."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from fisd_runs import OPTIONS, content, oracle_words, run, shapes_captions
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from cir_datasets.construction.backends import Failed, Question
from cir_datasets.construction.fisd.drawing import picture_seed
from cir_datasets.construction.fisd.generators import ShapesGenerator
from cir_datasets.construction.fisd.making import MadeFisd
from cir_datasets.construction.fisd.manners import ShapesLanguage
from cir_datasets.construction.fisd.options import ASPECTS, FisdOptions
from cir_datasets.construction.fisd.outcome import write_outcome, write_page
from cir_datasets.construction.fisd.review import write_review
from cir_datasets.construction.workspace import BENCHMARK
from cir_datasets.errors import ConstructionError
from cir_datasets.registry.folder_card import PICTURES
from cir_datasets.shapes import Draws, Scene, changes, describe, merge, random_scene
from cir_datasets.shapes.language import is_rival
from cir_datasets.shapes.layout import SCENE_TEXT, scene_of_text, scene_text, scenes_of
from cir_datasets.shapes.queries import aspects
from cir_metrics.errors import CallError


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> MadeFisd:
    folder = tmp_path_factory.mktemp("fisd")
    return run(folder / "out", shapes_captions(folder))


def scene_in(made: MadeFisd, image: str) -> Scene:
    """The scene that a picture's file holds."""
    with Image.open(made.workspace.folder / BENCHMARK / PICTURES / image) as picture:
        return scene_of_text(picture.info[SCENE_TEXT])


def test_there_are_as_many_queries_of_each_aspect_as_wanted(made: MadeFisd) -> None:
    found = [query["aspects"] for query in made.queries]
    assert found == [[aspect] for aspect in ASPECTS for _ in range(OPTIONS.per_aspect)]


def test_reference_and_target_differ_in_the_querys_aspect_and_in_nothing_else(made: MadeFisd) -> None:
    for query in made.queries:
        reference, target = (scene_in(made, query[f"{role}_image_id"]) for role in ("reference", "target"))
        kinds = aspects(changes(reference, target, viewpoint=True))
        (aspect,) = query["aspects"]
        assert (kinds == [aspect]) if aspect != "complex" else ("complex" in kinds)
        assert reference.grain == target.grain
        assert merge(reference, query["relative_caption"]).meaning == target.meaning


def test_what_is_not_changed_stands_where_it_stood(made: MadeFisd) -> None:
    for query in made.queries:
        reference, target = (scene_in(made, query[f"{role}_image_id"]) for role in ("reference", "target"))
        before = {thing.look: thing.cells for thing in reference.things}
        for thing in target.things:
            assert thing.cells == before.get(thing.look, thing.cells)


def test_a_hard_negative_is_neither_the_target_nor_as_good_an_answer(made: MadeFisd) -> None:
    for query in made.queries:
        reference, target = (scene_in(made, query[f"{role}_image_id"]) for role in ("reference", "target"))
        (negative,) = (scene_in(made, image) for image in query["negative_image_ids"])
        assert len({scene.meaning for scene in (reference, target, negative)}) == 3
        assert not is_rival(negative, reference, query["relative_caption"], target)


def test_ids_do_not_say_which_picture_is_the_target(made: MadeFisd) -> None:
    places = {query["target_image_id"].removesuffix(".png")[-1] for query in made.queries}
    assert places == {"1", "2", "3"}


def test_every_triplet_ends_as_a_query_or_with_a_reason(made: MadeFisd) -> None:
    rows = made.workspace.rows("benchmark", list)
    assert [row["id"] for row in rows] == [row["id"] for row in made.workspace.rows("captions", list)]
    assert all((row["query"] is None) == bool(row.get("failed")) for row in rows)
    assert len(rows) == len(ASPECTS) * (OPTIONS.per_aspect + OPTIONS.spare)


def test_what_a_run_leaves_is_a_benchmark_a_page_and_a_review(tmp_path: Path) -> None:
    from cir_datasets.construction.folder_check import check_folder

    made = run(tmp_path / "mine", shapes_captions(tmp_path))
    folder = write_outcome(made, name="mine", title="Mine", settings={"seed": 0})
    assert check_folder(folder).ok
    page = write_page(made, tmp_path / "mine" / "report.html", "Mine").read_text()
    write_review(tmp_path / "mine", made.triplets, 4, "Mine: review")
    for text in (page, (tmp_path / "mine" / "review.html").read_text()):
        assert "http://" not in text.replace("http://www.w3.org", "")
        assert str(tmp_path) not in text
    before = content(tmp_path / "mine")
    again = run(tmp_path / "mine", tmp_path / "captions.txt")
    write_outcome(again, name="mine", title="Mine", settings={"seed": 0})
    write_page(again, tmp_path / "mine" / "report.html", "Mine")
    assert content(tmp_path / "mine") == before


def test_galleries_may_be_the_aspects_own(made: MadeFisd, tmp_path: Path) -> None:
    other = dataclasses.replace(made, workspace=run(tmp_path / "own", shapes_captions(tmp_path)).workspace)
    folder = write_outcome(other, name="own", title="Own", galleries="aspect", settings={})
    for aspect in ASPECTS:
        images = (folder / f"{aspect}_images.txt").read_text().splitlines()
        assert len(images) == 3 * OPTIONS.per_aspect
        assert all(image.startswith(f"{aspect}/") for image in images)


def test_other_galleries_name_and_title_make_the_result_anew(tmp_path: Path) -> None:
    made = run(tmp_path / "mine", shapes_captions(tmp_path))
    write_outcome(made, name="mine", title="Mine", settings={})
    whole = content(tmp_path / "mine")
    folder = write_outcome(made, name="other", title="Other", galleries="aspect", settings={})
    assert not (folder / "queries.jsonl").exists()
    assert "name: other\ntitle: Other\n" in (folder / "card.yaml").read_text()
    write_outcome(made, name="mine", title="Mine", settings={})
    assert content(tmp_path / "mine") == whole


class Faulty:
    """The oracle, but some questions fail, and it counts what it is asked."""

    def __init__(self, fails: str) -> None:
        self._words, self._fails, self.asked = oracle_words(), fails, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._words, name)

    def ask(self, prompt: str, questions: Sequence[Question]) -> list[dict[str, Any] | Failed]:
        self.asked += len(questions)
        answers = self._words.ask(prompt, questions)
        if prompt == self._fails:
            answers[0] = Failed("it refuses to answer")
        return answers


@pytest.mark.parametrize(
    ("prompt", "stage"), [("edit_change", "edits"), ("edit_complex", "edits"), ("hard_negative", "negatives")]
)
def test_an_answer_that_fails_costs_one_triplet_and_is_kept_with_its_reason(
    tmp_path: Path, prompt: str, stage: str
) -> None:
    made = run(tmp_path / "out", shapes_captions(tmp_path), words=Faulty(prompt))
    reasons = [each.failed for each in made.triplets if each.failed and not each.failed.startswith("spare")]
    assert reasons == [f"{stage}: it refuses to answer"]
    assert len(made.queries) == len(ASPECTS) * OPTIONS.per_aspect, "a spare one takes its place"


class Copying:
    """A backend that edits nothing, and denies nothing."""

    identity: Mapping[str, Any] = {}

    def __init__(self, negative: str) -> None:
        self._negative = negative

    def ask(self, prompt: str, questions: Sequence[Question]) -> list[dict[str, Any] | Failed]:
        if prompt == "hard_negative":
            return [{"negative_caption": each.words[self._negative]} for each in questions]
        return [
            {
                "relative_caption": "a snowy background",
                "target_caption": each.words["caption"].replace("sandy", "snowy"),
            }
            for each in questions
        ]


@pytest.mark.parametrize("copied", ["target", "reference"])
def test_edits_and_negatives_that_say_the_same_are_of_no_use(tmp_path: Path, copied: str) -> None:
    file = tmp_path / "two.txt"
    file.write_text("a small red star on a sandy background\na small red star on a grassy background\n")
    options = FisdOptions(per_aspect=2, spare=0)
    from cir_datasets.construction.fisd.captions import read_captions
    from cir_datasets.construction.fisd.making import make_fisd

    made = make_fisd(
        tmp_path / "out",
        {"background": [read_captions(file)]},
        manner=ShapesLanguage(),
        words=Copying(copied),  # type: ignore[arg-type]
        generator=ShapesGenerator(),
        options=options,
    )
    assert {each.failed for each in made.triplets} == {
        "edits: unchanged: the target's caption is that of the reference",
        f"negatives: the hard negative's caption is that of the {copied}",
    }
    with pytest.raises(ConstructionError, match="no triplet is left"):
        write_outcome(made, name="none", title="None", settings={})


def test_a_triplet_whose_target_another_picture_shows_is_dropped(tmp_path: Path) -> None:
    from cir_datasets.construction.fisd.captions import read_captions
    from cir_datasets.construction.fisd.making import make_fisd

    file = tmp_path / "edits.jsonl"
    file.write_text(
        '{"caption": "a small red star on a sandy background", "relative_caption": "a snowy background",'
        ' "target_caption": "a small red star on a snowy background"}\n'
        '{"caption": "a small red star on a grassy background", "relative_caption": "a snowy background",'
        ' "target_caption": "a small red star on a snowy background"}\n'
    )
    made = make_fisd(
        tmp_path / "out",
        {"background": [read_captions(file)]},
        manner=ShapesLanguage(),
        words=oracle_words(),
        generator=ShapesGenerator(),
    )
    assert [bool(each.failed) for each in made.triplets] == [False, True]
    assert (made.triplets[1].failed or "").startswith("ambiguous: a picture of background_000 would answer")


def test_without_a_language_backend_it_is_said_what_to_add(tmp_path: Path) -> None:
    with pytest.raises(
        ConstructionError, match=r"edits of captions need a language backend\. Fix: add --language"
    ):
        run(tmp_path / "out", shapes_captions(tmp_path), words=None)


def test_a_changed_picture_is_noticed(tmp_path: Path) -> None:
    made = run(tmp_path / "out", shapes_captions(tmp_path))
    path = tmp_path / "out" / BENCHMARK / PICTURES / made.queries[0]["target_image_id"]
    path.write_bytes(b"other")
    with pytest.raises(ConstructionError, match="it is not the picture that was drawn"):
        run(tmp_path / "out", tmp_path / "captions.txt")


@pytest.mark.parametrize("name", ["per_aspect", "spare", "limit", "chunk", "seed"])
def test_numbers_out_of_range_are_refused(name: str) -> None:
    with pytest.raises(CallError, match=f"{name}=-1 is out of range. Fix: use a whole number, "):
        FisdOptions(**{name: -1})


def test_other_settings_are_named(tmp_path: Path) -> None:
    captions = shapes_captions(tmp_path)
    run(tmp_path / "out", captions)
    with pytest.raises(ConstructionError, match=r"other settings \(seed 0, not 1\)"):
        run(tmp_path / "out", captions, options=dataclasses.replace(OPTIONS, seed=1))


@given(st.integers(0, 2**40), st.integers(0, 5))
def test_seeds_of_pictures_fit_any_generator(seed: int, attempt: int) -> None:
    assert 0 <= picture_seed(seed, "change_001", attempt) < 2**31
    assert picture_seed(seed, "change_001", attempt) != picture_seed(seed, "change_001", attempt + 1)


@given(st.integers(0, 10_000), st.integers(0, 2**31 - 1))
def test_a_scene_comes_back_from_its_caption_but_for_its_places(number: int, seed: int) -> None:
    scene = random_scene(Draws("layouts", number))
    (laid,) = scenes_of([describe(scene)], seed)
    assert (laid.meaning, laid.viewpoint) == (scene.meaning, scene.viewpoint)
    assert scene_of_text(scene_text(laid)) == laid
    (placed,) = scenes_of([describe(scene, positions=True)], seed)
    cells = {thing.shape: thing.cells for thing in placed.things}
    assert all(cells[thing.shape] == thing.cells for thing in scene.things if len(thing.cells) == 1)


class FailsOnce(ShapesGenerator):
    """Draws all but one pair."""

    def draw(self, captions: Sequence[str], seed: int) -> list[bytes]:
        if seed == picture_seed(OPTIONS.seed, "change_001", 0):
            raise ConstructionError("its filter keeps the picture back. Fix: other words.")
        return super().draw(captions, seed)


def test_a_pair_that_cannot_be_drawn_costs_its_triplet_alone(tmp_path: Path) -> None:
    made = run(tmp_path / "out", shapes_captions(tmp_path), generator=FailsOnce())
    reasons = [each.failed for each in made.triplets if each.failed and not each.failed.startswith("spare")]
    assert reasons == ["pictures: its filter keeps the picture back."]
    assert len(made.queries) == len(ASPECTS) * OPTIONS.per_aspect, "a spare one takes its place"
