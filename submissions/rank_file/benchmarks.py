"""What a rank file answers: which benchmark or suite, how its ids are spelled, how deep its rankings are.

Validation sees no more of a benchmark than `Queries` holds: never the ground truth. What another spelling of
an id is, `cir_metrics.ids` says; here stands what is known of each data set's ids.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cir_datasets.rows.benchmark import QueryLists, first_ranking, second_ranking
from cir_metrics.catalogue import METRICS, parse_metric
from cir_metrics.errors import CallError, CirError
from submissions.rank_file.model import SECTIONS

if TYPE_CHECKING:
    import pyarrow as pa

    from cir_datasets.registry import BenchmarkSpec
    from cir_datasets.registry.suites import Suite
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.rank_file.columns import Codes, Columns
    from submissions.rank_file.model import RankBundle, RankFile

    BenchmarkLike = str | Benchmark | Mapping[str, Benchmark] | None
    FileLike = str | os.PathLike[str] | bytes | RankFile | RankBundle

_COCO_DIGITS = 12
_OF_COCO = ("circo", "genecis")
"""Families whose images are COCO's."""
_CIRR_ENDING = ".png"
"""Its server's names come without, so that it says nothing even of an unknown image."""


class Benchmarks:
    """Resolves benchmark ids, asking the caller's own objects first, then the registry.

    Args:
        given: an id of a benchmark or a suite, a benchmark, a mapping of benchmarks by id, or None.

    Raises:
        CallError: it is of none of these types.
        UnknownNameError: no benchmark and no suite has that id.
    """

    def __init__(self, given: str | Benchmark | Mapping[str, Benchmark] | None) -> None:
        """See the class."""
        from cir_datasets.rows.benchmark import Benchmark

        self._own: dict[str, Benchmark] = {}
        self.expected: str | None = None
        """The id that a file must answer, or None where the file says."""
        self.suite: Suite | None = None
        """The suite that a bundle must answer, or None."""
        self.only_here = False
        """Whether nothing may be downloaded for a look at the gallery or the queries."""
        self.infers = False
        """Whether a file that names no benchmark is taken for an answer to the one that has its queries."""
        if isinstance(given, str):
            from cir_datasets.registry.suites import find_suite

            self.expected = given
            self.suite = find_suite(given)
            if self.suite is None:
                self.spec(given)
        elif isinstance(given, Mapping):
            self._own = dict(given)
        elif given is not None and not isinstance(given, Benchmark):
            raise CallError(
                f"benchmark is of type {type(given).__name__}. Fix: pass an id such as 'cirr/val', a "
                "Benchmark, or a mapping of benchmarks by id."
            )
        elif given is not None:
            self._own = {given.id: given}
            self.expected = given.id

    def spec(self, benchmark_id: str) -> BenchmarkSpec:
        """Card and configuration of a benchmark.

        Raises:
            UnknownNameError: no benchmark has that id.
        """
        if benchmark_id in self._own:
            return self._own[benchmark_id].spec
        from cir_datasets.registry import spec

        return spec(benchmark_id)

    def inferred(self, answers: object, datasets: Collection[str] = ()) -> str:
        """The id of the benchmark that most of some query ids are of, where `infers`; else nothing.

        Args:
            answers: query ids, or answers by query id; anything else says nothing.
            datasets: names of the data sets that are looked at; empty: all.
        """
        if not self.infers or not isinstance(answers, Collection):
            return ""
        from submissions.rank_file.owners import owner_of

        ids = [each for each in answers if isinstance(each, str)]
        owner = owner_of(ids, datasets=datasets or None)
        return "" if owner is None else owner[0]

    def gallery(self, spec: BenchmarkSpec) -> Sequence[str] | None:
        """A benchmark's image ids; None where they are not available, or may not be downloaded."""
        benchmark = self.available(spec)
        return None if benchmark is None else benchmark.gallery

    def available(self, spec: BenchmarkSpec) -> Benchmark | None:
        """The benchmark; None where its data is not available, or may not be downloaded."""
        from cir_datasets.prepared import is_here

        if self.only_here and spec.id not in self._own and not is_here(spec):
            return None
        try:
            return self.load(spec.id)
        except CirError:
            return None  # Whoever checks the content says so.

    def load(self, benchmark_id: str) -> Benchmark:
        """The benchmark with its rows.

        Raises:
            CirError: it is not known, or its data is not available.
        """
        if benchmark_id in self._own:
            return self._own[benchmark_id]
        import cir_datasets

        loaded: Benchmark = cir_datasets.load(benchmark_id)
        self._own[benchmark_id] = loaded
        return loaded


def image_family(spec: BenchmarkSpec) -> str:
    """Name of the dataset whose images a benchmark ranks (CIRCLED ranks those of its source).

    Example:
        >>> from cir_datasets.registry import spec
        >>> image_family(spec("cirr/val"))
        'cirr'
    """
    return (spec.config.gallery_from or spec.id).partition("/")[0]


