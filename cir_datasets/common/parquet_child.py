"""Decodes Parquet within limits, in a file of its own: it is run as a script, and imports pyarrow alone.

    python parquet_child.py '{"columns": [...], "memory": ..., ...}' < FILE > TABLE

What is written is an Arrow stream. Where the file is refused, the process ends with 3 and says as JSON why.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, NoReturn

# The folder of a script comes first, and its modules would stand before the libraries' of the same names.
sys.path[:] = [each for each in sys.path if each != str(Path(__file__).parent)]

import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

_FAILED = 3
_UNBOUNDED = ("DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT")
"""Encodings in which a few bytes may repeat a text of a megabyte, or that hold no texts."""


def main() -> None:
    """See the module."""
    request = json.loads(sys.argv[1])
    content = sys.stdin.buffer.read()
    _limit(request["memory"], request["seconds"])
    try:
        table = _table(content, request)
        with pa.ipc.new_stream(sys.stdout.buffer, table.schema) as writer:
            writer.write_table(table)
    except MemoryError:
        _refuse("memory", "decoding its pages takes more memory than a file of its size may")
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError, IndexError) as error:
        _refuse("damaged", str(error) or type(error).__name__)


def _limit(memory: int, seconds: int) -> None:
    """Bound what is taken from now on, where the system can."""
    try:
        import resource
    except ImportError:
        return
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        used = int(status.partition("VmData:")[2].split()[0]) * 1024
    except OSError:
        used = 0
    for kind, most in ((resource.RLIMIT_DATA, used + memory), (resource.RLIMIT_CPU, seconds)):
        hard = resource.getrlimit(kind)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _refuse(kind: str, said: str) -> NoReturn:
    sys.stderr.write(json.dumps({"kind": kind, "said": said}))
    sys.stderr.flush()
    os._exit(_FAILED)


def _table(content: bytes, request: dict[str, Any]) -> pa.Table:
    limits = {
        "thrift_string_size_limit": request["footer"],
        "thrift_container_size_limit": request["items"],
    }
    bare = pq.ParquetFile(pa.BufferReader(content), **limits)
    columns, metadata = request["columns"], bare.metadata
    paths = _check(metadata, len(content), request)
    # Text that is not read as a dictionary unfolds to a copy a place, so that it is where Arrow can.
    encoded = pq.ParquetFile(pa.BufferReader(content), read_dictionary=paths, **limits)
    tables = []
    for group in range(metadata.num_row_groups):
        try:
            read = encoded.read_row_group(group, columns=columns, use_threads=False)
        except (pa.ArrowNotImplementedError, OSError):
            read = bare.read_row_group(group, columns=columns, use_threads=False)
        tables.append(_normal(read))
    if not tables:
        tables = [_normal(encoded.schema_arrow.empty_table().select(columns))]
    table = pa.concat_tables(tables)
    if len(table) != metadata.num_rows:
        _refuse("damaged", f"it has {len(table):,} rows, of which its footer says {metadata.num_rows:,}")
    table.validate(full=True)
    return table.unify_dictionaries()


def _check(metadata: pq.FileMetaData, size: int, request: dict[str, Any]) -> list[str]:
    """The paths of the columns that are read, if these unfold to no more than they may."""
    schema = [metadata.schema.column(place).path for place in range(metadata.num_columns)]
    read = [place for place, path in enumerate(schema) if path.partition(".")[0] in request["columns"]]
    groups = (metadata.row_group(group) for group in range(metadata.num_row_groups))
    values = pages = packed = 0
    for chunk in (group.column(place) for group in groups for place in read):
        values, pages = values + chunk.num_values, pages + chunk.total_uncompressed_size
        packed += chunk.total_compressed_size
        unbounded = next((each for each in chunk.encodings if each in _UNBOUNDED), None)
        if unbounded is not None:
            _refuse("encoding", f"a page of the Parquet file is in {unbounded}, which is not read")
    if packed > size:
        _refuse("damaged", "its columns share pages, or have more bytes than the file")
    if values > request["values"] or pages > request["pages"]:
        most = f"of a file of {request['size']:,} bytes at most {request['values']:,} values and "
        most += f"{request['pages']:,} bytes are read"
        _refuse("large", f"it unfolds to {values:,} values and {pages:,} bytes; {most}")
    if metadata.num_rows > request["rows"]:
        _refuse("rows", f"it has {metadata.num_rows:,} rows; at most {request['rows']:,} are read")
    return [schema[place] for place in read]


def _normal(table: pa.Table) -> pa.Table:
    """The table with lists of int32 ends and texts as dictionaries, whatever the writer chose."""
    return table.cast(
        pa.schema([(name, _type(table.schema.field(name).type)) for name in table.column_names])
    )


def _type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_type(kind.value_type))
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    text = pa.types.is_string(plain) or pa.types.is_large_string(plain)
    return pa.dictionary(pa.int32(), pa.string()) if text else kind


if __name__ == "__main__":
    main()
