"""What `cir play` says of a session and of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cir_datasets.common.terminal import counted
from submissions.rank_file.findings import ordinal
from submissions.transcripts.transcript import SILENT

if TYPE_CHECKING:
    from submissions.transcripts.transcript import Round, Transcript


def rank_words(rounds: Sequence[Round], images: int) -> str:
    """Where the target stands now, and where it stood a round before.

    Args:
        rounds: of a session.
        images: in the gallery.
    """
    if not rounds:
        return ""
    now = f"{ordinal(rounds[-1].rank)} of {images:,}"
    # A round that was skipped moves nothing.
    return now if len(rounds) == 1 or not rounds[-1].caption else f"{now}, before: {ordinal(rounds[-2].rank)}"


def best_found(last: Round) -> str:
    """The best image of a session's end; the reference where its first round was skipped."""
    return last.top[0] if last.top else str(last.reference)


def end_words(rounds: Sequence[Round], k: int) -> str:
    """How a session ended; empty where it goes on."""
    last = rounds[-1]
    if not last.end:
        return ""
    if last.end.startswith(SILENT):
        return "Skipped: it counts as not found."
    played = counted(len(rounds), "round")
    if last.rank > k:
        return f"Not found: after {played} it is not among the first {k}."
    return f"Found in {played}."


def summary_words(transcript: Transcript) -> str:
    """All finished sessions in two sentences, as FISD's table 5 has them."""
    sessions = list(transcript.sessions().values())
    if not sessions:
        return "No session is finished."
    number = "1 session is" if len(sessions) == 1 else f"{len(sessions):,} sessions are"
    found = sum(rounds[-1].rank <= transcript.choices.k for rounds in sessions)
    first, last = (sum(rounds[place].rank for rounds in sessions) / len(sessions) for place in (0, -1))
    return (
        f"{number} finished, {found:,} of them found. "
        f"Mean rank of what you wanted: {first:,.1f} in the first round, {last:,.1f} in the last."
    )
