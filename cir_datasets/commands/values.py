"""What a shell offers for the value of an option: benchmarks, their metrics, formats of tables."""

from __future__ import annotations

import typer


def benchmark_values(incomplete: str) -> list[str]:
    """Ids of benchmarks and suites that begin so.

    Args:
        incomplete: what was typed.

    Example:
        >>> benchmark_values("cirr/t")
        ['cirr/test1', 'cirr/train']
    """
    from cir_datasets.registry import benchmark_ids
    from cir_datasets.registry.suites import suite_ids

    return sorted(name for name in {*benchmark_ids(), *suite_ids()} if name.startswith(incomplete))


def metric_values(context: typer.Context, incomplete: str) -> list[str]:
    """Metrics that begin so: of the benchmark that was named, or of all.

    Args:
        context: the command with the options that were read so far.
        incomplete: what was typed.
    """
    from cir_datasets.registry import benchmark_ids, spec

    named = context.params.get("benchmark")
    known = benchmark_ids()
    metrics = {metric for name in ([named] if named in known else known) for metric in spec(name).metrics}
    return sorted(metric for metric in metrics if metric.startswith(incomplete))


def format_values(incomplete: str) -> list[str]:
    """Formats of tables that begin so.

    Example:
        >>> format_values("l")
        ['latex']
    """
    from cir_datasets.common.tables import FORMATS

    return [name for name in FORMATS if name.startswith(incomplete)]
