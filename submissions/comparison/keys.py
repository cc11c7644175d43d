"""Refusing numbers that answer different questions: their comparability keys must agree."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from cir_datasets.common.yaml import package_yaml
from cir_datasets.registry.suites import SuiteSignature
from cir_metrics.catalogue import Signature
from cir_metrics.signature import differences
from submissions.errors import ComparisonError
from submissions.scoring.samples import Sample

if TYPE_CHECKING:
    from submissions.scoring.score_report import ScoreReport

_HASH = re.compile(r"\b([0-9a-f]{7})[0-9a-f]{57}\b")


def check_comparable(reports: Sequence[ScoreReport], *, apart_by: Collection[str] = ()) -> None:
    """Refuse reports whose keys differ by a metric of all, but for parts that the caller keeps apart itself.

    Raises:
        ComparisonError: the message says which part differs, and how to fix it.
    """
    first = reports[0]
    metrics = [name for name in first.signatures if all(name in report.signatures for report in reports)]
    if not metrics:
        apart = (each for each in reports[1:] if first.signatures.keys().isdisjoint(each.signatures))
        other = next(apart, reports[-1])
        asked = [_asked(next(iter(report.signatures.values()))) for report in (first, other)]
        lines = [f"benchmark: {asked[0]} against {asked[1]}"] if asked[0] != asked[1] else []
        missing = "hand in files with the rankings that the same metrics need"
        fix = _fix(lines[0]) if lines else missing
        raise _refused(first, other, "they were scored by no metric in common.", lines, fix)
    for other in reports[1:]:
        for metric in metrics:
            lines = key_differences(first.signatures[metric], other.signatures[metric])
            # Of two dialogues users and settings are what is compared.
            lines = [line for line in lines if not _of_two_dialogues(line) and _part(line) not in apart_by]
            if lines:
                raise _refused(first, other, f"the keys of {metric} differ.", lines, _fix(lines[0]))


def samples_in_order(reports: Sequence[ScoreReport]) -> list[Sample]:
    """The values behind comparable reports; keys agree whatever the order of the rows, and values must not.

    Raises:
        CallError: a report holds no values per query.
        ComparisonError: the queries of two reports stand in different orders.
    """
    samples = [Sample.behind(report) for report in reports]
    for report, sample in zip(reports, samples, strict=True):
        if sample.query_ids() != samples[0].query_ids():
            raise ComparisonError(
                f"{reports[0].file} and {report.file} were scored with their {sample.unit} in different "
                "orders. Fix: score both with the same Benchmark."
            )
    return samples


def shared_text(texts: Sequence[str]) -> str:
    """What the printed signatures of several numbers have in common; what lists show is a file's own.

    Example:
        >>> shared_text(["circo/val#1 | ref:kept | held:5/220 | n:220", "circo/val#1 | ref:kept | n:220"])
        'circo/val#1 | ref:kept | n:220'
    """
    others = [set(text.split(" | ")) for text in texts[1:]]
    return " | ".join(part for part in texts[0].split(" | ") if all(part in other for other in others))


def _refused(
    first: ScoreReport, other: ScoreReport, what: str, lines: Sequence[str], fix: str
) -> ComparisonError:
    """The error, with a line for each part that differs."""
    text = "\n  ".join([what, *(_HASH.sub(r"\1", line) for line in lines), f"Fix: {fix}."])
    return ComparisonError(f"{first.file} and {other.file} cannot be compared: {text}")


def _fix(line: str) -> str:
    """What makes two numbers comparable whose keys differ in this line."""
    part, known = _part(line), package_yaml("submissions", "comparison/fixes.yaml")
    if part != "skipped":
        return str(known["parts"][part])
    one, other = (set(side.split(",")) for side in line.partition(": ")[2].split(" against "))
    fixes = [fix for name, fix in known["skipped"].items() if name in one ^ other]
    return "; ".join(fixes) or "score both with the same checks"


def key_differences(first: Signature | SuiteSignature, second: Signature | SuiteSignature) -> list[str]:
    """Which parts of two comparability keys differ, those of suites included; one line a part.

    A suite's member has its id in brackets behind the part. No lines: the numbers are comparable.

    Example:
        >>> one = SuiteSignature("fashioniq/val", 1, "recall@10", "macro", ())
        >>> two = SuiteSignature("fashioniq/val", 2, "recall@10", "micro", ())
        >>> key_differences(one, two)
        ['suite: fashioniq/val#1 against fashioniq/val#2', 'mean: macro against micro']
    """
    if isinstance(first, Signature) and isinstance(second, Signature):
        return differences(first, second)
    asked = f"{_asked(first)} against {_asked(second)}"
    if isinstance(first, Signature) or isinstance(second, Signature):
        return [f"benchmark: {asked}"]
    lines = [f"suite: {asked}"] if _asked(first) != _asked(second) else []
    if first.average != second.average:
        lines.append(f"mean: {first.average} against {second.average}")
    return lines or [
        line.replace(":", f" ({one.benchmark}):", 1)
        for one, other in zip(first.members, second.members, strict=True)
        for line in differences(one, other)
    ]


def _of_two_dialogues(line: str) -> bool:
    one_has_none = line.startswith("dialogue: none against ") or line.endswith(" against none")
    return _part(line) == "dialogue" and not one_has_none


def _asked(signature: Signature | SuiteSignature) -> str:
    if isinstance(signature, Signature):
        return f"{signature.benchmark}#{signature.benchmark_version}"
    return f"{signature.suite}#{signature.suite_version}"


def _part(line: str) -> str:
    return line.partition(":")[0].partition(" ")[0]
