"""The formats that are read and written, told apart by what a file holds, never by its name.

A format is a module with `parse(document or content, context) -> UncheckedFile | None`, and `dump` where it
is written; whatever the format, rankings end in `Columns`. Where content cannot tell two formats apart
(CIRCO's and ZeroSight's), the benchmark that the caller names does. JSON Lines and Parquet hold the native
form in another container: what is read from them is of the format `native`.

From a file of any of them to what could be read of it, with what is wrong about each rank file, in order: the
bytes are read and unpacked (`content` tells gzip, JSON, JSON Lines, Parquet and runs apart), a JSON value is
parsed, a bundle is taken apart, and each rank file goes to the reader of its format.
"""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cir_datasets.common.paths import regular
from cir_metrics.errors import CallError, did_you_mean
from submissions.formats import native
from submissions.formats.native import ReaderContext, UncheckedFile, parse_json, read_rankings
from submissions.rank_file.benchmarks import Benchmarks
from submissions.rank_file.content import (
    FOOTER,
    JSON,
    LOOKED_AT,
    MAX_BYTES,
    OverBudgetError,
    Source,
    Unpacked,
    inside,
    kind_of,
    limit_of_kind,
    means_transcript,
    too_large,
    unpack,
)
from submissions.rank_file.findings import MAX_EXAMPLES, Findings, json_type, shown
from submissions.rank_file.model import BUNDLE, JSON_RUN, LINES, NATIVE, PARQUET, TREC, RankBundle, RankFile
from submissions.rank_file.texts import label_of

if TYPE_CHECKING:
    from cir_datasets.registry.suites import Suite
    from submissions.rank_file.benchmarks import FileLike

_OF_DIALOGUES = (
    "score it with  cir score {file}  , or hand it to a board of dialogues; `rank_file:` in the "
    "file of  cir multiround --config  writes the rank file of its sessions"
)

_ONE_EACH = "put one rank file a member into the bundle, no other, then run  cir validate {file}"
_BUNDLE_KEYS = ("format", "format_version", "suite", "runs")


@dataclass
class Parsed:
    """What could be read of a file.

    Args:
        findings: what is wrong with the file as a whole.
        files: one a rank file, with what is wrong with that one; None where it could not be read.
        suite: the suite of a bundle, or None.
        benchmark: id of what the file answers, or None where that could not be found out.
    """

    findings: Findings
    files: list[tuple[UncheckedFile | None, Findings]] = field(default_factory=list)
    suite: Suite | None = None
    benchmark: str | None = None

    def collectors(self) -> list[Findings]:
        """All collectors of findings, each once."""
        return [self.findings, *(findings for _, findings in self.files if findings is not self.findings)]

    def finished(self) -> RankFile | RankBundle | None:
        """The rank file or bundle, or None where a part could not be read."""
        runs = [unchecked.finished() if unchecked is not None else None for unchecked, _ in self.files]
        whole = tuple(run for run in runs if run is not None)
        if not whole or len(whole) < len(runs):
            return None
        return whole[0] if self.suite is None else RankBundle(self.suite.id, whole)


@contextlib.contextmanager
def collector_paused() -> Iterator[None]:
    """Let Python's cycle collector rest while a file is read.

    A million fresh strings and lists make it start again and again, and none of them is ever in a cycle: it
    would take longer than the reading.
    """
    was_running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_running:
            gc.enable()


@collector_paused()
def parse_file(
    file: FileLike,
    benchmarks: Benchmarks,
    *,
    max_bytes: int = MAX_BYTES,
    name: str | None = None,
    form: Mapping[str, Any] | None = None,
) -> Parsed:
    """Read a rank file or bundle as far as it can be read.

    Args:
        file: a path, the file's bytes, a `RankFile` or a `RankBundle`.
        benchmarks: resolves benchmark ids.
        max_bytes: bytes that are read at most.
        name: the file's name in messages, where `file` is bytes.
        form: fields of the method block for a file whose own names no method.

    Raises:
        CallError: `file` is of none of these types.
        MissingFileError: no file has that name.
    """
    if not isinstance(file, str | os.PathLike | bytes | RankFile | RankBundle):
        raise CallError(
            f"file is of type {type(file).__name__}. Fix: pass a path, the file's bytes, a RankFile or a "
            "RankBundle."
        )
    label = name or (os.fspath(file) if isinstance(file, str | os.PathLike) else "rank file")
    parsed = Parsed(Findings(label, benchmarks.expected))
    try:
        if isinstance(file, RankFile | RankBundle):
            _take("", file, ReaderContext(parsed.findings, benchmarks, benchmarks.expected, ""), parsed)
        else:
            _take_file(file, benchmarks, parsed, max_bytes, form or {})
    except OverBudgetError as error:
        # A file may answer several benchmarks: of none is known how deep a ranking it wants.
        parsed.findings.add("too-large", str(error), fix=error.fix, cause="budget", depth=50)
        parsed.files.append((None, parsed.findings))
    return parsed


