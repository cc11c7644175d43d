"""The queries of a board as this server has them, and the one that stands as an example on its page.

Nothing is fetched and nothing is prepared for a reader: what an organiser has prepared is shown. A sealed
board shows none of it, so that no answer of the server holds a word about its pictures.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cir_datasets.browse import right_answers
from cir_datasets.common.yaml import own_yaml
from cir_datasets.errors import DatasetError
from cir_datasets.prepared.folder import last_prepared
from leaderboard import data
from leaderboard.boards import Board
from leaderboard.inspection import reports
from leaderboard.inspection.making import right_by
from leaderboard.pages.pictures import picture_path

if TYPE_CHECKING:
    from cir_datasets.registry.cards import BenchmarkSpec
    from cir_datasets.rows.benchmark import Benchmark
    from cir_datasets.rows.records import Row

log = logging.getLogger("leaderboard.pages")

_KEPT = 16
"""Benchmarks that a process keeps."""
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


def benchmark_here(spec: BenchmarkSpec) -> Benchmark | None:
    """A benchmark that was prepared on this server, or None; it is read once while its data stays as it is.

    Args:
        spec: the benchmark.
    """
    last = last_prepared(spec)
    if last is None:
        return None
    try:
        return reports.benchmark_here(spec.id)
    except DatasetError as error:
        log.warning("%s cannot be read for the board's page: %s", spec.id, error)
        return None


def are_prepared(board: Board) -> bool:
    """Whether every benchmark of a board was prepared on this server.

    Args:
        board: the board.
    """
    return all(benchmark_here(spec) is not None for spec in board.specs)


def queries_here(spec: BenchmarkSpec) -> Sequence[Row] | None:
    """Its queries or sessions in their order, or None where it was not prepared here."""
    benchmark = benchmark_here(spec)
    return None if benchmark is None else _rows(benchmark.id, benchmark.data_hash)


def example_of(board: Board) -> BoardExample:
    """An example of what a board asks: of its own data where that is here, else an invented one in words.

    Args:
        board: the board.

    Example:
        >>> from leaderboard import boards
        >>> example_of(boards.board("circled")).source
        'An invented example: the queries were not prepared on this server.'
    """
    rows = None if board.sealed else queries_here(board.spec)
    if not rows:
        return _invented(board)
    row = next((row for row in rows if _fits(row)), rows[0])
    targets = right_answers(row, right_by(board))
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
        "" if target.path else "Images are shown by their ids: the pictures are their publisher's.",
        row.get("query_id") or row["session_id"],
    )


@functools.lru_cache(_KEPT)
def _rows(benchmark_id: str, _data_hash: str) -> Sequence[Row]:
    import cir_datasets

    return cir_datasets.load(benchmark_id).rows()


def _fits(row: Row) -> bool:
    """Whether a row is short enough for a glance, and has a picture to begin with."""
    turns = row.get("turns") or [row]
    return (
        len(turns) <= 3
        and turns[0]["reference_image_id"] is not None
        and all(_is_short(turn) for turn in turns)
    )


def _is_short(turn: Any) -> bool:
    return 0 < len(caption_of(turn)) <= _SHORT


def caption_of(turn: Any) -> str:
    """What a turn, or a query of one turn, says; empty where it has no words.

    Args:
        turn: a row of single queries, or one of the turns of a session.

    Example:
        >>> caption_of({"captions": ["is red", "has dots"], "relative_caption": "is red"})
        'is red, and has dots'
    """
    return ", and ".join(turn.get("captions") or filter(None, [turn["relative_caption"]]))


def _picture(spec: BenchmarkSpec, image_id: str | None) -> ShownPicture:
    return ShownPicture("" if image_id is None else picture_path(spec, image_id), image_id or "none")


def _invented(board: Board) -> BoardExample:
    known: dict[str, dict[str, Any]] = own_yaml("leaderboard", "pages/examples.yaml")
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
