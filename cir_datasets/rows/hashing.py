"""Hashes that say which data a number was computed on (parts of every signature)."""

from __future__ import annotations

import hashlib
import os
import tempfile
from array import array
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson


def data_hash(rows: Iterable[Mapping[str, Any]]) -> str:
    """sha256 (hex) of what a ranking is judged by, whatever the order of the rows.

    Canonical JSON (no blanks, UTF-8) of a list, sorted by id, of [query id, reference, captions, target,
    positives, negatives, subset, aspects]; for a session [session id, number of turns, [[reference, captions]
    per turn], ground truth, and the turns' targets where they have them]. Aspects are in it since tables by
    aspect carry the same signature.

    A reference is the id of one image, a list of ids in the row's order where a query or turn has several
    (the first may mean another thing to a method than the second), and null where it has none.

    Example:
        >>> row = {"query_id": "1", "reference_image_id": "a", "captions": ["red"], "target_image_id": "b",
        ...        "positive_image_ids": ["b", "c"], "negative_image_ids": [], "subset_image_ids": []}
        >>> data_hash([row])[:8]
        'a95aa44a'
        >>> data_hash([row]) == data_hash([row | {"target_image_id": "c"}])
        False
    """
    items = sorted(map(_item, rows), key=lambda item: item[0])
    return hashlib.sha256(orjson.dumps(items)).hexdigest()


class DataHasher:
    """`data_hash` of rows that come one at a time: their canonical JSON waits on disk, only ids in memory.

    Args:
        folder: where the unnamed temporary file lies; None takes the system's folder.
        galleries: whether the queries' own galleries are hashed in place of what they are judged by
            (`galleries_hash`).

    Example:
        >>> rows = [{"query_id": name, "reference_image_id": "a", "captions": ["red"], "positive_image_ids":
        ...          ["b"], "negative_image_ids": [], "subset_image_ids": []} for name in ("2", "1")]
        >>> with DataHasher() as hasher:
        ...     for row in rows:
        ...         hasher.add(row)
        ...     hasher.hexdigest() == data_hash(rows)
        True
    """

    def __init__(self, folder: Path | None = None, *, galleries: bool = False) -> None:
        """Open the temporary file."""
        self._item = _gallery if galleries else _item
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed by __exit__
        self._ids: list[str] = []
        self._ends = array("Q", [0])

    def __enter__(self) -> DataHasher:
        """The hasher itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let the temporary file go."""
        self._file.close()

    def add(self, row: Mapping[str, Any]) -> None:
        """Take a row.

        Raises:
            TypeError: a text in it is not UTF-8 (a lone surrogate).
        """
        item = self._item(row)
        content = orjson.dumps(item)
        self._file.write(content)
        self._ids.append(item[0])
        self._ends.append(self._ends[-1] + len(content))

    def hexdigest(self) -> str:
        """sha256 (hex) of the rows taken so far."""
        self._file.flush()
        handle, digest = self._file.fileno(), hashlib.sha256(b"[")
        for place, number in enumerate(sorted(range(len(self._ids)), key=self._ids.__getitem__)):
            start, end = self._ends[number], self._ends[number + 1]
            digest.update((b"," if place else b"") + os.pread(handle, end - start, start))
        digest.update(b"]")
        return digest.hexdigest()


def gallery_hash(image_ids: Iterable[str]) -> str:
    """sha256 (hex) of the canonical JSON list of the sorted image ids.

    Example:
        >>> gallery_hash(["b", "a"]) == gallery_hash(["a", "b"])
        True
    """
    return hashlib.sha256(orjson.dumps(sorted(image_ids))).hexdigest()


def galleries_hash(galleries: Mapping[str, Iterable[str]]) -> str:
    """sha256 (hex) of galleries per query: the canonical JSON list of [query id, sorted ids], by query.

    Args:
        galleries: by query id the ids of the images that it ranks.

    Example:
        >>> one, other = {"1": ["b", "a"], "2": ["c"]}, {"2": ["c"], "1": ["a", "b"]}
        >>> galleries_hash(one) == galleries_hash(other)
        True
        >>> galleries_hash(one) == galleries_hash({"1": ["c"], "2": ["a", "b"]})
        False
    """
    items = [[query, sorted(galleries[query])] for query in sorted(galleries)]
    return hashlib.sha256(orjson.dumps(items)).hexdigest()


def _gallery(row: Mapping[str, Any]) -> Sequence[Any]:
    return [row["query_id"], sorted(row["gallery_image_ids"])]


def _item(row: Mapping[str, Any]) -> Sequence[Any]:
    return _session(row) if "session_id" in row else _query(row)


def _query(row: Mapping[str, Any]) -> Sequence[Any]:
    return [
        row["query_id"],
        _reference(row["reference_image_id"]),
        list(row["captions"]),
        row.get("target_image_id"),
        list(row["positive_image_ids"]),
        list(row["negative_image_ids"]),
        list(row["subset_image_ids"]),
        list(row.get("aspects") or []),
    ]


def _reference(value: str | Sequence[str] | None) -> str | list[str] | None:
    """One reference is a text however it is written, so that older hashes stay what they are."""
    if value is None or isinstance(value, str):
        return value
    return list(value) if len(value) > 1 else next(iter(value), None)


def _session(row: Mapping[str, Any]) -> Sequence[Any]:
    turns = [
        [_reference(turn["reference_image_id"]), list(turn.get("captions") or []) or turn["relative_caption"]]
        for turn in row["turns"]
    ]
    targets = [turn["target_image_id"] for turn in row["turns"] if turn.get("target_image_id") is not None]
    session = [row["session_id"], row.get("num_turns", len(turns)), turns, list(row["ground_truth_ids"])]
    return [*session, targets] if targets else session