def _take_file(
    file: Source, benchmarks: Benchmarks, parsed: Parsed, max_bytes: int, form: Mapping[str, Any]
) -> None:
    findings = parsed.findings
    held = unpacked(file, findings, max_bytes=max_bytes)
    if held is None:
        return
    kind, budget, value = held.kind, held.budget, held.content
    if means_transcript(value, value):
        findings.add("wrong-kind", "it is a transcript of dialogues, not a rank file.", fix=_OF_DIALOGUES)
        return
    if kind == JSON:
        # Its bytes are let go: beside the value they would be a third of what scoring needs.
        del held
        value = parse_json(value, findings, budget)
    if value is not None:
        expected, label = benchmarks.expected, label_of(findings.file)
        _take(kind, value, ReaderContext(findings, benchmarks, expected, label, budget, form), parsed)


def unpacked(source: Source, findings: Findings, *, max_bytes: int = MAX_BYTES) -> Unpacked | None:
    """What a file holds, without gzip; None with a finding where it is too large, damaged or not readable.

    Args:
        source: a path, or the content itself.
        findings: collects `too-large` and `unreadable`.
        max_bytes: bytes that are read at most; of a run twice as many (`content.RUN_TIMES`).

    Raises:
        MissingFileError: no file has that name.
    """
    if isinstance(source, bytes):
        content, size, limit = source, len(source), limit_of_kind(kind_of(source), max_bytes)
    else:
        path = Path(source)
        try:
            with regular(path).open("rb") as handle:
                head, size = handle.peek(), path.stat().st_size
                if not head.lstrip().startswith((b"{", b"[")):
                    from submissions.formats import odd_files

                    if odd_files.note_array(path, head, findings):
                        return None
                limit = limit_of_kind(kind_of(head), max_bytes)
                content = handle.read(limit + 1)
        except (OSError, ValueError) as error:
            from submissions.formats import odd_files

            odd_files.note_unopened(path, error, findings)
            return None
    if len(content) > limit:
        too_large(content, f"the file has {size:,} bytes; at most {limit:,} are read.", findings)
        return None
    return unpack(content, findings, max_bytes=max_bytes)


def _take(kind: str, value: Any, context: ReaderContext, parsed: Parsed) -> None:
    """Take what a file of a kind holds, a rank file, or a bundle."""
    suite, findings = context.benchmarks.suite, context.findings
    if isinstance(value, RankBundle) or (isinstance(value, dict) and value.get("format") == BUNDLE):
        parsed.suite, runs = _taken_apart(value, context)
        parsed.benchmark = None if parsed.suite is None else parsed.suite.id
        for run, own in runs:
            parsed.files.append((None if run is None else _parse("", run, own), own.findings))
        _check_one_method(parsed.files, findings)
        return
    if suite is not None:
        _refuse_single(value, suite.id, findings)
        context = replace(context, expected=None)
    if suite is None or context.benchmarks.infers:
        unchecked = _parse(kind, value, context)
        parsed.files.append((unchecked, findings))
        if unchecked is not None:
            parsed.benchmark = findings.benchmark = unchecked.spec.id


def _parse(kind: str, value: Any, context: ReaderContext) -> UncheckedFile | None:
    """Read one rank file: of JSON, which format it is in its keys say, never its name."""
    if isinstance(value, Mapping) and "format" in value:
        return native.parse(value, context)
    if isinstance(value, RankFile):
        return _of_object(value, context)
    from submissions.formats import json_run, lines, parquet, servers, trec

    readers = {PARQUET: parquet.parse, LINES: lines.parse, TREC: trec.parse, JSON_RUN: json_run.parse}
    if kind not in readers:
        return servers.parse(value, context)
    unchecked = readers[kind](value, context)
    return None if unchecked is None else replace(unchecked, kind=kind)


