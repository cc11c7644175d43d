"""Everything that a score says: further metrics, chance and baselines, tables by aspect, turn and member.

`full_report(score(...))` is what `cir score` prints; all of it is computed from the values per query that the
score keeps (`ScoreReport.evidence`), so that no ranking is looked at twice.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from cir_datasets.common.terminal import Cell, Table, tables_text
from cir_datasets.registry.schema import is_micro, main_metric_terms, member_metric
from cir_datasets.rows import list_lengths
from cir_metrics.catalogue import METRICS, check_variant, parse_metric
from cir_metrics.sums import FloatArray, exact_mean, exact_sums
from submissions.report.grouping import (
    FLOOR_NAMES,
    Chance,
    Group,
    Grouping,
    Values,
    by_aspect,
    by_column,
    chance,
    random_floor,
    recorded_floors,
)
from submissions.scoring.score_report import ScoreReport, main_value, signature_notes, value_cells

if TYPE_CHECKING:
    from cir_datasets.registry.suites import SuiteSignature
    from cir_datasets.rows.benchmark import Benchmark
    from cir_metrics.catalogue import Signature
    from cir_metrics.sums import IntArray
    from submissions.scoring.evidence import Evidence, Rounds
    from submissions.scoring.intervals import Intervals

_BELOW = 0.001
"""The p-value under which a method is called worse than a random order."""


@dataclass(frozen=True)
class Report:
    """Everything about one score, as it is shown.

    Args:
        score: the board's numbers, and as its `extra` the further ones: the card's, then those asked for.
        floors: by name (`random`, `image_only`, `text_only`) the values by metric, as far as they are known.
        counts: how many queries or sessions, images, positives there are; None where it is not known.
        groupings: by `by_aspect`, `by_turn`, `by_length`, `by_video_category` the numbers by group, where
            there are such groups.
        members: a suite's members.
        means: a suite's macro and micro mean of everything that all members have.
        intervals: confidence intervals of the board's numbers, where they were asked for.
        notes: what a reader of chance, the baselines and the further metrics must know.
    """

    score: ScoreReport
    floors: Mapping[str, Values]
    counts: Mapping[str, int | None]
    groupings: Mapping[str, Grouping]
    members: tuple[Report, ...] = ()
    means: tuple[Group, ...] = ()
    intervals: Intervals | None = None
    notes: tuple[str, ...] = ()

    @property
    def extra(self) -> Mapping[str, float]:
        """The further metrics by name."""
        return self.score.extra

    @property
    def signatures(self) -> Mapping[str, Signature | SuiteSignature]:
        """Of the board's metrics and of the further ones."""
        return self.score.signatures

    def values(self) -> dict[str, float]:
        """The board's values and the further ones by name."""
        return {**self.score.metrics, **self.score.extra}

    @property
    def unit(self) -> str:
        """What is counted: `queries` or `sessions`."""
        return "sessions" if "sessions" in self.counts else "queries"

    def tables(self) -> tuple[Table, ...]:
        """Scores beside chance and baselines, counts, then the groups; a suite's members side by side."""
        tables = [_scores(self), *([_grouping(_members(self))] if self.members else []), _counts_table(self)]
        tables += [_grouping(grouping) for grouping in self.groupings.values()]
        for member in self.members:
            for table in map(_grouping, member.groupings.values()):
                title = f"{member.score.benchmark}: {table.title.lower()}"
                tables.append(dataclasses.replace(table, title=title))
        return tuple(tables)

    def render(self, format: str = "table") -> str:
        """The report in one of `cir_datasets.common.terminal.FORMATS`, without a line feed at the end.

        Args:
            format: `table`, `json` (fractions, all fields), `csv` (long form), `latex` or `markdown`.

        Raises:
            UnknownNameError: there is no such format.
        """
        if format == "table":
            return tables_text(self.tables())
        from cir_datasets.common.tables import render_or_json

        return render_or_json(format, self.tables, self.to_dict)

    def plot(self, path: str | Path) -> Path:
        """Draw the report into a .png, .svg or .pdf file; see `submissions.report.plots.write_plot`."""
        from submissions.report.plots import write_plot

        members = [(each.score.benchmark, each.score.metrics, _random(each)) for each in self.members]
        return write_plot(self.score, self.groupings, _random(self), members, self.intervals, path)

    def to_dict(self) -> dict[str, Any]:
        """`ScoreReport.to_dict` with everything else beside it, as JSON values."""
        floors = {
            name: {**values, "main": main_value(self.score.main_metric, values)}
            for name, values in self.floors.items()
        }
        document = self.score.to_dict() | {
            "floors": floors,
            "counts": dict(self.counts),
            **{name: grouping.to_dict() for name, grouping in self.groupings.items()},
            "notes": [
                *self.notes,
                *(note for grouping in self.groupings.values() for note in grouping.notes),
            ],
        }
        if self.intervals is not None:
            document["intervals"] = self.intervals.to_dict()
        if self.members:
            document["runs"] = [member.to_dict() for member in self.members]
            document["means"] = [group.to_dict("mean", self.unit) for group in self.means]
        return document


