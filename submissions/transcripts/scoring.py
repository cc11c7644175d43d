"""Numbers of a transcript, round by round (FISD, section 4.1 and supplement D).

Round l of a session is turn l of the metrics of sessions. A session that has ended keeps its last rank and
list in the rounds that it does not play, so that every round is over all sessions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from cir_metrics.coding import BoolArray, IntArray, mark_ids
from cir_metrics.evaluation import CodedSessions, evaluate_coded
from cir_metrics.measures import map_at_k, mean_rank, recall_at_k
from cir_metrics.sums import FloatArray, exact_mean
from submissions.rank_file.findings import evident_gallery
from submissions.rank_file.words import is_oracle
from submissions.scoring import signatures
from submissions.scoring.score_report import Evidence, ScoreReport
from submissions.transcripts.settings import USER, RoundSettings
from submissions.transcripts.transcript import SILENT, Round, Transcript

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.rank_file.findings import Finding
    from submissions.transcripts.openings import Opening

CUTOFFS = (1, 5, 10, 50)
"""Cutoffs of Hits and Recall; the settings' own comes beside them."""
MAP = 5
"""Cutoff of mAP, where queries have several targets (CIRCO's)."""
_NAME = 160
"""Characters of a user's description in a signature."""


@dataclass(frozen=True, eq=False)
class TranscriptScore:
    """The numbers of a transcript.

    Args:
        report: each number with its signature, and the values a session.
        transcript: what it was computed from.
        settings: its choices.
        played: which session plays which round, shape (sessions, rounds).
        silent: which session has ended without words in which round or before, same shape.
        unlisted: whose targets lie behind the list in which round, same shape.
    """

    report: ScoreReport
    transcript: Transcript
    settings: RoundSettings
    played: BoolArray
    silent: BoolArray
    unlisted: BoolArray


def score_sessions(
    transcript: Transcript,
    benchmark: Benchmark,
    openings: Sequence[Opening],
    *,
    file: str,
    warnings: tuple[Finding, ...] = (),
    limit: int | None = None,
    only: Collection[str] | None = None,
) -> TranscriptScore:
    """Score a transcript in which nothing contradicts itself.

    Args:
        transcript: the file.
        benchmark: what was played.
        openings: the sessions that it should hold, in their order; those that are not there are left out,
            and the signature says so.
        file: its name.
        warnings: findings that do not refuse it.
        limit: how many sessions were drawn, where not all were wanted.
        only: sessions to score, where not all are wanted.
    """
    settings = transcript.choices
    by_id = transcript.sessions()
    there = [each for each in openings if each.session in by_id and (only is None or each.session in only)]
    sessions = [by_id[each.session] for each in there]
    rounds = settings.max_rounds
    filled = [_filled(session, rounds) for session in sessions]
    ranks = np.array([[each.rank for each in session] for session in filled], dtype=np.int64)
    lengths = np.array([[len(each.top) for each in session] for session in filled], dtype=np.int64)
    numbers = np.arange(1, rounds + 1)
    ended = np.array([len(session) for session in sessions])[:, None]
    silent = np.array([session[-1].end.startswith(SILENT) for session in sessions])[:, None]
    values = _values(settings, ranks, lengths, filled, [each.targets for each in there])
    missing = len(openings) - len(there) if only is None else 0
    main = f"hits@{settings.k}@turn{rounds}"
    metrics = {name: exact_mean(each) for name, each in values.items()}
    report = ScoreReport(
        file=file,
        method=transcript.method.name,
        benchmark=benchmark.id,
        benchmark_version=benchmark.version,
        main_metric=main,
        main=metrics[main],
        metrics=metrics,
        signatures=signatures(
            metrics,
            benchmark,
            transcript.method,
            n=len(there),
            missing=missing,
            reference_held=references_held(sessions),
            dialogue=dialogue_text(transcript, limit),
            ranked=evident_gallery(warnings, benchmark.id),
        ),
        n=len(there),
        answered=len(there),
        missing=missing,
        warnings=warnings,
        oracle=is_oracle(transcript.method.to_dict()),
        evidence=Evidence(
            benchmark=benchmark,
            values=values,
            ranks=ranks,
            list_lengths=lengths,
            num_turns=np.full(len(there), rounds, dtype=np.int64),
            subset_ranks=None,
            sessions=tuple(each.session for each in there),
        ),
    )
    return TranscriptScore(
        report=report,
        transcript=transcript,
        settings=settings,
        played=numbers <= ended,
        silent=silent & (numbers >= ended),
        unlisted=ranks > lengths,
    )


