"""What a file's bytes are, and how much of them is read: the limits of all readers, in one place.

By its bytes, never by its name, gzip is taken off, JSON, JSON Lines, Parquet and runs are told apart, and
transcripts of dialogues from rank files. A byte order mark before a text is dropped: editors of Windows
write one.

A file of a megabyte may unfold to gigabytes: under gzip, as runs in Parquet, or because a value of three
bytes takes a hundred in memory. A `Budget` belongs to one file, grows with the file's own bytes, and is spent
while the file is read, before the memory is taken. What a limit has to let through is in `LIMITS`; no file of
a megabyte may take more than 512 MiB or five seconds.
"""

from __future__ import annotations

import codecs
import gzip
import io
import os
import re
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cir_metrics.errors import CopiedError
from submissions.rank_file.model import (
    BUNDLE,
    JSON_RUN,
    LINES,
    LINES_FILE,
    PARQUET,
    RANK_FILE,
    TRANSCRIPT,
    TREC,
)

if TYPE_CHECKING:
    from submissions.rank_file.findings import Findings

Source = str | os.PathLike[str] | bytes

MAX_BYTES = 128 * 2**20
"""Bytes that are read at most unless the caller says otherwise, as a file is or once decompressed.

Of a run `RUN_TIMES` as many are read."""

RUN_TIMES = 2
"""A run with scores may have so many times the bytes of other files: it is read by lines, or by queries."""
_RUNS = (TREC, JSON_RUN)

MAX_NESTING = 16
"""Lists and objects inside each other at most; a bundle needs six."""

_MI = 2**20

JSON = "json"
"""What is not another container: JSON, or what the JSON reader will explain."""

ENDINGS = {LINES: ".jsonl", PARQUET: ".parquet", TREC: ".trec"}
"""How names of files end that are not `.json`."""
GZIP = b"\x1f\x8b"
"""How packed bytes begin."""
_PARQUET = b"PAR1"
_CHUNK = 2**18
LOOKED_AT = 2**16
"""Bytes of a first line, or of the first lines, that detection looks at."""
_TREC_LINES = 5
_TREC_COLUMNS = 6
_LINES_HEADER = re.compile(
    rb'"format"\s*:\s*"(?:' + f"{LINES_FILE}|{TRANSCRIPT}".encode() + rb')"|^\s*\{\s*"query_id"\s*:'
)
# The first value is an object of scores by image: in a rank file it is another one, by its key.
_SCORES = re.compile(
    rb'\{\s*"(?!(?:method|rankings|subset_rankings|runs)")(?:[^"\\]|\\.)*"\s*:\s*\{', re.DOTALL
)
_NUMBER = re.compile(rb"[-+]?(?:nan|inf|[0-9.]+(?:e[-+]?[0-9]+)?)", re.IGNORECASE)
FOOTER = 2**20
"""Bytes of the end of a Parquet file that are looked at."""
_FORMAT = re.compile(rb'"format"\s*:\s*"([^"]{1,80})"')
_ROUND = re.compile(rb'\[?\s*\{\s*"(?:session|round)"\s*:')
_ROUND_KEYS = (b'"session"', b'"round"')
_ROUND_COLUMNS = (b"session", b"round", b"reference", b"caption", b"target", b"rank", b"top", b"end")
_QUERY_COLUMN = b"query_id"


@dataclass(frozen=True)
class Limit:
    """How much of one thing a file may hold.

    Args:
        noun: the thing, in words.
        least: what a file of any size may hold.
        per_byte: what each of its bytes adds to that: the limit is the larger of the two.
        fix: what to do about a file that holds more.
    """

    noun: str
    least: int
    per_byte: float
    fix: str


_FEWER = "rank no more images than the board uses, {depth} a list, and every query once"
_ONE_LIST = "give one list a query, or a turn of a session, and nothing else"
_PLAIN = (
    "write compact JSON with a library, ids as plain strings without escapes, no key twice; or hand the file "
    "in as it is, without gzip"
)
_GALLERY = "rank the gallery's own ids; `cir datasets show {benchmark}` says what they are"
_DICTIONARIES = "let the writer choose dictionaries for the ids"
_CORRECT = "correct these, then run  cir validate {file}"

