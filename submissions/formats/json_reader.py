"""Reading an untrusted file as JSON, safely: what is odd about it becomes a finding, never a traceback.

Rankings of a text that is plainly a rank file become columns a few at a time (`columns.Gathering`). Any other
text is read again, with care: it becomes Python objects, which take twenty times its memory where its values
are small, so that for those a budget is much tighter (`budget.LIMITS`).

What JSON libraries let through is refused here: repeated keys (the last silently wins), NaN and Infinity,
lone surrogates, numbers beyond a double, and nesting that exhausts the stack. Nothing is unpickled or
fetched; `submissions.formats.containers` has taken gzip off and has kept Parquet and TREC runs for their
readers.
"""

from __future__ import annotations

import codecs
import contextlib
import functools
import gc
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from cir_datasets.common.paths import regular
from submissions.errors import MissingFileError
from submissions.formats.budget import MAX_BYTES, MAX_DEPTH, Budget
from submissions.formats.containers import Source, byte_limit, other_kind, too_large
from submissions.rank_file.columns import Columns, Gathering
from submissions.rank_file.findings import MAX_EXAMPLES, Findings, shown

_EMPTY = "write it again: submissions.write does, and cir multiround for transcripts"
_TOO_DEEP = f"its lists or objects are nested more than {MAX_DEPTH} deep; a rank file needs six levels."

_CHUNK = 2**20
_BLOCK, _BLOCK_BYTES = 512, 2**20
"""Rankings, and bytes of them, that are Python lists at a time."""
_RANKING_BYTES = 2**22
"""A longer ranking is not plainly one: 1,000 images have paths of 4,000 bytes then."""
_HEADER_BYTES = 2**16

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


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
        if str(source) == "-":
            raise MissingFileError(
                "-: standard input is not read, since a file is read more than once. "
                "Fix: write it to a file, `cat > run.json`, and name that."
            )
        if not path.exists():
            example = f"`cir datasets show {findings.benchmark or 'cirr/val'} --format` prints an example"
            hint = f"{example} of what it should hold."
            if _is_array(path, b""):
                hint = f"Fix: correct the name, then {_RANK_IT.format(file=path)}"
            raise MissingFileError(f"{path}: no such file. {hint}")
        if path.is_dir():
            findings.add("unreadable", "this is a folder, not a file.", fix="name the rank file inside it")
            return None
        try:
            with regular(path).open("rb") as handle:
                if _is_array(path, handle.peek(8)):
                    said = "it holds an array of numbers; a rank file holds ids."
                    findings.add("unreadable", said, fix=_RANK_IT)
                    return None
                limit = byte_limit(handle.peek(), max_bytes)
                content = handle.read(limit + 1)
        except OSError as error:
            findings.add(
                "unreadable",
                f"the system refuses to read it: {error.strerror}.",
                fix="name a file that you may read, and write what comes through a pipe into one first",
            )
            return None
    if len(content) > limit:
        size = len(content) if isinstance(source, bytes) else Path(source).stat().st_size
        too_large(content, f"the file has {size:,} bytes; at most {limit:,} are read.", findings)
        return None
    return content


_RANK_IT = (
    "rank them, with the ids of rows and columns:  cir rank --benchmark ID --scores {file} --queries FILE "
    "--images FILE --method NAME --out run.json"
)


def _is_array(path: Path, head: bytes) -> bool:
    """Whether a file is an array of NumPy, or by its name one of NumPy, PyTorch and others."""
    others = path.suffix.lower() in (".npy", ".npz", ".pt", ".pth", ".safetensors")
    return head.startswith(b"\x93NUMPY") or (others and not head.lstrip().startswith((b"{", b"[")))


def parse_json(content: bytes, findings: Findings, budget: Budget | None = None) -> Any:
    """The JSON value of a file's bytes, or None with a finding (`unreadable`, `malformed`, `repeated-key`).

    After `repeated-key` the value is still returned, so that the other findings can be shown as well.

    Args:
        content: the file's bytes.
        findings: collects what is wrong.
        budget: what reading them may cost; None where they are few.

    Returns:
        The value. Rankings may be `Columns`, under their key or, in the formats that have no other keys, as
        the value itself. A file that holds just `null` is reported as `wrong-format`, since None means
        failure.

    Raises:
        OverBudgetError: the value takes more than the budget.
    """
    if not _is_utf8(content, findings):
        return None
    if budget is not None:
        lists = content.count(b"[") + content.count(b"{")
        values = lists + content.count(b",")
        budget.spend("lists", lists)
        budget.spend("values", values)
        plain = _plain(content, budget)
        if plain is not None:
            return plain
        budget.spend("odd_bytes", len(content))
        budget.spend("odd_values", values)
    return _careful(content, findings)


