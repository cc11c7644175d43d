"""What a run gave, as tables and as the sections of its page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from cir_datasets.common.tables import pooled
from cir_datasets.common.terminal import Cell, Table
from cir_datasets.construction.circled.filters import FILTERS
from cir_datasets.construction.report import Example, Section, Step, table_of
from cir_datasets.statistics.counts import Statistics, class_names, measure, measure_rows
from cir_datasets.statistics.report import statistics_figures

if TYPE_CHECKING:
    from cir_datasets.construction.circled.pipeline import MadeSessions
    from cir_datasets.construction.circled.turns import PlayedSession
    from cir_datasets.rows.benchmark import Benchmark

Row = dict[str, Any]
_TERMS = 20
_EXAMPLES = 6
_PER_FILTER = 2


def filter_table(made: Mapping[str, Mapping[str, int]]) -> Table:
    """Sessions begun, removed by each filter, and left: the form of CIRCLED's Table 3.

    Args:
        made: by benchmark that sessions were made of, the counts.
    """
    columns = list(next(iter(made.values())))
    rows, counts = [], list(made.values())
    for name, places in pooled(list(made), [benchmark.partition("/")[0] for benchmark in made]):
        sums = (sum(counts[place][column] for place in places) for column in columns)
        rows.append((name.replace("/", "_"), *sums))
    removed = dict(zip(columns, rows[-1][1:], strict=True))
    notes = [f"{filter_}: {what}." for filter_, what in FILTERS.items() if removed[filter_]]
    return table_of("Sessions by filter", ("subset", *columns), rows, notes)


def turns_table(made: MadeSessions, name: str, last: int) -> Table:
    """Sessions by number of turns: the form of CIRCLED's Table 4."""
    by_turns = Counter(len(row["turns"]) for row in made.sessions)
    total = len(made.sessions)
    average = sum(turns * count for turns, count in by_turns.items()) / total if total else 0.0
    numbers = range(2, last + 1)
    columns = ("subset", "sessions", "images", "average turns", *(f"{turns} turns" for turns in numbers))
    mean = Cell(f"{average:.2f}", round(average, 6))
    row = (name, total, len(made.images), mean, *(by_turns[turns] for turns in numbers))
    return table_of("Sessions by number of turns", columns, [row])


def definitions_table(checked: Sequence[Row], epsilon: int, tau: float) -> Table:
    """How many sessions obey both definitions when they are replayed."""
    consistent, diverse = (sum(bool(row[name]) for row in checked) for name in ("consistent", "diverse"))
    rows = (
        (
            f"epsilon-consistent (epsilon {epsilon})",
            consistent,
            max((row["fall"] for row in checked), default=0),
        ),
        (f"tau-diverse (tau {tau:g})", diverse, max((row["nearest"] for row in checked), default=0.0)),
    )
    return table_of(
        "Definitions",
        ("definition", "sessions that obey it", "of", "largest value"),
        ((name, count, len(checked), Cell(f"{worst:g}", float(worst))) for name, count, worst in rows),
        ("Largest values: places that a target falls from turn to turn; similarity of two captions.",),
    )


def language_table(parts: Sequence[Statistics]) -> Table:
    """Captions of several sources side by side: the form of CIRCLED's Table 2."""
    tagged = all(part.classes is not None for part in parts)
    names = class_names() if tagged else ()
    rows = []
    for part in parts:
        shares = part.class_shares or {}
        figures = [(part.mean_length, "{:.1f}"), (part.type_token_ratio, "{:.3f}")]
        cells = [
            Cell("-") if value is None else Cell(text.format(value), round(value, 6))
            for value, text in figures
        ]
        cells += [Cell(f"{100 * shares.get(name, 0):.1f}", round(shares.get(name, 0), 6)) for name in names]
        rows.append((part.id, part.caption_count, *cells))
    return table_of(
        "Captions",
        ("source", "captions", "words a caption", "type-token ratio", *(f"{name} %" for name in names)),
        rows,
        ("The type-token ratio falls as a text grows: compare sources of like size.",),
    )


def sections(
    made: MadeSessions, benchmark: Benchmark, *, epsilon: int, tau: float, turns: int
) -> list[Section]:
    """The page of a run: counts, definitions, language, and examples of what is kept and what went."""
    name = benchmark.id.replace("/", "_")
    found = [
        Section("Sessions", (filter_table({benchmark.id: made.counts}), turns_table(made, name, turns))),
        Section("Definitions", (definitions_table(made.checked, epsilon, tau),)),
    ]
    if made.sessions:
        parts = [
            _counted(partial(measure, benchmark)),
            _counted(partial(measure_rows, f"{name} (sessions)", made.sessions, multi_turn=True)),
        ]
        plots = statistics_figures(parts, _TERMS)
        found.append(
            Section(
                "Language",
                (language_table(parts),),
                tuple((what.replace("_", " "), figure) for what, figure in sorted(plots.items())),
            )
        )
    by_query = {session.query["query"]: session for session in made.played}
    kept = [row for row in made.verdicts if row["kept"]]
    found.append(Section("Kept", examples=tuple(_example(by_query, row) for row in kept[:_EXAMPLES])))
    for filter_, what in FILTERS.items():
        gone = [row for row in made.verdicts if row["filter"] == filter_]
        if gone and filter_ != "empty caption":
            shown = tuple(_example(by_query, row) for row in gone[:_PER_FILTER])
            found.append(Section(f"Removed: {filter_}", examples=shown, notes=(f"{what}.",)))
    return found


def _counted(count: Callable[..., Statistics]) -> Statistics:
    """Statistics with parts of speech, or without them where their tagger is not installed."""
    from cir_metrics.errors import MissingExtraError

    try:
        return count()
    except MissingExtraError:
        return count(tags=False)


def _example(sessions: dict[str, PlayedSession], row: Row) -> Example:
    session = sessions[row["query"]]
    steps = [
        Step(turn["reference"], f"turn {number}, rank {turn['rank']}", turn["caption"])
        for number, turn in enumerate(session.turns, start=1)
    ]
    if not steps:
        steps = [Step(session.query["reference"], "reference", session.query["caption"])]
    steps += [Step(target, "target", kind="good") for target in session.targets[:1]]
    return Example(row["query"], tuple(steps), row["why"])
