"""The oracle of shapes says what is true, and knows no more than it is shown."""

from __future__ import annotations

import functools
import io
from pathlib import Path
from typing import NoReturn

import pytest
from PIL import Image

import cir_datasets
from cir_datasets import shapes
from cir_datasets.construction.fisd.generators import ShapesGenerator
from cir_datasets.shapes import Draws, describe, random_scene, read, scene, split
from cir_datasets.shapes.language import is_rival
from cir_datasets.shapes.queries import aspects
from cir_metrics.errors import CallError, UnknownNameError
from submissions.errors import LanguageError
from submissions.language import load_language
from submissions.language.forms import Edit, HardNegative, Instruction
from submissions.language.loading import PairedLanguage
from submissions.language.oracle import OracleLanguage
from submissions.language.oracle.reading import scene_of
from submissions.language.prompts import load_prompts
from submissions.language.protocol import Item, Language, Picture
from submissions.language.server import ServerLanguage

ORACLE = OracleLanguage()
STAR = "a large blue star on a sandy background"


def unopened() -> NoReturn:
    raise AssertionError("the oracle looks at scene graphs, not at pixels")


def scenes(count: int) -> list[shapes.Scene]:
    return [random_scene(Draws("oracle", number)) for number in range(count)]


def test_the_oracle_is_a_language_backend() -> None:
    assert isinstance(ORACLE, Language)
    assert load_language("oracle").identity == ORACLE.identity
    assert ORACLE.identity.text() == "oracle (scene graphs of shapes)"


def test_captions_are_complete_descriptions_by_id() -> None:
    ids = ["val-000003", "val-000001", "val-000009", "val-000003"]
    captions = ORACLE.caption([Picture(image, unopened) for image in ids])
    assert captions == [describe(scene(image)) for image in ids]
    assert captions[0] == captions[3]


def test_unknown_pictures_are_named_together() -> None:
    plain = functools.partial(Image.new, "RGB", (8, 8))
    pictures = [Picture("val-000001", unopened), Picture("dev-1", plain), Picture("val-999999", plain)]
    with pytest.raises(LanguageError, match="2 of 3 questions have no answer") as caught:
        ORACLE.caption(pictures)
    assert [about for about, _ in caught.value.failed] == ["dev-1", "val-999999"]
    assert caught.value.answers == (describe(scene("val-000001")), None, None)


def test_a_drawn_picture_is_known_by_the_scene_in_its_file() -> None:
    drawn = ShapesGenerator().draw([STAR], 3)[0]
    opened = Image.open(io.BytesIO(drawn)).convert("RGB")
    assert ORACLE.caption([Picture("mine/1.png", lambda: opened)]) == [STAR]
    opened.info["scene"] = "[]"
    with pytest.raises(LanguageError, match="is not a scene of shapes"):
        ORACLE.caption([Picture("mine/1.png", lambda: opened)])


@pytest.mark.parametrize("aspect", ["addition", "negation", "change", "background", "complex"])
def test_edits_are_of_their_aspect_alone_and_the_words_lead_there(aspect: str) -> None:
    made = 0
    for number in range(40):
        before = random_scene(Draws("edits", number))
        try:
            (edit,) = ORACLE.ask(f"edit_{aspect}", [Item({"caption": describe(before)})], Edit)
        except LanguageError:
            continue
        made += 1
        after = scene_of(edit.target_caption)
        kinds = aspects(shapes.changes(before, after, viewpoint=True))
        assert kinds == [aspect] or (aspect == "complex" and "complex" in kinds)
        assert shapes.merge(before, edit.relative_caption).meaning == after.meaning
    assert made >= 15


@pytest.mark.parametrize("like", ["the target", "the request"])
def test_hard_negatives_are_close_and_wrong(like: str) -> None:
    for number in range(30):
        before = random_scene(Draws("negatives", number))
        (edit,) = ORACLE.ask("edit_change", [Item({"caption": describe(before)})], Edit)
        words = {
            "reference": describe(before),
            "change": edit.relative_caption,
            "target": edit.target_caption,
            "like": like,
        }
        (denied,) = ORACLE.ask("hard_negative", [Item(words)], HardNegative)
        negative, target = scene_of(denied.negative_caption), scene_of(edit.target_caption)
        assert negative.meaning not in (before.meaning, target.meaning)
        assert not is_rival(negative, before, edit.relative_caption, target)
        if like == "the target":
            assert shapes.distance(negative.meaning, target.meaning) == 1


