"""Dialogues: the loop, and what each choice of `RoundSettings` changes in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dialogue_world as world

from submissions.embeddings.store import EmbeddingStore
from submissions.multiround.making import make_transcript
from submissions.running.options import RunOptions
from submissions.transcripts.settings import RoundSettings
from submissions.transcripts.transcript import Transcript


def played(
    folder: Path,
    settings: RoundSettings = world.SETTINGS,
    user: Any = None,
    method: Any = None,
    **more: Any,
) -> Transcript:
    options = RunOptions(encoder=world.DegreesEncoder(), store=EmbeddingStore(folder / "store"), workers=0)
    method = method or world.Degrees()
    return make_transcript(
        more.pop("benchmark", None) or world.small_benchmark(),
        method,
        user or world.ScriptedUser(),
        settings,
        options,
        **more,
    )


def test_three_dialogues_are_what_they_are_by_hand(tmp_path: Path) -> None:
    assert played(tmp_path).rounds == world.rounds()
