"""A board's table as templates take it: its columns, the cells of the shown rows, and the ways to choose."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from cir_datasets.common.terminal import counted
from leaderboard.boards import Board, Column
from leaderboard.pages.board.choices import KINDS, Choices
from leaderboard.pages.board.rows import PAGE_ROWS, Line, Shown, best_first, filter_words, has_groups
from leaderboard.pages.figures import Unit, number
from leaderboard.pages.labels import metric_value
from leaderboard.standings import UNVERIFIED

_WIDTH, _MARGIN = 140, 5
"""Of the picture of an interval, in pixels."""
_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50)
_GROUPS = "Methods of one colour: paired tests on the queries find no difference to the first of them."
_RANKS = "Ranks are not tested: values of single queries are sealed, and a small lead may be chance."
_COLOURS = 6
"""Of groups in the style sheet; they begin again behind the last."""
_OUTSIDE = {
    "baseline": "Baselines",
    "oracle": "Oracles",
    "published": "Published, as reported",
}
"""What stands above rows of a kind."""
_CHIPS = {"zero-shot": "Zero-shot", "trained": "Trained"}
_FILTERS = (("encoder", "Encoder"), ("trained_on", "Trained on"))


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
    scale = _scale(shown.lines)
    columns = _columns(board, shown)
    heads = _heads(board, view, lines, columns, shown)
    grouped = has_groups(board, view)
    return {
        "shown": shown,
        "choices": shown.choices,
        "heads": heads,
        "has": {head["key"] for head in heads},
        "all_published": _all_published(lines),
        "with_interval": scale is not None,
        "scale": "" if scale is None else f"{_end(board, scale[0])} to {_end(board, scale[1])}",
        "rows": _rows(board, columns, shown, scale, view["blocks"], grouped=grouped),
        "chips": _chips(lines, shown.choices),
        "toggles": _toggles(lines, shown.choices),
        "published": sum(line.kind == "published" for line in lines),
        "filters": _filters(lines, shown.choices),
        "pages": _pages(shown),
        "said": _said(shown),
        "note": _note(board, view, lines),
        "width": "many" if len(columns) > 5 else "" if columns or scale else "few",
    }


def _all_published(lines: Sequence[Line]) -> bool:
    return bool(lines) and all(line.kind == "published" for line in lines)


def _columns(board: Board, shown: Shown) -> list[Column]:
    """The metrics that some row has or the address sorts by; those of published rows alone come last."""

    def has(metric: str, lines: Iterable[Line]) -> bool:
        return any(metric in line.texts or line.values.get(metric) is not None for line in lines)

    entered = [line for line in shown.left if line.kind != "published"]
    there = [c for c in board.columns if shown.choices.sort == c.metric or has(c.metric, shown.left)]
    return sorted(there, key=lambda column: not has(column.metric, entered))


def _heads(
    board: Board, view: Mapping[str, Any], lines: Sequence[Line], columns: Sequence[Column], shown: Shown
) -> list[dict[str, Any]]:
    """The columns that hold something in some row, in order; the first has no order of its own."""
    choices = shown.choices
    order = choices.order or best_first(board, choices.sort)
    named = [("name", "Method", "higher", "")]
    if any(line.main is not None for line in shown.left):
        named.append(("main", board.primary_label, board.primary_direction, board.primary))
    named += [(column.metric, column.label, column.direction, column.metric) for column in columns]
    first = "Group" if has_groups(board, view) else "Rank"
    placed = any(line.place for line in shown.left)
    found = [_head("place", first, "higher", "", None, "")] if placed else []
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
    grouped: bool,
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    before: Line | None = None
    for line in shown.lines:
        begins = before is None or (line.block, line.place) != (before.block, before.place)
        found.append(
            {
                "line": line,
                "above": _above(line, before, blocks),
                "main": _printed(board, line, board.primary, line.main),
                "values": [_printed(board, line, c.metric, line.values.get(c.metric)) for c in columns],
                **_half_width(line, board.primary_unit),
                "interval": _interval(line, board.primary_unit, scale),
                "received": line.received[:10],
                "moment": _moment(board, line),
                "begins": begins,
                "colour": (int(line.place) - 1) % _COLOURS + 1 if grouped and line.place else 0,
                "marked": bool(line.id) and line.id == shown.choices.entry,
            }
        )
        before = line
    return found


def _above(line: Line, before: Line | None, blocks: Mapping[str, str]) -> str:
    """What stands above a row where another section begins than that of the row before."""
    if before is not None and line.section == before.section:
        return ""
    if line.kind in _OUTSIDE and (
        before is None or line.section[1] == before.section[1] or line.block == "current"
    ):
        return _OUTSIDE[line.kind]
    return blocks.get(line.block, "")


def _printed(board: Board, line: Line, metric: str, value: float | None) -> dict[str, Any]:
    """A number as its source prints it or as tables show it, and whether it is a mean that is not printed."""
    # What a source does not print is left blank.
    text = line.texts.get(metric, "") if line.kind == "published" else metric_value(board, metric, value)
    return {"text": text, "is_derived": metric in line.derived}


def _moment(board: Board, line: Line) -> str:
    """When a row came, exactly, and in which phase where there are several."""
    if line.kind == "published" or not line.received:
        return ""
    moment = datetime.fromisoformat(line.received)
    phase = board.phase(moment) if len(board.phases) > 1 and line.kind != "baseline" else None
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC" + (f", phase {phase.name}" if phase else "")


def _scale(lines: Sequence[Line]) -> tuple[float, float] | None:
    """Where the pictures of intervals begin and end: around the methods shown, or all rows where none is."""
    known = [line for line in lines if line.interval is not None and line.main is not None]
    methods = [line for line in known if line.kind in ("method", "apart")]
    ends = [end for line in methods or known for end in (*(line.interval or ()), line.main or 0.0)]
    if not ends:
        return None
    low, high = min(ends), max(ends)
    step = next((step for step in _STEPS if (high - low) / step <= 10), _STEPS[-1])
    first, last = math.floor(low / step), math.ceil(high / step)
    return first * step, max(last, first + 1) * step


def _half_width(line: Line, unit: Unit) -> dict[str, str]:
    """Half the width of a row's interval, as it stands beside the number, and its ends in words."""
    if line.interval is None:
        return {"half": "", "words": ""}
    low, high = line.interval
    half = (high - low) / 2
    words = f"{number(low, unit)} to {number(high, unit)}"
    return {"half": f"±{100 * half if unit == 'percent' else half:,.1f}", "words": words}


