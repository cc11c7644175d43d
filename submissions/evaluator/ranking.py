"""The best images of each query where its vectors are: of blocks of scores only the best leave the device.

A block of products says which images may be among the k best, and in what order, up to its rounding error;
what lies within that error is scored by the definition of `cir_metrics.gallery`, some dozens a query. So the
lists are those of `submissions.rank_file_from_embeddings`, whatever the device and the size of the blocks.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cir_metrics.gallery import pair_scores, threads_of_blas
from cir_metrics.sums import FloatArray, IntArray
from cir_metrics.ties import Ties
from submissions.errors import MethodError
from submissions.rank_file.benchmarks import SUBSET_DEPTH

BLOCK = 256
"""Queries whose scores are held at once by default."""
_SPARE = 8
"""Images beyond the k best that leave the device: rounding may have put them there."""
_PAIRS = 64
"""Products that are scored by the definition at once: their terms fit in a core's cache."""


@dataclass(frozen=True, eq=False)
class TurnPlaces:
    """Where the images that turns rank stand among the columns of a block of scores.

    Args:
        ids: image of each column.
        keys: the turns, in the order of the arrays.
        excluded: column that is not ranked, shape (turns,), -1 for none.
        own: columns of the turn's own gallery, shape (turns, longest), -1 behind its end; None where the
            gallery is common.
        second: columns of its second list, likewise; None where none is asked for.
    """

    ids: list[str]
    keys: list[str]
    excluded: IntArray
    own: IntArray | None
    second: IntArray | None

    @functools.cached_property
    def ties(self) -> Ties:
        """The order of images that a turn scores alike."""
        return Ties(self.ids)


class Products:
    """The scores of vectors: the dot product, of several vectors a row the highest one.

    Args:
        images: float32, of shape (images * each, dimensions).
        each: vectors an image.
    """

    def __init__(self, images: Any, each: int = 1) -> None:
        """See the class."""
        self._images, self.each, self.dimensions = images, each, int(images.shape[1])
        self._longest = float(_lengths(images).max())
        self._held: Any = None  # One block's scores: each is done with before the next is made.

    def block(self, queries: Any, each: int = 1) -> Block:
        """The scores of some queries, shape (queries * each, dimensions)."""
        rows, columns = len(queries) // each, len(self._images) // self.each
        lengths = _lengths(queries).reshape(rows, each).max(axis=1)
        if not lengths.max(initial=0.0) * self._longest < float(np.finfo(np.float32).max):
            raise MethodError(
                "queries and images: their products are too large for float32. Fix: scale them."
            )
        if self._held is None or len(self._held) < len(queries):
            shape = (len(queries), len(self._images))
            whole = isinstance(queries, np.ndarray)
            self._held = np.empty(shape, queries.dtype) if whole else queries.new_empty(shape)
        scores = self._held[: len(queries)]
        multiply = np.matmul if isinstance(queries, np.ndarray) else sys.modules["torch"].mm
        multiply(queries, self._images.T, out=scores)
        if each > 1 or self.each > 1:
            shaped = scores.reshape(rows, each, columns, self.each)
            scores = shaped.max(3).max(1) if isinstance(scores, np.ndarray) else shaped.amax((1, 3))
        terms = queries.shape[1]
        # As `cir_metrics.gallery` bounds it: the product's own error, and that of the definition.
        relative = sum(terms * u / (1 - terms * u) for u in (2.0**-24, 2.0**-53))
        near = relative * lengths * self._longest * (1 + 1e-6) + terms * float(np.finfo(np.float32).tiny)

        def exact(row: IntArray, column: IntArray) -> FloatArray:
            found = np.full(len(row), -np.inf)
            for of_query in range(each):
                for of_image in range(self.each):
                    one = self._exact(queries, row * each + of_query, column * self.each + of_image)
                    np.maximum(found, one, out=found)
            return found

        return Block(scores, near, exact)

    def _exact(self, queries: Any, rows: IntArray, columns: IntArray) -> FloatArray:
        if not on_processor(queries):
            # The same sums of the same terms in another order: two copies of an image tie here, too.
            return _numpy((queries[rows].double() * self._images[columns].double()).sum(1))
        # Views: numpy picks rows in a tenth of the time that torch takes for so few.
        questions, images = _numpy(queries), _numpy(self._images)
        values = np.empty(len(rows), dtype=np.float64)

        def score(share: range) -> None:
            for start in share:
                part = slice(start, start + _PAIRS)
                values[part] = pair_scores(questions[rows[part]], images[columns[part]])

        starts, threads = range(0, len(rows), _PAIRS), threads_of_blas()
        list(_pool().map(score, (starts[thread::threads] for thread in range(threads))))
        return values


