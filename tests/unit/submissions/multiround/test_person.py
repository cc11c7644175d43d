"""A person as the user: the same loop, one session after another, and nothing is lost or stored beside it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmark_world import dialogues as world
from says import says

from cir_metrics.errors import CallError
from submissions.embeddings.store import EmbeddingStore
from submissions.errors import SubmissionError
from submissions.multiround.making import make_transcript
from submissions.multiround.person import LONGEST, SKIPPED, PersonDialogue, WordsError, person_words
from submissions.multiround.users import Silence
from submissions.running.options import RunOptions
from submissions.transcripts.checking import check_transcript
from submissions.transcripts.reading import read_transcript
from submissions.transcripts.settings import RoundSettings
from submissions.transcripts.transcript import Round, Transcript

SETTINGS = replace(world.SETTINGS, seed=4)
"""Of a seed that draws the sessions as the benchmark lists them."""
TYPED: list[str | Silence] = ["66", "7", "142", SKIPPED]
"""What the scripted user of `benchmark_world.dialogues` says, in the order of sessions."""


def options(folder: Path) -> RunOptions:
    return RunOptions(encoder=world.DegreesEncoder(), store=EmbeddingStore(folder / "store"), workers=0)


def opened(folder: Path, settings: RoundSettings = SETTINGS, **more: Any) -> PersonDialogue:
    given = {"out": folder / "human.jsonl", "limit": None, "form": "terminal", **more}
    return PersonDialogue(world.small_benchmark(), world.Degrees(), settings, options(folder), **given)


def simulated(folder: Path, settings: RoundSettings, limit: int | None) -> Transcript:
    return make_transcript(
        world.small_benchmark(), world.Degrees(), world.ScriptedUser(), settings, options(folder), limit=limit
    )


def by_hand() -> list[Round]:
    """The dialogue of `benchmark_world.dialogues`, with a person's reason for silence."""
    ends = {f"silent: {world.WHY}": f"silent: {SKIPPED.why}"}
    return [each.model_copy(update={"end": ends.get(each.end, each.end)}) for each in world.rounds()]


def play_on(dialogue: PersonDialogue, typed: Sequence[str | Silence]) -> None:
    for words in typed:
        dialogue.say(words)


def test_a_person_who_says_what_a_simulated_user_says_has_the_same_rounds(tmp_path: Path) -> None:
    dialogue = opened(tmp_path)
    play_on(dialogue, TYPED)
    assert dialogue.current() is None
    assert read_transcript(tmp_path / "human.jsonl").rounds == by_hand()
    assert not (tmp_path / "human.jsonl.journal").exists()


