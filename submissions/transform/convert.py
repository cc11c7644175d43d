"""`convert`: between all formats that are read.

CIRR's server wants two files; converting to it splits a rank file, converting from it joins the two. What the
new format cannot hold is said in the notes of the conversion (`losses.py`), never dropped silently.
"""

from __future__ import annotations

import dataclasses
import gzip
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from cir_datasets.common.terminal import counted_rows
from cir_datasets.registry.suites import find_suite
from cir_metrics.errors import CallError, UnknownNameError
from submissions.errors import ConversionError
from submissions.formats import json_run, lines, parquet, servers, trec
from submissions.rank_file.columns import Columns
from submissions.rank_file.content import ENDINGS, MAX_BYTES, limit_of_kind
from submissions.rank_file.findings import Findings, RefusedError, ValidationReport, shown
from submissions.rank_file.model import (
    CIRCO_SERVER,
    CIRR_SERVER,
    FASHIONIQ,
    FORMATS,
    JSON_RUN,
    LINES,
    NATIVE,
    PARQUET,
    TREC,
    checked_method,
)
from submissions.transform.losses import losses
from submissions.validation import read, validate

if TYPE_CHECKING:
    from submissions.rank_file.benchmarks import BenchmarkLike
    from submissions.rank_file.model import RankBundle, RankFile

_WHOLE = frozenset({NATIVE, LINES, PARQUET})
"""Formats that hold everything that a rank file says."""
_LARGE = 2**24
"""Bytes."""
_QUICK, _BEST = 2, 9
"""Levels of gzip, for large files and for others."""
_COMPRESSIBLE = (NATIVE, LINES, TREC)


@dataclass(frozen=True)
class Converted:
    """One file that a conversion makes.

    Args:
        part: what tells it from the others (`recall`, `recall_subset`, a bundle's member), or "" where there
            is one file only.
        content: its bytes.
        ending: how a name of such a file ends, such as `.json` or `.jsonl.gz`.
        notes: what the file does not hold of what was read, and which queries are another benchmark's, a
            sentence each.
    """

    part: str
    content: bytes
    ending: str = ".json"
    notes: tuple[str, ...] = ()


def convert(
    files: Sequence[str | os.PathLike[str] | bytes],
    to: str,
    *,
    benchmark: BenchmarkLike = None,
    name: str | None = None,
    compress: bool = False,
    max_bytes: int = MAX_BYTES,
) -> list[Converted]:
    """Write rank files in another format.

    Args:
        files: one file, or the CIRR server's two, in either order; or one bundle; or one file for each member
            of the suite that `benchmark` names.
        to: a name of `submissions.rank_file.model.FORMATS`, such as `native`, `parquet` or `cirr-server`.
        benchmark: what the files answer; needed where their format does not say it.
        name: the method's name in what is written; default: the file's own, or else the first file's name.
        compress: whether to compress with gzip; only `native`, `lines` and `trec`.
        max_bytes: bytes that are read of each file at most; of a run twice as many.

    Returns:
        The files made: one, or CIRR's `recall` and `recall_subset`, or one for each member of a bundle. A
        bundle stays one file in the native format only; the members' files become one.

    Raises:
        UnknownNameError: no format has that name.
        CallError: `files` is not a list; a format that is not compressed was to be.
        MissingFileError: no file has that name.
        RefusedError: a file is broken, or a server would refuse what it holds; or none of its queries are of
            `benchmark`, which it does not name itself, and most are known to be of another.
        ConversionError: the files do not belong together, or not to that format, or what would be written is
            larger than what is read.

    Example:
        >>> recall = b'{"version": "rc2", "metric": "recall", "12060": ["dev-0-0-img0"]}'
        >>> [converted] = convert([recall], "native", benchmark="cirr/val", name="toy")
        >>> b'"rankings":{"12060":["dev-0-0-img0"]}' in converted.content
        True
        >>> [converted] = convert([converted.content], "trec")
        >>> converted.content
        b'12060 Q0 dev-0-0-img0 1 1 toy\\n'
    """
    from submissions.rank_file.model import runs_of

    if not isinstance(files, Sequence) or isinstance(files, str | bytes):
        raise CallError(f"files is of type {type(files).__name__}. Fix: pass a list, such as ['run.json'].")
    if to not in FORMATS:
        raise UnknownNameError.of("format", to, FORMATS)
    if compress and to not in _COMPRESSIBLE:
        why = "is compressed already" if to == PARQUET else "is read by others as plain JSON"
        raise CallError(
            f"{to} {why}. Fix: drop --gzip and the ending .gz, or choose {', '.join(_COMPRESSIBLE)}."
        )
    label = "rank file" if not files or isinstance(files[0], bytes) else os.fspath(files[0])
    wanted = _suite_to_join(files, to, benchmark)
    found = [read(each, benchmark=None if wanted else benchmark, max_bytes=max_bytes) for each in files]
    if wanted:
        found = [_bundled(found, wanted, name)]
    for file in found:
        for run in runs_of(file):
            for answers in run.sections().values():
                _check_size(_least_bytes(answers, to), to, max_bytes)
    made = _convert(found, to, benchmark, name, label)
    for each in made:
        _check_size(len(each.content), to, max_bytes)
    if not compress:
        return made
    return [
        # Without the time of day, so that equal content gives equal bytes.
        dataclasses.replace(each, content=_compressed(each.content), ending=f"{each.ending}.gz")
        for each in made
    ]


