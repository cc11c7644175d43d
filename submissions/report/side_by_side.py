"""Dialogues side by side, a row each: methods (FISD's tables 2 and 8), users (3, 4), settings (6)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, chain
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from cir_datasets.common.tables import render_or_json
from cir_datasets.common.terminal import Cell, Table
from submissions.scoring.reference_use import block_notes, reference_blocks
from submissions.scoring.score_report import rounds_of, value_cells

if TYPE_CHECKING:
    from submissions.report import Report
    from submissions.scoring.score_report import ScoreReport


class SideBySide:
    """Reports of dialogues on one benchmark, a row each.

    Args:
        reports: from `full_report`; with intervals of all or of none.
    """

    def __init__(self, reports: Sequence[Report]) -> None:
        """See the class."""
        self._reports = reports
        self._scores = [report.score for report in reports]
        self.labels = dialogue_labels(self._scores)
        self._rounds = [rounds_of(score) for score in self._scores]
        self._blocks = reference_blocks(self._scores)

    def tables(self) -> tuple[Table, ...]:
        """What differs, then a table a metric with a column a round."""
        return (self._files(), *(self._metric(name) for name in self._names()))

    def render(self, format: str = "table") -> str:
        """The tables in one of `cir_datasets.common.terminal.FORMATS`.

        Raises:
            UnknownNameError: there is no such format.
        """
        return render_or_json(format, self.tables, self.to_dict)

    def to_dict(self) -> dict[str, Any]:
        """Every transcript by itself, as JSON values."""
        labelled = zip(self.labels, self._reports, strict=True)
        return {"transcripts": [{"label": label, **report.to_dict()} for label, report in labelled]}

    def plot(self, path: str | Path) -> Path:
        """Draw Hits@k by round: .png, .svg or .pdf; see `submissions.report.plots.write_rounds`."""
        from submissions.report.plots import write_rounds

        reports = zip(self.labels, self._reports, strict=True)
        return write_rounds(
            [(label, each.score, each.groupings.get("by_turn"), each.intervals) for label, each in reports],
            path,
        )

    def _names(self) -> list[str]:
        """Metrics without their turn, that all have."""
        by_score = [
            dict.fromkeys(name.partition("@turn")[0] for name in score.metrics if "@turn" in name)
            for score in self._scores
        ]
        return [name for name in by_score[0] if all(name in each for each in by_score)]

    def _files(self) -> Table:
        differing = differing_choices(self._scores)
        first = self._scores[0]
        choices = self._rounds[0].choices
        alike = [f"{name}:{value}" for name, value in choices.items() if name not in differing]
        rows = []
        notes = [f"The same in all: {' '.join(alike)}."]
        for label, score, rounds in zip(self.labels, self._scores, self._rounds, strict=True):
            texts = (label, PurePath(score.file).name, score.method, rounds.user)
            others = [
                "-" if rounds.choices[name] is None else str(rounds.choices[name]) for name in differing
            ]
            rows.append((*map(Cell, texts), Cell(f"{score.n:,}", score.n), *map(Cell, others)))
            notes.append(f"{label}: {score.signature}")
            notes.append(f"{label}: {rounds.silence_note()}")
        notes += block_notes(self._scores, self.labels, self._blocks)
        return Table(
            f"Transcripts on {first.benchmark}#{first.benchmark_version}",
            ("transcript", "file", "method", "user", "sessions", *differing),
            tuple(rows),
            tuple(notes),
        )

    def _metric(self, name: str) -> Table:
        """One metric by round; a block of rows by what was ranked."""
        rounds = range(1, max(each.last for each in self._rounds) + 1)
        with_intervals = self._reports[0].intervals is not None
        rows = []
        for place in chain.from_iterable(self._blocks.values()):
            cells = [Cell(self.labels[place])]
            for number in rounds:
                cells += _cells(self._reports[place], f"{name}@turn{number}")
            rows.append(tuple(cells))
        heads = [
            head
            for number in rounds
            for head in (f"round {number}", *((f"low {number}", f"high {number}") if with_intervals else ()))
        ]
        title = f"mAP{name[3:]}" if name.startswith("map@") else name.replace("_", " ").capitalize()
        rules = tuple(accumulate(map(len, self._blocks.values())))[:-1]
        return Table(f"{title} by round", ("transcript", *heads), tuple(rows), rules=rules)


def _cells(report: Report, metric: str) -> Iterable[Cell]:
    """A value and, where there are intervals, both ends of its own."""
    ends = () if report.intervals is None else report.intervals.ends(metric)
    return value_cells(metric, [report.score.metrics.get(metric), *ends])


def dialogue_labels(scores: Sequence[ScoreReport]) -> list[str]:
    """Names that tell dialogues apart: by what differs of method, user and settings, else by the file.

    Of settings that differ, those are named that are not as they are by themselves.
    """
    differing = differing_choices(scores)
    several_methods = len({score.method for score in scores}) > 1
    several_users = len({rounds_of(score).user for score in scores}) > 1
    labels = []
    for score in scores:
        rounds = rounds_of(score)
        parts = [score.method] if several_methods else []
        parts += [rounds.user] if several_users else []
        parts += [f"{name}={rounds.choices[name]}" for name in differing if name in rounds.unusual]
        labels.append(", ".join(parts) or score.method)
    return distinct_labels(labels, [score.file for score in scores])


def distinct_labels(labels: Sequence[str], files: Sequence[str]) -> list[str]:
    """Labels of files that tell them apart: `CLIP sum`, or for two of that label `CLIP sum (a.json)`.

    `#1` and on stand behind the labels of a file that is given twice.
    """
    names = list(labels)
    for paths in ([PurePath(file).name for file in files], files):
        names = [
            f"{label} ({path})" if names.count(name) > 1 else name
            for name, label, path in zip(names, labels, paths, strict=True)
        ]
    return [
        f"{name} #{names[: place + 1].count(name)}" if names.count(name) > 1 else name
        for place, name in enumerate(names)
    ]


def differing_choices(scores: Sequence[ScoreReport]) -> list[str]:
    """Names of the settings in which dialogues differ."""
    listed = [rounds_of(score).choices for score in scores]
    return [name for name in listed[0] if any(each[name] != listed[0][name] for each in listed)]
