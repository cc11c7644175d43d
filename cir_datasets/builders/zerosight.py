"""ZeroSight (Yang et al., 2026): frames of videos, several positives and hard negatives a query.

The publishers have not released the data yet. The builder reads the queries of their released evaluator
(`id`, `groundtruths`, `negativeInstances`) with the fields that an evaluator does not need (`reference`,
`caption`, `category`), and the pool as a list of paths; the card's `folder_schema` describes both. A file
that holds the evaluator's three fields alone is read too: what it lacks is null or empty, and scoring needs
none of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from cir_datasets.builders import BenchmarkBuilder
from cir_datasets.builders.reading import Record, listed_images, read_records
from cir_datasets.rows.records import Row, query_row, query_schema

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec

CATEGORIES = ("addition", "subtraction", "viewpoint", "background", "attribute", "relative")
"""What a caption asks for (the paper's six categories); a query's only aspect."""

_OURS = frozenset({"reference", "caption", "category"})
"""Fields that the publishers' evaluator does not read."""


class Zerosight(BenchmarkBuilder):
    """Rows of `zerosight/train`, `zerosight/test` and both together, `zerosight/all`."""

    def __init__(self, spec: BenchmarkSpec, files: Mapping[str, Path]) -> None:
        """Keep both, and where each file's rows begin."""
        super().__init__(spec, files)
        self._begun: list[tuple[int, Path]] = []

    def schema(self) -> pa.Schema:
        """A query and nothing besides: its category is its aspect."""
        return query_schema()

    def rows(self) -> Iterator[Row]:
        """One query a record, in file order; of `all` the training queries first."""
        self._begun, number = [], 0
        judged_only: bool | None = None
        for name in self.spec.config.files:
            self._begun.append((number, self.files[name]))
            for record in read_records(self.files[name]):
                number += 1
                query_id = record.id_or_integer("id")
                named = record.named(f"id {query_id}")
                bare = _OURS.isdisjoint(record.fields)
                if judged_only is None:
                    judged_only = bare
                if bare != judged_only:
                    has = "has none" if bare else "has some"
                    named.fail(f"it {has} of the fields {', '.join(sorted(_OURS))}, unlike the first record.")
                yield _judged_row(named, query_id) if bare else _row(named, query_id)

    def row_origin(self, number: int) -> str:
        """File and record of a row; `all` has two files."""
        before, path = next(begun for begun in reversed(self._begun) if begun[0] < number)
        return f"{path}: record {number - before}"

    def images(self) -> Iterator[Row]:
        """The retrieval pool, in the order of its list; an id is the path below the image folder."""
        return listed_images(self.gallery_file)


def _row(record: Record, query_id: str) -> Row:
    caption, category = record.text("caption"), record.text("category")
    if category not in CATEGORIES:
        record.fail(f"its category must be one of {', '.join(CATEGORIES)}, not {category!r}.")
    return {
        **_judged_row(record, query_id),
        "reference_image_id": record.id("reference"),
        "captions": [caption],
        "relative_caption": caption,
        "aspects": [category],
    }


def _judged_row(record: Record, query_id: str) -> Row:
    """What the evaluator reads of a query: how it is judged, not what is asked."""
    return query_row(
        query_id,
        positive_image_ids=record.ids("groundtruths"),
        negative_image_ids=record.ids("negativeInstances", may_be_empty=True),
    )
