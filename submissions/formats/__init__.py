"""The formats that are read and written, told apart by what a file holds, never by its name.

A format is a module with `parse(document or content, context) -> UncheckedFile | None`, and `dump` where it
is written; whatever the format, rankings end in `Columns`. Where content cannot tell two formats apart
(CIRCO's and ZeroSight's), the benchmark that the caller names does. JSON Lines and Parquet hold the native
form in another container: what is read from them is of the format `native`.

From a file of any of them to what could be read of it, with what is wrong about each rank file, in order: the
bytes are read and unpacked (`containers` tells gzip, JSON, JSON Lines, Parquet and TREC apart),
a JSON value is parsed, a bundle is taken apart, and each rank file goes to the reader of its format.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from cir_metrics.errors import CallError, did_you_mean
from submissions.formats import native
from submissions.formats.budget import MAX_BYTES, Budget, OverBudgetError
from submissions.formats.containers import JSON, label_of, means_transcript, unpack
from submissions.formats.json_reader import collector_paused, parse_json, read_bytes
from submissions.formats.native import ReaderContext, UncheckedFile, read_rankings
from submissions.rank_file.benchmarks import Benchmarks
from submissions.rank_file.findings import MAX_EXAMPLES, Findings, json_type, shown
from submissions.rank_file.model import BUNDLE, LINES, NATIVE, PARQUET, TREC, RankBundle, RankFile

if TYPE_CHECKING:
    from cir_datasets.registry.suites import Suite
    from submissions.rank_file.benchmarks import FileLike


_OF_DIALOGUES = (
    "score it with  cir score {file}  , or hand it to a board of dialogues; cir multiround --rank-file "
    "writes the rank file of its sessions"
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
    # A server passes names that others chose: nothing in them may steer a terminal.
    label = "".join(character if character.isprintable() else "?" for character in label)
    reader = _FileReader(benchmarks, Parsed(Findings(label, benchmarks.expected)), label)
    if isinstance(file, RankFile):
        reader.take_object(file)
    elif isinstance(file, RankBundle):
        reader.take_runs(file.suite, file.runs, [run.benchmark for run in file.runs])
    else:
        try:
            reader.take_bytes(file, max_bytes, form or {})
        except OverBudgetError as error:
            # A file may answer several benchmarks: of none is known how deep a ranking it wants.
            reader.parsed.findings.add("too-large", str(error), fix=error.fix, cause="budget", depth=50)
            reader.parsed.files.append((None, reader.parsed.findings))
    return reader.parsed


@dataclass
class _FileReader:
    """Fills a `Parsed`.

    Args:
        benchmarks: resolves benchmark ids.
        parsed: what is filled.
        label: the file's name.
    """

    benchmarks: Benchmarks
    parsed: Parsed
    label: str

    def take_bytes(
        self, file: str | os.PathLike[str] | bytes, max_bytes: int, form: Mapping[str, Any]
    ) -> None:
        findings = self.parsed.findings
        content = read_bytes(file, findings, max_bytes=max_bytes)
        unpacked = None if content is None else unpack(content, findings, max_bytes=max_bytes)
        if unpacked is None:
            return
        kind, budget, content = unpacked.kind, unpacked.budget, unpacked.content
        if means_transcript(content, content):
            findings.add("wrong-kind", "it is a transcript of dialogues, not a rank file.", fix=_OF_DIALOGUES)
            return
        document = None
        if kind == JSON:
            # Its bytes are let go: beside the value they would be a third of what scoring needs.
            del unpacked
            document, content = parse_json(content, findings, budget), b""
            if document is None:
                return
        if isinstance(document, dict) and document.get("format") == BUNDLE:
            self._take_bundle(document, budget)
        elif not self._is_of_suite(document, findings):
            context = ReaderContext(
                findings, self.benchmarks, self.benchmarks.expected, label_of(self.label), budget, form
            )
            self._note(_parse_json(document, context) if kind == JSON else _parse(kind, content, context))

    def take_object(self, rank_file: RankFile) -> None:
        if self.benchmarks.suite is None:
            self._note(self._unchecked(rank_file, self.benchmarks.expected, self.parsed.findings))
            return
        suite = self.benchmarks.suite.id
        message = f"{suite} is a suite, which is answered by a bundle of one rank file a member."
        self.parsed.findings.add("wrong-benchmark", message, fix="pass a RankBundle")

    def take_runs(
        self,
        suite_id: str,
        runs: Sequence[RankFile | Mapping[str, Any]],
        members: Sequence[Any],
        budget: Budget | None = None,
    ) -> None:
        """Take the rank files of a bundle, or its runs as JSON, one a member of the suite."""
        parsed = self.parsed
        parsed.suite = _suite(suite_id, self.benchmarks, parsed.findings)
        if parsed.suite is None:
            return
        parsed.benchmark = parsed.suite.id
        if not _members_fit(members, parsed.suite, parsed.findings):
            return
        for run, member in zip(runs, members, strict=True):
            printed = shown(member)[1:-1]
            findings = Findings(self.label, printed, member=printed)
            unchecked = None
            if isinstance(run, RankFile):
                unchecked = self._unchecked(run, None, findings)
            elif run.get("format") == BUNDLE:
                findings.add("wrong-format", "a bundle cannot hold another bundle.")
            else:
                own = ReaderContext(findings, self.benchmarks, None, "", budget or Budget(0))
                unchecked = _parse_json(run, own)
            parsed.files.append((unchecked, findings))
        _check_one_method(parsed)

    def _take_bundle(self, document: dict[str, Any], budget: Budget) -> None:
        findings = self.parsed.findings
        if "format_version" in document and not native.is_version(document, findings):
            return
        native.note_unknown_keys(document, _BUNDLE_KEYS, findings)
        suite, runs = document.get("suite"), document.get("runs")
        if "suite" not in document:
            findings.add("wrong-benchmark", 'the key "suite" is missing; a bundle answers a suite.')
        elif not isinstance(suite, str):
            findings.add("bad-type", f'"suite" is {json_type(suite)}; it must be a suite\'s id.')
        if not isinstance(runs, list):
            findings.add("bad-type", f'"runs" is {json_type(runs)}; it must be a list of rank files.')
            return
        odd = next((place for place, run in enumerate(runs) if not isinstance(run, dict)), None)
        if odd is not None:
            findings.add("bad-type", f"runs[{odd}] is {json_type(runs[odd])}; it must be a rank file.")
        elif isinstance(suite, str):
            self.take_runs(suite, runs, [run.get("benchmark") for run in runs], budget)

    def _is_of_suite(self, document: Any, findings: Findings) -> bool:
        """Whether a bundle was to be read, which this file is not; noted."""
        suite = self.benchmarks.suite
        if suite is None:
            return False
        named = document.get("benchmark") if isinstance(document, dict) else None
        named = named if isinstance(named, str) else None
        findings.add(
            "wrong-benchmark",
            f"{suite.id} is a suite, which is answered by a bundle of one rank file a member"
            + ("." if named is None else f"; this file answers {shown(named)} alone."),
            value=named,
            fix=f"join one rank file a member:  cir convert FILE... --to native --benchmark {suite.id} "
            "--out bundle.json",
        )
        return True

    def _note(self, unchecked: UncheckedFile | None) -> None:
        parsed = self.parsed
        parsed.files.append((unchecked, parsed.findings))
        if unchecked is not None:
            parsed.benchmark = parsed.findings.benchmark = unchecked.spec.id

    def _unchecked(
        self, rank_file: RankFile, expected: str | None, findings: Findings
    ) -> UncheckedFile | None:
        header = {"benchmark": rank_file.benchmark, "benchmark_version": rank_file.benchmark_version}
        context = ReaderContext(findings, self.benchmarks, expected, "")
        spec = native.read_benchmark(header, context)
        if spec is None:
            return None
        version = native.read_benchmark_version(header, spec, findings)
        subset, answers, of_subset = rank_file.subset_rankings, None, None
        if rank_file.rankings or subset is None or rank_file.format == NATIVE:
            answers = read_rankings(rank_file.rankings, spec, context)
        if subset is not None:
            of_subset = read_rankings(subset, spec, context, section="subset_rankings")
        return UncheckedFile(spec, version, rank_file.method, answers, of_subset, rank_file.format)


def _parse(kind: str, content: bytes, context: ReaderContext) -> UncheckedFile | None:
    """Read one rank file that is not one JSON value: JSON Lines, Parquet or a TREC run."""
    from submissions.formats import lines, parquet, trec

    readers = {PARQUET: parquet.parse, LINES: lines.parse, TREC: trec.parse}
    unchecked = readers[kind](content, context)
    return None if unchecked is None else replace(unchecked, kind=kind)


def _parse_json(document: Any, context: ReaderContext) -> UncheckedFile | None:
    """Read one rank file that is a JSON value: which format it is in, its keys say, never its name."""
    if isinstance(document, Mapping) and "format" in document:
        return native.parse(document, context)
    from submissions.formats import servers

    return servers.parse(document, context)


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


def _check_one_method(parsed: Parsed) -> None:
    """A suite's number is one method's: runs of several would make a mean that nobody reached."""
    methods = (unchecked.method for unchecked, _ in parsed.files if unchecked is not None)
    names = list(dict.fromkeys(method.name for method in methods if method is not None))
    if len(names) > 1:
        listed = ", ".join(shown(name) for name in names[:MAX_EXAMPLES])
        parsed.findings.add(
            "bad-metadata",
            f"the runs name {len(names)} methods: {listed}. A bundle is one method's answer.",
            cause="methods",
            fix="write one method.name into every run, then run  cir validate {file}",
        )
