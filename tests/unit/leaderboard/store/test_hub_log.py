"""The log on the Hub: what was committed is there once, from an empty disk too, and one server writes."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from cir_here import cir
from http_hub import TOKEN, Fault, Hub
from leaderboard_world import opened_app
from waiting import wait_for

from cir_metrics.errors import CallError
from leaderboard.errors import FileStoreError, SubmissionStoreError, UploadRefusedError
from leaderboard.identity import Tokens
from leaderboard.intake.life import act
from leaderboard.server import Server
from leaderboard.settings import Settings
from leaderboard.store import Store, hub_log, hub_repository
from leaderboard.store.files import FolderFiles, file_path
from leaderboard.store.hub_log import HubLog
from leaderboard.store.hub_repository import Bucket, MovedError, Repository, TooOftenError
from leaderboard.store.submission import Submission
from leaderboard.store.transfer import carried_tables
from leaderboard.web import app as web_app

BOARD = "shapes/val"
NAME = "me/log"
Open = Callable[[str], HubLog]


@pytest.fixture
def opened(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Opens the log of a home; nothing is committed but by `flush`."""
    monkeypatch.setattr(hub_log, "_GRACE_SECONDS", 0.2)
    made: dict[str, HubLog] = {}

    def of(home: str) -> HubLog:
        if home in made:
            made[home]._store.close()
        folder = tmp_path / home
        folder.mkdir(exist_ok=True)
        store = Store(f"sqlite:///{folder / 'leaderboard.sqlite'}")
        made[home] = HubLog(
            store, Repository(NAME, endpoint=hub.url, token=TOKEN, pause=0.001), folder, 36_000
        )
        made[home].open()
        return made[home]

    yield of
    for log in made.values():
        log._store.close()


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers look soon whether somebody asks, and wait long for an answer."""
    monkeypatch.setattr(hub_log, "_GRACE_SECONDS", 60.0)
    monkeypatch.setattr(hub_log, "_LOOK_SECONDS", 0.1)


def sent(log: HubLog, number: int, owner: str = "token:ada") -> Submission:
    """A submission whose file is in the home."""
    files = FolderFiles(log._home / "files", log._repository.fetch)
    incoming = files.incoming()
    incoming.write(b"[%d]" % number)
    incoming.keep()
    incoming.discard()
    said: dict[str, Any] = {"owner": owner, "submitter": "Ada Lovelace", "edit_hash": "e" * 64}
    one, _ = log._store.receive(
        board=BOARD, sha256=incoming.sha256, size=incoming.size, file_name="a.json", **said
    )
    return one


def waited(log: HubLog) -> bool:
    """Whether all that is noted is committed soon."""
    return asyncio.run(log.reached(log.mark()))


def jane(store: Store) -> Submission:
    """An entry whose fields and events hold its sender's name."""
    said: dict[str, Any] = {"submitter": "Jane Doe", "owner": "jane", "form": {"notes": "Jane"}}
    one, _ = store.receive(board=BOARD, sha256="a" * 64, size=1, file_name="jane.json", **said)
    happened: list[Any] = [("validated", {"text": "Jane"}), ("scored", {"report": {"file": "jane.json"}})]
    return store.append(one, [*happened, ("published", {})], method={"name": "Jane's", "notes": "call Jane"})


def rows(log: HubLog) -> dict[str, list[Any]]:
    """What the database holds."""
    with log._store.database.read() as connection:
        return {
            table.name: sorted(map(repr, connection.execute(table.select()).all()))
            for table in carried_tables()
            if table.name not in ("about", "swept_files")
        }


def in_log(hub: Hub) -> str:
    """What the newest commit holds, but for people's names."""
    files = hub.repositories[NAME].files
    return "".join(content.decode() for name, content in files.items() if name.startswith("log/"))


def test_an_empty_disk_is_filled_with_what_was_committed(hub: Hub, opened: Open) -> None:
    first = opened("a")
    one = sent(first, 1)
    Tokens(first._store).create("ada", "organiser")
    Tokens(first._store).join("us", "ada")
    first._store.pause(BOARD, "a while")
    first._home.joinpath("signing_key.pem").write_bytes(b"the key")
    first.flush()
    assert first.committed(one.id) == "committed"
    one = first._store.append(
        one, [("validated", {}), ("scored", {"report": {}}), ("published", {})], kept_values=b"v"
    )
    two = sent(first, 2)
    assert first.committed(two.id) == "journalled"
    first.flush()
    committed = rows(first)
    assert all(committed.values())
    lost = sent(first, 3)
    second = opened("b")
    assert not second._store.reads_only
    assert second._store.submission(lost.id) is None
    assert rows(second) == committed
    files = FolderFiles(second._home / "files", second._repository.fetch)
    assert files.local_copy(two.sha256).read_bytes() == b"[2]"
    key = second._home / "signing_key.pem"
    assert (key.read_bytes(), key.stat().st_mode & 0o777) == (b"the key", 0o600)
    assert "lovelace" not in in_log(hub).lower()
    assert "token:ada" not in in_log(hub)


