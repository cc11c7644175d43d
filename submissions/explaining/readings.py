"""The numbers of a file under each reading that it allows: what they would be, had it been made otherwise;
and published rows that come near to them.

A reading takes places out of the lists: references, images outside a known list, images that stood before. It
adds none, so that lists get shorter. A number is exact where every list still holds as many images as it
reads. Where some do not, and lists of the file did, a recall or mAP can only be higher: `at_least`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from cir_datasets.registry.published import published
from cir_metrics.catalogue import parse_metric, reads_subset
from cir_metrics.evaluation import evaluate_coded, parse_wanted
from cir_metrics.sums import UNLISTED, exact_mean
from submissions.formats.native import nameless_method
from submissions.rank_file.model import SECTIONS, RankFile
from submissions.rank_file.owners import galleries_of_queries, image_ids
from submissions.scoring import code_rankings
from submissions.scoring.score_report import main_value

if TYPE_CHECKING:
    from cir_datasets.registry.published import Reported
    from cir_datasets.registry.suites import Suite
    from cir_metrics.sums import BoolArray
    from submissions.explaining.places import Places

_BOUNDED = ("recall_at_k", "recall_subset", "map_at_k", "map_subset", "hits_at_k")
"""Metrics that a longer list never lowers."""
WITHIN = 2.0
"""Points that each number may be off."""
_SHARED = 2
"""Metrics that a row and a reading have in common at least: one alone is near by chance."""
_ROWS = 3
_FAR = 3.0
"""Standard errors, at most 1 / sqrt(queries), by which reversed lists score higher than by chance."""


@dataclass(frozen=True)
class FileReading:
    """The numbers of a file as if it had been made in one way.

    Args:
        reference: `kept`, as it stands; `removed`, taken out of every list; `none` where no list holds it.
        gallery: the benchmark whose list alone is ranked; empty: all that the file ranks.
        doubles: `kept`, or `removed` where an image is ranked twice; empty where none is.
        order: `reversed` where lists that begin with the worst image would score higher; else empty.
        misses: whether queries without a ranking are counted, as misses.
        queries: queries or sessions that the numbers are over.
        depth: images that every list holds at least.
        metrics: by printed name the values, fractions.
        at_least: values that longer lists could raise.
    """

    reference: str
    gallery: str
    doubles: str
    order: str = ""
    misses: bool = False
    queries: int = 0
    depth: int = 0
    metrics: dict[str, float] = field(default_factory=dict)
    at_least: dict[str, float] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The way in words."""
        said = [] if self.reference == "none" else [f"reference {self.reference}"]
        said += [f"only {self.gallery}"] if self.gallery else []
        said += [f"doubles {self.doubles}"] if self.doubles else []
        said += [f"order {self.order}"] if self.order else []
        said += ["missing queries as misses"] if self.misses else []
        return ", ".join(said) or "as it stands"

    @property
    def values(self) -> dict[str, float]:
        """All of its numbers, exact or not."""
        return {**self.metrics, **self.at_least}


@dataclass(frozen=True)
class NearRow:
    """A published row beside the reading that it comes nearest to.

    Args:
        method: as its source names it.
        source: source, table and row.
        protocol: what the source claims of split and gallery.
        benchmark: the benchmark or suite that its numbers stand for.
        reading: the reading's label.
        difference: mean over the metrics that both have, in points.
        values: by metric the number as it is printed.
    """

    method: str
    source: str
    protocol: str
    benchmark: str
    reading: str
    difference: float
    values: dict[str, str]


def readings(places: Places) -> Iterator[FileReading]:
    """The numbers under each reading; none where the ground truth is withheld, or nothing is answered."""
    spec, second = places.benchmark.spec, places.asked.section == SECTIONS[1]
    names = [name for name in spec.metrics if "@" in name and reads_subset(name) == second]
    if places.benchmark.ground_truth_withheld or not names or not len(places.columns.codes):
        return
    nothing, size = np.zeros_like(places.again), len(places.benchmark.gallery or ())
    kept = "kept" if places.reference.any() else "none"
    twice = ("kept", "removed") if places.again.any() else ("",)
    whole = _reading(places, names, nothing, size, FileReading(kept, "", twice[0]))
    yield whole
    if whole.queries < len(places.benchmark):
        yield _reading(places, names, nothing, size, FileReading(kept, "", twice[0], misses=True))
    # Lists that begin with the worst image hold what they find at their ends.
    backwards = _reading(places.backwards(), names, nothing, size, replace(whole, order="reversed"))
    if any(
        value > whole.values[name] + _FAR / math.sqrt(whole.queries)
        for name, value in backwards.values.items()
    ):
        yield backwards
    galleries = [("", nothing, size), *(() if second else _galleries(places))]
    uses = [(kept, nothing), *([("removed", places.reference)] if kept == "kept" else [])]
    for (gallery, outside, size), (use, held) in list(product(galleries, uses))[len(twice) == 1 :]:
        marks = places.again | outside | held
        yield _reading(places, names, marks, size, FileReading(use, gallery, twice[-1]))


