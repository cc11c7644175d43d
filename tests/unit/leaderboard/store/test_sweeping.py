"""Refused files go after a while; no file goes that somebody needs, whoever does what at the same time."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import forked
import pytest

from leaderboard.boards import Board
from leaderboard.errors import FileStoreError, UploadRefusedError
from leaderboard.intake import Cover, Intake
from leaderboard.intake.life import act
from leaderboard.intake.quotas import Allowance, Quotas
from leaderboard.server import Server
from leaderboard.settings import Settings
from leaderboard.standings.views import submission_view
from leaderboard.store import Store
from leaderboard.store.files import FileStore, FolderFiles
from leaderboard.store.submission import State, Submission
from leaderboard.store.sweeping import Sweeper
from leaderboard.store.transfer import export_store, import_store

BOARD, CONTENT = "shapes/val", b'{"one": 1}'
AT_ONCE = timedelta(days=-1)
"""Keeps a file until yesterday: all that may go goes."""


@pytest.fixture
def server(url: str, tmp_path: Path) -> Iterator[Server]:
    opened = Server.open(Settings(tmp_path / "home", database=url))
    yield opened
    opened.close()


class Interrupted(FolderFiles):
    """A folder in which something else happens between two steps of one's own.

    Args:
        folder: the folder.
        after_keep: called when a file is durable, and no submission says so yet.
        in_delete: called when a file is about to be deleted; it may delete the file itself.
    """

    def __init__(
        self,
        folder: Path,
        after_keep: Callable[[], object] = lambda: None,
        in_delete: Callable[[Callable[[], None]], object] = lambda delete: delete(),
    ) -> None:
        super().__init__(folder)
        self._after_keep, self._in_delete = after_keep, in_delete

    def _keep(self, path: Path, sha256: str) -> None:
        super()._keep(path, sha256)
        self._after_keep()

    def delete(self, sha256: str) -> None:
        self._in_delete(lambda: super(Interrupted, self).delete(sha256))


def swept(server: Server, files: FileStore | None = None, keep_for: timedelta = AT_ONCE) -> list[str]:
    sweeper = Sweeper(server.store.database, files or server.files, keep_for)
    return list(iter(sweeper.step, None))


def sent(
    server: Server, owner: str = "a", board: str = BOARD, submitter: str = "", files: FileStore | None = None
) -> Submission:
    intake = server.intake
    if files is not None:
        intake = type(intake)(server.settings, server.store, files, lambda board: None)
    submission, _ = intake.take(board, [CONTENT], Cover(owner=owner, submitter=submitter))
    return submission


def refused(server: Server, submission: Submission) -> Submission:
    finding = {"code": "malformed", "severity": "error", "message": "no.", "fix": "f"}
    return server.store.append(submission, [("rejected", {"findings": [finding], "text": "no"})])


def now(server: Server, submission: Submission) -> Submission:
    found = server.store.submission(submission.id)
    assert found is not None
    return found


def test_what_was_refused_goes_and_its_record_stays(server: Server) -> None:
    one = refused(server, sent(server))
    receipt = server.receipt(one)
    assert swept(server, keep_for=timedelta(days=14)) == []
    assert submission_view(one)["file_removed_at"] is None
    assert swept(server) == [one.sha256]
    assert one.sha256 not in server.files.names()
    after = now(server, one)
    assert (after.findings, after.events, server.receipt(after)) == (one.findings, one.events, receipt)
    assert submission_view(after)["file_removed_at"] == after.file_removed_at.isoformat()
    assert swept(server) == []


def test_a_file_that_anybody_needs_stays(server: Server) -> None:
    """The same bytes of another owner, on another board, or sent again by the same owner."""
    first = refused(server, sent(server))
    needs: tuple[dict[str, str], ...] = (
        {"owner": "b"},
        {"board": "shapes/multiturn_val"},
        {"submitter": "Ada"},
    )
    states: tuple[State, ...] = ("private", "withdrawn")
    for beside in needs:
        other = sent(server, **beside)
        assert swept(server) == []
        for state in states:
            other = server.store.append(other, [(state, {})])
            assert swept(server) == []
        assert first.sha256 in server.files.names()
        refused(server, other)
    assert swept(server) == [first.sha256]


def test_a_file_that_is_gone_is_not_judged_again_until_it_is_sent_again(server: Server) -> None:
    one = server.store.append(sent(server), [("failed", {"message": "m"})])
    swept(server)
    with pytest.raises(UploadRefusedError, match="not kept any more") as error:
        act(server.store, now(server, one), "rerun", "organiser")
    assert (error.value.code, error.value.status) == ("file-removed", 410)
    assert server.store.unfinished() == []
    again = sent(server)
    assert (again.attempt, again.file_removed_at) == (2, None)
    assert again.sha256 in server.files.names()
    refused(server, again)
    assert act(server.store, now(server, one), "rerun", "organiser").state == "received"
    assert swept(server) == []


def test_a_sweep_between_keeping_and_recording_loses_nothing(server: Server) -> None:
    refused(server, sent(server))
    gone: list[list[str]] = []
    files = Interrupted(server.settings.files, after_keep=lambda: gone or gone.append(swept(server)))
    again = sent(server, "b", files=files)
    assert gone == [[again.sha256]]
    assert server.files.local_copy(again.sha256).read_bytes() == CONTENT
    assert again.file_removed_at is None
    assert swept(server) == []


def test_an_upload_while_its_file_is_deleted_waits_and_puts_it_back(server: Server) -> None:
    refused(server, sent(server))
    deleting, kept = threading.Event(), threading.Event()

    def delete_late(delete: Callable[[], None]) -> None:
        deleting.set()
        assert kept.wait(30)
        delete()

    sweeping = threading.Thread(
        target=swept, args=(server, Interrupted(server.settings.files, in_delete=delete_late))
    )
    sweeping.start()
    assert deleting.wait(30)
    again = sent(server, "b", files=Interrupted(server.settings.files, after_keep=kept.set))
    sweeping.join()
    assert server.files.local_copy(again.sha256).read_bytes() == CONTENT
    assert now(server, again).file_removed_at is None


def test_a_file_that_comes_to_be_needed_after_it_was_marked_stays(server: Server) -> None:
    one = refused(server, sent(server))
    sweeper = Sweeper(server.store.database, server.files, AT_ONCE)
    assert sweeper._mark(one.sha256)
    sent(server, "b")
    assert not sweeper._remove(one.sha256)
    assert one.sha256 in server.files.names()


def test_a_sweep_that_dies_after_the_deletion_loses_nothing(server: Server) -> None:
    one = refused(server, sent(server))

    def die_after(delete: Callable[[], None]) -> None:
        delete()
        raise FileStoreError("the machine went off. Fix: switch it on.")

    def dying() -> None:
        with pytest.raises(FileStoreError):
            swept(server, Interrupted(server.settings.files, in_delete=die_after))
        assert one.sha256 not in server.files.names()

    calls = iter((dying, lambda: None))
    again = sent(server, "b", files=Interrupted(server.settings.files, after_keep=lambda: next(calls)()))
    assert again.sha256 in server.files.names()
    refused(server, again)
    dying()
    assert swept(server) == [one.sha256]


_UPLOADS = """
import sys
from pathlib import Path
from leaderboard.intake import Cover, Intake
from leaderboard.intake.quotas import Allowance, Quotas
from leaderboard.server import Server
from leaderboard.settings import Settings

