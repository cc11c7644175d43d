"""The way in, the stored copies, and the settings."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import read_pages
from leaderboard_world.entries import server_with_board

from cir_metrics.errors import CallError
from leaderboard import boards, settings
from leaderboard.errors import UploadRefusedError
from leaderboard.intake import Cover, Intake, checked_method, chunks_of
from leaderboard.intake.quotas import Allowance, Quotas
from leaderboard.settings import Settings
from leaderboard.store import Happened, Store
from leaderboard.store.files import FolderFiles


@pytest.fixture
def chosen(tmp_path: Path) -> Settings:
    made = Settings(tmp_path / "home", max_upload_bytes=100)
    made.files.mkdir(parents=True)
    return made


@pytest.fixture
def store(chosen: Settings) -> Iterator[Store]:
    opened = Store(chosen.database_url)
    yield opened
    opened.close()


@pytest.fixture
def intake(chosen: Settings, store: Store) -> Intake:
    return Intake(
        chosen,
        store,
        FolderFiles(chosen.files),
        lambda board: "it is away." if board.id == "circo/val" else None,
    )


def leftovers(chosen: Settings) -> list[str]:
    return [path.name for path in chosen.files.rglob("*") if path.is_file()]


def test_the_copy_is_the_file_byte_for_byte(intake: Intake, chosen: Settings) -> None:
    content = b'{"a": 1}\r\n'
    submission, new = intake.take("shapes/val", [content[:3], content[3:]], Cover("dir/run.json"))
    assert new
    assert submission.file_name == "run.json"
    assert submission.sha256 == hashlib.sha256(content).hexdigest()
    assert (chosen.files / submission.sha256[:2] / f"{submission.sha256}.json").read_bytes() == content
    assert leftovers(chosen) == [f"{submission.sha256}.json"]


def test_the_limit_is_exact(intake: Intake, chosen: Settings, store: Store) -> None:
    intake.take("shapes/val", [b"x" * 60, b"x" * 40], Cover())
    with pytest.raises(UploadRefusedError, match="more than 100 bytes") as refused:
        intake.take("shapes/val", [b"y" * 60, b"y" * 41], Cover())
    assert refused.value.status == 413
    assert len(leftovers(chosen)) == 1
    assert len(store.unfinished()) == 1


def test_a_board_takes_less_than_its_server(tmp_path: Path) -> None:
    """One number in the refusal, in the API and on the page, counted while the file comes in."""
    read = 0

    def endless() -> Iterator[bytes]:
        nonlocal read
        while True:
            read += 2**18
            yield bytes(2**18)

    with server_with_board(tmp_path, "shapes/small", max_mb=1) as server:
        with pytest.raises(UploadRefusedError) as refused:
            server.intake.take("shapes/small", endless(), Cover())
        assert refused.value.message == (
            "the upload has more than 1,048,576 bytes, the limit of the board shapes/small."
        )
        assert read == 2**20 + 2**18
        board, others = boards.board("shapes/small"), boards.board("shapes/val")
        assert server.tables.of(board).view["max_upload_bytes"] == 2**20
        assert server.tables.of(others).view["max_upload_bytes"] == server.settings.max_upload_bytes
        assert "rank file, up to 1 MB" in read_pages.html_of(server, "b/shapes/small", tab="about")


@pytest.mark.parametrize(
    ("board", "content", "cover", "code"),
    [
        ("circo/val", b"x", Cover(), "board-unavailable"),
        ("nothing/val", b"x", Cover(), "unknown-board"),
        (None, b"x", Cover(), "missing-board"),
        ("shapes/val", b"", Cover(), "malformed"),
        ("shapes/val", b"x", Cover(submitter="two\nlines"), "bad-metadata"),
    ],
)
def test_a_refusal_leaves_nothing_behind(
    intake: Intake, chosen: Settings, store: Store, board: str | None, content: bytes, cover: Cover, code: str
) -> None:
    with pytest.raises(UploadRefusedError) as refused:
        intake.take(board, [content], cover)
    assert refused.value.code == code
    assert "Fix: " in str(refused.value)
    assert leftovers(chosen) == []
    assert store.unfinished() == []


def test_a_sender_that_breaks_off_leaves_nothing_behind(
    intake: Intake, chosen: Settings, store: Store
) -> None:
    def broken_off() -> Iterator[bytes]:
        yield b"x"
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        intake.take("shapes/val", broken_off(), Cover())
    assert leftovers(chosen) == []
    assert store.unfinished() == []


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\runs\\run.json", "run.json"),
        ("a\x00b\x1b[31m\u202e.json", "ab[31m.json"),
        ("", "upload.json"),
        ("x" * 300 + ".json", "x" * 115 + ".json"),
    ],
)
def test_file_names_are_one_plain_line(intake: Intake, name: str, kept: str) -> None:
    submission, _ = intake.take("shapes/val", [b"{}"], Cover(name))
    assert submission.file_name == kept


def test_fields_beside_the_file_are_kept_as_the_model_writes_them() -> None:
    kept = checked_method(
        {"notes": "a\r\nSet-Cookie: b", "aggregation": " Zu\u0308rich\u2028", "zero_shot": None}
    )
    assert kept == {"notes": "a Set-Cookie: b", "aggregation": "Zürich", "zero_shot": None}


def test_drafts_of_a_crash_are_swept_after_a_day(chosen: Settings) -> None:
    incoming = chosen.files / "incoming"
    incoming.mkdir()
    old, young = incoming / "old.part", incoming / "young.part"
    for part in (old, young):
        part.write_bytes(b"x")
    os.utime(old, (time.time() - 90_000, time.time() - 90_000))
    FolderFiles(chosen.files).sweep()
    assert [part.name for part in incoming.iterdir()] == ["young.part"]


def test_a_file_is_read_in_chunks(tmp_path: Path) -> None:
    path = tmp_path / "big"
    path.write_bytes(b"x" * (2**20 + 1))
    assert [len(chunk) for chunk in chunks_of(path)] == [2**20, 1]


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CIR_LEADERBOARD_HOME", str(tmp_path / "a"))
    monkeypatch.setenv("CIR_LEADERBOARD_MAX_UPLOAD_MB", "3")
    assert settings.read() == Settings(tmp_path / "a", 3 * 2**20)
    assert settings.read(tmp_path / "b").home == tmp_path / "b"
    monkeypatch.delenv("CIR_LEADERBOARD_HOME")
    assert settings.read().home.name == "leaderboard"


def test_the_default_limit_is_64_mb(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CIR_LEADERBOARD_MAX_UPLOAD_MB", raising=False)
    assert settings.read(tmp_path).max_upload_bytes == 64 * 2**20
    assert Settings(tmp_path).max_upload_bytes == 64 * 2**20


def test_refused_files_are_kept_for_the_days_that_the_environment_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    variable = "CIR_LEADERBOARD_REFUSED_DAYS"
    monkeypatch.delenv(variable, raising=False)
    assert settings.read(tmp_path).refused_days == 14
    for written, days in (("3", 3), ("0", 0), ("", 14)):
        monkeypatch.setenv(variable, written)
        assert settings.read(tmp_path).refused_days == days
    for wrong in ("-1", "many", "1.5", "99999999999"):
        monkeypatch.setenv(variable, wrong)
        with pytest.raises(CallError, match=rf"{variable}='.*Fix:"):
            settings.read(tmp_path)


@pytest.mark.parametrize("written", ["0", "-1", "many", "1.5"])
def test_a_wrong_limit_is_named(monkeypatch: pytest.MonkeyPatch, written: str) -> None:
    monkeypatch.setenv("CIR_LEADERBOARD_MAX_UPLOAD_MB", written)
    with pytest.raises(CallError, match=r"CIR_LEADERBOARD_MAX_UPLOAD_MB='.*Fix:"):
        settings.read()


def test_a_file_for_an_unavailable_board_is_offered_the_one_that_it_names(intake: Intake) -> None:
    head = b'{"format": "cir-rank-file", "benchmark": "shapes/val", "rankings": {'
    with pytest.raises(UploadRefusedError, match=r"\?board=shapes/val") as refused:
        intake.take("circo/val", [head], Cover())
    assert refused.value.to_dict()["board_offered"] == "shapes/val"
    with pytest.raises(UploadRefusedError, match="cir score FILE --benchmark circo/val") as refused:
        intake.take("circo/val", [head.replace(b"shapes/val", b"circo/val")], Cover())
    assert "board_offered" not in refused.value.to_dict()


def test_a_file_that_is_there_takes_no_place_in_the_quota(chosen: Settings, store: Store) -> None:
    quotas = Quotas(store, Allowance(in_all=1, uploads_an_hour=100))
    intake = Intake(chosen, store, FolderFiles(chosen.files), lambda board: None, quotas)
    checked, _ = intake.take("shapes/val", [b"x"], Cover(owner="ada", publish=False))
    scored: list[Happened] = [("validated", {}), ("scored", {"report": {}}), ("private", {})]
    store.append(checked, scored, method={"name": "ada's"})
    published, new = intake.take("shapes/val", [b"x"], Cover(owner="ada"))
    assert (published.id, published.state, new) == (checked.id, "published", False)
    with pytest.raises(UploadRefusedError, match="quota"):
        intake.take("shapes/val", [b"y"], Cover(owner="ada"))
    assert intake.take("shapes/val", [b"x"], Cover(owner="ben"))[1]
