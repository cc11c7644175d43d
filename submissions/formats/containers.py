"""What a file is, by its bytes: gzip is taken off; JSON, JSON Lines, Parquet and TREC are told apart, and
transcripts of dialogues from rank files.

A name's ending says nothing here. Decompression stops at the file's budget, so that a small file cannot fill
the memory. A byte order mark before a text is dropped: editors of Windows write one.
"""

from __future__ import annotations

import codecs
import gzip
import io
import os
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from cir_datasets.common.paths import regular
from cir_metrics.errors import CallError
from submissions.formats.budget import TREC_TIMES, Budget
from submissions.rank_file.findings import Findings
from submissions.rank_file.model import BUNDLE, LINES, LINES_FILE, PARQUET, RANK_FILE, TRANSCRIPT, TREC

Source = str | os.PathLike[str] | bytes

JSON = "json"
"""What is not another container: JSON, or what the JSON reader will explain."""

GZIP = b"\x1f\x8b"
"""How packed bytes begin."""
_PARQUET = b"PAR1"
_CHUNK = 2**18
_LOOKED_AT = 2**16
"""Bytes of a first line, or of the first lines, that detection looks at."""
_SUFFIXES = {LINES: ".jsonl", PARQUET: ".parquet", TREC: ".trec"}
_TREC_LINES = 5
_TREC_COLUMNS = 6
_LINES_HEADER = re.compile(
    rb'"format"\s*:\s*"(?:' + f"{LINES_FILE}|{TRANSCRIPT}".encode() + rb')"|^\s*\{\s*"query_id"\s*:'
)
_NUMBER = re.compile(rb"[-+]?(?:nan|inf|[0-9.]+(?:e[-+]?[0-9]+)?)", re.IGNORECASE)
_FOOTER = 2**20
_FORMAT = re.compile(rb'"format"\s*:\s*"([^"]{1,80})"')
_ROUND = re.compile(rb'\[?\s*\{\s*"(?:session|round)"\s*:')
_ROUND_KEYS = (b'"session"', b'"round"')
_ROUND_COLUMNS = (b"session", b"round", b"reference", b"caption", b"target", b"rank", b"top", b"end")
_QUERY_COLUMN = b"query_id"


_OTHER_KINDS = {
    b"\x89PNG\r\n\x1a\n": "a PNG picture",
    b"\xff\xd8\xff": "a JPEG picture",
    b"GIF87a": "a GIF picture",
    b"GIF89a": "a GIF picture",
    b"RIFF": "a WebP picture, or sound",
    b"%PDF-": "a PDF document",
    b"PK\x03\x04": "a zip archive; take the JSON file out of it",
    b"Rar!\x1a\x07": "a RAR archive",
    b"7z\xbc\xaf\x27\x1c": "a 7-Zip archive",
    b"BZh91AY&SY": "packed with bzip2, and gzip alone is read",
    b"\xfd7zXZ\x00": "packed with xz, and gzip alone is read",
    b"\x28\xb5\x2f\xfd": "packed with Zstandard, and gzip alone is read",
    b"\x93NUMPY": "an array of NumPy",
    b"\x89HDF\r\n\x1a\n": "an HDF5 file",
    b"SQLite format 3\x00": "an SQLite database",
    b"\x80\x02": "a pickle of Python",
    b"\x80\x03": "a pickle of Python",
    b"\x80\x04": "a pickle of Python",
    b"\x80\x05": "a pickle of Python",
}
"""How files begin that are often taken for a rank file, and what they are. None of it begins a text in UTF-8
that a reader here takes."""
_MARKUP = (b"<!doctype html", b"<html", b"<?xml", b"<svg")


@dataclass(frozen=True)
class Unpacked:
    """A file's content and how it is to be read.

    Args:
        kind: `json`, or the name of a format: `lines`, `parquet` or `trec`.
        content: the bytes, decompressed and without byte order mark.
        budget: what is left for reading them.
    """

    kind: str
    content: bytes
    budget: Budget = field(compare=False, repr=False)


def unpack(content: bytes, findings: Findings, *, max_bytes: int) -> Unpacked | None:
    """Take gzip off and say what is inside; None with a finding (`unreadable`, `too-large`) on failure.

    Args:
        content: the file's bytes.
        findings: collects what is wrong.
        max_bytes: bytes that the content may have at most once decompressed; of a TREC run
            `budget.TREC_TIMES` as many, and of a small file fewer (`budget.LIMITS`).

    Example:
        >>> unpack(gzip.compress(b'{"format": "cir-rank-file"}'), Findings("run.json"), max_bytes=99)
        Unpacked(kind='json', content=b'{"format": "cir-rank-file"}')
    """
    budget = Budget(len(content), max_bytes)
    if content.startswith(GZIP):
        decompressed = _decompress(content, findings, budget)
        if decompressed is None:
            return None
        if decompressed.startswith(GZIP):
            findings.add(
                "unreadable", "it is compressed with gzip twice.", fix="compress it once, or not at all"
            )
            return None
        content = decompressed
    content = content.removeprefix(codecs.BOM_UTF8)
    return Unpacked(kind_of(content), content, budget)


