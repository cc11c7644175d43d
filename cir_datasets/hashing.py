"""Hashes that say which data a number was computed on (parts of every signature)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson


def data_hash(rows: Iterable[Mapping[str, Any]]) -> str:
    """sha256 (hex) of what a ranking is judged by, whatever the order of the rows.

    Canonical JSON (sorted keys, no blanks, UTF-8) of a list, sorted by id, of [query id, reference, captions,
    positives, negatives, subset]; for a session [session id, [[reference, captions] per turn], ground truth].

    Example:
        >>> row = {"query_id": "1", "reference_image_id": "a", "captions": ["red"],
        ...        "positive_image_ids": ["b"], "negative_image_ids": [], "subset_image_ids": []}
        >>> data_hash([row])[:8]
        '20406935'
    """
    items = sorted(
        (_session(row) if "session_id" in row else _query(row) for row in rows), key=lambda item: item[0]
    )
    return hashlib.sha256(orjson.dumps(items)).hexdigest()


def gallery_hash(image_ids: Iterable[str]) -> str:
    """sha256 (hex) of the canonical JSON list of the sorted image ids.

    Example:
        >>> gallery_hash(["b", "a"]) == gallery_hash(["a", "b"])
        True
    """
    return hashlib.sha256(orjson.dumps(sorted(image_ids))).hexdigest()


def _query(row: Mapping[str, Any]) -> Sequence[Any]:
    return [
        row["query_id"],
        row["reference_image_id"],
        list(row["captions"]),
        list(row["positive_image_ids"]),
        list(row["negative_image_ids"]),
        list(row["subset_image_ids"]),
    ]


def _session(row: Mapping[str, Any]) -> Sequence[Any]:
    turns = [
        [turn["reference_image_id"], list(turn.get("captions") or []) or turn["relative_caption"]]
        for turn in row["turns"]
    ]
    return [row["session_id"], turns, list(row["ground_truth_ids"])]
