"""FISD (Liu et al., 2026): six aspects, generated images, one hard negative a query.

The publishers have not released the data yet. The builder reads our own layout, which the card's
`folder_schema` describes: query fields as everywhere here, one folder an aspect.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa

from cir_datasets.builders import BenchmarkBuilder
from cir_datasets.builders.reading import Record, listed_images, read_records
from cir_datasets.rows.records import Row, query_row, query_schema


class Fisd(BenchmarkBuilder):
    """Rows of `fisd/{cardinality,addition,negation,change,background,complex}`."""

    def schema(self) -> pa.Schema:
        """A query and nothing besides."""
        return query_schema()

    def rows(self) -> Iterator[Row]:
        """One query a record, in file order."""
        for record in read_records(self.rows_file):
            query_id = record.id("query_id")
            yield self._row(record.named(f"query_id {query_id}"), query_id)

    def images(self) -> Iterator[Row]:
        """The aspect's images, in the order of their list; an id is the path below the image folder."""
        return listed_images(self.gallery_file)

    def _row(self, record: Record, query_id: str) -> Row:
        aspect = self.spec.config_name
        if not re.fullmatch(rf"{aspect}_[0-9]{{3}}", query_id):
            record.fail(f"its query_id must be {aspect}_ and three digits, such as {aspect}_000.")
        caption, target = record.text("relative_caption"), record.id("target_image_id")
        reference, negatives = record.id("reference_image_id"), record.ids("negative_image_ids")
        if reference in negatives:
            record.fail(f"its reference {reference!r} is one of its hard negatives.")
        return query_row(
            query_id,
            reference_image_id=reference,
            relative_caption=caption,
            target_image_id=target,
            negative_image_ids=negatives,
            aspects=[aspect],
        )
