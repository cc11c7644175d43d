"""`cir plot`: figures of several methods."""

from __future__ import annotations

from pathlib import Path

from cir_datasets.commands import LoadsBenchmarks, argument, command, option
from cir_datasets.common.terminal import echo
from submissions.commands import FILE_HELP, Benchmark, method_names_of


class PlotOptions(LoadsBenchmarks):
    """What `cir plot` takes."""

    files: list[str] = argument(..., FILE_HELP)
    out: Path = option(..., "Where to write: a folder of figures, each as SVG and as PDF.", "-o")
    benchmark: Benchmark = None
    names: list[str] | None = option(
        None,
        "Name of what is made, here of a method: FILE=NAME; files of one name are one method's aggregations, "
        "or its subsets. May be repeated.",
        "--name",
    )


@command
def plot_command(options: PlotOptions) -> None:
    """Draw methods side by side on benchmarks of sessions, as CIRCLED's Figures 7 to 9.

    Hits@10 by turn, a panel a subset; Final Recall@10 and the area under Hits@10 by subset, the best marked;
    of methods with several aggregations these, side by side. Files of any benchmarks go together, and
    bundles.

    \b
    Example:
        cir run --benchmark circled/val --method text_only --aggregation all --out runs
        cir plot runs/*.json --out figures
    """
    from cir_datasets.common.plots import check_plots
    from submissions.commands.outputs import check_folder
    from submissions.comparison.figures import METRICS, is_short, write_figures
    from submissions.scoring import score
    from submissions.scoring.score_report import renamed

    check_plots("statistics")
    check_folder(options.out)
    names = method_names_of(options.names or [])
    scores = [score(file, options.benchmark) for file in options.files]
    # Boards of sessions differ in what they show.
    scores = [
        score(file, options.benchmark, metrics=METRICS) if is_short(scored) else scored
        for file, scored in zip(options.files, scores, strict=True)
    ]
    for path in write_figures(renamed(scores, names), options.out):
        echo(str(path))
