"""Queries and sessions that a notebook shows with their pictures; otherwise dictionaries, and a list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

from cir_datasets.common.counts import counted_rows

if TYPE_CHECKING:
    from cir_datasets.registry.cards import BenchmarkSpec
    from cir_datasets.rows.records import Row

_PRINTED = 20
"""Rows that are printed in full."""


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


_shows: list[Callable[[BenchmarkSpec, Sequence[Row]], str]] = []


def show_with(html: Callable[[BenchmarkSpec, Sequence[Row]], str]) -> None:
    """Say what makes HTML of rows: it finds and draws pictures, and stands above the rows.

    Args:
        html: of a benchmark and its rows.
    """
    _shows[:] = [html]


def _html(spec: BenchmarkSpec, rows: Sequence[Row]) -> str:
    return _shows[0](spec, rows)
