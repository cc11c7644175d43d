"""A Space is put together, starts as it lies there, and is pushed to a stand-in for the Hub."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import leaderboard_world as world
import openid_server
import pytest
import yaml
from cir_here import cir, in_a_process
from http_hub import TOKEN, Fault, Hub
from programs import run_program
from says import says

from cir_metrics.catalogue import package_version
from leaderboard.space.assemble import assemble, requirements

ROOT = Path(__file__).resolve().parents[2]
PINS = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dry") / "space"
    cir("leaderboard", "space", "me/board", "--dry-run", str(folder), code=0)
    return folder


def test_its_head_names_the_pinned_gradio_and_asks_for_logins(space: Path) -> None:
    head = yaml.safe_load((space / "README.md").read_text(encoding="utf-8").split("---")[1])
    assert head["hf_oauth"] is True
    assert head["sdk"] == "gradio"
    assert f"gradio=={head['sdk_version']}" in PINS
    assert (space / head["app_file"]).is_file()
    assert tuple(map(int, head["python_version"].split("."))) >= (3, 11)


def test_its_requirements_are_those_of_a_server_and_pinned(space: Path) -> None:
    lines = (space / "requirements.txt").read_text(encoding="utf-8").splitlines()
    versions = {tuple(re.sub(r"\[.*\]", "", pin).split("==")) for pin in PINS}
    assert {tuple(re.sub(r"\[.*\]", "", line).split("==")) for line in lines} <= versions
    names = {re.split(r"[=\[]", line)[0] for line in lines}
    assert {"gradio", "fastapi", "uvicorn", "sqlalchemy", "numpy", "datasets", "s3fs"} <= names
    assert names.isdisjoint({"torch", "transformers", "pytest", "ruff", "mypy", "ray"})


def test_it_holds_what_git_holds_of_the_packages_and_nothing_else(space: Path) -> None:
    packages = ("cir_metrics", "cir_datasets", "submissions", "leaderboard")
    listed = run_program(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *packages], cwd=ROOT
    ).stdout.splitlines()
    found = {path.relative_to(space).as_posix() for path in space.rglob("*") if path.is_file()}
    about = f"cir_benchmarks-{package_version()}.dist-info/METADATA"
    assert found == {*listed, "README.md", "app.py", "requirements.txt", about}


@contextlib.contextmanager
def started(space: Path, home: Path, **more: str) -> Iterator[tuple[str, Path]]:
    """`python app.py` in the Space's folder; its address and its log."""
    space = shutil.copytree(space, home.parent / "space")  # judging leaves compiled files there
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CIR_", "PYTHON"))}
    where = [sys.executable, "-B", "-c", "import leaderboard; print(leaderboard.__file__)"]
    used = run_program(where, cwd=space, env=kept).stdout
    assert used.strip() == str(space / "leaderboard" / "__init__.py")
    log = home.parent / "log"
    with log.open("w") as handle:
        process = subprocess.Popen(
            [sys.executable, "app.py"],
            cwd=space,
            env={
                **kept,
                "CIR_LEADERBOARD_HOME": str(home),
                "GRADIO_SERVER_PORT": "0",
                "PYTHONDONTWRITEBYTECODE": "1",
                "PYTHONUNBUFFERED": "1",
                "SPACE_ID": "me/board",
                "SYSTEM": "spaces",
                **more,
            },
            stdout=handle,
            stderr=subprocess.STDOUT,
        )
    try:
        yield f"http://127.0.0.1:{_port(process, log)}", log
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=300) == 0


@pytest.mark.slow
def test_it_starts_from_its_own_files_and_answers(space: Path, tmp_path: Path) -> None:
    named = {"SPACE_HOST": "me-board.hf.space", "CIR_PREPARE": "shapes/val"}
    with started(space, tmp_path / "home", **named) as (url, log):
        hosts = {"Host": "me-board.hf.space"}
        until = time.monotonic() + 300
        while True:
            asked = urllib.request.Request(f"{url}/health", headers=hosts)
            with urllib.request.urlopen(asked, timeout=300) as answer:
                health = json.load(answer)
            if health["preparing"] == [{"name": "shapes/val", "state": "ready", "message": ""}]:
                break
            assert time.monotonic() < until, health
            time.sleep(0.1)
        for path in ("/full/", "/full/b/shapes/val", "/api/v1/boards", "/full/api/v1/boards"):
            asked = urllib.request.Request(f"{url}{path}", headers=hosts)
            with urllib.request.urlopen(asked, timeout=300) as answer:
                assert answer.status == 200
    words = log.read_text()
    assert package_version() in json.dumps(health)
    assert "entries end with the next restart" in words
    assert "Traceback" not in words


