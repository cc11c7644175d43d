"""Challenges: queries and gallery without the truth, as `cir challenge new` writes them."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import pyarrow as pa

from cir_datasets.builders import BenchmarkBuilder
from cir_datasets.builders.reading import Record, read_records
from cir_datasets.rows.records import GALLERY_FIELD, Row, image_row, query_row, query_schema, session_schema

_CAPTIONS = pa.field("captions", pa.list_(pa.string()))


class Challenge(BenchmarkBuilder):
    """Rows of every challenge: queries or sessions whose truth is null or empty."""

    def schema(self) -> pa.Schema:
        """A query, or a session."""
        if self.spec.kind != "multi_turn":
            return query_schema(*(GALLERY_FIELD,) if self.spec.per_query else ())
        return session_schema(*(_CAPTIONS,) if self.spec.card.extra_fields else ())

    def rows(self) -> Iterator[Row]:
        """One query or session a record, in file order."""
        several = bool(self.spec.card.extra_fields)
        row = functools.partial(_session, several=several) if self.spec.kind == "multi_turn" else _query
        for record in read_records(self.rows_file):
            yield row(record)

    def images(self) -> Iterator[Row]:
        """The gallery, in file order."""
        for record in read_records(self.gallery_file):
            path = record.fields.get("relative_path")
            yield image_row(record.id("image_id"), relative_path=path)


def _query(record: Record) -> Row:
    record = record.named(f"query_id {record.id('query_id')}")
    return query_row(
        record.id("query_id"),
        reference_image_id=record.id("reference_image_id"),
        captions=record.texts("captions"),
        relative_caption=_caption(record),
        subset_image_ids=record.ids("subset_image_ids", may_be_empty=True),
        **(
            {GALLERY_FIELD.name: record.ids(GALLERY_FIELD.name)}
            if GALLERY_FIELD.name in record.fields
            else {}
        ),
    )


def _caption(record: Record) -> str | None:
    """The one text, or null where there are several."""
    value = record.get("relative_caption")
    several = value is None and "captions" in record.fields and len(record.texts("captions")) > 1
    return None if several else record.text("relative_caption")


def _session(record: Record, several: bool) -> Row:
    record = record.named(f"session_id {record.id('session_id')}")
    turns = [Record(record.path, record.number, turn, record.label) for turn in record.items("turns")]
    return {
        "session_id": record.id("session_id"),
        "subset": "",
        "ground_truth_ids": [],
        "num_turns": len(turns),
        "turns": [
            {
                "turn": turn.integer("turn"),
                "reference_image_id": turn.fields.get("reference_image_id"),
                "relative_caption": _caption(turn),
                **({"captions": turn.texts("captions")} if several else {}),
            }
            for turn in turns
        ],
    }
