"""The commands of docs/challenge.md, run in their order by an organiser and a participant."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path

import pytest
from docs_shell import Shell, commands
from waiting import free_port

PAGE = "challenge.md"


@pytest.mark.slow
def test_a_challenge_is_hosted_taken_part_in_and_looked_after(tmp_path: Path) -> None:
    port = str(free_port())
    organiser, participant = tmp_path / "organiser", tmp_path / "participant"
    organiser.mkdir()
    participant.mkdir()
    own = Shell(organiser)
    other = Shell(participant)
    try:
        said = {line: own.run(line) for line in commands(PAGE, "The organiser", port)}
        shutil.copy(organiser / "autumn.tar.gz", participant)
        token = said["cir leaderboard token create ada"].strip()
        lines = [
            line.replace("TOKEN=TOKEN", f"TOKEN={token}") for line in commands(PAGE, "A participant", port)
        ]
        said |= {line: other.run(line) for line in lines}
        said |= {line: own.run(line) for line in commands(PAGE, "While it runs", port)}
    finally:
        codes = own.stop()
    assert codes == [0]
    assert "its ground truth fits, is private" in said["cir challenge check autumn"]
    board = said["cir leaderboard show autumn/test"]
    assert "Sample in random order" in board
    assert "Random" in board
    assert stat.S_IMODE((organiser / "secret" / "autumn.jsonl").stat().st_mode) == 0o600
    # What was handed out holds no truth, and what the participant has holds none either.
    lines = (organiser / "secret" / "autumn.jsonl").read_bytes().splitlines()[1:]
    for folder in (
        participant,
        organiser / "challenges",
        organiser / "challenge-home",
        organiser / "backups",
    ):
        for path in folder.rglob("*"):
            if path.is_file():
                content = path.read_bytes()
                assert not any(line in content for line in lines), path