def without_places(caption: str) -> str:
    for words in sorted(shapes.language.PLACES, key=len, reverse=True):
        caption = caption.replace(f" {words}", "")
    return caption


def test_merges_describe_what_the_benchmark_itself_makes_of_every_query() -> None:
    """Beside the world's own reader, which merges scenes: here words are merged with words."""
    rows = split("val").queries
    references = [scene(row["reference_image_id"]) for row in rows]
    changes = [row["relative_caption"] for row in rows]
    merged = ORACLE.merge([describe(one) for one in references], changes)
    for said, reference, change in zip(merged, references, changes, strict=True):
        assert without_places(said) == describe(shapes.merge(reference, change))
        assert (without_places(said) != said) == any(mention.cell is not None for mention in read(change)[0])


def test_merges_describe_what_every_turn_of_the_sessions_asks_for() -> None:
    turns = [turn for row in split("val").sessions for turn in row["turns"]]
    references = [scene(turn["reference_image_id"]) for turn in turns]
    changes = [turn["relative_caption"] for turn in turns]
    merged = ORACLE.merge([describe(one) for one in references], changes)
    wanted = [describe(shapes.merge(one, two)) for one, two in zip(references, changes, strict=True)]
    assert [without_places(said) for said in merged] == wanted


@pytest.mark.parametrize(
    ("caption", "change", "merged"),
    [
        (STAR, "", STAR),
        ("A large blue star on a sandy background.", "A red star.", "a large red star on a sandy background"),
        (STAR, "no star", "a sandy background"),
        (STAR, "no heart", STAR),
        (STAR, "also two small moons", "a large blue star and two small moons on a sandy background"),
        (STAR, "three stars", "three large blue stars on a sandy background"),
        (STAR, "a blue moon", "a large blue moon on a sandy background"),
        (STAR, "a striped star", "a large striped blue star on a sandy background"),
        (STAR, "a plain star", STAR),
        (STAR, "a star at the top", "a large blue star at the top on a sandy background"),
        (STAR, "seen from far away", f"{STAR}, seen from far away"),
        (f"{STAR}, seen from far away", "seen straight on", STAR),
        (STAR, "an orange moon", "a large blue star and an orange moon on a sandy background"),
        ("a star", "a brick background", "a star on a brick background"),
        ("a star", "a small star", "a small star"),
        ("a star on the left", "two stars", "two stars"),
        ("a sandy background", "a star", "a star on a sandy background"),
    ],
)
def test_merging_makes_the_change_to_the_caption(caption: str, change: str, merged: str) -> None:
    assert ORACLE.merge([caption], [change]) == [merged]


def test_what_is_not_in_the_language_of_shapes_is_listed() -> None:
    with pytest.raises(LanguageError, match="'a pink elephant' is not in the language of shapes") as caught:
        ORACLE.merge([STAR, STAR], ["a pink elephant", "a red star"])
    assert caught.value.answers == (None, "a large red star on a sandy background")
    with pytest.raises(LanguageError, match="1 captions and 2 changes"):
        ORACLE.merge([STAR], ["a red star", "a moon"])


def test_differences_of_captions_lead_from_one_to_the_other() -> None:
    """Save for the few pairs in which things exchange their shapes in a ring, as in the world itself."""
    firsts, seconds = scenes(400)[::2], scenes(400)[1::2]
    captions = [describe(one) for one in firsts], [describe(one) for one in seconds]
    merged = ORACLE.merge(captions[0], ORACLE.difference(*captions))
    judged = ORACLE.judge(
        "same", [{"first": a, "second": b} for a, b in zip(merged, captions[1], strict=True)]
    )
    assert judged.count("no") <= 2


def test_the_oracle_says_in_words_what_differs_and_refuses_what_it_cannot_know() -> None:
    assert ORACLE.difference([STAR], ["a small blue star on a brick background"]) == [
        "a small star on a brick background"
    ]
    with pytest.raises(LanguageError, match="does not say the size of the star"):
        ORACLE.difference(["a blue star on a sandy background"], [STAR])
    with pytest.raises(LanguageError, match="does not say the background"):
        ORACLE.difference(["a large blue star"], [STAR])


