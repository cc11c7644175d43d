"""What the numbers of transcripts look like: one by itself by round, several side by side (FISD's tables)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from cir_datasets.common.counts import counted
from cir_datasets.common.tables import Cell, Table, render_or_json
from cir_metrics.measures import median_rank
from cir_metrics.sums import exact_mean
from submissions.report.document import Report
from submissions.report.grouping import Group, Grouping
from submissions.scoring.reference_use import block_notes, reference_blocks, reference_notes
from submissions.scoring.score_report import shown_value
from submissions.transcripts.scoring import MAP, TranscriptScore, ends, solved, user_text
from submissions.transcripts.settings import RoundSettings
from submissions.transcripts.transcript import SILENT

if TYPE_CHECKING:
    from submissions.scoring.intervals import Intervals

_REASONS = 5
"""Reasons of silence that a note lists."""

_SESSIONS = (
    "sessions: those that play the round. One that has ended keeps its last rank and list, so that every "
    "number is over all sessions."
)
_AT_ROUND = "hits: a target within K in that round or before; recall, map and ranks: in that round itself."
_SHARES = (
    "solved, silent: ended so in that round or before. unlisted: the best target lies behind the list that "
    "the file holds, so that its rank is the file's word."
)


def transcript_report(score: TranscriptScore, intervals: Intervals | None = None) -> Report:
    """A transcript by itself: its numbers, how its sessions ended, and all by round.

    Args:
        score: from `CheckedTranscript.score`.
        intervals: of `score.report`, from `submissions.scoring.intervals.intervals`.
    """
    by_round = _by_round(score)
    counts: dict[str, int | None] = {"sessions": score.report.n, "rounds_played": int(score.played.sum())}
    counts |= {
        "solved": int(solved(score)[:, -1].sum()),
        "silent": int(score.silent[:, -1].sum()),
        "missing": score.report.missing,
    }
    return Report(
        score=score.report,
        extra={},
        signatures=score.report.signatures,
        floors={},
        counts=counts,
        groupings={"by_turn": by_round},
        intervals=intervals,
        notes=(*_silent_notes(score), *reference_notes(score.report)),
    )


def _by_round(score: TranscriptScore) -> Grouping:
    report, settings = score.report, score.settings
    found, evidence = solved(score), report.evidence
    groups = []
    for number in range(1, settings.max_rounds + 1):
        ending = f"@turn{number}"
        names = [name for name in report.metrics if name.endswith(ending)]
        own = {name.removesuffix(ending): report.metrics[name] for name in names}
        ranks = None if evidence is None or evidence.ranks is None else evidence.ranks[:, number - 1]
        values: dict[str, float | None] = {
            **own,
            "median_rank": None if ranks is None else median_rank(ranks),
            "solved": exact_mean(found[:, number - 1].astype(float)),
            "silent": exact_mean(score.silent[:, number - 1].astype(float)),
            "unlisted": exact_mean(score.unlisted[:, number - 1].astype(float)),
        }
        groups.append(Group(number, str(number), int(score.played[:, number - 1].sum()), values, {}))
    notes = [_SESSIONS, _AT_ROUND, _SHARES]
    if settings.after_success == "stop":
        notes.append(
            f"after_success=stop: a session stops at rank {settings.k} and keeps its rank, for all cutoffs."
        )
    return Grouping("By round", "round", "sessions", tuple(groups), notes=tuple(notes))


def _silent_notes(score: TranscriptScore) -> list[str]:
    reasons = {said: n for said, n in ends(score.transcript).items() if said.startswith(SILENT)}
    if not reasons:
        return ["No session ended since the user was silent."]
    listed = [f"{said.removeprefix(SILENT)} ({n:,})" for said, n in list(reasons.items())[:_REASONS]]
    more = f", and {len(reasons) - _REASONS:,} more reasons" if len(reasons) > _REASONS else ""
    total = sum(reasons.values())
    return [
        f"{counted(total, 'session')} ended unsolved since the user was silent: {'; '.join(listed)}{more}."
    ]


class SideBySide:
    """Several transcripts, a row each: methods (FISD's tables 2 and 8), users (3, 4), settings (6).

    Args:
        scores: of transcripts on one benchmark.
        intervals: of each, in the same order; None where none were asked for.
    """

    def __init__(
        self, scores: Sequence[TranscriptScore], intervals: Sequence[Intervals] | None = None
    ) -> None:
        """See the class."""
        self._scores, self._intervals = scores, intervals
        self.labels = row_labels(scores)
        self._blocks = reference_blocks([each.report for each in scores])

    def tables(self) -> tuple[Table, ...]:
        """What differs, then a table a metric with a column a round."""
        return (self._files(), *(self._metric(name) for name in self._names()))

    def render(self, format: str = "table") -> str:
        """The tables in one of `cir_datasets.common.tables.FORMATS`.

        Raises:
            UnknownNameError: there is no such format.
        """
        return render_or_json(format, self.tables, self.to_dict)

    def to_dict(self) -> dict[str, Any]:
        """Every transcript by itself, as JSON values."""
        intervals: Sequence[Intervals | None] = self._intervals or [None] * len(self._scores)
        return {
            "transcripts": [
                {"label": label, **transcript_report(score, own).to_dict()}
                for label, score, own in zip(self.labels, self._scores, intervals, strict=True)
            ]
        }

    def plot(self, path: str | Path) -> Path:
        """Draw Hits@k by round, a line a transcript, with bands where there are intervals (FISD, figure 4).

        Args:
            path: the file, `.png` or `.svg`.

        Raises:
            CallError: the name ends in neither.
            MissingExtraError: matplotlib is not installed.
            SubmissionError: the file cannot be written.
        """
        from submissions.transcripts.plot import write_lines

        return write_lines(self.labels, self._scores, self._intervals, path)

    def _names(self) -> list[str]:
        """Metrics without their turn, that all have."""
        listed = [[name for name in each.report.metrics if "@turn" in name] for each in self._scores]
        by_score = [dict.fromkeys(name.partition("@turn")[0] for name in names) for names in listed]
        return [name for name in by_score[0] if all(name in each for each in by_score)]

    def _files(self) -> Table:
        rows = []
        differing = differing_settings(self._scores)
        for label, score in self._rows():
            values = score.settings.to_dict()
            cells = [Cell(label), Cell(PurePath(score.report.file).name), Cell(score.report.method)]
            cells += [Cell(user_text(score.transcript)), Cell(f"{score.report.n:,}", score.report.n)]
            said = ["-" if values[name] is None else str(values[name]) for name in differing]
            rows.append((*cells, *map(Cell, said)))
        first = self._scores[0]
        values = first.settings.to_dict()
        alike = [f"{name}:{values[name]}" for name in values if name not in differing]
        notes = [f"The same in all: {' '.join(alike)}."]
        for label, score in self._rows():
            notes.append(f"{label}: {score.report.signature_text(score.report.main_metric)}")
            notes += [f"{label}: {note}" for note in _silent_notes(score)]
        notes += block_notes([each.report for each in self._scores], self.labels, self._blocks)
        return Table(
            f"Transcripts on {first.report.benchmark}#{first.report.benchmark_version}",
            ("transcript", "file", "method", "user", "sessions", *differing),
            tuple(rows),
            tuple(notes),
        )

    def _rows(self) -> list[tuple[str, TranscriptScore]]:
        return list(zip(self.labels, self._scores, strict=True))

    def _metric(self, name: str) -> Table:
        rounds = range(1, max(each.settings.max_rounds for each in self._scores) + 1)
        rows = []
        order = list(chain.from_iterable(self._blocks.values()))
        for place in order:
            score = self._scores[place]
            cells = [Cell(self.labels[place])]
            for number in rounds:
                printed = f"{name}@turn{number}"
                value = score.report.metrics.get(printed)
                cells.append(Cell(shown_value(printed, value).strip(), value))
                if self._intervals is not None:
                    interval = self._intervals[place].values.get(printed)
                    for end in (None, None) if interval is None else (interval.low, interval.high):
                        cells.append(Cell(shown_value(printed, end).strip(), end))
            rows.append(tuple(cells))
        heads = [
            head
            for number in rounds
            for head in (f"round {number}", *((f"low {number}", f"high {number}") if self._intervals else ()))
        ]
        title = f"mAP@{MAP}" if name.startswith("map@") else name.replace("_", " ").capitalize()
        rules = tuple(accumulate(map(len, self._blocks.values())))[:-1]
        return Table(f"{title} by round", ("transcript", *heads), tuple(rows), rules=rules)


def row_labels(scores: Sequence[TranscriptScore]) -> list[str]:
    """Names that tell transcripts apart: by what differs of method, user and settings, else by the file.

    Of settings that differ, those are named that are not as they are by themselves.
    """
    differing, usual = differing_settings(scores), RoundSettings().to_dict()
    methods = [score.report.method for score in scores]
    users = [user_text(score.transcript) for score in scores]
    labels = []
    for method, user, score in zip(methods, users, scores, strict=True):
        parts = [method] if len(set(methods)) > 1 else []
        parts += [user] if len(set(users)) > 1 else []
        values = score.settings.to_dict()
        parts += [f"{name}={values[name]}" for name in differing if values[name] != usual[name]]
        labels.append(", ".join(parts) or method)
    named = []
    for number, (label, score) in enumerate(zip(labels, scores, strict=True), start=1):
        alike = labels.count(label) > 1
        name = f"{label} ({PurePath(score.report.file).name})" if alike else label
        named.append(f"{name} #{number}" if name in named else name)
    return named


def differing_settings(scores: Sequence[TranscriptScore]) -> list[str]:
    """Names of the settings in which transcripts differ."""
    listed = [score.settings.to_dict() for score in scores]
    return [name for name in listed[0] if any(each[name] != listed[0][name] for each in listed)]
