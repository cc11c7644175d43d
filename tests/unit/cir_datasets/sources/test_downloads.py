"""Downloads, through a real HTTP server on this machine: what is whole is kept, the rest leaves nothing."""

from __future__ import annotations

import base64
import hashlib
import os
import sys
import traceback
from pathlib import Path

import datasets_publishers as made
import pytest
from http_hub import Fault, Hub
from programs import run_program

import cir_datasets
from cir_datasets import registry, sources
from cir_datasets.errors import IntegrityError, SourceError
from cir_datasets.prepared import last_prepared
from cir_datasets.registry.schema import PinnedFile
from cir_metrics.errors import CallError

REAL_HOME = os.environ.get("CIR_DATA_HOME", "")
ROOT = Path(__file__).resolve().parents[4]


CAPTIONS = "captions/cap.rc2.val.json"
REVISION = registry.card("cirr").source.revision
CIRCLED = "tk1441/CIRCLED"
SESSIONS = "data/cirr_val.json"
FILES = {"cirr/val": CAPTIONS, "circled/cirr_val": SESSIONS}


def github(file: str, revision: str | None = REVISION) -> str:
    return f"/Cuberick-Orion/CIRR/{revision}/{file}"


@pytest.fixture
def publisher(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    """A server that holds made-up files of CIRR and CIRCLED; nothing else can be reached."""
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CIR_DATA_HOME", raising=False)
    monkeypatch.setenv("CIR_GITHUB_ENDPOINT", hub.url)
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    root = made.write_cirr(tmp_path / "published", "val")
    for path in root.rglob("*.json"):
        hub.files[github(str(path.relative_to(root)))] = path.read_bytes()
    sessions = made.write_circled(tmp_path / "published", "cirr_val") / SESSIONS
    hub.repository(CIRCLED).commit({SESSIONS: sessions.read_bytes()})
    return hub


def edit(publisher: Hub, file: str, old: bytes, new: bytes) -> None:
    """Publish the file anew, with other words in it."""
    if file == SESSIONS:
        repository = publisher.repository(CIRCLED)
        repository.commit({SESSIONS: repository.files[SESSIONS].replace(old, new)})
    else:
        publisher.files[github(file)] = publisher.files[github(file)].replace(old, new)


def pin_of(body: bytes) -> PinnedFile:
    return PinnedFile(bytes=len(body), sha256=hashlib.sha256(body).hexdigest())


@pytest.fixture
def pinned(publisher: Hub, monkeypatch: pytest.MonkeyPatch) -> Hub:
    """The same server; the made-up files are what the card pins."""
    pins = {path.removeprefix(github("")): pin_of(body) for path, body in publisher.files.items()}
    monkeypatch.setattr(sources, "pins", lambda name: pins if name == "cirr" else {})
    return publisher


@pytest.fixture
def real_home() -> Path:
    """The real annotations' folder, read before another fixture hides it."""
    return Path(REAL_HOME)


def load(benchmark_id: str) -> cir_datasets.Benchmark:
    return cir_datasets.load(benchmark_id, verification_mode="no_checks")


def kept(tmp_path: Path) -> list[str]:
    """Everything below the cache that is a file."""
    return sorted(
        str(path.relative_to(tmp_path / "cache"))
        for path in (tmp_path / "cache").rglob("*")
        if path.is_file()
    )


def test_pinned_files_are_downloaded_once(pinned: Hub, tmp_path: Path) -> None:
    benchmark = load("cirr/val")
    assert benchmark.pinned
    assert len(benchmark) == 3
    assert sorted(pinned.requests) == sorted(f"GET {path}" for path in pinned.files if "CIRR" in path)
    load("cirr/val")
    assert len(pinned.requests) == 3
    last = last_prepared(benchmark.spec)
    assert last.meta["sources"][CAPTIONS]["origin"] == "download"
    assert last.meta["sources"][CAPTIONS]["revision"] == REVISION
    assert not [name for name in kept(tmp_path) if ".partial-" in name]


def test_a_kept_file_that_was_damaged_is_fetched_again(pinned: Hub, tmp_path: Path) -> None:
    load("cirr/val")
    path = next((tmp_path / "cache/sources").rglob("cap.rc2.val.json"))
    path.write_bytes(b"[]")
    assert len(load("cirr/val")) == 3
    assert pinned.requests.count(f"GET {github(CAPTIONS)}") == 2


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("cut", "the connection closed before the whole file had come"),
        ("short", "the download was cut short"),
    ],
)
def test_a_truncated_file_is_refused(fault: str, words: str, pinned: Hub, tmp_path: Path) -> None:
    pinned.faults[CAPTIONS] = Fault(fault)
    with pytest.raises(IntegrityError, match=words) as error:
        load("cirr/val")
    assert github(CAPTIONS) in str(error.value)
    assert "Fix: " in str(error.value)
    assert kept(tmp_path) == []
    pinned.faults.clear()
    assert len(load("cirr/val")) == 3


