"""A benchmark ready for use: queries or sessions, galleries and protocol, without the `datasets` library.

This is what validation, scoring and retrieval work with. It is read from prepared Parquet
(`cir_datasets.load`) or built from rows in memory (`Benchmark.from_rows`, for tests and for people who make
a benchmark of their own).

A benchmark asks one ranking a query, or two. The first is over the common gallery or, where the card says
`gallery: per_query`, over the query's own list (`gallery_image_ids`). The second, where there is one, is over
another list of the query's own: CIRR's subset of six. Lists may have any length, and another for each query.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cir_datasets.common.terminal import counted, counted_rows
from cir_datasets.rows import StoredRows, distinct, flattened, id_array, list_lengths, numbers
from cir_metrics.catalogue import reads_subset
from cir_metrics.errors import CallError

if TYPE_CHECKING:
    import pyarrow as pa

    from cir_datasets.registry import BenchmarkSpec
    from cir_datasets.rows.notebook import NotebookRows
    from cir_datasets.rows.records import Row
    from cir_metrics.catalogue import ReferenceUse

GALLERY, SUBSET = "gallery_image_ids", "subset_image_ids"
"""The fields of a row that hold a list of the query's own."""
SOURCE_QUERY = "source_query_id"
"""The field of a session that says which single query it began with; null where that is not known."""


@dataclass(frozen=True)
class AskedRanking:
    """A ranking that a benchmark asks of each query or turn.

    Args:
        column: the rows' field with the query's own list of images; empty where the gallery is common.
        removes_reference: whether the reference is left out of the list.
        on_board: whether a metric of the board reads it.
    """

    column: str
    removes_reference: bool
    on_board: bool

    def images(self, row: Mapping[str, Any]) -> list[str]:
        """The query's own list as it is ranked.

        Example:
            >>> row = {"reference_image_id": "a", "subset_image_ids": ["a", "b", "c"]}
            >>> AskedRanking(SUBSET, removes_reference=True, on_board=True).images(row)
            ['b', 'c']
        """
        left_out = row["reference_image_id"] if self.removes_reference else None
        return [image for image in row[self.column] if image != left_out]


def first_ranking(spec: BenchmarkSpec) -> AskedRanking:
    """The ranking of `rankings`, over the common gallery or over the query's own list."""
    column = GALLERY if spec.per_query else ""
    on_board = any(not reads_subset(metric) for metric in spec.metrics)
    return AskedRanking(column, spec.config.reference == "removed", on_board)


def second_ranking(spec: BenchmarkSpec) -> AskedRanking | None:
    """The ranking of `subset_rankings`, or None where queries have no second list."""
    if spec.config.subset is None:
        return None
    return AskedRanking(SUBSET, removes_reference=True, on_board=any(map(reads_subset, spec.metrics)))


def second_on_board(spec: BenchmarkSpec) -> AskedRanking | None:
    """`second_ranking` where the board shows a metric of it, else None: what a method has to make."""
    second = second_ranking(spec)
    return second if second is not None and second.on_board else None


