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

from cir_datasets.common.counts import counted, counted_rows
from cir_metrics.errors import CallError

if TYPE_CHECKING:
    import pyarrow as pa

    from cir_datasets.common.tables import Table
    from cir_datasets.registry.cards import BenchmarkSpec
    from cir_datasets.rows import StoredRows
    from cir_datasets.rows.candidates import AskedRanking, OwnLists
    from cir_datasets.rows.notebook import NotebookRows
    from cir_datasets.rows.records import Row
    from cir_metrics.signature import ReferenceUse

_FIRST = 5
"""Rows, and targets of a row, that a notebook shows."""
_SHOWN_HASH = 12


@dataclass(frozen=True, eq=False)
class Benchmark:
    """One benchmark's rows, gallery and protocol; a notebook shows its facts and first rows.

    Args:
        spec: card and configuration.
        table: the rows, in the publisher's order; of a prepared benchmark read a column at a time.
        gallery: image ids of the gallery in the manifest's order, or None where the list is not available; of
            galleries per query their union.
        data_hash: sha256 (hex) over the rows.
        gallery_hash: sha256 (hex) over the sorted image ids, or over the lists of all queries
            (`galleries_hash`); or None.
        pinned: whether every source file has the sha256 that the card pins.
        checks_skipped: names of the checks that were not made (`counts`), sorted.
        source_hashes: sha256 (hex) of the publisher's files by name.
        left_out: ids of the queries that an overlay leaves out; empty without one.
        manifest: the gallery's ids and the publisher's paths, as they were prepared; None of rows in memory
            and where the list is not available.

    Example:
        >>> import cir_datasets
        >>> cir_datasets.load("shapes/val")
        <Benchmark shapes/val#2: 300 queries, gallery of 3,940 images, reference removed>
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
    manifest: StoredRows | None = None

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
        """A benchmark from rows in memory, with the protocol of one that exists; nothing is checked.

        `cir_datasets.own_benchmark` makes one of a new name, checked.

        Raises:
            CallError: `spec` is a name.
        """
        import pyarrow as pa

        if isinstance(spec, str):
            raise CallError(
                f"from_rows takes the protocol of a benchmark, not its name {spec!r}. Fix: for a new "
                "benchmark of your own call cir_datasets.own_benchmark(name, rows, images=FOLDER); for "
                'other rows of one that exists, such as cirr/val, give cir_datasets.spec("cirr/val").'
            )
        from cir_datasets.rows.hashing import data_hash, galleries_hash, gallery_hash

        ids = None if gallery is None else list(gallery)
        hashed = None if ids is None else gallery_hash(ids)
        if spec.per_query:
            lists = {row["query_id"]: row["gallery_image_ids"] for row in rows}
            hashed = galleries_hash(lists)
            ids = sorted({image for own in lists.values() for image in own}) if ids is None else ids
        return cls(
            spec=spec,
            table=pa.Table.from_pylist(list(rows), schema=schema),
            gallery=ids,
            data_hash=data_hash(rows),
            gallery_hash=hashed,
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
    def per_query(self) -> bool:
        """Whether each query ranks a list of its own in place of a common gallery."""
        return self.spec.per_query

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

    @functools.cached_property
    def missing_aspects(self) -> tuple[str, ...]:
        """The aspects that the card names and no query has; empty where queries have no aspects at all."""
        names = self.spec.card.report.aspect_names
        if not names or self.multi_turn:
            return ()
        held = {aspect for aspects in self.column("aspects") for aspect in aspects or ()}
        return tuple(name for name in names if held and name not in held)

    @functools.cached_property
    def references(self) -> pa.Array:
        """The reference of each list that is asked for: of each query, or of each turn, session by session.

        Null where a query or a turn has none.

        Example:
            >>> import cir_datasets
            >>> len(cir_datasets.load("shapes/val").references)
            300
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        name = "reference_image_id"
        if self.multi_turn:
            turns = [chunk.flatten() for chunk in self.table.column("turns").chunks]
            parts = [pc.struct_field(each, name) for each in turns]
        elif name in self.table.column_names:
            parts = self.table.column(name).chunks
        else:
            parts = [pa.nulls(len(self))]
        # `pa.array` would import pandas.
        return pa.concat_arrays([pa.nulls(0, pa.string()), *(part.cast(pa.string()) for part in parts)])

    @functools.cached_property
    def reference_use(self) -> ReferenceUse:
        """What the protocol says of references, unless there are `none`, or all are `outside` the gallery."""
        import numpy as np
        import pyarrow.compute as pc

        from cir_datasets.rows import id_array, numbers
        from cir_datasets.rows.candidates import GALLERY, AskedRanking

        if self.references.null_count == len(self.references):
            return "none"
        if self.per_query:
            lists = self.own_lists(AskedRanking(GALLERY, removes_reference=False, on_board=True))
            references = numbers(pc.index_in(self.references, value_set=lists.images), null=-1)
            held = lists.holds(np.arange(len(references)), references).any()
            return self.spec.config.reference if held else "outside"
        if self.gallery is None or pc.any(pc.is_in(self.references, id_array(self.gallery))).as_py():
            return self.spec.config.reference
        return "outside"

    def own_lists(self, asked: AskedRanking) -> OwnLists:
        """The images that each query ranks where a ranking is over lists of its own."""
        from cir_datasets.rows.candidates import OwnLists

        key = asked.column, asked.removes_reference
        if key not in self._own_lists:
            left_out = self.references if asked.removes_reference else None
            self._own_lists[key] = OwnLists(self.query_ids, self.ids(asked.column), left_out)
        return self._own_lists[key]

    @functools.cached_property
    def _own_lists(self) -> dict[tuple[str, bool], OwnLists]:
        return {}

    def column(self, name: str) -> list[Any]:
        """A column as Python values."""
        values: list[Any] = self.table.column(name).to_pylist()
        return values

    def ids(self, name: str) -> pa.ChunkedArray:
        """A column of ids, or of lists of ids, as Arrow holds it: texts, or dictionaries of texts."""
        from cir_datasets.rows import StoredRows

        return self.table.ids(name) if isinstance(self.table, StoredRows) else self.table.column(name)

    def places(self, name: str) -> pa.ChunkedArray | None:
        """A column of ids, or of lists of ids, as places in the gallery; None where they are not known."""
        from cir_datasets.rows import StoredRows

        return self.table.places(name) if isinstance(self.table, StoredRows) else None

    def rows(self) -> list[Row]:
        """All rows as dictionaries."""
        rows: list[Row] = self.table.to_pylist()
        return rows

    @functools.cached_property
    def queries(self) -> NotebookRows:
        """All queries or sessions, as `rows` has them; in a notebook each shows its pictures.

        Example:
            >>> import cir_datasets
            >>> cir_datasets.load("shapes/val").queries[0]["relative_caption"]
            'a small blue star'
        """
        from cir_datasets.rows.notebook import NotebookRows

        return NotebookRows(self.rows(), self.spec)

    def head(self, number: int = _FIRST) -> NotebookRows:
        """The first rows as dictionaries, which a notebook shows with pictures; the others are not read.

        Args:
            number: how many, where there are as many.

        Example:
            >>> import cir_datasets
            >>> [row["query_id"] for row in cir_datasets.load("shapes/val").head(2)]
            ['shapes_val_00000', 'shapes_val_00001']
        """
        from cir_datasets.rows import StoredRows
        from cir_datasets.rows.notebook import NotebookRows

        if isinstance(self.table, StoredRows):
            return NotebookRows(self.table.head(number), self.spec)
        return NotebookRows(self.table.slice(0, max(0, number)).to_pylist(), self.spec)

    def __len__(self) -> int:
        """Number of queries or sessions."""
        return int(self.table.num_rows)

    def __repr__(self) -> str:
        """What it is in one line; rows are not in it."""
        return f"<Benchmark {self.id}#{self.version}: {', '.join(self._facts())}>"

    def _repr_html_(self) -> str:
        """What it is, and its first rows, for a notebook."""
        from cir_datasets.pages import object_html

        shown = [*self._facts(), f"data {self.data_hash[:_SHOWN_HASH]}"]
        return object_html(f"{self.id}#{self.version}: {self.spec.card.title}", shown, [self._first_rows()])

    def _facts(self) -> list[str]:
        gallery = "gallery not available"
        if self.gallery is not None:
            gallery = f"gallery of {counted(len(self.gallery), 'image')}"
            if self.per_query:
                gallery = f"a gallery a query, {counted(len(self.gallery), 'image')} together"
        return [
            counted_rows(len(self), self.multi_turn),
            gallery,
            f"reference {self.spec.config.reference}",
        ]

    def _first_rows(self) -> Table:
        from cir_datasets.common.tables import Cell, Table

        key, positives = (
            ("session_id", "ground_truth_ids") if self.multi_turn else ("query_id", "positive_image_ids")
        )
        rows = []
        for row in self.head(_FIRST):
            turns = row["turns"] if self.multi_turn else [row]
            said = [(turn.get("captions") or [turn["relative_caption"]]) for turn in turns]
            texts = (
                row[key],
                " → ".join(turn["reference_image_id"] or "-" for turn in turns),
                " → ".join(" / ".join(filter(None, each)) or "-" for each in said),
                ", ".join(row[positives][:_FIRST])
                + (f" and {len(row[positives]) - _FIRST:,} more" if len(row[positives]) > _FIRST else ""),
            )
            rows.append(tuple(Cell(text) for text in texts))
        title = f"the first {len(rows)} of {len(self):,}" if len(rows) < len(self) else ""
        return Table(title, ("id", "reference", "caption", "targets"), tuple(rows))
