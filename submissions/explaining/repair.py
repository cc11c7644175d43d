"""`repair`: references, outsiders and doubles taken out of a file's lists, so that the rest can be scored.

What is written says so (`Method.repaired`), and so does the signature of its scores; no board takes it. Lists
are not filled up: what the method would have ranked next nobody knows.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cir_datasets.common.terminal import counted
from cir_metrics.errors import CallError
from submissions.errors import ConversionError
from submissions.explaining import read_any
from submissions.explaining.places import Places
from submissions.rank_file.benchmarks import queries
from submissions.rank_file.columns import Columns
from submissions.rank_file.findings import RefusedError
from submissions.rank_file.model import NATIVE, RankFile, answer_of, runs_of, write_bytes
from submissions.rank_file.owners import same_queries
from submissions.scoring import computable
from submissions.scoring.repaired import unexcused
from submissions.transform.convert import convert
from submissions.validation import check_rankings, report_of, validate

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.rank_file.benchmarks import BenchmarkLike
    from submissions.rank_file.findings import Finding

_KINDS = ("references", "outsiders", "doubles")
_DOUBLE = "duplicate-image"


@dataclass(frozen=True)
class RepairedRun:
    """What was taken out of the lists that answer one benchmark, and what is left.

    Args:
        benchmark: its id.
        taken: by kind (references, outsiders, doubles) how many images.
        changed: lists that lost an image.
        lists: all lists.
        depth: images of the shortest list that is left.
        metrics: the board's metrics that can still be computed.
        lost: the others, because the lists do not reach so deep, the file never held such lists, or the
            ground truth is withheld.
        also: of a file that names no benchmark, others that have the same queries, and may be meant.
    """

    benchmark: str
    taken: dict[str, int]
    changed: int
    lists: int
    depth: int
    metrics: tuple[str, ...]
    lost: tuple[str, ...]
    also: tuple[str, ...] = ()


@dataclass(frozen=True)
class Repaired:
    """What `repair` did.

    Args:
        file: what was read.
        path: what was written.
        runs: one a benchmark; several of a bundle.
        findings: what is still wrong with the file and refuses its score.
    """

    file: str
    path: Path
    runs: tuple[RepairedRun, ...]
    findings: tuple[Finding, ...]

    def text(self) -> str:
        """What a terminal shows."""
        lines = []
        for run in self.runs:
            counts = ", ".join(counted(run.taken[kind], kind[:-1]) for kind in _KINDS)
            lines += [
                f"{run.benchmark}: {counts} taken out, of {run.changed:,} of {counted(run.lists, 'list')}",
                f"  depth left: {counted(run.depth, 'image')} in the shortest list",
                f"  computable: {', '.join(run.metrics) or 'nothing'}",
                *([f"  not computable: {', '.join(run.lost)}"] if run.lost else []),
                *([f"  it fits {', '.join(run.also)}, too: say with --benchmark which"] if run.also else []),
            ]
        if any(sum(run.taken.values()) for run in self.runs):
            lines.append(f"{self.path}: marked as repaired, so that no board takes it")
        else:
            lines.append(f"{self.path}: as it was read; there was nothing to take out")
        return "\n".join([*lines, *(finding.text(str(self.path)) for finding in self.findings)])

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON values."""
        return {**asdict(self), "path": str(self.path)}