@pytest.mark.parametrize("name", ["human.jsonl", "human.parquet"])
def test_who_leaves_after_any_words_goes_on_to_the_same_transcript(tmp_path: Path, name: str) -> None:
    play_on(opened(tmp_path, out=tmp_path / "whole" / name), TYPED)
    for words in TYPED:
        # As after a kill: nothing but files remains.
        opened(tmp_path, out=tmp_path / name).current()
        opened(tmp_path, out=tmp_path / name).say(words)
    assert (tmp_path / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_finished_sessions_stand_in_the_transcript_at_once(tmp_path: Path) -> None:
    dialogue = opened(tmp_path)
    dialogue.say("66")
    dialogue.say("7")
    assert list(read_transcript(tmp_path / "human.jsonl").sessions()) == ["finds"]
    assert (len(dialogue), dialogue.left) == (3, 2)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_who_leaves_early_without_a_limit_has_a_transcript_that_scores(tmp_path: Path, seed: int) -> None:
    settings = replace(world.SETTINGS, seed=seed)
    dialogue = opened(tmp_path, settings, limit=None)
    while dialogue.left == 3:
        dialogue.say(SKIPPED)
    left = check_transcript(tmp_path / "human.jsonl", world.small_benchmark())
    assert left.report.ok, left.report.text()
    assert (left.limit, left.score().n) == (1, 1)
    other = simulated(tmp_path, settings, 1).sessions()
    assert list(read_transcript(tmp_path / "human.jsonl").sessions()) == list(other)


def test_a_journal_whose_memory_has_another_shape_is_damaged(tmp_path: Path) -> None:
    opened(tmp_path).current()
    [memory] = (tmp_path / "human.jsonl.journal").glob("*/01-round-1.part")
    with memory.open("wb") as file:
        np.save(file, np.zeros((1, 3)))
    with pytest.raises(SubmissionError, match=r"01-round-1\.part: it is damaged"):
        opened(tmp_path).current()


def test_a_person_sees_the_target_what_was_found_and_their_words(tmp_path: Path) -> None:
    dialogue = opened(tmp_path)
    stage = dialogue.current()
    assert (stage.number, stage.session, len(stage.rounds)) == (1, "finds", 1)
    assert (stage.exchange.candidate, stage.exchange.target) == (world.image(10), world.image(40))
    assert stage.exchange.said == ("12",)
    ended = dialogue.say("66")
    assert (ended.exchange, ended.rounds[-1].end, ended.rounds[-1].rank) == (None, "solved", 1)


def test_the_transcript_says_what_was_shown_and_nothing_of_who_played(tmp_path: Path) -> None:
    play_on(opened(tmp_path), TYPED)
    header, *lines = map(json.loads, (tmp_path / "human.jsonl").read_text().splitlines())
    shown = "target, candidate, words, ranks, top 6"
    assert header["user"] == {"kind": "person", "form": "terminal", "shown": shown}
    assert {key for line in lines for key in line} == set(Round.model_fields)
    assert set(header) == set(simulated(tmp_path, world.SETTINGS, None).header())


@pytest.mark.parametrize("start", ["published", "random"])
def test_a_simulated_user_plays_the_same_sessions_by_seed_and_limit(tmp_path: Path, start: str) -> None:
    settings = replace(world.SETTINGS, start=start, seed=7)
    dialogue = opened(tmp_path, settings, limit=2)
    while dialogue.current() is not None:
        dialogue.say(SKIPPED)
    played = read_transcript(tmp_path / "human.jsonl").sessions()
    other = simulated(tmp_path, settings, 2).sessions()
    assert list(played) == list(other)
    wanted = [rounds[0].target for rounds in other.values()]
    assert [rounds[0].target for rounds in played.values()] == wanted
    assert [rounds[0].reference for rounds in played.values()] == [
        rounds[0].reference for rounds in other.values()
    ]


def test_a_higher_limit_adds_sessions_behind_those_that_were_played(tmp_path: Path) -> None:
    settings = replace(world.SETTINGS, seed=3)
    opened(tmp_path, settings, limit=1).say(SKIPPED)
    first = list(read_transcript(tmp_path / "human.jsonl").sessions())
    dialogue = opened(tmp_path, settings, limit=3)
    while dialogue.current() is not None:
        dialogue.say(SKIPPED)
    sessions = list(read_transcript(tmp_path / "human.jsonl").sessions())
    assert sessions[:1] == first
    assert sorted(sessions) == ["finds", "never", "silent"]


def test_other_seeds_draw_other_sessions(tmp_path: Path) -> None:
    first = {
        next(iter(simulated(tmp_path, replace(world.SETTINGS, seed=seed), 1).sessions())) for seed in range(9)
    }
    assert first == {"finds", "never", "silent"}


def test_who_says_the_first_words_too_may_skip_them(tmp_path: Path) -> None:
    dialogue = opened(tmp_path, replace(world.SETTINGS, start="random"), limit=1)
    stage = dialogue.current()
    assert stage.rounds == ()
    ended = dialogue.say(SKIPPED)
    assert [each.end for each in ended.rounds] == [f"silent: {SKIPPED.why}"]
    assert ended.rounds[0].rank == len(world.GALLERY) - 1


def test_a_kill_between_transcript_and_journal_costs_nothing(tmp_path: Path) -> None:
    dialogue = opened(tmp_path)
    dialogue.current()
    journal = tmp_path / "human.jsonl.journal/00001"
    shutil.copytree(journal, tmp_path / "kept")
    dialogue.say("66")
    shutil.copytree(tmp_path / "kept", journal)
    play_on(opened(tmp_path), TYPED[1:])
    assert read_transcript(tmp_path / "human.jsonl").rounds == by_hand()
    assert not journal.exists()


def test_another_dialogue_is_not_gone_on_with(tmp_path: Path) -> None:
    opened(tmp_path).say("66")
    with pytest.raises(CallError) as raised:
        opened(tmp_path, replace(SETTINGS, k=2))
    says(raised, "another dialogue", "settings", "--out")
    with pytest.raises(CallError) as raised:
        opened(tmp_path, form="page")
    says(raised, "another dialogue", "user", "--out")


def test_fewer_sessions_than_were_played_are_refused(tmp_path: Path) -> None:
    dialogue = opened(tmp_path, limit=3)
    while dialogue.current() is not None:
        dialogue.say(SKIPPED)
    with pytest.raises(CallError) as raised:
        opened(tmp_path, limit=1)
    says(raised, "human.jsonl", "is not among these 1", "as many sessions as before")


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ("", "nothing was typed"),
        (" \n\t", "nothing was typed"),
        ("a" * (LONGEST + 1), "1,001 characters"),
        ("red\x1b[31m", "U+001B"),
        ("half \ud800", "U+D800"),
        ("backwards \u202e", "U+202E"),
    ],
)
def test_words_that_cannot_be_taken_play_no_round(tmp_path: Path, typed: str, why: str) -> None:
    dialogue = opened(tmp_path)
    before = dialogue.current()
    with pytest.raises(WordsError, match=why.replace("+", r"\+")):
        dialogue.say(typed)
    assert dialogue.current() == before


@pytest.mark.parametrize(
    "typed", ["ein größerer Stern", "一颗红色的星星", "звезда", "نجمة حمراء", "می‌خواهم", "⭐"]
)
def test_any_script_is_taken(typed: str) -> None:
    assert person_words(typed) == typed


def test_words_after_the_last_session_are_refused(tmp_path: Path) -> None:
    dialogue = opened(tmp_path)
    play_on(dialogue, TYPED)
    with pytest.raises(WordsError, match="all sessions have been played"):
        dialogue.say("more")
