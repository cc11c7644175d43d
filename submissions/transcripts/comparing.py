"""`cir compare` of transcripts over the sessions that all have, round by round (FISD, table 5)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cir_datasets.common.terminal import Cell, Table
from cir_metrics.errors import CallError
from cir_metrics.resampling import ALPHA, DRAWS, SEED
from cir_metrics.significance import kendall_tau
from submissions.comparison.comparing import compare
from submissions.comparison.result import Comparison, count_cells
from submissions.errors import ComparisonError
from submissions.report.side_by_side import dialogue_labels, differing_choices
from submissions.scoring.samples import Sample
from submissions.scoring.score_report import ScoreReport, rounds_of, value_cells
from submissions.transcripts.checking import check_transcript

if TYPE_CHECKING:
    from submissions.rank_file.benchmarks import BenchmarkLike
    from submissions.rank_file.content import Source


_AGREE = ("both", "first", "second", "neither")
"""Which of two dialogues have found a session's target."""


def compare_transcripts(
    files: Sequence[Source],
    benchmark: BenchmarkLike = None,
    *,
    metrics: Sequence[str] | None = None,
    draws: int = DRAWS,
    seed: int = SEED,
    alpha: float = ALPHA,
) -> Comparison:
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

    Returns:
        The comparison of the rounds' metrics, with mean ranks and agreement beside.

    Raises:
        CallError: there are fewer than two files.
        ComparisonError: they were played on different benchmarks, start otherwise, or share no session.
        RefusedError: something is wrong with a file; missing sessions are forgiven.
        UnknownNameError: a metric that the transcripts do not have.
    """
    if len(files) < 2:
        raise CallError("a comparison needs two transcripts or more. Fix: name another one.")
    checked = [check_transcript(file, benchmark) for file in files]
    whole = [each.score(allow_missing=True) for each in checked]
    asked = [{"benchmark": score.benchmark, "start": rounds_of(score).choices["start"]} for score in whole]
    for name in ("benchmark", "start"):
        values = dict.fromkeys(each[name] for each in asked)
        if len(values) > 1:
            raise ComparisonError(
                f"the transcripts cannot be compared: {name}: {' against '.join(values)}. "
                "Fix: play the same sessions in both."
            )
    held = [Sample.behind(score).parts[0].query_ids for score in whole]
    # In the first one's order: a run with a limit has its sessions in the order of the draw.
    in_all = set.intersection(*map(set, held))
    shared = [session for session in held[0] if session in in_all]
    if not shared:
        raise ComparisonError("the transcripts share no session. Fix: play the same sessions in both.")
    scores = [each.of(shared).score(allow_missing=True) for each in checked]
    scores = [
        replace(score, method=label) for score, label in zip(scores, dialogue_labels(scores), strict=True)
    ]
    cutoffs = {rounds_of(score).k for score in scores}
    cutoff = cutoffs.pop() if len(cutoffs) == 1 else 10
    rounds = range(1, min(rounds_of(score).last for score in scores) + 1)
    usual = [f"{name}@turn{number}" for name in (f"hits@{cutoff}", "mean_rank") for number in rounds]
    found = compare(scores, metrics=metrics or usual, draws=draws, seed=seed, alpha=alpha)
    ranks = [
        {
            "transcript": score.method,
            "first": score.metrics["mean_rank@turn1"],
            "last": score.metrics[f"mean_rank@turn{rounds_of(score).last}"],
        }
        for score in scores
    ]
    agreements = [_agreement(*pair, cutoff, rounds) for pair in itertools.combinations(scores, 2)]
    left_out = [
        f"{score.method} has {len(sessions) - len(shared):,} more sessions, which are left out."
        for score, sessions in zip(scores, held, strict=True)
        if len(sessions) > len(shared)
    ]
    return replace(
        found,
        notes=(*found.notes, *_differences(scores), *left_out),
        beside=(_ranks_table(scores, ranks), *map(_agreement_table, agreements)),
        more={"mean_ranks": ranks, "agreement": agreements},
    )


def _differences(scores: Sequence[ScoreReport]) -> Iterator[str]:
    dialogues = [rounds_of(score) for score in scores]
    for name in differing_choices(scores):
        against = " against ".join(str(each.choices[name]) for each in dialogues)
        yield f"The transcripts differ in {name}: {against}."
    users = list(dict.fromkeys(each.user for each in dialogues))
    if len(users) > 1:
        yield f"The transcripts differ in their user: {' against '.join(users)}."


def _agreement(first: ScoreReport, second: ScoreReport, cutoff: int, rounds: Sequence[int]) -> dict[str, Any]:
    """How far two dialogues agree by round: sessions with a hit in both, one or neither, and tau of ranks.

    A hit is a target within the cutoff, in that round or before. tau is None where one's ranks are all equal.
    """
    samples = [Sample.behind(score) for score in (first, second)]
    by_round = []
    for number in rounds:
        one, other = (sample.values(f"hits@{cutoff}@turn{number}")[0] > 0 for sample in samples)
        ranks = (sample.values(f"mean_rank@turn{number}")[0] for sample in samples)
        which = (one & other, one & ~other, ~one & other, ~(one | other))
        counts = {name: int(each.sum()) for name, each in zip(_AGREE, which, strict=True)}
        by_round.append({"round": number, **counts, "tau": kendall_tau(*ranks)})
    return {"first": first.method, "second": second.method, "k": cutoff, "rounds": by_round}


def _ranks_table(scores: Sequence[ScoreReport], ranks: Sequence[Mapping[str, Any]]) -> Table:
    """FISD's table 5."""
    rows = []
    for score, own in zip(scores, ranks, strict=True):
        values = (own["first"], own["last"], own["last"] - own["first"])
        rows.append((Cell(score.method), Cell(rounds_of(score).user), *value_cells("mean_rank", values)))
    columns = ("transcript", "user", "initial rank", "final rank", "change")
    return Table("Mean rank of the target, first and last round", columns, tuple(rows))


def _agreement_table(agreement: Mapping[str, Any]) -> Table:
    rows = tuple(
        (
            Cell(str(each["round"]), each["round"]),
            *count_cells(*(each[name] for name in _AGREE)),
            Cell("-" if each["tau"] is None else f"{each['tau']:.4f}", each["tau"]),
        )
        for each in agreement["rounds"]
    )
    note = (
        f"both, first only, second only, neither: sessions with a target within {agreement['k']} in that "
        "round or before. tau-b: Kendall's, of the ranks in the round."
    )
    columns = ("round", "both", "first only", "second only", "neither", "tau-b")
    title = f"Agreement of {agreement['first']} (first) and {agreement['second']} (second)"
    return Table(title, columns, rows, (note,))
