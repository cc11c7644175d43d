"""The best images of each query where its vectors are: of blocks of scores only the best leave the device.

A block of products says which images may be among the k best, and in what order, up to its rounding error;
what lies within that error is scored by the definition of `cir_metrics.gallery`, some dozens a query. So the
lists are those of `submissions.rank_file_from_embeddings`, whatever the device and the size of the blocks.

Metrics ask where a few judged images stand. Images that are near each other and near none of these may change
places without a change of a number: their order waits until somebody wants the lists.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cir_metrics.gallery import pair_scores, threads_of_blas
from cir_metrics.sums import BoolArray, FloatArray, IntArray
from cir_metrics.ties import Ties
from submissions.errors import MethodError
from submissions.rank_file.benchmarks import SUBSET_DEPTH

SCORES = 1_600_000
"""Scores that are held at once by default, or those of one query."""
_GROUPS = (16, 8, 4)
"""Images whose best stands for all while the k best are bounded: the first of which there are enough."""
_ROOMY = 4
"""Groups for each of the k best, at least."""
_CROWD = 2**17
"""Candidates that are held at once, unless those of one row are more."""
_PAIRS = 64
"""Products that are scored by the definition at once: their terms fit in a core's cache."""

_LATER = 64
"""Images a list that may wait; where there are more, most of them are alike, and all are ordered at once."""
_LOST = 1e-30
"""Squares of lengths of which float32 loses terms: below that they are summed in double precision."""

Exact = Callable[[IntArray, IntArray], FloatArray]
"""The scores of pairs of a query's row and an image's column by the definition."""


@dataclass(frozen=True, eq=False)
class TurnPlaces:
    """Where the images that turns rank stand among the columns of a block of scores.

    Args:
        ids: image of each column.
        keys: the turns, in the order of the arrays.
        excluded: column that is not ranked, shape (turns,), -1 for none.
        judged: columns that metrics ask for, shape (turns, longest), -1 behind the last.
        own: columns of the turn's own gallery, likewise; None where the gallery is common.
        second: columns of its second list, likewise; None where none is asked for.
    """

    ids: list[str]
    keys: list[str]
    excluded: IntArray
    judged: IntArray
    own: IntArray | None
    second: IntArray | None

    @functools.cached_property
    def ties(self) -> Ties:
        """The order of images that a turn scores alike."""
        return Ties(self.ids)


class Block(NamedTuple):
    """Scores of some queries, and how sure they are.

    Args:
        scores: shape (queries, images); an array, or a tensor on a device.
        near: the most that a score may differ from its definition, shape (queries,).
    """

    scores: Any
    near: FloatArray


