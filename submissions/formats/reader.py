"""From a file of any accepted format to what could be read of it, with what is wrong about each rank file.

In order: the bytes are read and unpacked (`containers` tells gzip, JSON, JSON Lines, Parquet and TREC apart),
a JSON value is parsed, a bundle is taken apart, and each rank file goes to the reader of its format.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from cir_metrics.errors import CallError, did_you_mean
from submissions.formats import native
from submissions.formats.budget import MAX_BYTES, Budget, OverBudgetError
from submissions.formats.containers import JSON, Unpacked, label_of, unpack
from submissions.formats.json_reader import collector_paused, parse_json, read_bytes
from submissions.formats.kinds import means_transcript
from submissions.formats.unchecked import ReaderContext, UncheckedFile, read_rankings
from submissions.rank_file.benchmarks import Benchmarks
from submissions.rank_file.columns import Columns
from submissions.rank_file.findings import MAX_EXAMPLES, Findings, json_type, shown
from submissions.rank_file.model import BUNDLE, LINES, PARQUET, TREC, RankBundle, RankFile

if TYPE_CHECKING:
    from cir_datasets.registry.suites import Suite
    from submissions.rank_file.benchmarks import FileLike


_OF_DIALOGUES = (
    "score it with  cir score {file}  , or hand it to a board of dialogues; cir multiround --rank-file "
    "writes the rank file of its sessions"
)
_ONE_EACH = "put one rank file a member into the bundle, no other, then run  cir validate {file}"


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
        return [self.findings, *(found for _, found in self.files if found is not self.findings)]

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
    if isinstance(file, RankFile | RankBundle):
        return _parse_object(file, benchmarks, label)
    parsed = Parsed(Findings(label, benchmarks.expected))
    try:
        _parse_file(file, benchmarks, parsed, label, max_bytes, form or {})
    except OverBudgetError as error:
        # A file may answer several benchmarks: of none is known how deep a ranking it wants.
        parsed.findings.add("too-large", str(error), fix=error.fix, cause="budget", depth=50)
        parsed.files.append((None, parsed.findings))
    return parsed


def _parse_file(
    file: str | os.PathLike[str] | bytes,
    benchmarks: Benchmarks,
    parsed: Parsed,
    label: str,
    max_bytes: int,
    form: Mapping[str, Any],
) -> None:
    opened = _opened(file, parsed.findings, max_bytes)
    if opened is None:
        return
    unpacked, document = opened
    if isinstance(document, dict) and document.get("format") == BUNDLE:
        _parse_bundle(document, benchmarks, parsed, unpacked.budget)
        return
    if benchmarks.suite is not None:
        named = document.get("benchmark") if isinstance(document, dict) else None
        parsed.findings.add(
            "wrong-benchmark",
            f"{benchmarks.suite.id} is a suite, which is answered by a bundle of one rank file a member"
            + (f"; this file answers {shown(named)} alone." if isinstance(named, str) else "."),
            value=named if isinstance(named, str) else None,
            fix="join one rank file a member:  cir convert FILE... --to native --benchmark "
            f"{benchmarks.suite.id} --out bundle.json",
        )
        return
    context = ReaderContext(
        parsed.findings, benchmarks, benchmarks.expected, label_of(label), unpacked.budget, form
    )
    if unpacked.kind == JSON:
        unchecked = _parse_json(document, context)
    else:
        unchecked = _parse_packed(unpacked.kind, unpacked.content, context)
    _note(unchecked, parsed)


def _opened(
    file: str | os.PathLike[str] | bytes, findings: Findings, max_bytes: int
) -> tuple[Unpacked, Any] | None:
    """What a file is and, of JSON, its value without its bytes; None with findings on failure.

    The bytes of JSON are let go here: beside the value they would be a third of what scoring needs.

    Raises:
        OverBudgetError: it holds more than is read.
    """
    content = read_bytes(file, findings, max_bytes=max_bytes)
    unpacked = None if content is None else unpack(content, findings, max_bytes=max_bytes)
    if unpacked is not None and means_transcript(unpacked.content, unpacked.content):
        findings.add("wrong-kind", "it is a transcript of dialogues, not a rank file.", fix=_OF_DIALOGUES)
        return None
    if unpacked is None or unpacked.kind != JSON:
        return None if unpacked is None else (unpacked, None)
    del content
    document = parse_json(unpacked.content, findings, unpacked.budget)
    return None if document is None else (replace(unpacked, content=b""), document)


def _note(unchecked: UncheckedFile | None, parsed: Parsed) -> None:
    parsed.files.append((unchecked, parsed.findings))
    if unchecked is not None:
        parsed.benchmark = parsed.findings.benchmark = unchecked.spec.id


def _parse_packed(kind: str, content: bytes, context: ReaderContext) -> UncheckedFile | None:
    """Read one rank file that is not one JSON value: JSON Lines, Parquet or a TREC run."""
    from submissions.formats import lines, parquet, trec

    readers = {PARQUET: parquet.parse, LINES: lines.parse, TREC: trec.parse}
    unchecked = readers[kind](content, context)
    return None if unchecked is None else replace(unchecked, kind=kind)


def _parse_json(document: Any, context: ReaderContext) -> UncheckedFile | None:
    """Read one rank file that is a JSON value: which format it is in, its keys say, never its name."""
    if isinstance(document, Mapping) and "format" in document:
        return native.parse(document, context)
    return _parse_foreign(document, context)


def _parse_foreign(document: Any, context: ReaderContext) -> UncheckedFile | None:
    from submissions.formats import circo_server, cirr_server, fashioniq, lists, zerosight

    dataset = "" if context.expected is None else context.expected.partition("/")[0]
    if fashioniq.is_starter_kit(document, asked=dataset in fashioniq.BENCHMARKS):
        return fashioniq.parse(document, context)
    if not isinstance(document, Mapping):
        context.findings.add(
            "wrong-format", f"the file holds {json_type(document)}; a rank file is an object."
        )
        return None
    if "version" in document and "metric" in document:
        return cirr_server.parse(document, context)
    if not dataset and "rankings" not in document and _holds_lists(document):
        found = lists.benchmark_of(document, context.benchmarks, context.findings)
        return None if found is None else _parse_foreign(document, replace(context, expected=found))
    if dataset in zerosight.BENCHMARKS:
        return zerosight.parse(document, context)
    if dataset in circo_server.BENCHMARKS and _is_numbered(document):
        return circo_server.parse(document, context)
    if dataset and "rankings" not in document and _holds_lists(document):
        return lists.parse(document, context)
    if "rankings" in document:
        context.findings.add(
            "wrong-format", 'the key "format" is missing, so that the file does not say how it is to be read.'
        )
    else:
        keys = ", ".join(shown(key) for key in list(document)[:3])
        holds = f"an object with the keys {keys}" if keys else "an empty object"
        context.findings.add(
            "wrong-format",
            f"the file holds {holds}, which is neither a rank file, nor a file of the CIRR or CIRCO "
            "server, nor ZeroSight results, nor lists of image ids by query id.",
        )
    return None


def _is_numbered(document: Mapping[str, Any]) -> bool:
    numbers = sum(key.isascii() and key.isdigit() for key in document)
    return numbers > 0 and 2 * numbers >= len(document)


def _holds_lists(document: Mapping[str, Any]) -> bool:
    """Whether nearly everything is a list, as in results that are nothing but rankings."""
    if isinstance(document, Columns):
        return len(document) > 0
    lists = sum(isinstance(value, list) for value in document.values())
    return lists > 0 and 2 * lists >= len(document)


def _parse_bundle(document: dict[str, Any], benchmarks: Benchmarks, parsed: Parsed, budget: Budget) -> None:
    header = native.parse_bundle_header(document, parsed.findings)
    if header is None:
        return
    suite_id, runs = header
    parsed.suite = _suite(suite_id, benchmarks, parsed.findings)
    if parsed.suite is None:
        return
    parsed.benchmark = parsed.suite.id
    if not _members_fit([run.get("benchmark") for run in runs], parsed.suite, parsed.findings):
        return
    for run in runs:
        member = run.get("benchmark")
        id_shown = shown(member)[1:-1] if isinstance(member, str) else None
        own = Findings(parsed.findings.file, id_shown, member=id_shown)
        if run.get("format") == BUNDLE:
            own.add("wrong-format", "a bundle cannot hold another bundle.")
            parsed.files.append((None, own))
            continue
        parsed.files.append((_parse_json(run, ReaderContext(own, benchmarks, None, "", budget)), own))
    _check_one_method(parsed)


def _suite(suite_id: str, benchmarks: Benchmarks, findings: Findings) -> Suite | None:
    from cir_datasets.registry.suites import find_suite, suite_ids

    suite = find_suite(suite_id)
    if suite is None:
        known_ids = ", ".join(suite_ids())
        findings.add("wrong-benchmark", f"no suite {shown(suite_id)}; there are {known_ids}.", value=suite_id)
        return None
    if benchmarks.expected is not None and benchmarks.expected != suite_id:
        findings.add(
            "wrong-benchmark",
            f"the file answers the suite {shown(suite_id)}, but was checked against "
            f"{shown(benchmarks.expected)}.",
            value=suite_id,
        )
        return None
    return suite


def _members_fit(members: list[Any], suite: Suite, findings: Findings) -> bool:
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
    methods = [
        unchecked.method.name for unchecked, _ in parsed.files if unchecked is not None and unchecked.method
    ]
    names = list(dict.fromkeys(methods))
    if len(names) > 1:
        listed = ", ".join(shown(name) for name in names[:MAX_EXAMPLES])
        parsed.findings.add(
            "bad-metadata",
            f"the runs name {len(names)} methods: {listed}. A bundle is one method's answer.",
            cause="methods",
            fix="write one method.name into every run, then run  cir validate {file}",
        )


def _parse_object(file: RankFile | RankBundle, benchmarks: Benchmarks, label: str) -> Parsed:
    parsed = Parsed(Findings(label, benchmarks.expected))
    if isinstance(file, RankFile):
        if benchmarks.suite is not None:
            message = (
                f"{benchmarks.suite.id} is a suite, which is answered by a bundle of one rank file a member."
            )
            parsed.findings.add("wrong-benchmark", message, fix="pass a RankBundle")
            return parsed
        _note(_unchecked_of(file, benchmarks, benchmarks.expected, parsed.findings), parsed)
        return parsed
    parsed.suite = _suite(file.suite, benchmarks, parsed.findings)
    if parsed.suite is not None:
        parsed.benchmark = parsed.suite.id
        if not _members_fit([run.benchmark for run in file.runs], parsed.suite, parsed.findings):
            return parsed
        for run in file.runs:
            id_shown = shown(run.benchmark)[1:-1]
            own = Findings(label, id_shown, member=id_shown)
            parsed.files.append((_unchecked_of(run, benchmarks, None, own), own))
        _check_one_method(parsed)
    return parsed


def _unchecked_of(
    rank_file: RankFile, benchmarks: Benchmarks, expected: str | None, findings: Findings
) -> UncheckedFile | None:
    header = {"benchmark": rank_file.benchmark, "benchmark_version": rank_file.benchmark_version}
    context = ReaderContext(findings, benchmarks, expected, "")
    spec = native.read_benchmark(header, context)
    if spec is None:
        return None
    version = native.read_benchmark_version(header, spec, findings)
    subset = rank_file.subset_rankings
    answers = None
    if rank_file.rankings or subset is None or rank_file.format == native.NAME:
        answers = read_rankings(rank_file.rankings, spec, context)
    subset_answers = (
        None if subset is None else read_rankings(subset, spec, context, section="subset_rankings")
    )
    return UncheckedFile(spec, version, rank_file.method, answers, subset_answers, rank_file.format)


def server_format(dataset: str) -> str | None:
    """The format of the server that holds a dataset's withheld ground truth, or None where there is none.

    Example:
        >>> server_format("cirr"), server_format("fashioniq")
        ('cirr-server', None)
    """
    from submissions.formats import circo_server, cirr_server

    servers = (cirr_server, circo_server)
    return next((server.NAME for server in servers if dataset in server.BENCHMARKS), None)
