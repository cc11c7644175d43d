"""Judging one file: validation, then scoring, by the very functions that the command line uses."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from submissions.rank_file.content import MAX_BYTES

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec
    from cir_datasets.rows.benchmark import Benchmark
    from leaderboard.dialogues import BoardDialogue
    from submissions.rank_file.benchmarks import Benchmarks
    from submissions.rank_file.findings import ValidationReport
    from submissions.rank_file.model import RankBundle, RankFile
    from submissions.scoring.score_report import ScoreReport
    from submissions.transcripts.sessions import CheckedTranscript


CLAIMS = ("oracle", "zero_shot", "trained_on", "reference")
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
    rank_file: RankFile | RankBundle
    method: dict[str, Any]
    claims: dict[str, Any]
    transcript: CheckedTranscript | None = None


def judge_file(
    path: Path,
    benchmark: Benchmark | Benchmarks,
    *,
    file_name: str,
    form: Mapping[str, Any],
    dialogue: BoardDialogue | None = None,
) -> Rejected | Validated:
    """Validate a stored file against its board's benchmark or suite.

    Fields of the method that the file leaves out are taken from the form that came with it; in a format that
    has no method block, the form says everything. A bundle's method is what all its rank files say together:
    it was trained on what any of them names, and zero-shot where none denies it.

    Args:
        path: the stored copy.
        benchmark: what the board ranks: a benchmark, or what resolves the id of a benchmark or suite.
        file_name: the sender's name for the file, which stands in the messages.
        form: the method's fields as they were sent beside the file.
        dialogue: of a board that takes transcripts; None of one that takes rank files.
    """
    from submissions.rank_file.model import Method, RankBundle, runs_of
    from submissions.validation import validate

    asked = _resolved(benchmark)
    transcript = None
    if dialogue is None:
        content = path.read_bytes()
        report = validate(content, asked, part=False, name=file_name, form=form)
    else:
        transcript = _checked_transcript(path, asked.load(str(asked.expected)), dialogue, file_name, form)
        report = transcript.report
    payload = {"findings": [finding.to_dict() for finding in report.findings], "text": report.text()}
    rank_file = report.rank_file
    if not report.ok or rank_file is None:
        return Rejected(payload)
    runs = runs_of(rank_file)
    named = tuple(replace(run, method=Method(**_method(run, form))) for run in runs)
    method = _together([run.method.to_dict() for run in named])
    if any(method != run.method.to_dict() for run in runs):
        specs = [asked.spec(run.benchmark) for run in runs]
        report = _with_words_checked(report, method, specs)
        payload = {"findings": [finding.to_dict() for finding in report.findings], "text": report.text()}
    claims = _together([_claims(run, form) for run in runs])
    whole = replace(rank_file, runs=named) if isinstance(rank_file, RankBundle) else named[0]
    return Validated(payload, replace(report, rank_file=whole), whole, method, claims, transcript)


def explained(path: Path, benchmark: str) -> str:
    """What a refused file says, as `cir explain` prints it; empty where it cannot be read as rankings.

    Of another benchmark than its board's there are no numbers: a board of that one may hold them back.

    Args:
        path: the stored copy.
        benchmark: id of the benchmark or suite that its board ranks, whose labels are public.
    """
    from cir_datasets.registry import members_of
    from submissions import explain

    explanation = explain(path.read_bytes(), benchmark)
    if {part.benchmark for part in explanation.rankings} - {*members_of(benchmark)}:
        counted = tuple(replace(part, readings=()) for part in explanation.rankings)
        explanation = replace(explanation, rankings=counted, readings=(), near=())
    # The first line has the findings, which stand beside it.
    return explanation.text().partition("\n")[2] if explanation.rankings else ""


def _resolved(benchmark: Benchmark | Benchmarks) -> Benchmarks:
    from submissions.rank_file.benchmarks import Benchmarks

    return benchmark if isinstance(benchmark, Benchmarks) else Benchmarks(benchmark)


def _together(blocks: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What the method blocks of a bundle's rank files say together; where they differ, what owns up to more.

    Example:
        >>> _together([{"name": "Ours", "zero_shot": True}, {"name": "Ours", "zero_shot": False}])
        {'name': 'Ours', 'zero_shot': False}
    """
    from submissions.rank_file.texts import is_oracle

    if len(blocks) == 1:
        return blocks[0]
    found: dict[str, Any] = {}
    for block in blocks:
        found = {**block, **found}
    if any(block.get("zero_shot") is False for block in blocks):
        found["zero_shot"] = False
    for field in ("trained_on", "text_fields"):
        if field in found:
            found[field] = list(dict.fromkeys(each for block in blocks for each in block.get(field) or ()))
    oracles = [block["oracle"] for block in blocks if is_oracle(block)]
    if oracles:
        found["oracle"] = oracles[0]
    if len({block.get("reference") for block in blocks}) > 1:
        found.pop("reference", None)  # each member's signature says its own
    skipped = [block["skipped_images"] for block in blocks if block.get("skipped_images")]
    if skipped:
        found["skipped_images"] = sum(skipped)
    return found