@dataclass(frozen=True)
class Spelling:
    """Brings ids to a benchmark's spelling; what it cannot read it leaves.

    Args:
        family: of `image_family`. COCO's ids are 12 digits, whether the gallery is known or not.
        gallery: the gallery's ids; empty where they are not known.

    Example:
        >>> Spelling("circo").all([355099, "528417", "unlabeled2017/000000534704.jpg", True])
        ['000000355099', '000000528417', '000000534704', True]
        >>> Spelling("cirr").all(["dev-0-0-img0.png"])
        ['dev-0-0-img0']
        >>> Spelling("mine", ["a/7.jpg"]).all(["x/a/7.jpg"])
        ['a/7.jpg']
    """

    family: str
    gallery: Collection[str] = ()

    @functools.cached_property
    def known(self) -> frozenset[str]:
        """The gallery as a set; where every id is one of it, nobody asks."""
        return frozenset(self.gallery)

    def changes(self, ids: Iterable[Any]) -> dict[Any, str]:
        """By id another spelling that is used from then on."""
        strangers = [each for each in ids if not (isinstance(each, str | int) and each in self.known)]
        if not strangers:
            return {}
        from cir_metrics.ids import spellings

        digits = _COCO_DIGITS if self.family in _OF_COCO else None
        ending = _CIRR_ENDING if self.family == "cirr" else ""
        return spellings(strangers, self.known, digits=digits, ending=ending)

    def all(self, ids: list[Any]) -> list[Any]:
        """The ids, in their order."""
        changed = self.changes(ids)
        return (
            [changed.get(each, each) if isinstance(each, str | int) else each for each in ids]
            if changed
            else ids
        )


def well_formed(family: str, image_id: str) -> bool:
    """Whether an id can be one of the family's at all: what is checked when the gallery is not available."""
    return family not in _OF_COCO or (
        len(image_id) == _COCO_DIGITS and image_id.isascii() and image_id.isdigit()
    )


MAX_DEPTH = 1000
"""Images that a ranking may hold at most."""

SUBSET_DEPTH = 3
"""Images that a subset ranking holds at least (the largest K of the metrics of the subset)."""


@dataclass(frozen=True)
class Depth:
    """Lengths of one benchmark's rankings.

    Args:
        used: images that the board's metrics use.
        required: images that a ranking holds at least: `used`, or all there are where the gallery is smaller;
            of galleries per query the longest, and each query asks for no more than its own holds.
    """

    used: int
    required: int


def largest_cutoff(metrics: Iterable[str]) -> int:
    """The largest K of the metrics that read whole-gallery rankings.

    A metric without cutoff (`mean_rank`) reads what the others make a method hand in, so that nobody gains
    by shorter or longer lists; where no metric has a cutoff, up to 1,000 images are wanted.

    Example:
        >>> largest_cutoff(["recall@1", "recall@50", "recall_subset@3", "mean_rank"])
        50
    """
    parsed = (parse_metric(metric) for metric in metrics)
    cutoffs = [k for name, k in parsed if k is not None and not METRICS[name].reads_subset]
    return max(cutoffs, default=MAX_DEPTH)


def board_depth(benchmark: Benchmark, *, removes: bool = False) -> Depth:
    """The lengths that the benchmark's own board asks for.

    Args:
        benchmark: whose board it is.
        removes: whether the reference is left out of the lists, though the protocol may keep it.
    """
    used = min(largest_cutoff(benchmark.spec.metrics), MAX_DEPTH)
    if benchmark.gallery is None:
        return Depth(used, used)
    if benchmark.per_query:
        lists = benchmark.query_lists(first_ranking(benchmark.spec))
        return Depth(used, min(used, int(lists.lengths.max(initial=0))))
    return Depth(used, min(used, len(benchmark.gallery) - (benchmark.excludes_reference or removes)))