def _plain(content: bytes, budget: Budget) -> Any:
    """The value of a text that is plainly a rank file, or rankings by query and nothing else; else None."""
    import msgspec

    if b"\\" in content or not content.isascii() or not content[:_HEADER_BYTES].lstrip().startswith(b"{"):
        return None
    objects, _, _ = _decoders()
    try:
        parts = objects.decode(content)
        budget.check("id_bytes", sum(map(len, parts)))
        if "rankings" not in parts:
            columns, strings = _gathered(parts, budget)
            return columns if is_whole(content, strings) else None
        document: dict[str, Any] = {}
        strings = len(parts)
        for key, raw in parts.items():
            if key in ("rankings", "subset_rankings"):
                document[key], inside = _gathered(objects.decode(raw), budget)
            elif len(memoryview(raw)) <= _HEADER_BYTES:
                document[key] = orjson.loads(memoryview(raw))
                inside = strings_in(document[key])
            else:
                return None
            strings += inside
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None  # Something is odd: what, is said by those who look closer.
    return document if is_whole(content, strings) else None


@functools.cache
def _decoders() -> tuple[Any, Any, Any]:
    """Readers of an object's parts, of rankings, and of rankings by turn."""
    from msgspec import Raw
    from msgspec.json import Decoder

    return Decoder(dict[str, Raw]), Decoder(list[list[str]]), Decoder(list[list[list[str]]])


def _gathered(parts: dict[str, Any], budget: Budget) -> tuple[Columns, int]:
    """Rankings by query or session from the text of each, and the strings in all of it.

    Raises:
        msgspec.MsgspecError: a part is not a list of texts, or of such lists.
        ValueError: an id is empty, or one ranking alone is too long to be plain.
    """
    _, flat, by_turn = _decoders()
    names, raws = list(parts), [memoryview(raw) for raw in parts.values()]
    budget.check("id_bytes", sum(map(len, names)))
    turns = bool(raws) and bytes(raws[0][:_CHUNK]).replace(b" ", b"").startswith(b"[[")
    decoder, gathering = by_turn if turns else flat, Gathering(by_turn=turns)
    start = size = 0
    for end, raw in enumerate([*raws, None]):
        length = 0 if raw is None else len(raw)
        if length > _RANKING_BYTES:
            raise ValueError("a long ranking")
        # So many at a time are Python lists: more of them do not fit into a processor's cache.
        if end > start and (raw is None or end - start == _BLOCK or size + length > _BLOCK_BYTES):
            gathering.take(names[start:end], decoder.decode(b"[" + b",".join(raws[start:end]) + b"]"))
            start, size = end, 0
        size += length
    columns = gathering.columns()
    return columns, len(names) + len(columns.codes)


def is_whole(content: bytes, strings: int) -> bool:
    """Whether a text without escapes has so many strings: then no key of it was lost to a later one."""
    return content.count(b'"') == 2 * strings


def strings_in(value: Any, depth: int = 1) -> int:
    """Strings of a JSON value, keys included.

    Raises:
        RecursionError: it is nested more than `MAX_DEPTH` deep.
    """
    kind = type(value)
    if kind is not list and kind is not dict:
        return int(kind is str)
    if depth > MAX_DEPTH:
        raise RecursionError
    if kind is dict:
        return len(value) + sum(strings_in(each, depth + 1) for each in value.values())
    if set(map(type, value)) == {str}:
        return len(value)
    return sum(strings_in(each, depth + 1) for each in value)


def _careful(content: bytes, findings: Findings) -> Any:
    """The value of any text, whose faults are named."""
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        if error.msg.startswith("Not enough memory"):
            raise MemoryError(error.msg) from error
        _explain(content, error, findings)
        return None
    if value is None:
        findings.add("wrong-format", "the file holds null; a rank file is an object.")
        return None
    try:
        strings = strings_in(value)
    except RecursionError:
        findings.add("malformed", _TOO_DEEP)
        return None
    if b"\\" not in content and is_whole(content, strings):
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
            "malformed",
            "the file is empty.",
            fix=_EMPTY,
        )
        return False
    try:
        if not content.isascii():
            _check_utf8(content)
    except UnicodeDecodeError as error:
        kind = "UTF-16" if content.startswith(_UTF16) else other_kind(content)
        findings.add(
            "unreadable", f"this is {kind}." if kind else f"byte {error.start + 1:,} is not UTF-8 text."
        )
        return False
    return True


def _check_utf8(content: bytes) -> None:
    """Decode a text part by part: one wide character makes the whole take four bytes a character.

    Raises:
        UnicodeDecodeError: it is not UTF-8; `start` counts from its beginning.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(content), _CHUNK):
        kept = len(decoder.getstate()[0])
        part = content[start : start + _CHUNK]
        try:
            decoder.decode(part, final=start + _CHUNK >= len(content))
        except UnicodeDecodeError as error:
            error.start += start - kept
            raise


def _explain(content: bytes, error: orjson.JSONDecodeError, findings: Findings) -> None:
    reason = error.msg.rstrip(".")
    where = f"line {error.lineno:,}, column {error.colno:,}"
    if "depth limit" in reason:
        message = _TOO_DEEP
    elif any(content.startswith(word, error.pos) for word in (b"NaN", b"Infinity", b"-Infinity")):
        message = f"{where}: NaN and Infinity are not JSON."
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
