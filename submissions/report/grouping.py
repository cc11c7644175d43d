"""What stands beside a number: that of a random order, of the picture and the text alone; all by aspect.

Those of picture and text are recorded on the benchmark's card. That of a random order has a closed form:
every turn of a session is a fresh random order of the G images that the protocol ranks (the gallery, without
the reference where that is removed). A query has n positives and h hard negatives among them. The probability
that the best positive stands behind rank r is

S(r) = prod_{i=0}^{r-1} (G - n - i) / (G - i),

because the first r places are then a draw without replacement from the other G - n images.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cir_datasets.rows import list_lengths, numbers
from cir_datasets.rows.benchmark import SUBSET, first_ranking
from cir_metrics.catalogue import parse_metric
from cir_metrics.measures import area_under_hits
from cir_metrics.sums import FloatArray, IntArray, exact_mean, exact_sums
from submissions.rank_file.benchmarks import board_depth

if TYPE_CHECKING:
    import pyarrow as pa

    from cir_datasets.rows.benchmark import Benchmark
    from submissions.scoring.evidence import Evidence

Values = Mapping[str, float | None]

FLOOR_NAMES = {"random": "random", "image_only": "image only", "text_only": "text only"}
"""Floors in the order of columns, and how tables call them."""


@dataclass(frozen=True, eq=False)
class Chance:
    """A random ranker on one benchmark.

    Args:
        images: images that are ranked, G.
        depth: images in each ranking.
        positives: positives of each query or session, shape (n,).
        negatives: hard negatives of each query, shape (n,); zeros for sessions.
        second_others: images of the second list but the reference, shape (n,); zeros where there is none.
        num_turns: turns of each session, shape (n,); None for queries.
        lengths: images that each query ranks where it has a gallery of its own, shape (n,); `images` is then
            the most. None where the gallery is common.
    """

    images: int
    depth: int
    positives: IntArray
    negatives: IntArray
    second_others: IntArray
    num_turns: IntArray | None
    lengths: IntArray | None = None

    def values(self, printed: str) -> FloatArray | None:
        """The expected value of a metric for each query or session.

        recall@K: min(K, G) / G for one target. recall_subset@K: min(K, s) / s with s other images in the
        subset. map_subset@K: (1/s) * sum_{j<=K} 1/j. turn_recall@K: as recall@K. final_recall@K: 1 - S(K).
        final_mrr@K: sum_{r<=K} (S(r-1) - S(r)) / r. hits@K@turnl: 1 - S(K)^min(l, L) with L turns.
        hits_auc@K: the trapezoid over those. mean_rank: the sum of S(r) over r = 0..depth. censored:
        S(depth). map@K and pnr_map@K: see `average_precision`.

        Args:
            printed: printed name, with `:variant` behind one that is not the default.

        Returns:
            Shape (n,), or None where there is no closed form (median_rank).
        """
        if self.lengths is not None:
            return self._by_length(printed)
        metric, _, variant = printed.partition(":")
        name, k = parse_metric(metric)
        if name == "mean_rank":
            return self._rank_values(metric)
        if k is None:
            return None
        if name in ("recall_at_k", "turn_recall"):
            return np.full(len(self.positives), min(k, self.images) / self.images)
        if name in ("recall_subset", "map_subset"):
            places = np.arange(1, k + 1)
            within = places <= self.second_others[:, None]
            earned = within / places if name == "map_subset" else within.astype(np.float64)
            total: FloatArray = exact_sums(earned.T) / np.maximum(self.second_others, 1)
            return total
        if name in ("map_at_k", "pnr_map"):
            return self.average_precision(k, (variant or "equation") if name == "pnr_map" else None)
        return self._session_values(metric, name, k)

    def _by_length(self, printed: str) -> FloatArray | None:
        """`values` where G differs from query to query: those of equal G together."""
        lengths = np.zeros(0, dtype=np.int64) if self.lengths is None else self.lengths
        found = np.zeros(len(lengths))
        for images in np.unique(lengths).tolist():
            of = lengths == images
            part = Chance(
                images,
                min(self.depth, images),
                self.positives[of],
                self.negatives[of],
                self.second_others[of],
                None,
            )
            values = part.values(printed)
            if values is None:
                return None
            found[of] = values
        return found

    def average_precision(self, k: int, variant: str | None = None) -> FloatArray:
        """The expected AP@K, or PNR-AP@K of a variant, of each query.

        E[AP@K] = 1/min(n, K) * sum_{j=1}^{min(K, G)} (n/G) * (1/j) * (1 + (j-1)(n-1)/(G-1)):

        a positive stands at rank j with probability n/G, and before it each of the other n-1 positives with
        probability (j-1)/(G-1). In PNR-AP the term has the weight w_j. It is 1 where no hard negative stands
        before rank j, which has the probability p_j = prod_{i=0}^{j-2} (G-1-h-i)/(G-1-i), and then
        (j-1)(n-1)/(G-1-h) positives are expected there. Else the mean rank of those negatives is j/2 on
        average, whatever else stands before, so that w_j is 1/2 for the equation and
        1 + (j-2)/(2(j-1)) for the released code, whose first rank earns 0.

        Args:
            k: cutoff.
            variant: `equation` or `released_code`; None for AP.

        Returns:
            Shape (n,).
        """
        (positives, negatives), inverse = self._kinds
        n, h = positives[:, None].astype(np.float64), negatives[:, None].astype(np.float64)
        total = float(self.images)
        before = np.arange(min(k, self.images), dtype=np.float64)  # j - 1
        others = max(total - 1, 1.0)
        expected = 1 + before * (n - 1) / others
        if variant is not None:
            steps = np.clip((total - 1 - h - before[:-1]) / np.maximum(total - 1 - before[:-1], 1), 0, 1)
            free = np.concatenate([np.ones_like(n), np.cumprod(steps, axis=1)], axis=1)
            undisturbed = free * (1 + before * (n - 1) / np.maximum(total - 1 - h, 1))
            weight = np.full(len(before), 0.5)
            if variant == "released_code":
                weight = 1 + (before - 1) / np.maximum(2 * before, 1)
            expected = undisturbed + (expected - undisturbed) * weight
            if variant == "released_code":
                expected[:, 0] = 0.0
        sums = exact_sums((n / total * expected / (before + 1)).T) / np.minimum(n[:, 0], k)
        values: FloatArray = sums[inverse]
        return values

    def found(self, k: int) -> FloatArray:
        """Probability that one ranking has a positive within K, 1 - S(K); shape (n,)."""
        return 1 - self._behind(k)[:, -1]

    def hits(self, k: int) -> FloatArray:
        """Probability of a hit by each turn, 1 - S(K)^min(l, L); shape (n_sessions, max_turns)."""
        turns_of = self.num_turns if self.num_turns is not None else np.ones_like(self.positives)
        # Multiplied turn by turn: what a power returns depends on the processor.
        longest = int(turns_of.max())
        missed = np.multiply.accumulate(np.repeat(self._behind(k)[:, -1:], longest, axis=1), axis=1)
        last = np.minimum(np.arange(1, longest + 1), turns_of[:, None]) - 1
        values: FloatArray = 1 - np.take_along_axis(missed, last, axis=1)
        return values

    @functools.cached_property
    def _kinds(self) -> tuple[tuple[IntArray, IntArray], IntArray]:
        """The pairs (n, h) that occur, and which one each query has: few, however many queries there are."""
        base = int(self.negatives.max(initial=0)) + 1
        coded, inverse = np.unique(self.positives * base + self.negatives, return_inverse=True)
        return (coded // base, coded % base), inverse

    def _behind(self, k: int) -> FloatArray:
        """S(r) for r = 0..min(K, G), shape (n, min(K, G) + 1)."""
        counts, inverse = np.unique(self.positives, return_inverse=True)
        taken = np.arange(min(k, self.images))
        left = np.maximum(self.images - counts[:, None] - taken, 0) / (self.images - taken)
        behind = np.concatenate([np.ones((len(counts), 1)), np.cumprod(left, axis=1)], axis=1)
        values: FloatArray = behind[inverse]
        return values

    def _rank_values(self, metric: str) -> FloatArray | None:
        if metric == "median_rank":
            return None
        behind = self._behind(self.depth)
        values: FloatArray = behind[:, -1] if metric == "censored" else exact_sums(behind.T)
        return values

    def _session_values(self, metric: str, name: str, k: int) -> FloatArray | None:
        if name == "final_recall":
            return self.found(k)
        if name == "final_mrr":
            behind = self._behind(k)
            earned: FloatArray = ((behind[:, :-1] - behind[:, 1:]) / np.arange(1, behind.shape[1])).sum(
                axis=1
            )
            return earned
        hits = self.hits(k)
        if name == "hits_auc":
            return area_under_hits(hits)
        turn = int(metric.rpartition("@turn")[2])
        return hits[:, min(turn, hits.shape[1]) - 1]


def chance(benchmark: Benchmark) -> Chance | None:
    """The random ranker of a benchmark, or None where the size of its gallery is not known.

    Where the list of the gallery is not available, the card's count is taken.
    """
    gallery = benchmark.spec.config.gallery if benchmark.gallery is None else len(benchmark.gallery)
    if gallery is None:
        return None
    images = gallery - (1 if benchmark.excludes_reference else 0)
    own = None
    if benchmark.per_query:
        own = benchmark.query_lists(first_ranking(benchmark.spec)).lengths
        images = int(own.max())

    def lengths(column: str) -> IntArray:
        return list_lengths(benchmark.ids(column))

    zeros = np.zeros(len(benchmark), dtype=np.int64)
    several = benchmark.multi_turn
    return Chance(
        images=images,
        depth=min(board_depth(benchmark).used, images),
        positives=lengths("ground_truth_ids" if several else "positive_image_ids"),
        negatives=zeros if several else lengths("negative_image_ids"),
        second_others=zeros if several else np.maximum(lengths(SUBSET) - 1, 0),
        num_turns=np.array(benchmark.column("num_turns"), dtype=np.int64) if several else None,
        lengths=own,
    )


def random_floor(random: Chance, metrics: Iterable[str]) -> dict[str, float | None]:
    """The expected score of a random order by metric, None where it has no closed form.

    Args:
        random: the random ranker.
        metrics: printed names, with `:variant` behind those that are not the default.
    """
    values = {metric: random.values(metric) for metric in metrics}
    return {metric: None if each is None else _number(metric, each) for metric, each in values.items()}


def recorded_floors(benchmark: Benchmark) -> tuple[dict[str, dict[str, float]], tuple[str, ...]]:
    """The card's baselines by method, and notes that name the commands which made them.

    They are given for the rows and the gallery that they were recorded on and for no others.
    """
    card, config = benchmark.spec.card, benchmark.spec.config_name
    recorded = card.floors.get(config)
    if recorded is None:
        return {}, (f"No image-only and text-only baselines are recorded for {benchmark.id}.",)
    hashes = (recorded.data_hash, recorded.gallery_hash)
    if benchmark.spec.overlay is not None or (benchmark.data_hash, benchmark.gallery_hash) != hashes:
        other = f"The baselines recorded for {card.name}/{config} are of other rows or another gallery"
        return {}, (f"{other} and are left out.",)
    methods = recorded.methods()
    notes = tuple(f"{FLOOR_NAMES[name]}: {floor.command}" for name, floor in methods.items())
    return {name: dict(floor.metrics) for name, floor in methods.items()}, notes


@dataclass(frozen=True)
class Group:
    """One group's numbers.

    Args:
        key: the aspect, the turn or the number of turns; `macro` or `micro` for a mean.
        name: how a table calls it.
        n: queries or sessions in it.
        values: by name a fraction, a rank or a count; None where the group holds no query.
        random: what a random order is expected to get, for the names where that is known.
    """

    key: str | int
    name: str
    n: int
    values: Values
    random: Values

    def to_dict(self, head: str, counted: str) -> dict[str, Any]:
        """The group as JSON values: its key under the name `head`, n under `counted`."""
        return {
            head: self.key,
            "name": self.name,
            counted: self.n,
            **self.values,
            "random": dict(self.random),
        }


@dataclass(frozen=True)
class Grouping:
    """All groups of one kind.

    Args:
        title: what the table shows.
        head: the head of its first column, `aspect`, `turn` or `turns`.
        counted: `queries` or `sessions`.
        groups: in the order of the rows.
        means: macro and micro mean, where they mean something.
        notes: sentences below the table.
    """

    title: str
    head: str
    counted: str
    groups: tuple[Group, ...]
    means: tuple[Group, ...] = ()
    notes: tuple[str, ...] = ()

    def to_dict(self) -> list[dict[str, Any]]:
        """The groups as JSON values, the means behind them."""
        return [group.to_dict(self.head, self.counted) for group in (*self.groups, *self.means)]


def by_aspect(
    evidence: Evidence, values: Mapping[str, FloatArray], names: Mapping[str, str], random: Chance | None
) -> Grouping | None:
    """Metrics over the queries of each aspect; a query with several aspects counts in each.

    A metric is the mean of its values per query; median_rank is the median of ranks, and censored a count.
    macro: (1/A) * sum_a m_a over the A aspects that have queries. micro: the metric over all queries that
    have an aspect, each counted once.

    Args:
        evidence: the values per query.
        values: by metric one value per query, shape (n,): of median_rank the ranks, of censored 1 or 0.
        names: how the aspects are called, in the order of the rows; others follow under their own name.
        random: the random ranker, or None.

    Returns:
        The groups; None where aspects are read off the captions and these do not differ in them.
    """
    column = evidence.benchmark.table.column("aspects")
    stated = bool(list_lengths(column).any())
    codes, seen, lengths = _coded_aspects(column if stated else _read_off(evidence.benchmark, names))
    if not stated and len(seen) == 1:
        return None
    order = [*names, *sorted(set(seen) - names.keys())]
    place = {aspect: number for number, aspect in enumerate(order)}
    member = np.zeros((len(lengths), len(order)), dtype=np.bool_)
    places = np.array([place[aspect] for aspect in seen], dtype=np.int64)
    member[np.repeat(np.arange(len(lengths)), lengths), places[codes]] = True
    known = {} if random is None else {metric: random.values(metric) for metric in values}
    expected = {metric: each for metric, each in known.items() if each is not None}
    groups = grouped(values, expected, member, {aspect: names.get(aspect, aspect) for aspect in order})
    some: NDArray[np.bool_] = lengths > 0
    n = int(some.sum())
    means = (
        Group(
            "macro",
            "macro mean",
            n,
            {metric: _macro([group.values[metric] for group in groups]) for metric in values},
            {metric: _macro([group.random[metric] for group in groups]) for metric in expected},
        ),
        Group("micro", "micro mean", n, _numbers(values, some), _numbers(expected, some)),
    )
    gone = [names.get(aspect, aspect) for aspect, held in zip(order, member.T, strict=True) if not held.any()]
    over = f"{len(order) - len(gone)} of {len(order)} aspects" if gone else "the aspects"
    notes = [f"macro: the mean over {over}; micro: the mean over the queries that have an aspect."]
    if gone:
        notes.append(f"No query is of {', '.join(gone)}, which the card names.")
    if (lengths > 1).any():
        notes.append("A query with several aspects counts in each of them.")
    without = len(lengths) - n
    if without:
        notes.append(f"{without:,} {'query has' if without == 1 else 'queries have'} no aspect.")
    return Grouping("By aspect", "aspect", "queries", groups, means, tuple(notes))


def by_column(
    evidence: Evidence, values: Mapping[str, FloatArray], column: str, random: Chance | None
) -> Grouping:
    """Metrics over the queries of each value of a column of texts, by alphabet.

    Args:
        evidence: the values per query.
        values: as for `by_aspect`.
        column: of the benchmark's rows.
        random: the random ranker, or None.
    """
    cells = np.array(evidence.benchmark.column(column), dtype=object)
    names = sorted({cell for cell in cells if cell})
    known = {} if random is None else {metric: random.values(metric) for metric in values}
    expected = {metric: each for metric, each in known.items() if each is not None}
    member = np.array([[cell == name for name in names] for cell in cells], dtype=np.bool_)
    title = column.replace("_", " ")
    return Grouping(
        f"By {title}", title, "queries", grouped(values, expected, member, {name: name for name in names})
    )


def _read_off(benchmark: Benchmark, names: Mapping[str, str]) -> pa.ChunkedArray:
    """The aspects of all queries' captions, where the card names those of captions."""
    import pyarrow as pa

    from cir_datasets.rows.caption_aspects import query_aspects

    aspects = [query_aspects({"captions": each}, names) for each in benchmark.column("captions")]
    return pa.chunked_array([pa.array(aspects, pa.list_(pa.string()))])


