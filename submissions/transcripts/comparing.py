"""`cir compare` of transcripts: the same sessions with another method, another user or other settings."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cir_datasets.common.tables import Cell, Table, render_or_json
from cir_metrics.errors import CallError
from cir_metrics.resampling import ALPHA, DRAWS, SEED
from cir_metrics.significance import kendall_tau
from submissions.comparison.comparing import compare
from submissions.errors import ComparisonError
from submissions.report.side_by_side import dialogue_labels, differing_choices
from submissions.scoring.score_report import rounds_of, shown_value
from submissions.transcripts.checking import check_transcript

if TYPE_CHECKING:
    from submissions.comparison.result import Comparison
    from submissions.formats.json_reader import Source
    from submissions.rank_file.benchmarks import BenchmarkLike
    from submissions.scoring.score_report import ScoreReport


@dataclass(frozen=True)
class Agreement:
    """How far two transcripts agree in one round.

    Args:
        round: its number.
        both: sessions that have a target within k, in that round or before, in both.
        first: in the first alone.
        second: in the second alone.
        neither: in neither.
        tau: Kendall's tau-b of the ranks in that round; None where all ranks of one are the same.
    """

    round: int
    both: int
    first: int
    second: int
    neither: int
    tau: float | None


@dataclass(frozen=True)
class TranscriptComparison:
    """Transcripts compared over the sessions that all of them have.

    Args:
        comparison: paired differences, tests and rank groups, of the numbers by round.
        labels: what each transcript is called.
        scores: of each, over these sessions.
        cutoff: of the hits in `agreements`.
        agreements: by pair of labels one a round.
    """

    comparison: Comparison
    labels: list[str]
    scores: list[ScoreReport]
    cutoff: int
    agreements: dict[tuple[str, str], list[Agreement]]

    def text(self, format: str = "table") -> str:
        """All tables in one of `cir_datasets.common.tables.FORMATS`; `json` holds fractions.

        Raises:
            UnknownNameError: there is no such format.
        """
        return render_or_json(format, self._tables, self.to_dict)

    def _tables(self) -> list[Table]:
        pairs = (self._pair(*pair, found) for pair, found in self.agreements.items())
        return [self._ranks(), *pairs, *self.comparison.tables()]

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            **self.comparison.to_dict(),
            "mean_ranks": [
                {"transcript": label, "first": first, "last": last}
                for label, (first, last) in zip(self.labels, map(_ends, self.scores), strict=True)
            ],
            "agreement": [
                {"first": one, "second": other, "k": self.cutoff, "rounds": [vars(each) for each in found]}
                for (one, other), found in self.agreements.items()
            ],
        }

    def _ranks(self) -> Table:
        """FISD's table 5."""
        rows = []
        for label, score in zip(self.labels, self.scores, strict=True):
            first, last = _ends(score)
            values = (first, last, last - first)
            cells = [Cell(shown_value("mean_rank", value).strip(), value) for value in values]
            rows.append((Cell(label), Cell(rounds_of(score).user), *cells))
        columns = ("transcript", "user", "initial rank", "final rank", "change")
        return Table("Mean rank of the target, first and last round", columns, tuple(rows))

    def _pair(self, one: str, other: str, found: Sequence[Agreement]) -> Table:
        rows = tuple(
            (
                Cell(str(each.round), each.round),
                *(Cell(f"{n:,}", n) for n in (each.both, each.first, each.second, each.neither)),
                Cell("-" if each.tau is None else f"{each.tau:.4f}", each.tau),
            )
            for each in found
        )
        note = (
            f"both, first only, second only, neither: sessions with a target within {self.cutoff} in that "
            "round or before. tau-b: Kendall's, of the ranks in the round."
        )
        columns = ("round", "both", "first only", "second only", "neither", "tau-b")
        return Table(f"Agreement of {one} (first) and {other} (second)", columns, rows, (note,))


