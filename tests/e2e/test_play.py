"""`cir play` as a person plays it: on its page in Chromium, and in a terminal; killed, and gone on with."""

from __future__ import annotations

import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from docs_shell import ROOT, Shell, commands
from interruptible import interruptible

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
    """A `cir play --web` on a free port, and its address."""
    process = subprocess.Popen(
        interruptible([*command, "--port", "0"]),
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
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
        assert process.stdout is not None
        process.stdout.close()


@pytest.mark.slow
@pytest.mark.browser
def test_a_person_plays_sessions_in_a_browser_and_the_transcript_is_scored(page: Any, tmp_path: Path) -> None:
    out = tmp_path / "human.jsonl"
    command = [*PLAY, "--web", "--limit", "3", "--out", str(out)]
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
        second = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
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
    numbers = check_transcript(out).score().report.metrics
    first, last = numbers["mean_rank@turn1"], numbers["mean_rank@turn5"]
    assert f"{first:.1f} in the first round, {last:.1f} in the last" in summary
    assert played_again(transcript).rounds == transcript.rounds


class Terminal:
    """A command in a pseudo-terminal of 120 columns that shows all colours."""

    def __init__(self, *arguments: str) -> None:
        self.shown = ""
        colours = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "COLUMNS": "120"}
        environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
        own, theirs = pty.openpty()
        self._own = own
        self.process = subprocess.Popen(
            interruptible([*PLAY, *arguments]),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**environment, **colours},
            start_new_session=True,
        )
        os.close(theirs)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._own)

    def until(self, words: str) -> str:
        """What has been shown since the last call, up to these words."""
        ends = time.monotonic() + 300
        while words not in self.shown:
            assert time.monotonic() < ends, f"{words!r} was never shown: {self.shown[-500:]}"
            if select.select([self._own], [], [], 1)[0]:
                try:
                    self.shown += os.read(self._own, 1 << 16).decode(errors="replace")
                except OSError as error:  # the command has ended
                    raise AssertionError(f"{words!r} was never shown: {self.shown[-500:]}") from error
        before, _, self.shown = self.shown.partition(words)
        return before + words

    def type(self, words: str) -> None:
        os.write(self._own, f"{words}\n".encode())


ASKED = "(/skip, /quit)"


@pytest.mark.slow
def test_a_person_plays_in_a_terminal_is_killed_and_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "human.jsonl"
    arguments = ("--limit", "2", "--out", str(out))
    with Terminal(*arguments) as terminal:
        shown = terminal.until(ASKED)
        assert "Session 1 of 2, round 2 of 5" in shown
        assert "What you want" in shown
        assert "▀" in shown
        assert "Rank: 9th of 3,940" in shown
        terminal.type("")
        terminal.until("nothing was typed")
        terminal.until(ASKED)
        terminal.type("/skpi")
        terminal.until("/skpi is neither /skip nor /quit")
        terminal.until(ASKED)
        terminal.type("a small moon")
        assert "before: 9th" in terminal.until(ASKED)
        terminal.type("звезда")  # the method does not know it; that is a person's right
        terminal.until("round 4 of 5")
        terminal.until(ASKED)
        terminal.process.kill()
    assert not out.exists()
    with Terminal(*arguments) as terminal:
        shown = terminal.until(ASKED)
        assert "Session 1 of 2, round 4 of 5" in shown
        assert "3. звезда" in shown
        terminal.type("/skip")
        assert "Skipped" in terminal.until("Session 2 of 2")
        terminal.until(ASKED)
        terminal.type("no stars")
        terminal.until("round 3 of 5")
        terminal.until(ASKED)
        terminal.type("/quit")
        assert "1 session is finished" in terminal.until("1 are left. Go on: cir play")
        terminal.until(str(out))
        assert terminal.process.wait(60) == 0
    assert len(read_transcript(out).sessions()) == 1
    with Terminal(*arguments) as terminal:
        assert "Session 2 of 2, round 3 of 5" in terminal.until(ASKED)
        os.write(terminal._own, b"\x04")  # the end of input, as by Ctrl-D
        terminal.until("Go on: cir play")
        assert terminal.process.wait(60) == 0
    with Terminal(*arguments) as terminal:
        terminal.until(ASKED)
        terminal.type("/skip")
        terminal.until("2 sessions are finished")
        assert terminal.process.wait(60) == 0
    transcript = read_transcript(out)
    assert [each.caption for each in transcript.rounds if each.round == 3][:1] == ["звезда"]
    assert played_again(transcript).rounds == transcript.rounds


@pytest.mark.slow
def test_the_four_commands_of_the_docs_run_in_their_order(tmp_path: Path) -> None:
    play, *others = commands("play.md", "A study in four commands")
    words = shlex.split(play)
    assert words[:3] == ["cir", "play", "--web"]
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


def test_without_colours_the_terminal_form_says_what_to_do(tmp_path: Path) -> None:
    command = [*PLAY, "--limit", "1", "--out", str(tmp_path / "human.jsonl")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, input="", timeout=300)
    assert done.returncode == 2
    assert "--web" in done.stderr
