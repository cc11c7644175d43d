"""`--k` of the commands that write rank files: said at once where a board needs longer rankings."""

from __future__ import annotations

from cir_datasets.common.terminal import echo


def warn_of_short_rankings(benchmark: str, k: int | None) -> bool:
    """Say before the work that a file's rankings will be shorter than what the board's metrics use.

    Args:
        benchmark: id of a benchmark or suite.
        k: images kept of each ranking; None is as many as are used.

    Returns:
        Whether they will be.
    """
    from cir_datasets import load
    from cir_datasets.registry.suites import suite, suite_ids
    from submissions.rank_file.benchmarks import board_depth

    if k is None:
        return False
    short = False
    for name in suite(benchmark).benchmarks if benchmark in suite_ids() else (benchmark,):
        wanted = board_depth(load(name)).required
        if 1 <= k < wanted:
            short = True
            echo(
                f"--k {k}: the metrics of {name} use {wanted} images a ranking, and cir score refuses "
                "shorter rankings. Leave --k out for as many as are used.",
                err=True,
            )
    return short
