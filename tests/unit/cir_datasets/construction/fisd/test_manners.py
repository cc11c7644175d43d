"""What captions are good for, numbers in words, and which captions are dealt to which aspect."""

from __future__ import annotations

from pathlib import Path

import pytest
from fisd_runs import shapes_captions
from hypothesis import given
from hypothesis import strategies as st

from cir_datasets.construction.fisd.captions import CaptionFile, SourceCaption, read_captions
from cir_datasets.construction.fisd.dealing import deal
from cir_datasets.construction.fisd.manners import (
    English,
    Manner,
    ShapesLanguage,
    default_nouns,
    english_plural,
    read_nouns,
)
from cir_datasets.construction.fisd.options import ASPECTS
from cir_datasets.errors import ConstructionError
from cir_datasets.shapes import Draws
from cir_datasets.shapes.layout import scenes_of

WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
ENGLISH = English(default_nouns())
SHAPES = ShapesLanguage()


def file_of(*captions: str) -> CaptionFile:
    return CaptionFile("a.txt", "0", tuple(SourceCaption(caption, "a.txt") for caption in captions))


@given(st.sampled_from(default_nouns()), st.integers(1, 10))
def test_one_is_singular_and_all_others_are_plural(noun: tuple[str, str], number: int) -> None:
    singular, plural = noun
    expected = f"{WORDS[number - 1]} {singular if number == 1 else plural}"
    assert ENGLISH.counted(singular, number) == f"a photo of {expected}"


@given(st.integers(1, 10), st.integers(1, 10), st.integers(0, 500))
def test_a_request_names_the_new_number_and_no_other_but_the_old(before: int, after: int, seed: int) -> None:
    said = ENGLISH.number_request("dog", before, after, Draws("test", seed))
    # "one" stands in other words too: look at whole words.
    numbers = [word.strip(".,").lower() for word in said.split()]
    named = [word for word in numbers if word in WORDS]
    assert WORDS[after - 1] in named
    assert set(named) <= {WORDS[after - 1], WORDS[before - 1]}
    assert said[0].isupper()
    assert said.endswith(".")
    assert "{" not in said
    assert "one objects" not in said


def test_requests_with_the_new_number_alone_and_with_both_are_both_drawn() -> None:
    said = {ENGLISH.number_request("dog", 4, 7, Draws("test", seed)) for seed in range(300)}
    assert sum("four" in each.lower() for each in said) == 6
    assert sum("four" not in each.lower() for each in said) == 6


@given(st.sampled_from(["small plain red star sandy", "large dotted blue cross snowy"]), st.integers(1, 4))
def test_scenes_hold_the_number_that_their_caption_says(subject: str, number: int) -> None:
    (scene,) = scenes_of([SHAPES.counted(subject, number)], 5)
    assert [len(thing.cells) for thing in scene.things] == [number]
    assert " ".join(scene.things[0].look[:4][i] for i in (2, 3, 1, 0)) in subject


@pytest.mark.parametrize(
    ("noun", "plural"),
    [("dog", "dogs"), ("box", "boxes"), ("fly", "flies"), ("key", "keys"), ("glass", "glasses")],
)
def test_regular_plurals(noun: str, plural: str) -> None:
    assert english_plural(noun) == plural


def test_nouns_of_ones_own_with_irregular_plurals(tmp_path: Path) -> None:
    file = tmp_path / "nouns.txt"
    file.write_text("dog\n\ngoose: geese\n")
    assert read_nouns(file) == (("dog", "dogs"), ("goose", "geese"))


@pytest.mark.parametrize(
    ("text", "why"),
    [("", "it holds no noun"), ("dog\ndog\n", "it holds 'dog' twice"), (": geese\n", "names no noun")],
)
def test_broken_nouns_explain_themselves(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "nouns.txt").write_text(text)
    with pytest.raises(ConstructionError, match=rf"nouns\.txt: .*{why}.*Fix: "):
        read_nouns(tmp_path / "nouns.txt")


@pytest.mark.parametrize(
    ("aspect", "caption", "lacks"),
    [
        ("negation", "A dog runs fast.", "it names 1 of at least 2 things"),
        ("negation", "A dog chases a ball.", None),
        ("background", "A dog and a cat sleep.", "it does not say where something is"),
        ("background", "A dog sleeps on a sofa.", None),
        ("addition", "A dog.", "it is not between 3 and 77 words long"),
        ("complex", "dog " * 78, "it is not between 3 and 77 words long"),
    ],
)
def test_english_captions_are_filtered_by_what_an_aspect_needs(
    aspect: str, caption: str, lacks: str | None
) -> None:
    pytest.importorskip("HanTa", reason="needs the extra `statistics`")
    assert ENGLISH.lacks(aspect, caption) == lacks


