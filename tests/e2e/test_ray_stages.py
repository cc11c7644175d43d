"""Chunks of a construction's stage on a Ray cluster of this machine: the same bytes as in one process."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from cir_datasets.construction.workspace import Workspace
from cir_datasets.errors import ConstructionError
from submissions.cluster import Cluster, RayEngine
from submissions.errors import SubmissionError

pytest.importorskip("ray", reason="Ray is not installed (extra `distributed`)")

pytestmark = pytest.mark.slow

ENGINE = RayEngine(Cluster(retries=1))


def made(
    folder: Path, work: Callable[[Sequence[int]], list[dict[str, Any]]], engine: RayEngine | None
) -> bytes:
    import ray

    # Workers cannot import this file.
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    space = Workspace(folder, "zerosight", {"frames": "decodes videos"}, {})
    space.rows_in_chunks("frames", range(20), work, size=3, engine=engine)
    return space.path("frames", ".jsonl").read_bytes()


def squares(chunk: Sequence[int]) -> list[dict[str, Any]]:
    return [{"item": item, "square": item * item} for item in chunk]


def test_a_stage_on_ray_has_the_same_bytes_though_a_worker_dies(tmp_path: Path) -> None:
    killed = tmp_path / "killed"

    def dies_once(chunk: Sequence[int]) -> list[dict[str, Any]]:
        if 7 in chunk and not killed.exists():
            killed.write_text("")
            os.kill(os.getpid(), signal.SIGKILL)
        return squares(chunk)

    assert made(tmp_path / "ray", dies_once, ENGINE) == made(tmp_path / "here", squares, None)
    assert killed.exists()


def test_what_a_chunk_refuses_is_said_as_in_one_process_and_the_rest_is_kept(tmp_path: Path) -> None:
    def refuses(chunk: Sequence[int]) -> list[dict[str, Any]]:
        if 19 in chunk:
            raise ConstructionError("clip.mp4: it has no frames. Fix: leave it out.")
        return squares(chunk)

    with pytest.raises(ConstructionError, match=r"^clip\.mp4: it has no frames\. Fix: leave it out\.$"):
        made(tmp_path, refuses, ENGINE)
    seen: list[int] = []

    def counts(chunk: Sequence[int]) -> list[dict[str, Any]]:
        seen.extend(chunk)
        return squares(chunk)

    assert made(tmp_path, counts, None) == made(tmp_path / "whole", squares, None)
    assert 0 < len(seen) < 20


def test_a_chunk_that_kills_every_worker_is_named(tmp_path: Path) -> None:
    def dies(chunk: Sequence[int]) -> list[dict[str, Any]]:
        if 7 in chunk:
            os.kill(os.getpid(), signal.SIGKILL)
        return squares(chunk)

    with pytest.raises(SubmissionError, match=r"a worker died 2 times at part 2, .* Fix: run the same"):
        made(tmp_path, dies, ENGINE)
