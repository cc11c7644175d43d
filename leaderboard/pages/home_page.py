"""The first page: what the task is, what is ranked, how to enter, and all boards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cir_datasets.registry.published import published
from leaderboard import boards
from leaderboard.boards import Board
from leaderboard.pages.board.leaders import Leaders, leaders
from leaderboard.pages.pictures import task_example
from leaderboard.pages.published_rows import PublishedLine, best_for
from leaderboard.pages.published_tables import column_of
from leaderboard.pages.site import Page, Site
from leaderboard.tables import KeptTable
from leaderboard.views import state_words

_TRACKS = {
    "open": "Open: the ground truth is public",
    "sealed": "Sealed: the organisers keep the ground truth",
}


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
            "remark": _remark(track),
            "count": len(cards),
            "takes": sum(one.is_open for one in cards),
            "reported": (len(published()), len({row.source for row in published()})),
        },
        image=example["target"]["path"],
    )


def _remark(track: str) -> str:
    """What is said of a track that there is not."""
    if track in ("", *_TRACKS):
        return ""
    return f"There is no track {track[:40]}; all boards are shown. Tracks: {', '.join(_TRACKS)}."


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


def _over(board: Board) -> str:
    """How many queries are ranked, and among how many images, where that is known."""
    unit = "sessions" if board.spec.kind == "multi_turn" else "queries"
    found = [f"{board.queries:,} {unit}"] if board.queries is not None else []
    found += [f"{board.gallery:,} images{board.spec.gallery_note}"] if board.gallery is not None else []
    return " over ".join(found)
