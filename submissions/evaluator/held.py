"""What an evaluator was given since the last reset: rows in batches, each with its id."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from submissions.errors import MethodError
from submissions.evaluator.processes import gathered, joined
from submissions.running.user_arrays import check_array, numbers
from submissions.running.user_ids import Names, given_ids

_ALIKE = 0.05
"""How far a repeated row may lie from the first, by its length: batches of other sizes round otherwise."""


class EpochRows:
    """The rows of one argument.

    Args:
        argument: `queries`, `images`, `ranked_ids` or `subset_ids`.
        names: what messages call it.
    """

    def __init__(self, argument: str, names: Names) -> None:
        """Nothing is held yet."""
        self.argument, self._names = argument, names
        self.ids_argument = "image_ids" if argument == "images" else "query_ids"
        self._batches: list[Any] = []
        self._memory: dict[int, list[str]] = {}
        self._ids: list[str] | None = None
        self._count = 0
        self.scored = False
        """Whether scores were ranked here, so that what became of references is known."""
        self.by_position = False
        """Whether the rows of `whole` came without ids, in the benchmark's order."""

    def __len__(self) -> int:
        """Number of rows, repeats among them."""
        return self._count

    def add(self, rows: Any, ids: Sequence[str] | None) -> None:
        """Take a batch.

        Args:
            rows: an array or a tensor, or of rankings a sequence.
            ids: id of each row; None: the rows go on in the benchmark's order.

        Raises:
            MethodError: rows of another kind or shape; not one id a row; ids in some batches only.
        """
        called, ids_called = self._names.of(self.argument), self._names.of(self.ids_argument)
        if self.argument not in ("queries", "images"):
            if isinstance(rows, Mapping | str):
                raise MethodError(
                    f"{called}: of type {type(rows).__name__}. Fix: give a list of image ids a query, and "
                    f"{ids_called}."
                )
            rows = list(rows)
        else:
            rows = checked(rows, called, (2, 3))
            width = tuple(self._batches[0].shape[1:]) if self._batches else rows.shape[1:]
            if width != tuple(rows.shape[1:]):
                raise MethodError(
                    f"{called}: a batch of shape {tuple(rows.shape)} behind rows of shape {width}. "
                    "Fix: give all batches in one shape; reset() begins anew."
                )
        if self._count and (ids is None) != (self._ids is None):
            raise MethodError(f"{ids_called}: given for some batches only. Fix: give ids with each.")
        named: list[str] | None = None
        if ids is not None:
            named = given_ids(ids, ids_called, "row", "an image" if self.argument == "images" else "a query")
            if len(named) != len(rows):
                raise MethodError(f"{ids_called}: {len(named)} ids for {len(rows)} rows. Fix: name each row.")
            self._ids = self._ids or []
            self._ids += named
        if not isinstance(rows, list) and len(rows):
            memory = rows.ctypes.data if isinstance(rows, np.ndarray) else rows.data_ptr()
            own = named or []
            before = self._memory.setdefault(memory, own)
            # A sampler repeats rows: those of the same ids are the same.
            if before is not own and not (own and before[: len(own)] == own[: len(before)]):
                raise MethodError(
                    f"{called}: lies where an earlier batch lies, which is overwritten. "
                    "Fix: give a copy of a buffer that is used again, rows.copy() or rows.clone(); "
                    "call reset() after each epoch."
                )
        self._batches.append(rows)
        self._count += len(rows)

    def state(self) -> tuple[int, int, int, int | None, bool]:
        """What `go_back` needs to know."""
        ids = None if self._ids is None else len(self._ids)
        return len(self._batches), len(self._memory), self._count, ids, self.scored

    def go_back(self, batches: int, memory: int, count: int, ids: int | None, scored: bool) -> None:
        """Forget what came since then."""
        del self._batches[batches:]
        while len(self._memory) > memory:
            self._memory.popitem()
        self._ids = None if self._ids is None or ids is None else self._ids[:ids]
        self._count, self.scored = count, scored

    def whole(self, known: Sequence[str]) -> tuple[list[str], Any]:
        """The ids and rows of all processes, repeats once; all processes have to call this.

        Args:
            known: ids of the benchmark, in its order.

        Raises:
            MethodError: there are no rows; rows without ids are more than the benchmark has, or come from
                several processes; an id has two different rows.
        """
        called = self._names.of(self.argument)
        named, rows = gathered(self._ids, joined(self._batches), called)
        if rows is None:
            raise MethodError(f"{called}: nothing was given. Fix: call update({self.argument}=...) first.")
        self.by_position = named is None
        if named is None and len(rows) > len(known):
            raise MethodError(
                f"{called}: {len(rows):,} rows without ids, where the benchmark has {len(known):,}. "
                f"Fix: pass {self.ids_argument}=; or call reset() after each epoch."
            )
        ids = list(known[: len(rows)]) if named is None else named
        if len(set(ids)) == len(ids):
            return ids, rows
        first: dict[str, int] = {}
        for place, row_id in enumerate(ids):
            before = first.setdefault(row_id, place)
            if before != place and not _alike(rows[before], rows[place]):
                raise MethodError(
                    f"{called}: {row_id!r} is there twice, with other values. "
                    "Fix: call reset() after each epoch; give each id one row."
                )
        kept = list(first.values())
        return list(first), [rows[place] for place in kept] if isinstance(rows, list) else rows[kept]


@contextlib.contextmanager
def all_or_nothing(several: Iterable[EpochRows]) -> Iterator[None]:
    """Where a batch is refused, nothing of it stays, so that it may be given again."""
    before = [(rows, rows.state()) for rows in several]
    try:
        yield
    except Exception:
        for rows, state in before:
            rows.go_back(*state)
        raise


def checked(rows: Any, called: str, shapes: tuple[int, ...]) -> Any:
    """An array or a tensor without its gradients.

    Raises:
        MethodError: it is something else, or has another number of axes.
    """
    wanted = "(rows, dimensions) or (rows, vectors, dimensions)" if 3 in shapes else "(queries, images)"
    check_array(rows, called, wanted)
    if len(rows.shape) not in shapes or 0 in rows.shape[1:]:
        raise MethodError(f"{called}: shape {tuple(rows.shape)}. Fix: give shape {wanted}.")
    return rows if isinstance(rows, np.ndarray) else rows.detach()


def _alike(first: Any, other: Any) -> bool:
    """Whether two rows are one but for rounding."""
    if isinstance(first, list):
        return bool(first == other)
    one, two = (numbers(each, "rows", "rows").astype(np.float64) for each in (first, other))
    return bool(np.linalg.norm(one - two) <= _ALIKE * np.linalg.norm(one))
