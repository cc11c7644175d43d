"""`ReportValues`: a score with everything that belongs beside it, and these as JSON values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from submissions.scoring.score_report import main_value

if TYPE_CHECKING:
    from cir_metrics.signature import Signature
    from submissions.report.grouping import Group, Grouping, Values
    from submissions.scoring.intervals import Intervals
    from submissions.scoring.score_report import ScoreReport
    from submissions.scoring.suite_signature import SuiteSignature


@dataclass(frozen=True)
class ReportValues:
    """Everything about one score.

    Args:
        score: the board's numbers, and as its `extra` the further ones: the card's, then those asked for.
        floors: by name (`random`, `image_only`, `text_only`) the values by metric, as far as they are known.
        counts: how many queries or sessions, images, positives there are; None where it is not known.
        groupings: by `by_aspect`, `by_turn`, `by_length` the numbers by group, where there are such groups.
        members: a suite's members.
        means: a suite's macro and micro mean of everything that all members have.
        intervals: confidence intervals of the board's numbers, where they were asked for.
        notes: what a reader of chance, the baselines and the further metrics must know.
    """

    score: ScoreReport
    floors: Mapping[str, Values]
    counts: Mapping[str, int | None]
    groupings: Mapping[str, Grouping]
    members: tuple[ReportValues, ...] = ()
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
