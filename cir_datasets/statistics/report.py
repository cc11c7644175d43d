"""Statistics as tables in the form of CIRCLED's Tables 2 and 4 and of CIRR's Table 2, and as plots.

Plots are of turns, caption lengths and frequent terms, drawn to PNG files, never to a screen.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cir_datasets.common.atomic import write_errors
from cir_datasets.common.plots import DPI, INK, QUIET, empty_figure, quiet_axes
from cir_datasets.common.tables import TOTAL, count, pooled
from cir_datasets.common.terminal import fitted
from cir_datasets.common.yaml import package_yaml
from cir_datasets.errors import DatasetError
from cir_datasets.rows.caption_aspects import aspect_table
from cir_datasets.statistics.counts import Statistics, class_names, counted_once, total

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

CARDS_COUNT = "*"
"""Marks a gallery's size that was taken from the card, because the list is not available."""

REPEATED = "^"
"""Marks a benchmark that the total leaves out, because its queries are in another row."""

_CAPTIONS_NOTE = (
    "CAPTIONS: every caption of every query or turn that has a word; those without one are EMPTY, and are in "
    "no other number"
)
_CLASSES_NOTE = (
    "per cent of all words, each as often as it occurs (isn't is two: is, n't), tagged caption by caption by "
    "HanTa's English model\n"
    "OTHER: not, the to of an infinitive, possessive 's, foreign words, interjections"
)
_ASPECTS_NOTE = "per cent of the captions that have a word, by the patterns of rows/aspects.yaml"
_AUXILIARY_NOTE = (
    "Q1-Q4: answers but those that begin with a mark ([c], [cr0], [cr1]); Table 6 has 0.5 to 6.2 points "
    "fewer, and counts something else: no number of 4,181 pairs is its 67.67 %\n"
    "CLOSED LOOPS: subsets whose pairs lead through all images and back; the paper has 71.1 % over all splits"
)


def tables(parts: Sequence[Statistics], top: int) -> str:
    """All tables: a row a benchmark, and where there are several a row a dataset and a total.

    These count no query twice: see `counted_once`.

    Args:
        parts: statistics of the benchmarks, in the order of the rows.
        top: number of frequent terms.
    """
    counted, notes = counted_once(parts), []
    if counted is None:
        notes = ["no total: some of these benchmarks share a part of their queries"]
    elif again := [part.id for part in parts if not any(part is one for one in counted)]:
        notes = [f"{REPEATED} not in the total: its queries are those of another row"]
        parts = [
            dataclasses.replace(part, id=part.id + REPEATED) if part.id in again else part for part in parts
        ]
    together = pooled([part.id for part in parts], [part.dataset for part in parts])[len(parts) :]
    sums = [
        total(some, name)
        for name, places in together
        if (some := counted_once([parts[place] for place in places])) and (name == TOTAL or len(some) > 1)
    ]
    rows = [*parts, *sums]
    shown = ["\n".join([rows_table(rows), *notes]), answers_table(rows), captions_table(rows)]
    if any(part.classes is not None for part in parts):
        shown.append(classes_table(rows))
    shown += [videos_table(rows)] if any(row.videos for row in rows) else []
    shown.append(aspects_table(rows))
    if any(part.auxiliary is not None for part in parts):
        shown.append(auxiliary_table(rows))
    if top:
        shown.append(terms_table([row for row in rows if row.id != TOTAL], top))
    return "\n\n".join(shown)


