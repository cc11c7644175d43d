"""A prepared benchmark's columns, read when they are asked for, and columns between Arrow and numpy.

Scoring needs two or three of ten columns and no image id as a Python string; what is not read takes neither
time nor memory. Arrow's own `array`, `to_numpy`, `fill_null` and comparisons with a Python number import
pandas first where it is installed, which takes longer than scoring most files; what is here does without.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from cir_datasets.errors import DatasetError

if TYPE_CHECKING:
    import pyarrow as pa


class StoredRows:
    """The rows of a Parquet file, a column at a time; has what Benchmark uses of an Arrow table.

    The file is opened once, so that it stays readable where it is replaced meanwhile.

    Args:
        path: the Parquet file.

    Raises:
        DatasetError: the file is damaged.
    """

    def __init__(self, path: Path) -> None:
        """See the class."""
        import pyarrow.parquet as pq

        self._path = path
        self._file: Any = self._reading(lambda: pq.ParquetFile(path))

    def __reduce__(self) -> tuple[type[StoredRows], tuple[Path]]:
        """The path: a copy, or another process, opens the file for itself."""
        return StoredRows, (self._path,)

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return int(self._file.metadata.num_rows)

    @property
    def column_names(self) -> list[str]:
        """Names of the columns."""
        names: list[str] = self._file.schema_arrow.names
        return names

    def column(self, name: str) -> pa.ChunkedArray:
        """One column.

        Raises:
            DatasetError: the file is damaged.
            KeyError: there is no such column.
        """
        if name not in self.column_names:
            raise KeyError(name)
        return self._reading(lambda: self._file.read(columns=[name])).column(name)

    def ids(self, name: str) -> pa.ChunkedArray:
        """One column of ids or lists of ids, each id once with the places where it stands.

        Returns:
            Texts as Arrow dictionaries; plain texts where the file mixes both, which Arrow cannot read so.

        Raises:
            DatasetError: the file is damaged.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        leaf = next(
            column.path
            for column in map(self._file.metadata.schema.column, range(self._file.metadata.num_columns))
            if column.path.split(".")[0] == name
        )
        encoded = self._reading(lambda: pq.ParquetFile(self._path, read_dictionary=[leaf]))
        chunks: list[pa.Array] = []
        try:
            # A row group at a time: Arrow cannot yet read lists of dictionaries over several.
            for group in range(encoded.num_row_groups):
                part = self._reading(
                    lambda group=group: encoded.read_row_group(group, columns=[name], use_threads=False)
                )
                chunks += part.column(name).chunks
        except pa.ArrowNotImplementedError:
            return self.column(name)
        return pa.chunked_array(chunks) if chunks else self.column(name)

    def places(self, name: str) -> pa.ChunkedArray | None:
        """One column of ids, or of lists of ids, as places in the manifest.

        Returns:
            Whole numbers or lists of them; None where an id of the column is not in the manifest.

        Raises:
            DatasetError: the file is damaged.
        """
        import pyarrow.parquet as pq

        path = self._path.with_name("places.parquet")
        if not path.exists():
            return None
        file = self._reading(lambda: pq.ParquetFile(path), path)
        if name not in file.schema_arrow.names or file.metadata.num_rows != self.num_rows:
            return None
        return self._reading(lambda: file.read(columns=[name], use_threads=False), path).column(name)

    def to_pylist(self) -> list[dict[str, Any]]:
        """All rows as dictionaries.

        Raises:
            DatasetError: the file is damaged.
        """
        rows: list[dict[str, Any]] = self._reading(self._file.read).to_pylist()
        return rows

    def head(self, number: int) -> list[dict[str, Any]]:
        """The first rows as dictionaries.

        Args:
            number: how many, where there are as many.

        Raises:
            DatasetError: the file is damaged.
        """

        def read() -> Any:
            return next(self._file.iter_batches(batch_size=max(1, number)), None)

        batch = self._reading(read)
        rows: list[dict[str, Any]] = [] if batch is None or number < 1 else batch.to_pylist()
        return rows

    def _reading(self, read: Any, path: Path | None = None) -> Any:
        return _reading(read, path or self._path)


def read_table(path: Path, columns: list[str] | None = None) -> pa.Table:
    """A Parquet file of a prepared folder, or some columns of it.

    Raises:
        DatasetError: the file is damaged.
    """
    import pyarrow.parquet as pq

    # `pq.read_table` would import pandas.
    return _reading(lambda: pq.ParquetFile(path).read(columns=columns), path)