def _compressed(content: bytes) -> bytes:
    """Content under gzip: the best level takes three times as long or more, for a fifth fewer bytes."""
    return gzip.compress(content, _QUICK if len(content) > _LARGE else _BEST, mtime=0)


def _check_size(size: int, to: str, max_bytes: int) -> None:
    """Refuse to write what would not be read again.

    What the ids take is known before anything is written: a file of a kilobyte may name an id of a megabyte
    at a million places.

    Raises:
        ConversionError: it has too many bytes.
    """
    limit = limit_of_kind(to, max(max_bytes, MAX_BYTES))
    if to != PARQUET and size > limit:
        raise ConversionError(
            f"the {to} file would have {size:,} bytes, of which at most {limit:,} are read again. "
            "Fix: choose --to parquet, or rank fewer images a query."
        )


def _least_bytes(answers: Mapping[str, Any], to: str) -> int:
    """Bytes that the ids of some rankings take at least in a format that repeats them at each place."""
    if to == PARQUET or not isinstance(answers, Columns) or not len(answers):
        return 0
    plain = to == TREC
    spelled = (image.encode() if plain else orjson.dumps(image) for image in answers.image_ids)
    lengths = np.fromiter(map(len, spelled), np.int64, len(answers.images))
    codes = answers.codes
    if to in servers.SERVERS and to != FASHIONIQ:
        codes = answers.places(np.arange(len(answers.lengths)), servers.DEPTH)
        codes = codes[codes >= 0]
    size = int(lengths[codes].sum()) + len(codes)
    if plain:
        qids = np.fromiter((len(name.encode()) for name in answers.names), np.int64, len(answers))
        if answers.turn_offsets is not None:
            qids = np.repeat(qids, np.diff(answers.turn_offsets))
        size += int((qids * answers.lengths).sum()) + len(codes) * len(" Q0  1 1 t")
    return size


def _convert(
    found: Sequence[RankFile | RankBundle], to: str, benchmark: BenchmarkLike, name: str | None, label: str
) -> list[Converted]:
    from submissions.rank_file.model import RankBundle, RankFile

    runs = [each for each in found if isinstance(each, RankFile)]
    if len(runs) == len(found):
        return _written(_named(_join(runs), name), to, benchmark, label)
    if len(found) > 1:
        raise ConversionError("a bundle is converted alone. Fix: name one bundle, or rank files only.")
    (bundle,) = (each for each in found if isinstance(each, RankBundle))
    members = [_named(run, name) for run in bundle.runs]
    if to == NATIVE:
        return [Converted("", RankBundle(bundle.suite, tuple(members)).to_json())]
    own = benchmark if isinstance(benchmark, Mapping) else None
    return [
        dataclasses.replace(each, part=".".join(filter(None, [run.benchmark.replace("/", "-"), each.part])))
        for run in members
        for each in _written(run, to, own, label)
    ]