def rows_table(rows: Sequence[Statistics]) -> str:
    """Queries or sessions, subsets, galleries, and sessions by number of turns.

    Args:
        rows: one a line; the total, if any, comes last.
    """
    sessions, lists = any(row.multi_turn for row in rows), any(row.lists for row in rows)
    second = any(row.subsets for row in rows)
    lengths = sorted({turns for row in rows if row.multi_turn for turns in row.turns}) if sessions else []
    head = ["BENCHMARK", *(["SUBSETS"] if second else []), "SESSIONS" if sessions else "QUERIES"]
    head += [*(["PER SUBSET"] if second else []), "GALLERY", *(["LIST PER QUERY"] if lists else [])]
    head += (
        ["AVG TURNS", *(f"{turns} TURN{'S' if turns > 1 else ''}" for turns in lengths)] if sessions else []
    )
    cells = [head]
    for row in rows:
        line = [row.id]
        line += [count(row.subsets)] if second else []
        line.append(count(row.queries))
        line += [_number(row.queries / row.subsets if row.subsets else None)] if second else []
        line.append(count(row.gallery) + ("" if row.gallery_listed or row.gallery is None else CARDS_COUNT))
        line += [_ends(row.lists)] if lists else []
        if sessions:
            line += [_number(row.average_turns), *(count(row.turns[turns]) for turns in lengths)]
        cells.append(line)
    text = fitted(cells, right=range(1, len(head)))
    if CARDS_COUNT in text:
        text += f"\n{CARDS_COUNT} the card's count: the list of that gallery is not available"
    return text


def _ends(lengths: Collection[int]) -> str:
    """The shortest and the longest of some lists, `14-15`, or one number; `-` where there are none."""
    return "-".join(map(count, sorted({min(lengths), max(lengths)}))) if lengths else "-"


def answers_table(rows: Sequence[Statistics]) -> str:
    """Positives and hard negatives a query; `-` where the ground truth is withheld or there are none."""
    cells = [["BENCHMARK", "POSITIVES A QUERY", "HARD NEGATIVES A QUERY"]]
    for row in rows:
        found = [None if n is None else n / row.queries for n in (row.positives, row.negatives)]
        cells.append([row.id, *map(_number, found)])
    return fitted(cells, right=(1, 2))


def captions_table(rows: Sequence[Statistics]) -> str:
    """Captions: how many, how long in words, and the type-token ratio; those without a word apart."""
    head = ["BENCHMARK", "CAPTIONS", "EMPTY", "WORDS", "AVG WORDS", "MEDIAN", "MAX", "TYPE-TOKEN RATIO"]
    cells = [head]
    for row in rows:
        cells.append(
            [
                row.id,
                count(row.caption_count),
                count(row.lengths[0]),
                count(row.words.total()),
                _number(row.mean_length),
                "-" if row.median_length is None else f"{row.median_length:g}",
                count(row.longest),
                "-" if row.type_token_ratio is None else f"{row.type_token_ratio:.4f}",
            ]
        )
    return f"{fitted(cells, right=range(1, len(head)))}\n{_CAPTIONS_NOTE}"


def classes_table(rows: Sequence[Statistics]) -> str:
    """Parts of speech in per cent of all words that the tagger was given."""
    names = class_names()
    cells = [["BENCHMARK", *(f"{name.upper()} %" for name in names)]]
    for row in rows:
        shares = row.class_shares
        cells.append([row.id, *("-" if shares is None else f"{100 * shares.get(n, 0):.1f}" for n in names)])
    return f"{fitted(cells, right=range(1, len(names) + 1))}\n{_CLASSES_NOTE}"


def videos_table(rows: Sequence[Statistics]) -> str:
    """Queries by category and subcategory of the videos that their references are of."""
    cells = [["BENCHMARK", "VIDEO CATEGORY", "SUBCATEGORY", "QUERIES", "%"]]
    for row in rows:
        for kind, queries in row.ranked_videos():
            cells.append([row.id, *kind, count(queries), f"{100 * queries / row.queries:.1f}"])
    return fitted(cells, right=(3, 4))


def aspects_table(rows: Sequence[Statistics]) -> str:
    """Semantic aspects in per cent of the captions that have a word, with CIRR's Table 1 below."""
    table = aspect_table()
    cells = [["BENCHMARK", *(entry["head"] for entry in table.values())]]
    for row in rows:
        shares = row.aspect_shares
        cells.append([row.id, *(f"{100 * shares[key]:.1f}" if shares else "-" for key in table)])
    notes = [_ASPECTS_NOTE]
    for name in dict.fromkeys(row.id.partition("/")[0] for row in rows):
        published = [entry["published"].get(name) for entry in table.values()]
        if any(published):
            cells.append([f"{name}, Table 1", *("-" if one is None else f"{one:.1f}" for one in published)])
        reasons = [(entry["name"], entry.get("differs", {}).get(name)) for entry in table.values()]
        notes += [f"{name}, {aspect}: {why}" for aspect, why in reasons if why]
    return "\n".join([fitted(cells, right=range(1, len(table) + 1)), *notes])