class References:
    """The reference of each ranking that is asked for.

    Args:
        turns: by query or session id how many rankings it wants.
        array: the references one after the other, null or empty where there is none, an Arrow array.

    Example:
        >>> import pyarrow as pa
        >>> references = References({"s1": 2, "s2": 1}, pa.array(["a", None, "b"]))
        >>> references.of("s1"), references.of("s1", turn=2), references.starts(["s2", "s3"]).tolist()
        ('a', None, [2, -1])
    """

    def __init__(self, turns: Mapping[str, int], array: pa.Array) -> None:
        """See the class."""
        self.array = array
        self.turns = turns
        self._starts = dict(zip(turns, accumulate(turns.values(), initial=0), strict=False))

    def starts(self, names: Iterable[str]) -> NDArray[np.int64]:
        """Where the references of queries or sessions start; -1 for one that is not asked."""
        return np.array([self._starts.get(name, -1) for name in names], dtype=np.int64)

    def places(self, columns: Columns) -> NDArray[np.int64]:
        """Where in `array` the reference of each ranking stands; -1 for a ranking that is not asked."""
        owners = np.repeat(np.arange(len(columns)), columns.turns)
        turns = np.arange(len(owners)) - (np.cumsum(columns.turns) - columns.turns)[owners]
        wanted = np.array([self.turns.get(name, 0) for name in columns.names], dtype=np.int64)
        return np.where(turns < wanted[owners], self.starts(columns.names)[owners] + turns, -1)

    def codes(self, columns: Columns) -> Codes:
        """The reference of each ranking as its image's code, -1 where it has none or no ranking holds it."""
        # An id is never empty, so that the empty text is found nowhere.
        return np.append(columns.codes_of(self.array), np.int32(-1))[self.places(columns)]

    def of(self, name: str, turn: int = 1) -> str | None:
        """The reference of a query, or of a session's turn, from 1."""
        return self.array[self._starts[name] + turn - 1].as_py() or None


@dataclass(frozen=True)
class AskedLists:
    """One of the rankings that a benchmark asks of each query or turn: what its lists have to be.

    Args:
        section: the part of a rank file that holds them, of `SECTIONS`.
        depth: their lengths.
        references: the reference of each turn.
        gallery_ids: what may stand in them, or None where that is not available, or `own` says all of it.
        own: the images that each query ranks, where these differ from query to query; else None.
        removes: whether it may not stand in them; else a list of the query's own may leave it out.
        needed: whether the board needs them.
        whole: whether the query's own list is short, and may be ranked to its end without a finding.
        readers: who reads how many images of them, in messages.
        lengths: of a dialogue's rounds, by session how many images the list of each holds at least.
    """

    section: str
    depth: Depth
    references: References
    gallery_ids: Sequence[str] | None = None
    own: QueryLists | None = None
    removes: bool = False
    needed: bool = True
    whole: bool = False
    readers: str = "; the board's metrics use"
    lengths: Mapping[str, Sequence[int]] | None = None

    @functools.cached_property
    def gallery(self) -> frozenset[str] | None:
        """The gallery as a set; what is only screened never needs it."""
        return None if self.gallery_ids is None else frozenset(self.gallery_ids)

    def required(self, query: str, ranked: Collection[str], turn: int | None = None) -> int:
        """Images that a ranking of a query, or of a session's turn, holds at least.

        Args:
            query: id of the query or session.
            ranked: the ranking's images. One of the query's own list may leave out the reference, where the
                protocol keeps it, too.
            turn: of a session, from 1.
        """
        if self.lengths is not None:
            return self.lengths[query][(turn or 1) - 1]
        if self.own is None:
            return self.depth.required
        reference = self.references.of(query)
        left_out = (
            reference is not None and reference not in ranked and not self.own.lacking(query, [reference])
        )
        return min(self.depth.used, self.own.length(query) - left_out)


@dataclass(frozen=True)
class Queries:
    """A benchmark's queries or sessions as a validator sees them.

    Args:
        benchmark: the benchmark's id.
        title: name of the dataset in messages.
        num_turns: by query or session id the number of rankings that it wants; 1 for a query.
        multi_turn: whether answers are lists of rankings.
        asked: the ranking that is asked of each, or the two.
    """

    benchmark: str
    title: str
    num_turns: dict[str, int]
    multi_turn: bool
    asked: tuple[AskedLists, ...]


def queries(benchmark: Benchmark, declared: str = "") -> Queries:
    """Pick out of a benchmark what validation may know.

    Args:
        benchmark: whose queries they are.
        declared: what a file declares of the reference (`Method.reference`).
    """
    ids, removes = benchmark.query_ids, benchmark.excludes_reference or declared == "removed"
    first, second = first_ranking(benchmark.spec), second_ranking(benchmark.spec)
    first_section, second_section = SECTIONS
    counts = benchmark.column("num_turns") if benchmark.multi_turn else [1] * len(ids)
    num_turns = dict(zip(ids, counts, strict=True))
    own = benchmark.query_lists(first) if first.column else None
    references = References(num_turns, benchmark.references)
    asked = [
        AskedLists(
            first_section,
            board_depth(benchmark, removes=removes),
            references,
            benchmark.gallery,
            own=own,
            removes=removes,
        )
    ]
    if second is not None:
        asked.append(
            AskedLists(
                second_section,
                Depth(SUBSET_DEPTH, SUBSET_DEPTH),
                references,
                own=benchmark.query_lists(second),
                removes=True,
                needed=second.on_board,
                whole=True,
                readers=" in the subset ranking; Recall_subset uses",
            )
        )
    return Queries(
        benchmark=benchmark.id,
        title=benchmark.spec.card.short_title,
        num_turns=num_turns,
        multi_turn=benchmark.multi_turn,
        asked=tuple(asked),
    )
