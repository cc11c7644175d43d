"""Numbers of Arrow arrays as numpy arrays and back, without pandas.

Arrow's own `array`, `to_numpy`, `fill_null` and comparisons with a Python number import pandas first where it
is installed, which takes longer than scoring most files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa


def numbers(array: pa.Array, null: int | None = None) -> NDArray[Any]:
    """An Arrow array of whole numbers as a numpy array.

    Args:
        array: whole numbers of a fixed width.
        null: what stands for a null; None where there are none.

    Example:
        >>> import pyarrow as pa
        >>> numbers(pa.array([3, None], pa.int32()), null=-1).tolist()
        [3, -1]
    """
    import pyarrow as pa

    values = np.frombuffer(array.buffers()[1], dtype=array.type.to_pandas_dtype())
    values = values[array.offset : array.offset + len(array)]
    if null is None or not array.null_count:
        return values
    return np.where(numbers(array.is_valid().cast(pa.uint8())) > 0, values, values.dtype.type(null))


def int32_array(values: NDArray[Any]) -> pa.Array:
    """Whole numbers as an Arrow array of int32.

    Args:
        values: whole numbers between -2^31 and 2^31 - 1, shape (n,).

    Example:
        >>> int32_array(np.array([3, -1])).to_pylist()
        [3, -1]
    """
    import pyarrow as pa

    packed = np.ascontiguousarray(values, dtype=np.int32)
    return pa.Array.from_buffers(pa.int32(), len(packed), [None, pa.py_buffer(packed)])


def list_lengths(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """How many entries each list of a column holds; none where the list is null.

    Example:
        >>> import pyarrow as pa
        >>> list_lengths(pa.chunked_array([[["a", "b"], None], [[]]])).tolist()
        [2, 0, 0]
    """
    import pyarrow.compute as pc

    lengths = [numbers(pc.list_value_length(chunk), null=0) for chunk in column.chunks]
    return np.concatenate([np.zeros(0, dtype=np.int64), *lengths])