def test_a_kept_disk_commits_what_was_journalled(
    hub: Hub, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_log, "_FILES", 2)
    every = [sent(opened("a"), number) for number in range(5)]
    again = opened("a")
    assert {again.committed(one.id) for one in every} == {"journalled"}
    again.flush()
    other = opened("b")._store
    for one in every:
        assert other.submission(one.id) == again._store.submission(one.id)
        assert file_path(one.sha256) in hub.repositories[NAME].files


@pytest.mark.parametrize("restarted", [False, True])
def test_a_commit_whose_answer_was_lost_is_taken_as_made(hub: Hub, opened: Open, restarted: bool) -> None:
    log = opened("a")
    one = sent(log, 1)
    hub.faults["/commit/"] = Fault("unheard", times=1)
    with pytest.raises(FileStoreError):
        log.flush()
    one = log._store.append(one, [("withdrawn", {})])
    if restarted:
        log = opened("a")
    for _ in range(2):
        log.flush()
    assert log.committed(one.id) == "committed"
    assert opened("b")._store.submission(one.id) == one


def test_refused_files_leave_the_repository_when_they_are_swept(hub: Hub, opened: Open) -> None:
    from leaderboard.store.sweeping import Sweeper, timedelta

    log = opened("a")
    one = log._store.append(sent(log, 1), [("rejected", {"findings": []})])
    log.flush()
    assert file_path(one.sha256) in hub.repositories[NAME].files
    assert Sweeper(
        log._store.database, FolderFiles(log._home / "files", log._repository.fetch), timedelta()
    ).step()
    log.flush()
    assert file_path(one.sha256) not in hub.repositories[NAME].files


def test_who_is_erased_is_in_no_file_of_the_newest_commit(hub: Hub, opened: Open, answering: None) -> None:
    log = opened("a")
    other = sent(log, 1, "token:bob")
    one = jane(log._store)
    log.flush()
    assert "jane" in in_log(hub).lower()
    log.start()
    reader = opened("b")
    assert reader._store.reads_only
    assert reader._store.submission(one.id) == one
    erased = act(log._store, one, "erase", "organiser")
    log.stop()
    for name, content in hub.repositories[NAME].files.items():
        assert b"jane" not in content.lower(), name
    assert opened("c")._store.submission(one.id) == erased
    reader._see()
    assert reader._store.submission(one.id) == erased
    assert reader._store.submission(other.id) == other
    log._repository.squash()
    assert len(hub.repositories[NAME].commits) == 1


def test_the_second_of_two_servers_reads_only_and_follows(hub: Hub, opened: Open, answering: None) -> None:
    first = opened("a")
    first.start()
    second = opened("b")
    assert second._store.reads_only
    assert not first._store.reads_only
    with pytest.raises(UploadRefusedError, match="reads-only"):
        sent(second, 1)
    one = sent(first, 2)
    assert waited(first)
    second._see()
    assert second._store.submission(one.id) == one
    with pytest.raises(UploadRefusedError, match="reads-only"):
        act(second._store, one, "withdraw", "owner")
    last = sent(first, 3)
    first.stop()
    third = opened("c")  # at once: the first has said that it ended
    assert third._store.submission(last.id) == last
    assert not third._store.reads_only


def test_who_only_read_writes_when_the_writer_has_ended(hub: Hub, opened: Open, answering: None) -> None:
    first = opened("a")
    first.start()
    second = opened("b")
    second.start()
    one = sent(first, 1)
    first.stop()
    wait_for(lambda: not second._store.reads_only, "the second one's turn")
    other = sent(second, 2)
    assert waited(second)
    second.stop()
    third = opened("c")
    assert [each.id for each in third._store.of_board(BOARD)] == [one.id, other.id]