def _written(rank_file: RankFile, to: str, benchmark: BenchmarkLike, label: str) -> list[Converted]:
    """A rank file in another format; what is lost stands in the notes of its first part."""
    if to in _WHOLE and not rank_file.rankings:
        raise ConversionError(
            f"there are rankings of the subsets only; a {to} rank file also ranks the gallery. "
            'Fix: give the CIRR server\'s "recall" file as well.'
        )
    if rank_file.method.repaired and to not in _WHOLE:
        raise ConversionError(
            f"a {to} file has no place to say that its lists were repaired. "
            f"Fix: choose --to {', '.join(sorted(_WHOLE))}, or convert the file that it was made of."
        )
    of_another: tuple[str, ...] = ()
    if to in servers.SERVERS:
        _check_served(rank_file, to, benchmark, label)
    elif rank_file.format != NATIVE:
        of_another = _queries_of_another(rank_file, benchmark, label)
    contents = _contents(rank_file, to, benchmark)
    ending = ENDINGS.get(to, ".json")
    notes = [of_another + losses(rank_file, to), *[()] * (len(contents) - 1)]
    return [
        Converted(part, content, ending, said)
        for (part, content), said in zip(contents.items(), notes, strict=True)
    ]


def _contents(rank_file: RankFile, to: str, benchmark: BenchmarkLike) -> dict[str, bytes]:
    from submissions.rank_file.benchmarks import Benchmarks

    if to in servers.SERVERS:
        return servers.dump(rank_file, to, Benchmarks(benchmark))
    plain = {LINES: lines.dump, PARQUET: parquet.dump, TREC: trec.dump, JSON_RUN: json_run.dump}
    return {"": plain[to](rank_file) if to in plain else rank_file.to_json()}


def _check_served(rank_file: RankFile, to: str, benchmark: BenchmarkLike, label: str) -> None:
    """Refuse what the readers of that format would refuse, or read as something else.

    Raises:
        ConversionError: the format belongs to another dataset.
        RefusedError: validation found errors.
    """
    taken = servers.SERVERS[to].datasets
    if rank_file.benchmark.partition("/")[0] not in taken:
        raise ConversionError(
            f"{to} takes rankings of {taken[0]}, and this file answers {rank_file.benchmark}. "
            f"Fix: choose another format with --to."
        )
    report = validate(dataclasses.replace(rank_file, format=to), benchmark, part=True, name=label)
    if not report.ok:
        reader = "by the server" if to in (CIRR_SERVER, CIRCO_SERVER) else "by whoever reads that format"
        raise RefusedError(f"{report.file} would be refused {reader}.", report)


def _queries_of_another(rank_file: RankFile, benchmark: BenchmarkLike, label: str) -> tuple[str, ...]:
    """A note on queries that another benchmark is known to have, of a file that names no benchmark itself.

    Raises:
        RefusedError: no query is of the benchmark that the caller names.
    """
    from submissions.rank_file.benchmarks import Benchmarks, queries
    from submissions.validation.faults import note_unknown_queries

    benchmarks = Benchmarks(benchmark)
    benchmarks.only_here = True
    asked = benchmarks.available(benchmarks.spec(rank_file.benchmark))
    if asked is None:
        return ()
    answers = rank_file.rankings or rank_file.subset_rankings or {}
    known = {*asked.query_ids, *asked.left_out}
    unknown = [query for query in answers if query not in known]
    findings = Findings(label, asked.id)
    if not unknown or not note_unknown_queries(unknown, queries(asked), asked.spec, findings):
        return ()
    (found,) = findings.listed()
    if len(unknown) < len(answers):
        many = counted_rows(len(unknown), asked.multi_turn)
        return (f"{many} of {len(answers):,} kept: {found.message} Fix: {found.fix}.",)
    report = ValidationReport(label, asked.id, (found,), rank_file, len(answers))
    raise RefusedError(f"{label} answers another benchmark than {asked.id}.", report)