def compare_transcripts(
    files: Sequence[Source],
    benchmark: BenchmarkLike = None,
    *,
    metrics: Sequence[str] | None = None,
    draws: int = DRAWS,
    seed: int = SEED,
    alpha: float = ALPHA,
) -> TranscriptComparison:
    """Compare transcripts session by session, round by round: a person and a simulator (FISD, table 5), say.

    What they differ in, method, user or settings, is what is compared, and is said. The sessions are those
    that all of them have.

    Args:
        files: two or more paths.
        benchmark: what they must have been played on, or None for what they say themselves.
        metrics: names of numbers; default: Hits@k and the mean rank of each round.
        draws: as in `submissions.compare`, like the following.
        seed: of the draws.
        alpha: level of significance.

    Raises:
        CallError: there are fewer than two files.
        ComparisonError: they were played on different benchmarks, start otherwise, or share no session.
        RefusedError: something is wrong with a file; missing sessions are forgiven.
        UnknownNameError: a metric that the transcripts do not have.
    """
    if len(files) < 2:
        raise CallError("a comparison needs two transcripts or more. Fix: name another one.")
    checked = [check_transcript(file, benchmark) for file in files]
    everyone = [each.score(allow_missing=True) for each in checked]
    _check_alike(everyone)
    held = [set(each.evidence.query_ids) if each.evidence else set() for each in everyone]
    shared = set.intersection(*held)
    if not shared:
        raise ComparisonError("the transcripts share no session. Fix: play the same sessions in both.")
    scores = [each.score(only=shared) for each in checked]
    labels = dialogue_labels(scores)
    cutoff = _cutoff(scores)
    last = min(rounds_of(score).last for score in scores)
    numbers = range(1, last + 1)
    usual = [f"{name}@turn{number}" for name in (f"hits@{cutoff}", "mean_rank") for number in numbers]
    found = compare(
        [replace(score, method=label) for score, label in zip(scores, labels, strict=True)],
        metrics=metrics or usual,
        draws=draws,
        seed=seed,
        alpha=alpha,
    )
    pairs = {}
    for (one, first), (other, second) in itertools.combinations(zip(labels, scores, strict=True), 2):
        pairs[one, other] = [_agreement(first, second, number, cutoff) for number in numbers]
    notes = [*found.notes, *_differences(scores, labels, [len(each) for each in held], len(shared))]
    return TranscriptComparison(replace(found, notes=tuple(notes)), labels, scores, cutoff, pairs)


def _check_alike(scores: Sequence[ScoreReport]) -> None:
    """Refuse transcripts whose sessions are not the same questions."""
    for name in ("benchmark", "start"):
        values = [
            score.benchmark if name == "benchmark" else rounds_of(score).choices[name] for score in scores
        ]
        if len(set(values)) > 1:
            raise ComparisonError(
                f"the transcripts cannot be compared: {name}: {' against '.join(dict.fromkeys(values))}. "
                "Fix: play the same sessions in both."
            )


def _cutoff(scores: Sequence[ScoreReport]) -> int:
    """The cutoff at which sessions are solved, or 10 where that differs."""
    cutoffs = {rounds_of(score).k for score in scores}
    return cutoffs.pop() if len(cutoffs) == 1 else 10


def _ends(score: ScoreReport) -> tuple[float, float]:
    metrics = score.metrics
    return metrics["mean_rank@turn1"], metrics[f"mean_rank@turn{rounds_of(score).last}"]


def _agreement(first: ScoreReport, second: ScoreReport, number: int, cutoff: int) -> Agreement:
    name, rank = f"hits@{cutoff}@turn{number}", f"mean_rank@turn{number}"
    one, other = (_values(score, name) > 0 for score in (first, second))
    return Agreement(
        round=number,
        both=int((one & other).sum()),
        first=int((one & ~other).sum()),
        second=int((~one & other).sum()),
        neither=int((~one & ~other).sum()),
        tau=kendall_tau(_values(first, rank), _values(second, rank)),
    )


def _values(score: ScoreReport, name: str) -> Any:
    return np.zeros(0) if score.evidence is None else score.evidence.values[name]


def _differences(
    scores: Sequence[ScoreReport], labels: Sequence[str], held: Sequence[int], shared: int
) -> list[str]:
    notes = []
    for name in differing_choices(scores):
        values = [str(rounds_of(score).choices[name]) for score in scores]
        notes.append(f"The transcripts differ in {name}: {' against '.join(values)}.")
    users = list(dict.fromkeys(rounds_of(score).user for score in scores))
    if len(users) > 1:
        notes.append(f"The transcripts differ in their user: {' against '.join(users)}.")
    for label, n in zip(labels, held, strict=True):
        if n > shared:
            notes.append(f"{label} has {n - shared:,} more sessions, which are left out.")
    return notes
