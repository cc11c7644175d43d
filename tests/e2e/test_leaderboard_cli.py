"""`cir leaderboard add` and `cir submit`, run as a user runs them."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import leaderboard_world as world
import pytest
from benchmark_world.dialogues import as_lines, shapes_dialogue
from cir_here import cir, in_a_process
from http_hub import HttpServer, Reply, Request, as_json

from leaderboard import boards
from leaderboard.identity.receipts import sign, signing_key
from leaderboard.server import Server
from leaderboard.settings import Settings


def rows(home: Path) -> list[dict[str, Any]]:
    opened = Server.open(Settings(home))
    try:
        return [entry.to_dict() for entry in opened.entries(boards.board("shapes/val"))]
    finally:
        opened.store.close()


@pytest.fixture(autouse=True)
def _no_boards_of_a_command() -> Iterator[None]:
    """A command that ran in this process leaves no organiser's boards to the next test."""
    yield
    boards.use(None)


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.json"
    path.write_bytes(world.as_bytes(world.rank_file(1, "Command line", hits=0.25)))
    return path


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    path = tmp_path / "bad.json"
    path.write_bytes(world.as_bytes(world.broken(world.rank_file(2, "Broken"))))
    return path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with world.serving_here(tmp_path_factory.mktemp("submit") / "home") as running:
        yield running