def test_a_file_of_the_wrong_content_is_refused(pinned: Hub, tmp_path: Path) -> None:
    edit(pinned, CAPTIONS, b"made up 0", b"made up 9")
    with pytest.raises(IntegrityError, match=r"its sha256 is [0-9a-f]{64}, the card pins [0-9a-f]{64}"):
        load("cirr/val")
    edit(pinned, CAPTIONS, b"made up 9", b"made up 10")
    with pytest.raises(IntegrityError, match="it is longer than it should be"):
        load("cirr/val")
    assert kept(tmp_path) == []


def test_the_made_up_files_are_not_the_ones_of_the_real_card(publisher: Hub) -> None:
    with pytest.raises(IntegrityError, match="the card pins 1609916"):
        load("cirr/val")


def test_a_missing_file_is_a_404(pinned: Hub, tmp_path: Path) -> None:
    del pinned.files[github(CAPTIONS)]
    with pytest.raises(SourceError, match="404, the publisher has no such file at that revision") as error:
        load("cirr/val")
    assert not isinstance(error.value, IntegrityError)
    assert "--data-dir FOLDER` (in Python data_dir=)" in str(error.value)
    assert pinned.requests.count(f"GET {github(CAPTIONS)}") == 1
    assert kept(tmp_path) == []


def test_a_server_in_trouble_is_asked_again_briefly(pinned: Hub) -> None:
    pinned.faults[CAPTIONS] = Fault("status", 503, times=1)
    assert len(load("cirr/val")) == 3
    assert pinned.requests.count(f"GET {github(CAPTIONS)}") == 2


def test_a_server_that_stays_in_trouble_is_given_up(pinned: Hub, tmp_path: Path) -> None:
    pinned.faults[CAPTIONS] = Fault("status", 503)
    with pytest.raises(SourceError, match="the server answered 503"):
        load("cirr/val")
    assert pinned.requests.count(f"GET {github(CAPTIONS)}") == 3
    assert kept(tmp_path) == []