@functools.cache
def _pool() -> ThreadPoolExecutor:
    """Threads for pairs, kept: a pool costs more to start than a block's pairs."""
    return ThreadPoolExecutor(threads_of_blas())


@dataclass(frozen=True, eq=False)
class Block:
    """Scores of some queries, and how sure they are.

    Args:
        scores: shape (queries, images), on any device.
        near: the most that a score may differ from its definition, shape (queries,).
        exact: scores of pairs by the definition; None where the scores are their own.
    """

    scores: Any
    near: FloatArray
    exact: Callable[[IntArray, IntArray], FloatArray] | None = None

    def few(self, columns: IntArray, k: int, places: TurnPlaces, rows: IntArray) -> IntArray:
        """The k best of a few columns of each query, -1 behind the last."""
        held = columns >= 0
        taken = _taken(self.scores, np.where(held, columns, 0)).astype(np.float64)
        # What a caller scores at minus infinity is ranked last; what is not there, not at all.
        return self._ordered(np.where(held, taken, np.nan), columns, k, places, rows, np.arange(len(rows)))[0]

    def best(self, k: int, places: TurnPlaces, rows: IntArray) -> IntArray:
        """The k best columns of each query, without what is excluded, -1 behind the last."""
        left_out, width = places.excluded[rows], self.scores.shape[1]
        taken = min(k + _SPARE, width)
        values, columns = _top(self.scores, taken)
        last = values[:, -1].copy()
        values[columns == left_out[:, None]] = np.nan
        found, reached = self._ordered(values, columns, k, places, rows, np.arange(len(rows)))
        if taken == width:
            return found
        # A row may hide one of the best behind what was taken; then all that may be one is looked at.
        for row in np.flatnonzero(~(last < reached - 2 * self.near) | ~np.isfinite(reached)).tolist():
            scores = _numpy(self.scores[row]).astype(np.float64)
            if left_out[row] >= 0:
                scores[left_out[row]] = np.nan
            near = np.flatnonzero(scores >= reached[row] - 2 * self.near[row])
            asked = np.array([row])
            found[row] = self._ordered(scores[None, near], near[None], k, places, rows[asked], asked)[0][0]
        return found

    def _ordered(
        self, values: FloatArray, columns: IntArray, k: int, places: TurnPlaces, rows: IntArray, own: IntArray
    ) -> tuple[IntArray, FloatArray]:
        """The k best of columns of the block's rows `own`; and the k-th score as given.

        Where there is none the score is NaN.
        """
        order = np.argsort(-values, axis=1, kind="stable")  # NaN stands last.
        values, columns = np.take_along_axis(values, order, 1), np.take_along_axis(columns, order, 1)
        kept, error = min(k, values.shape[1]), 2 * self.near[own]
        reached = values[:, kept - 1]
        with np.errstate(invalid="ignore"):
            close = values[:, :-1] - values[:, 1:] <= error[:, None]
            close |= values[:, :-1] == values[:, 1:]  # Infinities, whose difference is NaN.
            close &= ~(values[:, 1:] < (reached - error)[:, None])
        found = np.full((len(values), k), -1, dtype=np.int64)
        found[:, :kept] = np.where(np.isnan(values[:, :kept]), -1, columns[:, :kept])
        touched = np.flatnonzero(close.any(axis=1))
        near = np.zeros((len(touched), values.shape[1]), dtype=np.bool_)
        near[:, :-1] |= close[touched]
        near[:, 1:] |= close[touched]
        values, columns = values[touched], columns[touched]
        if self.exact is not None and touched.size:
            at, place = np.nonzero(near)
            values[at, place] = self.exact(own[touched[at]], columns[at, place])
        order = np.argsort(-values, axis=1, kind="stable")
        sorted_values = np.take_along_axis(values, order, 1)
        best = np.take_along_axis(np.where(np.isnan(values), -1, columns), order, 1)
        found[touched, :kept] = best[:, :kept]
        for tie in np.flatnonzero((sorted_values[:, :-1] == sorted_values[:, 1:]).any(axis=1)).tolist():
            there = ~np.isnan(values[tie])
            key = places.keys[rows[touched[tie]]]
            tied = places.ties.best(columns[tie, there], values[tie, there], k, key)
            found[touched[tie], : len(tied)] = tied
        return found, reached


