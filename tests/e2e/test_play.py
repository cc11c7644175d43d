"""`cir play` as a person plays it: on its page in Chromium, and in a terminal; killed, and gone on with."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import forked
import httpx
import pytest
from docs_shell import ROOT, Shell, commands

from submissions.multiround.making import make_transcript
from submissions.multiround.users import Exchange, Silence
from submissions.running.options import RunOptions
from submissions.transcripts.checking import check_transcript
from submissions.transcripts.reading import read_transcript
from submissions.transcripts.transcript import Transcript

HOSTILE = "<img src=x onerror=alert(1)> no orange star"
PLAY = [sys.executable, "-m", "leaderboard.cli", "play", "--k", "1", "--seed", "3"]
"""Sessions of this seed begin behind the first place, so that words are needed."""


class Repeating:
    """A user who says what somebody has said before, for the same sessions."""

    description: Mapping[str, Any] = {"kind": "repeating"}

    def __init__(self, transcript: Transcript) -> None:
        self.said = {(each.session, each.round): each for each in transcript.rounds}

    def say(self, exchanges: Sequence[Exchange]) -> list[str | Silence]:
        rounds = [self.said[each.session, len(each.said) + 1] for each in exchanges]
        return [each.caption or Silence(each.end.removeprefix("silent: ")) for each in rounds]


def played_again(transcript: Transcript) -> Transcript:
    """The same sessions side by side, with a user who says the same."""
    return make_transcript(
        transcript.benchmark,
        "image_text_sum",
        Repeating(transcript),
        transcript.choices,
        RunOptions(),
        limit=len(transcript.sessions()),
    )


@contextmanager
def serving(command: Sequence[str], folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A `cir play` on a free port, and its address."""
    process = forked.Process(
        [*command, "--port", "0"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        for line in process.stderr:
            found = re.search(r"Play on (http://127\.0\.0\.1:\d+)", line)
            if found:
                yield process, found[1]
                return
        raise AssertionError("the page was never served")
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
        process.stdout.close()


@pytest.mark.slow
@pytest.mark.browser
def test_a_person_plays_sessions_in_a_browser_and_the_transcript_is_scored(page: Any, tmp_path: Path) -> None:
    out = tmp_path / "human.jsonl"
    command = [*PLAY, "--limit", "3", "--out", str(out)]
    with serving(command, tmp_path) as (process, address):
        page.goto(address)
        page.wait_for_selector("#words:focus")
        assert page.inner_text("#place") == "Session 1 of 3 · Round 2 of 5"
        assert page.inner_text("#rank") == "Rank: 9th of 3,940"
        for picture in ("#target", "#found"):
            assert page.locator(picture).evaluate("one => one.decode().then(() => one.naturalWidth)") == 96
        page.keyboard.press("Enter")
        page.wait_for_selector("#problem:text('Nothing was typed')")
        for number, typed in enumerate(("a small moon", HOSTILE, "a red square", "no triangle"), start=2):
            page.fill("#words", typed)
            page.keyboard.press("Enter")
            page.wait_for_selector(f"#said li:nth-child({number}) .words:text-is('{typed}')")
        assert page.inner_text("#end") == "Not found: after 5 rounds it is not among the first 1."
        assert "before" in page.inner_text("#rank")
        page.keyboard.press("Enter")
        page.wait_for_selector("#words:focus")
        assert page.inner_text("#place").startswith("Session 2 of 3")
        page.click("#skip")
        page.wait_for_selector("#end:text('Skipped')")
        page.keyboard.press("Enter")
        page.wait_for_selector("#words:focus")
        # The third one is left for another day, after its first words.
        page.fill("#words", "no red hearts")
        page.click("#send")
        page.wait_for_selector("#said li:nth-child(2)")
        rank = page.inner_text("#rank")
        process.kill()
        page.fill("#words", "lost")
        page.click("#send")
        page.wait_for_selector("#problem:text('does not answer')")
    assert [len(rounds) for rounds in read_transcript(out).sessions().values()] == [5, 2]
    with serving(command, tmp_path) as (process, address):
        second = forked.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert second.returncode == 2
        assert "another cir play writes it" in second.stderr
        page.goto(address)
        page.wait_for_selector("#words:focus")
        assert page.inner_text("#place") == "Session 3 of 3 · Round 3 of 5"
        assert page.inner_text("#rank") == rank
        page.click("#skip")
        page.wait_for_selector("#next:focus:text('See the result')")
        page.keyboard.press("Enter")
        page.wait_for_selector("#done:visible")
        summary = page.inner_text("#summary")
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    transcript = read_transcript(out)
    assert transcript.user["kind"] == "person"
    assert [each.caption for each in transcript.rounds[1:5]] == [
        "a small moon",
        HOSTILE,
        "a red square",
        "no triangle",
    ]
    numbers = check_transcript(out).score().metrics
    first, last = numbers["mean_rank@turn1"], numbers["mean_rank@turn5"]
    assert f"{first:.1f} in the first round, {last:.1f} in the last" in summary
    assert played_again(transcript).rounds == transcript.rounds


@pytest.mark.slow
def test_the_four_commands_of_the_docs_run_in_their_order(tmp_path: Path) -> None:
    play, *others = commands("dialogue.md", "A study in four commands")
    words = shlex.split(play)
    assert words[:2] == ["cir", "play"]
    with (
        serving([sys.executable, "-m", "leaderboard.cli", *words[1:]], tmp_path) as (process, address),
        httpx.Client(base_url=address, timeout=60) as client,
    ):
        while "done" not in (state := client.get("/state").json()):
            answer = {"session": state["session"], "round": state["round"], "words": "no stars"}
            assert client.post("/say", json=answer).status_code == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    shell = Shell(tmp_path)
    outputs = [shell.run(line) for line in others]
    human, simulated = (read_transcript(tmp_path / f"{name}.jsonl") for name in ("human", "simulated"))
    assert list(human.sessions()) == list(simulated.sessions())
    assert [rounds[0] for rounds in human.sessions().values()] == [
        rounds[0] for rounds in simulated.sessions().values()
    ]
    assert all(outputs)