@pytest.mark.slow
def test_a_browser_reads_a_board_and_submits(space: Path, tmp_path: Path, page: Any) -> None:
    """The table is the server's; a file's findings come before it is sent, its row after."""
    for name, hits in (("Good", 0.6), ("Weak", 0.2)):
        (tmp_path / f"{name}.json").write_bytes(world.as_bytes(world.rank_file(1, name, hits=hits)))
        cir("leaderboard", "add", str(tmp_path / f"{name}.json"), "--home", str(tmp_path / "home"), code=0)
    best = world.rank_file(2, "Best", hits=0.9)
    (tmp_path / "broken.json").write_bytes(world.as_bytes(world.broken(best)))
    (tmp_path / "best.json").write_bytes(world.as_bytes(best))
    with started(space, tmp_path / "home") as (url, _):

        def table() -> list[tuple[str, str]]:
            page.goto(f"{url}/?board=shapes/val")
            page.wait_for_selector("#entries")
            rows = page.locator("#entries tbody tr[data-entry]")
            return [
                (row.locator(".name").inner_text(), row.locator(".main b").inner_text()) for row in rows.all()
            ]

        def served() -> list[tuple[str, str]]:
            with urllib.request.urlopen(f"{url}/api/v1/boards/shapes/val", timeout=300) as answer:
                rows = json.load(answer)["rows"]
            return [(row["method"]["name"], f"{100 * row['main']:.2f}") for row in rows]

        assert table() == served()
        assert [name for name, _ in served()] == ["Good", "Weak"]
        page.get_by_role("tab", name="Queries").click()
        page.wait_for_selector("#answer .list figure")
        page.get_by_role("tab", name="Compare").click()
        page.wait_for_selector("#verdict")
        assert "Good is significantly better than Weak" in page.locator("#verdict").inner_text()
        page.get_by_role("tab", name="Submit").click()
        chosen = page.locator("#file input[type=file]")
        chosen.set_input_files(tmp_path / "broken.json")
        page.wait_for_selector("#found .finding.error")
        assert "duplicate-image" in page.locator("#found").inner_text()
        assert page.locator("#send").is_disabled()
        page.locator("#file").get_by_label("Clear").click()
        page.locator("#file input[type=file]").set_input_files(tmp_path / "best.json")
        page.wait_for_selector("#found .notice.good")
        page.get_by_label("Publish it").check()
        page.locator("#send").click()
        page.wait_for_selector("#outcome .notice.good")
        assert "/s/" in page.locator("#outcome a").get_attribute("href")
        page.set_viewport_size({"width": 390, "height": 800})
        assert table() == served()
        assert [name for name, _ in served()] == ["Best", "Good", "Weak"]
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert page.locator("#entries tbody tr").first.bounding_box()["y"] < 700


@pytest.mark.slow
def test_whoever_signs_in_sends_and_finds_it_again(space: Path, tmp_path: Path, page: Any) -> None:
    pytest.importorskip("authlib", reason="authlib is not installed: it is in the extra leaderboard")
    (tmp_path / "mine.json").write_bytes(world.as_bytes(world.rank_file(3, "Ada's")))
    with (
        openid_server.providing() as provider,
        started(space, tmp_path / "home", **openid_server.space_of(provider)) as (url, _),
    ):
        provider.user = "ada"
        page.goto(f"{url}/?view=submit")
        page.set_input_files("#file input[type=file]", tmp_path / "mine.json")
        page.wait_for_selector("#found .finding:has-text('needs-account')")
        page.goto(f"{url}/login/huggingface")
        page.wait_for_selector("#head .who:has-text('ada')")
        page.set_input_files("#file input[type=file]", tmp_path / "mine.json")
        page.wait_for_selector("#found .notice.good")
        page.locator("#send").click()
        page.wait_for_selector("#outcome .notice.good")
        page.get_by_role("tab", name="Your entries").click()
        page.locator("#look").click()
        page.wait_for_selector('#mine td:has-text("Ada\'s")')
        page.locator("#mine a").click()
        page.wait_for_selector("#outcome.good")
        assert "/full/s/" in page.url
        page.goto(url)
        page.click("#head .who button")
        page.wait_for_selector("#head a.sign-in")


