"""What the processes of a training hold together: rows with their ids, joined by torch.distributed.

Accelerate, Fabric, Lightning and the Trainer of transformers run on it, so that this serves them all. Every
process makes the same calls in the same order, also one that holds nothing, and finds out the same of all of
them, so that where one cannot go on, all raise: nobody waits for one that has stopped.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from submissions.errors import MethodError
from submissions.running.own_arrays import is_tensor

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")


@dataclass(frozen=True)
class _Held:
    """What one process says of its rows before it sends them.

    Args:
        ids: their ids; None where they came without.
        count: number of rows.
        kind: `list`, `array`, `cpu` or `cuda`; empty without rows.
        shape: of one row.
        type: torch's name of the numbers' type.
    """

    ids: list[str] | None
    count: int = 0
    kind: str = ""
    shape: tuple[int, ...] = ()
    type: str = ""


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

    found: list[Any] = [None] * count
    torch.distributed.all_gather_object(found, value)
    return found


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
    each = of_each(_said(ids, rows))
    there = [held for held in each if held.count]
    if not there:
        return None, None
    if len(there) > 1 and any(held.ids is None for held in there):
        raise MethodError(
            f"{called} came without ids from several processes, whose order nobody knows. "
            "Fix: pass the id of each row; the items of query_dataset and image_dataset have them."
        )
    if len({(held.kind == "list", held.shape) for held in there}) > 1:
        said = ", ".join(f"{held.shape or held.kind}" for held in each)
        raise MethodError(
            f"{called}: rows of different shapes by process: {said}. Fix: give all in one shape."
        )
    named = [id_ for held in there for id_ in held.ids or ()]
    joined = [row for part in of_each(rows) for row in part or ()] if _lists(there) else _joined(rows, each)
    return (None if there[0].ids is None else named), joined


def _said(ids: Sequence[str] | None, rows: Any) -> _Held:
    """What is said of a process's own rows."""
    if rows is None or not len(rows):
        return _Held(None)
    own = None if ids is None else list(ids)
    if isinstance(rows, list):
        return _Held(own, len(rows), "list")
    kind = rows.device.type if is_tensor(rows) else "array"
    name = str(rows.dtype).removeprefix("torch.")
    return _Held(own, len(rows), kind, tuple(rows.shape[1:]), name)


def _lists(there: Sequence[_Held]) -> bool:
    return there[0].kind == "list"


def _joined(rows: Any, each: Sequence[_Held]) -> Any:
    """The rows of all processes as this one holds its own."""
    import torch

    there = [held for held in each if held.count]
    kind = getattr(torch, there[0].type)
    for held in there[1:]:
        kind = torch.promote_types(kind, getattr(torch, held.type))
    device, shape, most = _device(there), there[0].shape, max(held.count for held in there)
    own = torch.as_tensor(rows) if rows is not None and len(rows) else torch.empty((0, *shape))
    sent = torch.zeros((most, *shape), dtype=kind, device=device)
    sent[: len(own)] = own.to(device=device, dtype=kind)
    parts = [torch.empty_like(sent) for _ in each]
    # As bytes: not every backend knows every type of floats.
    torch.distributed.all_gather([_bytes(part) for part in parts], _bytes(sent))
    found = torch.cat([part[: held.count] for part, held in zip(parts, each, strict=True)])
    if (len(own) and not is_tensor(rows)) or (not len(own) and there[0].kind == "array"):
        return np.asarray(found.cpu().numpy())
    return found.to(own.device) if len(own) else found


def _device(there: Sequence[_Held]) -> str:
    """Where rows are sent from: the same kind of device on all processes, which the backend can read."""
    import torch

    backends = str(torch.distributed.get_backend_config())
    if "cuda:nccl" in backends and ("cpu:" not in backends or any(held.kind == "cuda" for held in there)):
        return f"cuda:{torch.cuda.current_device()}"
    return "cpu"


def _bytes(tensor: Tensor) -> Tensor:
    import torch

    return tensor.view(-1).view(torch.uint8)
