"""`validate`: everything that is wrong with a rank file, found without any ground truth.

The same code runs in `cir validate`, in the browser's upload and on the server. It may be as chatty as it
likes, because it knows only what is public: query ids, turns, references, subsets and the gallery.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from submissions.formats import CIRR_SERVER
from submissions.formats.budget import MAX_BYTES
from submissions.formats.reader import Parsed, parse_file
from submissions.rank_file.benchmarks import Known
from submissions.rank_file.columns import Columns
from submissions.rank_file.findings import MAX_FINDINGS, Finding, Findings

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.formats.draft import Answers, Draft
    from submissions.rank_file.model import RankBundle, RankFile

    BenchmarkLike = str | Benchmark | Mapping[str, Benchmark] | None
    FileLike = str | os.PathLike[str] | bytes | RankFile | RankBundle


@dataclass(frozen=True)
class ValidationReport:
    """What validation found.

    Args:
        file: the file's name.
        benchmark: id of the benchmark or suite that it answers, or None where that could not be told.
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


def validate(
    file: FileLike,
    benchmark: BenchmarkLike = None,
    *,
    part: bool | None = None,
    max_bytes: int = MAX_BYTES,
    name: str | None = None,
) -> ValidationReport:
    """Check a rank file or a bundle and return every finding.

    Args:
        file: a path, the file's bytes, a `RankFile` or a `RankBundle`.
        benchmark: what it must answer: an id of a benchmark or suite, a `Benchmark`, a mapping of benchmarks
            by id (for a bundle of benchmarks made in memory), or None for what the file says itself. The CIRR
            and CIRCO servers' formats do not say it.
        part: whether one of the CIRR server's two files alone is enough. None: only where the ground truth is
            withheld, so that the server and no board of ours will read it.
        max_bytes: bytes that are read at most.
        name: the file's name in messages, where `file` is bytes.

    Returns:
        The report. Wrong content never raises.

    Raises:
        CallError: `file` or `benchmark` is of none of these types.
        MissingFileError: no file has that name.
        UnknownNameError: `benchmark` is no benchmark and no suite.
        SourceError: the benchmark's own data is not at hand.

    Example:
        >>> report = validate(b'{"format": "cir-rank-file"', name="run.json")
        >>> print(report.text())
        malformed: run.json: line 1, column 27: unexpected end of data.
          Fix: write it with a JSON library, never by hand, then run  cir validate run.json
        run.json: refused, 1 error
    """
    return validate_known(file, Known(benchmark), part=part, max_bytes=max_bytes, name=name)


def validate_known(
    file: FileLike,
    known: Known,
    *,
    part: bool | None,
    max_bytes: int,
    name: str | None,
    form: Mapping[str, Any] | None = None,
) -> ValidationReport:
    """`validate` for a caller that needs the benchmarks again afterwards: `known` keeps what it loaded.

    With `form`, fields of the method block, a file that names no method is checked as if its own block said
    them.
    """
    parsed = parse_file(file, known, max_bytes=max_bytes, name=name, form=form)
    for draft, findings in parsed.drafts:
        if draft is not None:
            _check(draft, known, findings, part)
    return report_of(parsed)


def report_of(parsed: Parsed) -> ValidationReport:
    """The report of what was found so far."""
    found = [finding for collector in parsed.collectors() for finding in collector.listed()]
    parts = [
        draft.rankings if draft.rankings is not None else draft.subset_rankings or {}
        for draft, _ in parsed.drafts
        if draft is not None
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


def _check(draft: Draft, known: Known, findings: Findings, part: bool | None) -> None:
    from submissions.validation.questions import questions
    from submissions.validation.rules import check_content

    benchmark = known.load(draft.spec.id)
    if benchmark.gallery is None:
        findings.add(
            "gallery-unavailable",
            f"the gallery list of {benchmark.id} is not at hand; image ids were not checked.",
        )
    if not benchmark.pinned:
        findings.add(
            "unpinned-data",
            f"the files of {benchmark.id} are not, or not known to be, the ones that its card pins; "
            f"data hash {benchmark.data_hash[:7]}.",
        )
    if benchmark.left_out:
        _leave_out(draft, benchmark, findings)
    alone = draft.format == CIRR_SERVER and (benchmark.ground_truth_withheld if part is None else part)
    check_content(draft, questions(benchmark), findings, part=alone)


def _leave_out(draft: Draft, benchmark: Benchmark, findings: Findings) -> None:
    """Drop the answers to queries of the base that the overlay leaves out, and say how many there were."""
    outside = {
        query
        for answers in (draft.rankings, draft.subset_rankings)
        for query in answers or ()
        if query in benchmark.left_out
    }
    draft.rankings = _without(draft.rankings, outside)
    draft.subset_rankings = _without(draft.subset_rankings, outside)
    if outside:
        findings.add(
            "outside-overlay",
            f"queries that {benchmark.id} leaves out are answered, too; those answers are not counted.",
            count=len(outside),
        )


def _without(answers: Answers | None, outside: set[str]) -> Answers | None:
    if not answers or not outside:
        return answers
    if isinstance(answers, Columns):
        return answers.without(outside)
    return {query: answer for query, answer in answers.items() if query not in outside}
