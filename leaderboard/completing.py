"""A method that a file does not name, taken from the form that came with the file."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import orjson

from submissions.containers import JSON, unpack
from submissions.findings import Findings
from submissions.formats import LINES, PARQUET
from submissions.reading import MAX_BYTES


def with_method(content: bytes, form: Mapping[str, Any], *, max_bytes: int = MAX_BYTES) -> bytes | None:
    """The file with what its method block lacks taken from the form.

    Args:
        content: JSON, JSON Lines or Parquet, compressed with gzip or not.
        form: fields of the method block.
        max_bytes: bytes that the content may have at most once decompressed.

    Returns:
        The completed file; None where the form names no method, the file names one, or cannot be read.

    Example:
        >>> with_method(b'{"method": {"zero_shot": true}}', {"name": "Ours"})
        b'{"method":{"name":"Ours","zero_shot":true}}'
    """
    unpacked = unpack(content, Findings("rank file"), max_bytes=max_bytes)
    if "name" not in form or unpacked is None:
        return None
    if unpacked.kind == JSON:
        return _completed(unpacked.content, form)
    if unpacked.kind == LINES:
        first, newline, rest = unpacked.content.partition(b"\n")
        header = _completed(first, form)
        return None if header is None else header + newline + rest
    return _parquet(unpacked.content, form) if unpacked.kind == PARQUET else None


def merged(block: Mapping[str, Any], form: Mapping[str, Any]) -> dict[str, Any]:
    """The block, completed by the form where it says nothing.

    Example:
        >>> merged({"name": "", "code": "https://x.org"}, {"name": "Ours", "code": "https://y.org"})
        {'name': 'Ours', 'code': 'https://x.org'}
    """
    return {**form, **{key: value for key, value in block.items() if value not in ("", [], None)}}


def _completed(header: bytes, form: Mapping[str, Any]) -> bytes | None:
    try:
        document = orjson.loads(header)
    except orjson.JSONDecodeError:
        return None
    block = document.get("method", {}) if isinstance(document, dict) else None
    if not isinstance(block, dict) or block.get("name"):
        return None
    return orjson.dumps({**document, "method": merged(block, form)})


def _parquet(content: bytes, form: Mapping[str, Any]) -> bytes | None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from submissions.formats.parquet import KEY

    try:
        table = pq.read_table(io.BytesIO(content))
    except (pa.ArrowException, OSError):
        return None
    header = _completed((table.schema.metadata or {}).get(KEY, b""), form)
    if header is None:
        return None
    made = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({KEY: header}), made)
    return made.getvalue()