@pytest.mark.parametrize("failing", ["", "/resolve/", "/commit/"])
def test_of_two_readers_one_writes_and_the_other_follows(
    hub: Hub, opened: Open, answering: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    first = opened("a")
    first.start()
    one, other = opened("b"), opened("c")
    elsewhere = Store(f"sqlite:///{tmp_path / 'elsewhere.sqlite'}")
    noted = hub_log.HubRows(elsewhere)
    Tokens(elsewhere).create("ada")
    lines = noted.changed()
    elsewhere.close()
    sent(first, 0)
    first.stop()
    hub.repository(NAME).commit({**hub.repository(NAME).files, "inbox/1.jsonl": lines})
    if failing:  # once: it is tried again
        hub.faults[failing] = Fault("status", 400)
        with pytest.raises(FileStoreError):
            other._see()
        assert other._store.reads_only
        hub.faults.clear()
    caught_up = other._catch_up

    def overtaken() -> None:
        caught_up()
        one._see()

    monkeypatch.setattr(other, "_catch_up", overtaken)
    other._see()
    monkeypatch.undo()
    assert (one._store.reads_only, other._store.reads_only) == (False, True)
    sent(one, 1)
    one.flush(released=True)
    other._see()
    assert not other._store.reads_only
    assert rows(other) == rows(one)
    assert rows(one)["tokens"]


def test_what_was_handed_in_is_taken_once_and_nothing_of_it_ends_the_log(hub: Hub, opened: Open) -> None:
    log = opened("a")
    Tokens(log._store).create("ada")
    lines = log._rows.changed()
    log.flush()
    hub.repository(NAME).commit({**hub.repository(NAME).files, "inbox/1.jsonl": lines})
    Tokens(log._store).revoke(Tokens(log._store).all()[0].id)
    log._rows.take_in("inbox/1.jsonl", b"")
    log._see()
    assert Tokens(log._store).all()[0].revoked_at is not None
    for odd in (b"{}", b"[", b'{"table": "tokens"}'):
        with pytest.raises(hub_log._TROUBLE):
            log._rows.take_in("inbox/2.jsonl", odd)
    log.flush()
    assert "inbox/1.jsonl" not in hub.repository(NAME).files


@pytest.mark.parametrize("damaged", [b"[", b"1", b"\xff", b'{"table": "tokens", "row": 1}'])
def test_what_is_damaged_in_the_inbox_hides_nothing_and_goes(hub: Hub, opened: Open, damaged: bytes) -> None:
    log = opened("a")
    Tokens(log._store).create("ada")
    lines = log._rows.changed()
    hub.repository(NAME).private = True
    hub.repository(NAME).commit({"inbox/0.jsonl": damaged, "inbox/1.jsonl": lines})
    log = opened("b")
    assert Tokens(log._store).all()
    log.flush()
    assert not any(name.startswith("inbox/") for name in hub.repository(NAME).files)


def test_a_server_that_was_thought_dead_reads_only(hub: Hub, opened: Open) -> None:
    first = opened("a")
    sent(first, 1)
    first.flush()
    second = opened("b")  # nobody answers for the first
    one = sent(second, 2)
    second.flush()
    sent(first, 3)
    first.flush()
    assert first._store.reads_only
    assert opened("c")._store.submission(one.id) == one
    with pytest.raises(SubmissionStoreError, match="never committed"):
        opened("a")


def test_who_comes_between_is_noticed(hub: Hub, opened: Open) -> None:
    log = opened("a")
    one = sent(log, 1)
    hub.repository(NAME).commit({**hub.repository(NAME).files, "README.md": b"of the host"})
    with pytest.raises(MovedError):
        log._repository.commit("x", log._head, {"x": b"x"})
    for _ in range(2):
        log.flush()
    assert log.committed(one.id) == "committed"
    assert hub.repository(NAME).files["README.md"] == b"of the host"


def test_a_hub_that_cannot_be_reached_is_not_an_empty_one(hub: Hub, opened: Open) -> None:
    log = opened("a")
    hub.faults["/resolve/"] = Fault("status", 400)
    with pytest.raises(FileStoreError):
        log._holder()


def test_a_public_repository_is_refused(hub: Hub, opened: Open) -> None:
    hub.repository(NAME)
    with pytest.raises(FileStoreError, match=r"public.*Fix: make the repository private"):
        opened("a")


def test_who_may_not_write_learns_it_at_once_and_no_token_is_shown(hub: Hub) -> None:
    with pytest.raises(FileStoreError, match="HF_TOKEN") as caught:
        Repository(NAME, endpoint=hub.url, token="hf_another").open()
    assert "hf_another" not in str(caught.value)


def test_the_log_comes_no_faster_than_the_hub_takes_it(hub: Hub) -> None:
    draw = random.Random(3)
    bucket, now = Bucket(100, 100.0, 0.0), 0.0
    made: list[float] = []
    while now < 4 * 3600:
        pause = bucket.wait(now)
        if pause:
            now += pause
        else:
            bucket.take(now)
            made.append(now)
            now += draw.choice([0.0, 1.0, 30.0])
    ahead = Bucket(100, 0.0, now + 365 * 24 * 3600)  # of a clock that was put right since
    assert (ahead.wait(now), ahead.wait(now + 40)) == (40, 0)
    assert max(sum(at - 3600 < each <= at for each in made) for at in made) <= 100
    for _ in range(10):  # rested
        assert bucket.wait(now + 3600) == 0
        bucket.take(now + 3600)
    assert bucket.wait(now + 3600) == 40


def test_the_hubs_refusal_is_waited_out(hub: Hub, opened: Open) -> None:
    log = opened("a")
    repository = hub.repository(NAME)
    repository.taken[:] = [repository.taken[0]] * 128
    one = sent(log, 1)
    with pytest.raises(TooOftenError) as caught:
        log.flush()
    assert 3000 < caught.value.seconds <= 3600
    hub.hour = 0.001
    log.flush()
    assert log.committed(one.id) == "committed"


def test_a_home_that_has_entries_brings_them_into_a_new_log(hub: Hub, opened: Open, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    store = Store(f"sqlite:///{tmp_path / 'a/leaderboard.sqlite'}")
    one, _ = store.receive(board=BOARD, sha256="a" * 64, size=1, file_name="a.json")
    store.close()
    log = opened("a")
    log.flush()
    assert opened("b")._store.submission(one.id) == one


def test_a_server_commits_in_the_background_and_says_so(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_log, "Repository", partial(Repository, endpoint=hub.url, token=TOKEN))
    chosen = Settings(tmp_path / "home", log=NAME, received="committed")
    server = Server.open(chosen, leads=True)
    try:
        one, _ = server.store.receive(board=BOARD, sha256="a" * 64, size=1, file_name="a.json")
        assert server.log is not None
        assert waited(server.log)
        assert server.durability(one) == "committed"
        one = server.store.append(one, [("withdrawn", {})])
        wait_for(lambda: server.durability(one) == "committed", "the commit")
    finally:
        server.close()
    assert json.loads(hub.repositories[NAME].files["writer.json"])["released"]
    other = Server.open(Settings(tmp_path / "other", log=NAME), leads=True)
    try:
        assert other.receipt(one) == server.receipt(one)
    finally:
        other.close()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.anyio
async def test_answers_that_wait_for_a_commit_hold_no_threads(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_log, "Repository", partial(Repository, endpoint=hub.url, token=TOKEN))
    monkeypatch.setattr(hub_log, "_TROUBLE_SECONDS", 0.1)
    server = Server.open(Settings(tmp_path / "home", log=NAME, received="committed"), leads=True)
    monkeypatch.setattr(Server, "open", lambda *_, **__: server)
    transport = httpx.ASGITransport(web_app.create_app(chosen=server.settings))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=60) as client:

        async def upload(number: int) -> str:
            content = b"[%d]" % number
            answer = await client.post("/api/submissions", params={"board": BOARD}, content=content)
            return str(answer.json()["durability"])

        hub.faults["/commit/"] = Fault("status", 503)
        sending = [asyncio.create_task(upload(number)) for number in range(50)]
        while len(server.store.of_board(BOARD)) < 50:
            assert (await client.get("/health")).status_code == 200
        assert not any(one.done() for one in sending)
        hub.faults.clear()
        assert await asyncio.gather(*sending) == ["committed"] * 50
    server.close()


def test_a_database_elsewhere_is_taken_over_and_old_commits_are_squashed(
    hub: Hub, opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_log, "Repository", partial(Repository, endpoint=hub.url, token=TOKEN))
    monkeypatch.setattr(hub_repository, "Repository", partial(Repository, endpoint=hub.url, token=TOKEN))
    old, content = Store(f"sqlite:///{tmp_path / 'old.sqlite'}"), b"[7]"
    sha256 = hashlib.sha256(content).hexdigest()
    one, _ = old.receive(board=BOARD, sha256=sha256, size=3, file_name="a.json", submitter="Ada")
    old.close()
    # As earlier versions kept files on the Hub: under the same names.
    hub.repository(NAME).private = True
    hub.repository(NAME).commit({file_path(sha256): content})
    command = ("leaderboard", "take-over", "--database", f"sqlite:///{tmp_path / 'old.sqlite'}")
    assert cir(*command).returncode == CallError.exit_code
    monkeypatch.setenv("CIR_LEADERBOARD_LOG", f"hf://datasets/{NAME}")
    assert cir(*command[:3], f"sqlite:///{tmp_path / 'odl.sqlite'}").returncode == CallError.exit_code
    assert not (tmp_path / "odl.sqlite").exists()
    monkeypatch.setattr(hub_log, "_TROUBLE_SECONDS", 0.1)
    hub.faults["/commit/"] = Fault("status", 503, times=3)
    assert cir(*command, "--home", str(tmp_path / "new")).returncode == 0
    assert opened("b")._store.submission(one.id) == one
    assert cir("leaderboard", "squash", "--home", str(tmp_path / "new")).returncode == 0
    assert len(hub.repositories[NAME].commits) == 1
    assert opened("c")._store.submission(one.id) == one


def test_a_server_that_reads_only_or_forgets_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened_app(tmp_path) as (client, server):
        assert server.alarms == []
        assert 'role="alert"' not in client.get("/").text
        server.store.reads_only = True
        answer = client.post("/api/submissions", params={"board": BOARD}, content=b"[1]")
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "reads-only")
        monkeypatch.setenv("SYSTEM", "spaces")
        monkeypatch.delenv("CIR_LEADERBOARD_HOME", raising=False)
        for page in ("/", "/submit", "/about", f"/b/{BOARD}"):
            assert client.get(page).text.count('role="alert"') == 2, page
        health = client.get("/health").json()
        assert (health["reads_only"], health["lasts"]) == (True, False)
        monkeypatch.setenv("CIR_LEADERBOARD_HOME", "/data/leaderboard")
        assert client.get("/health").json()["lasts"]


