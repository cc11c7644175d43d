"""FashionIQ (Wu et al., CVPR 2021): three categories, two captions a query.

The publisher gives no query ids; ours are `{category}_{split}_{index:05d}` in file order, the same in all
protocols of the validation split. Captions are kept as published, blanks and empty ones included.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import pyarrow as pa

from cir_datasets.builders import BenchmarkBuilder
from cir_datasets.builders.reading import read_image_ids, read_records
from cir_datasets.rows.records import Row, image_row, query_row, query_schema

_CAPTIONS = 2
"""Captions of a query, by two people."""


class Fashioniq(BenchmarkBuilder):
    """Rows of `fashioniq/{dress,shirt,toptee}_{train,val,test}` and of the other protocols of val."""

    captions_field: ClassVar[str] = "captions"

    def schema(self) -> pa.Schema:
        """A query with its `category`."""
        return query_schema(pa.field("category", pa.string()))

    def rows(self) -> Iterator[Row]:
        """One query a record, in file order."""
        category, split = self.spec.config_name.split("_")[:2]
        withheld = self.spec.config.ground_truth == "withheld"
        for unnamed in read_records(self.rows_file):
            query_id = f"{category}_{split}_{unnamed.number - 1:05d}"
            record = unnamed.named(f"query_id {query_id}")
            captions = record.texts("captions")
            if len(captions) != _CAPTIONS:
                record.fail(f"the field 'captions' must hold {_CAPTIONS} strings, not {captions!r}.")
            target = None if withheld else record.id("target")
            yield query_row(
                query_id,
                reference_image_id=record.id("candidate"),
                captions=captions,
                target_image_id=target,
                category=category,
            )

    def images(self) -> Iterator[Row]:
        """The split file's images; for a union, references and targets in the order of their first use."""
        union = "_union" in self.spec.config_name
        for image_id in self._union() if union else read_image_ids(self.gallery_file):
            # The publisher's pictures are .png or .jpg, which only the folder shows: no relative path.
            yield image_row(image_id)

    def _union(self) -> Iterator[str]:
        seen: dict[str, None] = {}
        for row in self.rows():
            seen.setdefault(row["reference_image_id"])
            seen.setdefault(row["target_image_id"])
        yield from seen
