"""A benchmark ready for use: queries or sessions, gallery and protocol, without the `datasets` library.

This is what validation, scoring and retrieval work with. It is read from prepared Parquet
(`cir_datasets.load`) or built from rows in memory (`Benchmark.from_rows`, for tests and for people who make
a benchmark of their own).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from cir_datasets.registry.cards import BenchmarkSpec
    from cir_datasets.rows.columns import StoredRows
    from cir_datasets.rows.records import Row


@dataclass(frozen=True, eq=False)
class Benchmark:
    """One benchmark's rows, gallery and protocol.

    Args:
        spec: card and configuration.
        table: the rows, in the publisher's order; of a prepared benchmark read a column at a time.
        gallery: image ids of the gallery in the manifest's order, or None where the list is not available.
        data_hash: sha256 (hex) over the rows.
        gallery_hash: sha256 (hex) over the sorted image ids, or None.
        pinned: whether every source file has the sha256 that the card pins.
        checks_skipped: names of the checks that were not made (`counts`), sorted.
        source_hashes: sha256 (hex) of the publisher's files by name.
        left_out: ids of the queries that an overlay leaves out; empty without one.
    """

    spec: BenchmarkSpec
    table: pa.Table | StoredRows
    gallery: Sequence[str] | None
    data_hash: str
    gallery_hash: str | None
    pinned: bool = True
    checks_skipped: tuple[str, ...] = ()
    source_hashes: dict[str, str] = field(default_factory=dict)
    left_out: frozenset[str] = frozenset()

    @classmethod
    def from_rows(
        cls,
        spec: BenchmarkSpec,
        rows: Sequence[Row],
        gallery: Iterable[str] | None,
        *,
        schema: pa.Schema | None = None,
        pinned: bool = True,
        checks_skipped: tuple[str, ...] = (),
    ) -> Benchmark:
        """A benchmark from rows in memory."""
        import pyarrow as pa

        from cir_datasets.rows.hashing import data_hash, gallery_hash

        ids = None if gallery is None else list(gallery)
        return cls(
            spec=spec,
            table=pa.Table.from_pylist(list(rows), schema=schema),
            gallery=ids,
            data_hash=data_hash(rows),
            gallery_hash=None if ids is None else gallery_hash(ids),
            pinned=pinned,
            checks_skipped=checks_skipped,
        )

    @property
    def id(self) -> str:
        """The benchmark id, `name/config`."""
        return self.spec.id

    @property
    def version(self) -> int:
        """The card's version."""
        return self.spec.card.version

    @property
    def multi_turn(self) -> bool:
        """Whether a row is a session."""
        return self.spec.kind == "multi_turn"

    @property
    def excludes_reference(self) -> bool:
        """Whether the protocol removes the reference image from the ranking."""
        return self.spec.config.reference == "removed"

    @property
    def ground_truth_withheld(self) -> bool:
        """Whether the publisher keeps the ground truth."""
        return self.spec.config.ground_truth == "withheld"

    @functools.cached_property
    def query_ids(self) -> list[str]:
        """Ids of the queries (single-turn) or sessions (multi-turn), in the publisher's order."""
        return self.column("session_id" if self.multi_turn else "query_id")

    @functools.cached_property
    def gallery_set(self) -> frozenset[str] | None:
        """The gallery as a set, or None."""
        return None if self.gallery is None else frozenset(self.gallery)

    @functools.cached_property
    def positives(self) -> list[list[str]]:
        """The positives of each row; empty lists where the ground truth is withheld."""
        return self.column("ground_truth_ids" if self.multi_turn else "positive_image_ids")

    def column(self, name: str) -> list[Any]:
        """A column as Python values."""
        values: list[Any] = self.table.column(name).to_pylist()
        return values

    def ids(self, name: str) -> pa.ChunkedArray:
        """A column of ids, or of lists of ids, as Arrow holds it: texts, or dictionaries of texts."""
        from cir_datasets.rows.columns import StoredRows

        return self.table.ids(name) if isinstance(self.table, StoredRows) else self.table.column(name)

    def places(self, name: str) -> pa.ChunkedArray | None:
        """A column of ids, or of lists of ids, as places in the gallery; None where they are not known."""
        from cir_datasets.rows.columns import StoredRows

        return self.table.places(name) if isinstance(self.table, StoredRows) else None

    def rows(self) -> list[Row]:
        """All rows as dictionaries."""
        rows: list[Row] = self.table.to_pylist()
        return rows

    def __len__(self) -> int:
        """Number of queries or sessions."""
        return int(self.table.num_rows)
