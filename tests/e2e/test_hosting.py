"""The commands of docs/host.md in their order: on a laptop, on a server with PostgreSQL, as a Space."""

from __future__ import annotations

from pathlib import Path

import plain_http
import postgres_server
import pytest
from docs_shell import Shell, commands
from http_hub import TOKEN, Hub

PAGE = "host.md"


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
            rows = plain_http.get(board, timeout=300).json()["rows"]
        finally:
            codes = shell.stop()
    assert codes == [0, 0]
    assert len(rows) == 2
    assert '"status"' in done[health]
    assert not (folder / "server-home" / "leaderboard.sqlite").exists()
    assert len(list((folder / "backups").iterdir())) == 1


@pytest.mark.slow
def test_a_space_is_looked_at_and_pushed(tmp_path: Path, hub: Hub) -> None:
    """To a stand-in for the Hub, whose token stands in the environment already."""
    shell = Shell(tmp_path, HF_ENDPOINT=hub.url, HF_TOKEN=TOKEN, HF_HUB_DISABLE_XET="1")
    token, look, push = commands(PAGE, "As a Space")
    assert token == "export HF_TOKEN=hf_..."
    shell.run(look)
    assert (tmp_path / "space" / "app.py").is_file()
    said = shell.run(push)
    made = hub.repository("me/leaderboard")
    assert made.head in said
    assert "app.py" in made.files
    assert made.settings["CIR_PREPARE"] == ("variables", "cirr/val circo/val fashioniq/val")
    assert hub.repository("me/leaderboard-log").private
