"""The first page: what the task is, what is ranked, how to enter, and all boards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cir_datasets.registry.published import published
from leaderboard import boards
from leaderboard.boards import Board
from leaderboard.pages.board_head import ranked_by
from leaderboard.pages.figures import Unit, number
from leaderboard.pages.pictures import task_example
from leaderboard.pages.published_page import column_of
from leaderboard.pages.published_rows import PublishedLine, best_for
from leaderboard.pages.site import Page, Site
from leaderboard.tables import KeptTable

_TRACKS = {
    "open": "Open: the ground truth is public",
    "sealed": "Sealed: the organisers keep the ground truth",
}
_NAMED = 3
"""How many methods of the leading group a card names."""


@dataclass(frozen=True)
class Leaders:
    """What leads a board.

    Args:
        words: what they are: `Leading group`, `First` or `Best baseline`.
        metric: what ranks.
        methods: names of the first few, each with its value as tables show it and its interval, where it has
            one.
        more: how many are not named.
    """

    words: str
    metric: str
    methods: tuple[tuple[str, str], ...]
    more: int

    @property
    def said(self) -> str:
        """All of it in one line."""
        listed = "; ".join(f"{name} {score}" for name, score in self.methods)
        more = f"; and {self.more} more" if self.more else ""
        return f"{self.words} by {self.metric}: {listed}{more}"


@dataclass(frozen=True)
class BoardCard:
    """A board on the first page.

    Args:
        board: the board.
        metric: what ranks.
        over: how many queries over how many images, or empty.
        leaders: what leads it, or None where it has no entry.
        entries: how many it has.
        last: day of the newest entry, or empty.
        is_open: whether files sent now are judged.
        state: `open`, or what is missing, in a few words.
        lacks_data: whether it is not open for want of its publisher's files.
        best: the best published number, where no entry stands or none is taken.
    """

    board: Board
    metric: str
    over: str
    leaders: Leaders | None
    entries: int
    last: str
    is_open: bool
    state: str
    lacks_data: bool
    best: PublishedLine | None


def page(site: Site, track: str = "") -> Page:
    """The page.

    Args:
        site: of the server.
        track: `open` or `sealed` shows the boards of that track; anything else shows all.
    """
    cards = [card(board, site.server.tables.of(board)) for board in boards.boards()]
    shown = [one for one in cards if track not in _TRACKS or one.board.track == track]
    kinds: dict[str, list[BoardCard]] = {}
    for one in shown:
        kinds.setdefault(one.board.group, []).append(one)
    example = task_example()
    return Page(
        "home.html",
        "Boards of composed image retrieval",
        "Which methods find the picture that a reference picture and a sentence ask for: boards with rank "
        "groups, intervals and published results.",
        {
            "example": example,
            "kinds": kinds,
            "tracks": _tracks(track),
            "count": len(cards),
            "takes": sum(one.is_open for one in cards),
            "reported": (len(published()), len({row.source for row in published()})),
        },
        image=example["target"]["path"],
    )


def _tracks(chosen: str) -> list[dict[str, Any]]:
    """The filter by track; nothing where all boards have one track and none is chosen."""
    there = {board.track for board in boards.boards()}
    if len(there) < 2 and chosen not in _TRACKS:
        return []
    words = {"": "All boards", **_TRACKS}
    return [{"track": name, "words": said, "on": name == chosen} for name, said in words.items()]


def card(board: Board, table: KeptTable) -> BoardCard:
    """A board's card, made once a table.

    Args:
        board: the board.
        table: its table.
    """
    found: BoardCard | None = table.derived.get("card")
    if found is None:
        found = table.derived["card"] = _card(board, table.view)
    return found


def _card(board: Board, view: Mapping[str, Any]) -> BoardCard:
    state = state_words(view)
    best = best_for(board) if state != "open" or not view["rows"] else None
    return BoardCard(
        board=board,
        metric=column_of(board.primary).head if len(board.primary_terms) > 1 else board.primary_label,
        over=_over(board),
        leaders=leaders(board, view["rows"]),
        entries=view["entries"],
        last=max((row["published_at"] or "" for row in view["rows"]), default="")[:10],
        is_open=state == "open",
        state=state,
        lacks_data=state.startswith("no data"),
        best=best,
    )


def state_words(view: Mapping[str, Any]) -> str:
    """`open`, or why files sent to a board now are not judged, in a few words.

    Args:
        view: from `table_view`.

    Example:
        >>> state_words({"closed": None, "paused": None, "unavailable": "a.json is not here. Its ..."})
        'no data: a.json is not here'
    """
    if view["closed"]:
        return f"closed: {view['closed'].rstrip('.')}"
    if view["paused"]:
        return f"paused: {view['paused'].rstrip('.')}"
    if view["unavailable"]:
        return f"no data: {view['unavailable'].partition('. ')[0].rstrip('.')}"
    return "open"


def _over(board: Board) -> str:
    """How many queries are ranked, and among how many images, where that is known."""
    unit = "sessions" if board.spec.kind == "multi_turn" else "queries"
    found = [f"{board.queries:,} {unit}"] if board.queries is not None else []
    found += [f"{board.gallery:,} images"] if board.gallery is not None else []
    return " over ".join(found)


def leaders(board: Board, rows: Sequence[Mapping[str, Any]]) -> Leaders | None:
    """What leads a board, or None where nothing has been entered.

    Args:
        board: the board.
        rows: of its table.
    """
    first = [row for row in rows if row["group"] == 1]
    words = "Leading group"
    if not first:
        ranked = [row for row in rows if row["rank"] is not None]
        entered = [row for row in ranked if not row["baseline"]]
        first = [row for row in (entered or ranked) if row["rank"] == (entered or ranked)[0]["rank"]]
        words = "First" if entered else "Best baseline"
    if not first:
        return None
    methods = tuple(
        (str(row["method"].get("name", "unnamed")), _score(row, board.primary_unit)) for row in first[:_NAMED]
    )
    metric = f"the {ranked_by(board)}" if len(board.primary_terms) > 1 else board.primary_label
    return Leaders(words, metric, methods, len(first[_NAMED:]))


def _score(row: Mapping[str, Any], unit: Unit) -> str:
    score = number(row["main"], unit)
    if row["interval"] is None:
        return score
    low, high = (number(end, unit) for end in row["interval"])
    return f"{score} [{low}, {high}]"
