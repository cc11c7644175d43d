"""What a notebook shows of queries and sessions: their pictures; the first rows of a benchmark as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

from cir_datasets.common.terminal import Cell, Table, counted_rows

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec
    from cir_datasets.rows.records import Row

_PRINTED = 20
"""Rows that are printed in full."""
_TARGETS = 5
"""Targets of a row that a table names."""


class NotebookRow(dict[str, Any]):
    """A query or a session.

    Args:
        row: what it holds.
        spec: its benchmark.

    Example:
        >>> import cir_datasets
        >>> query = cir_datasets.load("shapes/val").queries[0]
        >>> query["relative_caption"]
        'a small blue star'
        >>> "data:image/jpeg;base64," in query._repr_html_()
        True
    """

    def __init__(self, row: Row, spec: BenchmarkSpec) -> None:
        """See the class."""
        super().__init__(row)
        self._spec = spec

    def _repr_html_(self) -> str:
        """Its reference, caption and targets, for a notebook."""
        return _html(self._spec, [self])


class NotebookRows(list[Any]):
    """Queries or sessions.

    Args:
        rows: what they hold.
        spec: their benchmark.
    """

    def __init__(self, rows: Iterable[Row], spec: BenchmarkSpec) -> None:
        """See the class."""
        super().__init__(NotebookRow(row, spec) for row in rows)
        self._spec = spec

    @overload
    def __getitem__(self, place: SupportsIndex, /) -> Any: ...
    @overload
    def __getitem__(self, place: slice, /) -> NotebookRows: ...
    def __getitem__(self, place: Any, /) -> Any:
        """One of them, or a few, which are shown in the same way."""
        found = super().__getitem__(place)
        return NotebookRows(found, self._spec) if isinstance(place, slice) else found

    def __repr__(self) -> str:
        """A few as a list has it; of more their number, for notebooks keep what is printed."""
        if len(self) <= _PRINTED:
            return super().__repr__()
        return f"<{counted_rows(len(self), self._spec.kind == 'multi_turn')} of {self._spec.id}>"

    def _repr_html_(self) -> str:
        """The first of them with reference, caption and targets, for a notebook."""
        return _html(self._spec, self)


def table_of(rows: Sequence[Row], number: int) -> Table:
    """The first rows of a benchmark as a table of texts.

    Args:
        rows: the first queries or sessions.
        number: how many there are in all.
    """
    shown = []
    for row in rows:
        multi_turn = "turns" in row
        turns = row["turns"] if multi_turn else [row]
        captions = [(turn.get("captions") or [turn["relative_caption"]]) for turn in turns]
        targets = row["ground_truth_ids" if multi_turn else "positive_image_ids"]
        more = f" and {len(targets) - _TARGETS:,} more" if len(targets) > _TARGETS else ""
        texts = (
            row["session_id" if multi_turn else "query_id"],
            " → ".join(turn["reference_image_id"] or "-" for turn in turns),
            " → ".join(" / ".join(filter(None, each)) or "-" for each in captions),
            ", ".join(targets[:_TARGETS]) + more,
        )
        shown.append(tuple(Cell(text) for text in texts))
    title = f"the first {len(shown)} of {number:,}" if len(shown) < number else ""
    return Table(title, ("id", "reference", "caption", "targets"), tuple(shown))


def _html(spec: BenchmarkSpec, rows: Sequence[Row]) -> str:
    from cir_datasets import queries_html  # the public name: what draws pictures stands above the rows

    return queries_html(spec, rows)