def _taken_apart(
    bundle: RankBundle | Mapping[str, Any], context: ReaderContext
) -> tuple[Suite | None, list[tuple[RankFile | Mapping[str, Any] | None, ReaderContext]]]:
    """The suite and the runs of a bundle, each with what its reader gets; findings where these do not fit.

    Args:
        bundle: an object, or the value of a file.
        context: of the file.

    Returns:
        The suite, or None where there is none; runs only where they are of its members, and None in the place
        of a run that is a bundle itself.
    """
    findings = context.findings
    if isinstance(bundle, RankBundle):
        suite_id, runs, members = bundle.suite, list[Any](bundle.runs), [run.benchmark for run in bundle.runs]
    elif _is_sound_bundle(bundle, findings):
        suite_id, runs = bundle["suite"], bundle["runs"]
        members = [run.get("benchmark") for run in runs]
    else:
        return None, []
    suite = _suite(suite_id, context.benchmarks, findings)
    if suite is None or not _members_fit(members, suite, findings):
        return suite, []
    taken: list[tuple[Any, ReaderContext]] = []
    for run, member in zip(runs, members, strict=True):
        printed = shown(member)[1:-1]
        own = Findings(findings.file, printed, member=printed)
        nested = isinstance(run, dict) and run.get("format") == BUNDLE
        if nested:
            own.add("wrong-format", "a bundle cannot hold another bundle.")
        reader = ReaderContext(own, context.benchmarks, None, "", context.budget)
        taken.append((None if nested else run, reader))
    return suite, taken


def _of_object(rank_file: RankFile, context: ReaderContext) -> UncheckedFile | None:
    """What would be read of an object; None with a finding where its benchmark is wrong."""
    header = {"benchmark": rank_file.benchmark, "benchmark_version": rank_file.benchmark_version}
    spec = native.read_benchmark(header, context)
    if spec is None:
        return None
    version = native.read_benchmark_version(header, spec, context.findings)
    subset, answers, of_subset = rank_file.subset_rankings, None, None
    if rank_file.rankings or subset is None or rank_file.format == NATIVE:
        answers = read_rankings(rank_file.rankings, spec, context)
    if subset is not None:
        of_subset = read_rankings(subset, spec, context, section="subset_rankings")
    return UncheckedFile(spec, version, rank_file.method, answers, of_subset, rank_file.format)


def _refuse_single(value: Any, suite_id: str, findings: Findings) -> None:
    """Note that one rank file, an object or what a file holds, stands where a bundle should."""
    message = f"{suite_id} is a suite, which is answered by a bundle of one rank file a member"
    named = value.get("benchmark") if isinstance(value, dict) else None
    named = named if isinstance(named, str) else None
    message += "." if named is None else f"; this file answers {shown(named)} alone."
    fix = "pass a RankBundle"
    if not isinstance(value, RankFile):
        join = f"cir convert FILE... --to native --benchmark {suite_id} --out bundle.json"
        fix = f"join one rank file a member:  {join}"
    findings.add("wrong-benchmark", message, value=named, fix=fix)


def _is_sound_bundle(document: Mapping[str, Any], findings: Findings) -> bool:
    """Whether a document names a suite and holds a list of objects; noted."""
    if "format_version" in document and not native.is_version(document, findings):
        return False
    native.note_unknown(document, _BUNDLE_KEYS, findings)
    suite, runs = document.get("suite"), document.get("runs")
    if "suite" not in document:
        findings.add("wrong-benchmark", 'the key "suite" is missing; a bundle answers a suite.')
    elif not isinstance(suite, str):
        findings.add("bad-type", f'"suite" is {json_type(suite)}; it must be a suite\'s id.')
    if not isinstance(runs, list):
        findings.add("bad-type", f'"runs" is {json_type(runs)}; it must be a list of rank files.')
        return False
    odd = next((place for place, run in enumerate(runs) if not isinstance(run, dict)), None)
    if odd is not None:
        findings.add("bad-type", f"runs[{odd}] is {json_type(runs[odd])}; it must be a rank file.")
    return odd is None and isinstance(suite, str)


