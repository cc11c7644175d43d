"""The rows of every benchmark, declared once as Arrow schemas.

A single-turn row is a query, a multi-turn row a session, a row of a gallery an image. The Hugging Face
features of a benchmark are derived from the same schema, so that the two cannot drift apart. Ids are strings.
Withheld ground truth is null (one id) or empty (a list).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

Row = dict[str, Any]

_ids = pa.list_(pa.string())

QUERY_FIELDS: tuple[pa.Field, ...] = (
    pa.field("query_id", pa.string()),
    pa.field("reference_image_id", pa.string()),
    pa.field("captions", pa.list_(pa.string())),
    pa.field("relative_caption", pa.string()),
    pa.field("target_image_id", pa.string()),
    pa.field("positive_image_ids", _ids),
    pa.field("negative_image_ids", _ids),
    pa.field("subset_image_ids", _ids),
    pa.field("aspects", pa.list_(pa.string())),
)
"""Fields of a query, in order; a benchmark appends what is its own."""

GALLERY_FIELD = pa.field("gallery_image_ids", _ids)
"""The images that a query ranks, where each has a list of its own; in an order that says nothing."""

TURN_FIELDS: tuple[pa.Field, ...] = (
    pa.field("turn", pa.int32()),
    pa.field("reference_image_id", pa.string()),
    pa.field("relative_caption", pa.string()),
)
"""Fields of a turn (CIRCLED's names); a benchmark with several captions a turn appends `captions`."""

SESSION_FIELDS: tuple[pa.Field, ...] = (
    pa.field("session_id", pa.string()),
    pa.field("subset", pa.string()),
    pa.field("ground_truth_ids", _ids),
    pa.field("num_turns", pa.int32()),
    pa.field("turns", pa.list_(pa.struct(list(TURN_FIELDS)))),
)
"""Fields of a session, CIRCLED's own names."""

IMAGE_FIELDS: tuple[pa.Field, ...] = (
    pa.field("image_id", pa.string()),
    pa.field("relative_path", pa.string()),
    pa.field("sha256", pa.string()),
    pa.field("pixel_sha256", pa.string()),
    pa.field("num_bytes", pa.int64()),
    pa.field("width", pa.int32()),
    pa.field("height", pa.int32()),
    pa.field("license", pa.string()),
)
"""Fields of an image in a manifest; null where the publisher does not say."""


def query_schema(*extra: pa.Field) -> pa.Schema:
    """Schema of a single-turn benchmark whose own fields are `own`."""
    return pa.schema([*QUERY_FIELDS, *extra])


def session_schema(*more_turn_fields: pa.Field) -> pa.Schema:
    """Schema of a multi-turn benchmark whose turns carry `more_turn_fields` besides CIRCLED's three."""
    turns = pa.field("turns", pa.list_(pa.struct([*TURN_FIELDS, *more_turn_fields])))
    return pa.schema([*SESSION_FIELDS[:-1], turns])


def image_schema() -> pa.Schema:
    """Schema of a `<config>_images` manifest."""
    return pa.schema(list(IMAGE_FIELDS))


def query_row(query_id: str, **known: Any) -> Row:
    """A row of a single-turn benchmark: the id and what is known of the query; all else is null or empty.

    A relative caption is its one caption, and a target its one positive, where nothing else is said.

    Example:
        >>> row = query_row("7", relative_caption="is red", target_image_id="b")
        >>> row["query_id"], row["captions"], row["positive_image_ids"], row["negative_image_ids"]
        ('7', ['is red'], ['b'], [])
    """
    row: Row = {field.name: [] if pa.types.is_list(field.type) else None for field in QUERY_FIELDS}
    for one, many in (("relative_caption", "captions"), ("target_image_id", "positive_image_ids")):
        if known.get(one) is not None:
            row[many] = [known[one]]
    return row | {"query_id": query_id, **known}


def session_row(
    session_id: str,
    subset: str,
    ground_truth: Sequence[str],
    turns: Iterable[tuple[str | None, str | None]],
    captions: Sequence[Sequence[str]] = (),
) -> Row:
    """A row of a multi-turn benchmark.

    Args:
        session_id: its id.
        subset: what it belongs to.
        ground_truth: ids of its right answers.
        turns: of each turn the reference and the relative caption.
        captions: of each turn all its captions, where turns may have several.
    """
    rows: list[Row] = [
        {"turn": turn, "reference_image_id": reference, "relative_caption": caption}
        for turn, (reference, caption) in enumerate(turns, start=1)
    ]
    if captions:
        rows = [row | {"captions": of} for row, of in zip(rows, captions, strict=True)]
    return {
        "session_id": session_id,
        "subset": subset,
        "ground_truth_ids": ground_truth,
        "num_turns": len(rows),
        "turns": rows,
    }


def references_of(row: Row) -> list[str]:
    """The reference of a query, or those of a session's turns, of those that have one.

    Example:
        >>> references_of({"turns": [{"reference_image_id": "a"}, {"reference_image_id": None}]})
        ['a']
    """
    references = (part["reference_image_id"] for part in row.get("turns") or [row])
    return [image for image in references if image is not None]


def image_row(image_id: str, **known: Any) -> Row:
    """A row of a manifest: the id and what is known of the image; everything else is null.

    Example:
        >>> row = image_row("a", relative_path="a.png")
        >>> row["image_id"], row["relative_path"], row["width"]
        ('a', 'a.png', None)
    """
    row: Row = dict.fromkeys((field.name for field in IMAGE_FIELDS), None)
    return row | {"image_id": image_id, **known}