def kind_of(content: bytes) -> str:
    """`lines`, `parquet` or `trec`, or `json` where the content is none of them.

    Example:
        >>> kind_of(b"12063 Q0 dev-0-0-img0 1 0.97 clip")
        'trec'
    """
    if content.startswith(_PARQUET):
        return PARQUET
    start = content[:_LOOKED_AT].removeprefix(codecs.BOM_UTF8).lstrip()
    first = start.partition(b"\n")[0]
    if start.startswith((b"{", b"[")):
        if start.startswith(b"{") and _LINES_HEADER.search(first):
            return LINES
        # An id may start with a bracket, too; a line with all six columns is not JSON.
        return TREC if _is_whole_trec(first) else JSON
    lines = [line for line in start.split(b"\n") if line.strip()][:_TREC_LINES]
    return TREC if any(map(_is_trec, lines)) or _are_columns(lines) else JSON


def other_kind(head: bytes) -> str | None:
    """What a file is that no reader here takes, as the end of a sentence; None where its bytes do not say it.

    Args:
        head: the file's first bytes; where they are packed with gzip, what is inside is looked at.

    Example:
        >>> other_kind(b"\\x89PNG\\r\\n\\x1a\\n and more"), other_kind(b'{"benchmark": "shapes/val"}')
        ('a PNG picture', None)
    """
    head = _inside(head)
    if head[:_LOOKED_AT].lstrip()[:14].lower().startswith(_MARKUP):
        return "a page of HTML or XML"
    return next((words for begins, words in _OTHER_KINDS.items() if head.startswith(begins)), None)


def suffix_of(head: bytes) -> str:
    """What a file's name should end with: `.json`, `.jsonl`, `.parquet` or `.trec`, with `.gz` where packed.

    Args:
        head: the file's first bytes.

    Example:
        >>> suffix_of(b'{"format": "cir-rank-file"}'), suffix_of(gzip.compress(b"q1 Q0 image1 1 0.97 clip"))
        ('.json', '.trec.gz')
    """
    packed = ".gz" if head.startswith(GZIP) else ""
    return _SUFFIXES.get(kind_of(_inside(head)), ".json") + packed


def _inside(head: bytes) -> bytes:
    """The beginning of what is packed with gzip, nothing where it is damaged; other bytes as they are."""
    if not head.startswith(GZIP):
        return head
    try:
        return zlib.decompressobj(wbits=31).decompress(head, _LOOKED_AT)
    except zlib.error:
        return b""


def is_transcript(file: Source) -> bool:
    """Whether a file is meant as a transcript of dialogues; its content may still be wrong.

    Args:
        file: a path, or the file's bytes; only its beginning and its end are looked at.
    """
    try:
        head, footer = _ends(file)
    except OSError:
        return False
    return means_transcript(_inside(head), footer)


def are_transcripts(files: Sequence[str]) -> bool:
    """Whether these are transcripts, and not rank files.

    Args:
        files: paths; of those that are missing or empty the reader says it.

    Raises:
        CallError: some are, and some are not.
    """
    there = [file for file in files if Path(file).is_file() and Path(file).stat().st_size]
    found = [file for file in there if is_transcript(file)]
    other = next((file for file in there if file not in found), None)
    if found and other is not None:
        raise CallError(
            f"{found[0]} is a transcript of dialogues, and {other} is not. "
            "Fix: give transcripts alone, or rank files alone."
        )
    return bool(found)


def means_transcript(head: bytes, footer: bytes) -> bool:
    """Whether a content is meant as a transcript, whole or without its header, or JSON that is indented.

    Args:
        head: how it begins, not packed.
        footer: how it ends; of Parquet alone it matters, and nothing of it is parsed.

    Example:
        >>> means_transcript(b'{"format": "cir-transcript", "version": 1}', b"")
        True
        >>> means_transcript(b'{"format": "cir-rank-file", "format_version": 1}', b"")
        False
    """
    head, footer = head[:_LOOKED_AT].removeprefix(codecs.BOM_UTF8).lstrip(), footer[-_FOOTER:]
    if kind_of(head) == PARQUET:
        columns = all(name in footer for name in _ROUND_COLUMNS) and _QUERY_COLUMN not in footer
        return columns or TRANSCRIPT.encode() in footer
    if not head.startswith((b"{", b"[")):
        return False
    if TRANSCRIPT.encode() in _FORMAT.findall(head.partition(b"\n")[0]):
        return True
    said = _FORMAT.search(head)
    if said is not None:
        return said[1] == TRANSCRIPT.encode()
    return _ROUND.match(head) is not None and all(key in head for key in _ROUND_KEYS)


