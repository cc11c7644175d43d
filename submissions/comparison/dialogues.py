"""Dialogues compared round by round (FISD, table 5): what stands beside the differences of their numbers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cir_datasets.common.tables import Cell, Table
from cir_metrics.resampling import ALPHA, DRAWS, SEED
from cir_metrics.significance import kendall_tau
from submissions.comparison.comparing import compare
from submissions.comparison.result import Comparison
from submissions.report.side_by_side import dialogue_labels, differing_choices
from submissions.scoring.samples import Sample
from submissions.scoring.score_report import rounds_of, shown_value

if TYPE_CHECKING:
    from submissions.scoring.score_report import ScoreReport


@dataclass(frozen=True)
class Agreement:
    """How far two dialogues agree in one round.

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


@dataclass(frozen=True, kw_only=True, repr=False)
class DialogueComparison(Comparison):
    """Dialogues compared over the same sessions; the methods' names are what tells the dialogues apart.

    Args:
        users: who spoke in each.
        mean_ranks: of each, in the first and in the last round.
        cutoff: of the hits in `agreements`.
        agreements: by pair of names one a round.
    """

    users: tuple[str, ...]
    mean_ranks: tuple[tuple[float, float], ...]
    cutoff: int
    agreements: dict[tuple[str, str], list[Agreement]]

    def tables(self) -> tuple[Table, ...]:
        """Mean ranks and agreement, then what any comparison has."""
        pairs = (self._pair(*pair, rounds) for pair, rounds in self.agreements.items())
        return (self._ranks(), *pairs, *super().tables())

    def to_dict(self) -> dict[str, Any]:
        """The comparison as JSON values, with mean ranks and agreement."""
        named = zip(self.methods, self.mean_ranks, strict=True)
        return {
            **super().to_dict(),
            "mean_ranks": [
                {"transcript": method.name, "first": first, "last": last} for method, (first, last) in named
            ],
            "agreement": [
                {"first": one, "second": other, "k": self.cutoff, "rounds": [vars(each) for each in rounds]}
                for (one, other), rounds in self.agreements.items()
            ],
        }

    def _ranks(self) -> Table:
        """FISD's table 5."""
        rows = []
        for method, user, (first, last) in zip(self.methods, self.users, self.mean_ranks, strict=True):
            values = (first, last, last - first)
            cells = [Cell(shown_value("mean_rank", value).strip(), value) for value in values]
            rows.append((Cell(method.name), Cell(user), *cells))
        columns = ("transcript", "user", "initial rank", "final rank", "change")
        return Table("Mean rank of the target, first and last round", columns, tuple(rows))

    def _pair(self, one: str, other: str, rounds: Sequence[Agreement]) -> Table:
        rows = tuple(
            (
                Cell(str(each.round), each.round),
                *(Cell(f"{n:,}", n) for n in (each.both, each.first, each.second, each.neither)),
                Cell("-" if each.tau is None else f"{each.tau:.4f}", each.tau),
            )
            for each in rounds
        )
        note = (
            f"both, first only, second only, neither: sessions with a target within {self.cutoff} in that "
            "round or before. tau-b: Kendall's, of the ranks in the round."
        )
        columns = ("round", "both", "first only", "second only", "neither", "tau-b")
        return Table(f"Agreement of {one} (first) and {other} (second)", columns, rows, (note,))


def compare_dialogues(
    scores: Sequence[ScoreReport],
    *,
    metrics: Sequence[str] | None = None,
    draws: int = DRAWS,
    seed: int = SEED,
    alpha: float = ALPHA,
) -> DialogueComparison:
    """Compare dialogues over the same sessions; in what they differ is compared, and is said.

    Args:
        scores: two or more, of transcripts.
        metrics: names of numbers; default: Hits@k and the mean rank of each round.
        draws: as in `submissions.compare`, like the following.
        seed: of the draws.
        alpha: level of significance.

    Raises:
        ComparisonError: they are not comparable, or their sessions stand in different orders.
        UnknownNameError: a metric that they do not have.
    """
    labels = dialogue_labels(scores)
    dialogues = [rounds_of(score) for score in scores]
    cutoffs = {each.k for each in dialogues}
    cutoff = cutoffs.pop() if len(cutoffs) == 1 else 10
    numbers = range(1, min(each.last for each in dialogues) + 1)
    usual = [f"{name}@turn{number}" for name in (f"hits@{cutoff}", "mean_rank") for number in numbers]
    named = [replace(score, method=label) for score, label in zip(scores, labels, strict=True)]
    found = compare(named, metrics=metrics or usual, draws=draws, seed=seed, alpha=alpha)
    pairs = itertools.combinations(zip(labels, map(Sample.behind, scores), strict=True), 2)
    whole = replace(found, notes=(*found.notes, *_differences(scores)))
    return DialogueComparison(
        **vars(whole),
        users=tuple(each.user for each in dialogues),
        mean_ranks=tuple(
            (score.metrics["mean_rank@turn1"], score.metrics[f"mean_rank@turn{each.last}"])
            for score, each in zip(scores, dialogues, strict=True)
        ),
        cutoff=cutoff,
        agreements={
            (one, other): [_agreement(first, second, number, cutoff) for number in numbers]
            for (one, first), (other, second) in pairs
        },
    )


def _agreement(first: Sample, second: Sample, number: int, cutoff: int) -> Agreement:
    hits, rank = f"hits@{cutoff}@turn{number}", f"mean_rank@turn{number}"
    [one], [other] = first.values(hits), second.values(hits)
    return Agreement(
        round=number,
        both=int(((one > 0) & (other > 0)).sum()),
        first=int((one > other).sum()),
        second=int((one < other).sum()),
        neither=int(((one == 0) & (other == 0)).sum()),
        tau=kendall_tau(first.values(rank)[0], second.values(rank)[0]),
    )


def _differences(scores: Sequence[ScoreReport]) -> Iterator[str]:
    dialogues = [rounds_of(score) for score in scores]
    for name in differing_choices(scores):
        against = " against ".join(str(each.choices[name]) for each in dialogues)
        yield f"The transcripts differ in {name}: {against}."
    users = list(dict.fromkeys(each.user for each in dialogues))
    if len(users) > 1:
        yield f"The transcripts differ in their user: {' against '.join(users)}."
