"""A database that was lost is not taken for a new leaderboard, and is made anew from the files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx
import leaderboard_world as world
import pytest

from leaderboard.errors import SubmissionStoreError
from leaderboard.intake.life import act
from leaderboard.server import Server
from leaderboard.settings import Settings
from leaderboard.store import Store


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home whose database is gone: two rank files, and one file that names no board."""
    server = Server.open(Settings(tmp_path / "home"))
    contents = [world.as_bytes(world.rank_file(seed, f"Method {seed}")) for seed in (1, 2)]
    for content in [*contents, b"{}"]:
        incoming = server.files.incoming()
        incoming.write(content)
        incoming.keep()
    server.close()
    for path in (tmp_path / "home").glob("leaderboard.sqlite*"):
        path.unlink()
    return tmp_path / "home"


def test_a_new_database_beside_files_is_refused(home: Path) -> None:
    for _ in range(2):
        with pytest.raises(SubmissionStoreError, match=r"database is empty.*Fix: put a backup"):
            Server.open(Settings(home))


def moved_away(path: Path) -> None:
    path.rename(path.with_suffix(".away"))


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def replaced(path: Path) -> None:
    moved_away(path)
    Store(f"sqlite:///{path}").close()


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("happens", [moved_away, emptied, replaced])
def test_a_server_acknowledges_nothing_beside_its_database(
    tmp_path: Path, happens: Callable[[Path], None]
) -> None:
    home = tmp_path / "home"
    with world.serving_here(home) as server:

        def sent(seed: int) -> int:
            content = world.as_bytes(world.rank_file(seed, f"Method {seed}"))
            answer = httpx.post(f"{server.url}/api/submissions?board={world.BOARD}", content=content)
            return answer.status_code

        assert sent(1) == 202
        happens(home / "leaderboard.sqlite")
        assert sent(2) == 503
        assert server.get("/health").status_code == 503
        assert "does not answer" in server.get("/status").text
        if happens is emptied:  # no command fills it meanwhile, so that the server would take it for its own
            assert world.cir("leaderboard", "token", "create", "ada", "--home", str(home)).returncode == 2
            assert sent(2) == 503
        if happens is moved_away:
            (home / "leaderboard.away").rename(home / "leaderboard.sqlite")
            assert sent(2) == 202
            assert server.get("/health").status_code == 200


@pytest.mark.parametrize("part", [0.0, 0.6])
def test_overwritten_pages_are_refused_and_the_words_of_the_fix_help(
    home: Path, tmp_path: Path, part: float
) -> None:
    assert world.cir("leaderboard", "rebuild", "--home", str(home)).returncode == 0
    path = home / "leaderboard.sqlite"
    content = bytearray(path.read_bytes())
    start = int(len(content) * part) // 4096 * 4096
    content[start : start + 3 * 4096] = b"\xa5" * 3 * 4096
    path.write_bytes(content)
    refused = world.cir("leaderboard", "serve", "--port", "0", "--home", str(home), code=2)
    assert "Traceback" not in refused.stderr
    fix = " ".join(refused.stderr.split()).partition("Fix: ")[2]
    assert "move it away and run cir leaderboard rebuild." in fix
    assert path.read_bytes() == content
    path.rename(tmp_path / "away.sqlite")
    done = world.cir("leaderboard", "rebuild", "--home", str(home))
    assert "2 rank files wait to be judged; 1 are left out." in done.stdout
    server = Server.open(Settings(home))
    assert [server.worker.process(one).state for one in server.store.unfinished()] == ["private"] * 2
    server.close()


def test_the_command_of_the_message_makes_it_anew(home: Path) -> None:
    done = world.cir("leaderboard", "rebuild", "--home", str(home), code=0)
    assert "2 rank files wait to be judged; 1 are left out." in done.stdout
    assert "left out: " in done.stderr
    store = Store(Settings(home).database_url)
    assert [one.board for one in store.unfinished()] == ["shapes/val", "shapes/val"]
    store.close()
    assert "private" in done.stdout
    server = Server.open(Settings(home))
    for one in server.store.unfinished():
        assert server.worker.process(one).state == "private"
    assert server.store.published("shapes/val") == []
    act(server.store, server.store.of_board("shapes/val")[0], "publish", "organiser")
    assert len(server.store.published("shapes/val")) == 1
    server.close()
    again = world.cir("leaderboard", "rebuild", "--home", str(home), code=2)
    assert "holds submissions" in again.stderr


def test_a_backup_made_by_the_command_comes_back(home: Path, tmp_path: Path) -> None:
    world.cir("leaderboard", "rebuild", "--home", str(home))
    for keep in ("3", "1"):
        done = world.cir(
            "leaderboard",
            "backup",
            "--to",
            str(tmp_path / "backups"),
            "--keep",
            keep,
            "--home",
            str(home),
            code=0,
        )
        assert "2 submissions, 2 events, 2 rank files" in done.stdout
    made = list((tmp_path / "backups").iterdir())
    assert len(made) == 1
    done = world.cir("leaderboard", "import", str(made[0]), "--home", str(tmp_path / "new"), code=0)
    opened = Server.open(Settings(tmp_path / "new"))
    assert len(opened.store.unfinished()) == 2
    opened.close()
