"""What validation found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from submissions.errors import SubmissionError
from submissions.formats.reader import Parsed
from submissions.rank_file.findings import MAX_FINDINGS, Finding

if TYPE_CHECKING:
    from submissions.rank_file.model import RankBundle, RankFile


@dataclass(frozen=True)
class ValidationReport:
    """What validation found.

    Args:
        file: the file's name.
        benchmark: id of the benchmark or suite that it answers, or None where that is unknown.
        findings: errors first.
        rank_file: what was read, or None where the structure is broken.
        queries: number of queries (or sessions) answered.
        left_out: findings beyond the first 100, which are counted only.
    """

    file: str
    benchmark: str | None
    findings: tuple[Finding, ...]
    rank_file: RankFile | RankBundle | None
    queries: int = 0
    left_out: int = 0

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that refuse the file."""
        return tuple(finding for finding in self.findings if finding.severity == "error")

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that do not."""
        return tuple(finding for finding in self.findings if finding.severity == "warning")

    @property
    def ok(self) -> bool:
        """Whether no finding is an error."""
        return not self.errors

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values."""
        return {
            "file": self.file,
            "benchmark": self.benchmark,
            "ok": self.ok,
            "queries": self.queries,
            "findings_left_out": self.left_out,
            "findings": [finding.to_dict() for finding in self.findings],
        }

    def text(self) -> str:
        """The report as a terminal shows it: the findings, then one line that sums up."""
        lines = [finding.text(self.file) for finding in self.findings]
        if self.left_out:
            lines.append(f"... and {_plural(self.left_out, 'finding')} more.")
        target = f" for {self.benchmark}" if self.benchmark else ""
        counts = [_plural(len(self.errors), "error")] if self.errors else []
        counts += [_plural(len(self.warnings), "warning")] if self.warnings else []
        if self.ok:
            tail = f", {', '.join(counts)}" if counts else ""
            lines.append(f"{self.file}: valid{target}, {self.queries:,} answered{tail}")
        else:
            lines.append(f"{self.file}: refused{target}, {', '.join(counts)}")
        return "\n".join(lines)


def _plural(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def report_of(parsed: Parsed) -> ValidationReport:
    """The report of what was found so far."""
    found = [finding for collector in parsed.collectors() for finding in collector.listed()]
    parts = [
        unchecked.rankings if unchecked.rankings is not None else unchecked.subset_rankings or {}
        for unchecked, _ in parsed.files
        if unchecked is not None
    ]
    ordered = sorted(found, key=lambda finding: finding.severity != "error")
    return ValidationReport(
        file=parsed.findings.file,
        benchmark=parsed.benchmark,
        findings=tuple(ordered[:MAX_FINDINGS]),
        rank_file=parsed.finished(),
        queries=sum(map(len, parts)),
        left_out=max(0, len(ordered) - MAX_FINDINGS),
    )


class RefusedError(SubmissionError, ValueError):
    """A rank file has findings that are errors; `report` holds them all.

    Args:
        what: what was refused, and why in a few words.
        report: the findings.
    """

    def __init__(self, what: str, report: ValidationReport) -> None:
        """See the class."""
        super().__init__(f"{what}\n{report.text()}")
        self.report = report
