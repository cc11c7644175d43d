"""The score over a suite: its members' scores, and the means of their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from cir_datasets.registry.suites import known_as, signature_over, suite
from submissions.scoring.score_report import ScoreReport, main_value

if TYPE_CHECKING:
    from cir_metrics.catalogue import Signature
    from submissions.rank_file.findings import Finding
    from submissions.scoring.further_metrics import Further


def suite_report(
    suite_id: str,
    runs: Sequence[ScoreReport],
    *,
    file: str,
    warnings: Sequence[Finding] = (),
    per_query: bool = False,
    further: Sequence[Sequence[Further]] = (),
) -> ScoreReport:
    """The score over a suite from its members' scores.

    Args:
        suite_id: the suite's id.
        runs: the scores of one method, one a member, in the suite's order.
        file: the file's name in messages; several, where each member has a file of its own.
        warnings: findings of the whole file.
        per_query: whether to return one row a query as well.
        further: of each member the metrics that were asked for; it may show some that the suite does not.
    """
    declared = suite(suite_id)
    sizes = [run.n for run in runs]
    # Members whose lists were repaired may lack some.
    lost = tuple(name for name in declared.metrics if any(name in run.missing_metrics for run in runs))
    shown = [name for name in declared.metrics if name not in lost]
    metrics = declared.reduce([run.metrics for run in runs], sizes, metrics=shown) if shown else {}
    asked = [{one.name for one in own} for own in further] or [set[str]()] * len(runs)
    numbers = [
        {
            **run.extra,
            **{name: run.metrics[name] for name in run.metrics if {name, name.partition("@turn")[0]} & own},
        }
        for run, own in zip(runs, asked, strict=True)
    ]
    extra = {name: value for name, value in declared.reduce(numbers, sizes).items() if name not in metrics}
    known = [run.signatures for run in runs]
    signatures = {
        name: signature_over(
            suite_id, name, [cast("Signature", each[known_as(name, each)]) for each in known]
        )
        for name in (*metrics, *extra)
    }
    rows = [{"benchmark": run.benchmark, **row} for run in runs for row in run.per_query or []]
    return ScoreReport(
        file=file,
        method=runs[0].method,
        benchmark=declared.id,
        benchmark_version=declared.version,
        main_metric=declared.main_metric,
        main=main_value(declared.main_metric, metrics),
        metrics=metrics,
        signatures=signatures,
        n=sum(sizes),
        answered=sum(run.answered for run in runs),
        missing=sum(run.missing for run in runs),
        missing_metrics=lost,
        warnings=tuple(warnings),
        per_query=rows if per_query else None,
        runs=tuple(runs),
        extra=extra,
        oracle=any(run.oracle for run in runs),
        aggregation=runs[0].aggregation,
    )
