"""A dialogue as what boards of sessions read: a ranking a turn, and ranks; rounds, ends, user beside them.

Round l of a dialogue is turn l of the metrics of sessions (FISD, section 4.1 and supplement D). A session
that has ended keeps its last rank and list in the rounds that it does not play, so that every round is over
all sessions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from cir_metrics.evaluation import CodedSessions, Results, evaluate_coded, mark_ids
from cir_metrics.measures import map_at_k, mean_rank, recall_at_k
from cir_metrics.sums import FloatArray, exact_mean
from submissions.rank_file.findings import RefusedError
from submissions.scoring import Coding, report_of
from submissions.scoring.evidence import Rounds
from submissions.transcripts.settings import MAP, USER, RoundSettings, cutoffs_of, round_metrics
from submissions.transcripts.transcript import SILENT, Round, Transcript

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.rank_file.findings import ValidationReport
    from submissions.scoring.score_report import ScoreReport
    from submissions.transcripts.openings import Opening

MISSING = "missing-query"
"""The finding that --allow-missing forgives."""
_NAME = 160
"""Characters of a user's description in a signature."""


@dataclass(frozen=True, eq=False)
class CheckedTranscript:
    """A transcript with what is wrong about it.

    Args:
        report: the findings.
        transcript: what was read, or None.
        benchmark: what it was checked against, or None.
        openings: the sessions that it should hold.
        limit: how many these are, where they are the first of a draw; None where they are all.
    """

    report: ValidationReport
    transcript: Transcript | None = None
    benchmark: Benchmark | None = None
    openings: tuple[Opening, ...] = ()
    limit: int | None = None

    def of(self, sessions: Sequence[str]) -> CheckedTranscript:
        """The transcript as if these sessions alone were asked for, in this order."""
        openings = {each.session: each for each in self.openings}
        return replace(self, openings=tuple(openings[session] for session in sessions))

    def score(self, *, allow_missing: bool = False, per_query: bool = False) -> ScoreReport:
        """Its numbers. Ranks are the file's own words, since they may lie behind its lists.

        Args:
            allow_missing: leave out sessions that are missing, instead of refusing the file.
            per_query: whether to keep one row a session as well.

        Raises:
            RefusedError: something is wrong with it.
        """
        transcript, benchmark = self.transcript, self.benchmark
        codes = {each.code for each in self.report.errors}
        by_id = {} if transcript is None else transcript.sessions()
        openings = [each for each in self.openings if each.session in by_id]
        blocking = codes - {MISSING} if allow_missing else codes
        if blocking or transcript is None or benchmark is None or not openings:
            forgivable = codes == {MISSING} and openings
            hint = " --allow-missing leaves out what is missing." if forgivable else ""
            raise RefusedError(f"{self.report.file} cannot be scored.{hint}", self.report)
        settings = transcript.choices
        sessions = [by_id[each.session] for each in openings]
        rounds, choices, usual = settings.max_rounds, settings.to_dict(), RoundSettings().to_dict()
        padded = [[*session, *([session[-1]] * (rounds - len(session)))] for session in sessions]
        ranks = np.array([[each.rank for each in session] for session in padded], dtype=np.int64)
        lengths = np.array([[len(each.top) for each in session] for session in padded], dtype=np.int64)
        coded = CodedSessions(ranks, lengths, np.full(len(sessions), rounds, dtype=np.int64))
        lists = [[each.top for each in session] for session in padded]
        played = np.arange(rounds) < np.array([len(session) for session in sessions])[:, None]
        silences = {end: n for end, n in ends(transcript).items() if end.startswith(SILENT)}
        return report_of(
            _evaluate_rounds(settings.k, coded, lists, [each.targets for each in openings]),
            Coding(coded, len(self.openings) - len(openings), len(openings), _references_held(sessions)),
            benchmark,
            transcript.method,
            self.report,
            main_metric=f"hits@{settings.k}@turn{rounds}",
            per_query=per_query,
            dialogue=f"{settings.text_of(self.limit)}{USER}{user_text(transcript)}",
            sessions=tuple(each.session for each in openings),
            rounds=Rounds(
                played=played,
                silent=np.array([[each.silent for each in session] for session in padded]),
                unlisted=ranks > lengths,
                silences={end.removeprefix(SILENT): count for end, count in silences.items()},
                choices=choices,
                unusual=frozenset(name for name in choices if choices[name] != usual[name]),
                user=user_text(transcript),
            ),
        )


