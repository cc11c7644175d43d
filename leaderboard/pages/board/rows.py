"""The rows of a board's table that an address asks for: searched, filtered, sorted, and a page of them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from leaderboard.boards import Board
from leaderboard.pages.board.choices import NOT_STATED, Choices
from leaderboard.pages.published_rows import rows_for
from leaderboard.standings import BLOCKS, Block, block_mark
from leaderboard.standings.tables import KeptTable
from submissions.rank_file.texts import OTHER

PAGE_ROWS = 50
BEST_PUBLISHED = 5
"""Published rows of a table that is not searched; the page of published results has all."""

Kind = Literal["method", "baseline", "oracle", "published", "apart"]


@dataclass(frozen=True)
class Line:
    """A row of a board's table.

    Args:
        kind: `apart` is a method in a block without ranks.
        id: the submission's; empty of a published row.
        name: of the method.
        main: what ranks, a fraction or a rank; None where a published row lacks it.
        values: by metric, as `main`.
        place: group or rank as shown; empty outside.
        training: one of `zero-shot`, `trained`, `not stated`.
        trained_on: what it was trained on.
        encoder: the backbone in short.
        backbone: all that is said of it.
        submitter: who sent it.
        received: when, ISO; of a published row the year, or empty.
        verified: whether the organisers have verified it.
        flag: what the organisers warn of, or None.
        block: with which entries it compares.
        mark: what that is called in a row, in two words; empty of the first block.
        why: why it is not the first block, a sentence.
        unverified: whether it should rank its reference, and nothing shows that it does.
        texts: of a published row by metric the number as it is printed.
        derived: of a published row the metrics whose number is a mean that its source does not print.
        where: of a published row its source, table and row.
        key: of a published row source and table in a few letters.
        benchmark: of a published row the one on whose page of published results it stands.
        anchor: of a published row the id of its place there.
        row: the table's row; None of a published one.
    """

    kind: Kind
    id: str
    name: str
    main: float | None
    values: Mapping[str, float | None]
    place: str = ""
    training: str = NOT_STATED
    trained_on: tuple[str, ...] = ()
    encoder: str = ""
    backbone: str = ""
    submitter: str = ""
    received: str = ""
    verified: bool = False
    flag: str | None = None
    interval: tuple[float, float] | None = None
    block: Block = "current"
    mark: str = ""
    why: str = ""
    unverified: bool = False
    texts: Mapping[str, str] = field(default_factory=dict)
    derived: frozenset[str] = frozenset()
    where: str = ""
    key: str = ""
    benchmark: str = ""
    anchor: str = ""
    row: Any = field(default=None, compare=False, repr=False)

    @property
    def section(self) -> tuple[bool, int, int]:
        """What it stands in, in order: blocks, each with baselines and then oracles last; published rows."""
        outside = ("baseline", "oracle").index(self.kind) + 1 if self.kind in ("baseline", "oracle") else 0
        return self.kind == "published", BLOCKS.index(self.block), outside

    @property
    def found_by(self) -> str:
        """What a search looks at."""
        return _folded(f"{self.name} {self.backbone} {self.submitter} {self.where} {self.key}")


@dataclass(frozen=True)
class Shown:
    """A page of a board's table.

    Args:
        lines: of the page.
        left: those of all pages.
        choices: with the page that it is.
        total: rows of the table.
        first: place of the page's first row among those, from 1.
        pages: how many there are.
        remarks: what of the address was not understood, a sentence each.
    """

    lines: tuple[Line, ...]
    left: tuple[Line, ...]
    choices: Choices
    total: int
    first: int
    pages: int
    remarks: tuple[str, ...]


def shown(board: Board, lines: Sequence[Line], choices: Choices, remarks: Sequence[str] = ()) -> Shown:
    """The page of a table that is asked for: that of the entry in view, where no page is named.

    Args:
        board: the board.
        lines: all rows, in the order of the table's own.
        choices: what is asked for.
        remarks: from `read_choices`.
    """
    left = _sorted(board, [line for line in lines if _is_wanted(line, choices)], choices)
    if not choices.q:
        left = _with_best_published(left)
    pages = max(1, -(-len(left) // PAGE_ROWS))
    place = next((at for at, line in enumerate(left) if line.id and line.id == choices.entry), None)
    page_with_entry = None if place is None else place // PAGE_ROWS + 1
    page, said = choices.page, list(remarks)
    if page is None:
        page = page_with_entry or 1
    elif page > pages:
        said.append(f"There is no page {page}: this is the last.")
        page = pages
    if page_with_entry is None and any(line.id and line.id == choices.entry for line in lines):
        said.append(f"The entry {choices.entry} is on this board, but these filters hide it.")
    elif page_with_entry not in (None, page) and page:
        said.append(f"The entry {choices.entry} is on page {page_with_entry}.")
    start = max(0, page - 1) * PAGE_ROWS
    part = left if page == 0 else left[start : start + PAGE_ROWS]
    return Shown(
        tuple(part),
        tuple(left),
        replace(choices, page=page),
        len(lines),
        start + 1,
        1 if page == 0 else pages,
        tuple(said),
    )


def lines_of(board: Board, view: Mapping[str, Any]) -> list[Line]:
    """The entries of a board's table as rows, in its order.

    Args:
        board: the board.
        view: from `leaderboard.standings.views.table_view`.
    """
    grouped = has_groups(board, view)
    return [_line(board, row, grouped=grouped) for row in view["rows"]]


def kept_lines(board: Board, table: KeptTable) -> list[Line]:
    """As `lines_of`, made once a table.

    Args:
        board: the board.
        table: its table; nobody changes the list.
    """
    found: list[Line] | None = table.derived.get("lines")
    if found is None:
        found = table.derived["lines"] = lines_of(board, table.view)
    return found


def published_lines(board: Board) -> list[Line]:
    """Published results on a board's own split as its rows: as reported, and never in a group.

    Args:
        board: the board.

    Example:
        >>> from leaderboard import boards
        >>> line = published_lines(boards.board("fashioniq/val"))[0]
        >>> line.name, line.texts["mean(recall@10, recall@50)"]
        ('DQU-CIR', '71.77')
    """
    units = board.units
    found = []
    for each in rows_for(board):
        if each.other_split:
            continue
        values = {
            metric: float(number.value) / (100 if units[metric] == "percent" else 1)
            for metric, number in each.numbers.items()
        }
        found.append(
            Line(
                kind="published",
                id="",
                name=each.row.method,
                main=values.get(board.primary),
                values=values,
                encoder=short_encoder(each.row.backbone),
                backbone=each.row.backbone,
                received="" if each.row.year is None else str(each.row.year),
                texts={metric: number.text for metric, number in each.numbers.items()},
                derived=frozenset(metric for metric, number in each.numbers.items() if number.is_derived),
                where=each.where,
                key=each.row.key,
                benchmark=each.listed_under,
                anchor=each.anchor,
            )
        )
    return found


def has_groups(board: Board, view: Mapping[str, Any]) -> bool:
    """Whether rows have groups rather than ranks: not on a sealed board, and not before they are made.

    Args:
        board: the board.
        view: its table.
    """
    return not board.sealed and not view["groups_pending"]


def filter_words(lines: Iterable[Line]) -> dict[str, list[str]]:
    """By name of a filter the words that rows have, sorted."""
    lines = list(lines)
    return {
        "encoder": _each(line.encoder for line in lines),
        "trained_on": _each(word for line in lines for word in line.trained_on),
    }


def best_first(board: Board, sort: str) -> str:
    """The order of a column in which the best or the first by alphabet comes first.

    Args:
        board: the board.
        sort: the column.
    """
    directions = {"main": board.primary_direction, **board.directions}
    return "desc" if directions.get(sort) == "higher" else "asc"


def short_encoder(backbone: str) -> str:
    """A backbone without its weights: what stands before brackets and further parts.

    Example:
        >>> short_encoder("CLIP ViT-B/32 (openai, 224 pixels); head a17f626d6900")
        'CLIP ViT-B/32'
    """
    named = backbone.removeprefix(f"{OTHER}: ")
    return named.partition(" (")[0].partition(";")[0].strip()


def _line(board: Board, row: Mapping[str, Any], *, grouped: bool) -> Line:
    method = row["method"]
    zero_shot = method.get("zero_shot")
    kind: Kind = "method"
    if row["is_oracle"]:
        kind = "oracle"
    elif row["baseline"]:
        kind = "baseline"
    elif row["rank"] is None:
        kind = "apart"
    place = row["group"] if grouped else row["rank"]
    return Line(
        kind=kind,
        id=row["submission"],
        name=str(method.get("name", "unnamed")),
        main=row["main"],
        values={column.metric: row["metrics"].get(column.metric) for column in board.columns},
        place="" if place is None else str(place),
        training=NOT_STATED if zero_shot is None else "zero-shot" if zero_shot else "trained",
        trained_on=tuple(map(str, method.get("trained_on") or ())),
        encoder=short_encoder(str(method.get("backbone") or "")),
        backbone=str(method.get("backbone") or ""),
        submitter=row["submitter"],
        received=row["received_at"],
        verified=row["verified"],
        flag=row["flag"],
        interval=None if row["interval"] is None else (row["interval"][0], row["interval"][1]),
        block=row["block"],
        mark=block_mark(row["block"], row["reference_evidence"]["used"]),
        why=row["why"],
        unverified=row["reference_evidence"]["unverified"],
        row=row,
    )


def _with_best_published(lines: Sequence[Line]) -> list[Line]:
    entered = [line for line in lines if line.kind != "published"]
    return [*entered, *lines[len(entered) : len(entered) + BEST_PUBLISHED]]


def _is_wanted(line: Line, choices: Choices) -> bool:
    return (
        line.kind not in choices.hidden
        and (not choices.training or line.training == choices.training)
        and (not choices.encoder or line.encoder == choices.encoder)
        and (not choices.trained_on or choices.trained_on in line.trained_on)
        and (not choices.verified or line.verified == (choices.verified == "yes"))
        and (not choices.q or all(word in line.found_by for word in _folded(choices.q).split()))
    )


def _sorted(board: Board, lines: list[Line], choices: Choices) -> list[Line]:
    """Section by section by the column; rows without a value come behind those with one."""
    sort, order = choices.sort, choices.order or best_first(board, choices.sort)

    def value(line: Line) -> Any:
        if sort == "name":
            return _folded(line.name)
        return line.main if sort == "main" else line.values.get(sort)

    known = [line for line in lines if value(line) is not None]
    known.sort(key=value, reverse=order == "desc")
    unknown = [line for line in lines if value(line) is None]
    return sorted([*known, *unknown], key=lambda line: line.section)


def _each(words: Iterable[str]) -> list[str]:
    return sorted({word for word in words if word}, key=lambda word: (_folded(word), word))


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