def _checked_transcript(
    path: Path, benchmark: Benchmark, dialogue: BoardDialogue, file_name: str, form: Mapping[str, Any]
) -> CheckedTranscript:
    """A transcript with its findings, those against its board's dialogue included."""
    from submissions.rank_file.findings import Findings
    from submissions.transcripts.checking import check_transcript

    checked = check_transcript(path, benchmark, max_bytes=MAX_BYTES, name=file_name, form=form)
    transcript = checked.transcript
    if transcript is None or checked.benchmark is None:
        return checked
    found = Findings(checked.report.file, benchmark.id)
    for line in dialogue.differences(transcript.choices, transcript.user, checked.limit):
        found.add("wrong-settings", f"{line}.", cause=line)
    findings = (*found.listed(), *checked.report.findings)
    return replace(checked, report=replace(checked.report, findings=findings))


def _with_words_checked(
    report: ValidationReport, method: Mapping[str, Any], specs: Sequence[BenchmarkSpec]
) -> ValidationReport:
    """The report with the contradictions of the method that the form has completed."""
    from submissions.rank_file.findings import Findings
    from submissions.validation import CODE, check_words

    found = Findings(report.file, report.benchmark)
    for spec in specs:
        check_words(method, spec, found)
    others = (finding for finding in report.findings if finding.code != CODE)
    return replace(report, findings=(*others, *found.listed()))


def score_file(judged: Validated, benchmark: Benchmark | Benchmarks) -> ScoreReport:
    """Score a validated file; it is not validated again."""
    from submissions.rank_file.model import Method

    if judged.transcript is not None and judged.transcript.transcript is not None:
        # With the form's words of the method, as a rank file: what it skipped stands in the signature.
        named = judged.transcript.transcript.model_copy(update={"method": Method(**judged.method)})
        return replace(judged.transcript, transcript=named).score()
    from submissions.scoring import score_checked

    return score_checked(judged.checked, _resolved(benchmark))


def write_values(report: ScoreReport, path: Path, lists: Mapping[str, Any] | None = None) -> None:
    """Keep the values per query behind a score: an `.npz` without pickles, which appears whole or not at all.

    It holds by the metric's printed name an array of float64, one value per query in the benchmark's order;
    metrics that have no such value (`median_rank`) are left out. Of a suite it holds what each query adds to
    the number (`Sample.joined`), and beside that each member's own values, under the metric's name with `@`
    and the member's id.

    Args:
        report: the score.
        path: of the `.npz`.
        lists: further arrays, the beginnings of the rankings; see `leaderboard.queue.beginnings`.

    Raises:
        OSError: the system refuses to write there.
    """
    import numpy as np

    from cir_datasets.common.atomic import write_whole

    values = _suite_values(report) if report.runs else {}
    if report.evidence is not None:
        values = dict(report.evidence.values)
    packed = io.BytesIO()
    arrays: dict[str, Any] = {name: np.asarray(each, dtype=np.float64) for name, each in values.items()}
    np.savez_compressed(packed, **arrays, **(lists or {}))
    write_whole(path, packed.getvalue(), durable=True)


def _suite_values(report: ScoreReport) -> dict[str, Any]:
    from cir_metrics.catalogue import NO_MEANS
    from submissions.scoring.samples import Sample

    sample = Sample.behind(report)
    found = {metric: sample.joined(metric) for metric in report.metrics if metric not in NO_MEANS}
    for part in sample.parts:
        found |= {f"{metric}@{part.benchmark.id}": values for metric, values in part.values.items()}
    return found


def _claims(rank_file: RankFile, form: Mapping[str, Any]) -> dict[str, Any]:
    """What the file itself says of its method; a format without a method block says nothing."""
    from submissions.rank_file.model import NATIVE

    said = {name: value for name, value in rank_file.method.to_dict().items() if name in CLAIMS}
    if rank_file.format == NATIVE:
        return said
    return {name: value for name, value in said.items() if value != form.get(name)}


def _method(rank_file: RankFile, form: Mapping[str, Any]) -> dict[str, Any]:
    from submissions.formats.native import completed
    from submissions.rank_file.model import NATIVE

    block = rank_file.method.to_dict()
    return completed(block, form) if rank_file.format == NATIVE else {**block, **form}