def references_held(sessions: Iterable[Sequence[Round]]) -> tuple[int, int] | None:
    """In how many rounds the list holds the reference, and how many there are; None where there are none.

    Args:
        sessions: the rounds of each; one that a silent user ends ranks nothing, and is left out.
    """
    held = [
        each.reference in each.top
        for session in sessions
        for each in session
        if each.reference is not None and not each.end.startswith(SILENT)
    ]
    return (sum(held), len(held)) if held else None


def metric_names(settings: RoundSettings, *, several_targets: bool) -> list[str]:
    """Names of the numbers that transcripts of these settings have.

    Example:
        >>> names = metric_names(RoundSettings(max_rounds=2, k=1), several_targets=False)
        >>> names[:3], names[-1]
        (['hits@1@turn1', 'hits@1@turn2', 'hits@5@turn1'], 'mean_rank@turn2')
    """
    rounds = range(1, settings.max_rounds + 1)
    cutoffs = _cutoffs(settings)
    names = [f"hits@{k}@turn{number}" for k in cutoffs for number in rounds]
    names.append(f"hits_auc@{settings.k}")
    names += [f"recall@{k}@turn{number}" for k in cutoffs for number in rounds]
    names += [f"map@{MAP}@turn{number}" for number in rounds if several_targets]
    return [*names, *(f"mean_rank@turn{number}" for number in rounds)]


def _cutoffs(settings: RoundSettings) -> list[int]:
    return sorted({*CUTOFFS, settings.k})


def _values(
    settings: RoundSettings,
    ranks: IntArray,
    lengths: IntArray,
    filled: Sequence[Sequence[Round]],
    targets: Sequence[tuple[str, ...]],
) -> dict[str, FloatArray]:
    """Of each number one value a session, by the functions that every metric of the suite has."""
    rounds = ranks.shape[1]
    coded = CodedSessions(ranks, lengths, np.full(len(ranks), rounds, dtype=np.int64))
    wanted: list[tuple[str, int | None]] = [("hits_at_k", k) for k in _cutoffs(settings)]
    values: dict[str, Any] = dict(evaluate_coded([*wanted, ("hits_auc", settings.k)], coded).per_query)
    for number in range(rounds):
        at_round, turn = ranks[:, number], f"@turn{number + 1}"
        for k in _cutoffs(settings):
            values[f"recall@{k}{turn}"] = recall_at_k.per_query(at_round, k)
        values[f"mean_rank{turn}"] = mean_rank.per_query(at_round)
        if any(len(each) > 1 for each in targets):
            [positive] = mark_ids([session[number].top for session in filled], [targets], MAP)
            counts = np.array([len(each) for each in targets], dtype=np.int64)
            values[f"map@{MAP}{turn}"] = map_at_k.per_query(positive, counts, MAP)
    several = any(len(each) > 1 for each in targets)
    return {name: values[name] for name in metric_names(settings, several_targets=several)}


def _filled(session: Sequence[Round], rounds: int) -> list[Round]:
    return [*session, *([session[-1]] * (rounds - len(session)))]


def dialogue_text(transcript: Transcript, limit: int | None = None) -> str:
    """Every choice of a dialogue and who its user was, in one line.

    Args:
        transcript: the file.
        limit: how many sessions were drawn, where not all were wanted.
    """
    return f"{transcript.choices.text_of(limit)}{USER}{user_text(transcript)}"


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


def solved(score: TranscriptScore) -> BoolArray:
    """Which session has found its target in which round or before, shape (sessions, rounds)."""
    evidence = score.report.evidence
    if evidence is None:
        return np.zeros(score.played.shape, dtype=np.bool_)
    rounds = range(1, score.settings.max_rounds + 1)
    columns = [evidence.values[f"hits@{score.settings.k}@turn{number}"] > 0 for number in rounds]
    found: BoolArray = np.stack(columns, axis=1)
    return found


def ends(transcript: Transcript) -> dict[str, int]:
    """How many sessions ended in which way, in the file's words: `solved`, `last round`, `silent: ...`."""
    found: dict[str, int] = {}
    for session in transcript.sessions().values():
        said = session[-1].end
        found[said] = found.get(said, 0) + 1
    return dict(sorted(found.items(), key=lambda one: (-one[1], one[0])))
