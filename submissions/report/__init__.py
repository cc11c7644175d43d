"""Everything that a score says: further metrics, chance and baselines, tables by aspect, turn and member.

`full_report(score(...))` is what `cir score` prints; all of it is computed from the values per query that the
score keeps (`ScoreReport.evidence`), so that no ranking is looked at twice.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from cir_datasets.registry.schema import is_micro, member_metric
from cir_datasets.rows import list_lengths
from cir_metrics.catalogue import check_variant, metric, parse_metric
from cir_metrics.sums import FloatArray, exact_mean
from submissions.report.document import Report
from submissions.report.floors import (
    FLOOR_NAMES,
    Chance,
    below_chance_note,
    chance,
    random_floor,
    recorded_floors,
)
from submissions.report.grouping import Group, Grouping, Values, by_aspect, by_length, by_round, by_turn
from submissions.scoring.further_metrics import card_values
from submissions.scoring.reference_use import reference_notes
from submissions.scoring.score_report import Evidence, ScoreReport

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from cir_metrics.signature import Signature
    from cir_metrics.sums import IntArray
    from submissions.scoring.intervals import Intervals
    from submissions.scoring.rounds import Rounds
    from submissions.scoring.suite_signature import SuiteSignature


__all__ = ["Report", "full_report"]


def full_report(score: ScoreReport, intervals: Intervals | None = None) -> Report:
    """The report of a score.

    Args:
        score: what `submissions.score` returned.
        intervals: of the same score, from `submissions.scoring.intervals`; shown beside the numbers.

    Returns:
        Tables, JSON values, and the text of any format.

    Example:
        >>> from submissions import make_rank_file, score
        >>> report = full_report(score(make_rank_file("shapes/val", "random")))
        >>> [table.title for table in report.tables()]
        ['Random on shapes/val#2, 300 answered', 'Counts', 'By aspect']
    """
    if score.evidence is None:
        return _of_suite(score, intervals)
    if score.evidence.rounds is not None:
        return _of_dialogue(score, score.evidence, score.evidence.rounds, intervals)
    evidence, benchmark = score.evidence, score.evidence.benchmark
    random = chance(benchmark)
    further, absent = card_values(evidence, {**score.metrics, **score.extra})
    first = next(iter(score.signatures.values()))
    whole = dataclasses.replace(
        score,
        extra={name: exact_mean(values) for name, values in further.items()} | dict(score.extra),
        signatures={**score.signatures, **{name: _signature_like(first, name) for name in further}},
    )
    floors, notes = _floors(whole, benchmark, random)
    if random is not None and not score.missing:
        notes = (*below_chance_note(evidence, random), *notes)
    notes += reference_notes(score)
    if absent:
        names = ", ".join(absent)
        notes = (*notes, f"Not computed, because the file holds no rankings for it: {names}.")
    return Report(
        score=whole,
        floors=floors,
        counts=_counts(score, evidence, random),
        groupings=_groupings(score, evidence, further, random),
        intervals=intervals,
        notes=notes,
    )


def _of_dialogue(
    score: ScoreReport, evidence: Evidence, rounds: Rounds, intervals: Intervals | None
) -> Report:
    """Of dialogues: how their sessions ended, and all by round; chance and baselines have none."""
    solved = evidence.values[f"hits@{rounds.k}@turn{rounds.last}"] > 0
    ranks = cast("IntArray", evidence.ranks)
    return Report(
        score=score,
        floors={},
        counts={
            "sessions": score.n,
            "rounds_played": int(rounds.played.sum()),
            "solved": int(solved.sum()),
            "silent": int(rounds.silent[:, -1].sum()),
            "missing": score.missing,
        },
        groupings={"by_turn": by_round(evidence.values, ranks, rounds)},
        intervals=intervals,
        notes=(rounds.silence_note(), *reference_notes(score)),
    )


def _of_suite(score: ScoreReport, intervals: Intervals | None) -> Report:
    members = tuple(full_report(run) for run in score.runs)
    floors = {}
    for name in FLOOR_NAMES:
        known = _means(score.benchmark, members, [member.floors.get(name, {}) for member in members])
        values = {metric: known[metric] for metric in (*score.metrics, *score.extra) if metric in known}
        if values:
            floors[name] = values
    return Report(
        score=score,
        floors=floors,
        counts=_added([member.counts for member in members]),
        groupings={},
        members=members,
        means=_mean_groups(score.benchmark, members),
        intervals=intervals,
        notes=reference_notes(score),
    )


def _means(suite_id: str, members: Sequence[Report], values: Sequence[Values]) -> dict[str, float]:
    """Macro and micro means of what is known of every member, whichever the suite's own numbers are."""
    from cir_datasets.registry.suites import suite

    sizes = [member.score.n for member in members]
    return suite(suite_id).reduce(values, sizes, averages=("macro", "micro"))


