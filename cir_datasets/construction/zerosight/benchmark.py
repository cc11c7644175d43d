"""The folder of a benchmark and the page, out of what the stages have given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cir_datasets.builders.zerosight import CATEGORIES
from cir_datasets.common.row_files import VIDEO_CATEGORIES
from cir_datasets.common.stages import FAILED, Row
from cir_datasets.common.terminal import counted
from cir_datasets.construction.folder import write_benchmark
from cir_datasets.construction.report import Example, Section, Step, table_of, write_report
from cir_datasets.construction.workspace import BENCHMARK, Workspace
from cir_datasets.construction.zerosight.pipeline import ZeroSightRun
from cir_datasets.errors import ConstructionError
from cir_datasets.registry import card
from cir_datasets.rows.records import query_row
from cir_datasets.shapes.draws import Draws

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from PIL.Image import Image

REPORT = "report.html"
_EXAMPLES = 12
_SHOWN = 4
"""Positives, and negatives, of an example."""
_REASONS = 20
_PAIRS = 20_000
_QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


def query_rows(made: ZeroSightRun) -> dict[str, list[Row]]:
    """The rows of each configuration: train, test and both."""
    split = {row["query"]: row["split"] for row in made.rows["split"]}
    videos = {row["video"]: row for row in made.good("videos")}
    video_of = {row["image"]: videos[row["video"]] for row in made.good("frames")}
    rows: dict[str, list[Row]] = {"train": [], "test": [], "all": []}
    for row in made.good("review"):
        query = query_row(
            str(row["query"]),
            reference_image_id=row["reference"],
            relative_caption=row["caption"],
            positive_image_ids=row["positives"],
            negative_image_ids=row["negatives"],
            aspects=[row["category"]],
            **{
                column: text
                for column in VIDEO_CATEGORIES
                if (text := video_of[row["reference"]].get(column)) is not None
            },
        )
        rows[split[row["query"]]].append(query)
        rows["all"].append(query)
    return {name: found for name, found in rows.items() if found}


def write(made: ZeroSightRun, out: Path, *, name: str, title: str) -> Path:
    """Write the benchmark into the folder of its run, with the metrics of the registered `zerosight`.

    Args:
        made: of `pipeline.run`.
        out: the pipeline's folder.
        name: of the benchmark.
        title: how people call it.

    Returns:
        The benchmark's folder.

    Raises:
        ConstructionError: no query is left.
    """
    published = card("zerosight")
    rows = query_rows(made)
    if not rows:
        raise ConstructionError(
            f"{out}: no query is left, see its {REPORT}. Fix: take more videos or other thresholds."
        )
    videos = len({row["video"] for row in made.good("frames")})
    settings = {key: value for key, value in made.settings.items() if value is not None}
    return write_benchmark(
        out / BENCHMARK,
        name=name,
        title=title,
        summary=(
            f"{counted(len(rows['all']), 'query', 'queries')} of frames of {counted(videos, 'video')}, "
            "made as ZeroSight was: reference and targets come from one video, and targets that the caption "
            "does not fit are hard negatives."
        ),
        configs=rows,
        galleries=[str(row["image"]) for row in made.rows["pool"]],
        reference="kept",
        metrics=published.metrics,
        main_metric=published.main_metric,
        report=published.report.model_dump(mode="json", exclude_defaults=True),
        notes={
            "test": "For methods that were trained on the queries of train.",
            "all": "For zero-shot methods; a method that was trained on train must not be scored here.",
        },
        traps=published.traps[1:3],
        made={"pipeline": "zerosight", **settings},
    )


def write_page(made: ZeroSightRun, out: Path, *, title: str, open_picture: Callable[[str], Image]) -> Path:
    """Write the report: counts, reasons, similarities and examples."""
    final = made.good("review")
    return write_report(
        out / REPORT,
        title=title,
        summary=(
            f"{counted(len(final), 'query', 'queries')} and {counted(len(made.rows['pool']), 'image')} in "
            "the gallery."
        ),
        stages=Workspace.existing(out).states(),
        sections=[_queries(final, made), _similarities(made), _dropped(made), _examples(final)],
        open_picture=open_picture,
    )


def _queries(final: Sequence[Row], made: ZeroSightRun) -> Section:
    counts = Counter(row["category"] for row in final)
    split = Counter(row["split"] for row in made.rows["split"])
    number = max(1, len(final))
    numbers = (
        ("queries", f"{len(final):,}"),
        ("of them for testing", f"{split['test']:,}"),
        ("images in the gallery", f"{len(made.rows['pool']):,}"),
        ("positives a query", f"{sum(len(row['positives']) for row in final) / number:.2f}"),
        ("hard negatives a query", f"{sum(len(row['negatives']) for row in final) / number:.2f}"),
        ("decided on in a review", f"{sum(bool(row['verdict']) for row in made.rows['review']):,}"),
    )
    return Section(
        "Queries",
        (
            table_of("", ("what", "number"), numbers),
            table_of("Categories", ("category", "queries"), ((each, counts[each]) for each in CATEGORIES)),
        ),
    )


def _similarities(made: ZeroSightRun) -> Section:
    """How alike frames of one video are: with it thresholds are chosen for other encoders."""
    pairs = _some_pairs(made.good("frames"))
    columns: dict[str, Any] = {}
    for name, vectors in (("visual", made.visual), ("semantic", made.semantic)):
        first, second = (np.asarray(vectors[[pair[side] for pair in pairs]], np.float64) for side in (0, 1))
        columns[name] = (first * second).sum(axis=1) if pairs else np.zeros(0)
    rows = [
        (
            f"{share:.0%}",
            *(f"{np.quantile(values, share):.3f}" if len(values) else "" for values in columns.values()),
        )
        for share in _QUANTILES
    ]
    note = (
        f"Of {len(pairs):,} pairs. Thresholds of other encoders are chosen by these figures: the band of "
        "targets lies between frames that show something else and frames that show the same."
    )
    return Section(
        "Similarities of frames of one video",
        (table_of("", ("quantile", *columns), rows),),
        plots=(("Similarities of frames of one video", _histogram(columns)),) if pairs else (),
        notes=(note,),
    )


def _some_pairs(frames: Sequence[Row]) -> list[tuple[int, int]]:
    """Pairs of frames of one video, drawn, as rows of the vectors."""
    begins: dict[str, list[int]] = {}
    for place, row in enumerate(frames):
        begins.setdefault(str(row["video"]), []).append(place)
    several = [places for places in begins.values() if len(places) > 1]
    draws = Draws("pairs of frames", len(frames))
    each = max(1, _PAIRS // max(1, len(several)))
    found = []
    for places in several[:_PAIRS]:
        for _ in range(min(each, len(places) * (len(places) - 1) // 2)):
            first, second = draws.sample(range(len(places)), 2)
            found.append((places[first], places[second]))
    return found


def _histogram(columns: dict[str, Any]) -> Figure:
    from matplotlib.figure import Figure as NewFigure

    figure = NewFigure(figsize=(7, 3), layout="constrained")
    axes = figure.subplots()
    for name, values in columns.items():
        axes.hist(values, bins=[place / 40 for place in range(-40, 41)], histtype="step", label=name)
    axes.set_xlabel("cosine")
    axes.set_ylabel("pairs of frames")
    axes.legend()
    return figure


def _dropped(made: ZeroSightRun) -> Section:
    """Why rows went no further, the numbers in the reasons aside."""
    rows = []
    for stage, every in made.rows.items():
        reasons = Counter(_kind(str(row[FAILED])) for row in every if row.get(FAILED)).most_common(_REASONS)
        rows += [(stage, reason, count) for reason, count in reasons]
    return Section("What was left out", (table_of("", ("stage", "why", "rows"), rows),))


def _kind(reason: str) -> str:
    head, similarity, _ = reason.partition(" similarity to ")
    return f"{head} similarity to an earlier reference" if similarity else reason


def _examples(final: Sequence[Row]) -> Section:
    drawn = Draws("examples of a page", len(final)).sample(final, _EXAMPLES)
    return Section(
        "Examples",
        examples=tuple(
            Example(
                str(row["query"]),
                (
                    Step(row["reference"], "reference", row["caption"]),
                    *(Step(image, "positive", kind="good") for image in row["positives"][:_SHOWN]),
                    *(Step(image, "hard negative", kind="bad") for image in row["negatives"][:_SHOWN]),
                ),
                f"{row['category']}; positives: {len(row['positives'])}, hard: {len(row['negatives'])}",
            )
            for row in drawn
        ),
    )
