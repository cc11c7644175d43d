"""Scores that a user already has, as a rank file: aligned by ids, ranked block by block."""

from __future__ import annotations

import itertools
import mmap
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cir_datasets.common.progress import step_progress
from cir_datasets.rows.hashing import gallery_hash
from cir_metrics.errors import did_you_mean
from cir_metrics.ranking import top_k
from submissions.errors import MethodError
from submissions.methods.turns import Candidates, excluded_columns, subset_members, turns_of
from submissions.rank_file.benchmarks import MAX_DEPTH, SUBSET_DEPTH, board_depth, needs_subset
from submissions.rank_file.model import Method, RankFile
from submissions.running.answers import Answers
from submissions.running.make import loaded_benchmark

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark

_CELLS = 8_000_000
"""Scores held at once."""


def rank_file_from_scores(
    benchmark: str | Benchmark,
    scores: Any,
    *,
    query_ids: Sequence[str] | None = None,
    image_ids: Sequence[str] | None = None,
    method: str | Method,
    by_position: bool = False,
    k: int | None = None,
) -> RankFile:
    """The rank file of scores that were computed elsewhere.

    Rows and columns are joined to the benchmark by their ids. The reference is taken out where the protocol
    removes it, CIRR's subsets are ranked by the same scores, rankings are cut to what the board uses, and
    ties are ordered by `cir_metrics.ties`.

    Args:
        benchmark: an id or a benchmark; of a suite each member has its own scores.
        scores: shape (queries, images), float16 to float64, higher is better; a numpy array, a memory map, a
            torch tensor, or an iterable of such blocks of rows, one after the other. Infinities are allowed.
            A memory map is read block by block and not kept in memory.
        query_ids: id of each row, in any order; of a session's turn `SESSION#TURN`, turns from 1.
        image_ids: id of each column, in any order. Where the publisher's list of the gallery is not available
            (CIRCO without COCO's list), these are the gallery, and the signature of a score says so.
        method: its name, or a `Method` with what else is to be known.
        by_position: whether ids that are not given are the benchmark's own, in its order.
        k: images a ranking, 1 to 1,000; default: what the board's metrics use.

    Raises:
        UnknownNameError: no benchmark has that id.
        MethodError: ids are missing, unknown, or given twice; a shape or type is wrong; a score is NaN.
        SourceError: the benchmark's data is not available.

    Example:
        >>> import cir_datasets
        >>> shapes = cir_datasets.load("shapes/val")
        >>> made = rank_file_from_scores(
        ...     shapes, np.zeros((300, 3940)), query_ids=shapes.query_ids, image_ids=shapes.gallery,
        ...     method="Nothing")
        >>> len(made.rankings), len(made.rankings[shapes.query_ids[0]])
        (300, 50)
    """
    benchmark = _loaded(benchmark)
    described = method if isinstance(method, Method) else Method(name=method)
    if k is not None and (isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MAX_DEPTH):
        raise MethodError(f"k={k!r}; it is 1 to {MAX_DEPTH:,}. Fix: leave it out for what the board uses.")
    rows = benchmark.rows()
    turns = {turn.key: turn for row in rows for turn in turns_of(row)}
    keys = _query_keys(query_ids, list(turns), benchmark, by_position=by_position)
    images = _columns(image_ids, benchmark, by_position=by_position)
    if benchmark.gallery is None:
        note = f"own list of {len(images):,} images ({gallery_hash(images)[:7]})"
        described = described.model_copy(update={"search": f"{described.search} {note}".strip()})
    depth = board_depth(benchmark).used if k is None else k
    gallery = Candidates(benchmark, images)
    own_rows = {row["query_id"]: row for row in rows} if needs_subset(benchmark) else {}
    ranked: dict[str, list[str]] = {}
    answers = Answers.of(benchmark)
    subsets: dict[str, list[str]] = {}
    with step_progress(f"ranking {benchmark.id}", len(keys)) as advance:
        start = 0
        for block in _blocks(scores, keys, images):
            some = keys[start : start + len(block)]
            excluded = excluded_columns([turns[key] for key in some], gallery)
            lists = top_k(block, images, depth, query_ids=some, excluded=excluded)
            ranked.update(zip(some, lists, strict=True))
            for key, own in zip(some, block, strict=True):
                if key in own_rows:
                    members = subset_members(own_rows[key])
                    places = [gallery.place[member] for member in members]
                    (best,) = top_k(own[None, places], members, SUBSET_DEPTH, query_ids=[key])
                    subsets[key] = best
            start += len(block)
            advance(len(block))
    for row in rows:
        answers.add([row], [ranked[turn.key] for turn in turns_of(row)])
        if own_rows:
            answers.add_subset(row, subsets[row["query_id"]])
    return RankFile(
        benchmark=benchmark.id,
        benchmark_version=benchmark.version,
        method=described,
        rankings=answers.rankings,
        subset_rankings=answers.subset_rankings,
    )