def _reading(read: Any, file: Path) -> Any:
    import pyarrow as pa

    try:
        return read()
    except (pa.ArrowInvalid, OSError) as error:
        raise DatasetError(
            f"{file}: cannot be read ({error}). Fix: remove {file.parent}, which is made anew when it is "
            "needed."
        ) from error


class Ids(Sequence[str]):
    """Image ids as an Arrow array, and as a list of strings where somebody looks at one.

    Args:
        array: strings without null.

    Example:
        >>> import pyarrow as pa
        >>> ids = Ids(pa.array(["a", "b"]))
        >>> ids[0], ids == ["a", "b"], len(ids)
        ('a', True, 2)
    """

    def __init__(self, array: pa.Array) -> None:
        """See the class."""
        self.array = array

    @functools.cached_property
    def _list(self) -> list[str]:
        listed: list[str] = self.array.to_pylist()
        return listed

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        """An id, or a list of them."""
        return self._list[index]

    def __iter__(self) -> Iterator[str]:
        """The ids in the manifest's order."""
        return iter(self._list)

    def __len__(self) -> int:
        """Number of ids."""
        return len(self.array)

    def __eq__(self, other: object) -> bool:
        """Whether another sequence holds the same ids in the same order."""
        return isinstance(other, Sequence) and self._list == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Like a list."""
        return repr(self._list) if len(self) <= 6 else f"<{len(self):,} image ids>"


def id_array(ids: Sequence[str]) -> pa.Array:
    """Ids as an Arrow array of texts; pandas is not imported, as `pa.array` of a list would.

    Args:
        ids: texts, as many as there are.

    Raises:
        ValueError: one is not text that UTF-8 can hold.
        TypeError: one is not text.

    Example:
        >>> id_array(["a", "b"]).to_pylist()
        ['a', 'b']
    """
    import pyarrow as pa

    if isinstance(ids, Ids):
        return ids.array
    text = "".join(ids)
    if text.isascii():
        packed = text.encode()
        lengths = np.fromiter(map(len, ids), np.int64, len(ids))
    else:
        encoded = [one.encode() for one in ids]
        packed = b"".join(encoded)
        lengths = np.fromiter(map(len, encoded), np.int64, len(ids))
    if len(packed) >= 2**31:
        return pa.array(list(ids), pa.string())
    # One text and where each id ends is what Arrow holds; left to itself it would look at every object.
    ends = np.zeros(len(ids) + 1, dtype=np.int32)
    np.cumsum(lengths, out=ends[1:])
    return pa.StringArray.from_buffers(len(ids), pa.py_buffer(ends), pa.py_buffer(packed))


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


def flattened(column: pa.ChunkedArray) -> tuple[NDArray[Any], list[pa.Array]]:
    """How many entries each row of a column has, one or none where it is of no lists; and all of them.

    Example:
        >>> import pyarrow as pa
        >>> counts, parts = flattened(pa.chunked_array([[["a", "b"], None]]))
        >>> counts.tolist(), [part.to_pylist() for part in parts]
        ([2, 0], [['a', 'b']])
    """
    import pyarrow as pa

    if pa.types.is_list(column.type):
        return list_lengths(column), [chunk.flatten() for chunk in column.chunks]
    counts = [numbers(chunk.is_valid().cast(pa.int32())) for chunk in column.chunks]
    return np.concatenate(counts), [chunk.drop_null() for chunk in column.chunks]


def distinct(parts: Sequence[pa.Array]) -> tuple[NDArray[Any], pa.Array]:
    """Ids as places in the distinct ones, and those.

    Args:
        parts: ids, as texts or as dictionaries of texts.

    Example:
        >>> import pyarrow as pa
        >>> places, ids = distinct([pa.array(["b", "a"]), pa.array(["b"])])
        >>> places.tolist(), ids.to_pylist()
        ([0, 1, 0], ['b', 'a'])
    """
    import pyarrow as pa

    if not any(map(len, parts)):
        return np.zeros(0, dtype=np.int32), pa.array([], pa.string())
    ids = pa.chunked_array(list(parts))
    encoded = ids if pa.types.is_dictionary(ids.type) else ids.dictionary_encode()
    encoded = encoded.unify_dictionaries()
    return np.concatenate([numbers(chunk.indices) for chunk in encoded.chunks]), encoded.chunk(0).dictionary
