"""`cir compare --joined`: the same queries as single queries, and as the sessions that were made of them.

A session begins with a query of its source benchmark. For each session that is joined to it, the hit of a
method on the single query stands beside the hits of a method on the session, turn by turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from cir_datasets.construction.circled.ranks_file import source_benchmark, source_queries
from cir_metrics.errors import CallError
from cir_metrics.resampling import ALPHA, DRAWS, SEED
from cir_metrics.sums import exact_mean
from submissions.comparison.comparing import comparison_of
from submissions.comparison.keys import check_comparable
from submissions.comparison.result import Comparison
from submissions.errors import ComparisonError
from submissions.rank_file.content import MAX_BYTES
from submissions.scoring.evidence import Evidence
from submissions.scoring.samples import resampled_metrics
from submissions.scoring.score_report import ScoreReport

if TYPE_CHECKING:
    from submissions.rank_file.benchmarks import FileLike

_OF_HITS = ("hits", "hits_auc", "final_recall")
"""Metrics of sessions that a query asked once has, too: its curve over turns is flat."""


def compare_joined(
    files: Sequence[FileLike],
    *,
    metrics: Sequence[str] | None = None,
    draws: int = DRAWS,
    seed: int = SEED,
    alpha: float = ALPHA,
    max_bytes: int = MAX_BYTES,
) -> Comparison:
    """Compare rank files of single queries with rank files of the sessions that were made of them.

    Args:
        files: one or more for a benchmark of sessions, and one or more for the benchmark that it was made of.
        metrics: of `hits@K@turnN`, `hits_auc@K` and `final_recall@K`; default: all that the board has. Of a
            single query each is whether a target is within K.
        draws: as for `compare`, like the following.
        seed: of the draws.
        alpha: level of significance.
        max_bytes: bytes that are read of each file at most.

    Returns:
        The comparison over the sessions that are joined; notes say how many, and each file's protocol.

    Raises:
        CallError: a kind of file is missing, one is a bundle, or a metric is not of these.
        ComparisonError: no session is joined to a query of the single-turn files.
    """
    from submissions.scoring import score

    reports = [score(file, max_bytes=max_bytes) for file in files]
    values = [_evidence(report) for report in reports]
    sessions = [place for place, one in enumerate(values) if one.num_turns is not None]
    single = [place for place in range(len(values)) if place not in sessions]
    if not sessions or not single:
        raise CallError(
            "--joined compares single queries with sessions made of them. Fix: name a rank file of each, "
            "such as one for cirr/val and one for circled/cirr_val."
        )
    for kind in (sessions, single):
        check_comparable([reports[place] for place in kind])
    benchmark, single_ids = values[sessions[0]].benchmark, values[single[0]].query_ids
    position = {query: place for place, query in enumerate(single_ids)}
    source, of_single = source_benchmark(benchmark), reports[single[0]].benchmark
    # Other protocols of the source (`fashioniq/dress_val_union`) have the same queries.
    same = (source or "").partition("/")[0] == of_single.partition("/")[0]
    query_of = source_queries(benchmark) if same else {}
    # A query with several captions began a session with each, `-1`, `-2` behind its id in those made here.
    places = [
        position.get(query_of.get(name, ""), position.get(query_of.get(name, "").rpartition("-")[0], -1))
        for name in benchmark.query_ids
    ]
    joined = np.flatnonzero(np.array(places) >= 0)
    if not len(joined):
        raise ComparisonError(
            f"no session of {benchmark.id} began with a query of {of_single}. Fix: name a file for "
            f"{source or 'the benchmark that it was made of'}, and have its queries here; "
            f"`cir datasets verify {benchmark.id}` says the share."
        )
    first = reports[sessions[0]]
    names = _metrics(first, metrics)
    queries = np.array(places)[joined]
    ids = tuple(benchmark.query_ids[place] for place in joined.tolist())
    turns = values[sessions[0]].num_turns
    kept_turns = None if turns is None else turns[joined]
    comparable = []
    for report, held in zip(reports, values, strict=True):
        columns = {}
        for name in names:
            if held.num_turns is not None:
                columns[name] = held.values[name][joined]
            elif held.ranks is not None:
                columns[name] = (held.ranks[queries] <= int(name.split("@")[1])).astype(np.float64)
            else:
                raise CallError(f"{report.file}: it ranks subsets alone. Fix: name a file with rankings.")
        numbers = {name: exact_mean(column) for name, column in columns.items()}
        leading = first.main_metric if first.main_metric in numbers else names[0]
        comparable.append(
            ScoreReport(
                file=report.file,
                method=f"{report.method} ({report.benchmark})",
                benchmark=benchmark.id,
                benchmark_version=benchmark.version,
                main_metric=leading,
                main=numbers[leading],
                metrics=numbers,
                signatures={},
                n=len(joined),
                answered=len(joined),
                oracle=report.oracle,
                evidence=Evidence(benchmark, columns, None, None, kept_turns, None, sessions=ids),
            )
        )
    beginnings = f"{len(set(queries.tolist())):,} queries of {of_single}"
    notes = [
        f"{len(joined):,} of {len(places):,} sessions begin with {beginnings}: its hit stands at every turn.",
        *(f"{report.file}: {next(iter(map(str, report.signatures.values())))}" for report in reports),
    ]
    return comparison_of(comparable, names, notes, draws=draws, seed=seed, alpha=alpha)


def _evidence(report: ScoreReport) -> Evidence:
    if report.evidence is None or report.evidence.rounds is not None:
        raise CallError(
            f"{report.file}: --joined takes rank files. Fix: name the files of a bundle's members."
        )
    return report.evidence


def _metrics(report: ScoreReport, wanted: Sequence[str] | None) -> list[str]:
    """The metrics of hits that a score of sessions has, or those of them that are wanted."""
    known = [name for name in resampled_metrics(report) if name.partition("@")[0] in _OF_HITS]
    unknown = [name for name in wanted or () if name not in known]
    if unknown:
        raise CallError(f"--joined has no metric {unknown[0]!r}. Fix: use one of {', '.join(known)}.")
    return list(dict.fromkeys(wanted or known))