LIMITS = {
    # Rankings that repeat each other shrink to a sixtieth: 85 MB of ZeroSight's JSON to 1.4 MB.
    "unpacked": Limit("bytes once decompressed", 96 * _MI, 64, _FEWER),
    # ZeroSight ranks 50 images for 64,100 queries; CIRR's 4,181 queries may rank 1,000 each.
    "values": Limit("values", 9 * _MI // 2, 4, _FEWER),
    # A ranking is a list, a run of a bundle an object.
    "lists": Limit("lists, objects and queries", 200_000, 1 / 16, _ONE_LIST),
    # Of a TREC run one an image; a line of a real one takes more than a byte under gzip.
    "lines": Limit("lines", _MI, 1, "write one line a query, of a TREC run one an image, and no empty ones"),
    "scores": Limit("scores", _MI, 1, _FEWER),
    "line": Limit("bytes in one line", 8 * _MI, 0, "write one line a query"),
    # What is not plainly rankings becomes a Python object a value: a report has to say what is odd about it.
    "odd_bytes": Limit("bytes that have to be looked at one by one", 32 * _MI, 32, _PLAIN),
    # ZeroSight has 54,740 queries, and a line of a file that is not compressed has more than 32 bytes.
    "odd_lines": Limit("lines that have to be looked at one by one", 80_000, 1 / 32, _PLAIN),
    "odd_values": Limit("values that have to be looked at one by one", 3 * _MI // 2, 2, _PLAIN),
    # A gallery of 200,000 images has paths of 40 bytes.
    "ids": Limit("different ids", 500_000, 1, _GALLERY),
    "id": Limit("bytes in one id", _MI, 0, _GALLERY),
    "id_bytes": Limit("bytes of different ids", 32 * _MI, 1, _GALLERY),
    "pages": Limit(
        "bytes of Parquet's pages once decompressed", 32 * _MI, 64, "write the ids with dictionaries"
    ),
    "copies": Limit("bytes of ids, a copy at each place,", 160 * _MI, 64, _DICTIONARIES),
    "broken": Limit("lines or scores that cannot be read", 1_000, 0, _CORRECT),
}
"""By name what a budget limits."""


class OverBudgetError(CopiedError):
    """A file holds more than is read; becomes the finding `too-large`.

    Args:
        message: what, and how much may be there.
        fix: what to do about it.
    """

    def __init__(self, message: str, fix: str) -> None:
        """See the class."""
        super().__init__(message)
        self.fix = fix


class Budget:
    """What is left for the reading of one file.

    Args:
        size: bytes of the file as it was handed in.
        max_bytes: bytes that may be read at most, as it is or once decompressed.

    Example:
        >>> budget = Budget(1000)
        >>> budget.limit("values"), budget.limit("lines")
        (4718592, 1048576)
        >>> budget.spend("lists", 200_001)
        Traceback (most recent call last):
        submissions.rank_file.content.OverBudgetError: it holds more than 200,000 lists, objects and \
queries, which is the most for a file of 1,000 bytes; no more are read.
    """

    def __init__(self, size: int, max_bytes: int = MAX_BYTES) -> None:
        """See the class."""
        self.size, self.max_bytes = size, max_bytes
        self._spent: dict[str, int] = {}

    def limit(self, name: str) -> int:
        """How much of one thing the file may hold.

        Args:
            name: a key of `LIMITS`.
        """
        found = LIMITS[name]
        return max(found.least, int(found.per_byte * self.size))

    def unpacked(self, times: int = 1) -> int:
        """Bytes that the file may have once decompressed.

        Args:
            times: how many times `max_bytes` its format may have.
        """
        return min(self.limit("unpacked"), times * self.max_bytes)

    def spend(self, name: str, amount: int = 1, *, where: str = "") -> None:
        """Note that the file holds so much (more) of one thing.

        Args:
            name: a key of `LIMITS`.
            amount: how much.
            where: the place, in words that a message can start with, such as `line 7: `.

        Raises:
            OverBudgetError: that is more than the file may hold.
        """
        spent = self._spent[name] = self._spent.get(name, 0) + amount
        if spent > self.limit(name):
            raise self.over(name, where=where)

    def check(self, name: str, amount: int, *, where: str = "") -> None:
        """Refuse what holds too much of one thing by itself, without adding it up.

        Raises:
            OverBudgetError: it does.
        """
        if amount > self.limit(name):
            raise self.over(name, where=where)

    def spend_text(self, content: bytes, values: str = "values") -> int:
        """Note the lists and the values of a JSON text, by its marks alone; how many values there are.

        Raises:
            OverBudgetError: that is more than the file may hold.
        """
        lists = count_of(content, b"[") + count_of(content, b"{")
        found = lists + count_of(content, b",")
        self.spend("lists", lists)
        self.spend(values, found)
        return found

    def over(self, name: str, *, where: str = "") -> OverBudgetError:
        """The error of a file that holds too much of one thing."""
        found = LIMITS[name]
        most = "" if not found.per_byte else f", which is the most for a file of {self.size:,} bytes"
        message = f"{where}it holds more than {self.limit(name):,} {found.noun}{most}; no more are read."
        return OverBudgetError(message, found.fix)


@dataclass(frozen=True)
class Unpacked:
    """A file's content and how it is to be read.

    Args:
        kind: `json`, or the name of a format: `lines`, `parquet`, `trec` or `json-run`.
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
        max_bytes: bytes that the content may have at most once decompressed; of a run
            `RUN_TIMES` as many, and of a small file fewer (`LIMITS`).

    Example:
        >>> from submissions.rank_file.findings import Findings
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
    """`lines`, `parquet`, `trec` or `json-run`, or `json` where the content is none of them.

    Example:
        >>> kind_of(b"12063 Q0 dev-0-0-img0 1 0.97 clip"), kind_of(b'{"12063": {"dev-0-0-img0": 0.97}}')
        ('trec', 'json-run')
    """
    if content.startswith(_PARQUET):
        return PARQUET
    start = content[:LOOKED_AT].removeprefix(codecs.BOM_UTF8).lstrip()
    first = start.partition(b"\n")[0]
    if start.startswith((b"{", b"[")):
        if start.startswith(b"{") and _LINES_HEADER.search(first):
            return LINES
        if _SCORES.match(start) and not _FORMAT.search(start):
            return JSON_RUN
        # An id may start with a bracket, too; a line with all six columns is not JSON.
        return TREC if _is_whole_trec(first) else JSON
    lines = [line for line in start.split(b"\n") if line.strip()][:_TREC_LINES]
    return TREC if any(map(_is_trec, lines)) or _are_columns(lines) else JSON


def suffix_of(head: bytes) -> str:
    """What a file's name should end with: `.json`, `.jsonl`, `.parquet` or `.trec`, with `.gz` where packed.

    Args:
        head: the file's first bytes.

    Example:
        >>> suffix_of(b'{"format": "cir-rank-file"}'), suffix_of(gzip.compress(b"q1 Q0 image1 1 0.97 clip"))
        ('.json', '.trec.gz')
    """
    packed = ".gz" if head.startswith(GZIP) else ""
    return ENDINGS.get(kind_of(inside(head)), ".json") + packed


def inside(head: bytes) -> bytes:
    """The beginning of what is packed with gzip, nothing where it is damaged; other bytes as they are."""
    if not head.startswith(GZIP):
        return head
    try:
        return zlib.decompressobj(wbits=31).decompress(head, LOOKED_AT)
    except zlib.error:
        return b""


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
    head, footer = head[:LOOKED_AT].removeprefix(codecs.BOM_UTF8).lstrip(), footer[-FOOTER:]
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
    """Whether a content says that it is a rank file, in one of the formats that say so, and no transcript."""
    if means_transcript(content, content):
        return False
    kind, header = kind_of(content), _FORMAT.search(content[:LOOKED_AT])
    if kind == PARQUET:
        return _QUERY_COLUMN in content[-FOOTER:]
    return kind != JSON or (header is not None and header[1] in (RANK_FILE.encode(), BUNDLE.encode()))


def count_of(content: bytes, mark: bytes) -> int:
    """How often a byte stands in a content: `bytes.count` looks at them one by one, which takes longer."""
    looked_at = np.frombuffer(content, dtype=np.uint8)
    parts = (looked_at[start : start + _CHUNK] for start in range(0, len(content), _CHUNK))
    return sum(int(np.count_nonzero(part == ord(mark))) for part in parts)


def is_whole(content: bytes, strings: int) -> bool:
    """Whether a text without escapes has so many strings: then no key of it was lost to a later one."""
    return count_of(content, b'"') == 2 * strings


def strings_in(value: Any, depth: int = 1) -> int:
    """Strings of a JSON value, keys included.

    Raises:
        RecursionError: it is nested more than `MAX_NESTING` deep.
    """
    kind = type(value)
    if kind is not list and kind is not dict:
        return int(kind is str)
    if depth > MAX_NESTING:
        raise RecursionError
    if kind is dict:
        return len(value) + sum(strings_in(each, depth + 1) for each in value.values())
    if set(map(type, value)) == {str}:
        return len(value)
    return sum(strings_in(each, depth + 1) for each in value)


def limit_of_kind(kind: str, max_bytes: int) -> int:
    """Bytes that a file of a kind, or in a format, may have once decompressed.

    Example:
        >>> limit_of_kind(kind_of(b"12063 Q0 dev-0-0-img0 1 0.97 clip"), 1_000)
        2000
    """
    return RUN_TIMES * max_bytes if kind in _RUNS else max_bytes


def too_large(content: bytes, message: str, findings: Findings) -> None:
    """Note that a file has more bytes than are read.

    Args:
        content: its bytes, or the first of them.
        message: how many it has.
        findings: collects `too-large`.
    """
    fix = _SMALLER_RUN if kind_of(content) in _RUNS else None
    findings.add("too-large", message, depth=50, fix=fix)


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
                if not size and kind_of(chunk) in _RUNS:
                    limit = budget.unpacked(RUN_TIMES)
                size += len(chunk)
                if size > limit:
                    message = f"it holds more than {limit:,} bytes once decompressed; no more are read."
                    too_large(gathered.getbuffer()[:LOOKED_AT].tobytes(), message, findings)
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
