"""Arrays that a user already has: numpy, memory maps and tensors of torch, read block by block."""

from __future__ import annotations

import mmap
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from submissions.errors import MethodError


def give_back(given: Any) -> None:
    """Let go of the pages of a memory map that were read, which would stay in memory until its end.

    They are read again from the file if somebody asks. What was changed in a map of mode "c" is in no file,
    so that such a map stays as it is.
    """
    mapped = getattr(given, "_mmap", None)
    advice = getattr(mmap, "MADV_DONTNEED", None)  # Linux has it, macOS has it, Windows has not.
    if (
        isinstance(given, np.memmap)
        and given.mode != "c"
        and isinstance(mapped, mmap.mmap)
        and advice is not None
    ):
        mapped.madvise(advice)


def numbers(given: Any, called: str, what: str, whole: str = "") -> NDArray[np.floating[Any]]:
    """A block as float32 or float64, without a change of value.

    Args:
        given: an array or a tensor.
        called: what messages call it.
        what: what its numbers are.
        whole: what is said of whole numbers.

    Raises:
        MethodError: its numbers are not float16 to float64.
    """
    convert = ".float()" if is_tensor(given) else ".astype('float32')"
    if is_tensor(given):
        given = given.detach().cpu()
        # numpy has no bfloat16.
        given = (given.float() if str(given.dtype) == "torch.bfloat16" else given).numpy()
    if given.dtype.kind != "f" or given.dtype.itemsize > 8:
        raise MethodError(
            f"{called}: type {given.dtype}; {what} are float16 to float64."
            f"{whole if given.dtype.kind in 'iu' else ''} Fix: convert it, {convert}."
        )
    kind = np.float64 if given.dtype.itemsize == 8 else np.float32
    return np.asarray(given, dtype=kind)


def check_array(array: Any, called: str, shape: str) -> None:
    """Refuse anything but an array or tensor that holds a number everywhere.

    Args:
        array: what a user passes.
        called: what messages call it.
        shape: its shape in words, such as `(queries, images)`.

    Raises:
        MethodError: it is something else, masked, sparse or without values.
    """
    if not (isinstance(array, np.ndarray) or is_tensor(array)):
        raise MethodError(
            f"{called}: of type {type(array).__name__}. Fix: give an array or a tensor of shape {shape}."
        )
    if np.ma.isMaskedArray(array):
        raise MethodError(f"{called}: a masked array. Fix: say what stands where it is masked, .filled(...).")
    if is_tensor(array) and (str(array.layout) != "torch.strided" or array.is_meta):
        raise MethodError(
            f"{called}: a sparse tensor, or one without values. Fix: give a dense one, .to_dense()."
        )


def is_tensor(value: Any) -> bool:
    """Whether it is a tensor of torch, which is not imported for that."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)
