"""Boards of dialogues, in a file of its own: the process that judges a file needs no more of its board."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from submissions.transcripts.settings import RoundSettings


class BoardDialogue(BaseModel):
    """The dialogues of a board, whose submissions are transcripts."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    settings: dict[str, str | int | bool | None] = {}
    """Fields of `RoundSettings`; those that are left out are as they are by themselves."""
    user: dict[str, Any] = {}
    """What a transcript's header must say of its user; what is not named here may be anything."""
    sessions: Annotated[int, Field(strict=True, ge=1)] | None = None
    """The first of the seed's draw; None for every published query. Sessions that start at random need it."""

    @model_validator(mode="after")
    def _can_be_played(self) -> BoardDialogue:
        if self.choices.start == "random" and self.sessions is None:
            raise ValueError("dialogues that start at random say how many `sessions` there are")
        return self

    @property
    def choices(self) -> RoundSettings:
        """The settings, checked."""
        return RoundSettings.of(self.settings)

    @property
    def text(self) -> str:
        """Settings and sessions, as a signature begins to say them."""
        return self.choices.text_of(self.sessions)

    def differences(
        self, settings: RoundSettings, user: Mapping[str, Any], sessions: int | None
    ) -> list[str]:
        """In what a transcript is another dialogue than the board's, a line each.

        Args:
            settings: of the transcript.
            user: of its header.
            sessions: how many were drawn; None where it holds every published query.

        Example:
            >>> board = BoardDialogue(settings={"k": 10}, user={"kind": "simulated"})
            >>> board.differences(RoundSettings(k=1), {"kind": "person"}, None)
            ['k is 1, and the board asks for 10', 'user.kind is "person", and the board asks for "simulated"']
        """
        wanted, found = self.choices.to_dict(), settings.to_dict()
        pairs = [(name, found[name], wanted[name]) for name in wanted]
        pairs.append(("the number of sessions", sessions or "all", self.sessions or "all"))
        return [
            f"{name} is {_said(is_now)}, and the board asks for {_said(should_be)}"
            for name, is_now, should_be in [*pairs, *_user_pairs("user", user, self.user)]
            if is_now != should_be
        ]


def _user_pairs(name: str, found: Any, wanted: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    pairs = []
    for key, value in wanted.items():
        own = found.get(key) if isinstance(found, Mapping) else None
        if isinstance(value, Mapping):
            pairs += _user_pairs(f"{name}.{key}", own, value)
        else:
            pairs.append((f"{name}.{key}", own, value))
    return pairs


def _said(value: Any) -> str:
    from submissions.rank_file.findings import shown

    return shown(value)
