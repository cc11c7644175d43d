"""Parquet of strangers, decoded by a process of its own: what it unfolds to cannot be known before.

A page of a few bytes may say that it holds two thousand million values, and a decoder believes it. So the
footer alone is read here; pages are decoded by `parquet_child`, whose memory and time are limited, and which
hands back tables. A sound file is refused by what its footer says; one that lies ends that process.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from cir_metrics.errors import CopiedError

if TYPE_CHECKING:
    import pyarrow as pa

MARK = b"PAR1"
"""What a Parquet file starts and ends with."""
MAX_FOOTER = 2**19
"""Bytes: a footer unfolds to about two hundred times its size."""
FAILED = 3
"""How the child ends where it says itself what is wrong."""

_MAX_ITEMS = 10_000
"""Row groups or columns at most."""
_ARROW_SCHEMA = b"ARROW:schema"
_MEMORY, _SECONDS = 224 * 2**20, 3
_MEMORY_PER_BYTE, _BYTES_A_SECOND = 8, 2**22
"""What decoding may take, and what each byte of the file adds."""
_REASON = 80
"""Characters of a reason at most."""
_KILLED = {-signal.SIGKILL, -getattr(signal, "SIGXCPU", signal.SIGKILL)}
_ABORTED = -signal.SIGABRT


class ParquetError(CopiedError, ValueError):
    """A file that is not read; its text is a sentence without its end.

    Args:
        kind: `cut` (it has no end), `damaged`, `footer` (which is too long), `encoding` (one whose size
            nothing bounds), `large` or `rows` (it says that it unfolds to too much), `memory` (it does).
        said: what is wrong.
    """

    def __init__(self, kind: str, said: str) -> None:
        """See the class."""
        super().__init__(said)
        self.kind = kind


@dataclass(frozen=True)
class ParquetLimits:
    """What the columns of one file may unfold to.

    Args:
        size: bytes of the file as it was handed in.
        values: entries of all columns, nulls and empty lists included.
        pages: bytes of their pages once decompressed.
        rows: rows.
    """

    size: int
    values: int
    pages: int
    rows: int = 2**31


def parquet_schema(content: bytes) -> pa.Schema:
    """The columns of a file, and its metadata, by its footer alone.

    Args:
        content: the file's bytes.

    Raises:
        ParquetError: it is damaged, or its footer too long.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not content.endswith(MARK):
        raise ParquetError("cut", "the Parquet file has no footer; it was cut")
    footer = int.from_bytes(content[-8:-4], "little")
    if footer > MAX_FOOTER:
        raise ParquetError("footer", f"its footer has {footer:,} bytes; at most {MAX_FOOTER:,} are read")
    limits = {"thrift_string_size_limit": MAX_FOOTER, "thrift_container_size_limit": _MAX_ITEMS}
    try:
        file = pq.ParquetFile(pa.BufferReader(_without_arrow_schema(content)), **limits)
        return file.schema_arrow.with_metadata(file.metadata.metadata)
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError, IndexError) as error:
        raise _damaged(str(error) or type(error).__name__) from error


def _without_arrow_schema(content: bytes) -> bytes:
    """The file without the types that its writer had in memory: Parquet's own are to be read.

    Among them may be dictionaries, which Arrow then reads as such and, from some encodings, not at all.
    """
    start = max(0, len(content) - 8 - int.from_bytes(content[-8:-4], "little"))
    tail = content[start:]
    if _ARROW_SCHEMA not in tail:
        return content
    return content[:start] + tail.replace(_ARROW_SCHEMA, _ARROW_SCHEMA.swapcase())


def read_parquet(content: bytes, limits: ParquetLimits, columns: Sequence[str]) -> pa.Table:
    """The table of a file that may be hostile: lists with int32 ends, texts as dictionaries.

    Args:
        content: the file's bytes, whose `parquet_schema` is sound.
        limits: what it may unfold to.
        columns: those that are read.

    Raises:
        ParquetError: it is damaged, too large, or in an encoding that is not read.

    Example:
        >>> import io, pyarrow as pa, pyarrow.parquet as pq
        >>> pq.write_table(pa.table({"query_id": ["a", "b"]}), written := io.BytesIO())
        >>> limits = ParquetLimits(size=500, values=10, pages=500)
        >>> read_parquet(written.getvalue(), limits, ["query_id"]).to_pydict()
        {'query_id': ['a', 'b']}
    """
    import pyarrow as pa

    request: dict[str, Any] = {
        **asdict(limits),
        "columns": list(columns),
        "memory": _MEMORY + _MEMORY_PER_BYTE * limits.size,
        "seconds": _SECONDS + len(content) // _BYTES_A_SECOND,
        "footer": MAX_FOOTER,
        "items": _MAX_ITEMS,
    }
    script = Path(__file__).with_name("parquet_child.py")
    # Arrow's own pool reserves memory that it does not use, and so do the threads of a library for matrices.
    alone = {"ARROW_DEFAULT_MEMORY_POOL": "system", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(script), orjson.dumps(request).decode()],
        input=_without_arrow_schema(content),
        capture_output=True,
        check=False,
        env={**os.environ, **alone},
    )
    if done.returncode == 0:
        return pa.ipc.open_stream(done.stdout).read_all()
    if done.returncode == FAILED:
        answer = orjson.loads(done.stderr)
        if answer["kind"] == "damaged":
            raise _damaged(answer["said"])
        raise ParquetError(answer["kind"], answer["said"])
    if done.returncode in _KILLED:
        raise ParquetError("memory", "decoding its pages takes longer than a file of its size may")
    if done.returncode == _ABORTED or b"MemoryError" in done.stderr:
        raise ParquetError("memory", "decoding its pages takes more memory than a file of its size may")
    raise _damaged("its pages cannot be decoded")


def _damaged(reason: str) -> ParquetError:
    """The error of a file whose bytes, which the reason may quote, are wrong."""
    words = " ".join(reason.split())[:_REASON].rstrip(".")
    printed = "".join(character if character.isprintable() else "?" for character in words)
    return ParquetError("damaged", f"the Parquet file is damaged: {printed}")


def bytes_of_copies(column: pa.ChunkedArray) -> int:
    """Bytes of a column's texts, or of those in its lists, each counted at every place.

    Args:
        column: as `read_parquet` gives it.

    Example:
        >>> import pyarrow as pa
        >>> bytes_of_copies(pa.chunked_array([pa.array(["ab", "ab", "c"]).dictionary_encode()]))
        5
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    size = 0
    for chunk in column.chunks:
        while pa.types.is_list(chunk.type):
            chunk = chunk.flatten()
        if pa.types.is_dictionary(chunk.type):
            size += pc.sum(pc.binary_length(chunk.dictionary).take(chunk.indices)).as_py() or 0
    return size
