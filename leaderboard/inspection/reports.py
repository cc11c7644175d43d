"""Scores of entries as `submissions.score` returns them, put together again from what the store keeps.

So everything that is computed from a score (comparisons, tables by aspect and turn) is computed by the same
code as on the command line, and no rank file is read for it.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import cir_datasets
from cir_datasets import registry
from cir_datasets.errors import DatasetError
from cir_datasets.prepared import last_prepared
from cir_datasets.registry.suites import read_signature
from leaderboard.boards import Board
from leaderboard.inspection.lists import KeptLists, MemberLists
from leaderboard.standings.tested import member_values, opened
from leaderboard.store.submission import Submission
from submissions.rank_file.texts import is_oracle
from submissions.scoring.evidence import RANKED, Evidence
from submissions.scoring.score_report import ScoreReport

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from cir_metrics.sums import FloatArray


log = logging.getLogger("leaderboard.inspection")


def entry_report(
    board: Board, submission: Submission, packed: bytes | None, lists: KeptLists | None
) -> ScoreReport | None:
    """The score of an entry, with the values per query behind it.

    Args:
        board: its board, an open one.
        submission: the entry.
        packed: the values per query that the store keeps of it, or None.
        lists: the beginnings of its rankings; without them there are no numbers by turn, and no report of a
            dialogue.

    Returns:
        The report, or None where values are not kept, or are not of the rows that the benchmark has here now,
        and where these cannot be read, which the log says.
    """
    scores, kept = submission.scores, opened(packed)
    if scores is None or not kept:
        return None
    try:
        benchmarks = [prepared_benchmark(each) for each in board.benchmarks]
    except DatasetError as error:
        log.warning("no values per query for the pages of %s: %s", board.id, error)
        return None
    said = list(scores.get("runs", ())) or [scores]
    runs = []
    if len(said) != len(benchmarks):
        return None
    for number, (benchmark, document) in enumerate(zip(benchmarks, said, strict=True)):
        own = None if lists is None or number >= len(lists.members) else lists.members[number]
        plain_names = {name for name in kept if "/" not in name}
        names = {*document["metrics"]} if board.takes_bundles else plain_names
        values = {}
        for name in names:
            parts = member_values(board, kept, scores, name)
            if parts is not None:
                values[name] = parts[number]
        evidence = _evidence(board, benchmark, document, values, own)
        if evidence is None:
            return None
        runs.append(_report(document, evidence))
    whole = _report(scores, None, tuple(runs)) if board.takes_bundles else runs[0]
    # As its owner calls it now; messages and two of one name are distinguished by the id.
    method = submission.method or {}
    name = str(method.get("name", "unnamed"))
    return replace(whole, method=name, file=submission.id, oracle=is_oracle(method))


def report_head(submission: Submission) -> ScoreReport:
    """An entry's numbers and signatures without what is behind them; messages call it by name and id.

    Raises:
        InputError: a signature is damaged.
    """
    name = (submission.method or {}).get("name", submission.id)
    return replace(_report(submission.scores or {}, None), file=f"{name} ({submission.id})")


def prepared_benchmark(benchmark_id: str) -> Benchmark:
    """A prepared benchmark; it is read once while its data stays as it is.

    Raises:
        DatasetError: it cannot be read.
    """
    last = last_prepared(registry.spec(benchmark_id))
    return _loaded(benchmark_id, "" if last is None else str(last.folder))


@functools.lru_cache(maxsize=16)
def _loaded(benchmark_id: str, _folder: str) -> Benchmark:
    return cir_datasets.load(benchmark_id)


def _evidence(
    board: Board,
    benchmark: Benchmark,
    document: Mapping[str, Any],
    values: dict[str, FloatArray],
    lists: MemberLists | None,
) -> Evidence | None:
    if any(each["data_hash"] != benchmark.data_hash for each in document["signatures"].values()):
        return None
    dialogue = board.dialogue is not None
    if dialogue and lists is None:
        return None
    arrays = {} if lists is None else lists.evidence
    names = lists.names if dialogue and lists is not None else benchmark.query_ids
    if any(len(each) != len(names) for each in (*values.values(), *arrays.values())):
        return None
    return Evidence(
        benchmark=benchmark,
        values=values,
        **{**dict.fromkeys(RANKED), **arrays, "num_turns": _num_turns(benchmark, arrays)},
        sessions=tuple(names) if dialogue else None,
    )


def _num_turns(benchmark: Benchmark, arrays: Mapping[str, Any]) -> Any:
    if "num_turns" in arrays or not benchmark.multi_turn:
        return arrays.get("num_turns")
    import numpy as np

    return np.array(benchmark.column("num_turns"), dtype=np.int64)


def _report(
    document: Mapping[str, Any],
    evidence: Evidence | None,
    runs: tuple[ScoreReport, ...] = (),
) -> ScoreReport:
    return ScoreReport(
        file=str(document["file"]),
        method=str(document["method"]),
        benchmark=str(document["benchmark"]),
        benchmark_version=int(document["benchmark_version"]),
        main_metric=str(document["main_metric"]),
        main=document["main"],
        metrics=dict(document["metrics"]),
        signatures={name: read_signature(each) for name, each in document["signatures"].items()},
        n=int(document["n"]),
        answered=int(document["answered"]),
        missing=int(document["missing"]),
        missing_metrics=tuple(document["missing_metrics"]),
        runs=runs,
        evidence=evidence,
    )