def _random(report: Report) -> Values:
    return report.floors.get("random", {})


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
    further: dict[str, FloatArray] = {}
    absent: list[str] = []
    if benchmark.spec.card.report.metrics:
        further, absent = evidence.card_values({**score.metrics, **score.extra})
    whole = dataclasses.replace(
        score,
        extra={name: exact_mean(values) for name, values in further.items()} | dict(score.extra),
        signatures={**score.signatures, **{name: _signature_like(score.signature, name) for name in further}},
    )
    floors, notes = _floors(whole, benchmark, random)
    if random is not None and not score.missing:
        notes = (*_below_chance(evidence, random), *notes)
    notes += _reference_notes(score)
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
    from submissions.report.turns import by_round

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
        notes=(rounds.silence_note(), *_reference_notes(score)),
    )


def _of_suite(score: ScoreReport, intervals: Intervals | None) -> Report:
    from cir_datasets.registry.suites import suite

    members, declared = tuple(full_report(run) for run in score.runs), suite(score.benchmark)
    sizes = [member.score.n for member in members]

    def means(values: Sequence[Values]) -> dict[str, float]:
        """Macro and micro means of what is known of every member, whichever the suite's own numbers are."""
        return declared.reduce(values, sizes, averages=("macro", "micro"))

    def of_average(values: Values, average: str) -> Values:
        own = [name for name in values if is_micro(name) == (average == "micro")]
        return {member_metric(name): values[name] for name in own}

    floors = {}
    for name in FLOOR_NAMES:
        known = means([member.floors.get(name, {}) for member in members])
        values = {metric: known[metric] for metric in (*score.metrics, *score.extra) if metric in known}
        if values:
            floors[name] = values
    found, random = means([member.values() for member in members]), means([*map(_random, members)])
    return Report(
        score=score,
        floors=floors,
        counts=_added([member.counts for member in members]),
        groupings={},
        members=members,
        means=tuple(
            Group(key, f"{key} mean", sum(sizes), of_average(found, key), of_average(random, key))
            for key in ("macro", "micro")
        ),
        intervals=intervals,
        notes=_reference_notes(score),
    )


def _added(counts: Sequence[Mapping[str, int | None]]) -> dict[str, int | None]:
    """The members' counts, added up; galleries overlap and have no sum."""
    return {name: sum(each.get(name) or 0 for each in counts) for name in counts[0] if name != "gallery"}


def _reference_notes(score: ScoreReport) -> tuple[str, ...]:
    """What a reader must know of the reference, where the protocol keeps it, or members may differ."""
    if not score.runs and score.signature.reference != "kept":
        return ()
    from submissions.scoring.reference_use import reference_notes

    return reference_notes(score)


def _below_chance(evidence: Evidence, random: Chance) -> tuple[str, ...]:
    """The note on rankings that find less than a random order, by the largest K of those scored."""
    if evidence.ranks is None:
        return ()
    parsed = {name: parse_metric(name) for name in evidence.values if ":" not in name}
    known = [
        (k, name)
        for name, (module, k) in parsed.items()
        if k and module in ("recall_at_k", "final_recall") and k < random.images
    ]
    if not known:
        return ()
    _, name = max(known)
    found, expected = evidence.values[name], random.values(name)
    if expected is None or exact_mean(found) >= exact_mean(expected):
        return ()
    return _below_chance_note(name, found, exact_mean(expected))


def _below_chance_note(metric: str, found: FloatArray, chance_of: float) -> tuple[str, ...]:
    """What is said of rankings that find fewer targets than a random order by more than luck, else nothing.

    The test is a one-sided binomial one, of the queries with a target among the first K of their ranking. The
    mean of the queries' chances is taken as the chance of each; where they differ this makes p larger
    (Hoeffding, Ann. Math. Stat. 27, 1956). Rankings that find as many are above every p that is small.

    Args:
        metric: the recall@K or final_recall@K of the largest K. Subsets are not looked at: a ranking by the
            reference alone may be below chance there.
        found: its value of each query, 0 or 1, shape (n,).
        chance_of: the mean of the queries' chances.
    """
    p = _binomial_at_most(round(float(exact_sums(found))), len(found), chance_of)
    if p >= _BELOW:
        return ()
    note = (
        f"below chance: {metric} is {100 * exact_mean(found):.2f}, of a random order {100 * chance_of:.2f} "
        f"(one-sided binomial test, p < {_BELOW}). Are these distances, or is the worst first? Higher "
        "scores rank first. Fix: negate distances, and make the file again."
    )
    return (note,)


def _binomial_at_most(found: int, n: int, chance_of: float) -> float:
    """P(X <= found), X binomial of n draws.

    Example:
        >>> round(_binomial_at_most(1, 3, 0.5), 6)
        0.5
    """
    with localcontext(prec=30):
        right = Decimal(chance_of)
        term = (1 - right) ** n
        total = term
        for hits in range(found):
            term *= right * (n - hits) / ((1 - right) * (hits + 1))
            total += term
    return float(total)


