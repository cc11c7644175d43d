"""The commands of docs/hosting.md, run in their order: on a laptop, and on a server with PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import httpx
import postgres_server
import pytest
from docs_shell import Shell, commands

PAGE = "hosting.md"


@pytest.fixture(scope="module")
def laptop(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    folder = tmp_path_factory.mktemp("laptop")
    shell = Shell(folder)
    said = {line: shell.run(line) for line in commands(PAGE, "On a laptop")}
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
            done = {line: shell.run(line) for line in commands(PAGE, "On a server with PostgreSQL")}
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
