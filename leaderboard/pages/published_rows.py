"""Published results as rows beside a board's table: as reported, outside the groups, never ranked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from cir_datasets.registry.published import Number, Reported, published
from cir_datasets.registry.schema import main_metric_terms
from cir_metrics.catalogue import METRICS
from leaderboard import boards
from leaderboard.boards import Board

_FIRST_ROUND = "@turn1"
"""Ends the metrics of a dialogue's first round, which is the published query itself."""


@dataclass(frozen=True)
class PublishedLine:
    """A published row as a board shows it.

    Args:
        row: the row, with method, backbone, year, source, protocol and note.
        benchmark: that the source claims; another one than the board's where `other_split` has words.
        numbers: by the board's metric (`board.primary`, `column.metric`) what the source prints.
        remarks: sentences on what is odd: the row's note, means that are not printed, first rounds.
        other_split: words where the numbers are of another split than the board's; empty where not.
    """

    row: Reported
    benchmark: str
    numbers: Mapping[str, Number]
    remarks: tuple[str, ...] = ()
    other_split: str = ""

    @property
    def where(self) -> str:
        """Source, table and row in short."""
        return self.row.where

    @property
    def listed_under(self) -> str:
        """The benchmark on whose page of published results it stands."""
        named = [name for name, _ in self.row.values]
        # A row of a suite's members alone stands with the first of them.
        return self.benchmark if self.benchmark in named else named[0]

    @property
    def anchor(self) -> str:
        """Id of the row's place on that page."""
        return row_anchor(self.listed_under, self.row)


def row_anchor(benchmark: str, row: Reported) -> str:
    """Id of a row on the page of published results, in the tables of one benchmark.

    Args:
        benchmark: its id.
        row: the row.

    Example:
        >>> row_anchor("cirr/test1", published()[0])
        'cirr-test1-cirr-1-1'
    """
    return f"{benchmark.replace('/', '-')}-{row.id}"


_kept: dict[str, tuple[Board, tuple[PublishedLine, ...]]] = {}


def rows_for(board: Board) -> tuple[PublishedLine, ...]:
    """Published rows with a number for a column of the board, by what ranks, the best first.

    Rows of the board's own benchmark come first; then those of its test split, where sources print that and
    the board is of the validation split: they say so, and do not compare.

    Args:
        board: the board.

    Example:
        >>> from leaderboard import boards
        >>> line = rows_for(boards.board("fashioniq/val"))[0]
        >>> line.row.method, line.numbers["mean(recall@10, recall@50)"].text
        ('DQU-CIR', '71.77')
    """
    board_then, lines = _kept.get(board.id, (None, ()))
    if board_then != board:
        lines = _made(board)
        _kept[board.id] = (board, lines)
    return lines


def _made(board: Board) -> tuple[PublishedLine, ...]:
    own = [line for row in published() if (line := _line(board, row, board.benchmark, ""))]
    test = _test_split(board)
    words = f"test split ({test}), as reported; does not compare" if test else ""
    others = [line for row in published() if test and (line := _line(board, row, test, words))]
    return (*_in_order(board, _each_once(own)), *_in_order(board, _each_once(others)))


def best_for(board: Board) -> PublishedLine | None:
    """The published row with the best number of what ranks the board; None where no source prints one.

    Args:
        board: the board.
    """
    return next((line for line in rows_for(board) if board.primary in line.numbers), None)


def boards_of(benchmark: str) -> tuple[Board, ...]:
    """The boards whose own benchmark or suite this is, dialogues apart.

    Args:
        benchmark: its id.
    """
    return tuple(one for one in boards.boards() if one.benchmark == benchmark and one.dialogue is None)


def _in_order(board: Board, lines: list[PublishedLine]) -> list[PublishedLine]:
    directions = board.directions

    def place(line: PublishedLine) -> tuple[object, ...]:
        # Rows that lack what ranks are ordered by the first column that they have.
        places = [
            (
                number is None,
                0.0 if number is None else float(number.value) * (1 if better == "lower" else -1),
            )
            for metric, better in directions.items()
            for number in (line.numbers.get(metric),)
        ]
        return (*places, line.row.method)

    return sorted(lines, key=place)


