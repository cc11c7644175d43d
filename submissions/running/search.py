"""Search: the best images of a gallery for query vectors, exactly, or by an approximate index that is named.

`exact` is `cir_metrics.gallery`: blocked products and a definition of the score that knows ties. The others
are indexes of FAISS. An index only chooses candidates; `cir_metrics.gallery` orders them like any other
images, and how many of the exact answers they hold is measured and said in the rank file. A query for which
an index has too few candidates is searched exactly.

Images that were skipped have no score. They stay in the gallery, behind all images that were seen, ordered as
images that tie; among them ties count against the target, so that a skipped target's rank is the number of
ranked images.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cir_datasets.errors import missing_extra
from cir_metrics.errors import UnknownNameError
from cir_metrics.gallery import Gallery, pair_scores
from cir_metrics.ranking import best_of
from cir_metrics.sums import exact_mean
from cir_metrics.ties import Ties, check_query_ids
from submissions.errors import MethodError

if TYPE_CHECKING:
    from submissions.methods.composing import Vectors

Targets = NDArray[np.int64] | list[NDArray[np.int64]]
"""The gallery row of each query's target; or for each query an array of several."""

SEARCHES = ("exact", "flat", "hnsw", "ivfpq")
"""Names of the ways to search, in the order of tables."""

MEASURED = 1000
"""Queries on which an index is compared with exact search, at most."""

_STEP = 2048
"""Queries between two reports of progress."""
_SPARE = 16
"""Candidates beyond k that an index is asked for: rounding and skipped references take some."""
_HNSW_LINKS, _HNSW_BUILD, _HNSW_SEARCH = 32, 200, 128
_IVF_PROBES, _PQ_BITS, _PQ_DIMENSIONS = 16, 8, 8


@dataclass(frozen=True)
class Ranked:
    """What a search found.

    Args:
        rankings: one list of image ids a query, best first.
        how: the search's name and, of an index, its settings.
        recall: share of the exact answers that the rankings hold; None where the search is exact.
        measured: number of queries that `recall` is the mean of.
        ranks: exact rank of each query's best target, whatever the search; None where no targets were given.
    """

    rankings: list[list[str]]
    how: str = "exact"
    recall: float | None = None
    measured: int = 0
    ranks: NDArray[np.int64] | None = None

    def note(self, k: int) -> str:
        """Settings and recall, for the rank file and the signature; empty where the search is exact.

        Args:
            k: images a ranking.

        Example:
            >>> Ranked([], "flat (FAISS)", 0.99975, 300).note(50)
            'flat (FAISS), recall@50 0.9998 over 300 queries'
        """
        if self.recall is None:
            return ""
        # Never rounded up to a perfect score that was not measured.
        shown = min(round(self.recall, 4), 0.9999) if self.recall < 1 else 1.0
        return f"{self.how}, recall@{k} {shown:.4f} over {self.measured:,} queries"


def check_search(name: str) -> None:
    """Raise unless a search has that name.

    Raises:
        UnknownNameError: none has.
    """
    if name not in SEARCHES:
        raise UnknownNameError.of("search", name, SEARCHES)