def _suite(suite_id: str, benchmarks: Benchmarks, findings: Findings) -> Suite | None:
    from cir_datasets.registry.suites import find_suite, suite_ids

    suite = find_suite(suite_id)
    if suite is None:
        message = f"no suite {shown(suite_id)}; there are {', '.join(suite_ids())}."
    elif benchmarks.expected is not None and benchmarks.expected != suite_id:
        expected = shown(benchmarks.expected)
        message = f"the file answers the suite {shown(suite_id)}, but was checked against {expected}."
    else:
        return suite
    findings.add("wrong-benchmark", message, value=suite_id)
    return None


def _members_fit(members: Sequence[Any], suite: Suite, findings: Findings) -> bool:
    """Whether a bundle's runs are the suite's members, none twice; only then are they looked at.

    A member without a run is a finding too, but hides nothing of the others.
    """
    if len(members) > len(suite.benchmarks):
        findings.add(
            "wrong-benchmark",
            f"the bundle holds {len(members):,} runs; {suite.id} has {len(suite.benchmarks)} members.",
            fix=_ONE_EACH,
        )
        return False
    misfits = suite.fit(members)
    for misfit in misfits:
        if misfit.cause == "nameless":
            message = f"runs[{misfit.number}] names no benchmark; it must be a rank file."
            findings.add("wrong-benchmark", message, cause=misfit.cause, fix=_ONE_EACH)
            continue
        name, fix = str(misfit.name), _ONE_EACH
        if misfit.cause == "twice":
            message = f"{shown(name)} is answered {misfit.number} times."
        elif misfit.cause == "alien":
            message = f"{shown(name)} is not a member of {suite.id}.{did_you_mean(name, suite.benchmarks)}"
        else:
            message = f"the suite's member {shown(name)} has no run."
            fix = "add one rank file for each member, then run  cir validate {file}"
        findings.add("wrong-benchmark", message, cause=misfit.cause, value=name, fix=fix)
    return all(misfit.cause == "missing" for misfit in misfits)


def _check_one_method(runs: Sequence[tuple[UncheckedFile | None, Findings]], findings: Findings) -> None:
    """A suite's number is one method's: runs of several would make a mean that nobody reached."""
    methods = (unchecked.method for unchecked, _ in runs if unchecked is not None)
    names = list(dict.fromkeys(method.name for method in methods if method is not None))
    if len(names) > 1:
        listed = ", ".join(shown(name) for name in names[:MAX_EXAMPLES])
        findings.add(
            "bad-metadata",
            f"the runs name {len(names)} methods: {listed}. A bundle is one method's answer.",
            cause="methods",
            fix="write one method.name into every run, then run  cir validate {file}",
        )


def is_transcript(file: Source) -> bool:
    """Whether a file is meant as a transcript of dialogues; its content may still be wrong.

    Args:
        file: a path, or the file's bytes; only its beginning and its end are looked at.
    """
    try:
        head, footer = _ends(file)
    except OSError:
        return False
    return means_transcript(inside(head), footer)


def are_transcripts(files: Sequence[str]) -> bool:
    """Whether these are transcripts, and not rank files.

    Args:
        files: paths; of those that are missing or empty the reader says it.

    Raises:
        CallError: some are, and some are not.
    """
    there = [file for file in files if Path(file).is_file() and Path(file).stat().st_size]
    found = [file for file in there if is_transcript(file)]
    other = next((file for file in there if file not in found), None)
    if found and other is not None:
        raise CallError(
            f"{found[0]} is a transcript of dialogues, and {other} is not. "
            "Fix: give transcripts alone, or rank files alone."
        )
    return bool(found)


def _ends(file: Source) -> tuple[bytes, bytes]:
    if isinstance(file, bytes):
        return file[:LOOKED_AT], file[-FOOTER:]
    path = regular(Path(file))
    with path.open("rb") as handle:
        head = handle.read(LOOKED_AT)
        if kind_of(head) != PARQUET:
            return head, b""
        handle.seek(max(0, path.stat().st_size - FOOTER))
        return head, handle.read()