def printed_key(row: Reported, numbers: Mapping[str, Number]) -> tuple[object, ...]:
    """The same for rows that a source prints in two tables with the same numbers.

    Args:
        row: the row.
        numbers: by metric those that are shown of it.
    """
    printed = sorted((metric, number.text) for metric, number in numbers.items())
    return (row.source, row.method, row.backbone, *printed)


def _each_once(lines: list[PublishedLine]) -> list[PublishedLine]:
    """Rows that a source prints in two tables, as one."""
    found: dict[tuple[object, ...], PublishedLine] = {}
    for line in lines:
        key = printed_key(line.row, line.numbers)
        first = found.setdefault(key, line)
        if first is not line:
            also = f"{line.row.table.name} prints the same."
            found[key] = replace(first, remarks=(*first.remarks, also))
    return list(found.values())


def _line(board: Board, row: Reported, benchmark: str, other_split: str) -> PublishedLine | None:
    known = row.numbers
    keys = {metric: _key(metric, benchmark) for metric in board.labels}
    found = {metric: known[key] for metric, key in keys.items() if key in known}
    remarks = [row.note] if row.note else []
    if not found and board.dialogue is None:
        found = _first_rounds(board, known, keys)
        if found:
            remarks.append("The numbers are of its dialogues' first round, which is the published query")
    if not found:
        return None
    if any(number.is_derived for number in found.values()):
        remarks.append("A raised m marks a mean that its source does not print")
    return PublishedLine(row, benchmark, found, tuple(map(as_sentence, remarks)), other_split)


def as_sentence(words: str) -> str:
    """Words with a capital in front and a full stop behind.

    Example:
        >>> as_sentence("retrained by the authors")
        'Retrained by the authors.'
    """
    return f"{words[:1].upper()}{words[1:].rstrip('.')}." if words else ""


def _key(metric: str, benchmark: str) -> tuple[str, str]:
    """Benchmark and metric of a column: a suite's member stands behind its metric, `map@5@circo/val`."""
    name, _, member = metric.rpartition("@")
    return (member, name) if "/" in member else (benchmark, metric)


def _first_rounds(
    board: Board, known: Mapping[tuple[str, str], Number], keys: Mapping[str, tuple[str, str]]
) -> dict[str, Number]:
    """The numbers of a dialogue's first round; where the source prints hits, these are its recall."""
    found: dict[str, Number] = {}
    for metric, (benchmark, name) in keys.items():
        for spelt in (name, name.replace("recall@", "hits@")):
            number = known.get((benchmark, spelt + _FIRST_ROUND))
            if number is not None:
                found.setdefault(metric, number)
    terms = [found.get(term) for term in main_metric_terms(board.primary)]
    if len(terms) > 1 and all(terms):
        found[board.primary] = Number.mean_of([term.value for term in terms if term])
    return found


def _test_split(board: Board) -> str:
    """The test split of a board's benchmark where published rows have it; empty where not."""
    name, _, config = board.benchmark.partition("/")
    if board.dialogue is not None or "val" not in config:
        return ""
    beginning = f"{name}/{config.replace('val', 'test')}"
    found = {one for row in published() for one, _ in row.values if one.startswith(beginning)}
    return min(found, default="")


def metric_order(metric: str) -> tuple[bool, int, tuple[int, ...], str]:
    """What metrics of published numbers are sorted by: means first, then as the catalogue has them.

    Args:
        metric: its printed name.
    """
    order = [entry.printed for entry in METRICS.values()]
    printed, _, rest = metric.partition("@")
    numbers = tuple(int(part) for part in rest.replace(":", "@").split("@") if part.isdigit())
    place = order.index(printed) if printed in order else len(order)
    return (not metric.startswith("mean("), place, numbers, metric)