class Searcher:
    """A gallery of vectors, indexed once and searched many times.

    Args:
        vectors: shape (images, dimensions), float32.
        ids: image id of each row.
        how: one of `SEARCHES`.
        missing: ids of the images that were skipped; their rows are not looked at.

    Raises:
        UnknownNameError: no search has that name.
        MissingExtraError: an index is asked for, and FAISS is not installed.
        MethodError: the gallery is too small for the index.

    Example:
        >>> found = Searcher(np.eye(3, dtype=np.float32), ["a", "b", "c"])
        >>> found.search(np.array([[0.1, 0.9, 0.2]], dtype=np.float32), 2).rankings
        [['b', 'c']]
    """

    def __init__(
        self,
        vectors: Vectors,
        ids: Sequence[str],
        how: str = "exact",
        *,
        missing: frozenset[str] = frozenset(),
    ) -> None:
        """See the class."""
        check_search(how)
        self._ids = ids
        self._missing = [image for image in ids if image in missing]
        self._missing_ties = Ties(self._missing)
        seen = [row for row, image in enumerate(ids) if image not in missing]
        # Row of each image among those that were seen, -1 for the skipped.
        self._place = np.full(len(ids), -1, dtype=np.int64)
        self._place[seen] = np.arange(len(seen))
        # Where none is missing a memory map stays one.
        self._vectors = vectors[seen] if self._missing else vectors
        self._seen = [ids[row] for row in seen]
        self._gallery = Gallery(self._vectors, self._seen) if seen else None
        self._index: Any = None
        self._how = how
        if how != "exact" and seen:
            self._index, self._how = _indexed(self._vectors, how)

    def search(
        self,
        queries: Vectors,
        k: int,
        *,
        query_ids: Sequence[str] | None = None,
        excluded: NDArray[np.int64] | None = None,
        targets: Targets | None = None,
        advance: Callable[[int], object] = lambda count: None,
    ) -> Ranked:
        """The k best images of each query, and the exact rank of its target.

        Args:
            queries: shape (queries, dimensions), float32.
            k: images a query; all that are ranked where there are fewer.
            query_ids: id of each query; its ties depend on it. None: the queries' numbers, from 0.
            excluded: gallery row that is not ranked in each query, -1 for none.
            targets: gallery row of each query's target, or an array of the rows of several, of which the best
                is ranked; ties with other images count against it.
            advance: called with the number of queries that were searched, as it goes.

        Returns:
            The rankings; the same vectors give the same rankings on the same machine.
        """
        left_out, query_ids = _left_out(excluded, len(queries)), check_query_ids(query_ids, len(queries))
        rankings: list[list[str]] = []
        ranks: list[NDArray[np.int64]] = []
        for start in range(0, len(queries), _STEP):
            part = slice(start, start + _STEP)
            wanted = None if targets is None else targets[part]
            asked = queries[part], k, query_ids[part], left_out[part]
            if self._index is None:
                found, placed = self._exact(*asked, wanted)
            else:
                found = self._by_index(*asked)
                placed = self._exact(queries[part], None, (), left_out[part], wanted)[1]
            rankings += found
            ranks += [] if placed is None else [placed]
            advance(len(queries[part]))
        if self._index is None or not rankings:
            return Ranked(rankings, ranks=_joined(targets, ranks))
        sample = np.unique(np.linspace(0, len(queries) - 1, min(MEASURED, len(queries))).astype(np.int64))
        exact, _ = self._exact(
            queries[sample], k, [query_ids[query] for query in sample.tolist()], left_out[sample]
        )
        held = [
            len(set(rankings[query]) & set(wanted)) / len(wanted)
            for query, wanted in zip(sample, exact, strict=True)
            if wanted
        ]
        recall = exact_mean(held) if held else 1.0
        return Ranked(rankings, self._how, recall, len(sample), _joined(targets, ranks))

    def best_rows(
        self,
        queries: Vectors,
        k: int,
        excluded: NDArray[np.int64] | None = None,
        *,
        query_ids: Sequence[str] | None = None,
    ) -> list[NDArray[np.int64]]:
        """The gallery rows of the k best images of each query by exact search, best first."""
        if not len(queries):
            return []
        named = check_query_ids(query_ids, len(queries))
        found, _ = self._exact(queries, k, named, _left_out(excluded, len(queries)))
        return [np.array([self._row[image] for image in ranking], dtype=np.int64) for ranking in found]

    def order(self, query: Vectors, images: Sequence[str], k: int, query_id: str = "0") -> list[str]:
        """The k best of a few images for one query, best first.

        Args:
            query: shape (dimensions,).
            images: ids of the gallery.
            k: images; all where there are fewer.
            query_id: the query's id; its ties depend on it.
        """
        places = [int(self._place[self._row[image]]) for image in images]
        rows = [place for place in places if place >= 0]
        # Without scores they all tie.
        skipped = dict.fromkeys((image for image, place in zip(images, places, strict=True) if place < 0), 0)
        behind = best_of(skipped, k, query_id)
        if not rows:
            return behind
        few = Gallery(self._vectors[rows], [self._seen[row] for row in rows])
        return [*few.top_k(query[None], k, query_ids=[query_id])[0], *behind][:k]

    def scores(self, query: Vectors, images: Sequence[str]) -> list[float]:
        """The score of images for one query; it ends where the first stands that was skipped.

        Args:
            query: shape (dimensions,).
            images: ids of the gallery, best first, so that the skipped come last.
        """
        places = [int(self._place[self._row[image]]) for image in images]
        seen = places[: places.index(-1)] if -1 in places else places
        repeated = np.broadcast_to(query, (len(seen), len(query)))
        return pair_scores(repeated, self._vectors[seen]).tolist() if seen else []

    @functools.cached_property
    def _row(self) -> dict[str, int]:
        return {image: row for row, image in enumerate(self._ids)}

    def _exact(
        self,
        queries: Vectors,
        k: int | None,
        query_ids: Sequence[str],
        excluded: NDArray[np.int64],
        targets: Targets | None = None,
    ) -> tuple[list[list[str]], NDArray[np.int64] | None]:
        """Rankings by exact search, and the ranks of the targets; the skipped images come last."""
        if k is None and targets is None:
            return [], None
        if self._gallery is not None and not self._missing:
            found = self._gallery.search(queries, k, query_ids=query_ids, targets=targets, excluded=excluded)
            return found.rankings or [], found.best_ranks
        left_out = self._among_seen(excluded)
        rankings: list[list[str]] = [[] for _ in queries]
        if k is not None and self._gallery is not None:
            rankings = self._gallery.top_k(queries, k, query_ids=query_ids, excluded=left_out)
        ranks = None
        if targets is not None:
            ranks = len(self._ids) - (excluded >= 0).astype(np.int64)
            own = [self._place[np.atleast_1d(rows)] for rows in targets]
            own = [places[places >= 0] for places in own]
            seen = np.flatnonzero([len(places) > 0 for places in own])
            if seen.size and self._gallery is not None:
                wanted = [own[query] for query in seen.tolist()]
                ranks[seen] = self._gallery.best_target_ranks(queries[seen], wanted, excluded=left_out[seen])
        return rankings if k is None else self._filled(rankings, k, query_ids, excluded), ranks

    def _filled(
        self, rankings: list[list[str]], k: int, query_ids: Sequence[str], excluded: NDArray[np.int64]
    ) -> list[list[str]]:
        """Rankings of images that were seen, with the skipped behind them up to k."""
        if not self._missing:
            return rankings
        everything = np.arange(len(self._missing))
        filled = []
        for ranking, query_id, row in zip(rankings, query_ids, excluded.tolist(), strict=True):
            if len(ranking) < k:
                without = None if row < 0 else self._ids[row]
                order = np.argsort(self._missing_ties.keys([query_id], everything)).tolist()
                behind = (self._missing[place] for place in order)
                ranking = [*ranking, *(image for image in behind if image != without)][:k]
            filled.append(ranking)
        return filled

    def _among_seen(self, excluded: NDArray[np.int64]) -> NDArray[np.int64]:
        """The excluded rows as rows of the images that were seen, -1 for none."""
        if not self._missing:
            return excluded
        found: NDArray[np.int64] = np.where(excluded >= 0, self._place[excluded], -1)
        return found

    def _by_index(
        self, queries: Vectors, k: int, query_ids: Sequence[str], excluded: NDArray[np.int64]
    ) -> list[list[str]]:
        wanted = min(len(self._seen), 2 * k + _SPARE)
        _, rows = self._index.search(np.ascontiguousarray(queries), wanted)
        rankings: list[list[str]] = []
        dropped = self._among_seen(excluded)
        for query, query_id, found, left_out in zip(queries, query_ids, rows, dropped, strict=True):
            candidates = np.unique(found[(found >= 0) & (found != left_out)])
            if not len(candidates):
                rankings.append([])
                continue
            few = Gallery(self._vectors[candidates], [self._seen[row] for row in candidates])
            rankings += few.top_k(query[None], k, query_ids=[query_id])
        lengths = np.minimum(k, len(self._seen) - (dropped >= 0))
        short = np.flatnonzero([len(ranking) for ranking in rankings] < lengths)
        filled = self._filled(rankings, k, query_ids, excluded)
        if short.size:
            asked = [query_ids[place] for place in short.tolist()]
            whole, _ = self._exact(queries[short], k, asked, excluded[short])
            for place, ranking in zip(short, whole, strict=True):
                filled[place] = ranking
        return filled


