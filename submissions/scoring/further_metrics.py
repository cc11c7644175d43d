"""Metrics beside the board's that a caller names, such as `recall@20` or `pnr_map@10:released_code`.

They are computed from the same rankings, cut to the depth that the board uses, so that nobody gains by longer
lists; a cutoff beyond that depth is refused, because nothing is known there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cir_metrics.catalogue import METRICS, check_variant, metric, parse_metric, reads_subset
from cir_metrics.errors import CallError, InputError, UnknownNameError
from cir_metrics.evaluation import evaluate_coded
from submissions.rank_file.benchmarks import SUBSET_DEPTH, board_depth

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from cir_metrics.evaluation import CodedQueries, CodedSessions, Results
    from submissions.rank_file.model import RankFile


@dataclass(frozen=True)
class Further:
    """One metric that was asked for.

    Args:
        module: the metric's module name.
        k: cutoff, or None where it has none.
        variant: how it is computed.
        printed: printed name without variant.
        turn: the one turn that was asked for, or None for all that there are.
    """

    module: str
    k: int | None
    variant: str
    printed: str
    turn: int | None = None

    @property
    def suffix(self) -> str:
        """What is put behind printed names: `:variant` where that is not the default."""
        return "" if self.variant == metric(self.module).default_variant else f":{self.variant}"

    @property
    def name(self) -> str:
        """The name that the value is reported under."""
        return self.printed + self.suffix


def metric_names(names: object) -> tuple[str, ...]:
    """Names of metrics that a caller handed in.

    Raises:
        CallError: they are not a list of strings: a string would be read letter by letter.

    Example:
        >>> metric_names(["recall@20"])
        ('recall@20',)
    """
    if isinstance(names, str):
        raise CallError(f"metrics is the string {names!r}. Fix: pass a list, [{names!r}].")
    if not isinstance(names, Iterable):
        raise CallError(f"metrics is of type {type(names).__name__}. Fix: pass a list such as ['recall@20'].")
    listed = tuple(names)
    for name in listed:
        if not isinstance(name, str):
            raise CallError(f"metrics holds {name!r}. Fix: pass names such as 'recall@20'.")
    return listed


def parse_further(names: Iterable[str]) -> tuple[Further, ...]:
    """The metrics of names such as `recall@20` and `pnr_map@10:released_code`.

    Raises:
        UnknownNameError: no metric has that name.
        CallError: the cutoff or the variant is wrong.

    Example:
        >>> [further.name for further in parse_further(["pnr_map@10:released_code", "map@5:equation"])]
        ['pnr_map@10:released_code', 'map@5']
    """
    found = []
    for name in names:
        printed, colon, variant = name.partition(":")
        try:
            module, k = parse_metric(printed)
            chosen = check_variant(module, variant if colon else None)
        except UnknownNameError:
            raise
        except InputError as error:
            reason = str(error).removeprefix(repr(printed)).lstrip(": ")
            raise CallError(f"metric {name!r}: {reason}") from error
        found.append(_further(printed, module, k, chosen))
    return tuple(dict.fromkeys(found))


def _further(printed: str, module: str, k: int | None, variant: str) -> Further:
    """The metric under the name that scores are printed with: `recall@020` is `recall@20`."""
    short = printed.partition("@")[0] + ("" if k is None else f"@{k}")
    _, _, turn = printed.partition("@turn")
    if not turn:
        return Further(module, k, variant, short)
    return Further(module, k, variant, f"{short}@turn{int(turn)}", int(turn))


def for_members(further: Sequence[Further], members: Sequence[Benchmark]) -> list[list[Further]]:
    """What each member of a suite is asked for: behind its last turn, Hits@K are those of that turn.

    Args:
        further: what the suite is asked for.
        members: its benchmarks.
    """
    last = [max(each.column("num_turns")) if each.multi_turn else 0 for each in members]

    def at_most(each: Further, turn: int) -> Further:
        if each.turn is None or not turn < each.turn <= max(last):
            return each
        printed = f"{each.printed.partition('@turn')[0]}@turn{turn}"
        return dataclasses.replace(each, printed=printed, turn=turn)

    return [[at_most(each, turn) for each in further] for turn in last]


def check_further(
    wanted: Iterable[Further], benchmark: Benchmark, rank_file: RankFile
) -> tuple[Further, ...]:
    """Those metrics that the board does not show anyway, after a look at whether the file can give them.

    Raises:
        CallError: a metric of sessions for queries or the reverse, a turn that no session has, a cutoff
            beyond the board's depth, or rankings of subsets that the file does not hold.
    """
    further, shown = [], {*benchmark.spec.metrics}
    for each in wanted:
        is_shown = each.printed.partition("@turn")[0] + each.suffix in shown
        for fault in _faults(each, benchmark, rank_file, is_shown=is_shown):
            raise CallError(f"metric {each.name}: {fault}")
        if not is_shown:
            further.append(each)
    return tuple(further)


def _faults(each: Further, benchmark: Benchmark, rank_file: RankFile, *, is_shown: bool) -> Iterator[str]:
    """Why the file gives no such number; of one that the board shows, whether there is such a thing."""
    protocol, has = ("multi_turn", "sessions") if benchmark.multi_turn else ("single_turn", "queries")
    if protocol not in METRICS[each.module].protocols:
        other = "queries" if benchmark.multi_turn else "sessions"
        yield f"a metric of {other}, and {benchmark.id} has {has}. Fix: leave it out."
    if each.turn is not None and each.module != "hits_at_k":
        yield f"only transcripts have it. Fix: leave '@turn{each.turn}' out."
    last = max(benchmark.column("num_turns")) if each.turn is not None else 0
    if each.turn is not None and not 1 <= each.turn <= last:
        yield f"the longest session of {benchmark.id} has {last} turns. Fix: ask for a turn from 1 to {last}."
    if is_shown:
        return
    if "turn_targets" in METRICS[each.module].fields and benchmark.turn_targets is None:
        yield f"the turns of {benchmark.id} have no targets of their own. Fix: ask for final_recall or hits."
    depth, lists, needed = board_depth(benchmark), rank_file.rankings or None, "rankings of the gallery"
    most, why = depth.used, f"the board of {benchmark.id} cuts every ranking to {depth.used} images"
    if in_subset := reads_subset(each.printed):
        lists, needed = rank_file.subset_rankings, "a ranking of each query's subset"
        most, why = SUBSET_DEPTH, f"a subset's ranking need not hold more than {SUBSET_DEPTH} images"
    if lists is None:
        yield f"needs {needed}, which the file does not hold. Fix: leave it out."
    if each.k is not None and each.k > most and (in_subset or depth.required == depth.used):
        yield f"{why}, so that nothing is known beyond rank {most}. Fix: ask for a cutoff of at most {most}."
    if rank_file.method.repaired:
        from submissions.scoring.repaired import within_reach

        if not within_reach([each.printed], rank_file, benchmark):
            yield (
                "the repaired lists do not reach so deep. Fix: ask for a smaller cutoff; "
                "cir repair  says which depth was left."
            )


def with_further(
    results: Results, further: Sequence[Further], coded: CodedQueries | CodedSessions
) -> tuple[Results, dict[str, float]]:
    """The board's results with the further metrics' values per query, and by name the values of these.

    Args:
        results: the board's.
        further: what `check_further` returned.
        coded: the rankings, with what the metrics need.
    """
    values: dict[str, float] = {}
    per_query = dict(results.per_query)
    for each in further:
        found = evaluate_coded([(each.module, each.k)], coded, {each.module: each.variant})
        for name in found.values if each.turn is None else [each.printed]:
            # A further metric may bring numbers that the board shows: with median_rank comes mean_rank.
            if name + each.suffix not in results.values:
                values[name + each.suffix] = found.values[name]
            if name in found.per_query:
                per_query[name + each.suffix] = found.per_query[name]
    return dataclasses.replace(results, per_query=per_query), values