def test_add_puts_a_file_on_its_board_once(good: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    first = cir("leaderboard", "add", "--baseline", str(good), "--home", str(home), code=0)
    assert first.stdout.split("\t")[:3] == ["shapes/val", "Command line", "recall@10"]
    assert first.stdout.strip().endswith("added")
    second = cir("leaderboard", "add", "--baseline", str(good), "--home", str(home))
    assert second.stdout.strip().endswith("already there")
    (row,) = rows(home)
    assert row["baseline"] is True
    assert row["method"]["name"] == "Command line"


@pytest.mark.slow
def test_a_baseline_takes_the_place_of_an_earlier_one_with_its_name(good: Path, tmp_path: Path) -> None:
    home, newer, other = tmp_path / "home", tmp_path / "newer.json", tmp_path / "other.json"
    newer.write_bytes(world.as_bytes(world.rank_file(3, "Command line", hits=0.5)))
    other.write_bytes(world.as_bytes(world.rank_file(4, "Another", hits=0.1)))
    for path in (good, other, newer):
        assert cir("leaderboard", "add", "--baseline", str(path), "--home", str(home)).returncode == 0
    assert [row["method"]["name"] for row in rows(home)] == ["Command line", "Another"]
    opened = Server.open(Settings(home))
    try:
        assert opened.store.count_published() == {"shapes/val": 2}
    finally:
        opened.store.close()
    # The earlier file may come back: it is an entry again, and the newer one goes.
    back = cir("leaderboard", "add", "--baseline", str(good), "--home", str(home))
    assert back.stdout.strip().endswith("added")
    assert [row["sha256"] for row in rows(home) if row["method"]["name"] == "Command line"] == [
        hashlib.sha256(good.read_bytes()).hexdigest()
    ]


def test_add_goes_on_after_a_refused_file_and_exits_with_1(good: Path, bad: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    done = cir(
        "leaderboard", "add", str(bad), str(good), "--board", "shapes/val", "--home", str(home), code=1
    )
    assert "duplicate-image" in done.stderr
    assert "1 of 2 files are not on a board" in done.stderr
    nameless = tmp_path / "nameless.json"
    nameless.write_text("{}")
    done = cir("leaderboard", "add", str(nameless), str(good), "--home", str(home))
    assert (done.returncode, "1 of 2 files are not on a board" in done.stderr) == (1, True)
    assert done.stdout.strip().endswith("already there")
    assert [row["method"]["name"] for row in rows(home)] == ["Command line"]


def test_submit_keeps_an_entry_private_until_it_is_published(server: Any, good: Path) -> None:
    done = world.cir("submit", str(good), "--to", server.url, code=0)
    assert "recall@10" in done.stdout
    assert "shapes/val#2 | data:" in done.stdout
    own = re.search(rf"{server.url}/s/(\w+)$", done.stdout, re.MULTILINE)
    assert own is not None, done.stdout
    assert server.rows() == []
    # Earlier versions published it: whoever says nothing is told; whoever says --private knows.
    assert "--private" in done.stderr
    assert "--publish" in done.stderr
    private = world.cir("submit", str(good), "--to", server.url, "--private", "--json", code=0)
    assert json.loads(private.stdout)["url"] == own.group(0)
    assert "--private" not in private.stderr
    public = world.cir("submit", str(good), "--to", server.url, "--publish", code=0)
    (row,) = server.rows()
    entry = row["submission"]
    assert entry == own.group(1)
    assert f"{server.url}/b/shapes/val?entry={entry}#entry-{entry}" in public.stdout
    again = world.cir("submit", str(good), "--to", server.url + "/", "--json", code=0)
    assert json.loads(again.stdout)["id"] == entry
    assert "on that board already" in again.stderr


def test_submit_declares_the_reference_of_a_file_that_is_there_already(server: Any, tmp_path: Path) -> None:
    path = tmp_path / "late.json"
    path.write_bytes(world.as_bytes(world.rank_file(7, "Declared late")))
    world.cir("submit", str(path), "--to", server.url, "--json", code=0)
    wrong = world.cir("submit", str(path), "--to", server.url, "--publish", "--reference", "kept", code=1)
    assert "reference-contradiction" in wrong.stderr
    assert "Declared late" not in [row["method"]["name"] for row in server.rows()]
    right = world.cir("submit", str(path), "--to", server.url, "--publish", "--reference", "removed", code=0)
    assert "declares that the reference was removed" in right.stderr
    row = next(row for row in server.rows() if row["method"]["name"] == "Declared late")
    assert row["reference_evidence"]["declared"] == "removed"


def test_submit_keeps_a_receipt_that_is_checked_offline(
    server: Any, good: Path, bad: Path, tmp_path: Path
) -> None:
    receipt, key = tmp_path / "receipt.json", tmp_path / "key.pem"
    done = cir("submit", str(good), "--to", server.url, "--receipt", str(receipt), code=0)
    assert f"Receipt: {receipt}" in done.stderr
    key.write_bytes(server.get("/api/key").content)
    checked = cir("receipt", "verify", str(receipt), str(good), "--key", str(key), code=0)
    assert "shapes/val" in checked.stdout
    found = json.loads(receipt.read_bytes())
    assert found["sha256"] == hashlib.sha256(good.read_bytes()).hexdigest()
    assert server.get(found["status_url"]).json()["id"] == found["id"]
    assert server.upload(good.read_bytes()).json()["receipt"] == found  # again, byte for byte
    other = cir("receipt", "verify", str(receipt), str(bad), "--key", str(key), code=1)
    assert f"cir: {bad}: " in other.stderr


def test_submit_says_when_a_server_gives_no_receipt_or_that_of_another_file(
    good: Path, tmp_path: Path
) -> None:
    receipt = tmp_path / "receipt.json"
    answer: dict[str, Any] = {"id": "1", "state": "received", "new": True}

    def reply(request: Request) -> Reply:
        return as_json({"max_upload_bytes": 2**20} if request.path == "/health" else answer)

    with HttpServer(reply) as old:
        command = ["submit", str(good), "--to", old.url, "--board", "shapes/val", "--receipt", str(receipt)]
        none = cir(*command)
        key = signing_key(None, tmp_path)
        claim = {"id": "1", "board": "shapes/val", "sha256": "0" * 64, "size": good.stat().st_size}
        texts = {"received_at": "", "status_url": "", "server": ""}
        answer["receipt"] = sign(key, **claim, **texts).model_dump()
        other = cir(*command)
    assert none.returncode == 2
    assert "gave no receipt for" in none.stderr
    assert other.returncode == 2
    assert "gave no receipt for" in other.stderr
    assert not receipt.exists()


def test_submit_validates_here_first(server: Any, bad: Path) -> None:
    before = server.rows()
    done = cir("submit", str(bad), "--to", server.url, code=1)
    assert "is not sent" in done.stderr
    assert "duplicate-image" in done.stderr
    assert server.get("/health").json()["waiting"] == 0
    assert server.rows() == before


@pytest.mark.slow
def test_submit_asks_the_server_for_its_boards_and_nothing_here(good: Path, tmp_path: Path) -> None:
    """Boards of this machine are another leaderboard's: they may be wrong, or others."""
    there, here = tmp_path / "there", tmp_path / "here"
    for home in (there, here):
        (home / "boards").mkdir(parents=True)
    written = (Path(boards.__file__).parent / "shapes_val.yaml").read_text()
    (there / "boards" / "own.yaml").write_text(written.replace("id: shapes/val", "id: shapes/ours"))
    (here / "boards" / "secret.yaml").write_text(written.replace("shapes/val", "forgotten/test"))
    late, odd = tmp_path / "late.json", tmp_path / "odd.json"
    document = world.rank_file(5, "Header behind")
    late.write_text(json.dumps({"rankings": document.pop("rankings"), **document}))
    odd.write_text(json.dumps({**document, "benchmark": "theirs/test", "rankings": {"q": ["a"]}}))
    at_home = {"CIR_LEADERBOARD_HOME": str(here)}
    with world.serving(there, CIR_LEADERBOARD_BOARDS="own") as running:
        for path in (good, late):
            done = world.cir("submit", str(path), "--to", running.url, "--json", **at_home, code=0)
            assert json.loads(done.stdout)["board"] == "shapes/ours"
            assert str(here) not in done.stderr
        unknown = world.cir("submit", str(odd), "--to", running.url, **at_home)
    assert unknown.returncode == 2
    assert "no board here ranks 'theirs/test'" in unknown.stderr
    assert "one of shapes/ours" in unknown.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("leaderboard add missing.json --home home", ["missing.json: no such file"]),
        ("leaderboard add good.json --board nope --home home", ["no board 'nope' here"]),
        (
            "submit good.json --to SERVER --board elsewhere/val",
            ["no board 'elsewhere/val' here"],
        ),
        (
            "submit odd.json --to http://127.0.0.1:9",
            ["name its benchmark. Fix: choose one with --board; http://127.0.0.1:9/api/v1/boards lists"],
        ),
        (
            "submit good.json --to http://127.0.0.1:9",
            ["127.0.0.1:9: no leaderboard answers there", "Fix:"],
        ),
        ("submit good.json --to localhost:7860", ["not an address. Fix: write http:// or https://"]),
        ("submit good.json --to me:hunter2@host", ["not an address. Fix: write http:// or https://"]),
        (
            "submit good.json --to http://me:hunter2/x@host",
            ["not an address. Fix: write http:// or https://"],
        ),
        ("submit good.json --to ftp://me:hunter2@host", ["not an address. Fix: write http:// or https://"]),
        (
            "submit talk.jsonl --to SERVER --board shapes/val",
            [
                "is a transcript of dialogues, and the board shapes/val of ",
                "choose one of dialogues with --board: shapes/dialogue_val, ",
            ],
        ),
    ],
)
def test_a_wrong_call_says_what_to_do(
    server: Any, good: Path, tmp_path: Path, words: str, said: list[str]
) -> None:
    odd = {"version": "rc2", "metric": "recall", "100": ["dev-0-0-img0"]}
    (tmp_path / "odd.json").write_text(json.dumps(odd))
    (tmp_path / "talk.jsonl").write_bytes(as_lines(shapes_dialogue(sessions=2)))
    done = cir(*words.replace("SERVER", server.url).split(), folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert [text for text in said if text not in done.stderr] == []
    assert "hunter2" not in done.stderr
    assert "Traceback" not in done.stderr


def test_add_lists_every_outcome_as_json(good: Path, bad: Path, tmp_path: Path) -> None:
    home = ("--board", "shapes/val", "--home", str(tmp_path / "home"))
    done = cir("leaderboard", "add", str(good), str(bad), "--json", *home, code=1)
    outcomes = json.loads(done.stdout)
    assert [(one["path"], one["state"], one["new"]) for one in outcomes] == [
        (str(good), "published", True),
        (str(bad), "rejected", True),
    ]
    assert outcomes[1]["findings"][0]["code"] == "duplicate-image"


def test_submit_to_something_else_is_a_clear_error(good: Path) -> None:
    with HttpServer(lambda _: Reply(b"<html>hello</html>")) as stranger:
        done = cir("submit", str(good), "--to", stranger.url)
    assert done.returncode == 2
    assert "no leaderboard of ours" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("ends", ["refused", "rejected", "failed", "published"])
def test_what_a_server_says_is_written_out_and_the_password_of_its_address_is_not(
    ends: str, good: Path
) -> None:
    evil = "\x1b[2J\x9b31m\u202egpj"
    scores = {
        "metrics": {f"recall@1{evil}": 0.5},
        "signatures": {f"recall@1{evil}": {"text": evil}},
        "main": 0.5,
        "main_metric": f"recall@1{evil}",
    }
    state = {
        "id": evil,
        "state": ends,
        "finished": True,
        "page": f"/{evil}",
        "file_name": evil,
        "message": evil,
        "findings_text": evil,
        "scores": scores,
        "new": False,
    }
    refused = {"error": {"code": f"full{evil}", "message": evil, "fix": evil}}

    def hostile(request: Request) -> Reply:
        if request.path == "/health":
            return as_json({"max_upload_bytes": 2**30})
        return as_json(refused, 422) if (request.method, ends) == ("POST", "refused") else as_json(state)

    with HttpServer(hostile) as server:
        said = []
        command = ["submit", str(good), "--to", server.url.replace("//", "//me:hunter2@")]
        command += ["--board", "shapes/val"]
        for arguments in (command, [*command, "--json"], ["--debug", *command]):
            done = in_a_process(*arguments)
            said.append(done.stdout + done.stderr)
    assert server.authorizations == {f"Basic {base64.b64encode(b'me:hunter2').decode()}"}
    for words in said:
        assert not [one for one in words if one in "\x1b\x9b\u202e"]
        assert "hunter2" not in words
    assert r"\x1b[2J" in said[0]


def test_without_the_extra_the_way_to_install_it_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from typer.main import get_command

    from cir_datasets.errors import install_lines
    from cir_metrics.errors import MissingExtraError
    from leaderboard import options
    from leaderboard.commands.groups import leaderboard_commands

    monkeypatch.setattr(options, "find_spec", lambda name: None if name == "uvicorn" else object())
    wanted = re.escape(f"needs uvicorn. Fix: {install_lines('leaderboard')}")
    with pytest.raises(MissingExtraError, match=wanted):
        get_command(leaderboard_commands()).main(["serve", "--home", str(tmp_path)], standalone_mode=False)