def _loaded(benchmark: str | Benchmark) -> Benchmark:
    from cir_datasets.registry.suites import suite, suite_ids

    if isinstance(benchmark, str) and benchmark in suite_ids():
        members = ", ".join(suite(benchmark).benchmarks)
        raise MethodError(
            f"{benchmark} is a suite; each of its members has its own scores. "
            f"Fix: make a rank file of each ({members}), and put them into "
            f"RankBundle({benchmark!r}, (...))."
        )
    return loaded_benchmark(benchmark)


def _query_keys(
    given: Sequence[str] | None, known: list[str], benchmark: Benchmark, *, by_position: bool
) -> list[str]:
    """The query or turn of each row."""
    if given is None and by_position:
        return known
    keys = _ids(given, "query_ids", "row")
    shape = "SESSION#TURN" if benchmark.multi_turn else "query id"
    _check_known(keys, known, "query_ids", f"{benchmark.id} has no such {shape}")
    held = set(keys)
    gone = [key for key in known if key not in held]
    if gone:
        raise MethodError(
            f"query_ids: {len(gone):,} of {len(known):,} of {benchmark.id} are missing, {gone[0]!r} first. "
            f"Fix: score every {'turn of every session' if benchmark.multi_turn else 'query'}."
        )
    return keys


def _columns(given: Sequence[str] | None, benchmark: Benchmark, *, by_position: bool) -> list[str]:
    """The image of each column."""
    gallery = benchmark.gallery
    if given is None and by_position:
        if gallery is None:
            raise MethodError(
                f"the gallery list of {benchmark.id} is not available, so that columns have no names. "
                "Fix: pass image_ids=, the images that you ranked."
            )
        return list(gallery)
    images = _ids(given, "image_ids", "column")
    if gallery is None:
        _check_form(images, benchmark)
        return images
    _check_known(images, gallery, "image_ids", f"the gallery of {benchmark.id} has no such image")
    if len(images) < len(gallery):
        held = set(images)
        first = next(image for image in gallery if image not in held)
        raise MethodError(
            f"image_ids: {len(gallery) - len(images):,} of {len(gallery):,} images of {benchmark.id} are "
            f"missing, {first!r} first. Fix: score the whole gallery; -inf puts an image last."
        )
    return images


def _check_form(images: list[str], benchmark: Benchmark) -> None:
    """A list of the user's own holds ids of the right form, and what queries need of it."""
    from submissions.rank_file.image_ids import image_family, well_formed

    family = image_family(benchmark.spec)
    for place, image in enumerate(images):
        if not well_formed(family, image):
            raise MethodError(f"image_ids[{place}] is {image!r}. Fix: write COCO ids, 12 digits.")
    held = set(images)
    for query, positives in zip(benchmark.query_ids, benchmark.positives, strict=True):
        # Which image it is would tell the answer.
        if not held.issuperset(positives):
            raise MethodError(
                f"image_ids: a right answer of query {query!r} is not in it. Fix: rank the whole gallery."
            )
    if len(images) < board_depth(benchmark).used:
        raise MethodError(f"image_ids has {len(images)} images. Fix: rank the whole gallery.")


def _ids(given: Sequence[str] | None, name: str, of: str) -> list[str]:
    if given is None:
        raise MethodError(
            f"{name} is not given. Fix: pass {name}=, an id a {of}; or by_position=True where "
            f"the {of}s stand in the benchmark's order."
        )
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise MethodError(f"{name} is of type {type(given).__name__}. Fix: pass a list of ids, one a {of}.")
    ids = list(given)
    if not ids:
        raise MethodError(f"{name} is empty. Fix: name each {of}.")
    for place, each in enumerate(ids):
        if not isinstance(each, str):
            raise MethodError(f"{name}[{place}] is {each!r}. Fix: pass ids as strings.")
    # Without the types of other libraries, which no JSON can hold.
    ids = [str(each) for each in ids]
    if len(set(ids)) < len(ids):
        twice = next(each for each, count in Counter(ids).items() if count > 1)
        first, second = itertools.islice((n for n, each in enumerate(ids) if each == twice), 2)
        raise MethodError(f"{name}[{first}] and [{second}] are both {twice!r}. Fix: name each {of} once.")
    return ids


