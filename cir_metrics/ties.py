"""The order of images that a query scores alike: by a hash of query and image, for every list that is made.

An order by id or by place in the gallery would give targets away: constant scores would find every one whose
id comes early. By the hash, a method that knows nothing scores what chance does.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cir_metrics.errors import InputError
from cir_metrics.ids import check_ids
from cir_metrics.sums import IntArray

Keys = NDArray[np.uint64]


def tie_keys(query_id: str, image_ids: Sequence[str]) -> Keys:
    """A number for each image that orders those which one query scores alike: the lowest comes first.

    key(q, g) = mix(h(q) xor h(g)), with h the first 64 bits of BLAKE2b over the id in UTF-8 (queries and
    images are hashed apart) and mix the finaliser of splitmix64 (Steele, Lea and Flood, OOPSLA 2014). Whole
    numbers only, so that every machine makes the same. Each image has the same chance of each place: over
    many queries no id does better than another.

    Args:
        query_id: the query's id; of a turn `SESSION#TURN`.
        image_ids: ids of images.

    Returns:
        uint64, shape (n_images,); two images share a key once in 2**64 pairs.

    Example:
        >>> tie_keys("q1", ["a", "b"]).argsort().tolist(), tie_keys("q2", ["a", "b"]).argsort().tolist()
        ([0, 1], [1, 0])
    """
    return _mixed(_hashes(image_ids, b"image") ^ _hashes([query_id], b"query"))


class Ties:
    """`tie_keys` for a gallery that many queries rank: its images are hashed once, when the first ones tie.

    Args:
        image_ids: id of each gallery row.

    Example:
        >>> ties = Ties(["a", "b"])
        >>> (ties.keys(["q1"], np.array([0, 1])) == tie_keys("q1", ["a", "b"])).all()
        np.True_
    """

    def __init__(self, image_ids: Sequence[str]) -> None:
        """Nothing is hashed yet."""
        self._ids = image_ids

    @functools.cached_property
    def _image_hashes(self) -> Keys:
        return _hashes(self._ids, b"image")

    def keys(self, query_ids: Sequence[str], rows: IntArray, queries: IntArray | None = None) -> Keys:
        """The keys of gallery rows.

        Args:
            query_ids: ids of queries.
            rows: gallery rows, shape (n,).
            queries: place in `query_ids` of each row's query, shape (n,); None where there is one query.

        Returns:
            uint64, shape (n,).
        """
        asked = _hashes(query_ids, b"query")
        return _mixed(self._image_hashes[rows] ^ (asked if queries is None else asked[queries]))

    def best(self, rows: IntArray, scores: NDArray[Any], k: int, query_id: str) -> IntArray:
        """The k best of one query's gallery rows, best first, equal scores by their keys.

        Args:
            rows: gallery rows, shape (n,).
            scores: score of each, shape (n,).
            k: rows, 1 or more; all where there are fewer.
            query_id: the query's id.

        Example:
            >>> Ties(["b", "a", "c"]).best(np.array([0, 1, 2]), np.array([0.5, 0.5, 0.9]), 3, "q1")
            array([2, 1, 0])
        """
        if k < len(rows):
            # The k-th best score: everything above it is in, and of its equals the first by their keys.
            threshold = np.partition(scores, len(rows) - k)[len(rows) - k]
            above, level = np.flatnonzero(scores > threshold), np.flatnonzero(scores == threshold)
            wanted = k - len(above)
            if wanted < len(level):
                level = level[np.argpartition(self.keys([query_id], rows[level]), wanted - 1)[:wanted]]
            chosen = np.concatenate([above, level])
            rows, scores = rows[chosen], scores[chosen]
        order = scores.argsort()[::-1]
        if (scores[order[1:]] == scores[order[:-1]]).any():
            # The lowest key first: with its bits inverted, as the order is turned round.
            order = np.lexsort((~self.keys([query_id], rows), scores))[::-1]
        best: IntArray = rows[order]
        return best


def _hashes(ids: Sequence[str], kind: bytes) -> Keys:
    """64 bits of each id; an id that is a query's and an image's has two hashes."""
    salted = hashlib.blake2b(digest_size=8, person=b"cir-" + kind)
    digests = []
    for each in ids:
        one = salted.copy()
        one.update(each.encode("utf-8", "surrogatepass"))
        digests.append(one.digest())
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


def _mixed(keys: Keys) -> Keys:
    """The finaliser of splitmix64: every bit of the result depends on every bit."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))


def check_query_ids(query_ids: Sequence[str] | None, n_queries: int) -> Sequence[str]:
    """The ids that break the ties of each query: the rows' numbers where none were given.

    Raises:
        InputError: not one id a query.

    Example:
        >>> check_query_ids(None, 2)
        ['0', '1']
    """
    if query_ids is None:
        return [str(number) for number in range(n_queries)]
    ids = check_ids(query_ids, "query_ids", what="list", of="a query", allow_empty=True, distinct=False)
    if len(ids) != n_queries:
        raise InputError(
            f"query_ids is {len(ids)} ids, with {n_queries} queries. Fix: give each query its own."
        )
    return ids
