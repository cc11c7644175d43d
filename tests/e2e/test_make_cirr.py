"""`cir make cirr` with a person at the page, and killed at each stage."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from interruptible import wait_for

from cir_datasets.construction.cirr.answers import AnswerLimits, checked_answers, read_answers
from cir_datasets.construction.cirr.pairs import pairs_of
from cir_datasets.construction.cirr.tasks import tasks_of, write_tasks
from cir_datasets.shapes import picture

COMMAND = [
    sys.executable,
    "-m",
    "leaderboard.cli",
    "make",
    "cirr",
    "--benchmark",
    "shapes/val",
    "--limit",
    "40",
]
OPTIONS = ["--splits", "test=100", "--captions", "model", "--language", "oracle", "--name", "mine"]


@pytest.mark.browser
def test_what_a_person_writes_on_a_page_is_what_is_imported(page: Any, tmp_path: Path) -> None:
    members = [f"val-{number:06d}" for number in range(6)]
    pairs = pairs_of({"subset": 0, "split": "test", "members": members})
    tasks = tasks_of(pairs, annotators=1, shared=0, seed=0)
    written = write_tasks(tmp_path, tasks, run="r", title="<b>Mine</b>", open_picture=picture)
    page.goto(written[0].as_uri())
    assert page.inner_text("h1") == "<b>Mine</b>"
    page.fill("#annotator", "Ann")
    page.fill("#caption", 'a "red" star, too')
    page.keyboard.press("Enter")
    assert page.inner_text("#place") == "Pair 2 of 9"
    page.keyboard.press("Alt+3")
    page.keyboard.press("Alt+ArrowRight")
    page.fill("#caption", "=two blue circles")
    page.reload()
    assert page.inner_text("#done") == "3 of 9 pairs answered"
    shown = page.evaluate("[...document.images].map((image) => image.naturalWidth > 0)")
    assert shown == [True] * 6
    for ending in ("json", "csv"):
        with page.expect_download() as saved:
            page.click(f"#save-{ending}")
        file = tmp_path / f"answers.{ending}"
        saved.value.save_as(file)
        rows = checked_answers(read_answers(file), tasks, AnswerLimits(), run="r")
        assert [(row["task"], row["caption"], row["mark"]) for row in rows] == [
            ("t1-0-0", 'a "red" star, too', ""),
            ("t1-0-1", "", "unrelated"),
            ("t1-0-2", "=two blue circles", ""),
        ]
        assert not any("failed" in row for row in rows)
        assert {row["annotator"] for row in rows} == {"Ann"}


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


@pytest.mark.slow
def test_a_run_that_is_killed_at_each_stage_ends_with_the_same_bytes(tmp_path: Path) -> None:
    environment = {**os.environ, "CIR_CACHE_HOME": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    subprocess.run([*COMMAND, *OPTIONS, "--out", str(whole)], check=True, env=environment)
    for stage in json.loads((whole / "make.json").read_bytes())["stages"]:
        process = subprocess.Popen([*COMMAND, *OPTIONS, "--out", str(killed)], env=environment)
        wait_for(lambda stage=stage: any(killed.glob(f"[0-9][0-9]-{stage}.*")), process)  # type: ignore[misc]
        process.send_signal(signal.SIGKILL)
        process.wait()
    subprocess.run([*COMMAND, *OPTIONS, "--out", str(killed)], check=True, env=environment)
    assert bytes_of(killed) == bytes_of(whole)
