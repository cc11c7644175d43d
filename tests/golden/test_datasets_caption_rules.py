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
    assert caption_rule(rule).texts(GOLDEN["captions"][case]) == texts


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
