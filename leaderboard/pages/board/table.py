"""A board's table as templates take it: its columns, the cells of the shown rows, and the ways to choose."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from cir_datasets.common.terminal import counted
from leaderboard.boards import Board, Column
from leaderboard.pages.board.rows import (
    KINDS,
    PAGE_ROWS,
    Choices,
    Line,
    Shown,
    best_first,
    filter_words,
    has_groups,
)
from leaderboard.pages.figures import Unit, number
from leaderboard.pages.labels import ranked_by
from leaderboard.standings.blocks import UNVERIFIED

_WIDTH, _MARGIN = 100, 5
"""Of the picture of an interval, in pixels."""
_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50)
_GROUPS = "Methods with the same group number do not differ significantly from the best of them."
_OUTSIDE = {
    "baseline": "baselines",
    "oracle": "oracles, which are told what no user's query says",
    "published": "published rows",
}
_CHIPS = {"zero-shot": "Zero-shot", "trained": "Trained"}
_FILTERS = (("encoder", "Encoder"), ("trained_on", "Trained on"), ("caption_rule", "Caption rule"))


def table_values(
    board: Board, view: Mapping[str, Any], lines: Sequence[Line], shown: Shown
) -> dict[str, Any]:
    """What the template of the table asks for.

    Args:
        board: the board.
        view: its table.
        lines: all its rows.
        shown: those that are asked for.
    """
    scale = _scale(lines)
    columns = [column for column in board.columns if _has_values(column.metric, lines, shown)]
    with_interval = any(line.interval is not None for line in lines)
    ruled = shown.choices.sort == "main" and has_groups(board, view)
    return {
        "shown": shown,
        "choices": shown.choices,
        "heads": _heads(board, view, lines, columns, shown.choices),
        "all_published": _all_published(lines),
        "has_published": any(line.kind == "published" for line in lines),
        "with_encoder": _has_encoders(lines, shown.choices),
        "with_interval": with_interval,
        "scale": "" if scale is None else f"{_end(board, scale[0])} to {_end(board, scale[1])}",
        "rows": _rows(board, columns, shown, scale, view["blocks"], ruled=ruled),
        "odd": [line for line in shown.lines if len(line.remarks) > 1 or line.other_split],
        "chips": _chips(lines, shown.choices),
        "toggles": [
            {
                "words": f"Hide {words}",
                "query": shown.choices.toggled(kind),
                "on": kind in shown.choices.hidden,
            }
            for kind, words in KINDS.items()
            if any(line.kind == kind for line in lines)
        ],
        "filters": _filters(lines, shown.choices),
        "pages": _pages(shown),
        "said": _said(shown),
        "lead": _lead(lines, ranked_by(board)),
        "note": _note(board, view, lines),
        "legend": _legend(board, view, lines),
        "width": "many" if len(columns) > 5 else "",
    }


def _all_published(lines: Sequence[Line]) -> bool:
    return bool(lines) and all(line.kind == "published" for line in lines)


def _has_encoders(lines: Sequence[Line], choices: Choices) -> bool:
    """Whether the column of encoders is shown: entries state one, sources of published rows may."""
    return not _all_published(lines) or choices.sort == "encoder" or any(line.encoder for line in lines)


def _has_values(metric: str, lines: Sequence[Line], shown: Shown) -> bool:
    """Whether a column has a value in any row, or is the one that the address sorts by."""
    return shown.choices.sort == metric or any(
        metric in line.texts or line.values.get(metric) is not None for line in lines
    )


def _heads(
    board: Board, view: Mapping[str, Any], lines: Sequence[Line], columns: Sequence[Column], choices: Choices
) -> list[dict[str, Any]]:
    """The columns that rows are sorted by, in order; the first has no order of its own."""
    order = choices.order or best_first(board, choices.sort)
    # Published rows have no rank, and their source and year stand where entries say how and when.
    published = _all_published(lines)
    named = [
        ("name", "Method", "higher", ""),
        ("training", "Source" if published else "Training", "higher", ""),
        *([("encoder", "Encoder", "higher", "")] if _has_encoders(lines, choices) else []),
        ("main", board.primary_label, board.primary_direction, board.primary),
        *((column.metric, column.label, column.direction, column.metric) for column in columns),
        ("received", "Year" if published else "Received", "higher", ""),
    ]
    first = "Group" if has_groups(board, view) else "Rank"
    found = [] if published else [_head("place", first, "higher", "", None, "")]
    for key, label, direction, metric in named:
        here = key == choices.sort
        own = best_first(board, key)
        other = {"asc": "desc", "desc": "asc"}[order] if here else own
        query = choices.query(sort=key, order="" if other == own else other, page=None)
        found.append(_head(key, label, direction, metric, query, order if here else ""))
    return found


def _head(
    key: str, label: str, direction: str, metric: str, query: Mapping[str, object] | None, order: str
) -> dict[str, Any]:
    return {
        "key": key,
        "label": label,
        "lower": direction == "lower",
        "metric": metric,
        "number": bool(metric),
        "query": query,
        "sorted": {"asc": "ascending", "desc": "descending"}.get(order, ""),
        "arrow": {"asc": "▴", "desc": "▾"}.get(order, ""),
    }


def _rows(
    board: Board,
    columns: Sequence[Column],
    shown: Shown,
    scale: tuple[float, float] | None,
    blocks: Mapping[str, str],
    *,
    ruled: bool,
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    block, group = "current", None
    last = {(line.block, line.place): at for at, line in enumerate(shown.lines) if line.place}
    for at, line in enumerate(shown.lines):
        above = blocks.get(line.block, "") if line.block != block else ""
        block, group = line.block, group if line.block == block else None
        opens = bool(ruled and line.place and group is not None and line.place != group)
        group = line.place or group
        found.append(
            {
                "line": line,
                "above": above,
                "main": _printed(line, board.primary, line.main, board.primary_unit),
                "values": [_printed(line, c.metric, line.values.get(c.metric), c.unit) for c in columns],
                "interval": _interval(line, board.primary_unit, scale),
                "received": line.received[:10],
                "moment": _moment(board, line),
                "opens": opens,
                "closes": ruled and last.get((line.block, line.place)) == at and at + 1 < len(shown.lines),
                "marked": bool(line.id) and line.id == shown.choices.entry,
            }
        )
    return found


def _printed(line: Line, metric: str, value: float | None, unit: Unit) -> dict[str, Any]:
    """A number as its source prints it or as tables show it, and whether it is a mean that is not printed."""
    text = line.texts.get(metric) or number(value, unit)
    return {"text": text, "is_derived": metric in line.derived}


def _moment(board: Board, line: Line) -> str:
    """When a row came, exactly, and in which phase where there are several."""
    if line.kind == "published" or not line.received:
        return ""
    moment = datetime.fromisoformat(line.received)
    phase = board.phase(moment) if len(board.phases) > 1 and line.kind != "baseline" else None
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC" + (f", phase {phase.name}" if phase else "")


def _scale(lines: Sequence[Line]) -> tuple[float, float] | None:
    """Where the pictures of intervals begin and end: the same for all rows of a board."""
    ends = [end for line in lines if line.interval is not None for end in line.interval]
    ends += [line.main for line in lines if line.interval is not None and line.main is not None]
    if not ends:
        return None
    low, high = min(ends), max(ends)
    low = 0.0 if low < high / 2 else low
    step = next((step for step in _STEPS if (high - low) / step <= 10), _STEPS[-1])
    first, last = math.floor(low / step), math.ceil(high / step)
    return first * step, max(last, first + 1) * step


def _interval(line: Line, unit: Unit, scale: tuple[float, float] | None) -> dict[str, Any] | None:
    if line.interval is None or line.main is None or scale is None:
        return None

    def place(value: float) -> str:
        share = (value - scale[0]) / (scale[1] - scale[0])
        return f"{_MARGIN + share * (_WIDTH - 2 * _MARGIN):.1f}"

    low, high = line.interval
    return {
        "low": place(low),
        "high": place(high),
        "at": place(line.main),
        "words": f"{number(low, unit)} to {number(high, unit)}",
        "width": _WIDTH,
    }


def _end(board: Board, value: float) -> str:
    return f"{100 * value:.6g}" if board.primary_unit == "percent" else f"{value:,.6g}"


def _chips(lines: Sequence[Line], choices: Choices) -> list[dict[str, Any]]:
    """All rows, and those of one kind of training where some row states it or the address asks for it."""
    there = {line.training for line in lines} | {choices.training}
    named = {"": "All", **{word: words for word, words in _CHIPS.items() if word in there}}
    return [
        {"words": words, "query": choices.query(training=word, page=None), "on": choices.training == word}
        for word, words in named.items()
    ]


def _filters(lines: Sequence[Line], choices: Choices) -> list[dict[str, Any]]:
    """The further filters: those that have something to choose from, or that the address chooses by."""
    words = filter_words(lines)
    found = []
    for name, label in _FILTERS:
        chosen = getattr(choices, name)
        if len(words[name]) > 1 or chosen or (words[name] and not all(getattr(line, name) for line in lines)):
            listed = words[name] if not chosen or chosen in words[name] else [chosen, *words[name]]
            found.append({"name": name, "label": label, "chosen": chosen, "words": listed})
    if any(line.verified for line in lines) or choices.verified:
        label = "Verified by the organisers"
        found.append({"name": "verified", "label": label, "chosen": choices.verified, "words": ["yes", "no"]})
    return found


def _pages(shown: Shown) -> list[dict[str, Any]]:
    """The pages that are linked; a gap has no number."""
    if shown.pages == 1:
        return []
    here = shown.choices.page or 1
    return [
        {
            "page": page,
            "query": None if page is None else shown.choices.query(page=page, entry=""),
            "here": page == here,
        }
        for page in linked_pages(here, shown.pages)
    ]


def linked_pages(here: int, pages: int) -> list[int | None]:
    """Numbers of the pages that a page links: the first, the last, those around; None is a gap.

    Args:
        here: number of the page, from 1.
        pages: how many there are.

    Example:
        >>> linked_pages(6, 9)
        [1, None, 4, 5, 6, 7, 8, 9]
    """
    wanted = sorted({1, pages, *range(here - 2, here + 3)} & set(range(1, pages + 1)))
    found: list[int | None] = []
    for before, page in zip([0, *wanted], wanted, strict=False):
        found += [page] if page - before == 1 else [None, page]
    return found


def _said(shown: Shown) -> str:
    """How many rows there are, and which of them stand here."""
    if not shown.matching:
        return ""
    whole = counted(shown.total, "row")
    among = f"{shown.matching:,} of {whole}" if shown.choices.narrows else whole
    if shown.choices.page == 0 or shown.pages == 1:
        return among
    last = min(shown.first + PAGE_ROWS - 1, shown.matching)
    return f"{shown.first:,} to {last:,} of {among}"


def _lead(lines: Sequence[Line], main: str) -> str:
    """What a reader of a table of published rows alone must know first; empty of other tables.

    `main` is what ranks, in words.
    """
    if not _all_published(lines):
        return ""
    others = Counter(line.other_split.partition(",")[0] for line in lines if line.other_split)
    said = [
        f"{count:,} of the {len(lines):,} are of the {split}, which does not compare with this board."
        for split, count in others.items()
    ]
    own = [line for line in lines if not line.other_split]
    if others and own and all(line.main is None for line in own):
        first = (
            "The row of this split stands first, and has"
            if not own[1:]
            else "Rows of this split stand first, and have"
        )
        said.append(f"{first} no {main}.")
    return " ".join(["No entry yet. All rows are numbers that papers and lists print.", *said])


def _note(board: Board, view: Mapping[str, Any], lines: Sequence[Line]) -> str:
    """What a reader must know before the table: what its first column says, and who stands outside."""
    kinds = {line.kind for line in lines}
    if board.sealed:
        said = [
            (
                "Equal values share a rank. A sealed board has no groups, because it publishes no values per "
                "query."
            )
        ]
    elif view["groups_pending"]:
        said = ["Rank groups and intervals are being computed; until then ranks stand here."]
    else:
        said = [_GROUPS] if kinds - {"published"} else []
    outside = [words for kind, words in _OUTSIDE.items() if kind in kinds]
    if outside and kinds - {"published"}:
        said.append(f"Rows in italics have none (–): {'; '.join(outside)}.")
    of_test = sum(bool(line.other_split) for line in lines)
    if of_test and kinds - {"published"}:
        said.append(f"{of_test:,} published rows are of another split and stand behind the others.")
    return " ".join(said)


def _legend(board: Board, view: Mapping[str, Any], lines: Sequence[Line]) -> str:
    """What explains the table's marks, behind it: where groups come from, rows in italics, raised letters."""
    kinds = {line.kind for line in lines}
    said = []
    if has_groups(board, view) and kinds - {"published"}:
        said.append("Groups come from paired tests on the queries.")
    if kinds - {"method"}:
        said.append("Rows in italics are sorted by value and have no group.")
    if "published" in kinds:
        said.append("Published rows are as reported: not scored here, and they do not compare with entries.")
    if any(line.unverified for line in lines):
        said.append(UNVERIFIED)
    if any(line.derived for line in lines):
        said.append("A raised m marks a mean that the source does not print.")
    return " ".join(said)