def test_many_segments_become_one(
    hub: Hub, opened: Open, answering: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_log, "_SEGMENTS", 3)
    log = opened("a")
    log.start()
    reader = opened("b")
    sent_here = []
    for number in range(8):
        sent_here.append(sent(log, number))
        assert waited(log)
        if number == 4:
            reader._see()
    segments = [name for name in hub.repositories[NAME].files if name.startswith("log/")]
    assert 1 <= len(segments) <= 3
    reader._see()
    log.stop()
    for one in (reader, opened("c")):
        assert rows(one) == rows(log)
        assert one._store.submission(sent_here[0].id) == sent_here[0]


def test_a_busy_writer_answers_who_asks(hub: Hub, opened: Open, answering: None) -> None:
    log = opened("a")
    sent(log, 1)
    log._bucket = Bucket(1, -100.0, time.time())  # nothing can be committed for days
    log.start()
    assert opened("b")._store.reads_only
    log.stop()


def test_tokens_are_made_elsewhere_while_the_server_runs(
    hub: Hub, opened: Open, answering: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_log, "Repository", partial(Repository, endpoint=hub.url, token=TOKEN))
    monkeypatch.setenv("CIR_LEADERBOARD_LOG", f"hf://datasets/{NAME}")
    monkeypatch.setenv("CIR_LEADERBOARD_HOME", str(tmp_path / "nothing"))
    log = opened("a")
    Tokens(log._store).create("bob")
    log.start()
    assert waited(log)
    made = cir("leaderboard", "token", "create", "ada", "--role", "organiser").stdout.strip()
    wait_for(lambda: Tokens(log._store).caller(made) is not None, "the token")
    wait_for(
        lambda: not any(name.startswith("inbox/") for name in hub.repositories[NAME].files), "the commit"
    )
    assert "bob" in cir("leaderboard", "token", "list").stdout
    refused = Tokens(log._store).all()[0].id
    assert cir("leaderboard", "token", "revoke", refused).returncode == 0
    wait_for(lambda: Tokens(log._store).all()[0].revoked_at is not None, "the end of the token")
    assert "token:ada" not in in_log(hub)
    log.stop()
    assert rows(opened("c"))["tokens"] == rows(log)["tokens"]