def repair(
    path: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    to: str = NATIVE,
    benchmark: BenchmarkLike = None,
    name: str | None = None,
) -> Repaired:
    """Take references, outsiders and doubles out of the lists of a rank file, and write what is left.

    References go where the protocol, or the file's own `reference`, has them removed; outsiders are images
    that are not in the gallery, or not in the query's own list or subset; of doubles the first place stays.

    Args:
        path: a rank file or bundle in any format.
        out: where to write; a name in .gz is compressed. The input is never replaced.
        to: `native`, `lines` or `parquet`, the formats that can say that a file was repaired.
        benchmark: what the file answers; None: what it says, else the one that has its queries.
        name: the method's name in what is written; default: the file's own, or else the file's name.

    Returns:
        What was taken out, what depth is left, and which metrics can still be computed.

    Raises:
        RefusedError: the file cannot be read, or answers queries that the benchmark does not have.
        ConversionError: the format cannot hold the mark, or holds one rank file and this is a bundle.
        CallError: `out` is the input.
        MissingFileError: no file has that name.

    Example:
        >>> import tempfile, submissions
        >>> from importlib import resources
        >>> entry = resources.files("submissions.entries") / "random.shapes-val.json.gz"
        >>> repaired = repair(entry, Path(tempfile.mkdtemp()) / "out.json")
        >>> repaired.runs[0].taken, repaired.runs[0].lost
        ({'references': 0, 'outsiders': 0, 'doubles': 0}, ())
    """
    if Path(path).resolve() == Path(out).resolve():
        raise CallError(f"{path} would be replaced. Fix: name another file with --out.")
    benchmarks, parsed = read_any(path, benchmark)
    read, runs, told = report_of(parsed), list[RankFile](), list[RepairedRun]()
    if read.rank_file is None or any(finding.code != _DOUBLE for finding in read.errors):
        said = "is no rank file that can be read, so that nothing of it can be repaired."
        raise RefusedError(f"{read.file} {said}", read)
    for (unchecked, findings), whole in zip(parsed.files, runs_of(read.rank_file), strict=True):
        # The reader of TREC runs leaves doubles out itself.
        doubles = sum(each.count for each in findings.listed() if each.code == _DOUBLE)
        loaded = benchmarks.load(whole.benchmark)
        if unchecked is not None:
            check_rankings(unchecked, benchmarks, findings, {}, part=True)
        held = [each for each in whole.sections().values() if len(each)]
        unknown = any(finding.code == "unknown-query" for finding in findings.listed())
        if unknown or not held:
            why = f"answers queries that {loaded.id} does not have" if unknown else "holds no rankings"
            raise RefusedError(f"{read.file} {why}.", report_of(parsed))
        if not whole.rankings:
            raise ConversionError(
                f"{path} ranks subsets alone, which no format holds that can say what was repaired. "
                f"Fix: join it with its file for recall:  cir convert RECALL {path} --benchmark {loaded.id} "
                "--to native --out FILE  , and repair that."
            )
        named = benchmark is not None or whole.format == NATIVE
        also = () if named else tuple(same_queries(loaded.spec)[1:])
        run, one = _cleaned(whole, loaded, doubles)
        runs.append(run)
        told.append(replace(one, also=also))
    answer = answer_of(runs[0].benchmark if parsed.suite is None else parsed.suite.id, runs)
    packed = str(out).lower().endswith(".gz")
    made = convert([answer.to_json()], to, benchmark=benchmark, name=name, compress=packed)
    if len(made) > 1:
        raise ConversionError(f"{path} is a bundle, which only native files hold. Fix: choose --to {NATIVE}.")
    written = write_bytes(made[0].content, out)
    return Repaired(read.file, written, tuple(told), unexcused(validate(written, benchmarks)))


def _cleaned(run: RankFile, benchmark: Benchmark, doubles: int) -> tuple[RankFile, RepairedRun]:
    """A rank file without what may not stand in its lists, and what is to be told of that."""
    method, changed, kept = run.method, 0, dict[str, Any]()
    taken = Counter({**dict.fromkeys(_KINDS, 0), "doubles": doubles})
    for asked in queries(benchmark, method.reference).asked:
        answers = getattr(run, asked.section)
        if isinstance(answers, Columns):
            places = Places(answers, benchmark, asked)
            reference = places.reference & asked.removes
            outsider = ~reference & places.strange
            gone = reference | outsider | places.again
            kinds = zip(_KINDS, (reference, outsider, gone & ~reference & ~outsider), strict=True)
            taken.update({kind: int(marks.sum()) for kind, marks in kinds})
            changed += len(np.unique(places.owners[gone]))
            kept[asked.section] = places.without(gone)
    total = Counter(method.repaired or {}) + taken
    said: dict[str, Any] = {"repaired": {kind: total[kind] for kind in _KINDS if total[kind]} or None}
    # What was declared kept is no longer there.
    said |= {"reference": "removed"} if taken["references"] and method.reference == "kept" else {}
    run = replace(run, method=method.model_copy(update=said), **kept)
    possible, lost = computable(run, benchmark)
    if benchmark.ground_truth_withheld:
        possible, lost = [], benchmark.spec.metrics
    lengths = [each.lengths for each in kept.values()]
    depth, lists = int(lengths[0].min()), sum(map(len, lengths))
    return run, RepairedRun(run.benchmark, dict(taken), changed, lists, depth, tuple(possible), lost)