def test_a_pinned_source_is_asked_at_its_full_revision_alone(
    pinned: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = made.write_fashioniq(tmp_path / "published", "dress", "val")
    bodies = {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*.json")}
    pins = {name: pin_of(body) for name, body in bodies.items()}
    monkeypatch.setattr(sources, "pins", lambda name: pins)
    pinned.files |= {f"/XiaoxiaoGuo/fashion-iq/HEAD/{name}": body for name, body in bodies.items()}
    with pytest.raises(SourceError, match="404, the publisher has no such file at that revision"):
        load("fashioniq/dress_val")
    revision = "f71b16c3b09ef03b02c0fed160fa072fb3b8aa16"
    pinned.files |= {f"/XiaoxiaoGuo/fashion-iq/{revision}/{name}": body for name, body in bodies.items()}
    benchmark = load("fashioniq/dress_val")
    assert benchmark.pinned
    last = last_prepared(benchmark.spec)
    assert {entry["revision"] for entry in last.meta["sources"].values()} == {revision}


def test_a_hub_file_is_downloaded_at_the_commit_that_the_hub_names(publisher: Hub, tmp_path: Path) -> None:
    benchmark = load("circled/cirr_val")
    assert len(benchmark) == 2
    assert not benchmark.pinned
    commit = publisher.repository(CIRCLED).head
    address = f"/datasets/{CIRCLED}/resolve"
    assert publisher.requests[:2] == [f"HEAD {address}/main/{SESSIONS}", f"GET {address}/{commit}/{SESSIONS}"]
    last = last_prepared(benchmark.spec)
    assert last.meta["sources"]["data/cirr_val.json"]["revision"] == commit
    asked = len(publisher.requests)
    load("circled/cirr_val")
    assert [entry for entry in publisher.requests[asked:] if "CIRCLED" in entry] == []


def test_the_gallery_is_fetched_along_with_the_sessions(pinned: Hub) -> None:
    assert load("circled/cirr_val").gallery == made.cirr_images("val")


def test_sessions_are_scored_without_a_gallery_that_cannot_be_fetched(pinned: Hub) -> None:
    pinned.faults["image_splits/split.rc2.val.json"] = Fault("status", 503)
    assert load("circled/cirr_val").gallery is None


def test_an_unpinned_file_that_is_not_json_is_not_kept(publisher: Hub, tmp_path: Path) -> None:
    good = publisher.repository(CIRCLED).files
    publisher.repository(CIRCLED).commit({SESSIONS: b"<html>The Hub is being repaired.</html>"})
    with pytest.raises(IntegrityError, match=r"what came is not JSON .*Nothing was kept\. Fix: try again"):
        load("circled/cirr_val")
    assert kept(tmp_path) == []
    publisher.repository(CIRCLED).commit(good)
    assert len(load("circled/cirr_val")) == 2


def test_force_asks_the_hub_whether_an_unpinned_file_has_changed(publisher: Hub) -> None:
    before = load("circled/cirr_val")
    edit(publisher, SESSIONS, b"made up 0.1", b"made up 9.9")
    assert load("circled/cirr_val").data_hash == before.data_hash
    cir_datasets.prepare("circled/cirr_val", verification_mode="no_checks", force=True)
    assert load("circled/cirr_val").rows()[0]["turns"][0]["relative_caption"] == "made up 9.9"


def test_force_keeps_what_it_has_where_the_hub_cannot_be_reached(
    publisher: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = load("circled/cirr_val")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    cir_datasets.prepare("circled/cirr_val", verification_mode="no_checks", force=True)
    assert load("circled/cirr_val").data_hash == before.data_hash


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        (Fault("cut"), IntegrityError, "the connection closed before the whole file had come"),
        (Fault("short"), IntegrityError, "bytes came, the Hub announced"),
        (Fault("status", 503), SourceError, "the server answered 503"),
        (Fault("status", 429), SourceError, "the server answered 429"),
    ],
)
def test_a_hub_file_that_does_not_come_whole_leaves_nothing(
    fault: Fault, kind: type[Exception], words: str, publisher: Hub, tmp_path: Path
) -> None:
    publisher.faults[SESSIONS] = fault
    with pytest.raises(kind, match=words):
        load("circled/cirr_val")
    assert kept(tmp_path) == []
    publisher.faults.clear()
    assert len(load("circled/cirr_val")) == 2


def test_a_hub_repository_that_has_moved_is_followed_to_its_new_name(publisher: Hub) -> None:
    before = load("circled/cirr_val").data_hash
    there = publisher.repositories["new/name"] = publisher.repositories.pop(CIRCLED)
    old = f"/datasets/{CIRCLED}/resolve"
    for revision in ("main", there.head):
        target = f"/datasets/new/name/resolve/{revision}/{SESSIONS}"
        publisher.faults[f"{old}/{revision}/"] = Fault("status", 307, {"Location": target})
    cir_datasets.prepare("circled/cirr_val", verification_mode="no_checks", force=True)
    assert load("circled/cirr_val").data_hash == before
    assert f"GET /datasets/new/name/resolve/{there.head}/{SESSIONS}" in publisher.requests


def test_a_missing_hub_file_is_a_404(publisher: Hub, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="404, the publisher has no such file") as error:
        load("circled/cirr_train")
    assert "hf download tk1441/CIRCLED" in str(error.value)
    assert kept(tmp_path) == []


@pytest.mark.parametrize("benchmark_id", ["cirr/val", "circled/cirr_val"])
def test_no_network_is_said_at_once(
    benchmark_id: str, publisher: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CIR_GITHUB_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    with pytest.raises(SourceError, match=r"no network \(ConnectError"):
        load(benchmark_id)
    assert kept(tmp_path) == []


def test_offline_mode_is_respected(publisher: Hub, tmp_path: Path) -> None:
    code = "import cir_datasets; cir_datasets.load('circled/cirr_val')"
    done = run_program(
        [sys.executable, "-c", code],
        env={**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT)},
        code=None,
    )
    assert "no network (OfflineModeIsEnabled" in done.stderr
    assert publisher.requests == []


def test_a_server_that_is_not_a_hub_is_named(publisher: Hub) -> None:
    publisher.files[f"/datasets/{CIRCLED}/resolve/main/{SESSIONS}"] = b"[]"  # and no commit with it
    with pytest.raises(SourceError, match="the server is not a Hugging Face Hub"):
        load("circled/cirr_val")


@pytest.mark.parametrize("fault", ["endless", "huge", "packed"])
@pytest.mark.parametrize("name", ["cirr/val", "circled/cirr_val"])
def test_a_file_that_is_too_long_is_stopped_where_that_is_known(
    fault: str, name: str, pinned: Hub, tmp_path: Path
) -> None:
    pinned.faults[CAPTIONS] = pinned.faults[SESSIONS] = Fault(fault)
    with pytest.raises(IntegrityError, match=r"more than \d+ bytes come, the (card pins|Hub announced) \d+"):
        load(name)
    assert pinned.sent < 2**25, "of 64 MiB, no more than what sockets hold"
    assert kept(tmp_path) == []
    pinned.faults.clear()
    assert len(load(name)) > 0


@pytest.mark.parametrize("fault", ["trickle", "trickling head"])
@pytest.mark.parametrize("name", ["cirr/val", "circled/cirr_val"])
def test_a_file_that_trickles_in_is_given_up_at_the_deadline(
    fault: str, name: str, pinned: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CIR_DOWNLOAD_TIMEOUT", "0.7")
    pinned.faults[FILES[name]] = Fault(fault)
    with pytest.raises(
        SourceError, match=r"had not come after 0\.7 seconds.*set CIR_DOWNLOAD_TIMEOUT to more"
    ):
        load(name)
    assert kept(tmp_path) == []
    assert sum(request.startswith("GET") for request in pinned.requests) == 1, "no second attempt"


@pytest.mark.parametrize("seconds", ["0", "-1", "soon", "nan", "inf"])
def test_a_deadline_that_is_none_is_refused(
    seconds: str, pinned: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CIR_DOWNLOAD_TIMEOUT", seconds)
    with pytest.raises(CallError, match=f"CIR_DOWNLOAD_TIMEOUT='{seconds}': not a number of seconds above 0"):
        load("cirr/val")
    assert pinned.requests == []


SECRETS = ("hunter2", "s3cret", "Basic ")


def whole_story(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault("status", 503), "answered 503"),
        (Fault("cut"), "connection closed"),
        (Fault("huge"), "bytes come"),
        ("absent", "404"),
        ("wrong", "sha256|not JSON"),
        ("gone", "no network"),
    ],
)
@pytest.mark.parametrize("name", ["cirr/val", "circled/cirr_val"])
def test_no_message_shows_the_password_of_an_address(
    fault: Fault | str,
    words: str,
    name: str,
    pinned: Hub,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = pinned.url.replace("//", "//me:hunter2%2F@")
    if fault == "gone":
        url = "http://me:hunter2%2F@127.0.0.1:1"
    monkeypatch.setenv("CIR_GITHUB_ENDPOINT", url)
    monkeypatch.setenv("HF_ENDPOINT", url + "/")
    if fault == "absent":
        pinned.files.clear()
        pinned.repository(CIRCLED).commit({})
    elif fault == "wrong":
        edit(pinned, FILES[name], b"[", b"<")
    elif isinstance(fault, Fault):
        pinned.faults[FILES[name]] = fault
    with pytest.raises(SourceError, match=words) as error:
        load(name)
    assert not [secret for secret in SECRETS if secret in whole_story(error.value)]
    if fault != "gone":
        expected = base64.b64encode(b"me:hunter2/").decode()
        assert pinned.authorizations == {f"Basic {expected}"}
    assert kept(tmp_path) == []


def test_what_is_kept_beside_a_download_shows_no_password(
    pinned: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CIR_GITHUB_ENDPOINT", pinned.url.replace("//", "//me:hunter2@"))
    load("cirr/val")
    for path in (tmp_path / "cache").rglob("*"):
        assert not path.is_file() or b"hunter2" not in path.read_bytes()


@pytest.mark.parametrize("variable", ["CIR_GITHUB_ENDPOINT", "HTTP_PROXY", "ALL_PROXY"])
@pytest.mark.parametrize(
    "address",
    ["http://me:hunter2/x@host", "ftp://me:hunter2@host", "http://me:hunter2#@host"],
)
def test_an_address_that_is_none_is_not_shown(
    variable: str, address: str, pinned: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, address)
    with pytest.raises(CallError, match=variable) as error:
        load("cirr/val")
    assert "hunter2" not in whole_story(error.value)
    assert pinned.requests == []


def test_an_endpoint_that_huggingface_hub_cannot_read_is_not_shown_by_cir() -> None:
    # In a process of its own: the library reads the variable once, when it is imported.
    environment = {**os.environ, "HF_ENDPOINT": "http://user:s3c/r3t@127.0.0.1:9", "PYTHONPATH": str(ROOT)}
    environment.pop("CIR_DATA_HOME", None)
    command = [sys.executable, "-m", "leaderboard.cli", "datasets", "prepare", "circled/circo_val"]
    done = run_program(command, env=environment, code=2)
    assert "HF_ENDPOINT: not an address" in done.stderr
    assert "s3c" not in done.stderr


@pytest.mark.real_data
@pytest.mark.skipif(not REAL_HOME, reason="CIR_DATA_HOME is not set: no real annotations")
def test_the_real_pins_hold_through_a_download(publisher: Hub, real_home: Path) -> None:
    for path in (real_home / "cirr").rglob("*.json"):
        publisher.files[github(str(path.relative_to(real_home / "cirr")))] = path.read_bytes()
    benchmark = cir_datasets.load("cirr/val")
    assert (len(benchmark), benchmark.pinned, benchmark.checks_skipped) == (4181, True, ())
