"""Pushing to a stand-in for the Hub over real HTTP, whole and interrupted, and loading what was pushed."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import datasets_publishers as made
import forked
import pyarrow.parquet as pq
import pytest
from cir_here import cir
from http_hub import TOKEN, Fault, Hub

import cir_datasets

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.filterwarnings("ignore::cir_datasets.errors.UnpinnedDataWarning")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made.write_for(tmp_path / "home", "circled/cirr_val")
    made.write_for(tmp_path / "home", "cirr/val")
    return tmp_path / "home"


def start(command: Sequence[str], hub: Hub, tmp_path: Path, **environment: str) -> subprocess.Popen[str]:
    """A process of its own: huggingface_hub reads its environment when it is imported."""
    known = {
        "HF_ENDPOINT": hub.url,
        "HF_HUB_DISABLE_XET": "1",
        "HF_TOKEN": TOKEN,
        "CIR_DATA_HOME": "",  # no gallery but the made-up one
        "HF_HOME": str(tmp_path / "hf"),
        "CIR_CACHE_HOME": str(tmp_path / "cache"),
        "PYTHONPATH": str(ROOT),
        "PYTHONWARNINGS": "ignore",
    }
    return forked.Process(
        [sys.executable, *command],
        cwd=tmp_path,
        env={**os.environ, **known, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def start_push(
    hub: Hub, tmp_path: Path, *options: str, ids: str = "circled/cirr_val", **environment: str
) -> Any:
    arguments = ["--to", "published", "--data-dir", "home", "--no-checks", "--push", "me/made-up", *options]
    command = ["-m", "leaderboard.cli", "datasets", "publish", *ids.split(), *arguments]
    return start(command, hub, tmp_path, **environment)


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, said = process.communicate(timeout=300)
    return process.returncode, out, said


def push(hub: Hub, tmp_path: Path, *options: str, **environment: str) -> tuple[int, str, str]:
    """In a process of its own, as a user pushes."""
    return finish(start_push(hub, tmp_path, *options, **environment))


def push_here(
    hub: Hub, tmp_path: Path, *options: str, ids: str = "circled/cirr_val", **environment: str
) -> tuple[int, str, str]:
    """In this process, which has imported everything: the same command to the same server."""
    arguments = ["--to", "published", "--data-dir", "home", "--no-checks", "--push", "me/made-up", *options]
    return publish_here(hub, tmp_path, *ids.split(), *arguments, **environment)


def publish_here(hub: Hub, tmp_path: Path, *arguments: str, **environment: str) -> tuple[int, str, str]:
    """huggingface_hub is given what it would have read from the environment."""
    from huggingface_hub import constants

    known = {"HF_ENDPOINT": hub.url, "HF_TOKEN": TOKEN, "CIR_DATA_HOME": "", "PYTHONWARNINGS": "ignore"}
    known |= {"CIR_CACHE_HOME": str(tmp_path / "cache"), **environment}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constants, "ENDPOINT", known["HF_ENDPOINT"])
        template = known["HF_ENDPOINT"] + "/{repo_id}/resolve/{revision}/{filename}"
        patch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        patch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hf/hub"))
        patch.setattr(constants, "HF_HUB_OFFLINE", bool(known.get("HF_HUB_OFFLINE")))
        patch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        done = cir("datasets", "publish", *arguments, folder=tmp_path, **known)
    return done.returncode, done.stdout, done.stderr


LOADS = """
import json, sys
from datasets import load_dataset
rows = load_dataset("me/made-up", "cirr_val")["validation"].to_list()
images = load_dataset("me/made-up", "cirr_val_images", split="validation")["image_id"][:]
assert "cir_datasets" not in sys.modules
json.dump([rows, images], sys.stdout)
"""


@pytest.mark.slow
@pytest.mark.parametrize("lfs", [True, False])
def test_what_was_pushed_loads_with_the_same_rows(lfs: bool, hub: Hub, home: Path, tmp_path: Path) -> None:
    hub.lfs = lfs
    code, out, said = push(hub, tmp_path)
    assert code == 0, said
    repository = hub.repositories["me/made-up"]
    assert out.splitlines()[-1].strip() == f"{hub.url}/datasets/me/made-up/commit/{repository.head}"
    assert len(repository.commits) == 2  # the Hub's own first one, and one with everything
    local = {
        path.relative_to(tmp_path / "published/circled").as_posix(): path.read_bytes()
        for path in (tmp_path / "published/circled").rglob("*.parquet")
    }
    assert local
    assert {path: repository.files[path] for path in local} == local
    assert repository.lfs == (set(local) if hub.lfs else set())
    assert sum(request.startswith("PUT") for request in hub.requests) == (len(local) if hub.lfs else 0)

    code, out, said = finish(start(["-c", LOADS], hub, tmp_path, HF_TOKEN=""))
    assert code == 0, said
    wanted = cir_datasets.load("circled/cirr_val", data_dir=home, verification_mode="no_checks")
    assert json.loads(out) == [wanted.rows(), wanted.gallery]


@pytest.mark.slow
@pytest.mark.parametrize("debug", ["", "1"])
def test_neither_a_message_nor_the_metadata_shows_the_password_of_an_endpoint(
    debug: str, hub: Hub, home: Path, tmp_path: Path
) -> None:
    """The stand-in wants a token, and refuses who comes with user and password."""
    address = hub.url.replace("//", "//me:hunter2@")
    code, out, said = push(hub, tmp_path, HF_ENDPOINT=address, CIR_DEBUG=debug)
    assert (code != 0, "401" in said) == (True, True)
    assert "hunter2" not in out + said
    for path in (tmp_path / "published").rglob("*"):
        assert not path.is_file() or b"hunter2" not in path.read_bytes()


def test_the_pushed_metadata_names_the_hub_and_a_second_push_changes_nothing(
    hub: Hub, home: Path, tmp_path: Path
) -> None:
    code, _, said = push_here(hub, tmp_path)
    assert code == 0, said
    files = hub.repositories["me/made-up"].files
    url = f"{hub.url}/datasets/me/made-up"
    metadata = json.loads(files["croissant.json"])
    assert metadata["url"] == url
    for entry in metadata["distribution"]:
        assert entry["contentUrl"] == f"{url}/resolve/main/{entry['@id']}"
    assert 'load_dataset("me/made-up", "cirr_val", split="validation")' in files["README.md"].decode()

    # The same again makes no commit.
    first = list(hub.repositories["me/made-up"].commits)
    code, out, said = push_here(hub, tmp_path)
    assert code == 0, said
    assert hub.repositories["me/made-up"].commits == first
    assert first[-1][0] in out


def test_the_own_list_of_each_query_is_pushed_with_its_row(hub: Hub, tmp_path: Path) -> None:
    home = tmp_path / "home"
    made.write_for(home, "genecis/change_object")
    code, _, said = push_here(hub, tmp_path, "--i-may-copy", "CC BY-NC 4.0", ids="genecis/change_object")
    assert code == 0, said
    files = hub.repositories["me/made-up"].files
    [content] = [content for name, content in files.items() if name.startswith("change_object/")]
    wanted = cir_datasets.load("genecis/change_object", data_dir=home, verification_mode="no_checks")
    assert pq.read_table(io.BytesIO(content)).to_pylist() == wanted.rows()
    assert sorted({len(row["gallery_image_ids"]) for row in wanted.rows()}) == [3, 4]


def test_stale_parquet_goes_in_the_same_commit_and_other_files_stay(
    hub: Hub, home: Path, tmp_path: Path
) -> None:
    repository = hub.repository("me/made-up")
    stale = "circo_val/validation-00000-of-00001.parquet"
    repository.commit({**repository.files, stale: b"old", "notes.txt": b"mine", "x/y.parquet": b"mine"})
    code, out, said = push_here(hub, tmp_path)
    assert (code, out) == (2, "")
    assert "datasets/me/made-up: configurations that are published there would be removed" in said
    assert stale in repository.files
    assert push_here(hub, tmp_path, "--remove-others")[0] == 0
    assert len(repository.commits) == 3
    assert stale not in repository.files
    assert {"notes.txt", "x/y.parquet"} <= set(repository.files)


def test_a_push_removes_no_configuration_unless_told_to(hub: Hub, home: Path, tmp_path: Path) -> None:
    made.write_for(home, "circled/circo_val")
    code, _, said = push_here(hub, tmp_path, ids="circled/cirr_val circled/circo_val")
    assert code == 0, said
    repository = hub.repositories["me/made-up"]
    good = repository.head
    code, out, said = push_here(hub, tmp_path, "--to", "elsewhere")
    assert (code, out) == (2, "")
    assert f"{hub.url}/datasets/me/made-up: configurations that" in said
    assert "not available: circo_val. Nothing was changed there." in said
    assert "--remove-others" in said
    assert repository.head == good
    code, _, said = push_here(hub, tmp_path, "--to", "elsewhere", "--remove-others")
    assert code == 0, said
    assert not any(path.startswith("circo_val") for path in repository.files)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"name": "shapes", "distribution": []}', "holds another benchmark, 'shapes'"),
        (b'{"name": "shapes", "distribution": [{"@id": 5}]}', "is not metadata of an earlier publication"),
    ],
)
def test_a_repository_of_something_else_is_left_alone(
    content: bytes, words: str, hub: Hub, home: Path, tmp_path: Path
) -> None:
    repository = hub.repository("me/made-up")
    good = repository.commit({**repository.files, "croissant.json": content})
    code, out, said = push_here(hub, tmp_path, "--remove-others")
    assert (code, out) == (2, "")
    assert f"{hub.url}/datasets/me/made-up: " in said
    assert words in said
    assert "Fix: " in said
    assert repository.head == good


def test_an_offline_push_says_how_to_go_online(hub: Hub, home: Path, tmp_path: Path) -> None:
    code, out, said = push_here(hub, tmp_path, HF_HUB_OFFLINE="1")
    assert (code, out) == (2, "")
    assert "nothing was changed there.\n  Fix: unset HF_HUB_OFFLINE" in said
    assert hub.requests == []


@pytest.mark.parametrize(
    ("fault", "environment", "words"),
    [
        (
            Fault("status", times=1),
            {},
            "the push failed while uploading and committing: the Hub answered 500",
        ),
        (Fault("moved", times=1), {}, "somebody else has pushed meanwhile; run the command again"),
        (None, {"HF_TOKEN": "hf_wrong"}, "the Hub answered 401.*Fix: log in with `hf auth login`"),
        (None, {"HF_ENDPOINT": "http://127.0.0.1:1"}, "the push failed while making the repository"),
    ],
)
def test_a_push_that_fails_leaves_the_last_revision(
    fault: Fault | None, environment: dict[str, str], words: str, hub: Hub, home: Path, tmp_path: Path
) -> None:
    import re

    repository = hub.repository("me/made-up")
    good = repository.commit({**repository.files, "README.md": b"the last good one"})
    if fault is not None:
        hub.faults["/commit/"] = fault
    code, out, said = push_here(hub, tmp_path, **environment)
    assert (code, out) == (2, "")
    assert re.search(words, said, re.DOTALL)
    assert "The last revision there is untouched" in said
    assert f"{environment.get('HF_ENDPOINT', hub.url)}/datasets/me/made-up" in said
    assert "Traceback" not in said
    assert any(
        commit == good and files["README.md"] == b"the last good one" for commit, files in repository.commits
    )
    assert not any(path.endswith(".parquet") for path in repository.files)
    code, _, said = push_here(hub, tmp_path)
    assert code == 0, said
    assert any(path.endswith(".parquet") for path in repository.files)


@pytest.mark.parametrize("status", [307, 308])
def test_an_upload_is_not_sent_on_to_another_host(status: int, hub: Hub, home: Path, tmp_path: Path) -> None:
    with Hub() as elsewhere:
        hub.faults["/commit/"] = Fault("status", status, {"Location": f"{elsewhere.url}/commit"}, times=1)
        code, out, said = push_here(hub, tmp_path)
        assert (code, out) == (2, "")
        assert f"{hub.url} sends on to {elsewhere.url}" in said
        assert "Fix: write" in said
        assert elsewhere.requests == []
    code, _, said = push_here(hub, tmp_path)
    assert code == 0, said


def test_a_hiccup_is_survived(hub: Hub, home: Path, tmp_path: Path) -> None:
    hub.faults |= {"/preupload/": Fault("status", times=1), "/upload/": Fault("cut upload", times=1)}
    code, _, said = push_here(hub, tmp_path)
    assert code == 0, said
    assert len(hub.repositories["me/made-up"].commits) == 2


@pytest.mark.slow
def test_uploads_that_keep_failing_leave_the_last_revision(tmp_path: Path) -> None:
    """huggingface_hub tries for 23 seconds before it gives up: both at once."""
    with Hub() as first, Hub() as second:
        first.faults["/preupload/"] = Fault("status")
        second.faults["/upload/"] = Fault("cut upload")
        running = {}
        for hub, fault in ((first, "preupload"), (second, "put")):
            made.write_for(tmp_path / fault / "home", "circled/cirr_val")
            repository = hub.repository("me/made-up")
            repository.commit({**repository.files, "README.md": b"the last good one"})
            running[fault] = (hub, start_push(hub, tmp_path / fault))
        for fault, (hub, process) in running.items():
            code, out, said = finish(process)
            assert (code, out) == (2, ""), f"{fault}: {said}"
            assert "the push failed while uploading and committing" in said
            assert "Fix: run the command again" in said
            assert "Traceback" not in said
            assert hub.repositories["me/made-up"].files["README.md"] == b"the last good one"
            assert len(hub.repositories["me/made-up"].commits) == 2
            hub.faults.clear()
            code, _, said = push(hub, tmp_path / fault)
            assert code == 0, said
            assert len(hub.repositories["me/made-up"].commits) == 3


def test_a_licence_that_forbids_copies_is_to_be_quoted(hub: Hub, tmp_path: Path) -> None:
    made.write_for(tmp_path / "home", "circo/val")
    code, out, said = push_here(hub, tmp_path, ids="circo/val")
    assert (code, out) == (2, "")
    assert '--i-may-copy "CC BY-NC 4.0"' in said
    assert hub.requests == []
    code, _, said = push_here(hub, tmp_path, "--i-may-copy", "CC BY-NC 4.0", ids="circo/val")
    assert code == 0, said
    assert "val/validation-00000-of-00001.parquet" in hub.repositories["me/made-up"].files


def user_folder(tmp_path: Path, card: str = "") -> None:
    """A folder `mine` with every field that a query may have."""
    folder = tmp_path / "mine"
    folder.mkdir(exist_ok=True)
    (folder / "card.yaml").write_text(f"name: mine\ntitle: Mine\n{card}")
    (folder / "images.txt").write_text("a\tdeep/a.png\nb\nc\nd\n")
    full = {
        "query_id": "1",
        "reference_image_id": "a",
        "captions": ["in red", "larger"],
        "target_image_id": "b",
        "positive_image_ids": ["b", "c"],
        "negative_image_ids": ["d"],
        "subset_image_ids": ["a", "b", "c"],
        "aspects": ["color"],
        "subset_id": 7,
        "auxiliary_captions": ["behind it"],
        "target_soft": [{"image_id": "b", "score": 0.5}],
    }
    plain = {"query_id": "2", "reference_image_id": "c", "relative_caption": "in red", "target_image_id": "d"}
    rows = [full, {**plain, "subset_image_ids": ["c", "d", "a"]}]
    (folder / "queries.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def push_own(hub: Hub, tmp_path: Path, *options: str) -> tuple[int, str, str]:
    arguments = ["mine", "--to", "published", "--push", "me/mine", *options]
    return publish_here(hub, tmp_path, *arguments, CIR_BENCHMARKS=str(tmp_path / "mine"))


LOADS_OWN = """
import json, sys
from datasets import load_dataset
rows = load_dataset("me/mine", "test", split="test").to_list()
images = load_dataset("me/mine", "test_images", split="test").to_list()
assert "cir_datasets" not in sys.modules
json.dump([rows, images], sys.stdout)
"""


@pytest.mark.slow
def test_a_private_folder_is_pushed_at_its_owners_word_alone_and_stays_private(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user_folder(tmp_path)
    code, out, said = push_own(hub, tmp_path)
    assert (code, out, hub.requests) == (2, "", [])
    assert "mine: its card says private: true; nothing was pushed.\n  Fix: push it to a private rep" in said
    code, out, said = push_own(hub, tmp_path, "--even-private", "--public")
    assert (code, out, hub.requests) == (2, "", [])
    assert "leave --public out" in said
    assert not (tmp_path / "published").exists()

    code, _, said = push_own(hub, tmp_path, "--even-private")
    assert code == 0, said
    repository = hub.repositories["me/mine"]
    assert repository.private
    for content in repository.files.values():  # neither pictures nor where they lie here
        assert str(tmp_path).encode() not in content
    code, out, said = finish(start(["-c", LOADS_OWN], hub, tmp_path))
    assert code == 0, said
    monkeypatch.setenv("CIR_BENCHMARKS", str(tmp_path / "mine"))
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    rows, images = json.loads(out)
    assert rows == cir_datasets.load("mine/test").rows()
    assert [row["auxiliary_captions"] for row in rows] == [["behind it"], []]
    assert images == cir_datasets.image_manifest("mine/test")
    code, out, said = finish(start(["-c", LOADS_OWN], hub, tmp_path, HF_TOKEN="", HF_HOME="elsewhere"))
    assert (code, out) == (1, "")
    assert "DatasetNotFoundError" in said


def test_a_private_folder_never_goes_to_a_public_repository(hub: Hub, tmp_path: Path) -> None:
    user_folder(tmp_path)
    repository = hub.repository("me/mine")
    good = repository.head
    code, out, said = push_own(hub, tmp_path, "--even-private")
    assert (code, out) == (2, "")
    assert f"{hub.url}/datasets/me/mine: is public, and the card of mine says private: true" in said
    assert "Fix: name a repository that is private" in said
    assert (repository.head, hub.objects) == (good, {})


@pytest.mark.parametrize(("options", "private"), [((), True), (("--public",), False)])
def test_a_folder_that_is_not_private_is_public_where_its_owner_says_so(
    options: tuple[str, ...], private: bool, hub: Hub, tmp_path: Path
) -> None:
    user_folder(tmp_path, "private: false\n")
    code, _, said = push_own(hub, tmp_path, *options)
    assert code == 0, said
    assert hub.repositories["me/mine"].private == private
    code, _, said = finish(start(["-c", LOADS_OWN], hub, tmp_path, HF_TOKEN=""))
    assert (code == 1) == private, said
