"""A file judged in a process of its own: real processes, real limits, real kills."""

from __future__ import annotations

import gzip
import json
import os
import random
import resource
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import bombs
import numpy as np
import pyarrow as pa
import pytest
from benchmark_world.dialogues import BOARD, as_lines, shapes_dialogue
from leaderboard_world.judging import children, reading
from programs import run_program
from waiting import SECONDS

import cir_datasets
import submissions
from leaderboard import boards
from leaderboard.errors import ChildCrashedError, PassingError
from leaderboard.queue.child import Judged, Limits, _environment, judge, with_explanation

pytestmark = pytest.mark.usefixtures("processes")

BENCHMARK = "shapes/val"
MB = 2**20
USUAL = Limits()
NARROW = Limits(memory_bytes=512 * MB)
"""A sound file of shapes/val takes 380 MiB of addresses, each of the large ones more than 650."""


def large_json() -> bytes:
    return bombs._native(b'{"shapes_val_00000":["a"' + b',"a"' * (12 * MB) + b"]}")


def large_gzip() -> bytes:
    # What does not compress raises the budget, which grows with the bytes of the file.
    rankings = b'{"shapes_val_00000":["a"' + b',"a"' * (12 * MB) + b"]}"
    return gzip.compress(bombs._native(rankings, pad=random.Random(1).randbytes(8 * MB).hex()), 1)


def large_parquet() -> bytes:
    images = pa.array([f"{number}" for number in range(4_000_000)])
    columns = {"query_id": ["shapes_val_00000"], "ranking": bombs._one_list(images)}
    return bombs._parquet(columns, compression="zstd")


LARGE = {"json": large_json, "gzip": large_gzip, "parquet": large_parquet}


@pytest.fixture(scope="module", autouse=True)
def prepared() -> None:
    cir_datasets.prepare(BENCHMARK)