def _left_out(excluded: NDArray[np.int64] | None, count: int) -> NDArray[np.int64]:
    return np.full(count, -1, dtype=np.int64) if excluded is None else np.asarray(excluded)


def _joined(targets: Targets | None, ranks: list[NDArray[np.int64]]) -> NDArray[np.int64] | None:
    return None if targets is None else np.concatenate([*ranks, np.empty(0, dtype=np.int64)])


def _indexed(vectors: Vectors, how: str) -> tuple[Any, str]:
    """An index of FAISS over the vectors, and its settings in words."""
    try:
        import faiss
    except ImportError as error:
        raise missing_extra(f"the search {how}", "FAISS", "retrieval", "search exactly") from error
    images, dimensions = vectors.shape
    threads = faiss.omp_get_max_threads()
    index: Any
    if how == "flat":
        index, words = faiss.IndexFlatIP(dimensions), "flat (FAISS)"
    elif how == "hnsw":
        index = faiss.IndexHNSWFlat(dimensions, _HNSW_LINKS, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction, index.hnsw.efSearch = _HNSW_BUILD, _HNSW_SEARCH
        words = f"hnsw (FAISS, {_HNSW_LINKS} links, {_HNSW_BUILD} built, {_HNSW_SEARCH} searched)"
    else:
        index, words = _ivfpq(faiss, images, dimensions)
    # In several threads the graph, and so the answer, would differ from one building to the next.
    faiss.omp_set_num_threads(1)
    try:
        held = np.ascontiguousarray(vectors)
        if not index.is_trained:
            index.train(held)
        index.add(held)
    finally:
        faiss.omp_set_num_threads(threads)
    return index, words


def _ivfpq(faiss: Any, images: int, dimensions: int) -> tuple[Any, str]:
    least = 2**_PQ_BITS
    if images < least:
        raise MethodError(
            f"ivfpq learns {least} codes, and the gallery has {images} images. Fix: use exact search or hnsw."
        )
    lists = max(1, min(int(4 * np.sqrt(images)), images // 39))
    pieces = next(n for n in range(max(1, dimensions // _PQ_DIMENSIONS), 0, -1) if dimensions % n == 0)
    coarse = faiss.IndexFlatIP(dimensions)
    index = faiss.IndexIVFPQ(coarse, dimensions, lists, pieces, _PQ_BITS, faiss.METRIC_INNER_PRODUCT)
    index.nprobe = min(_IVF_PROBES, lists)
    # The recall that is measured says what a small gallery does to it; FAISS would write warnings instead.
    index.cp.min_points_per_centroid = index.pq.cp.min_points_per_centroid = 1
    return index, f"ivfpq (FAISS, {lists} lists, {index.nprobe} probed, {pieces} codes of {_PQ_BITS} bits)"
