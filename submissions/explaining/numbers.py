"""`explain_numbers`: what a row of a table says of its protocol, by rules that are data (`numbers.yaml`).

Every verdict is one of three: the numbers fit a protocol, do not fit it, or it cannot be told. Numbers
that fit prove nothing: another protocol may give the same.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import groupby, pairwise, product, zip_longest
from typing import Any

from cir_datasets.common.yaml import package_yaml
from cir_datasets.registry import members_of, spec
from cir_metrics.catalogue import METRICS, parse_metric
from cir_metrics.errors import CallError
from cir_metrics.sums import exact_mean

UNTOLD = "cannot be told"
_NAMES = {name.casefold(): each.printed for each in METRICS.values() for name in (each.short, each.printed)}
_NUMBER = re.compile(r"(100(\.0*)?|\d{1,2}(\.\d*)?|\.\d+|\d(\.\d+)?e-\d+)%?|-")
"""From 0 to 100, or `-`."""
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
        unread: metrics of the row that no rule reads on this benchmark.
    """

    benchmark: str
    read_as: str
    values: dict[str, float]
    verdicts: tuple[ProtocolVerdict, ...]
    unread: tuple[str, ...] = ()

    def text(self) -> str:
        """What a terminal shows."""
        numbers = ", ".join(f"{name} {100 * value:.2f}" for name, value in self.values.items())
        unread = f"; no rule reads {', '.join(self.unread)}" if self.unread else ""
        asked = [each for each in self.verdicts if not each.needs]
        said = defaultdict[tuple[str, str], list[str]](list)
        for each in sorted(asked, key=lambda each: each.verdict == UNTOLD):
            said[each.verdict, each.why].append(each.protocol)
        rules = dict.fromkeys(f"{each.rule}: {each.evidence}" for each in asked if each.verdict != UNTOLD)
        lacking = dict.fromkeys(f"{each.rule} ({each.needs})" for each in self.verdicts if each.needs)
        blocks = (
            _filled([f"{self.benchmark}, read as {self.read_as}; in per cent: {numbers}{unread}"]),
            _filled((f"{key[0]:<{_VERDICT}}{'; '.join(said[key])}: {key[1]}" for key in said), _VERDICT),
            _filled(rules),
            _filled([f"needs more numbers: {'; '.join(lacking)}"] if lacking else []),
        )
        return "\n\n".join(filter(None, blocks))

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON values."""
        return asdict(self)


def _filled(lines: Iterable[str], indent: int = 0) -> str:
    return "\n".join(textwrap.fill(line, _WIDTH, subsequent_indent=" " * indent) for line in lines)


def explain_numbers(values: str | Mapping[str, float | str], benchmark: str) -> ExplainedNumbers:
    """Say of each protocol whether a row's numbers fit it.

    Args:
        values: by metric a number, or a row as typed or copied: `R@1=0.8,R@5=-,R@10=39.8`, `R@1/5=37.9/68.9`,
            or the head of the table and then the row. Rules read R@K, Rs@K and mAP@K in the spellings of
            tables. A number above 1, or a `%` behind one, makes all percentages.
        benchmark: id of the benchmark or suite that the table is of.

    Returns:
        A verdict a protocol, with what was measured and what the rule rests on.

    Raises:
        CallError: metrics and numbers do not pair, no rule reads one, or all may be fractions or percentages.
        UnknownNameError: there is no such benchmark or suite.

    Example:
        >>> found = explain_numbers("R@1=0.8,R@10=39.8", "cirr/val")
        >>> [(each.protocol, each.verdict) for each in found.verdicts if each.rule == "reference"]
        [('the reference stays in the gallery', 'fits'), ('the reference is taken out', 'does not fit')]
    """
    chances = _Chances(benchmark)
    data = package_yaml("submissions", "explaining/numbers.yaml")
    rules = [rule for rule in data["rules"] if chances.may_ask(rule)]
    text = values if isinstance(values, str) else "; ".join(f"{name}={each}" for name, each in values.items())
    read, unread = dict[str, float](), list[str]()
    asked = {name for rule in rules for name in rule["of"]}
    for name, number in _pairs(text, data["as_typed"], {*re.findall("[a-z]+", benchmark)}):
        family, _, cutoff = name.casefold().partition("@")
        metric = f"{_NAMES.get(family)}@{cutoff}"
        if not cutoff.isdecimal() or asked.isdisjoint((metric, _NAMES.get(family))):
            unread.append(name)
        elif metric in read:
            raise CallError(f"{name}={number}: {metric} is there already. Fix: give one row of a table.")
        elif number != "-":
            read[metric] = float(number.removesuffix("%"))
    if not read:
        odd = f"no rule reads {', '.join(unread)} of {benchmark}" if unread else "there is no number"
        raise CallError(f"{odd}. Fix: write R@K, Rs@K (Recall_subset) or mAP@K, such as R@1=0.8,R@10=39.8")
    percent = "%" in text or max(read.values()) > 1
    expected = {name: 100 * (chances.of(name) or (value / 100, 0))[0] for name, value in read.items()}
    if not percent and all(expected[name] / 2 <= value <= 2 * expected[name] for name, value in read.items()):
        raise CallError("these may be fractions, or percentages near chance. Fix: write a % behind one.")
    read = {name: value / 100 if percent else value for name, value in read.items()}
    verdicts = tuple(verdict for rule in rules for verdict in _verdicts(rule, read, chances))
    return ExplainedNumbers(benchmark, "percent" if percent else "fractions", read, verdicts, (*unread,))


def _pairs(text: str, as_typed: Mapping[str, str], passed: set[str]) -> Iterator[tuple[str, str]]:
    """Metrics and numbers in the order of the text, a metric before each number or all before all."""
    if len(text) > 2_000:  # the patterns take time that grows faster than the text
        raise CallError(f"{len(text):,} characters. Fix: give one row of a table, 2,000 characters at most.")
    for pattern, meant in as_typed.items():
        while text != (text := re.sub(pattern, meant, text, flags=re.IGNORECASE)):
            pass
    words = [word for word in (part.strip("_") for part in re.split(r"[\s,;:|/&=]+", text)) if word]
    passed |= {word.partition("@")[0].casefold() for word in words if "@" in word}
    kept = ["", *(word for word in words if word.casefold() not in passed)]
    runs = [[*filter(None, run)] for _, run in groupby(kept, lambda word: _NUMBER.fullmatch(word) is None)]
    for names, numbers in zip_longest(runs[::2], runs[1::2], fillvalue=list[str]()):
        if len(names) != len(numbers):
            found = f"{' '.join(names)} = {' '.join(numbers)}: {len(names)} metrics, {len(numbers)} numbers"
            beyond = next((word for word in names if re.fullmatch(r"[-+]?\d+(\.\d+)?%?", word)), None)
            found += f"; {beyond} is not between 0 and 100" if beyond else ""
            raise CallError(f"{found}. Fix: METRIC=NUMBER, 0 to 100, decimal point: R@1=39.8, R@5=-")
        yield from zip(names, numbers, strict=True)


class _Chances:
    """Recalls of a random order by the sizes on the cards; of a suite their means."""

    def __init__(self, benchmark: str) -> None:
        self.configs = [(spec(member), spec(member).config) for member in members_of(benchmark)]

    def may_ask(self, rule: Mapping[str, Any]) -> bool:
        """Whether a rule is of this data set, and of metrics that its card has."""
        first, names = self.configs[0][0], rule["of"]
        of_card = {part for name in first.metrics for part in (name, name.partition("@")[0])}
        sized = rule["compares"] != "chance" or self.of(f"{names[0]}@1") is not None
        own = rule.get("only", first.card.name) == first.card.name
        return own and sized and of_card.issuperset(rule.get("at_least", names))

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
                ratio, (chance, _) = values[one] / values[other], chances.of(other) or (0, 0)
                near = values[other] < _ABOVE_CHANCE * chance
                state = "near chance" if near else _state(ratio, rule["limit"])
                yield state, {"one": one, "other": other, "ratio": ratio}
        case "chance":
            for name in names[0]:
                chance, deviation = chances.of(name) or (0, 0)
                state = _state(values[name], chance, _DEVIATIONS * deviation + _PRINTED)
                yield state, {"one": name, "value": 100 * values[name], "chance": 100 * chance}
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
