"""Judging one file: validation, then scoring, by the very functions that the command line uses."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from submissions.formats.budget import MAX_BYTES

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from leaderboard.dialogues import BoardDialogue
    from submissions.rank_file.findings import ValidationReport
    from submissions.rank_file.model import RankFile
    from submissions.scoring.score_report import ScoreReport
    from submissions.transcripts.checking import CheckedTranscript


CLAIMS = ("oracle", "zero_shot", "trained_on")
"""Fields of the method in which a file binds its owner."""


@dataclass(frozen=True)
class Rejected:
    """A file that is refused, with its findings."""

    payload: dict[str, Any]


@dataclass(frozen=True)
class Validated:
    """A file that may be scored, with what validation found and the method as it is shown."""

    payload: dict[str, Any]
    checked: ValidationReport
    rank_file: RankFile
    method: dict[str, Any]
    claims: dict[str, Any]
    transcript: CheckedTranscript | None = None


def judge_file(
    path: Path,
    benchmark: Benchmark,
    *,
    file_name: str,
    form: Mapping[str, Any],
    dialogue: BoardDialogue | None = None,
) -> Rejected | Validated:
    """Validate a stored file against its board's benchmark.

    Fields of the method that the file leaves out are taken from the form that came with it; in a format that
    has no method block, the form says everything.

    Args:
        path: the stored copy.
        benchmark: what the board ranks.
        file_name: the sender's name for the file, which stands in the messages.
        form: the method's fields as they were sent beside the file.
        dialogue: of a board that takes transcripts; None of one that takes rank files.
    """
    from submissions.rank_file.benchmarks import Benchmarks
    from submissions.rank_file.model import Method, RankFile
    from submissions.validation import validate_with

    transcript = None
    if dialogue is None:
        report = validate_with(
            path, Benchmarks(benchmark), part=False, max_bytes=MAX_BYTES, name=file_name, form=form
        )
    else:
        transcript = _checked_transcript(path, benchmark, dialogue, file_name)
        report = transcript.report
    payload = {"findings": [finding.to_dict() for finding in report.findings], "text": report.text()}
    rank_file = report.rank_file
    if not report.ok or not isinstance(rank_file, RankFile):
        return Rejected(payload)
    named = replace(rank_file, method=Method(**_method(rank_file, form)))
    method = named.method.to_dict()
    if method != rank_file.method.to_dict():
        report = _with_words_checked(report, method, benchmark)
        payload = {"findings": [finding.to_dict() for finding in report.findings], "text": report.text()}
    claims = _claims(rank_file, form)
    return Validated(payload, replace(report, rank_file=named), named, method, claims, transcript)


def _checked_transcript(
    path: Path, benchmark: Benchmark, dialogue: BoardDialogue, file_name: str
) -> CheckedTranscript:
    """A transcript with its findings, those against its board's dialogue included.

    Its report holds the lists as rankings by turn, by which the same answers are known again.
    """
    from submissions.rank_file.findings import Findings
    from submissions.rank_file.model import RankFile
    from submissions.transcripts.checking import check_transcript

    checked = check_transcript(path, benchmark, max_bytes=MAX_BYTES, name=file_name)
    transcript = checked.transcript
    if transcript is None or checked.benchmark is None:
        return checked
    found = Findings(checked.report.file, benchmark.id)
    for line in dialogue.differences(transcript.choices, transcript.user, checked.limit):
        found.add("wrong-settings", f"{line}.", cause=line)
    lists = {name: [each.top for each in rounds] for name, rounds in transcript.sessions().items()}
    rank_file = RankFile(benchmark.id, benchmark.version, transcript.method, lists)
    findings = (*found.listed(), *checked.report.findings)
    return replace(checked, report=replace(checked.report, findings=findings, rank_file=rank_file))


def _with_words_checked(
    report: ValidationReport, method: Mapping[str, Any], benchmark: Benchmark
) -> ValidationReport:
    """The report with the contradictions of the method that the form has completed."""
    from submissions.rank_file.contradictions import CODE, check_words
    from submissions.rank_file.findings import Findings

    found = Findings(report.file, benchmark.id)
    check_words(method, benchmark.spec, found)
    others = (finding for finding in report.findings if finding.code != CODE)
    return replace(report, findings=(*others, *found.listed()))


def score_file(judged: Validated, benchmark: Benchmark) -> ScoreReport:
    """Score a validated file; it is not validated again."""
    if judged.transcript is not None and judged.transcript.transcript is not None:
        # With the form's words of the method, as a rank file: what it skipped stands in the signature.
        named = judged.transcript.transcript.model_copy(update={"method": judged.rank_file.method})
        return replace(judged.transcript, transcript=named).score().report
    from submissions.rank_file.benchmarks import Benchmarks
    from submissions.scoring import score_checked

    return score_checked(judged.checked, Benchmarks(benchmark))


def write_values(report: ScoreReport, path: Path) -> None:
    """Keep the values a query behind a score: an `.npz` without pickles, which appears whole or not at all.

    It holds by the metric's printed name an array of float64, one value a query in the benchmark's order;
    metrics that have no such value (`median_rank`) are left out.

    Raises:
        OSError: the system refuses to write there.
    """
    import numpy as np

    values = {} if report.evidence is None else report.evidence.values
    write_arrays({name: np.asarray(each, dtype=np.float64) for name, each in values.items()}, path)


def write_arrays(arrays: Mapping[str, Any], path: Path) -> None:
    """Write arrays as an `.npz` without pickles, which appears whole or not at all.

    Raises:
        OSError: the system refuses to write there.
    """
    import numpy as np

    from cir_metrics.atomic import write_whole

    packed = io.BytesIO()
    np.savez(packed, **dict(arrays))
    write_whole(path, packed.getvalue(), durable=True)


def _claims(rank_file: RankFile, form: Mapping[str, Any]) -> dict[str, Any]:
    """What the file itself says of its method; a format without a method block says nothing."""
    from submissions.rank_file.model import FORMAT

    said = {name: value for name, value in rank_file.method.to_dict().items() if name in CLAIMS}
    if rank_file.format == FORMAT:
        return said
    return {name: value for name, value in said.items() if value != form.get(name)}


def _method(rank_file: RankFile, form: Mapping[str, Any]) -> dict[str, Any]:
    from submissions.formats.native import completed
    from submissions.rank_file.model import FORMAT

    block = rank_file.method.to_dict()
    return completed(block, form) if rank_file.format == FORMAT else {**block, **form}