def _interval(line: Line, unit: Unit, scale: tuple[float, float] | None) -> dict[str, Any] | None:
    """The picture of a row's interval; None where the scale, which is the methods', does not reach it."""
    if line.interval is None or line.main is None or scale is None:
        return None
    if not scale[0] <= min(*line.interval, line.main) <= max(*line.interval, line.main) <= scale[1]:
        return None

    def place(value: float) -> str:
        share = (value - scale[0]) / (scale[1] - scale[0])
        return f"{_MARGIN + share * (_WIDTH - 2 * _MARGIN):.1f}"

    low, high = line.interval
    return {
        "low": place(low),
        "high": place(high),
        "at": place(line.main),
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


def _toggles(lines: Sequence[Line], choices: Choices) -> list[dict[str, Any]]:
    """The ways to hide rows of a kind."""
    return [
        {"words": f"Hide {words}", "query": choices.toggled(kind), "on": kind in choices.hidden}
        for kind, words in KINDS.items()
        if any(line.kind == kind for line in lines)
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
    matching = len(shown.left)
    if not matching:
        return ""
    whole = counted(shown.total, "row")
    among = f"{matching:,} of {whole}" if shown.choices.narrows else whole
    if shown.choices.page == 0 or shown.pages == 1:
        return among
    last = min(shown.first + PAGE_ROWS - 1, matching)
    return f"{shown.first:,} to {last:,} of {among}"


def _note(board: Board, view: Mapping[str, Any], lines: Sequence[Line]) -> str:
    """What explains the table's marks: where groups come from, raised letters."""
    said = []
    if not _all_published(lines):
        if board.sealed:
            said.append(_RANKS)
        elif view["groups_pending"]:
            said.append("Ranks stand here until rank groups and intervals are computed.")
        else:
            said.append(_GROUPS)
    if any(line.unverified for line in lines):
        said.append(UNVERIFIED)
    if any(line.derived for line in lines):
        said.append("A raised m marks a mean that the source does not print.")
    return " ".join(said)
