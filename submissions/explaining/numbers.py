"""`explain_numbers`: what a row of a table says of its protocol, by rules that are data (`numbers.yaml`).

Every verdict is one of three: the numbers fit a protocol, do not fit it, or it cannot be told. Numbers
that fit prove nothing: another protocol may give the same.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise, product
from typing import Any

from cir_datasets.common.yaml import own_yaml
from cir_datasets.registry import members_of, spec
from cir_metrics.catalogue import parse_metric
from cir_metrics.errors import CallError
from cir_metrics.sums import exact_mean

UNTOLD = "cannot be told"
_SPELLINGS = {
    r"r|recall": "recall",
    r"rs|r_?s|r_?sub(set)?|recall_?s(ub(set)?)?": "recall_subset",
    r"map": "map",
}
"""Patterns of what tables call a metric, by its printed name."""
_DEVIATIONS = 4
"""Standard deviations of a mean over the queries that a random order may be off."""
_ABOVE_CHANCE = 3
"""How many times chance a number is at least where its ratio to another says something."""
_SUBSET = 5
"""Images that a subset ranks, the largest K at which it is compared with the gallery."""
_PRINTED = 0.00005
"""Half of the last digit of a printed percentage, as a fraction."""
_WIDTH = 100
_VERDICT = len(UNTOLD) + 2
_NONE = ("", "-", ".", "..", "...")


@dataclass(frozen=True)
class ProtocolVerdict:
    """What the numbers say of one protocol.

    Args:
        rule: the rule's name.
        protocol: in words.
        verdict: `fits`, `does not fit` or `cannot be told`.
        why: what was measured.
        evidence: what the rule rests on.
        needs: numbers that the rule reads and that are not there; empty where it was asked.
    """

    rule: str
    protocol: str
    verdict: str
    why: str
    evidence: str
    needs: str = ""


@dataclass(frozen=True)
class ExplainedNumbers:
    """What a row of a table says.

    Args:
        benchmark: id of the benchmark or suite.
        read_as: `percent` or `fractions`.
        values: fractions by printed metric.
        verdicts: one a protocol.
    """

    benchmark: str
    read_as: str
    values: dict[str, float]
    verdicts: tuple[ProtocolVerdict, ...]

    def text(self) -> str:
        """What a terminal shows."""
        numbers = ", ".join(f"{name} {100 * value:.2f}" for name, value in self.values.items())
        lines = [f"{self.benchmark}, read as {self.read_as}; in per cent: {numbers}", ""]
        asked = [each for each in self.verdicts if not each.needs]
        asked.sort(key=lambda each: each.verdict == UNTOLD)
        for each in asked:
            said = f"{each.verdict:<{_VERDICT}}{each.protocol}: {each.why}"
            lines += textwrap.wrap(said, _WIDTH, subsequent_indent=" " * _VERDICT)
        rules = dict.fromkeys(f"{each.rule}: {each.evidence}" for each in asked if each.verdict != UNTOLD)
        lacking = dict.fromkeys(f"{each.rule} ({each.needs})" for each in self.verdicts if each.needs)
        closing = [f"needs more numbers: {'; '.join(lacking)}"] if lacking else []
        for block in ([*rules], closing):
            lines += ["", *(textwrap.fill(line, _WIDTH) for line in block)] if block else []
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON values."""
        return asdict(self)


def explain_numbers(values: str | Mapping[str, float | str], benchmark: str) -> ExplainedNumbers:
    """Say of each protocol whether a row's numbers fit it.

    Args:
        values: by metric a number, or a text such as `R@1=0.8,R@5=-,R@10=39.8`. Metrics are R@K, Rs@K and
            mAP@K in the spellings of tables. A number above 1, or a `%` behind one, makes all percentages.
        benchmark: id of the benchmark or suite that the table is of.

    Returns:
        A verdict a protocol, with what was measured and what the rule rests on.

    Raises:
        CallError: a metric or number cannot be read, or all may be fractions as well as percentages.
        UnknownNameError: there is no such benchmark or suite.

    Example:
        >>> found = explain_numbers("R@1=0.8,R@10=39.8", "cirr/val")
        >>> [(each.protocol, each.verdict) for each in found.verdicts if each.rule == "reference"]
        [('the reference stays in the gallery', 'fits'), ('the reference is taken out', 'does not fit')]
    """
    chances = _Chances(benchmark)
    read: dict[str, float] = {}
    percent = False
    for name, value in _pairs(values) if isinstance(values, str) else values.items():
        metric, text = _metric(str(name)), str(value).strip()
        if metric in read:
            raise CallError(f"{name}={text}: {metric} is there already. Fix: leave one of them out.")
        if text in _NONE:
            continue
        number, percent = text.removesuffix("%").strip(), percent or text.endswith("%")
        if not re.fullmatch(r"\d+(\.\d*)?|\.\d+|\d(\.\d+)?e-\d+", number) or float(number) > 100:
            hint = "put a comma between the numbers" if "=" in text else "write it as 39.8 or as 0.398"
            raise CallError(f"{name}={text}: not a number from 0 to 100. Fix: {hint}.")
        read[metric] = float(number)
    if not read:
        raise CallError("there is no number. Fix: write, for example, R@1=0.8,R@10=39.8")
    percent = percent or max(read.values()) > 1
    if not percent and all(_near_chance(name, value, chances) for name, value in read.items()):
        raise CallError(
            "the numbers may be fractions, or percentages near chance. Fix: write a % behind one of them, or "
            "percentages above 1."
        )
    if percent:
        read = {name: value / 100 for name, value in read.items()}
    verdicts: list[ProtocolVerdict] = []
    for rule in own_yaml("submissions", "explaining/numbers.yaml"):
        if rule.get("only", benchmark.partition("/")[0]) != benchmark.partition("/")[0]:
            continue
        verdicts += _verdicts(rule, read, chances)
    return ExplainedNumbers(benchmark, "percent" if percent else "fractions", read, tuple(verdicts))