def _signature_like(other: Signature, printed: str) -> Signature:
    """The signature of another metric over the same queries."""
    name, _ = parse_metric(printed)
    return dataclasses.replace(
        other,
        metric=printed,
        variant=check_variant(name, None),
        metric_version=METRICS[name].version,
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
        from submissions.report.turns import session_groupings

        return session_groupings(evidence, [*score.metrics, *score.extra], random)
    report = evidence.benchmark.spec.card.report
    known = {**evidence.values, **further}
    if "mean_rank" in known:
        known["median_rank"] = known["mean_rank"]
    wanted = dict.fromkeys([*report.by_aspect, *(score.extra if report.by_aspect else ())])
    values = {name: known[name] for name in wanted if name in known}
    aspects = by_aspect(evidence, values, report.aspect_names, random) if values else None
    found = {} if aspects is None else {"by_aspect": aspects}
    columns = (name for name in evidence.benchmark.table.column_names if name in _CATEGORIES)
    shown = values or {name: known[name] for name in score.metrics if name in known}
    return found | {f"by_{name}": by_column(evidence, shown, name, random) for name in columns}


_CATEGORIES = ("video_category", "video_subcategory")
"""Columns by which queries are counted apart."""


def _scores(report: Report) -> Table:
    score = report.score
    answered = f"{score.n:,}" if score.answered == score.n else f"{score.answered:,} of {score.n:,}"
    floors = [name for name in FLOOR_NAMES if name in report.floors]
    expression = f"main: {score.main_metric}"
    lines = [
        (name, name, [value, *(report.floors[each].get(name) for each in floors)])
        for name, value in report.values().items()
    ]
    main = [score.main, *(main_value(score.main_metric, report.floors[each]) for each in floors)]
    rows = []
    has_main = {*report.values(), *score.missing_metrics} >= {*main_metric_terms(score.main_metric)}
    if has_main:  # a selection of metrics may leave a part of it out
        lines.append((expression, score.main_metric, main))
    intervals, notes, heads = report.intervals, [], []
    if intervals is not None:
        notes, heads = [intervals.note()], ["low", "high"]
    for shown, metric, values in lines:
        first, *others = value_cells(metric, values)
        interval = [] if intervals is None else value_cells(metric, intervals.ends(metric))
        rows.append((Cell(shown), first, *interval, *others))
    return Table(
        title=f"{score.method} on {score.benchmark}#{score.benchmark_version}, {answered} answered",
        columns=("metric", "score", *heads, *(FLOOR_NAMES[name] for name in floors)),
        rows=tuple(rows),
        notes=(*notes, *report.notes, *signature_notes(score.signatures)),
    )


def _members(report: Report) -> Grouping:
    """A suite's members side by side, then their macro and micro means."""
    rows = [
        Group(each.score.benchmark, each.score.benchmark, each.score.n, each.values(), _random(each))
        for each in report.members
    ]
    known = {name for row in rows for name, value in row.random.items() if value}
    groups, means = (
        tuple(
            dataclasses.replace(row, random={name: row.random[name] for name in row.random if name in known})
            for row in part
        )
        for part in (rows, report.means)
    )
    one = "session" if report.unit == "sessions" else "query"
    notes = [
        f"macro: every benchmark weighs the same; micro: every {one} does (- where there is no such mean)."
    ]
    notes += [f"{member.score.benchmark}: {note}" for member in report.members for note in member.notes]
    for member in report.members:
        notes += signature_notes(member.score.signatures)
    return Grouping("By benchmark", "benchmark", report.unit, groups, means, tuple(notes))


def _counts_table(report: Report) -> Table:
    names = list(report.counts)
    row = (Cell(report.score.benchmark), *(_count(report.counts[name]) for name in names))
    return Table("Counts", ("benchmark", *(name.replace("_", " ") for name in names)), (row,))


def _grouping(grouping: Grouping) -> Table:
    """A row a group: each metric and, where some row has it, what a random order is expected to get."""
    everyone = (*grouping.groups, *grouping.means)
    metrics = dict.fromkeys(name for group in everyone for name in group.values)
    with_random = {name for group in everyone for name in group.random}
    heads = []
    for name in metrics:
        heads += [name, f"{name} random"] if name in with_random else [name]
    rows = []
    for group in everyone:
        cells = [Cell(group.name, group.key if isinstance(group.key, int) else None), _count(group.n)]
        for name in metrics:
            cells += value_cells(name, [group.values.get(name)])
            if name in with_random:
                cells += value_cells(name, [group.random.get(name)])
        rows.append(tuple(cells))
    columns = (grouping.head, grouping.counted, *heads)
    return Table(grouping.title, columns, tuple(rows), grouping.notes)


def _count(value: int | None) -> Cell:
    return Cell("-" if value is None else f"{value:,}", value)
