"""Challenges: queries and gallery without the truth, as `cir challenge new` writes them."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from cir_datasets.builders.base import BenchmarkBuilder
from cir_datasets.builders.reading import Record, read_records
from cir_datasets.rows.records import Row, image_row, query_row, query_schema, session_schema


class Challenge(BenchmarkBuilder):
    """Rows of every challenge: queries or sessions whose truth is null or empty."""

    def schema(self) -> pa.Schema:
        """A query, or a session."""
        return session_schema() if self.spec.kind == "multi_turn" else query_schema()

    def rows(self) -> Iterator[Row]:
        """One query or session a record, in file order."""
        row = _session if self.spec.kind == "multi_turn" else _query
        (name,) = self.spec.config.files
        for record in read_records(self.files[name]):
            yield row(record)

    def images(self) -> Iterator[Row]:
        """The gallery, in file order."""
        (name,) = self.spec.config.gallery_files
        for record in read_records(self.files[name]):
            path = record.fields.get("relative_path")
            yield image_row(record.id("image_id"), relative_path=path)


def _query(record: Record) -> Row:
    record = record.named(f"query_id {record.id('query_id')}")
    return query_row(
        record.id("query_id"),
        reference_image_id=record.id("reference_image_id"),
        captions=record.texts("captions"),
        relative_caption=record.text("relative_caption"),
        subset_image_ids=record.ids("subset_image_ids", may_be_empty=True),
    )


def _session(record: Record) -> Row:
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
                "relative_caption": turn.text("relative_caption"),
            }
            for turn in turns
        ],
    }
