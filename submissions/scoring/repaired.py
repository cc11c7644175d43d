"""How far repaired lists reach, and what a score excuses in them.

In a file of its own: imported for a repaired file alone, by the score and by `repair`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cir_metrics.catalogue import METRICS, parse_metric
from submissions.rank_file.benchmarks import queries
from submissions.rank_file.findings import REPAIRED
from submissions.rank_file.model import SECTIONS, runs_of

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.rank_file.findings import Finding, ValidationReport
    from submissions.rank_file.model import RankFile


def unexcused(checked: ValidationReport) -> tuple[Finding, ...]:
    """The errors without those that come with a repair: the mark, lists that are short, no subsets at all."""
    if checked.rank_file is None:
        return checked.errors
    excused = {
        (benchmark, code)
        for run in runs_of(checked.rank_file)
        if run.method.repaired
        for benchmark in (None, run.benchmark)
        for code in (REPAIRED, "short-ranking", *(["missing-subset"] if run.subset_rankings is None else []))
    }
    return tuple(each for each in checked.errors if (each.benchmark, each.code) not in excused)


def within_reach(metrics: Sequence[str], rank_file: RankFile, benchmark: Benchmark) -> list[str]:
    """Those of some metrics for which every list is deep enough; one without cutoff needs whole lists.

    Args:
        metrics: printed names.
        rank_file: holds the rankings that they read.
        benchmark: what it answers.
    """
    reach = {}
    for asked in queries(benchmark, rank_file.method.reference).asked:
        answers = getattr(rank_file, asked.section) or {}
        by_turn = benchmark.multi_turn and asked.section == SECTIONS[0]
        lists = (
            (query, ranking)
            for query in filter(answers.__contains__, benchmark.query_ids)
            for ranking in (answers[query] if by_turn else [answers[query]])
        )
        short = (len(ids) for query, ids in lists if len(ids) < asked.required(query, ids))
        reach[asked.section] = min(short, default=math.inf)
    wanted = [(name, *parse_metric(name)) for name in metrics]
    return [
        name for name, module, k in wanted if (k or math.inf) <= reach[SECTIONS[METRICS[module].reads_subset]]
    ]