def of_suite(suite: Suite, members: Sequence[Sequence[FileReading]]) -> Iterator[FileReading]:
    """The suite's numbers under the readings that all of its members have, with each member's own list.

    Args:
        suite: its means.
        members: of each member the readings, in the suite's order.
    """
    own = [[replace(each, gallery=each.gallery and "their own lists") for each in one] for one in members]
    for runs in product(*own):
        if len({run.label for run in runs}) == 1:
            counts, depth = [run.queries for run in runs], min(run.depth for run in runs)
            exact = suite.reduce([run.metrics for run in runs], counts)
            every = suite.reduce([run.values for run in runs], counts)
            at_least = {name: value for name, value in every.items() if name not in exact}
            yield replace(runs[0], queries=sum(counts), depth=depth, metrics=exact, at_least=at_least)


def _galleries(places: Places) -> Iterator[tuple[str, BoolArray, int]]:
    """The known lists that these queries are asked of and that leave images of the file out."""
    if places.asked.own is not None:
        if places.outside.any():
            yield "the queries' own lists", places.outside, 0
        return
    for spec in galleries_of_queries(places.benchmark.spec):
        own = spec.id == places.benchmark.id
        known = (places.benchmark.gallery_set if own else image_ids(spec)) or frozenset()
        outside = np.array([image not in known for image in places.columns.image_ids], dtype=np.bool_)
        marks: BoolArray = outside[places.columns.codes]
        if marks.any() and not marks.all():
            yield spec.id, marks, len(known)


def _reading(places: Places, names: list[str], marks: BoolArray, size: int, way: FileReading) -> FileReading:
    """A way with its numbers: those of the lists without the marked places.

    Args:
        places: the lists.
        names: the metrics.
        marks: what is taken out, shape (n_places,).
        size: images of the gallery that is ranked; 0 where it is not known.
        way: how the file is meant.
    """
    benchmark, own, columns = places.benchmark, places.asked.own, places.without(marks)
    wanted = parse_wanted(names, "multi_turn" if benchmark.multi_turn else "single_turn")
    before = np.append(places.columns.lengths, 0)[places.rankings]
    answered: BoolArray = np.minimum.reduceat(before, np.cumsum(places.counts) - places.counts) > 0
    lists = places.rankings[np.repeat(answered, places.counts)]
    parts = ({}, columns) if places.asked.section == SECTIONS[1] else (columns, None)
    rank_file = RankFile(benchmark.id, benchmark.version, nameless_method(""), *parts)
    coding = code_rankings(rank_file, benchmark, [name for name, _ in wanted], ())
    over = np.ones_like(answered) if way.misses else answered
    # How many images a list holds at most: it is whole, then, and not too short.
    most = np.array((size or UNLISTED) - (way.reference == "removed"))
    if own is not None:
        less = way.reference == "removed" and not benchmark.excludes_reference
        most = own.lengths[own.places(columns.names)][lists] - less
    lengths, exact, at_least = columns.lengths[lists], dict[str, float](), dict[str, float]()
    for name, values in evaluate_coded(wanted, coding.coded).per_query.items() if over.any() else ():
        module, k = parse_metric(name.partition("@turn")[0])
        if (lengths >= np.minimum(k or 0, most)).all():
            exact[name] = exact_mean(values[over])
        elif before.max() >= (k or 0) and module in _BOUNDED:
            at_least[name] = exact_mean(values[over])
    main, depth = benchmark.spec.main_metric, int(lengths.min(initial=UNLISTED))
    value = main_value(main, {**exact, **at_least})
    if value is not None and main not in {**exact, **at_least}:
        (at_least if main_value(main, exact) is None else exact)[main] = value
    return replace(way, queries=int(over.sum()), depth=depth, metrics=exact, at_least=at_least)


def near_rows(numbers: Iterable[tuple[Sequence[FileReading], Sequence[str]]]) -> tuple[NearRow, ...]:
    """The rows that come nearest, each once, the nearest first.

    Args:
        numbers: readings, and the benchmarks or suites that their numbers may stand for.
    """
    found: dict[str, NearRow] = {}
    for readings, names in numbers:
        for row, name, reading in product(published(), names, readings):
            near = _near(row, name, reading)
            if near is not None and (row.id not in found or near.difference < found[row.id].difference):
                found[row.id] = near
    return tuple(sorted(found.values(), key=lambda near: near.difference)[:_ROWS])


def _near(row: Reported, name: str, reading: FileReading) -> NearRow | None:
    printed = {metric: row.values[name, metric] for metric in reading.values if (name, metric) in row.values}
    off = [abs(100 * reading.values[metric] - float(text)) for metric, text in printed.items()]
    if len(off) < _SHARED or max(off) > WITHIN:
        return None
    difference = round(math.fsum(off) / len(off), 2)
    return NearRow(row.label, row.where, row.table.protocol, name, reading.label, difference, printed)