def test_positives_fit_and_hard_negatives_do_not() -> None:
    fits, misses = [], []
    for row in split("val").queries[:60]:
        asked = {"caption": describe(scene(row["reference_image_id"])), "change": row["relative_caption"]}

        def item(image: str, asked: dict[str, str] = asked) -> dict[str, str]:
            return {**asked, "target": describe(scene(image), positions=True)}

        fits += [item(image) for image in row["positive_image_ids"]]
        misses += [item(image) for image in row["negative_image_ids"]]
    assert len(misses) > len(fits) > 60
    assert set(ORACLE.judge("fits", fits)) == {"yes"}
    assert set(ORACLE.judge("fits", misses)) == {"no"}


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (STAR, STAR, "yes"),
        (STAR, f"{STAR}, seen from far away", "yes"),
        (STAR, "a large plain blue star at the top on a sandy background", "yes"),
        (STAR, "a large blue star", "no"),
        (STAR, "two large blue stars on a sandy background", "no"),
        ("a red star and a blue moon", "a blue moon and a red star", "yes"),
        ("a red star and a red star", "a red star", "no"),
    ],
)
def test_captions_are_the_same_wherever_things_stand_and_whatever_the_viewpoint(
    first: str, second: str, same: str
) -> None:
    assert ORACLE.judge("same", [{"first": first, "second": second}]) == [same]


def test_places_count_where_change_and_target_name_them() -> None:
    asked = {"caption": STAR, "change": "a star at the top"}
    targets = [STAR, "a large blue star at the top on a sandy background"]
    targets.append("a large blue star on the left on a sandy background")
    assert ORACLE.judge("fits", [{**asked, "target": target} for target in targets]) == ["yes", "yes", "no"]


def test_other_judgements_and_missing_words_are_refused() -> None:
    with pytest.raises(LanguageError, match=r"judges by same and fits alone, not by 'Is \{a\} nice\?'"):
        ORACLE.judge("Is {a} nice?", [{"a": "b"}])
    with pytest.raises(LanguageError, match="an item has no 'second'"):
        ORACLE.judge("same", [{"first": STAR}])


def test_of_two_backends_the_first_captions_and_the_second_writes() -> None:
    class Parrot(OracleLanguage):
        def caption(self, images: object) -> list[str]:
            raise AssertionError("the one that writes is shown no pictures")

        def merge(self, captions: object, changes: object) -> list[str]:
            return ["merged"]

    both = PairedLanguage(OracleLanguage(), Parrot())
    assert isinstance(both, Language)
    assert both.caption([Picture("val-000001", unopened)]) == [describe(scene("val-000001"))]
    assert both.merge([STAR], [""]) == ["merged"]
    assert both.difference([STAR], [STAR]) == ORACLE.difference([STAR], [STAR])
    assert both.judge("same", [{"first": STAR, "second": STAR}]) == ["yes"]
    assert isinstance(load_language("oracle+oracle"), PairedLanguage)
    assert both.identity.text() == (
        "oracle (scene graphs of shapes; words by oracle (scene graphs of shapes))"
    )


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("orakel", UnknownNameError, "no language backend 'orakel'. Did you mean 'oracle'?"),
        ("gpt-4o-mini", UnknownNameError, "Fix: use oracle .shapes., openai:MODEL or transformers:NAME"),
        ("openai", CallError, "'openai': no model is named. Fix: write openai:MODEL"),
        ("transformers:", CallError, "'transformers:': no model is named"),
        ("oracle:big", CallError, "'oracle' has no models"),
        ("oracle+oracle+oracle", CallError, "two backends at most"),
    ],
)
def test_unknown_and_incomplete_names_are_refused(name: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        load_language(name)


def test_options_that_a_backend_lacks_are_refused() -> None:
    with pytest.raises(CallError, match=r"'oracle': no option 'prompts'\. There are noise, seed\."):
        load_language("oracle", prompts="folder")
    with pytest.raises(CallError, match=r"no option 'timeot'\. Did you mean 'timeout'\?"):
        load_language("openai:tiny", timeot=3)


def test_options_in_a_name_come_before_those_of_the_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path))
    folder = tmp_path / "a,b"
    folder.mkdir()
    (folder / "caption.md").write_text("What is this?")
    name = f"oracle+openai:org/tiny,parameters={{seed: 7, top_p: 0.5}},max_tokens=9,prompts={folder}"
    both = load_language(name, max_tokens=5)
    assert isinstance(both, PairedLanguage)
    writes = both.writes.identity
    assert writes.model == "org/tiny"
    assert writes.settings == "max_tokens 9, seed 7, temperature 0, top_p 0.5"
    assert writes.prompts == load_prompts(folder).sha256
    uncached = load_language("openai:tiny,cache=false,timeout=2.5")
    assert isinstance(uncached, ServerLanguage)
    assert uncached.cache is None
    assert load_language("openai:tiny", max_tokens=5).identity.settings == "max_tokens 5, temperature 0"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("openai:tiny,max_token=3", r"no option 'max_token'\. Did you mean 'max_tokens'\?"),
        ("openai:tiny,key=sk-1", "no option 'key'"),
        ("oracle,prompts=x", r"no option 'prompts'\. There are noise"),
        ("openai:tiny,parameters={a", r"parameters='\{a' is not a mapping such as \{seed: 7\}"),
        ("openai:tiny,parameters=7", "parameters='7' is not a mapping"),
        ("openai:tiny,concurrency=true", "concurrency='true' is not a number"),
        ("openai:tiny,concurrency=0", "concurrency=0; it is above 0"),
        ("openai:tiny,concurrency=many", "concurrency='many' is not a number"),
    ],
)
def test_options_in_a_name_that_mean_nothing(name: str, words: str) -> None:
    with pytest.raises(CallError, match=words):
        load_language(name)