def _check_known(ids: list[str], known: Sequence[str], name: str, said: str) -> None:
    there = set(known)
    for place, each in enumerate(ids):
        if each not in there:
            near = did_you_mean(each, there) if len(each) < 100 else ""
            raise MethodError(
                f"{name}[{place}] is {each!r}: {said}.{near} "
                "Fix: correct it, or leave it out with its scores."
            )


def _blocks(scores: Any, keys: list[str], images: list[str]) -> Iterator[NDArray[np.floating[Any]]]:
    """Checked blocks of rows, each small enough to be worked on."""
    whole = isinstance(scores, np.ndarray) or _is_tensor(scores)
    if not whole and (isinstance(scores, str | bytes | dict) or not isinstance(scores, Iterable)):
        raise MethodError(
            f"scores are of type {type(scores).__name__}. Fix: pass an array of shape (queries, images), or "
            "an iterable of such blocks."
        )
    shape = (len(keys), len(images))
    if whole and tuple(scores.shape) != shape:
        turned = tuple(scores.shape) == shape[::-1]
        fix = "pass scores.T" if turned else "score each query and image that is named, a row a query"
        raise MethodError(
            f"scores have shape {tuple(scores.shape)}; there are {shape[0]:,} query ids and {shape[1]:,} "
            f"image ids. Fix: {fix}."
        )
    step = max(1, _CELLS // shape[1])
    start = 0
    for number, given in enumerate([scores] if whole else scores):
        name = "scores" if whole else f"block {number} of scores"
        if not (isinstance(given, np.ndarray) or _is_tensor(given)):
            raise MethodError(
                f"{name} is of type {type(given).__name__}. Fix: give arrays of shape (queries, images)."
            )
        if len(given.shape) != 2 or given.shape[1] != shape[1] or start + given.shape[0] > shape[0]:
            raise MethodError(
                f"{name}: shape {tuple(given.shape)} behind {start:,} rows; there are {shape[0]:,} query ids "
                f"and {shape[1]:,} image ids. "
                f"Fix: give blocks of shape (queries, {shape[1]}), in the order of query_ids."
            )
        for first in range(0, given.shape[0], step):
            block = _numbers(given[first : first + step], name)
            if np.isnan(block.max()):
                row, column = (int(each) for each in np.argwhere(np.isnan(block))[0])
                raise MethodError(
                    f"{name}[{first + row}, {column}] is NaN: query {keys[start + first + row]!r}, image "
                    f"{images[column]!r}. Fix: find where it arose; -inf puts an image last."
                )
            yield block
            _give_back(given)
        start += given.shape[0]
    if start < shape[0]:
        raise MethodError(
            f"scores end after {start:,} rows; query {keys[start]!r} has none. Fix: give a row for each of "
            f"the {shape[0]:,} query ids."
        )


def _give_back(given: Any) -> None:
    """Let go of the pages of a memory map that were read, which would stay in memory until its end.

    They are read again from the file if somebody asks. What was changed in a map of mode "c" is in no file,
    so that such a map stays as it is.
    """
    mapped = getattr(given, "_mmap", None)
    advice = getattr(mmap, "MADV_DONTNEED", None)  # Linux has it, macOS has it, Windows has not.
    if (
        isinstance(given, np.memmap)
        and given.mode != "c"
        and isinstance(mapped, mmap.mmap)
        and advice is not None
    ):
        mapped.madvise(advice)


def _numbers(given: Any, name: str) -> NDArray[np.floating[Any]]:
    """A block as float32 or float64, without a change of value."""
    if _is_tensor(given):
        given = given.detach().cpu()
        # numpy has no bfloat16.
        given = (given.float() if str(given.dtype) == "torch.bfloat16" else given).numpy()
    if given.dtype.kind != "f" or given.dtype.itemsize > 8:
        ranks = " Whole numbers may be ranks, where lower is better: pass minus ranks then."
        raise MethodError(
            f"{name}: type {given.dtype}; scores are float16 to float64, higher is better."
            f"{ranks if given.dtype.kind in 'iu' else ''} Fix: pass scores.astype('float32')."
        )
    kind = np.float64 if given.dtype.itemsize == 8 else np.float32
    return np.asarray(given, dtype=kind)


def _is_tensor(value: Any) -> bool:
    """Whether it is a tensor of torch, which is not imported for that."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)