def _pairs(text: str) -> list[tuple[str, str]]:
    found = [part.partition("=") for part in text.split(",") if part.strip()]
    wrong = next((name for name, sign, _ in found if not sign), None)
    if wrong is not None:
        decimals = " with a point" if wrong.strip().rstrip("%").isdigit() else ""
        raise CallError(
            f"{wrong.strip()!r} has no number. Fix: write METRIC=NUMBER{decimals}, such as R@10=39.8"
        )
    return [(name.strip(), value) for name, _, value in found]


def _metric(name: str) -> str:
    """The printed name of a metric as a table spells it."""
    family, _, cutoff = name.strip().casefold().replace("mean ", "").partition("@")
    printed = next((own for known, own in _SPELLINGS.items() if re.fullmatch(known, family.strip())), None)
    if printed is None or not re.fullmatch(r"[1-9]\d{0,3}", cutoff.strip()):
        raise CallError(f"no rule reads {name!r}. Fix: use R@K, Rs@K (Recall_subset) or mAP@K.")
    return f"{printed}@{int(cutoff)}"


class _Chances:
    """Recalls of a random order by the sizes on the cards; of a suite their means."""

    def __init__(self, benchmark: str) -> None:
        self.configs = [(spec(member), spec(member).config) for member in members_of(benchmark)]

    def of(self, metric: str) -> tuple[float, float] | None:
        """What is expected, and its standard deviation; None where a size is not known, or of a mAP."""
        name, k = parse_metric(metric)
        sizes = []
        for each, config in self.configs:
            size = config.gallery and config.gallery - (config.reference == "removed")
            if name != "recall_at_k" or each.card.gallery == "per_query":
                size = config.subset and name == "recall_subset" and config.subset - 1
            sizes.append((size or 0, config.queries or 0))
        if k is None or not all(size and queries for size, queries in sizes):
            return None
        shares = [min(k / size, 1) for size, _ in sizes]
        variances = [share * (1 - share) / queries for share, (_, queries) in zip(shares, sizes, strict=True)]
        return exact_mean(shares), math.sqrt(math.fsum(variances)) / len(sizes)


def _near_chance(metric: str, value: float, chances: _Chances) -> bool:
    """Whether a number may be a percentage of a random order; one without known chance may."""
    chance = chances.of(metric)
    return chance is None or 0.5 <= value / 100 / chance[0] <= 2


def _verdicts(
    rule: Mapping[str, Any], values: Mapping[str, float], chances: _Chances
) -> Iterator[ProtocolVerdict]:
    """What a rule says of each of its protocols; a comparison that excludes one is enough."""
    compared = list(_compared(rule, values, chances))
    needs = "" if compared else rule.get("needs", "")
    said = [rule["says"].get(state, "").format(**words, **rule) for state, words in compared]
    why = f"needs {needs}" if needs else "; ".join(filter(None, said)) or rule["otherwise"]
    for protocol in rule["protocols"]:
        meant = {protocol.get(state, UNTOLD) for state, _ in compared} or {UNTOLD}
        verdict = next(word for word in ("does not fit", UNTOLD, "fits") if word in meant)
        yield ProtocolVerdict(rule["rule"], protocol["protocol"], verdict, why, rule["evidence"], needs)


def _compared(
    rule: Mapping[str, Any], values: Mapping[str, float], chances: _Chances
) -> Iterator[tuple[str, dict[str, Any]]]:
    """How numbers that are there stand to others (`below`, `at`, `above`), and what words may name."""
    families, pairs = rule["of"], list[tuple[str, str]]()
    names = [[name for name in values if name.startswith(f"{family}@")] for family in families]
    match rule["compares"]:
        case "ratio":
            one, other = families
            if one in values and values.get(other):
                ratio, chance = values[one] / values[other], chances.of(other)
                near = chance is not None and values[other] < _ABOVE_CHANCE * chance[0]
                state = "near chance" if near else _state(ratio, rule["limit"])
                yield state, {"one": one, "other": other, "ratio": ratio}
        case "chance":
            for name in names[0]:
                if (chance := chances.of(name)) is not None:
                    state = _state(values[name], chance[0], _DEVIATIONS * chance[1] + _PRINTED)
                    yield state, {"one": name, "value": 100 * values[name], "chance": 100 * chance[0]}
        case "cutoffs":
            pairs = [pair for family in names for pair in pairwise(sorted(family, key=_cutoff))]
        case "families":
            pairs = [(a, b) for a, b in product(*names) if _cutoff(a) == _cutoff(b) <= _SUBSET]
    for one, other in pairs:
        yield _state(values[one], values[other], _PRINTED), {"one": one, "other": other}


def _cutoff(name: str) -> int:
    return int(name.partition("@")[2])


def _state(value: float, against: float, margin: float = 0) -> str:
    return "at" if abs(value - against) <= margin else "below" if value < against else "above"