@pytest.fixture(scope="module")
def run() -> Path:
    return bombs.ROOT / "submissions" / "entries" / "image_text_sum-shapes.shapes-val.json.gz"


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    """A file that is never read to its end."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


@pytest.fixture
def aside() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


def judged(path: Path, limits: Limits = USUAL, **options: object) -> Judged:
    return judge(path, BENCHMARK, file_name="run.json", form={}, limits=limits, **options)  # type: ignore[arg-type]


def code(found: Judged) -> str:
    assert found.outcome == "rejected"
    assert found.report is None
    [finding] = found.findings
    assert finding["message"] in " ".join(found.text.split())
    return str(finding["code"])


def test_a_score_is_that_of_the_command_line_bit_for_bit(run: Path, tmp_path: Path) -> None:
    values = tmp_path / "values.npz"
    found = judged(run, values_to=values)
    report = submissions.score(run, name="run.json")
    assert found.outcome == "scored"
    assert found.report == report.to_dict()
    assert found.report["main"] > 0
    assert found.method == {"name": report.method, **(found.method or {})}
    assert found.values == values
    with np.load(values, allow_pickle=False) as kept:
        assert set(kept.files) == set(report.evidence.values)
        for metric, expected in report.evidence.values.items():
            assert kept[metric].dtype == np.float64
            assert np.array_equal(kept[metric], expected)
    assert list(tmp_path.iterdir()) == [values]


def test_a_refused_file_has_the_findings_of_validation(tmp_path: Path) -> None:
    path = tmp_path / "stored"
    path.write_bytes(b"[1]")
    report = submissions.validate(path, BENCHMARK, part=False, name="run.json")
    assert judged(path) == Judged("rejected", [one.to_dict() for one in report.findings], report.text())


def test_a_refused_file_is_explained_by_what_its_board_tells(tmp_path: Path) -> None:
    document = submissions.make_rank_file(BENCHMARK, "random").to_dict()
    first = next(iter(document["rankings"].values()))
    first[1] = first[0]
    path = tmp_path / "stored"
    path.write_text(json.dumps(document))
    found = judged(path)
    assert [finding["code"] for finding in found.findings] == ["duplicate-image"]
    assert "doubles removed" in found.explanation
    assert "run.json" not in found.explanation
    # Of another board's benchmark counts alone: that board may hold its numbers back.
    elsewhere = judge(path, "shapes/multiturn_val", file_name="run.json", form={})
    assert "answers   shapes/val, not shapes/multiturn_val" in elsewhere.explanation
    assert "recall@1 " not in elsewhere.explanation
    sealed = {"ground_truth": "file:///truth.json", "file": str(path), "benchmark": BENCHMARK}
    assert with_explanation(sealed, {"outcome": "rejected"}) == {"outcome": "rejected"}


@pytest.mark.parametrize("end", ["exit 3", "kill -9 $$", "exec yes"])
def test_a_refusal_stands_whatever_becomes_of_its_explanation(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    refused = json.dumps({"outcome": "rejected", "findings": [], "text": "refused"})
    script = tmp_path / "python"
    script.write_text(f"#!/bin/sh\necho '{{\"begun\": true}}'\necho '{refused}'\n{end}\n")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    assert judged(run) == Judged("rejected", [], "refused")


def test_the_form_names_the_method(tmp_path: Path) -> None:
    document = submissions.make_rank_file(BENCHMARK, "random").to_dict()
    path = tmp_path / "stored"
    path.write_text(json.dumps({**document, "method": {}}))
    assert judge(path, BENCHMARK, file_name="run", form={"name": "Ours"}).method == {"name": "Ours"}


JUDGES = """
import re, sys
from pathlib import Path
from leaderboard.queue.child import Limits, judge
limits = Limits(memory_bytes=int(sys.argv[1]))
found = judge(Path(sys.argv[2]), "shapes/val", file_name="run", form={}, limits=limits)
print(found.outcome, *(finding["code"] for finding in found.findings))
print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""
"""A parent with nothing else in its memory: what it says last is its peak in KiB."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "expected"), [("json", "too-costly"), ("gzip", "too-costly"), ("parquet", "too-large")]
)
def test_what_needs_too_much_memory_is_refused_and_the_parent_stays_small(
    form: str, expected: str, tmp_path: Path
) -> None:
    path = tmp_path / "stored"
    path.write_bytes(LARGE[form]())
    command = [sys.executable, "-c", JUDGES, str(NARROW.memory_bytes), str(path)]
    done = run_program(command, cwd=bombs.ROOT)
    said, peak = done.stdout.splitlines()
    assert said == f"rejected {expected}"
    assert int(peak) < 100 * 1024


def test_a_sound_file_has_room_in_the_same_limit(run: Path) -> None:
    assert judged(run, NARROW).outcome == "scored"


@pytest.mark.slow
def test_a_file_that_takes_too_much_of_the_processor_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "stored"
    path.write_bytes(large_json())
    found = judged(path, Limits(memory_bytes=3 * 2**30, cpu_seconds=1))
    assert code(found) == "too-costly"
    assert "more than 1 seconds of processor time" in found.findings[0]["message"]


def test_a_file_that_takes_too_long_is_refused(pipe: Path) -> None:
    found = judged(pipe, Limits(wall_seconds=0.5))
    assert code(found) == "too-costly"
    assert children() == []


def test_a_limit_that_the_benchmark_does_not_fit_into_is_not_the_files_fault(run: Path) -> None:
    with pytest.raises(PassingError, match="before it had read the file"):
        judged(run, Limits(memory_bytes=60 * MB))


@pytest.mark.parametrize(
    ("how", "error"),
    [
        (signal.SIGSEGV, ChildCrashedError),
        (signal.SIGABRT, ChildCrashedError),
        (signal.SIGKILL, PassingError),
        (signal.SIGTERM, PassingError),
    ],
)
def test_a_child_has_crashed_unless_it_was_ended_from_outside(
    how: signal.Signals, error: type[Exception], pipe: Path, aside: ThreadPoolExecutor
) -> None:
    found = aside.submit(judged, pipe)
    with reading(pipe):
        [child] = children()
        os.kill(child, how)
        with pytest.raises(error, match=f"ended by {how.name}"):
            found.result(SECONDS)


def test_an_error_of_our_own_is_a_crash_and_stands_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ChildCrashedError, match="exit code 1"):
        judged(tmp_path / "nowhere")
    assert "  | FileNotFoundError" in caplog.text


def test_a_child_is_limited_and_knows_no_secret(
    pipe: Path, aside: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HF_TOKEN", "CIR_LEADERBOARD_DATABASE", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "hunter2")
    stopped = threading.Event()
    found = aside.submit(judged, pipe, stopped=stopped)
    with reading(pipe):
        [child] = children()
        assert os.getsid(child) == os.getpgid(child) == child
        assert "hunter2" not in Path(f"/proc/{child}/environ").read_text()
        lines = Path(f"/proc/{child}/limits").read_text().splitlines()
        soft = {line[:26].strip(): line[26:].split()[0] for line in lines}
        stopped.set()
        with pytest.raises(PassingError, match="the worker stops"):
            found.result(SECONDS)
    assert soft["Max core file size"] == "0"
    assert soft["Max address space"] == str(USUAL.memory_bytes)
    assert USUAL.cpu_seconds < int(soft["Max cpu time"]) < USUAL.cpu_seconds + 60
    assert int(soft["Max file size"]) == 64 * MB
    assert int(soft["Max open files"]) == 128
    assert children() == []


def test_a_child_dies_with_its_parent(pipe: Path) -> None:
    command = [sys.executable, "-c", JUDGES, str(USUAL.memory_bytes), str(pipe)]
    parent = subprocess.Popen(command, cwd=bombs.ROOT)
    with reading(pipe) as written:
        [child] = children(parent.pid)
        parent.kill()
        parent.wait()
        # The pipe has no reader when the child is gone.
        gone = select.poll()
        gone.register(written, 0)
        assert gone.poll(SECONDS * 1000)
    assert child not in children()


@pytest.mark.parametrize("kind", ["rank file", "transcript"])
def test_a_child_imports_nothing_heavy(run: Path, tmp_path: Path, kind: str) -> None:
    dialogue = None
    if kind == "transcript":
        run = tmp_path / "talk.jsonl"
        run.write_bytes(as_lines(shapes_dialogue()))
        asked = boards.board(BOARD).dialogue
        dialogue = None if asked is None else asked.model_dump()
    request = {"file": str(run), "benchmark": BENCHMARK, "file_name": "run", "form": {}, "values_to": None}
    request |= {"ground_truth": None, "dialogue": dialogue, "keys": []}
    command = [sys.executable, "-X", "importtime", "-m", "leaderboard.queue.child", str(os.getpid())]
    command += [str(USUAL.memory_bytes), "60"]
    done = run_program(command, input=json.dumps(request), env=_environment(sealed=False))
    assert '"outcome": "scored"' in done.stdout
    imported = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines()}
    assert "pyarrow" in imported
    heavy = {"datasets", "evaluate", "fastapi", "gradio", "pandas", "scipy", "sqlalchemy", "torch"}
    assert imported & heavy == set()


def test_without_descriptors_the_file_is_to_be_judged_again(run: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    spare = os.open("/dev/null", os.O_RDONLY)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (spare + 1, hard))
        with pytest.raises(PassingError, match="no process for judging: Too many open files"):
            judged(run)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        os.close(spare)


def test_a_disk_that_does_not_give_the_bytes_is_not_the_files_fault() -> None:
    with pytest.raises(PassingError, match="Input/output error"):
        judged(Path("/proc/self/mem"))


@pytest.mark.parametrize(
    ("says", "error"),
    [
        ("exec yes '{\"begun\": true}'", ChildCrashedError),
        ("echo '{\"begun\": true}'; echo nonsense", ChildCrashedError),
        ("echo '{\"begun\": true}'", ChildCrashedError),
        ("exit 3", PassingError),
        ("yes words | head -c 300000000 >&2; exit 3", PassingError),
    ],
    ids=["floods", "answers nonsense", "answers nothing", "does not start", "floods the log"],
)
def test_a_process_that_is_not_ours_gives_no_verdict(
    says: str,
    error: type[Exception],
    run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    script = tmp_path / "python"
    script.write_text(f"#!/bin/sh\n{says}\n")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(error):
        judged(run)
    assert (
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 256 * 1024
    )  # modules that are read on the way, too; the flood has no end
    assert len(caplog.text) < 100_000
    assert children() == []
