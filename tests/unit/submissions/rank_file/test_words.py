"""Fields that are lists of words: spellings, free texts of earlier files, and what contradicts itself."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cir_datasets import caption_rule_names, registry
from submissions import validate
from submissions.rank_file.findings import Findings
from submissions.rank_file.model import Method
from submissions.rank_file.texts import LISTED_FIELDS, is_oracle, words_of
from submissions.validation import check_words

SHAPES = registry.spec("shapes/val")
BASE = "openai/clip-vit-base-patch32 (clip, float32)"


def codes(method: dict[str, Any], benchmark: str = "cirr/val") -> list[str]:
    spec = registry.spec(benchmark)
    named = Method.model_validate({"name": "x", **method})
    findings = Findings("run.json", spec.id)
    check_words(named.to_dict(), spec, findings)
    return [finding.code for finding in findings.listed()]


@pytest.mark.parametrize("field", LISTED_FIELDS)
def test_every_word_stands_for_itself_and_is_in_the_schema(field: str) -> None:
    schema = Method.model_json_schema()["properties"][field]["anyOf"][0]["enum"]
    for word in words_of(field):
        if word != "other":
            assert getattr(Method(name="x", **{field: word}), field) == word
            assert word in schema


def test_the_words_of_the_caption_rule_are_the_names_of_the_rules() -> None:
    assert list(words_of("caption_rule")) == [*caption_rule_names(), "other"]


@pytest.mark.parametrize(
    ("field", "written", "kept"),
    [
        ("backbone", " vit-l/14 ", "CLIP ViT-L/14"),
        ("backbone", "OpenAI CLIP ViT-L/14", "CLIP ViT-L/14"),
        ("backbone", "clip vit-l/14; head 12ab", "CLIP ViT-L/14; head 12ab"),
        ("backbone", BASE, f"CLIP ViT-B/32 ({BASE})"),
        ("backbone", "ResNet of my own", "other: ResNet of my own"),
        ("backbone", "ViT-L/14-like", "other: ViT-L/14-like"),
        ("caption_rule", "Strip-Capitalize-And", "strip_capitalize_and"),
        ("caption_rule", "five captions, the longest", "other: five captions, the longest"),
        ("oracle", "GT captions", "target_captions"),
        ("oracle", "No", "none"),
        ("oracle", "Other:  clicks", "other: clicks"),
        ("oracle", "", ""),
    ],
)
def test_a_known_spelling_becomes_its_word_and_any_other_text_is_kept(
    field: str, written: str, kept: str
) -> None:
    method = Method.model_validate({"name": "x", field: written})
    assert getattr(method, field) == kept
    assert Method.model_validate(method.to_dict()) == method


def test_the_longest_free_text_of_an_earlier_file_stays_whole() -> None:
    method = Method(name="x", backbone="y" * 300)
    assert method.backbone == "other: " + "y" * 300
    assert Method.model_validate(method.to_dict()) == method


def test_other_needs_a_text_behind_it() -> None:
    for written in ("other", "Other:", "other : "):
        with pytest.raises(ValueError, match='"other" needs a text behind it'):
            Method(name="x", oracle=written)


def test_a_free_text_is_a_warning_and_a_word_is_none() -> None:
    def warned(**fields: str) -> list[tuple[str, str]]:
        document = {"format": "cir-rank-file", "format_version": 1, "benchmark": "shapes/val"}
        document |= {"benchmark_version": SHAPES.card.version, "method": {"name": "x", **fields}}
        report = validate(json.dumps(document | {"rankings": {}}).encode(), name="run.json")
        assert "bad-metadata" not in [finding.code for finding in report.findings]
        return [
            (finding.severity, finding.message)
            for finding in report.findings
            if finding.code == "unlisted-word"
        ]

    assert warned(backbone="ViT-B/32", caption_rule="other: mine", oracle="none") == []
    (found,) = warned(caption_rule="singel {benchmark}")
    assert found[0] == "warning"
    assert found[1].startswith('method.caption_rule is "singel {benchmark}", which its list does not have')


@pytest.mark.parametrize(
    "spelled",
    ["CIRR", "cirr/train", "CIRR training split", "cirr_train", "CIRRtrain", "ＣＩＲＲ", "CC3M and CIRR"],
)
def test_zero_shot_and_trained_on_the_own_data_contradict(spelled: str) -> None:
    assert codes({"zero_shot": True, "trained_on": ["CC3M", spelled]}) == ["contradiction"]
    assert codes({"zero_shot": False, "trained_on": [spelled]}) == []
    assert codes({"trained_on": [spelled]}) == []


@pytest.mark.parametrize(
    ("benchmark", "spelled", "own"),
    [
        ("fashioniq/dress_val", "Fashion IQ", True),
        ("fashioniq/dress_val", "fashion-iq (shirt)", True),
        ("fashioniq/dress_val", "FIQ", True),
        ("fashioniq/dress_val", "Fashion200k", False),
        ("circled/cirr_val", "CIRR", True),
        ("circled/cirr_val", "CIRCLED train", True),
        ("shapes/val", "shapes/train", True),
        ("shapes/val", "3D shapes", False),
        ("cirr/val", "FashionIQ", False),
        ("cirr/val", "LaSCo, not CIRR", False),
        ("cirr/val", "CIRR-like triplets", False),
        ("cirr/val", "NLVR2", False),
        *((f"{name}/{next(iter(registry.card(name).configs))}", name, True) for name in registry.names()),
    ],
)
def test_a_benchmark_knows_the_spellings_of_its_own_data(benchmark: str, spelled: str, own: bool) -> None:
    assert (codes({"zero_shot": True, "trained_on": [spelled]}, benchmark) == ["contradiction"]) is own


@pytest.mark.parametrize(
    ("field", "text", "oracle"),
    [
        ("name", "CIReVL (oracle captions)", True),
        ("name", "Sum + GT captions", True),
        ("name", "Sum of target captions", True),
        ("caption_rule", "caption of the target image", True),
        ("backbone", "BLIP on ground-truth captions", True),
        ("text_fields", ["relative_caption", "target_caption"], True),
        ("name", "Oracle-free", False),
        ("name", "Sum without oracle captions", False),
        ("name", "Target captions written by GPT-4", False),
        ("name", "Predicted target caption", False),
        ("name", "Target-aware fusion", False),
        ("text_fields", ["relative_caption", "captions"], False),
    ],
)
def test_an_oracle_says_so_and_no_other_method_is_taken_for_one(field: str, text: Any, oracle: bool) -> None:
    expected = ["contradiction"] if oracle else []
    assert codes({field: text}) == expected
    assert not oracle or codes({field: text, "oracle": "none"}) == expected
    assert not oracle or codes({field: text, "oracle": "target_captions"}) == []


def test_what_counts_as_an_oracle() -> None:
    said = ["", "none", "no", "none (asked as users ask)", "target_captions", "other: clicks"]
    methods = [Method(name="x", oracle=text).to_dict() for text in said]
    assert [is_oracle(method) for method in methods] == [False, False, False, False, True, True]