server = Server.open(Settings(Path(sys.argv[1]), database=sys.argv[2]))
for number in range(int(sys.argv[4])):
    one, new = server.intake.take("shapes/val", [b'{"one": 1}'], Cover(owner=f"{sys.argv[3]}{number}"))
    assert new and one.sha256 in server.files.names(), "an acknowledged file is gone"
    server.store.append(one, [("rejected", {"findings": []})])
server.close()
"""
_SWEEPS = """
import sys
from datetime import timedelta
from pathlib import Path
from leaderboard.intake.quotas import Allowance, Quotas
from leaderboard.server import Server
from leaderboard.settings import Settings
from leaderboard.store.sweeping import Sweeper

server = Server.open(Settings(Path(sys.argv[1]), database=sys.argv[2]))
print("ready", flush=True)
removed = 0
while not (server.settings.home / "done").exists():
    removed += Sweeper(server.store.database, server.files, timedelta(days=-1)).step() is not None
print(removed)
server.close()
"""


@pytest.mark.slow
def test_two_who_send_and_two_who_sweep_lose_nothing(server: Server, url: str) -> None:
    """Processes of their own, on the same bytes; each upload that was acknowledged has its file."""
    refused(server, sent(server, "first"))

    def started(program: str, *more: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", program, str(server.settings.home), url, *more]
        return forked.Process(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    sweepers = [started(_SWEEPS) for _ in range(2)]
    for one in sweepers:
        assert one.stdout.readline() == "ready\n"
    senders = [started(_UPLOADS, name, "12") for name in ("a", "b")]
    said = [one.communicate(timeout=240) for one in senders]
    (server.settings.home / "done").touch()
    removed = [int(one.communicate(timeout=60)[0]) for one in sweepers]
    assert [one.returncode for one in senders] == [0, 0], said
    assert sum(removed) > 1


def test_export_and_import_bear_files_that_are_gone(server: Server, tmp_path: Path) -> None:
    one = refused(server, sent(server))
    other, _ = server.intake.take(BOARD, [b"{}"], Cover())
    swept(server)
    counts = export_store(server.store, server.files, tmp_path / "out")
    assert (counts["submissions"], counts["files"], counts["swept_files"]) == (2, 1, 1)
    target = Server.open(Settings(tmp_path / "other"))
    assert import_store(tmp_path / "out", target.store, target.files) == counts
    assert now(target, one) == now(server, one)
    assert list(target.files.names()) == [other.sha256]
    with pytest.raises(UploadRefusedError, match="not kept any more"):
        act(target.store, now(target, one), "rerun", "organiser")
    target.close()


def test_a_file_that_is_removed_during_an_export_is_left_out_of_it(server: Server, tmp_path: Path) -> None:
    class Late(FolderFiles):
        def local_copy(self, sha256: str) -> Path:
            path = super().local_copy(sha256)
            swept(server)
            return path

    one = refused(server, sent(server))
    counts = export_store(server.store, Late(server.settings.files), tmp_path / "out")
    assert (counts["files"], counts["swept_files"]) == (0, 1)
    (row,) = (tmp_path / "out" / "swept_files.jsonl").read_text().splitlines()
    assert json.loads(row)["sha256"] == one.sha256
    target = Server.open(Settings(tmp_path / "other"))
    import_store(tmp_path / "out", target.store, target.files)
    assert now(target, one).file_removed_at is not None
    target.close()


class Late(Quotas):
    """Quotas whose last place is taken by another file after an upload was checked."""

    def check(self, owner: str, board: Board) -> None:
        super().check(owner, board)
        one, _ = self.store.receive(
            board=board.id, sha256="f" * 64, size=1, file_name="first.json", owner=owner
        )
        assert one.state == "received"

    def __init__(self, store: Store) -> None:
        super().__init__(store, Allowance(in_all=1))
        self.store = store


def test_an_upload_that_loses_the_last_place_leaves_no_file(server: Server) -> None:
    """Another's submission of the same bytes keeps its file, and the same bytes can come again."""
    intake = Intake(server.settings, server.store, server.files, lambda board: None, Late(server.store))
    with pytest.raises(UploadRefusedError) as refused:
        intake.take(BOARD, [CONTENT], Cover(owner="a"))
    assert refused.value.code == "quota"
    assert list(server.files.names()) == []
    kept = sent(server, owner="b")
    with pytest.raises(UploadRefusedError):
        intake.take(BOARD, [CONTENT], Cover(owner="c"))
    assert list(server.files.names()) == [kept.sha256]
    assert now(server, kept).file_removed_at is None


def test_a_removed_file_that_comes_again_beyond_a_quota_goes_again(server: Server) -> None:
    gone = refused(server, sent(server, owner="a"))
    assert swept(server) == [gone.sha256]
    intake = Intake(server.settings, server.store, server.files, lambda board: None, Late(server.store))
    with pytest.raises(UploadRefusedError):
        intake.take(BOARD, [CONTENT], Cover(owner="d"))
    assert list(server.files.names()) == []
    assert now(server, gone).file_removed_at is not None