def asked_of(oracle: OracleLanguage, number: int = 400) -> list[str]:
    """What leads from one picture to another, by an oracle."""
    pairs = [(f"val-{2 * place:06d}", f"val-{2 * place + 1:06d}") for place in range(number)]
    items = [Item({}, tuple(Picture(image, unopened) for image in pair)) for pair in pairs]
    return [answer.instruction for answer in oracle.ask("candidate", items, Instruction)]


@pytest.mark.parametrize("noise", [0.1, 0.3, 0.5])
def test_noise_is_the_share_of_questions_about_another_picture(noise: float) -> None:
    clean, noisy = asked_of(ORACLE), asked_of(OracleLanguage(noise=noise, seed=3))
    share = sum(one != other for one, other in zip(clean, noisy, strict=True)) / len(clean)
    # Two standard deviations of a share of 400.
    assert share == pytest.approx(noise, abs=2 * (noise * (1 - noise) / 400) ** 0.5)
    assert noisy == asked_of(OracleLanguage(noise=noise, seed=3))
    assert noisy != asked_of(OracleLanguage(noise=noise, seed=4))


def test_noise_does_not_depend_on_what_else_is_asked() -> None:
    noisy = OracleLanguage(noise=0.5)
    assert asked_of(noisy, 40) == asked_of(noisy, 400)[:40]


def test_captions_are_noisy_too_and_words_alone_are_not() -> None:
    noisy = OracleLanguage(noise=1.0)
    pictures = [Picture(f"val-{place:06d}", unopened) for place in range(20)]
    captions = noisy.caption(pictures)
    assert all(one != other for one, other in zip(captions, ORACLE.caption(pictures), strict=True))
    assert all(read(caption) for caption in captions), "well put"
    assert noisy.merge([STAR], ["a red star"]) == ORACLE.merge([STAR], ["a red star"])


def test_noise_is_named_and_in_range() -> None:
    named = load_language("oracle,noise=0.3,seed=7")
    assert named.identity.text() == "oracle (scene graphs of shapes, noise 0.3, seed 7)"
    with pytest.raises(CallError, match=r"noise=1\.5; it is a share from 0 to 1"):
        load_language("oracle,noise=1.5")
    assert OracleLanguage(noise=0).identity == ORACLE.identity


def test_the_way_back_from_every_query_of_shapes_is_written() -> None:
    """By the reverse prompt, and from each reference to its positives by the candidates' prompt."""
    rows = cir_datasets.load("shapes/val").rows()
    items = [
        Item({"change": row["relative_caption"]}, (Picture(row["reference_image_id"], unopened),))
        for row in rows
    ]
    assert all(answer.instruction for answer in ORACLE.ask("reverse", items, Instruction))
    assert all(answer.instruction for answer in OracleLanguage(noise=1.0).ask("reverse", items, Instruction))
    same = Picture("val-000001", unopened)
    (nothing,) = ORACLE.ask("candidate", [Item({}, (same, same))], Instruction)
    assert nothing.instruction == describe(scene("val-000001"))
