"""What stands beside the ranks of dialogues: which rounds were played, who fell silent, the user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cir_datasets.common.terminal import counted
from cir_metrics.sums import BoolArray

_REASONS = 5
"""Reasons of silence that are listed."""


@dataclass(frozen=True, eq=False)
class Rounds:
    """What dialogues have beside the ranks of their sessions.

    Args:
        played: which session plays which round, shape (sessions, rounds).
        silent: which session has ended without words in which round or before, same shape.
        unlisted: whose targets lie behind the list in which round, same shape.
        silences: how many sessions of the file a silent user ended, by the reason in its words.
        choices: the settings of the dialogue by name.
        unusual: names of those that are not as they are by themselves.
        user: who spoke, and by which prompts, in one line.
    """

    played: BoolArray
    silent: BoolArray
    unlisted: BoolArray
    silences: Mapping[str, int]
    choices: Mapping[str, Any]
    unusual: frozenset[str]
    user: str

    @property
    def k(self) -> int:
        """The cutoff within which a session is solved."""
        return int(self.choices["k"])

    @property
    def last(self) -> int:
        """How many rounds a session has at most."""
        return int(self.played.shape[1])

    def silence_note(self) -> str:
        """How many sessions a silent user ended, and why, in a sentence."""
        if not self.silences:
            return "No session ended since the user was silent."
        listed = [f"{reason} ({n:,})" for reason, n in list(self.silences.items())[:_REASONS]]
        left = len(self.silences) - _REASONS
        more = f", and {left:,} more reasons" if left > 0 else ""
        total = counted(sum(self.silences.values()), "session")
        return f"{total} ended unsolved since the user was silent: {'; '.join(listed)}{more}."
