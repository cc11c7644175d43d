"""`cir explain --numbers`: three verdicts and no other, by rules that no published row contradicts."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter, defaultdict

import pytest
from cir_here import ROOT, cir
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
    assert all(f"{rule} (" in lacking for rule in ("subset-chance", "subset"))
    assert "needs" not in head + said
    assert max(map(len, found.text().splitlines())) <= 100
    needs = {each["rule"] for each in found.to_dict()["verdicts"] if each["needs"]}
    assert needs == {"subset-chance", "subset"}


@pytest.mark.parametrize(
    ("values", "benchmark", "asked", "needed"),
    [
        ("R@10=39.8", "cirr/test1", {"chance"}, {"reference", "order", "subset", "subset-chance"}),
        ("R@10=39.8", "fashioniq/val", {"chance", "union"}, {"reference", "order"}),
        ("mAP@5=18,mAP@50=20", "circo/test", {"divisor"}, {"chance", "order"}),
        ("R@1=34.5", "genecis/focus_object", set(), {"order"}),  # each query ranks 15 images of 2,192
        ("R@1=34.5", "fisd", {"chance"}, {"reference", "order"}),
    ],
)
def test_only_rules_of_the_benchmark_are_asked_or_need_a_number(
    values: str, benchmark: str, asked: set[str], needed: set[str]
) -> None:
    found = explain_numbers(values, benchmark).verdicts
    assert {each.rule for each in found if not each.needs} == asked
    assert {each.rule for each in found if each.needs} == needed


FOUR = {"recall@1": 43.74, "recall@5": 73.61, "recall@10": 83.95, "recall@50": 96.1}
SUBSET = {"recall_subset@1": 73.11, "recall_subset@2": 89.11}


@pytest.mark.parametrize(
    ("text", "values", "unread"),
    [
        ("R@1 43.74; R@5 73.61; R@10 83.95; R@50 96.1", FOUR, []),
        ("R@1/R@5/R@10/R@50\n43.74/73.61/83.95/96.1", FOUR, []),
        ("R@1/5/10/50; Rs@1/2 = 43.74/73.61/83.95/96.1; Rs 73.11/89.11", FOUR | SUBSET, []),
        ("| R@1 | R@5 | R@10 | R@50 |\n| **43.74** | _73.61_ | 83.95% | 96.1 |", FOUR, []),
        (r"R@1 & R@5 & R@10 & R@50 = \textbf{43.74} & \underline{73.61} & 83.95 & $96.1\pm0.2$ \\", FOUR, []),
        (
            "recall_at_1=43.74,recall at 5=73.61,Recall @ 10=83.95 (+1.2),R@50=96.1↑,ndcg_at_10=-",
            FOUR,
            ["ndcg@10"],
        ),
        ("R_{sub}@1=73.11,Recall_s@2=89.11", SUBSET, []),
        ("Recall_subset@1 (%): 73.11, Recall Subset@2: 89.11, Avg: 70.1", SUBSET, ["Avg"]),
        ("R@1=43.74,R@5=73.61,R@10=83.95,R@50=96.1,(R@5+Rs@1)/2=73.36,hit@1=44", FOUR, ["Avg", "hit@1"]),
        ("(R@5+Rs@1)/2 ; R@1 ; Rs@1 = 75.9 ; 43.74 ; ", {"recall@1": 43.74}, ["Avg"]),
        ("average R@1=43.74,mean R@5=73.61,R@10=83.95,R@50=96.1", FOUR, []),
        ("R@1 R@5 R@10 R@50 Rs@1 = 43.74 73.61 83.95 96.1 –", FOUR, []),
        ("CIRR test R@1, R@5, Rs@3, R@10, Rs@2, R@50 = 43.74, 73.61, --, 83.95,, 96.1", FOUR, []),
        (
            "| R@1 | R@5 | R@10 | R@50 | Rs@1 |\n|---|:-:|---|---|---|\n| 43.74 | 73.61 | 83.95 | 96.1 | |",
            FOUR,
            [],
        ),
        (
            "Recall@K K=1 K=5 K=10 K=50 R_subset@K K=1 K=2\n43.74 73.61 83.95 96.1 73.11 89.11",
            FOUR | SUBSET,
            [],
        ),
    ],
)
def test_a_row_is_read_as_tables_print_it(text: str, values: dict[str, float], unread: list[str]) -> None:
    found = explain_numbers(text, "cirr/test1")
    assert found.values == pytest.approx({name: value / 100 for name, value in values.items()})
    assert [*found.unread] == unread
    assert all(name in found.text().split("\n\n")[0] for name in unread)


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
        ("R@10=139.8", "cirr/val", "139.8 is not between 0 and 100"),
        ("R@1=-3", "cirr/val", "-3 is not between 0 and 100"),
        ("R@10=nan", "cirr/val", "no number"),
        ("R@10", "cirr/val", "1 metrics, 0 numbers"),
        ("39.8=R@10", "cirr/val", "0 metrics, 1 numbers"),
        ("R@10=39.8;" * 1_000, "cirr/val", "10,000 characters"),
        ("fiq R@10=39.8", "cirr/val", "fiq R@10 = 39.8: 2 metrics, 1 numbers"),
        ("R@1=36.5,R@5=,R@10=77.9,50.1", "cirr/val", "R@10 = 77.9 50.1: 1 metrics, 2 numbers"),
        ("R@1/R@5/R@10=36.5/77.9", "cirr/val", "3 metrics, 2 numbers"),
        ("R@1=15,21,R@10=58,10", "cirr/val", "1 metrics, 2 numbers"),
        ("R=39.8", "cirr/val", "no rule reads R of cirr/val"),
        ("nDCG@10=39.8", "cirr/val", "nDCG@10"),
        ("hit@1/5/10 (1,000 candidates) = 0.466/0.82/0.902", "cirr/val", "hit@1, hit@5, hit@10"),
        ("R@1=39.8", "circled/cirr_val", "no rule reads R@1"),
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
            if not {metric.partition("@")[0] for metric in values} - {"map"} and benchmark != "circo/test":
                continue  # mAP beside one target, which no rule reads
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


def test_each_row_of_the_page_is_read() -> None:
    page = (ROOT / "docs/explain.md").read_text(encoding="utf-8")
    calls = [shlex.split(line)[1:] for line in page.splitlines() if line.startswith("cir explain --numbers")]
    assert len(calls) == 5
    assert [cir(*call).returncode for call in calls] == [0] * 5


def test_the_command_prints_one_line_a_protocol() -> None:
    call = ("explain", "--numbers", "R@1=0.8,R@10=39.8", "--benchmark", "cirr/val")
    printed = cir(*call, code=0)
    assert "does not fit    the reference is taken out: " in printed.stdout
    document = json.loads(cir(*call, "--json").stdout)
    assert document == submissions.explain_numbers("R@1=0.8,R@10=39.8", "cirr/val").to_dict() | {
        "verdicts": document["verdicts"],
        "unread": [],
    }
    assert {each["verdict"] for each in document["verdicts"]} <= WORDS
    assert cir(*call[:3]).returncode == 2
