"""Transcripts and rank files told apart by their bytes, so that the reader of one can name the other."""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import Sequence
from pathlib import Path

from cir_datasets.common.paths import regular
from cir_metrics.errors import CallError
from submissions.formats.containers import GZIP, JSON, kind_of
from submissions.formats.json_reader import Source
from submissions.rank_file.model import BUNDLE, PARQUET, RANK_FILE, TRANSCRIPT

_HEAD = 2**16
_FOOTER = 2**20
_FORMAT = re.compile(rb'"format"\s*:\s*"([^"]{1,80})"')
_ROUND = re.compile(rb'\[?\s*\{\s*"(?:session|round)"\s*:')
_ROUND_KEYS = (b'"session"', b'"round"')
_ROUND_COLUMNS = (b"session", b"round", b"reference", b"caption", b"target", b"rank", b"top", b"end")
_QUERY_COLUMN = b"query_id"


def is_transcript(file: Source) -> bool:
    """Whether a file is meant as a transcript of dialogues; its content may still be wrong.

    Args:
        file: a path, or the file's bytes; only its beginning and its end are looked at.
    """
    try:
        head, footer = _ends(file)
    except OSError:
        return False
    if head.startswith(GZIP):
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, _HEAD)
        except zlib.error:
            return False
    return means_transcript(head, footer)


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
    head, footer = head[:_HEAD].removeprefix(codecs.BOM_UTF8).lstrip(), footer[-_FOOTER:]
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
    said = _FORMAT.search(content[:_HEAD])
    return kind != JSON or (said is not None and said[1] in (RANK_FILE.encode(), BUNDLE.encode()))


def _ends(file: Source) -> tuple[bytes, bytes]:
    if isinstance(file, bytes):
        return file[:_HEAD], file[-_FOOTER:]
    path = regular(Path(file))
    with path.open("rb") as handle:
        head = handle.read(_HEAD)
        if kind_of(head) != PARQUET:
            return head, b""
        handle.seek(max(0, path.stat().st_size - _FOOTER))
        return head, handle.read()