def _port(process: subprocess.Popen[bytes], log: Path) -> str:
    until = time.monotonic() + 300
    while time.monotonic() < until and process.poll() is None:
        found = re.search(r"Leaderboard on http://0\.0\.0\.0:(\d+)", log.read_text())
        if found:
            return found[1]
        time.sleep(0.1)
    raise AssertionError(log.read_text())


LASTING = ("--log", "me/board-log", "--secret", "HF_TOKEN")


def pushed(hub: Hub, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    known = {"HF_ENDPOINT": hub.url, "HF_TOKEN": TOKEN, "HF_HUB_DISABLE_XET": "1"}
    return in_a_process("leaderboard", "space", "me/board", *options, **{**known, **environment})


def test_a_push_is_one_commit_and_takes_the_last_ones_files_away(space: Path, hub: Hub) -> None:
    repository = hub.repository("me/board")
    repository.commit({**repository.files, "leaderboard/old.py": b"old", "notes.txt": b"the owner's"})
    done = pushed(hub, *LASTING, "--prepare", "cirr/val circo/val", "--set", "CIR_LEADERBOARD_NAME=Ours")
    assert done.returncode == 0, done.stderr
    assert repository.settings == {
        "CIR_PREPARE": ("variables", "cirr/val circo/val"),
        "CIR_LEADERBOARD_LOG": ("variables", "hf://datasets/me/board-log"),
        "CIR_LEADERBOARD_NAME": ("variables", "Ours"),
        "HF_TOKEN": ("secrets", TOKEN),
    }
    assert hub.repository("me/board-log").private
    assert done.stdout.strip().endswith(f"/commit/{repository.head}")
    assert len(repository.commits) == 3
    local = {path.relative_to(space).as_posix(): path for path in space.rglob("*") if path.is_file()}
    assert {path: repository.files[path] for path in local} == {
        path: source.read_bytes() for path, source in local.items()
    }
    assert set(repository.files) - set(local) == {".gitattributes", "notes.txt"}


@pytest.mark.slow
def test_a_push_that_fails_changes_nothing_and_says_how_to_go_on(hub: Hub) -> None:
    refused = pushed(hub, "--ephemeral", HF_TOKEN="hf_wrong")
    assert refused.returncode == 2
    says(refused.stderr, "/spaces/me/board", "making the Space", "401", "Fix: log in")
    assert "hf_wrong" not in refused.stderr
    hub.faults["/api/spaces/me/board/commit/main"] = Fault("moved")
    moved = pushed(hub, "--ephemeral")
    assert moved.returncode == 2
    says(moved.stderr, "uploading and committing", "412", "untouched", "Fix: somebody else")
    hub.repository("me/board-log")
    public = pushed(hub, *LASTING)
    assert public.returncode == 2
    says(public.stderr, "/datasets/me/board-log", "everybody may read it", "Fix: make it private")
    assert "app.py" not in hub.repository("me/board").files


def test_what_cannot_be_put_together_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    full = cir("leaderboard", "space", "--to", "me/board", "--dry-run", str(tmp_path), code=2)
    says(full.stderr, f"{tmp_path}: not an empty folder", "Fix: ")
    named = cir("leaderboard", "space", "--to", "board", "--dry-run", str(tmp_path / "new"), code=2)
    says(named.stderr, "the Space: 'board'", "Fix: write OWNER/NAME")
    for words, said in (
        ((), "Name one Space"),
        (("me/board", "--to", "me/other"), "Name one Space"),
        (("me/board",), "lost when it starts anew"),
        (("me/board", "--log", "me/board-log"), "--secret HF_TOKEN"),
        (("me/board", "--log", "log"), "--log: 'log'"),
        (("me/board", "--prepare", "cirr/vol"), "CIR_PREPARE"),
        (("me/board", "--set", "name=x"), "not NAME=VALUE"),
        (("me/board", "--set", "HF_TOKEN=hf_mine"), "--secret HF_TOKEN"),
        (("me/board", "--secret", "NOT_SET"), "not set in this shell"),
    ):
        done = cir("leaderboard", "space", *words, code=2)
        says(done.stderr, said)
        assert "Fix: " in done.stderr
        assert "hf_mine" not in done.stderr
    for call in (lambda: requirements(tmp_path), lambda: assemble(tmp_path / "new", tmp_path)):
        with pytest.raises(Exception, match=r"setup\.cfg.*Fix: run this from a checkout"):
            call()
    assert not (tmp_path / "new").exists()