def means_rank_file(content: bytes) -> bool:
    """Whether a content says that it is a rank file, in one of the formats that say so.

    Args:
        content: all of it, not packed.

    Example:
        >>> means_rank_file(b'{"format": "cir-rank-file", "format_version": 1}')
        True
        >>> means_rank_file(b'{"format": "cir-transcript", "version": 1}')
        False
    """
    if means_transcript(content, content):
        return False
    kind = kind_of(content)
    if kind == PARQUET:
        return _QUERY_COLUMN in content[-_FOOTER:]
    said = _FORMAT.search(content[:_LOOKED_AT])
    return kind != JSON or (said is not None and said[1] in (RANK_FILE.encode(), BUNDLE.encode()))


def _ends(file: Source) -> tuple[bytes, bytes]:
    if isinstance(file, bytes):
        return file[:_LOOKED_AT], file[-_FOOTER:]
    path = regular(Path(file))
    with path.open("rb") as handle:
        head = handle.read(_LOOKED_AT)
        if kind_of(head) != PARQUET:
            return head, b""
        handle.seek(max(0, path.stat().st_size - _FOOTER))
        return head, handle.read()


def byte_limit(content: bytes, max_bytes: int) -> int:
    """Bytes that a file of this kind may have.

    Args:
        content: its bytes, or the first of them.
        max_bytes: what files of most kinds may have.

    Example:
        >>> byte_limit(b"12063 Q0 dev-0-0-img0 1 0.97 clip", 1_000)
        2000
    """
    return limit_of_kind(kind_of(content), max_bytes)


def limit_of_kind(kind: str, max_bytes: int) -> int:
    """Bytes that a file of a kind, or in a format, may have once decompressed."""
    return TREC_TIMES * max_bytes if kind == TREC else max_bytes


def too_large(content: bytes, message: str, findings: Findings) -> None:
    """Note that a file has more bytes than are read.

    Args:
        content: its bytes, or the first of them.
        message: how many it has.
        findings: collects `too-large`.
    """
    fix = _SMALLER_RUN if kind_of(content) == TREC else None
    findings.add("too-large", message, depth=50, fix=fix)


def label_of(name: str) -> str:
    """A file's name without folder and endings: what a method is called where a format does not say.

    Example:
        >>> label_of("runs/sum-clip.test1.json.gz")
        'sum-clip.test1'
    """
    path = PurePath(name)
    return PurePath(path.stem).stem if path.suffix.lower() == ".gz" else path.stem


def _is_trec(line: bytes) -> bool:
    """Whether a line is one of a TREC run, or was meant to be."""
    words = line.split(maxsplit=2)
    return (len(words) > 1 and words[1].upper() == b"Q0") or _is_whole_trec(line)


def _are_columns(lines: list[bytes]) -> bool:
    """Whether lines are columns of ids and scores, of which a TREC run has six: its reader says so."""
    rows = [line.split() for line in lines]
    many = {len(row) for row in rows}
    if len(many) != 1 or not many <= {3, 4, 5, 7} or all(row[1] == b"0" for row in rows):
        return False  # The second column of qrels is 0.
    return any(all(_NUMBER.fullmatch(word) for word in column) for column in zip(*rows, strict=True))


def _is_whole_trec(line: bytes) -> bool:
    words = line.split(maxsplit=_TREC_COLUMNS)
    return len(words) == _TREC_COLUMNS and words[3].isdigit() and bool(_NUMBER.fullmatch(words[4]))


def _decompress(content: bytes, findings: Findings, budget: Budget) -> bytes | None:
    gathered = io.BytesIO()
    size, limit = 0, budget.unpacked()
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as packed:
            while chunk := packed.read(min(_CHUNK, limit + 1 - size)):
                if not size and kind_of(chunk) == TREC:
                    limit = budget.unpacked(TREC_TIMES)
                size += len(chunk)
                if size > limit:
                    message = f"it holds more than {limit:,} bytes once decompressed; no more are read."
                    too_large(gathered.getbuffer()[:_LOOKED_AT].tobytes(), message, findings)
                    return None
                gathered.write(chunk)
    except EOFError:
        findings.add("unreadable", "the gzip data ends too early; the file was cut.", fix=_AGAIN)
        return None
    except (gzip.BadGzipFile, zlib.error):
        findings.add("unreadable", "the gzip data is damaged.", fix=_AGAIN)
        return None
    return gathered.getvalue()


_SMALLER_RUN = "rank no more images than the board uses, {depth} a query, or write the rank file as Parquet"
_AGAIN = "compress the rank file again, or hand it in as it is"
