"""`cir compare` of transcripts over the sessions that all have; in a file of its own: checking needs none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from cir_metrics.errors import CallError
from cir_metrics.resampling import ALPHA, DRAWS, SEED
from submissions.comparison.dialogues import DialogueComparison, compare_dialogues
from submissions.errors import ComparisonError
from submissions.scoring.samples import Sample
from submissions.scoring.score_report import rounds_of
from submissions.transcripts.checking import check_transcript

if TYPE_CHECKING:
    from submissions.formats.containers import Source
    from submissions.rank_file.benchmarks import BenchmarkLike


def compare_transcripts(
    files: Sequence[Source],
    benchmark: BenchmarkLike = None,
    *,
    metrics: Sequence[str] | None = None,
    draws: int = DRAWS,
    seed: int = SEED,
    alpha: float = ALPHA,
) -> DialogueComparison:
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
    whole = [each.score(allow_missing=True) for each in checked]
    _check_alike("benchmark", [score.benchmark for score in whole])
    _check_alike("start", [rounds_of(score).choices["start"] for score in whole])
    held = [{session for _, session in Sample.behind(score).query_ids()} for score in whole]
    shared = set.intersection(*held)
    if not shared:
        raise ComparisonError("the transcripts share no session. Fix: play the same sessions in both.")
    scores = [each.score(only=shared) for each in checked]
    found = compare_dialogues(scores, metrics=metrics, draws=draws, seed=seed, alpha=alpha)
    more = [
        f"{method.name} has {len(sessions) - len(shared):,} more sessions, which are left out."
        for method, sessions in zip(found.methods, held, strict=True)
        if len(sessions) > len(shared)
    ]
    return replace(found, notes=(*found.notes, *more))


def _check_alike(name: str, values: Sequence[str]) -> None:
    """Refuse transcripts whose sessions are not the same questions."""
    if len(set(values)) > 1:
        raise ComparisonError(
            f"the transcripts cannot be compared: {name}: {' against '.join(dict.fromkeys(values))}. "
            "Fix: play the same sessions in both."
        )