def _references_held(sessions: Iterable[Sequence[Round]]) -> tuple[int, int] | None:
    """In how many rounds the list holds the reference, and how many have one; None where none has.

    A round that a silent user ends ranks nothing, and is left out.
    """
    listed = [each for each in chain.from_iterable(sessions) if each.top and not each.silent]
    held = [each.reference in each.top for each in listed if each.reference is not None]
    return (sum(held), len(held)) if held else None


def ends(transcript: Transcript) -> dict[str, int]:
    """How many sessions ended in which way, in the file's words: `solved`, `last round`, `silent: ...`."""
    counts: dict[str, int] = {}
    for session in transcript.sessions().values():
        counts[session[-1].end] = counts.get(session[-1].end, 0) + 1
    return dict(sorted(counts.items(), key=lambda one: (-one[1], one[0])))


def user_text(transcript: Transcript) -> str:
    """Who spoke, and by which prompts, in one line.

    Example:
        >>> from submissions.transcripts.transcript import Transcript
        >>> said = {"benchmark": "shapes/val", "benchmark_version": 2, "method": {"name": "m"}, "rounds": [],
        ...     "user": {"kind": "simulated", "way": "captions", "language": {"backend": "oracle"}},
        ...     "prompts": {"feedback": "1 (ab12)"}, "settings": {}}
        >>> user_text(Transcript.model_validate(said))
        'simulated, captions, oracle; feedback 1 (ab12)'
    """
    words = ", ".join(_leaves(transcript.user)) or "not said"
    prompts = ", ".join(f"{name} {label}" for name, label in sorted(transcript.prompts.items()))
    said = f"{words}; {prompts}" if prompts else words
    if len(said) > _NAME:
        # Who differs behind the cut is somebody else.
        whole = orjson.dumps([transcript.user, transcript.prompts], option=orjson.OPT_SORT_KEYS)
        said = f"{said[: _NAME - 15]}... {hashlib.sha256(whole).hexdigest()[:8]}"
    # The words are the file's own, and go into lines and tables.
    return "".join(each if each.isprintable() and each != "|" else " " for each in said)


def _leaves(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        # A backend whose model has its own name ("oracle") is named once.
        own = {name: each for name, each in value.items() if name != "model" or each != value.get("backend")}
        return [leaf for each in own.values() for leaf in _leaves(each)]
    if value in (None, "", "none"):
        return []
    said = str(value)
    # Of a hash its beginning is enough.
    return [said[:12] if len(said) == 64 and said.isalnum() else said]


def _evaluate_rounds(
    k: int,
    coded: CodedSessions,
    lists: Sequence[Sequence[Sequence[str]]],
    targets: Sequence[Sequence[str]],
) -> Results:
    """Numbers of dialogues, by the functions that every metric of the suite has.

    Args:
        k: cutoff within which a session is solved.
        coded: ranks in every round, of sessions that have ended, too.
        lists: the images of each session's rounds.
        targets: of each session.
    """
    rounds = coded.ranks.shape[1]
    wanted: list[tuple[str, int | None]] = [("hits_at_k", cutoff) for cutoff in cutoffs_of(k)]
    results = evaluate_coded([*wanted, ("hits_auc", k)], coded)
    values: dict[str, FloatArray] = dict(results.per_query)
    several = any(len(each) > 1 for each in targets)
    counts = np.array([len(each) for each in targets], dtype=np.int64)
    for number in range(rounds):
        ranks, turn = coded.ranks[:, number], f"@turn{number + 1}"
        for cutoff in cutoffs_of(k):
            values[f"recall@{cutoff}{turn}"] = recall_at_k.per_query(ranks, cutoff)
        values[f"mean_rank{turn}"] = mean_rank.per_query(ranks)
        if several:
            [positive] = mark_ids([session[number] for session in lists], [targets], MAP)
            values[f"map@{MAP}{turn}"] = map_at_k.per_query(positive, counts, MAP)
    columns = {name: values[name] for name in round_metrics(k, rounds, several_targets=several)}
    means = {name: exact_mean(column) for name, column in columns.items()}
    return replace(results, values=means, per_query=columns)