def auxiliary_table(rows: Sequence[Statistics]) -> str:
    """Queries with an answer to each auxiliary question in per cent, with CIRR's Table 6 below."""
    published = package_yaml("cir_datasets", "statistics/auxiliary.yaml")
    cells = [["BENCHMARK", "Q1 %", "Q2 %", "Q3 %", "Q4 %", "CLOSED LOOPS"]]
    for row in rows:
        shares, loops = row.auxiliary_shares, row.subset_loops
        of = "-" if loops is None else f"{count(loops)} of {count(row.subsets)}"
        answers = ["-"] * 4 if shares is None else [f"{100 * each:.1f}" for each in shares]
        cells.append([row.id, *answers, of])
        if row.id in published:
            cells.append([f"{row.id}, Table 6", *(f"{each:.1f}" for each in published[row.id]), ""])
    return f"{fitted(cells, right=range(1, 6))}\n{_AUXILIARY_NOTE}"


def terms_table(parts: Sequence[Statistics], top: int) -> str:
    """The most frequent terms of each benchmark with their counts, stop words left out."""
    cells = [["BENCHMARK", "MOST FREQUENT TERMS"]]
    cells += [
        [part.id, ", ".join(f"{term} {times:,}" for term, times in part.frequent_terms(top))]
        for part in parts
    ]
    return fitted(cells)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


_BLUE = "#2f6db3"
_PADS = (0.12, 0.12)
_STEPS = ("#c9dcf0", "#94bbe0", "#5b95cc", "#2f6db3", "#1d4d87", "#10305a")
"""From few turns to many."""

_COLUMNS = 3
_CELL_INCHES = (3.6, 2.5)
_LONGEST_SHARE = 0.995
"""Histograms end where so many captions have been shown; the rest goes into the last bar."""


def write_plots(parts: Sequence[Statistics], folder: str | Path, top: int) -> list[Path]:
    """Draw the plots of one or several benchmarks.

    Args:
        parts: statistics, one panel or bar each.
        folder: where `turns.png` (only where there are sessions), `caption_length.png` and
            `frequent_terms.png` go; made if need be.
        top: number of frequent terms in a panel.

    Returns:
        The files.

    Raises:
        MissingExtraError: matplotlib is not installed.
        DatasetError: the folder cannot be written.
    """
    folder = Path(folder).expanduser().absolute()
    figures = statistics_figures(parts, top)
    written = []
    with write_errors(folder, DatasetError, "name another folder."):
        folder.mkdir(parents=True, exist_ok=True)
        for name, figure in sorted(figures.items()):
            path = folder / f"{name}.png"
            figure.savefig(path, dpi=DPI, facecolor="white")
            written.append(path)
    return written