def _mean_groups(suite_id: str, members: Sequence[Report]) -> tuple[Group, ...]:
    """The rows of the macro and the micro mean below the members' rows."""
    found = _means(suite_id, members, [member.values() for member in members])
    random = _means(suite_id, members, [member.floors.get("random", {}) for member in members])
    n = sum(member.score.n for member in members)
    return tuple(
        Group(key, f"{key} mean", n, _of_average(found, key), _of_average(random, key))
        for key in ("macro", "micro")
    )


def _of_average(values: Mapping[str, float], average: str) -> dict[str, float | None]:
    """The numbers of one average, under the members' names."""
    return {
        member_metric(name): value for name, value in values.items() if is_micro(name) == (average == "micro")
    }


def _added(counts: Sequence[Mapping[str, int | None]]) -> dict[str, int | None]:
    """The members' counts, added up; galleries overlap and have no sum."""
    return {name: sum(each.get(name) or 0 for each in counts) for name in counts[0] if name != "gallery"}


def _signature_like(other: Signature | SuiteSignature, printed: str) -> Signature:
    """The signature of another metric over the same queries."""
    name, _ = parse_metric(printed)
    return dataclasses.replace(
        cast("Signature", other),
        metric=printed,
        variant=check_variant(name, None),
        metric_version=metric(name).version,
    )


def _floors(
    score: ScoreReport, benchmark: Benchmark, random: Chance | None
) -> tuple[dict[str, dict[str, float | None]], tuple[str, ...]]:
    recorded, notes = recorded_floors(benchmark)
    floors: dict[str, dict[str, float | None]] = {}
    if random is None:
        first = "No chance values: the size of the gallery is not known."
    else:
        floors["random"] = random_floor(random, [*score.metrics, *score.extra])
        source = " (the card's count)" if benchmark.gallery is None else ""
        images = f"{random.images:,}"
        if random.lengths is not None and (least := int(random.lengths.min())) < random.images:
            images = f"{least:,} to {images}"
        first = f"random: expected of a random order of {images} images{source}."
    return {**floors, **{name: {**values} for name, values in recorded.items()}}, (first, *notes)


def _counts(score: ScoreReport, evidence: Evidence, random: Chance | None) -> dict[str, int | None]:
    benchmark = evidence.benchmark
    several = benchmark.multi_turn

    def total(column: str) -> int:
        return int(list_lengths(benchmark.ids(column)).sum())

    counts: dict[str, int | None] = {"sessions" if several else "queries": score.n}
    if several:
        counts["turns"] = sum(benchmark.column("num_turns"))
    counts |= {"answered": score.answered, "missing": score.missing}
    if benchmark.gallery is not None:
        counts["gallery"] = len(benchmark.gallery)
    else:
        counts["gallery"] = None if random is None else random.images + benchmark.excludes_reference
    counts["positives"] = total("ground_truth_ids" if several else "positive_image_ids")
    if not several:
        counts["hard_negatives"] = total("negative_image_ids")
    if score.reference_held is not None and not benchmark.excludes_reference:
        counts["reference_ranked"] = score.reference_held[0]
    return counts


def _groupings(
    score: ScoreReport, evidence: Evidence, further: dict[str, FloatArray], random: Chance | None
) -> dict[str, Grouping]:
    if evidence.num_turns is not None:
        if evidence.ranks is None or evidence.list_lengths is None:
            return {}
        cutoffs = _session_cutoffs(score)
        return {
            "by_turn": by_turn(evidence.ranks, evidence.list_lengths, evidence.num_turns, cutoffs, random),
            "by_length": by_length(evidence.ranks, evidence.num_turns, cutoffs, random),
        }
    report = evidence.benchmark.spec.card.report
    known = {**evidence.values, **further}
    if "mean_rank" in known:
        known["median_rank"] = known["mean_rank"]
    wanted = dict.fromkeys([*report.by_aspect, *(score.extra if report.by_aspect else ())])
    values = {name: known[name] for name in wanted if name in known}
    return {"by_aspect": by_aspect(evidence, values, report.aspect_names, random)} if values else {}


def _session_cutoffs(score: ScoreReport) -> list[int]:
    """Cutoffs of the metrics that were computed; 10 where none has a cutoff."""
    parsed = (parse_metric(name) for name in (*score.metrics, *score.extra))
    return sorted({k for _, k in parsed if k is not None}) or [10]
