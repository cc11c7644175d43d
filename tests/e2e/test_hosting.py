"""The commands of docs/hosting.md, run in their order: on a laptop, and on a server with PostgreSQL."""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import postgres_server
import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "hosting.md").read_text(encoding="utf-8")
STAYS = ("cir leaderboard serve", "cir leaderboard work")
"""These run until they are stopped."""
NOT_HERE = ("pip ", "sudo ")


def commands(heading: str) -> list[str]:
    """The commands of a section, on a free port instead of the one that is written."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0].split("\n### ")[0]
    blocks = re.findall(r"^ *```sh\n(.*?)^ *```$", section, flags=re.MULTILINE | re.DOTALL)
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    lines = [f"{line} --port 7860" if line == "cir leaderboard serve" else line for line in lines]
    return [line.replace("7860", port) for line in lines if not line.startswith(NOT_HERE)]


class Shell:
    """Runs one command after the other, keeping exports; what stays runs until the end."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CIR_LEADERBOARD_")}
        self.environment = {**kept, "PYTHONPATH": str(ROOT), **environment}
        self.running: list[subprocess.Popen[bytes]] = []

    def run(self, line: str) -> str:
        if line.startswith("export "):
            name, _, value = line.removeprefix("export ").partition("=")
            self.environment.setdefault(name, value.replace("$PWD", str(self.folder)))
            return ""
        words = shlex.split(line)
        command = [sys.executable, "-m", "leaderboard.cli", *words[1:]] if words[0] == "cir" else words
        if line.startswith(STAYS):
            return self._start(command)
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def _start(self, command: list[str]) -> str:
        log = self.folder / f"{len(self.running)}.log"
        with log.open("wb") as handle:
            self.running.append(
                subprocess.Popen(command, cwd=self.folder, env=self.environment, stderr=handle)
            )
        self._wait(log)
        return ""

    def _wait(self, log: Path) -> None:
        until = time.monotonic() + 90
        while time.monotonic() < until and self.running[-1].poll() is None:
            if re.search("Leaderboard on http://|Judging what is submitted", log.read_text()):
                return
            time.sleep(0.1)
        raise AssertionError(log.read_text())

    def stop(self) -> list[int]:
        for process in self.running:
            process.send_signal(signal.SIGTERM)
        codes = [process.wait(timeout=60) for process in self.running]
        self.running.clear()
        return codes


@pytest.fixture(scope="module")
def laptop(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    folder = tmp_path_factory.mktemp("laptop")
    shell = Shell(folder)
    said = {line: shell.run(line) for line in commands("On a laptop")}
    assert shell.stop() == [0]
    return folder, said


@pytest.mark.slow
def test_a_laptop_serves_takes_and_gives_everything_back(laptop: tuple[Path, dict[str, str]]) -> None:
    folder, said = laptop
    first = said["cir leaderboard show shapes/val"]
    restored = said["cir leaderboard show shapes/val --home restored"]
    assert ("Image only" in first, "Image only" in restored) == (False, True)
    assert "baseline  Random" in first
    assert "baseline  Random" in restored
    assert (folder / "everything" / "export.json").is_file()
    assert len(list((folder / "backups").iterdir())) == 1


@pytest.mark.slow
def test_a_server_with_postgresql_takes_over_and_answers(laptop: tuple[Path, dict[str, str]]) -> None:
    missing = postgres_server.missing()
    if missing:
        pytest.skip(missing)
    folder, _ = laptop
    (folder / "backups").rename(folder / "backups-of-the-laptop")
    with postgres_server.serving() as url:
        shell = Shell(folder, CIR_LEADERBOARD_DATABASE=f"{url}/postgres")
        try:
            done = {line: shell.run(line) for line in commands("On a server with PostgreSQL")}
            (health,) = [line for line in done if line.startswith("curl ")]
            board = f"{health.split()[1].removesuffix('/health')}/api/boards/shapes/val"
            rows = httpx.get(board, timeout=30).json()["rows"]
        finally:
            codes = shell.stop()
    assert codes == [0, 0]
    assert len(rows) == 2
    assert '"status"' in done[health]
    assert not (folder / "server-home" / "leaderboard.sqlite").exists()
    assert len(list((folder / "backups").iterdir())) == 1