class QueryLists:
    """The list of images that each query ranks, all of them as numbers.

    Args:
        query_ids: ids of the queries.
        lists: the column of their lists.
        left_out: the image of each query that is not ranked, or null; None where all are.

    Example:
        >>> import pyarrow as pa
        >>> lists = QueryLists(["1", "2"], pa.chunked_array([[["a", "b"], ["b"]]]))
        >>> sorted(lists["1"]), lists.lengths.tolist(), lists.images.to_pylist()
        (['a', 'b'], [2, 1], ['a', 'b'])
    """

    def __init__(
        self, query_ids: Iterable[str], lists: pa.ChunkedArray, left_out: pa.Array | None = None
    ) -> None:
        """See the class."""
        import pyarrow.compute as pc

        self.position = {query: place for place, query in enumerate(query_ids)}
        lengths = list_lengths(lists)
        codes, self.images = distinct([chunk.flatten() for chunk in lists.chunks])
        owners = np.repeat(np.arange(len(lengths)), lengths)
        if left_out is not None:
            dropped = numbers(pc.index_in(left_out, value_set=self.images), null=-1)
            kept = codes != dropped[owners]
            codes, lengths = codes[kept], np.bincount(owners[kept], minlength=len(lengths))
        self.lengths: NDArray[np.int64] = lengths
        self._codes = codes
        self._starts = np.concatenate([[0], np.cumsum(lengths)])

    @functools.cached_property
    def _names(self) -> list[str]:
        names: list[str] = self.images.to_pylist()
        return names

    def __getitem__(self, query: str) -> frozenset[str]:
        """The images that a query ranks."""
        place = self.position[query]
        codes = self._codes[self._starts[place] : self._starts[place + 1]]
        return frozenset(self._names[code] for code in codes.tolist())

    def lacking(self, query: str, images: Iterable[str]) -> set[str]:
        """Those of some images that a query does not rank."""
        place = self.position[query]
        listed = self._codes[self._starts[place] : self._starts[place + 1]]
        named = list(images)
        codes = np.array([self._code.get(image, -1) for image in named], dtype=np.int64)
        return {named[at] for at in np.flatnonzero(~np.isin(codes, listed)).tolist()}

    @functools.cached_property
    def _code(self) -> dict[str, int]:
        return {image: code for code, image in enumerate(self._names)}

    def __len__(self) -> int:
        """Number of queries."""
        return len(self.lengths)

    def places(self, queries: Iterable[str]) -> NDArray[np.int64]:
        """Where queries stand in the order of the lists; -1 for one that has none."""
        return np.array([self.position.get(query, -1) for query in queries], dtype=np.int64)

    def length(self, query: str) -> int:
        """How many images a query ranks."""
        return int(self.lengths[self.position[query]])

    def holds(self, queries: NDArray[np.int64], images: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether images are in the lists of queries.

        Args:
            queries: places of queries, shape (n,).
            images: places in `images`, -1 for one that no list holds, shape (n,).
        """
        known, wanted = self._members, queries * len(self.images) + images
        if not len(known):
            return np.zeros(len(wanted), dtype=np.bool_)
        at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        found: NDArray[np.bool_] = (known[at] == wanted) & (images >= 0)
        return found

    @functools.cached_property
    def _members(self) -> NDArray[np.int64]:
        """Each query with each of its images as one number, sorted."""
        owners = np.repeat(np.arange(len(self.lengths)), self.lengths)
        return np.sort(owners * len(self.images) + self._codes)


def union_of(galleries: Iterable[Iterable[str]]) -> list[str]:
    """Every image of several lists, once, sorted by id: an order that tells nothing of the targets.

    Example:
        >>> union_of([["c", "a"], ["b", "a"]])
        ['a', 'b', 'c']
    """
    return sorted({image for gallery in galleries for image in gallery})


_FIRST, _SHOWN_HASH = 5, 12
"""Rows, and digits of the data hash, that a notebook shows."""


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

        `cir_datasets.custom_benchmark` makes one of a new name, checked.

        Raises:
            CallError: `spec` is a name.
        """
        import pyarrow as pa

        if isinstance(spec, str):
            raise CallError(
                f"from_rows takes the protocol of a benchmark, not its name {spec!r}. Fix: for a new "
                "benchmark of your own call cir_datasets.custom_benchmark(name, rows, images=FOLDER); for "
                'other rows of one that exists, such as cirr/val, give cir_datasets.spec("cirr/val").'
            )
        from cir_datasets.rows.hashing import data_hash, galleries_hash, gallery_hash

        ids = None if gallery is None else list(gallery)
        hashed = None if ids is None else gallery_hash(ids)
        if spec.per_query:
            lists = {row["query_id"]: row["gallery_image_ids"] for row in rows}
            hashed = galleries_hash(lists)
            ids = union_of(lists.values()) if ids is None else ids
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
        held = set(distinct(flattened(self.table.column("aspects"))[1])[1].to_pylist())
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

        name = "reference_image_id"
        if self.multi_turn:
            parts = self._of_turns(name)
        elif name in self.table.column_names:
            parts = self.table.column(name).chunks
        else:
            parts = [pa.nulls(len(self))]
        # `pa.array` would import pandas.
        return pa.concat_arrays([pa.nulls(0, pa.string()), *(part.cast(pa.string()) for part in parts)])

    @functools.cached_property
    def turn_targets(self) -> pa.Array | None:
        """The target of each turn, session by session; None where turns have none of their own.

        Example:
            >>> import cir_datasets
            >>> cir_datasets.load("shapes/multiturn_val").turn_targets is None
            True
        """
        import pyarrow as pa

        turns = self.table.column("turns").type.value_type if self.multi_turn else pa.struct([])
        if turns.get_field_index("target_image_id") < 0 or self.ground_truth_withheld:
            return None
        return pa.concat_arrays(self._of_turns("target_image_id"))

    def _of_turns(self, name: str) -> list[pa.Array]:
        import pyarrow.compute as pc

        turns = (chunk.flatten() for chunk in self.table.column("turns").chunks)
        return [pc.struct_field(each, name) for each in turns]

    @functools.cached_property
    def reference_use(self) -> ReferenceUse:
        """What the protocol says of references, unless there are `none`, or all are `outside` the gallery."""
        import pyarrow.compute as pc

        if self.references.null_count == len(self.references):
            return "none"
        if self.per_query:
            lists = self.query_lists(AskedRanking(GALLERY, removes_reference=False, on_board=True))
            references = numbers(pc.index_in(self.references, value_set=lists.images), null=-1)
            held = lists.holds(np.arange(len(references)), references).any()
            return self.spec.config.reference if held else "outside"
        known, given = id_array(self.gallery or []), self.references.drop_null()
        first = pc.index(known, given[0]).as_py()  # Nearly always it is there: no other is looked up then.
        if self.gallery is None or first >= 0 or pc.any(pc.is_in(given, known)).as_py():
            return self.spec.config.reference
        return "outside"

    def query_lists(self, asked: AskedRanking) -> QueryLists:
        """The images that each query ranks where a ranking is over lists of its own."""
        key = asked.column, asked.removes_reference
        if key not in self._query_lists:
            left_out = self.references if asked.removes_reference else None
            self._query_lists[key] = QueryLists(self.query_ids, self.ids(asked.column), left_out)
        return self._query_lists[key]

    @functools.cached_property
    def _query_lists(self) -> dict[tuple[str, bool], QueryLists]:
        return {}

    def column(self, name: str) -> list[Any]:
        """A column as Python values."""
        values: list[Any] = self.table.column(name).to_pylist()
        return values

    def ids(self, name: str) -> pa.ChunkedArray:
        """A column of ids, or of lists of ids, as Arrow holds it: texts, or dictionaries of texts."""
        return self.table.ids(name) if isinstance(self.table, StoredRows) else self.table.column(name)

    def places(self, name: str) -> pa.ChunkedArray | None:
        """A column of ids, or of lists of ids, as places in the gallery; None where they are not known."""
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
        from cir_datasets.rows.notebook import table_of

        shown = [*self._facts(), f"data {self.data_hash[:_SHOWN_HASH]}"]
        first = table_of(self.head(), len(self))
        return object_html(f"{self.id}#{self.version}: {self.spec.card.title}", shown, [first])

    def _facts(self) -> list[str]:
        gallery = "gallery not available"
        if self.gallery is not None:
            gallery = f"gallery of {counted(len(self.gallery), 'image')}{self.spec.gallery_note}"
        return [
            counted_rows(len(self), self.multi_turn),
            gallery,
            f"reference {self.spec.config.reference}",
        ]