@pytest.mark.parametrize(
    "fault", [Fault("status", 429, {"Retry-After": "1"}, times=1), Fault("status", 503, times=1)]
)
@pytest.mark.parametrize("ended", [True, False])
def test_a_server_starts_while_the_hub_takes_no_commits(
    hub: Hub, opened: Open, monkeypatch: pytest.MonkeyPatch, fault: Fault, ended: bool
) -> None:
    monkeypatch.setattr(hub_log, "_TROUBLE_SECONDS", 0.1)
    first = opened("a")
    one = sent(first, 1)
    first.flush(released=ended)
    hub.faults["/commit/"] = fault
    log = opened("b")
    assert log._store.submission(one.id) == one
    assert log._store.reads_only != ended
    log.start()
    wait_for(lambda: not log._store.reads_only, "its turn")
    other = sent(log, 2)
    assert waited(log)
    log.stop()
    assert opened("c")._store.submission(other.id) == other


def test_a_machine_with_a_leaderboard_of_its_own_works_on_the_log_or_says_that_it_does_not(
    hub: Hub, opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_log, "Repository", partial(Repository, endpoint=hub.url, token=TOKEN))
    monkeypatch.setenv("CIR_LEADERBOARD_HOME", str(tmp_path / "laptop"))
    assert cir("leaderboard", "token", "create", "zoe").returncode == 0
    opened("a").flush(released=True)
    monkeypatch.setenv("CIR_LEADERBOARD_LOG", f"hf://datasets/{NAME}")
    made = [cir("leaderboard", "token", "create", name).stdout.strip() for name in ("ada", "bob")]
    listed = cir("leaderboard", "token", "list").stdout
    assert ("ada" in listed, "bob" in listed, "zoe" in listed) == (True, True, False)
    number = next(line.split()[0] for line in listed.splitlines() if "ada" in line)
    assert cir("leaderboard", "token", "revoke", number).returncode == 0
    tokens = Tokens(opened("a")._store)
    assert [tokens.caller(one) is None for one in made] == [True, False]
    for command in (["show", BOARD], ["export", str(tmp_path / "e")], ["change", "1", "hide"], ["verify"]):
        for home in ("laptop", "none"):
            (tmp_path / home).mkdir(exist_ok=True)
            monkeypatch.setenv("CIR_LEADERBOARD_HOME", str(tmp_path / home))
            refused = cir("leaderboard", *command)
            assert refused.returncode, command
            assert "no copy of the log" in refused.stderr, command
    assert not (tmp_path / "none/leaderboard.sqlite").exists()


