"""Everything goes out into open files and comes back, also into another kind of database."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from leaderboard.errors import SubmissionStoreError
from leaderboard.identity import Tokens
from leaderboard.queue.jobs import Jobs
from leaderboard.store import Store, schema
from leaderboard.store.files import FileStore, open_files
from leaderboard.store.transfer import export_store, import_store

CONTENT = [b'{"one": 1}', b'{"two": 2}', b'{"three": 3}']


def sha256_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def files(tmp_path: Path) -> FileStore:
    opened = open_files(tmp_path / "files", tmp_path)
    for content in CONTENT:
        incoming = opened.incoming()
        incoming.write(content)
        incoming.keep()
    return opened


@pytest.fixture
def target(tmp_path: Path) -> FileStore:
    return open_files(tmp_path / "files2", tmp_path)


def filled(store: Store) -> list[str]:
    ids = []
    for number, content in enumerate(CONTENT):
        submission, _ = store.receive(
            board="shapes/val", sha256=sha256_of(content), size=len(content), file_name=f"{number}.json"
        )
        ids.append(submission.id)
    first = store.submission(ids[0])
    assert first is not None
    store.append(
        first,
        [("validated", {}), ("scored", {"report": {"b": 0.1, "a": 1 / 3}}), ("published", {})],
        kept_values=b"\x00\xff",
        method={"name": "Grüße"},
    )
    Tokens(store).create("ada")
    store.pause("cirr/val", "new data")
    return ids


@pytest.fixture
def exported(tmp_path: Path, files: FileStore) -> tuple[Path, list[str]]:
    store = Store(f"sqlite:///{tmp_path / 'from.sqlite'}")
    ids = filled(store)
    export_store(store, files, tmp_path / "out")
    store.close()
    return tmp_path / "out", ids


def test_an_export_comes_back_whole(
    store: Store, exported: tuple[Path, list[str]], target: FileStore, tmp_path: Path
) -> None:
    folder, ids = exported
    counts = import_store(folder, store, target)
    assert (counts["submissions"], counts["events"], counts["files"], counts["tokens"]) == (3, 6, 3, 1)
    before = Store(f"sqlite:///{tmp_path / 'from.sqlite'}")
    assert [store.submission(one) for one in ids] == [before.submission(one) for one in ids]
    report = store.submission(ids[0])
    assert list(report.scores or {}) == ["b", "a"]
    assert store.kept_values(ids[0]) == b"\x00\xff"
    assert store.paused("cirr/val") == "new data"
    assert {one.owner for one in Tokens(store).all()} == {"token:ada"}
    before.close()
    for content in CONTENT:
        name = sha256_of(content)
        assert target.local_copy(name).read_bytes() == content


def test_an_imported_store_goes_on(store: Store, exported: tuple[Path, list[str]], target: FileStore) -> None:
    folder, ids = exported
    import_store(folder, store, target)
    later, new = store.receive(board="shapes/val", sha256="e" * 64, size=1, file_name="later.json")
    assert new
    jobs = Jobs(store, "w")
    order = [job.submission.id for job in iter(jobs.take, None)]
    assert order == [ids[1], ids[2], later.id]


def test_a_store_with_submissions_is_not_overwritten(
    store: Store, exported: tuple[Path, list[str]], target: FileStore
) -> None:
    store.receive(board="shapes/val", sha256="e" * 64, size=1, file_name="mine.json")
    with pytest.raises(SubmissionStoreError, match=r"not empty.*Fix:"):
        import_store(exported[0], store, target)


@pytest.mark.parametrize("name", ["events.jsonl", "submissions.jsonl", "tokens.jsonl"])
def test_a_damaged_export_is_refused(
    store: Store, exported: tuple[Path, list[str]], target: FileStore, name: str
) -> None:
    path = exported[0] / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    for _ in range(2):
        with pytest.raises(SubmissionStoreError, match=rf"{name}: is missing or damaged.*Fix:"):
            import_store(exported[0], store, target)
        path.unlink(missing_ok=True)
    assert store.is_empty()


def test_a_missing_rank_file_is_named(tmp_path: Path, files: FileStore) -> None:
    store = Store(f"sqlite:///{tmp_path / 'from.sqlite'}")
    filled(store)
    gone = next(iter(files.names()))
    files.delete(gone)
    with pytest.raises(SubmissionStoreError, match=rf"{gone}.*is missing.*Fix:"):
        export_store(store, files, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    store.close()


def test_what_is_not_an_export_is_named(store: Store, target: FileStore, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(SubmissionStoreError, match=r"is not an export.*Fix:"):
        import_store(tmp_path / "empty", store, target)


def test_the_files_are_plain_json(exported: tuple[Path, list[str]]) -> None:
    folder, ids = exported
    rows = [json.loads(line) for line in (folder / "submissions.jsonl").read_text().splitlines()]
    assert sorted(row["id"] for row in rows) == sorted(ids)
    assert "Grüße" in (folder / "submissions.jsonl").read_text()
    assert json.loads((folder / "export.json").read_text())["rows"]["events"] == 6
    assert folder.stat().st_mode & 0o077 == 0


def test_an_export_of_an_earlier_version_is_read(store: Store, target: FileStore, tmp_path: Path) -> None:
    """Of schema 2, as that version wrote it; it kept the words of an erased sender in its log."""
    folder = Path(__file__).parents[3] / "fixtures" / "export_v2"
    assert "Jane Doe" in (folder / "events.jsonl").read_text()
    counts = import_store(folder, store, target)
    assert (counts["submissions"], counts["events"], counts["files"], counts["swept_files"]) == (3, 10, 3, 0)
    ada, jane, waiting = store.of_board("shapes/val")
    assert (ada.state, ada.method, ada.scores) == (
        "published",
        {"name": "Ada's"},
        {"method": "Ada's", "file": "a.json", "metrics": {"recall@10": 1 / 3}},
    )
    assert (jane.last("erased") is not None, waiting.state) == (True, "received")
    assert "Jane" not in str(jane.events)
    export_store(store, target, tmp_path / "again")
    theirs = [line for line in (tmp_path / "again/events.jsonl").read_text().splitlines() if jane.id in line]
    assert len(theirs) == 5
    assert "Jane" not in str(theirs)


def test_an_export_of_a_later_version_is_refused(
    store: Store, exported: tuple[Path, list[str]], target: FileStore
) -> None:
    path = exported[0] / "export.json"
    path.write_text(path.read_text().replace(f'"{schema.HEAD}"', '"v99"'))
    with pytest.raises(SubmissionStoreError, match=r"is of schema 'v99'.*Fix: upgrade the package"):
        import_store(exported[0], store, target)
