"""Over which images a query's rankings are: the common gallery, or the query's own list of images.

A benchmark asks one ranking a query, or two. The first is over the common gallery or, where the card says
`gallery: per_query`, over the query's own list (`gallery_image_ids`). The second, where there is one, is over
another list of the query's own: CIRR's subset of six. Lists may have any length, and another for each query.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cir_datasets.rows import distinct, list_lengths, numbers
from cir_metrics.catalogue import reads_subset

if TYPE_CHECKING:
    import pyarrow as pa

    from cir_datasets.registry.cards import BenchmarkSpec

GALLERY, SUBSET = "gallery_image_ids", "subset_image_ids"
"""The fields of a row that hold a list of the query's own."""


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
    own = GALLERY if spec.per_query else ""
    on_board = any(not reads_subset(metric) for metric in spec.metrics)
    return AskedRanking(own, spec.config.reference == "removed", on_board)


def second_ranking(spec: BenchmarkSpec) -> AskedRanking | None:
    """The ranking of `subset_rankings`, or None where queries have no second list."""
    if spec.config.subset is None:
        return None
    return AskedRanking(SUBSET, removes_reference=True, on_board=any(map(reads_subset, spec.metrics)))


def second_on_board(spec: BenchmarkSpec) -> AskedRanking | None:
    """`second_ranking` where the board shows a metric of it, else None: what a method has to make."""
    second = second_ranking(spec)
    return second if second is not None and second.on_board else None


class OwnLists:
    """The list of images that each query ranks, all of them as numbers.

    Args:
        query_ids: ids of the queries.
        lists: the column of their lists.
        left_out: the image of each query that is not ranked, or null; None where all are.

    Example:
        >>> import pyarrow as pa
        >>> lists = OwnLists(["1", "2"], pa.chunked_array([[["a", "b"], ["b"]]]))
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
        own = self._codes[self._starts[place] : self._starts[place + 1]]
        named = list(images)
        codes = np.array([self._code.get(image, -1) for image in named], dtype=np.int64)
        return {named[at] for at in np.flatnonzero(~np.isin(codes, own)).tolist()}

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