def _coded_aspects(column: pa.ChunkedArray) -> tuple[NDArray[np.int64], list[str], NDArray[np.int64]]:
    """All queries' aspects one after the other as places in a list, the list, how many each query has."""
    import pyarrow.compute as pc

    coded = pc.list_flatten(column).combine_chunks().dictionary_encode()
    return numbers(coded.indices).astype(np.int64), coded.dictionary.to_pylist(), list_lengths(column)


def grouped(
    values: Mapping[str, FloatArray],
    random: Mapping[str, FloatArray],
    member: NDArray[np.bool_],
    names: Mapping[Any, str],
) -> tuple[Group, ...]:
    """The numbers of each group, None where it holds no query or session.

    Args:
        values: by metric one value per query or session, shape (n,).
        random: what a random order is expected to get, likewise, for the metrics where that is known.
        member: which are in which group, shape (n, groups).
        names: by key how each group is called.
    """
    return tuple(
        Group(key, name, int(of.sum()), _numbers(values, of), _numbers(random, of))
        for (key, name), of in zip(names.items(), member.T, strict=True)
    )


def _numbers(values: Mapping[str, FloatArray], of: NDArray[np.bool_]) -> dict[str, float | None]:
    return {metric: _number(metric, each[of]) if of.any() else None for metric, each in values.items()}


def _number(metric: str, values: FloatArray) -> float:
    """The mean; of ranks the median; or how many targets are not listed, a whole number but if expected."""
    if metric == "median_rank":
        return float(np.median(values))
    if metric != "censored":
        return exact_mean(values)
    return exact_sums(values).item() if values.dtype.kind == "f" else values.sum().item()


def _macro(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return exact_mean(known) if known else None
