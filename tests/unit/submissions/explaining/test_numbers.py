"""`cir explain --numbers`: three verdicts and no other, by rules that no published row contradicts."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict

import pytest
from cir_here import cir
from says import refusal

import submissions
from cir_datasets.registry.published import published
from cir_metrics.errors import CallError, UnknownNameError
from submissions.explaining.numbers import explain_numbers

WORDS = {"fits", "does not fit", "cannot be told"}


def verdicts(values: object, benchmark: str = "cirr/val") -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for each in explain_numbers(values, benchmark).verdicts:  # type: ignore[arg-type]
        found[each.rule].append(each.verdict)
    return found


UNTOLD = ["cannot be told"] * 2


@pytest.mark.parametrize(
    ("values", "benchmark", "rule", "expected"),
    [
        ("R@1=0.8,R@5=..,R@10=39.8", "cirr/val", "reference", ["fits", "does not fit"]),
        ("R@1=15.21,R@10=58.10", "cirr/val", "reference", UNTOLD),
        ("R@10=39.8", "cirr/val", "reference", UNTOLD),
        ("R@1=0.02%,R@10=0.24%", "cirr/val", "reference", UNTOLD),  # chance, where ratios say nothing
        ("R@5=0.22%,R@50=2.2%", "cirr/val", "chance", ["fits", "cannot be told"]),
        ("R@10=0.24,R@50=1.20", "cirr/test1", "chance", ["does not fit", "does not fit"]),
        ("R@10=39.8", "cirr/val", "chance", ["does not fit", "cannot be told"]),
        ("R@10=39.8", "circo/val", "divisor", UNTOLD),
        ("Rs@1=20.3,Rs@2=40.2", "cirr/val", "subset-chance", ["fits"]),
        ("R_sub@1=60", "cirr/val", "subset-chance", ["does not fit"]),
        ("Recall@5=41,R@10=40", "cirr/val", "order", ["does not fit"]),
        ("R@5=39,R@10=40", "cirr/val", "order", ["fits"]),
        ("R@1=30,Rs@1=20", "cirr/val", "subset", ["does not fit"]),
        ("R@1=20,Rs@1=30", "cirr/val", "subset", ["fits"]),
        ("mAP@5=67.7,mAP@50=62.3", "circo/val", "divisor", ["fits", "does not fit"]),
        ("mAP@5=18,mAP@50=20", "circo/val", "divisor", UNTOLD),
        ("R@10=55,R@50=75", "fashioniq/val", "union", UNTOLD),
    ],
)
def test_each_rule_says_what_it_measures(values: str, benchmark: str, rule: str, expected: list[str]) -> None:
    assert verdicts(values, benchmark)[rule] == expected


def test_the_text_tells_first_what_fits_and_last_what_is_lacking_and_json_all() -> None:
    found = explain_numbers("R@1=15.21,R@10=58.10", "cirr/val")
    head, said, _, lacking = found.text().split("\n\n")
    # A verdict that is wrapped goes on behind blanks.
    order = [
        next(word for word in WORDS if line.startswith(word)) for line in said.split("\n") if line[0] != " "
    ]
    assert order == sorted(order, key="cannot be told".__eq__)
    assert {*order} == {"fits", "does not fit", "cannot be told"}
    assert all(f"{rule} (" in lacking for rule in ("subset-chance", "subset", "divisor"))
    assert "needs" not in head + said
    assert max(map(len, found.text().splitlines())) <= 100
    needs = {each["rule"] for each in found.to_dict()["verdicts"] if each["needs"]}
    assert needs == {"subset-chance", "subset", "divisor"}


def test_rules_of_one_data_set_are_not_asked_elsewhere() -> None:
    assert "union" not in verdicts("R@10=39.8")


@pytest.mark.parametrize(
    ("values", "read_as", "value"),
    [
        ("R@1=0.8,R@10=39.8", "percent", 0.398),
        ("R@1=0.15,R@10=0.58", "fractions", 0.58),
        ({"recall@1": 0.15, "recall@10": "58%"}, "percent", 0.58),
        ({"R@10": 39.8, "R@50": "-"}, "percent", 0.398),
    ],
)
def test_what_was_read_is_said(values: object, read_as: str, value: float) -> None:
    found = explain_numbers(values, "cirr/val")  # type: ignore[arg-type]
    assert (found.read_as, found.values["recall@10"]) == (read_as, pytest.approx(value))
    assert read_as in found.text()


@pytest.mark.parametrize(
    ("values", "benchmark", "what"),
    [
        ("mAP@5=0.31", "circo/val", "fractions, or percentages"),
        ("R@10=0.44", "cirr/val", "fractions, or percentages"),
        ("R@10=139.8", "cirr/val", "R@10=139.8"),
        ("R@10=nan", "cirr/val", "R@10=nan"),
        ("R@10", "cirr/val", "'R@10'"),
        ("R@1=36.5 R@10=77.9", "cirr/val", "a comma between"),
        ("R@1=15,21,R@10=58,10", "cirr/val", "with a point"),
        ("R=39.8", "cirr/val", "'R'"),
        ("nDCG@10=39.8", "cirr/val", "nDCG@10"),
        ("R@10=-", "cirr/val", "no number"),
        ("R@10=39.8,Recall@10=41", "cirr/val", "recall@10 is there already"),
    ],
)
def test_what_cannot_be_read_is_refused(values: str, benchmark: str, what: str) -> None:
    with refusal(what, CallError):
        explain_numbers(values, benchmark)


def test_an_unknown_benchmark_is_named() -> None:
    with pytest.raises(UnknownNameError):
        explain_numbers("R@10=39.8", "cir/val")


def test_no_published_row_that_comes_with_the_suite_is_called_what_it_is_not() -> None:
    """Their protocols take the reference out of CIRR, and divide by min(positives, K)."""
    found: Counter[tuple[str, str, str]] = Counter()
    for row in published():
        by_benchmark: dict[str, dict[str, str]] = defaultdict(dict)
        for (benchmark, metric), number in row.numbers.items():
            if re.fullmatch(r"(recall|recall_subset|map)@\d+", metric) and not benchmark.startswith("mmeb/"):
                by_benchmark[benchmark][metric] = f"{number.value}%"
        for benchmark, values in by_benchmark.items():
            explained = explain_numbers(values, benchmark)
            found.update((each.rule, each.protocol, each.verdict) for each in explained.verdicts)
    assert {verdict for _, _, verdict in found} == WORDS
    refused = {
        (rule, protocol): count
        for (rule, protocol, verdict), count in found.items()
        if verdict == "does not fit"
    }
    assert {rule for rule, _ in refused} == {"chance", "subset-chance"}
    # The one row below chance: CIRR 2021, Table 3, row 1, whose numbers imply 4,150 images.
    assert refused["chance", "a gallery of no more images than the benchmark's"] == 1
    assert not any(rule in ("reference", "divisor") and verdict == "fits" for rule, _, verdict in found)


def test_the_command_prints_one_line_a_protocol() -> None:
    call = ("explain", "--numbers", "R@1=0.8,R@10=39.8", "--benchmark", "cirr/val")
    printed = cir(*call)
    assert printed.returncode == 0, printed.stderr
    assert "does not fit    the reference is taken out: " in printed.stdout
    document = json.loads(cir(*call, "--json").stdout)
    assert document == submissions.explain_numbers("R@1=0.8,R@10=39.8", "cirr/val").to_dict() | {
        "verdicts": document["verdicts"]
    }
    assert {each["verdict"] for each in document["verdicts"]} <= WORDS
    assert cir(*call[:3]).returncode == 2
