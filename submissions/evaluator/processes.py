"""What the processes of a training hold together: rows with their ids, joined by torch.distributed.

Accelerate, Fabric, Lightning and the Trainer of transformers run on it, so that this serves them all. Every
process makes the same calls in the same order, also one that holds nothing, and finds out the same of all of
them, so that where one cannot go on, all raise: nobody waits for one that has stopped.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from submissions.errors import MethodError
from submissions.running.user_arrays import is_tensor

T = TypeVar("T")


@dataclass(frozen=True)
class _Share:
    """The rows of one process, as it sends them.

    Args:
        ids: their ids; None where they came without.
        rows: in the processor's memory.
        device: kind of the device on which they are wanted; empty where they are no tensor.
    """

    ids: list[str] | None
    rows: Any
    device: str

    @property
    def shape(self) -> str:
        """Of one row, in words."""
        return "list" if isinstance(self.rows, list) else str(tuple(self.rows.shape[1:]))


def count_processes() -> int:
    """How many processes torch.distributed joins; 1 where it is not in use.

    Example:
        >>> count_processes()
        1
    """
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return 1
    return int(distributed.get_world_size())


def of_each(value: T) -> list[T]:
    """The value of each process, the lowest first; all have to call this.

    Args:
        value: this process's own; it is pickled.

    Example:
        >>> of_each("mine")
        ['mine']
    """
    count = count_processes()
    if count == 1:
        return [value]
    import torch.distributed

    values: list[Any] = [None] * count
    torch.distributed.all_gather_object(values, value)
    return values


def gathered(ids: Sequence[str] | None, rows: Any, called: str = "rows") -> tuple[list[str] | None, Any]:
    """The ids and rows of all processes, those of the lowest first; all have to call this.

    A sampler repeats rows to make shares equal; a repeat is kept, for the caller to take the first of each
    id: the lowest process's, since a row that is computed again in another batch may differ in its last bits.

    Args:
        ids: id of each row of this process; None where rows came without.
        rows: an array or a tensor on any device, of any type of floats, or a list; None or nothing where this
            process holds none.
        called: what messages call them.

    Returns:
        Ids and rows, in the form and on the device of this process's own; ids None where there are none.

    Raises:
        MethodError: rows of several processes came without ids, or have different shapes. On all processes.

    Example:
        >>> gathered(["a"], [["b", "c"]])
        (['a'], [['b', 'c']])
    """
    if count_processes() == 1:
        return None if ids is None else list(ids), rows
    device = rows.device if is_tensor(rows) else ""
    # A view would be sent with all that it is a view of.
    sent = rows.cpu().clone() if is_tensor(rows) else rows
    kind = rows.device.type if is_tensor(rows) else ""
    shares = of_each(_Share(None if ids is None else list(ids), sent, kind))
    there = [share for share in shares if share.rows is not None and len(share.rows)]
    if not there:
        return None, None
    if len(there) > 1 and any(share.ids is None for share in there):
        raise MethodError(
            f"{called} came without ids from several processes, whose order nobody knows. "
            "Fix: pass the id of each row; the items of query_dataset and image_dataset have them."
        )
    if len({share.shape for share in there}) > 1:
        shapes = ", ".join(share.shape for share in there)
        raise MethodError(
            f"{called}: rows of different shapes by process: {shapes}. Fix: give all in one shape."
        )
    named = [id_ for share in there for id_ in share.ids or ()]
    if rows is None or not len(rows):
        device = there[0].device
    whole = joined([share.rows for share in there])
    if is_tensor(whole):
        whole = whole.to(device) if device else whole.numpy()
    return None if there[0].ids is None else named, whole


def joined(parts: Sequence[Any]) -> Any:
    """Rows one after the other: of lists a list, of arrays an array, else a tensor; None of no parts."""
    if len(parts) < 2:
        return parts[0] if parts else None
    if isinstance(parts[0], list):
        return [row for part in parts for row in part]
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    import torch

    return torch.cat([torch.as_tensor(part) for part in parts])