def _suite_to_join(files: Sequence[Any], to: str, benchmark: BenchmarkLike) -> str:
    """Id of the suite whose members several files are to answer as one bundle, or nothing.

    Raises:
        ConversionError: another format than the native one was asked for, which alone holds a bundle.
    """
    if not isinstance(benchmark, str) or find_suite(benchmark) is None or len(files) < 2:
        return ""
    if to != NATIVE:
        raise ConversionError(
            f"{benchmark} is a suite, and only a native file holds a bundle. Fix: choose --to native."
        )
    return benchmark


def _bundled(found: Sequence[RankFile | RankBundle], suite_id: str, name: str | None) -> RankBundle:
    """One bundle of a rank file a member, in the suite's order.

    Raises:
        ConversionError: a member has no file, or two, a file is not of a member, or they name several methods
            while `name` gives none.
    """
    from cir_datasets.registry.suites import suite
    from submissions.rank_file.model import RankBundle, RankFile

    files = [file for file in found if isinstance(file, RankFile)]
    if len(files) < len(found):
        raise ConversionError("a bundle is converted alone. Fix: name one bundle, or rank files only.")
    declared, by_member = suite(suite_id), {file.benchmark: file for file in files}
    misfits = declared.fit([file.benchmark for file in files])
    if misfits:
        benchmark, one_each = (
            misfits[0].name,
            f"Fix: name one file for each of {', '.join(declared.benchmarks)}.",
        )
        if misfits[0].cause == "alien":
            raise ConversionError(
                f"a file answers {benchmark}, which is not a member of {suite_id}. {one_each}"
            )
        if misfits[0].cause == "twice":
            raise ConversionError(f"two files answer {benchmark}. Fix: name one of them.")
        missing = ", ".join(str(misfit.name) for misfit in misfits)
        raise ConversionError(f"no file answers {missing}. Fix: name one file for each member of {suite_id}.")
    names = dict.fromkeys(file.method.name for file in by_member.values())
    if name is None and len(names) > 1:
        raise ConversionError(
            f"the files name {len(names)} methods: {', '.join(map(shown, names))}. A bundle is one method's "
            "answer. Fix: give its name with --name."
        )
    return RankBundle(suite_id, tuple(by_member[member] for member in declared.benchmarks))


def _join(runs: Sequence[RankFile]) -> RankFile:
    if not runs:
        raise ConversionError("there is no file to convert. Fix: name one.")
    first = runs[0]
    for run in runs[1:]:
        if run.benchmark != first.benchmark:
            raise ConversionError(
                f"the files answer {first.benchmark} and {run.benchmark}. Fix: join files of one benchmark; "
                "or name the suite whose members they answer, and get a bundle."
            )
        if run.rankings and first.rankings:
            raise ConversionError(
                "two files rank the gallery. Fix: give one for recall and one for recall_subset."
            )
        if run.subset_rankings is not None and first.subset_rankings is not None:
            raise ConversionError(
                "two files rank the subsets. Fix: give one for recall and one for recall_subset."
            )
        subset = first.subset_rankings if first.subset_rankings is not None else run.subset_rankings
        first = dataclasses.replace(first, rankings=first.rankings or run.rankings, subset_rankings=subset)
    return first


def _named(rank_file: RankFile, name: str | None) -> RankFile:
    if name is None:
        return rank_file
    fields = {**rank_file.method.to_dict(), "name": name}
    return dataclasses.replace(rank_file, method=checked_method(fields, ConversionError, "choose another"))