def test_commits_that_fail_are_told_on_every_page_until_they_do_not(
    hub: Hub, opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_log, "_TROUBLE_SECONDS", 0.1)
    log = opened("a")
    log.start()
    with opened_app(tmp_path) as (client, server):
        object.__setattr__(server, "log", log)
        for status in (403, 503):
            assert client.get("/health").json()["alarms"] == []
            hub.faults["/commit/"] = Fault("status", status)
            sent(log, status)
            wait_for(lambda: log.fails, "the alarm")
            assert len(client.get("/health").json()["alarms"]) == 1
            assert 'role="alert"' in client.get("/").text
            hub.faults.clear()
            wait_for(lambda: not log.fails, "its end")
            monkeypatch.setattr(hub_log, "_ALARM_SECONDS", 0.1)
    log.stop()


def test_a_kept_home_fills_a_repository_that_is_new(hub: Hub, opened: Open) -> None:
    log = opened("a")
    every = [sent(log, 1), sent(log, 2)]
    log.flush()
    hub.repository(NAME).commit({})
    log = opened("a")
    log.flush()
    assert file_path(every[0].sha256) in hub.repository(NAME).files
    assert "log/000001.jsonl" in hub.repository(NAME).files
    assert rows(opened("b")) == rows(log)


@pytest.mark.parametrize(("home", "lost"), [("a", 1), ("a", 2), ("a", 3), ("b", 1), ("b", 2)])
def test_a_log_that_misses_a_segment_is_refused(hub: Hub, opened: Open, home: str, lost: int) -> None:
    log = opened("a")
    for number in range(3):
        sent(log, number)
        log.flush()
    repository = hub.repository(NAME)
    repository.commit(
        {name: content for name, content in repository.files.items() if f"{lost}.jsonl" not in name}
    )
    with pytest.raises(SubmissionStoreError, match=r"segment.*Fix"):
        opened(home)


def test_the_hubs_refusal_is_waited_out_in_the_background(hub: Hub, opened: Open) -> None:
    log = opened("a")
    repository, hub.hour = hub.repository(NAME), 2.0
    repository.taken[:] = [time.monotonic()] * 128
    one = sent(log, 1)
    log.start()
    assert waited(log)
    assert log.committed(one.id) == "committed"
    log.stop()
