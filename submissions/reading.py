"""Reading an untrusted file as JSON, safely: what is odd about it becomes a finding, never a traceback.

What JSON libraries let through is refused here: repeated keys (the last silently wins), NaN and Infinity,
lone surrogates, numbers beyond a double, and nesting that exhausts the stack. Nothing is unpickled or
fetched; `submissions.containers` has taken gzip off and has kept Parquet and TREC runs for their readers.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from submissions.containers import byte_limit, too_large
from submissions.errors import MissingFileError
from submissions.findings import MAX_EXAMPLES, Findings, shown

MAX_BYTES = 128 * 2**20
"""Bytes that are read at most unless the caller says otherwise; a server passes a smaller number.

Of a TREC run twice as many are read (`containers.TREC_TIMES`)."""

Source = str | os.PathLike[str] | bytes

MAX_DEPTH = 16
"""Lists and objects inside each other at most; a bundle needs six."""

_TOO_DEEP = f"its lists or objects are nested more than {MAX_DEPTH} deep; a rank file needs six levels."

_KINDS_OF_BYTES = {
    b"PK\x03\x04": "is a zip archive; take the JSON file out of it",
    b"\xff\xfe": "is UTF-16",
    b"\xfe\xff": "is UTF-16",
}


def read_bytes(source: Source, findings: Findings, *, max_bytes: int = MAX_BYTES) -> bytes | None:
    """The content of a file, or None with a finding where it is too large or the system refuses it.

    Args:
        source: a path, or the content itself.
        findings: collects `too-large` and `unreadable`.
        max_bytes: bytes that are read at most; of a TREC run twice as many (`containers.TREC_TIMES`).

    Raises:
        MissingFileError: no file has that name.
    """
    if isinstance(source, bytes):
        content, limit = source, byte_limit(source, max_bytes)
    else:
        path = Path(source)
        if not path.exists():
            example = findings.benchmark or "cirr/val"
            raise MissingFileError(
                f"{path}: no such file. `cir datasets show {example} --format` prints an example of what "
                "it should hold."
            )
        if path.is_dir():
            findings.add("unreadable", "this is a folder, not a file.", fix="name the rank file inside it")
            return None
        try:
            with path.open("rb") as handle:
                limit = byte_limit(handle.peek(), max_bytes)
                content = handle.read(limit + 1)
        except OSError as error:
            findings.add(
                "unreadable", f"the system refuses to read it: {error.strerror}.", fix="check its permissions"
            )
            return None
    if len(content) > limit:
        size = len(content) if isinstance(source, bytes) else Path(source).stat().st_size
        # A device or a pipe has no size of its own.
        has = f"{size:,}" if size > limit else f"more than {limit:,}"
        too_large(content, f"the file has {has} bytes; at most {limit:,} are read.", findings)
        return None
    return content


def parse_json(content: bytes, findings: Findings) -> Any:
    """The JSON value of a file's bytes, or None with a finding (`unreadable`, `malformed`, `repeated-key`).

    After `repeated-key` the value is still returned, so that the other findings can be shown as well.

    Args:
        content: the file's bytes.
        findings: collects what is wrong.

    Returns:
        The value. A file that holds just `null` is reported as `wrong-format`, since None means failure.
    """
    if not _is_utf8(content, findings):
        return None
    try:
        value = _value(content)
    except orjson.JSONDecodeError as error:
        _explain(content, error, findings)
        return None
    if value is None:
        findings.add("wrong-format", "the file holds null; a rank file is an object.")
        return None
    try:
        colons = _colons(value, 1)
    except RecursionError:
        findings.add("malformed", _TOO_DEEP)
        return None
    # Every key of the text brings one colon, and so does every colon inside a string. Where the value has as
    # many as the text, no key was lost to a later one. (An escape could hide a colon, so there must be none.)
    if b"\\" not in content and content.count(b":") == colons:
        return value
    del value
    repeats: list[tuple[str, dict[str, Any]]] = []

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        built = dict(pairs)
        if len(built) != len(pairs):
            repeats.append((_first_repeat(pairs), built))
        return built

    document = json.loads(content, object_pairs_hook=build)
    for key, inside in repeats[:MAX_EXAMPLES]:
        findings.add(
            "repeated-key", f"the key {shown(key)} is there twice in {_place(document, inside)}.", value=key
        )
    if len(repeats) > MAX_EXAMPLES:
        findings.add("repeated-key", "", count=len(repeats) - MAX_EXAMPLES)
    return document


def _value(content: bytes) -> Any:
    """The JSON value of a text.

    Raises:
        orjson.JSONDecodeError: it is no JSON.
    """
    import msgspec

    # msgspec builds the value while it reads, where orjson keeps two more copies of the text; orjson says
    # best what is wrong, and refuses the lone surrogates that an escape can hide.
    if b"\\" not in content:
        with contextlib.suppress(msgspec.DecodeError, RecursionError):
            return msgspec.json.decode(content)
    return orjson.loads(content)


def _colons(value: Any, depth: int) -> int:
    """Keys and colons inside strings of a JSON value.

    Raises:
        RecursionError: it is nested more than `MAX_DEPTH` deep.
    """
    kind = type(value)
    if kind is str:
        return int(value.count(":"))
    if kind is not list and kind is not dict:
        return 0
    if depth > MAX_DEPTH:
        raise RecursionError
    if kind is dict:
        inner = sum(_colons(each, depth + 1) for each in value.values())
        return len(value) + "".join(value).count(":") + inner
    try:
        return "".join(value).count(":")
    except TypeError:
        return sum(_colons(each, depth + 1) for each in value)


@contextlib.contextmanager
def collector_paused() -> Iterator[None]:
    """Let Python's cycle collector rest while a file is read.

    A million fresh strings and lists make it start again and again, and none of them is ever in a cycle: it
    would take longer than the reading.
    """
    was_running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_running:
            gc.enable()


def _is_utf8(content: bytes, findings: Findings) -> bool:
    if not content.strip():
        findings.add(
            "malformed", "the file is empty.", fix="write the rank file again; submissions.write does"
        )
        return False
    if content.startswith(b"\xef\xbb\xbf"):
        findings.add(
            "malformed",
            "it starts with a byte order mark, which JSON forbids.",
            fix="save it as UTF-8 without BOM",
        )
        return False
    try:
        if not content.isascii():
            content.decode("utf-8")
    except UnicodeDecodeError as error:
        kind = next((text for magic, text in _KINDS_OF_BYTES.items() if content.startswith(magic)), None)
        findings.add(
            "unreadable", f"this {kind}." if kind else f"byte {error.start + 1:,} is not UTF-8 text."
        )
        return False
    return True


def _explain(content: bytes, error: orjson.JSONDecodeError, findings: Findings) -> None:
    reason = error.msg.rstrip(".")
    where = f"line {error.lineno:,}, column {error.colno:,}"
    if "depth limit" in reason:
        message = _TOO_DEEP
    elif any(content.startswith(word, error.pos) for word in (b"NaN", b"Infinity", b"-Infinity")):
        message = f"{where}: NaN and Infinity are no JSON."
    else:
        message = f"{where}: {reason}."
    findings.add("malformed", message)


def _first_repeat(pairs: list[tuple[str, Any]]) -> str:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            return key
        seen.add(key)
    return ""


def _place(document: Any, inside: dict[str, Any]) -> str:
    if document is inside:
        return "the top level"
    if isinstance(document, dict):
        for key, value in document.items():
            if value is inside:
                return shown(key)
            if key == "runs" and isinstance(value, list):
                for number, run in enumerate(value, start=1):
                    place = _place(run, inside)
                    if place != "an inner object":
                        return f"run {number}, {place}"
    return "an inner object"
