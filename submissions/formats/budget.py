"""What reading one file may cost: the limits of all readers, in one place.

A file of a megabyte may unfold to gigabytes: under gzip, as runs in Parquet, or because a value of three
bytes takes a hundred in memory. A `Budget` belongs to one file, grows with the file's own bytes, and is spent
while the file is read, before the memory is taken. What a limit has to let through is in `LIMITS`; no file of
a megabyte may take more than 512 MiB or five seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

from cir_metrics.errors import CopiedError

MAX_BYTES = 128 * 2**20
"""Bytes that are read at most unless the caller says otherwise, as a file is or once decompressed.

Of a TREC run `TREC_TIMES` as many are read."""

TREC_TIMES = 2
"""A TREC run may have so many times the bytes of other files.

It says the same in 1.6 times the bytes of JSON, and is read a line at a time."""

MAX_DEPTH = 16
"""Lists and objects inside each other at most; a bundle needs six."""

MAX_BROKEN = 1_000
"""Lines that cannot be read before the reading stops."""

_MI = 2**20


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
_CORRECT = "correct the lines that are named, then run  cir validate {file}"

LIMITS = {
    # Rankings that repeat each other shrink to a sixtieth: 85 MB of ZeroSight's JSON to 1.4 MB.
    "unpacked": Limit("bytes once decompressed", 96 * _MI, 64, _FEWER),
    # ZeroSight ranks 50 images for 64,100 queries; CIRR's 4,181 queries may rank 1,000 each.
    "values": Limit("values", 9 * _MI // 2, 4, _FEWER),
    # A ranking is a list, a run of a bundle an object.
    "lists": Limit("lists, objects and queries", 200_000, 1 / 16, _ONE_LIST),
    # Of a TREC run one an image; a line of a real one takes more than a byte under gzip.
    "lines": Limit("lines", _MI, 1, "write one line a query, of a TREC run one an image, and no empty ones"),
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
    "broken": Limit(
        "lines that cannot be read", MAX_BROKEN, 0, "correct these, then run  cir validate {file}"
    ),
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
        submissions.formats.budget.OverBudgetError: it holds more than 200,000 lists, objects and \
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

    def over(self, name: str, *, where: str = "") -> OverBudgetError:
        """The error of a file that holds too much of one thing."""
        found = LIMITS[name]
        most = "" if not found.per_byte else f", which is the most for a file of {self.size:,} bytes"
        message = f"{where}it holds more than {self.limit(name):,} {found.noun}{most}; no more are read."
        return OverBudgetError(message, found.fix)
