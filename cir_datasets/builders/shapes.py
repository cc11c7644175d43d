"""Shapes: the embedded benchmark, made by `cir_datasets.shapes` from no file at all."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pyarrow as pa

from cir_datasets.builders import BenchmarkBuilder
from cir_datasets.rows.records import Row, query_schema, session_schema
from cir_datasets.shapes.gallery import manifest, split_of


class Shapes(BenchmarkBuilder):
    """Rows of all four configurations."""

    def schema(self) -> pa.Schema:
        """A session like CIRCLED's; or a query with the changes that its caption stands for."""
        if self.spec.kind == "multi_turn":
            return session_schema()
        words = [pa.field(name, pa.string()) for name in ("kind", "before", "after")]
        return query_schema(pa.field("changes", pa.list_(pa.struct(words))))

    def rows(self) -> Iterator[Row]:
        """Queries or sessions in the order of their ids."""
        found = split_of(self.spec.config_name)
        rows = found.sessions if self.spec.kind == "multi_turn" else found.queries
        yield from copy.deepcopy(rows)  # the split is kept: nobody may change its rows

    def images(self) -> Iterator[Row]:
        """The gallery that queries and sessions of a split share."""
        return manifest(self.spec.config_name)
