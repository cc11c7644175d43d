"""Life on a cluster: what others prepared, disks without writes or locks, processes at once, and copies."""

from __future__ import annotations

import copy
import errno
import importlib
import inspect
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import metrics_processes
import public_objects
import pytest

import cir_datasets
import cir_metrics
import leaderboard
import submissions
from cir_datasets.common.key_values import KeyValues
from cir_datasets.errors import DatasetError

ROOT = Path(cir_metrics.__file__).resolve().parents[1]
ROOMS = (cir_metrics, cir_datasets, submissions, leaderboard)

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount, or be another user")


@pytest.fixture(scope="module")
def shared() -> Iterator[Path]:
    """A cache and the cache of datasets as another user prepared them, and a rank file; all may read it."""
    place = Path(tempfile.mkdtemp(prefix="cir-cluster-"))  # pytest's own folders are closed to others
    code = """
import json, os, cir_datasets, submissions
from cir_datasets.huggingface.builder import fill_cache
fill_cache("shapes/val")
file = submissions.make_rank_file(cir_datasets.load("shapes/val"), "random")
submissions.write(file, os.environ["PLACE"] + "/random.json")
print(json.dumps(True))
"""
    settings = {"CIR_CACHE_HOME": str(place / "cache"), "PLACE": str(place)}
    metrics_processes.python(code, place, place / "huggingface", **settings)
    for path in (place, *place.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    yield place
    shutil.rmtree(place, ignore_errors=True)


READING = """
import json, sys
import cir_datasets, cir_metrics, datasets, evaluate, submissions
from leaderboard.cli import build
file = sys.argv[1]
build()(["validate", file], standalone_mode=False)
rows = datasets.load_dataset("shapes", "val", split="validation")
metric = evaluate.load("recall_at_k", keep_in_memory=True)
print(json.dumps({
    "score": submissions.score(file).metrics["recall@10"],
    "queries": len(cir_datasets.load("shapes/val")),
    "rows": len(rows),
    "metric": metric.compute(predictions=[["a", "b"]], references=[{"target": "b"}], ks=[2]),
}))
"""


def read(shared: Path, *before: str) -> Any:
    """What a process reads of the shared folder, started by a command."""
    names = {"CIR_CACHE_HOME": str(shared / "cache"), "HOME": str(shared / "nobodys-home")}
    done = subprocess.run(
        [*before, sys.executable, "-c", READING, str(shared / "random.json")],
        env=metrics_processes.environment(shared / "huggingface", HF_HUB_OFFLINE="1", **names),
        cwd="/",
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def content(folder: Path) -> dict[str, int]:
    return {str(path): path.lstat().st_mtime_ns for path in sorted(folder.rglob("*"))}


@pytest.mark.slow
@needs_root
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="no setpriv")
def test_another_users_cache_is_read_without_a_right_to_write(shared: Path) -> None:
    # May look through root's own folders, where Python lies, and write nowhere of theirs.
    right = ",".join(("-all", "+dac_read_search"))
    rights = [f"--{kind}={right}" for kind in ("inh-caps", "ambient-caps", "bounding-set")]
    before = content(shared)
    found = read(shared, "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", *rights)
    assert (found["queries"], found["rows"], found["metric"]) == (300, 300, {"recall@2": 1.0})
    assert content(shared) == before


@pytest.mark.slow
@needs_root
@pytest.mark.skipif(shutil.which("unshare") is None, reason="no unshare")
def test_a_read_only_mount_is_read(shared: Path) -> None:
    mount = f"mount --bind {shared} {shared} && mount -o remount,ro,bind {shared}"
    if subprocess.run(["unshare", "-m", "sh", "-c", mount], capture_output=True).returncode:
        pytest.skip("this machine lets nobody mount")
    found = read(shared, "unshare", "-m", "sh", "-c", f'{mount} && exec "$@"', "sh")
    assert (found["queries"], found["rows"], found["metric"]) == (300, 300, {"recall@2": 1.0})


NO_LOCKS = """
import json, os, warnings
from pathlib import Path
import cir_datasets, datasets, evaluate, submissions
from cir_datasets.common.key_values import KeyValues
from cir_datasets.common.locks import acquire, file_lock
from cir_datasets.construction.workspace import Workspace
from cir_metrics.errors import CirError
from submissions.multiround.journal import only_program

CASE = dict(predictions=[["a"]], references=[{"target": "a"}])


def warned(action):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()
    return [str(each.message) for each in caught if each.category is RuntimeWarning]


def held(block):
    with block:
        pass


def tried(place):
    os.environ["CIR_CACHE_HOME"] = str(place / "cache")
    found = {
        "prepare": warned(lambda: cir_datasets.prepare("shapes/val")),
        "run": warned(lambda: held(Workspace.held(place / "run"))),
        "played": warned(lambda: held(only_program(place / "played" / "dialogue.json", "program"))),
        "values": warned(lambda: KeyValues(place / "values" / "a.sqlite", ValueError).put({"a": b"1"})),
        "claims": warned(lambda: free.append(acquire(file_lock(place / "claims" / "1", blocking=True)))),
        "score": submissions.score(os.environ["FILE"]).metrics["recall@10"],
        "left": [path.name for path in (place / "cache").rglob(".making-*")],
    }
    for name, action in (
        ("datasets", lambda: datasets.load_dataset("shapes", "val")),
        ("evaluate", lambda: evaluate.load("recall_at_k").compute(**CASE)),
    ):
        try:
            action()
            found[name] = "works"
        except CirError as error:
            found[name] = str(error)
    return found


free = []
os.environ["NO_LOCKS"] = os.environ["REFUSAL"]
found = tried(Path(os.environ["PLACE"]))
assert free == [True]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def without_locks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that makes every file system one without locks, loaded before all others."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("no C compiler for a file system without locks")
    library = tmp_path_factory.mktemp("nolocks") / "nolocks.so"
    source = Path(public_objects.__file__).with_name("nolocks.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    return library


@pytest.mark.slow
@pytest.mark.parametrize("refusal", [errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS])
def test_a_disk_without_locks_works_or_is_named_with_a_way_out(
    refusal: int, without_locks: Path, shared: Path, tmp_path: Path
) -> None:
    settings = {
        "LD_PRELOAD": str(without_locks),
        "PLACE": str(tmp_path),
        "FILE": str(shared / "random.json"),
        "REFUSAL": str(refusal),
    }
    found = metrics_processes.python(NO_LOCKS, tmp_path, tmp_path / "huggingface", **settings)
    assert found["prepare"] == []
    for name in ("run", "played", "values", "claims"):
        (said,) = found[name]
        assert said.startswith(f"{tmp_path / name}: this file system has no locks (")
        assert "Fix: start no other one that writes there" in said
    assert KeyValues(tmp_path / "values" / "a.sqlite", DatasetError).get("a") == b"1"
    assert found["score"] > 0
    assert found["left"] == []
    for name, way_out in (("datasets", "HF_DATASETS_CACHE"), ("evaluate", "keep_in_memory=True")):
        # Where flock(2) is not there at all, the locks of datasets are files, and all works.
        assert refusal == errno.ENOSYS or str(tmp_path / "huggingface") in found[name]
        assert way_out in found[name] or (refusal, found[name]) == (errno.ENOSYS, "works")


@pytest.mark.slow
def test_four_processes_prepare_at_once(tmp_path: Path) -> None:
    code = """
import json, cir_datasets, datasets
folder = cir_datasets.prepare("shapes/val")
rows = datasets.load_dataset("shapes", "val", split="validation")
print(json.dumps([str(folder), len(rows), cir_datasets.load("shapes/val").data_hash]))
"""
    settings = {"CIR_CACHE_HOME": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "1"}
    first, *others = metrics_processes.together(code, 4, tmp_path, tmp_path / "huggingface", **settings)
    assert first[1] == 300
    assert others == [first] * 3
    assert [path.name for path in Path(first[0]).parent.iterdir()] == [Path(first[0]).name]
    assert list((tmp_path / "cache").rglob(".making-*")) == []


@pytest.mark.slow
def test_a_folder_of_a_benchmarks_name_in_the_working_directory(shared: Path, tmp_path: Path) -> None:
    (tmp_path / "shapes" / "captions").mkdir(parents=True)
    (tmp_path / "shapes" / "captions" / "cap.json").write_text("[]", encoding="utf-8")
    (tmp_path / "fisd").mkdir()
    (tmp_path / "fisd" / "README.md").write_text("---\nlicense: mit\n---\n# Mine\n", encoding="utf-8")
    (tmp_path / "fisd" / "mine.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    code = """
import json, cir_datasets, datasets
print(json.dumps([
    len(datasets.load_dataset("shapes", "val", split="validation")),
    datasets.load_dataset("fisd", split="train").column_names,
]))
"""
    settings = {"CIR_CACHE_HOME": str(shared / "cache"), "HF_HUB_OFFLINE": "1"}
    found = metrics_processes.python(code, tmp_path, tmp_path / "huggingface", **settings)
    assert found == [300, ["a", "b"]]


@pytest.fixture(scope="module")
def objects() -> dict[str, Any]:
    return public_objects.public_objects()


def copies(thing: Any) -> Iterator[Any]:
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        yield pickle.loads(pickle.dumps(thing, protocol))
    yield copy.deepcopy(thing)
    yield copy.copy(thing)


@pytest.mark.slow
def test_every_public_class_has_an_object_that_survives_every_copy(objects: dict[str, Any]) -> None:
    public = {
        name: getattr(room, name)
        for room in (*ROOMS[:3], submissions.intervals, submissions.report, submissions.retrieval)
        for name in getattr(room, "__all__", ())
    }
    classes = {
        thing
        for thing in public.values()
        if inspect.isclass(thing)
        and not issubclass(thing, BaseException)
        and not getattr(thing, "_is_protocol", False)
    }
    assert {each.__name__ for each in classes - {type(thing) for thing in objects.values()}} == set()
    values = {
        name: thing for name, thing in public.items() if not callable(thing) and not inspect.ismodule(thing)
    }
    for name, thing in {**objects, **values}.items():
        for made in copies(thing):
            assert type(made) is type(thing), name
            assert public_objects.facts(made) == public_objects.facts(thing), name


def error_classes() -> list[type[Exception]]:
    """Every class of errors and warnings of the four packages, the private ones too."""
    found = []
    for room in ROOMS:
        folder = Path(str(room.__file__)).parent
        for path in sorted(folder.rglob("*.py")):
            names = re.findall(r"^class (\w+(?:Error|Warning))\(", path.read_text(encoding="utf-8"), re.M)
            if names:
                module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
                found += [getattr(module, name) for name in names]
    return found


def test_every_error_survives_every_copy(objects: dict[str, Any]) -> None:
    classes = error_classes()
    assert len(classes) > 60
    for each in classes:
        error = public_objects.made(each, objects)
        error.add_note("query 7")
        for found in copies(error):
            assert type(found) is each
            assert (str(found), found.args, found.__dict__) == (str(error), error.args, error.__dict__), each


def test_no_class_below_the_root_can_break_that() -> None:
    error = public_objects.AwkwardError(query="7", place=Path("a"))
    for found in copies(error):
        assert (str(found), found.query, found.place) == (str(error), "7", Path("a"))