def statistics_figures(parts: Sequence[Statistics], top: int) -> dict[str, Figure]:
    """The plots of one or several benchmarks: `caption_length`, `turns` of sessions, `frequent_terms`.

    Args:
        parts: as for `write_plots`.
        top: number of frequent terms in a panel.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    figures = {"caption_length": _panels(parts, _draw_lengths)}
    sessions = [part for part in parts if part.multi_turn]
    if sessions:
        figures["turns"] = _turns(sessions)
    if top:
        figures["frequent_terms"] = _panels(
            parts, lambda axes, part: _draw_terms(axes, part, top), height=max(2.5, 0.5 + 0.19 * top)
        )
    return figures


def _whole_numbers(axis: Axis, bins: int = 6) -> None:
    """Ticks at whole numbers, thousands apart."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(nbins=bins, integer=True))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def _turns(parts: Sequence[Statistics]) -> Figure:
    """A bar a benchmark, cut into the shares of sessions by number of turns."""
    figure = empty_figure(7.2, 1.1 + 0.32 * len(parts), pads=(_PADS[0], 0.03))
    axes = figure.add_subplot()
    axes.margins(y=0.01)
    lengths = sorted({turns for part in parts for turns in part.turns})
    for place, part in enumerate(parts):
        left = 0.0
        for step, turns in enumerate(lengths):
            share = 100 * part.turns[turns] / part.queries
            colour = _STEPS[min(step, len(_STEPS) - 1)]
            label = f"{turns} turn{'s' if turns > 1 else ''}" if place == 0 else None
            axes.barh(place, share, left=left, color=colour, height=0.72, label=label)
            if share >= 6:
                ink = "white" if step >= 2 else INK
                axes.text(
                    left + share / 2, place, f"{share:.0f}", ha="center", va="center", color=ink, size=7
                )
            left += share
    axes.set_yticks(range(len(parts)), [f"{part.id} ({part.queries:,})" for part in parts])
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel("sessions (%)", size=8)
    quiet_axes(axes)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    figure.legend(
        *axes.get_legend_handles_labels(),
        loc="outside upper right",
        ncols=len(lengths),
        frameon=False,
        fontsize=8,
    )
    return figure


def _panels(
    parts: Sequence[Statistics],
    draw: Callable[[Axes, Statistics], None],
    *,
    height: float = _CELL_INCHES[1],
) -> Figure:
    """A panel a benchmark, three in a row."""
    columns = min(_COLUMNS, len(parts))
    lines = math.ceil(len(parts) / columns)
    figure = empty_figure(max(4.6, _CELL_INCHES[0] * columns), height * lines, pads=_PADS)
    for number, part in enumerate(parts, start=1):
        axes = figure.add_subplot(lines, columns, number)
        draw(axes, part)
        axes.set_title(part.id, size=9, color=INK, loc="left")
        quiet_axes(axes)
    return figure


def _draw_lengths(axes: Axes, part: Statistics) -> None:
    """Captions by number of words, with the mean as a line."""
    mean, longest = part.mean_length, part.longest
    if mean is None or longest is None:
        axes.text(0.5, 0.5, "no captions", ha="center", va="center", transform=axes.transAxes, color=QUIET)
        return
    last = _cut(part, longest)
    heights = [part.lengths[length] for length in range(1, last)]
    heights.append(sum(count for length, count in part.lengths.items() if length >= last))
    axes.bar(range(1, last + 1), heights, width=0.9, color=_BLUE)
    axes.set_ylim(0, 1.16 * max(heights))  # room for the label above the bars
    axes.axvline(mean, color=INK, linewidth=1, linestyle=(0, (4, 3)))
    on_left = mean > 0.6 * last
    axes.annotate(
        f"mean {mean:.1f}",
        (mean, 1),
        xycoords=("data", "axes fraction"),
        xytext=(-4 if on_left else 4, -7),
        textcoords="offset points",
        ha="right" if on_left else "left",
        size=7,
        color=INK,
    )
    axes.set_xlim(0.3, last + 0.7)
    axes.set_xlabel(f"words (last bar: {last} to {longest})" if last < longest else "words", size=8)
    axes.set_ylabel("captions", size=8)
    _whole_numbers(axes.xaxis)
    _whole_numbers(axes.yaxis)


def _cut(part: Statistics, longest: int) -> int:
    shown = 0
    for length in range(1, longest + 1):
        shown += part.lengths[length]
        if shown >= _LONGEST_SHARE * part.caption_count:
            return length
    return longest


def _draw_terms(axes: Axes, part: Statistics, top: int) -> None:
    """The most frequent terms, longest bar on top."""
    terms = part.frequent_terms(top)
    if not terms:
        axes.text(0.5, 0.5, "no terms", ha="center", va="center", transform=axes.transAxes, color=QUIET)
        return
    names, counts = zip(*terms, strict=True)
    axes.barh(range(len(terms)), counts, height=0.72, color=_BLUE)
    axes.set_yticks(range(len(terms)), names)
    axes.invert_yaxis()
    axes.set_ylim(len(terms) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    _whole_numbers(axes.xaxis, 5)
    axes.set_xlabel("occurrences", size=8)
