"""The query that stands as an example on a board's page: of its own data, else an invented one in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cir_datasets.browse.queries import caption_of
from cir_datasets.common.yaml import package_yaml
from cir_datasets.rows.right import right_answers
from leaderboard.boards import Board, data
from leaderboard.pages.pictures import picture_path
from leaderboard.pages.queries import benchmark_here, hidden_pictures, queries_of

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec
    from cir_datasets.rows.records import Row

_SHORT = 60
"""Characters of a caption that an example likes to have at most."""


@dataclass(frozen=True)
class ShownPicture:
    """A picture of an example.

    Args:
        path: where this site shows it, or empty where it may not be shown.
        words: its id, or what an invented one shows.
    """

    path: str
    words: str


@dataclass(frozen=True)
class BoardExample:
    """One query or session.

    Args:
        reference: its first picture.
        captions: what each turn says.
        target: one right answer.
        right: how many right answers there are; None where that is not known.
        counted: how many of them make a hit in what ranks; recall counts the target alone.
        source: a sentence on where it comes from, empty where pictures say it.
        id: of the query; empty of an invented one.
    """

    reference: ShownPicture
    captions: tuple[str, ...]
    target: ShownPicture
    right: int | None
    counted: int | None = None
    source: str = ""
    id: str = ""


def example_of(board: Board) -> BoardExample:
    """An example of what a board asks: of its own data where that is here, else an invented one in words.

    Args:
        board: the board.

    Example:
        >>> from leaderboard import boards
        >>> example_of(boards.board("circled")).source
        'An invented example: the queries were not prepared on this server.'
    """
    if board.sealed or benchmark_here(board.spec) is None:
        return _invented(board)
    rows = [*queries_of(board.spec.id).rows.values()]
    row = next((row for row in rows if _fits(row)), rows[0])
    targets = right_answers(row, board.right_by)
    if row.get("target_image_id") in targets:  # the annotated one is shown
        targets = list(dict.fromkeys([row["target_image_id"], *targets]))
    positives = {*targets, *(row.get("positive_image_ids") or ())}
    captions = [caption_of(turn) for turn in row.get("turns") or [row]]
    first = (row.get("turns") or [row])[0]
    target = _picture(board.spec, targets[0])
    return BoardExample(
        _picture(board.spec, first["reference_image_id"]),
        tuple(captions),
        target,
        len(positives),
        len(targets),
        "" if target.path else hidden_pictures(board),
        row.get("query_id") or row["session_id"],
    )


def _fits(row: Row) -> bool:
    """Whether a row is short enough for a glance, and has a picture to begin with."""
    turns = row.get("turns") or [row]
    return (
        len(turns) <= 3
        and turns[0]["reference_image_id"] is not None
        and all(0 < len(caption_of(turn)) <= _SHORT for turn in turns)
    )


def _picture(spec: BenchmarkSpec, image_id: str | None) -> ShownPicture:
    return ShownPicture("" if image_id is None else picture_path(spec, image_id), image_id or "none")


def _invented(board: Board) -> BoardExample:
    known: dict[str, dict[str, Any]] = package_yaml("leaderboard", "pages/examples.yaml")
    own = known.get(board.spec.card.name, known[board.spec.kind])
    if board.sealed:
        why = "the queries of a sealed board are not shown"
    elif data.problem(board) is None:
        why = "real queries stand here once a file has come"
    else:
        why = "the queries were not prepared on this server"
    return BoardExample(
        ShownPicture("", own["reference"]),
        tuple(own["captions"]),
        ShownPicture("", own["target"]),
        None,
        source=f"An invented example: {why}.",
    )
