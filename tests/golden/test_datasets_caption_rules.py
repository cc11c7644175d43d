"""The strings of every caption rule: a name never changes its strings, because scores depend on them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cir_datasets import caption_rule, caption_rule_names
from cir_datasets.errors import CaptionRuleError
from cir_metrics.errors import UnknownNameError

GOLDEN = json.loads(Path(__file__).with_name("datasets_caption_rules.json").read_text(encoding="utf-8"))
CASES = [(rule, case, texts) for rule, cases in GOLDEN["expected"].items() for case, texts in cases.items()]


@pytest.mark.parametrize(("rule", "case", "texts"), CASES, ids=[f"{rule}-{case}" for rule, case, _ in CASES])
def test_a_rule_gives_the_stored_strings(rule: str, case: str, texts: list[str]) -> None:
    spelling = GOLDEN["spelling"] if caption_rule(rule).spelled else None
    assert caption_rule(rule, spelling=spelling).texts(GOLDEN["captions"][case]) == texts


def test_every_rule_has_its_strings() -> None:
    assert set(GOLDEN["expected"]) == set(caption_rule_names())
    several = {"two", "second_empty", "three"}
    for name, cases in GOLDEN["expected"].items():
        refused = several if caption_rule(name).take == "only" else set()
        assert set(cases) == set(GOLDEN["captions"]) - refused, name


@pytest.mark.parametrize("case", ["two", "second_empty", "three"])
def test_the_rule_single_refuses_several_captions(case: str) -> None:
    with pytest.raises(CaptionRuleError, match=r"'single' is for one caption.*Fix: .*strip_capitalize_and"):
        caption_rule("single").texts(GOLDEN["captions"][case])


def test_an_unknown_rule_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"no caption rule 'reverse'\. Did you mean 'reversed'\?"):
        caption_rule("reverse")


def test_a_dictionary_is_read_from_a_file_and_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "corrections.json"
    file.write_text(json.dumps({"sleves": "sleeves"}))
    assert caption_rule("lower_spelled_and", spelling=file).texts(["V-Neck; sleves"]) == ["v neck sleeves"]
    with pytest.raises(CaptionRuleError, match=r"by a dictionary, and none was given\. Fix: .*spelling=FILE"):
        caption_rule("lower_spelled_and").texts(["is red"])
    with pytest.raises(CaptionRuleError, match=r"'comma' corrects no words\. Fix: "):
        caption_rule("comma", spelling=file)
    file.write_text('["sleves"]')
    for wrong in (file, tmp_path / "none.json", {"sleves": 1}):
        with pytest.raises(CaptionRuleError, match=r"spelling=.* Fix: give a JSON file "):
            caption_rule("lower_spelled_and", spelling=wrong)  # type: ignore[arg-type]
