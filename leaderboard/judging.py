"""Judging one file: validation, then scoring, by the very functions that the command line uses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leaderboard.submission import Submission
from submissions.formats.budget import MAX_BYTES

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.rank_file.findings import ValidationReport
    from submissions.rank_file.model import RankFile


@dataclass(frozen=True)
class Rejected:
    """A file that is refused, with its findings."""

    payload: dict[str, Any]


@dataclass(frozen=True)
class Validated:
    """A file that may be scored, with what validation found and the method as it is shown."""

    payload: dict[str, Any]
    checked: ValidationReport
    method: dict[str, Any]


def judge_file(path: Path, benchmark: Benchmark, submission: Submission) -> Rejected | Validated:
    """Validate a stored file against its board's benchmark.

    Fields of the method that the file leaves out are taken from the form that came with it; in a format that
    has no method block, the form says everything.

    Args:
        path: the stored copy.
        benchmark: what the board ranks.
        submission: its file name stands in the messages.
    """
    from submissions.rank_file.benchmarks import Benchmarks
    from submissions.rank_file.model import Method, RankFile
    from submissions.validation import validate_with

    report = validate_with(
        path,
        Benchmarks(benchmark),
        part=False,
        max_bytes=MAX_BYTES,
        name=submission.file_name,
        form=submission.form,
    )
    payload = {"findings": [finding.to_dict() for finding in report.findings], "text": report.text()}
    rank_file = report.rank_file
    if not report.ok or not isinstance(rank_file, RankFile):
        return Rejected(payload)
    method = _method(rank_file, submission.form)
    named = replace(rank_file, method=Method(**method))
    return Validated(payload, replace(report, rank_file=named), method)


def score_file(judged: Validated, benchmark: Benchmark) -> dict[str, Any]:
    """Score a validated file; it is not validated again.

    Returns:
        The score report as JSON values, each signature with its printed form (`text`) and its `key`.
    """
    from submissions.rank_file.benchmarks import Benchmarks
    from submissions.scoring import score_checked

    return score_checked(judged.checked, Benchmarks(benchmark)).to_dict()


def _method(rank_file: RankFile, form: dict[str, Any]) -> dict[str, Any]:
    from submissions.formats.native import completed
    from submissions.rank_file.model import FORMAT

    block = rank_file.method.to_dict()
    return completed(block, form) if rank_file.format == FORMAT else {**block, **form}
