"""Folders that processes fill side by side, and sweep of what killed ones left."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from cir_datasets.common.atomic import staging_folder
from cir_metrics.errors import CallError

PREFIX = ".making-"
ROUNDS = 100


def fill_many(root: Path) -> int:
    """Make, fill and leave folders; each one sweeps first. How many were filled."""
    for _ in range(ROUNDS):
        with staging_folder(root, PREFIX, error=CallError, fix="leave.", sweep_below=root) as folder:
            (folder / "file").write_text("held", encoding="utf-8")
    return ROUNDS


def test_no_process_sweeps_the_folder_of_one_that_lives(tmp_path: Path) -> None:
    with ProcessPoolExecutor(4, mp_context=multiprocessing.get_context("fork")) as pool:
        assert list(pool.map(fill_many, [tmp_path] * 4)) == [ROUNDS] * 4
    assert not list(tmp_path.iterdir())