class Products:
    """The scores of vectors: the dot product, of several vectors a row the highest one.

    Args:
        queries: float32, of shape (queries * of_query, dimensions); an array, or a tensor on a device.
        images: likewise, (images * of_image, dimensions).
        of_query: vectors a query.
        of_image: vectors an image.

    Raises:
        MethodError: a product may be too large for float32.
    """

    def __init__(self, queries: Any, images: Any, of_query: int = 1, of_image: int = 1) -> None:
        """See the class."""
        self._queries, self._images = queries, images
        self._of_query, self._of_image = of_query, of_image
        longest = float(_lengths(images).max())
        lengths = _lengths(queries).reshape(-1, of_query).max(axis=1)
        if not lengths.max(initial=0.0) * longest < float(np.finfo(np.float32).max):
            raise MethodError(
                "queries and images: their products are too large for float32. Fix: scale them."
            )
        terms = queries.shape[1]
        # As `cir_metrics.gallery` bounds it: the product's own error, and that of the definition.
        relative = sum(terms * u / (1 - terms * u) for u in (2.0**-24, 2.0**-53))
        self._near = relative * lengths * longest * (1 + 1e-6) + terms * float(np.finfo(np.float32).tiny)

    def blocks(self, size: int) -> Iterator[Block]:
        """The scores of all queries; each block's are done with before the next one's are made."""
        each, columns = self._of_query, len(self._images) // self._of_image
        step = max(1, size // (each * self._of_image))
        shape = (min(step * each, len(self._queries)), len(self._images))
        here = isinstance(self._queries, np.ndarray)
        held: Any = np.empty(shape, np.float32) if here else self._queries.new_empty(shape)
        multiply = np.matmul if here else sys.modules["torch"].mm
        for start in range(0, len(self._near), step):
            near = self._near[start : start + step]
            scores = held[: len(near) * each]
            multiply(self._queries[start * each : (start + step) * each], self._images.T, out=scores)
            if each > 1 or self._of_image > 1:
                shaped = scores.reshape(len(near), each, columns, self._of_image)
                scores = shaped.max(axis=(1, 3)) if here else shaped.amax((1, 3))
            yield Block(scores, near)

    def exact(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """The scores of pairs by the definition."""
        best = np.full(len(rows), -np.inf)
        for of_query in range(self._of_query):
            for of_image in range(self._of_image):
                pairs = rows * self._of_query + of_query, columns * self._of_image + of_image
                np.maximum(best, self._scored(*pairs), out=best)
        return best

    def _scored(self, rows: IntArray, columns: IntArray) -> FloatArray:
        queries, images = self._queries, self._images
        if not isinstance(queries, np.ndarray):
            # The same sums of the same terms in another order: two copies of an image tie here, too.
            return from_device((queries[rows].double() * images[columns].double()).sum(1))
        values = np.empty(len(rows), dtype=np.float64)
        for start in range(0, len(rows), _PAIRS):
            part = slice(start, start + _PAIRS)
            values[part] = pair_scores(queries[rows[part]], images[columns[part]])
        return values


class Waiting(NamedTuple):
    """Images near each other, in lists one behind the other, whose order is not looked at yet.

    Args:
        rows: list of each, ascending.
        places: place in it, ascending.
        columns: which image stands there.
        runs: number of the run of images that are near, ascending.
    """

    rows: IntArray
    places: IntArray
    columns: IntArray
    runs: IntArray

    def picked(self, mask: BoolArray) -> Waiting:
        """Some of them."""
        return Waiting(*(values[mask] for values in self))


@dataclass(frozen=True, eq=False)
class RankedColumns:
    """Rankings as columns, best first.

    Args:
        columns: shape (turns, k), -1 behind the last.
        waiting: whose order may change.
    """

    columns: IntArray
    waiting: Waiting

    def settled(self, exact: Exact, places: TurnPlaces, turns: IntArray) -> RankedColumns:
        """The lists in their final order."""
        near, columns = self.waiting, self.columns.copy()
        step = -(-len(near.rows) // threads_of_blas()) or 1
        parts = [slice(at, at + step) for at in range(0, len(near.rows), step)]
        with ThreadPoolExecutor(threads_of_blas()) as pool:
            scores = list(pool.map(lambda part: exact(near.rows[part], near.columns[part]), parts))
        _settle(columns, near, np.concatenate([np.empty(0), *scores]), places, turns)
        return RankedColumns(columns, near.picked(np.zeros(len(near.rows), dtype=np.bool_)))


def ranked(
    blocks: Iterable[Block], places: TurnPlaces, turns: IntArray, depth: int, exact: Exact | None = None
) -> tuple[RankedColumns, RankedColumns | None]:
    """First and second rankings of turns, in which judged images have their final places.

    Args:
        blocks: the scores of the turns, block after block.
        places: what is ranked.
        turns: place of each turn in `places.keys`.
        depth: images a ranking.
        exact: scores by the definition; None where the scores are their own, and all lists are final.
    """
    lists: list[tuple[RankedColumns, RankedColumns | None]] = []
    start = 0
    for block in blocks:
        # One thread: several would wait for each other between the small steps.
        part = slice(0, len(block.near))
        lists.append(_ranked_part(block, start, places, turns, depth, exact, part))
        start += len(block.near)
    return _joined(lists)


def _ranked_part(
    block: Block,
    start: int,
    places: TurnPlaces,
    turns: IntArray,
    depth: int,
    exact: Exact | None,
    part: slice,
) -> tuple[RankedColumns, RankedColumns | None]:
    """Rankings of some rows of a block, whose first row is the turn `start`."""
    some = Block(block.scores[part], block.near[part])
    first_row = start + part.start
    asked = turns[first_row : first_row + len(some.near)]
    order = functools.partial(_ordered, some.near, places, asked, first_row, exact)
    if places.own is None:
        best = _best(some, depth, places.excluded[asked])
        if best is None:
            stop = part.start + len(some.near)
            middle = (part.start + stop) // 2
            halves = slice(part.start, middle), slice(middle, stop)
            return _joined([_ranked_part(block, start, places, turns, depth, exact, half) for half in halves])
        first = order(*best, depth)
    else:
        first = order(*_few(some.scores, places.own[asked]), depth)
    if places.second is None:
        return first, None
    return first, order(*_few(some.scores, places.second[asked]), SUBSET_DEPTH)


def _few(scores: Any, columns: IntArray) -> tuple[FloatArray, IntArray]:
    """The scores of a few columns of each row, NaN where there is none, and these columns."""
    there = columns >= 0
    # What a caller scores at minus infinity is ranked last; what is not there, not at all.
    return np.where(there, _taken(scores, np.where(there, columns, 0)).astype(np.float64), np.nan), columns


def _best(block: Block, k: int, left_out: IntArray) -> tuple[FloatArray, IntArray] | None:
    """Scores and columns of all that may be among the k best of each row; NaN behind the last.

    Of a model that finds all images alike these are all: None where they are too many to be held at once.
    """
    scores, wanted = block.scores, min(k + 1, block.scores.shape[1])  # One may be left out.
    there: Any
    if isinstance(scores, np.ndarray):
        there = scores >= _below(_reached(scores, wanted), block.near)[:, None]
        count = int(np.count_nonzero(there))
    else:
        low = _below(from_device(scores.topk(wanted).values[:, -1]), block.near)
        there = scores >= sys.modules["torch"].as_tensor(low, device=scores.device)[:, None]
        count = int(there.sum())
    if count > _CROWD and len(scores) > 1:
        return None
    if isinstance(there, np.ndarray):
        flat = np.flatnonzero(there)
        rows, columns = np.divmod(flat, scores.shape[1])
        values = scores.reshape(-1)[flat].astype(np.float64)
    else:
        pairs = there.nonzero()
        values = from_device(scores[pairs[:, 0], pairs[:, 1]]).astype(np.float64)
        rows, columns = from_device(pairs).T
    ranks = columns != left_out[rows]
    rows, columns, values = rows[ranks], columns[ranks], values[ranks]
    counts = np.bincount(rows, minlength=len(left_out))
    places = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    shape = (len(left_out), int(counts.max(initial=1)))
    every, of = np.full(shape, np.nan), np.full(shape, -1, dtype=np.int64)
    every[rows, places], of[rows, places] = values, columns
    return every, of


def _reached(scores: NDArray[Any], wanted: int) -> NDArray[Any]:
    """The k-th best score of each row, or a little less."""
    groups = next((each for each in _GROUPS if scores.shape[1] // each >= _ROOMY * wanted), 1)
    width = scores.shape[1] // groups
    # The best of each group are scores of different images: the k-th best of these lies little below the k-th
    # best of all, and takes a fraction of the time to find.
    if groups > 1:
        scores = scores[:, : width * groups].reshape(len(scores), groups, width).max(axis=1)
    reached: NDArray[Any] = np.partition(scores, width - wanted, axis=1)[:, width - wanted]
    return reached


def _below(reached: NDArray[Any], near: FloatArray) -> NDArray[Any]:
    """The least that a score may be, in its own type, where `reached` is the k-th best or less."""
    kind = reached.dtype.type
    low: NDArray[Any] = np.nextafter((reached - 2 * near).astype(kind), kind(-np.inf))
    return low


def _ordered(
    near: FloatArray,
    places: TurnPlaces,
    turns: IntArray,
    start: int,
    exact: Exact | None,
    values: FloatArray,
    columns: IntArray,
    k: int,
) -> RankedColumns:
    """The k best of candidates of each row; rows of what waits are counted from `start`."""
    order = np.argsort(-values, axis=1)  # NaN stands last.
    values, columns = np.take_along_axis(values, order, 1), np.take_along_axis(columns, order, 1)
    kept, error = min(k, values.shape[1]), 2 * near[:, None]
    with np.errstate(invalid="ignore"):
        close = values[:, :-1] - values[:, 1:] <= error
        close |= values[:, :-1] == values[:, 1:]  # Infinities, whose difference is NaN.
        close &= ~(values[:, 1:] < values[:, kept - 1, None] - error)
    lists = np.full((len(values), k), -1, dtype=np.int64)
    lists[:, :kept] = np.where(np.isnan(values[:, :kept]), -1, columns[:, :kept])
    member = np.zeros(values.shape, dtype=np.bool_)
    member[:, :-1] |= close
    member[:, 1:] |= close
    rows, at = np.nonzero(member)
    begins = (at == 0) | ~close[rows, at - 1]
    all_near = Waiting(rows, at, columns[rows, at], np.cumsum(begins))
    now = np.ones(len(rows), dtype=np.bool_)
    if exact is not None and len(rows) <= _LATER * len(values):
        now = _of_judged(all_near, places.judged[turns], len(places.ids))
    some = all_near.picked(now)
    scores = values[rows[now], at[now]] if exact is None else exact(some.rows + start, some.columns)
    _settle(lists, some, scores, places, turns)
    later = all_near.picked(~now)
    return RankedColumns(lists, later._replace(rows=later.rows + start))


def _of_judged(near: Waiting, judged: IntArray, n_images: int) -> BoolArray:
    """Whether a judged image is in the run of each."""
    table = np.zeros((len(judged), n_images), dtype=np.bool_)
    rows, at = np.nonzero(judged >= 0)
    table[rows, judged[rows, at]] = True
    runs = np.zeros(len(near.runs) + 1, dtype=np.bool_)
    runs[near.runs[table[near.rows, near.columns]]] = True
    of_judged: BoolArray = runs[near.runs]
    return of_judged


def _settle(lists: IntArray, near: Waiting, scores: FloatArray, places: TurnPlaces, turns: IntArray) -> None:
    """Put runs of images in the order of their scores; equal ones by their keys."""
    order = np.lexsort((-scores, near.runs))
    runs, levels = near.runs[order], scores[order]
    ties = np.zeros(len(order), dtype=np.bool_)
    ties[1:] = (runs[1:] == runs[:-1]) & (levels[1:] == levels[:-1])
    ties[:-1] |= ties[1:]
    if ties.any():
        tied = order[ties]
        rows, of = np.unique(near.rows[tied], return_inverse=True)
        keys = np.zeros(len(order), dtype=np.uint64)
        keys[tied] = places.ties.keys([places.keys[turn] for turn in turns[rows]], near.columns[tied], of)
        order = np.lexsort((keys, -scores, near.runs))
    kept = near.places < lists.shape[1]
    lists[near.rows[kept], near.places[kept]] = near.columns[order][kept]


def _joined(
    parts: Sequence[tuple[RankedColumns, RankedColumns | None]],
) -> tuple[RankedColumns, RankedColumns | None]:
    """First and second rankings of parts, one behind the other."""
    first, second = zip(*parts, strict=True)
    return _stacked(first), None if second[0] is None else _stacked(second)


def _stacked(parts: Sequence[RankedColumns]) -> RankedColumns:
    waiting, runs = [], 0
    for part in parts:
        waiting.append(part.waiting._replace(runs=part.waiting.runs + runs))
        runs += int(part.waiting.runs.max(initial=0))
    columns = np.concatenate([part.columns for part in parts])
    return RankedColumns(columns, Waiting(*map(np.concatenate, zip(*waiting, strict=True))))


@contextlib.contextmanager
def exact_products() -> Iterator[None]:
    """Products in whole single precision and without gradients, whatever the training around them does."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        yield
        return
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        for kind in ("cpu", "cuda"):
            stack.enter_context(torch.autocast(kind, enabled=False))
        if hasattr(torch.backends.cuda.matmul, "fp32_precision"):
            # Where a training used this form, torch refuses to tell the older one.
            for products in (torch.backends.cuda.matmul, torch.backends.mkldnn.matmul):
                stack.callback(setattr, products, "fp32_precision", products.fp32_precision)
                products.fp32_precision = "ieee"
        else:
            stack.callback(torch.set_float32_matmul_precision, torch.get_float32_matmul_precision())
            torch.set_float32_matmul_precision("highest")
        yield


def _lengths(vectors: Any) -> FloatArray:
    """Euclidean length of each row, a little rounded up."""
    if isinstance(vectors, np.ndarray):
        squares = np.einsum("ij,ij->i", vectors, vectors)
        if not (squares.min(initial=1) > _LOST and np.isfinite(squares).all()):
            squares = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
        lengths = np.sqrt(squares)
    else:
        lengths = from_device(vectors.norm(dim=1, dtype=sys.modules["torch"].float64))
    longer: FloatArray = lengths.astype(np.float64) * (1 + vectors.shape[1] * 2.0**-23)
    return longer


def _taken(scores: Any, columns: IntArray) -> NDArray[Any]:
    if isinstance(scores, np.ndarray):
        return np.take_along_axis(scores, columns, 1)
    torch: Any = sys.modules["torch"]
    return from_device(scores.gather(1, torch.from_numpy(columns).to(scores.device)))


def from_device(tensor: Any) -> NDArray[Any]:
    """A tensor's numbers as an array; of one that lies in the processor's memory a view."""
    array: NDArray[Any] = tensor.detach().cpu().numpy()
    return array


def as_numbers(keys: Sequence[str], of: Sequence[str]) -> IntArray:
    """Place of each key among others."""
    place = {key: number for number, key in enumerate(of)}
    return np.array([place[key] for key in keys], dtype=np.int64)