@pytest.mark.parametrize(
    ("aspect", "caption", "lacks"),
    [
        ("negation", "a small red star on a sandy background", "its scene has one thing, and none can go"),
        ("addition", "four small red stars on a sandy background", "its scene is full"),
        ("addition", "three small red stars on a sandy background", None),
        ("change", "a red star on a sandy background", "it does not say the size of the star"),
        ("background", "a small red star", "it does not say the background"),
        ("change", "a dog on a sofa", "'a dog on a sofa' is not in the language of shapes."),
    ],
)
def test_captions_of_shapes_are_filtered_by_what_an_aspect_needs(
    aspect: str, caption: str, lacks: str | None
) -> None:
    found = SHAPES.lacks(aspect, caption)
    assert found == lacks or (lacks is not None and found is not None and lacks in found)


def test_no_caption_serves_two_triplets_and_counts_add_up(tmp_path: Path) -> None:
    file = read_captions(shapes_captions(tmp_path, 80))
    double = CaptionFile("b.txt", "1", file.sources[:30])
    files = dict.fromkeys(ASPECTS, (file, double))
    dealt = deal(files, SHAPES, 12, seed=3)
    meanings = [SHAPES.meaning(row["caption"]) for row in dealt.rows]
    assert len(set(meanings)) == len(meanings)
    for count in dealt.counts:
        parts = [count[name] for name in ("repeats", "unsuitable", "taken", "left")]
        assert sum(parts) == count["read"]
        assert count["taken"] == sum(row["aspect"] == count["aspect"] for row in dealt.rows)
        assert sum(count["why"].values()) == count["unsuitable"]
    assert any(count["repeats"] for count in dealt.counts)


def test_a_caption_that_a_template_writes_is_no_source_of_another_aspect() -> None:
    captions = [SHAPES.counted("small plain red star sandy", number) for number in (1, 2, 3, 4)]
    file = CaptionFile("a.txt", "0", tuple(SourceCaption(each, each) for each in captions))
    dealt = deal({"cardinality": (file,), "background": (file,)}, SHAPES, 4, seed=0)
    (counted, other) = dealt.rows
    left = {1, 2, 3, 4} - set(counted["numbers"])
    assert other["caption"] in [captions[number - 1] for number in left]
    # A file of cardinality alone is larger, so that the other aspect chooses first.
    dealt = deal({"cardinality": (file, file), "background": (file,)}, SHAPES, 4, seed=0)
    assert [row["aspect"] for row in dealt.rows] == ["background"] * 4
    assert dealt.counts[0]["repeats"] == 1


@given(st.integers(0, 50), st.integers(1, 240))
def test_triplets_of_one_noun_share_no_number(seed: int, number: int) -> None:
    dealt = deal({"cardinality": []}, ENGLISH, number, seed)
    seen: dict[str, list[int]] = {}
    for row in dealt.rows:
        assert len(set(row["numbers"])) == 3
        seen.setdefault(row["noun"], []).extend(row["numbers"])
    assert len(dealt.rows) == min(number, 3 * len(default_nouns()))
    for numbers in seen.values():
        assert len(set(numbers)) == len(numbers)
        assert set(numbers) <= set(range(1, 11))


@pytest.mark.parametrize("limit", [1, 7, 12])
def test_a_limit_is_spread_over_the_aspects(tmp_path: Path, limit: int) -> None:
    files = dict.fromkeys(ASPECTS, (read_captions(shapes_captions(tmp_path)),))
    rows = deal(files, SHAPES, 10, 0, limit).rows
    numbers = [sum(row["aspect"] == aspect for row in rows) for aspect in ASPECTS]
    assert sum(numbers) == limit
    assert max(numbers) - min(numbers) <= 1


def test_a_complex_edit_of_a_file_needs_more_than_25_words() -> None:
    short, long = " ".join(["word"] * 25), " ".join(["word"] * 26)
    sources = tuple(
        SourceCaption(f"A {noun} sleeps on a sofa.", noun, words, f"A {noun} runs.")
        for noun, words in (("dog", short), ("cat", long))
    )
    pytest.importorskip("HanTa", reason="needs the extra `statistics`")
    dealt = deal({"complex": [CaptionFile("hq.jsonl", "0", sources)]}, ENGLISH, 5, 0)
    assert [row["source"] for row in dealt.rows] == ["cat"]
    (count,) = dealt.counts
    assert count["why"] == {"its relative caption has no more than 25 words": 1}


@pytest.mark.parametrize("manner", [ENGLISH, SHAPES])
def test_what_a_manner_is_goes_into_the_settings(manner: Manner) -> None:
    import orjson

    assert orjson.loads(orjson.dumps(manner.identity)) == manner.identity