def ranked(
    blocks: Iterator[Block], places: TurnPlaces, numbers: IntArray, depth: int
) -> tuple[IntArray, IntArray | None]:
    """The rankings of turns as columns, -1 behind the last: the first ones, and the second ones.

    Args:
        blocks: the scores of the turns, block after block.
        places: what is ranked.
        numbers: place of each turn in `places.keys`.
        depth: images a ranking.
    """
    first: list[IntArray] = []
    second: list[IntArray] = []
    start = 0
    for block in blocks:
        rows = numbers[start : start + len(block.near)]
        start += len(rows)
        if places.second is not None:
            second.append(block.few(places.second[rows], SUBSET_DEPTH, places, rows))
        if places.own is not None:
            first.append(block.few(places.own[rows], depth, places, rows))
        else:
            first.append(block.best(depth, places, rows))
    return np.concatenate(first), np.concatenate(second) if second else None


@contextlib.contextmanager
def exact_products() -> Iterator[None]:
    """Products in whole single precision and without gradients, whatever the training around them does."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        yield
        return
    precision = torch.get_float32_matmul_precision()
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        for kind in ("cpu", "cuda"):
            stack.enter_context(torch.autocast(kind, enabled=False))
        torch.set_float32_matmul_precision("highest")
        stack.callback(torch.set_float32_matmul_precision, precision)
        yield


def _lengths(vectors: Any) -> FloatArray:
    """Euclidean length of each row, a little rounded up."""
    if on_processor(vectors):
        lengths = np.sqrt(np.einsum("ij,ij->i", _numpy(vectors), _numpy(vectors)))
    else:
        lengths = _numpy(vectors.norm(dim=1))
    longer: FloatArray = lengths.astype(np.float64) * (1 + vectors.shape[1] * 2.0**-23)
    return longer


def _top(scores: Any, k: int) -> tuple[FloatArray, IntArray]:
    """The k highest scores of each row, highest first, and their columns."""
    if not isinstance(scores, np.ndarray):
        values, columns = scores.topk(k)
        return _numpy(values).astype(np.float64), _numpy(columns)
    columns = np.argpartition(scores, scores.shape[1] - k, axis=1)[:, -k:]
    values = np.take_along_axis(scores, columns, 1).astype(np.float64)
    order = np.argsort(-values, axis=1)
    return np.take_along_axis(values, order, 1), np.take_along_axis(columns, order, 1)


def _taken(scores: Any, columns: IntArray) -> NDArray[Any]:
    if isinstance(scores, np.ndarray):
        return np.take_along_axis(scores, columns, 1)
    torch: Any = sys.modules["torch"]
    return _numpy(scores.gather(1, torch.from_numpy(columns).to(scores.device)))


def on_processor(value: Any) -> bool:
    """Whether an array or tensor lies in the processor's memory."""
    return isinstance(value, np.ndarray) or value.device.type == "cpu"


def _numpy(value: Any) -> NDArray[Any]:
    array: NDArray[Any] = value if isinstance(value, np.ndarray) else value.detach().cpu().numpy()
    return array


def as_numbers(keys: Sequence[str], of: Sequence[str]) -> IntArray:
    """Place of each key among others."""
    place = {key: number for number, key in enumerate(of)}
    return np.array([place[key] for key in keys], dtype=np.int64)
