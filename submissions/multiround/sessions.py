"""A dialogue as recorded sessions: a file in CIRCLED's form, and the rank file of its turns.

What was played once is then a benchmark of sessions, which other methods rank, too.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from cir_datasets import registry
from cir_datasets.rows.benchmark import Benchmark
from submissions.errors import MethodError
from submissions.rank_file.model import RankFile, write_bytes

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec
    from cir_datasets.rows.records import Row
    from submissions.transcripts.transcript import Transcript


def sessions_spec(benchmark: Benchmark) -> BenchmarkSpec:
    """The benchmark of sessions over the same gallery, whose form and metrics a dialogue takes.

    Raises:
        MethodError: no benchmark of sessions has that gallery.

    Example:
        >>> import cir_datasets
        >>> sessions_spec(cir_datasets.load("shapes/val")).id
        'shapes/multiturn_val'
    """
    for name in registry.names():
        for config_name, config in registry.card(name).configs.items():
            if config.turns and config.gallery_from == benchmark.id:
                return registry.spec(f"{name}/{config_name}")
    raise MethodError(
        f"no benchmark of sessions has the gallery of {benchmark.id}, so that nothing says how its dialogues "
        "are scored as sessions. Fix: leave --sessions out; the transcript itself is scored by cir score."
    )


def session_rows(transcript: Transcript, benchmark: Benchmark, spec: BenchmarkSpec) -> list[Row]:
    """Each session of a dialogue as CIRCLED publishes sessions.

    Args:
        transcript: the dialogue.
        benchmark: what was played, which says what is right.
        spec: the benchmark of sessions whose rows they are to be.
    """
    positives = dict(zip(benchmark.query_ids, benchmark.positives, strict=True))
    rows = []
    for session, rounds in transcript.sessions().items():
        # Of one that started at random the target alone is right.
        targets = [rounds[0].target] if session not in positives else positives[session]
        rows.append(
            {
                "session_id": session,
                "subset": spec.config_name,
                "ground_truth_ids": list(targets),
                "num_turns": len(rounds),
                "turns": [
                    {
                        "turn": each.round,
                        "reference_image_id": each.reference,
                        "relative_caption": each.caption,
                    }
                    for each in rounds
                ],
            }
        )
    return rows


def sessions_benchmark(transcript: Transcript, benchmark: Benchmark) -> Benchmark:
    """A dialogue as a benchmark in memory, which `submissions.score` and `make_rank_file` take.

    Scores on it say that its counts are not the card's.
    """
    spec = sessions_spec(benchmark)
    return Benchmark.from_rows(
        spec,
        session_rows(transcript, benchmark, spec),
        benchmark.gallery,
        pinned=False,
        checks_skipped=("counts",),
    )


def write_sessions(transcript: Transcript, benchmark: Benchmark, path: str | Path) -> Path:
    """Write the sessions as a JSON list, as `data/SUBSET.json` of CIRCLED holds them.

    Raises:
        MethodError: no benchmark of sessions has this gallery.
        SubmissionError: the system refuses to write there.
    """
    rows = session_rows(transcript, benchmark, sessions_spec(benchmark))
    return write_bytes(orjson.dumps(rows, option=orjson.OPT_INDENT_2), path)


def rank_file_of(transcript: Transcript, benchmark: Benchmark) -> RankFile:
    """What the method found in each turn: the transcript's lists, for the benchmark of the same form.

    A session whose user never said a word was never ranked, and is not in it.

    Raises:
        MethodError: no benchmark of sessions has this gallery.
    """
    spec = sessions_spec(benchmark)
    choices = transcript.choices
    history = f"{choices.history} of all rounds" if choices.history != "none" else "latest"
    method = transcript.method.model_copy(update={"aggregation": history})
    return RankFile(spec.id, spec.card.version, method, lists_of(transcript))


def lists_of(transcript: Transcript) -> dict[str, list[list[str]]]:
    """What each session found, round by round; of one whose user never said a word, nothing."""
    sessions = transcript.sessions().items()
    return {session: [each.top for each in rounds] for session, rounds in sessions if rounds[0].top}
