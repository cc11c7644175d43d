"""A language model as judge of sessions: five scales from 1 to 5 (CIRCLED, section 5.3 and appendix D).

Each session is judged alone, so that no order of sessions can matter. Judges may differ in model or run; how
far they agree is Krippendorff's alpha for ordinal values, by scale.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cir_datasets.common.tables import pooled
from cir_datasets.common.terminal import Cell, Table
from cir_datasets.construction.backends import Failed, Question, Words
from cir_datasets.construction.report import table_of
from cir_datasets.construction.review.agreement import krippendorff_alpha

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = dict[str, Any]

SCALES = ("naturalness", "coherence", "progress", "redundancy", "overall")
"""The five scales, in the order of the paper's Table 5; 5 is best."""
_BEST = 5
_CHUNK = 64


@dataclass(frozen=True)
class Judge:
    """Who judges.

    Args:
        name: in tables.
        words: the language backend; its pictures are those of the source that is judged.
    """

    name: str
    words: Words


def pictures_judged(session: Row, aim: str | None) -> tuple[str, ...]:
    """What a judge sees: the reference of each turn, and last the target.

    Args:
        session: in the published form.
        aim: of several targets the one that its words aimed at; None takes the first.

    Example:
        >>> session = {"turns": [{"reference_image_id": "a"}], "ground_truth_ids": ["b", "c"]}
        >>> pictures_judged(session, "c"), pictures_judged(session, None)
        (('a', 'c'), ('a', 'b'))
    """
    target = aim if aim in session["ground_truth_ids"] else session["ground_truth_ids"][0]
    return (*(turn["reference_image_id"] for turn in session["turns"]), target)


def judged(
    judge: Judge, source: str, sessions: Sequence[Row], aims: Mapping[str, str] | None = None
) -> list[Row]:
    """A row a session: the five scales, or why there are none.

    Args:
        judge: who judges; it sees the reference of each turn, and last the target.
        source: the benchmark's id.
        sessions: in the published form.
        aims: by session the target that its words aimed at, where it has several.
    """
    questions = [
        Question(
            {"utterances": "\n".join(_said(turn) for turn in row["turns"])},
            pictures_judged(row, (aims or {}).get(row["session_id"])),
        )
        for row in sessions
    ]
    answers = judge.words.ask("session", questions)
    rows = []
    for row, answer in zip(sessions, answers, strict=True):
        known = {
            "source": source,
            "session": row["session_id"],
            "judge": judge.name,
            "turns": len(row["turns"]),
        }
        rows.append(
            {**known, "failed": answer.why}
            if isinstance(answer, Failed)
            else {**known, **{scale: int(answer[scale]) for scale in SCALES}}
        )
    return rows


def scores_table(rows: Sequence[Row], sources: Mapping[str, str] | None = None) -> Table:
    """Means and standard deviations by benchmark and judge, side by side: the form of CIRCLED's Table 5.

    Below the benchmarks stand sources that have several, and all together.

    Args:
        rows: of `judged`.
        sources: by benchmark what it is pooled with; default: its dataset.
    """
    names = list(dict.fromkeys(row["source"] for row in rows))
    shown = []
    for name, places in pooled(names, _sources(names, sources)):
        members = {names[place] for place in places}
        for judge in dict.fromkeys(row["judge"] for row in rows if row["source"] in members):
            own = [row for row in rows if row["source"] in members and row["judge"] == judge]
            good = [row for row in own if "failed" not in row]
            turns = statistics.fmean(row["turns"] for row in own)
            mean = Cell(f"{turns:.2f}", round(turns, 6))
            scales = (_mean([row[scale] for row in good]) for scale in SCALES)
            shown.append((name, judge, len(good), len(own) - len(good), mean, *scales))
    return table_of(
        "Sessions judged",
        ("source", "judge", "sessions", "failed", "average turns", *SCALES),
        shown,
        ("Scales from 1 to 5, 5 is best; mean and standard deviation. A failed session is in no mean.",),
    )


def _sources(names: Sequence[str], sources: Mapping[str, str] | None) -> list[str]:
    return [(sources or {}).get(name, name.partition("/")[0]) for name in names]


def agreement_table(rows: Sequence[Row]) -> Table | None:
    """Krippendorff's alpha (ordinal) by scale over all sessions; None where there is one judge alone.

    Raises:
        MissingExtraError: krippendorff is not installed.
    """
    judges = list(dict.fromkeys(row["judge"] for row in rows))
    if len(judges) < 2:
        return None
    sessions = list(dict.fromkeys((row["source"], row["session"]) for row in rows))
    place = {session: number for number, session in enumerate(sessions)}
    shown = []
    for scale in SCALES:
        values = [[math.nan] * len(sessions) for _ in judges]
        for row in rows:
            if scale in row:
                values[judges.index(row["judge"])][place[row["source"], row["session"]]] = float(row[scale])
        alpha = krippendorff_alpha(values)
        shown.append((Cell(scale), Cell("-") if alpha is None else Cell(f"{alpha:.3f}", round(alpha, 6))))
    return Table(
        "Agreement of judges",
        ("scale", "alpha"),
        tuple(shown),
        (
            f"Krippendorff's alpha, ordinal, of {' and '.join(judges)}: 1 is agreement, 0 is chance.",
            "A line in its place: all values are the same.",
        ),
    )


def scores_figure(rows: Sequence[Row], sources: Mapping[str, str] | None = None) -> Figure:
    """Mean scales by source, a group of bars a scale.

    Args:
        rows: as for `scores_table`.
        sources: as for `scores_table`; those of one benchmark are called as it is.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    from cir_datasets.common.plots import empty_figure, quiet_axes

    names = list(dict.fromkeys(row["source"] for row in rows))
    bars: dict[str, list[str]] = {}
    for name, source in zip(names, _sources(names, sources), strict=True):
        bars.setdefault(source, []).append(name)
    figure = empty_figure(7.2, 3.0, pads=(0.1, 0.06))
    axes = figure.add_subplot()
    width = 0.8 / len(bars)
    for number, (source, members) in enumerate(bars.items()):
        good = [row for row in rows if row["source"] in members and "failed" not in row]
        heights = [statistics.fmean([row[scale] for row in good] or [0.0]) for scale in SCALES]
        left = [place - 0.4 + width * (number + 0.5) for place in range(len(SCALES))]
        axes.bar(left, heights, width * 0.92, label=source if len(members) > 1 else members[0])
    axes.set_xticks(range(len(SCALES)), SCALES)
    axes.set_ylim(1, _BEST)
    axes.set_ylabel("mean, 1 to 5", size=8)
    quiet_axes(axes)
    figure.legend(loc="outside upper right", ncols=min(3, len(bars)), frameon=False, fontsize=8)
    return figure


def _mean(values: Sequence[int]) -> Cell:
    if not values:
        return Cell("-")
    mean = statistics.fmean(values)
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    return Cell(f"{mean:.2f} ± {spread:.2f}", round(mean, 6))


def _said(turn: Row) -> str:
    """What a turn says, on one line; of several captions all."""
    said = turn["relative_caption"] or " and ".join(turn.get("captions") or ())
    return " ".join(said.split()) or "(nothing)"
