"""Embedding by several processes, any of which may be killed: the store is never wrong, and work goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import forked
import numpy as np
import pytest
from benchmark_world import embeddings
from benchmark_world.embeddings import (
    IMAGES,
    SHARD_SIZE,
    embed,
    every_vector,
    finished,
    folder_of,
    shapes_pictures,
)
from benchmark_world.encoders import PlainEncoder
from PIL import Image
from waiting import wait_for

from submissions.embeddings.embed import embed_gallery
from submissions.embeddings.store import EmbeddingStore
from submissions.encoders.protocol import Vectors
from submissions.errors import EncoderError


@pytest.fixture
def store(tmp_path: Path) -> EmbeddingStore:
    return EmbeddingStore(tmp_path / "store")


@pytest.fixture(scope="module")
def wanted() -> Vectors:
    """Every picture encoded alone, without any store."""
    return every_vector()


def started(*arguments: object) -> subprocess.Popen[bytes]:
    places = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", embeddings.__name__, *map(str, arguments)]
    return forked.Process(command, env=places)


@pytest.mark.slow
def test_workers_of_a_killed_process_hold_no_claims(
    store: EmbeddingStore, wanted: Vectors, tmp_path: Path
) -> None:
    """They notice within seconds that it is gone; until then nothing waits for them."""
    pytest.importorskip("torch", reason="worker processes are those of its data loader")
    folder, go = folder_of(store), tmp_path / "go"
    go.touch()
    process = started(store.root, tmp_path / "log", go, 2)
    wait_for(lambda: len(finished(folder)) >= 4, process=process)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    workers = [int(number) for number in children.read_text().split()] if children.exists() else []
    assert len(workers) >= 2 or sys.platform != "linux"
    process.kill()
    process.wait()
    done = len(finished(folder))
    claims = [folder.claim(shard) for shard in folder.parts_to_do()]
    assert all(claim.__enter__() for claim in claims)
    for claim in claims:
        claim.__exit__(None, None, None)
    again = PlainEncoder()
    np.testing.assert_array_equal(embed(store, again).vectors, wanted)
    assert sum(again.batches) == IMAGES - done * SHARD_SIZE
    wait_for(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))


@pytest.mark.slow
def test_two_processes_share_the_shards(store: EmbeddingStore, wanted: Vectors, tmp_path: Path) -> None:
    processes = [started(store.root, tmp_path / f"log{number}", tmp_path / "go") for number in range(2)]
    time.sleep(0.5)
    (tmp_path / "go").touch()
    assert [process.wait(timeout=300) for process in processes] == [0, 0]
    lines = [(tmp_path / f"log{number}").read_text().splitlines() for number in range(2)]
    assert sorted(lines[0] + lines[1]) == sorted(f"{row[0]:.6f}" for row in wanted)  # each image once
    assert min(map(len, lines)) >= SHARD_SIZE
    third = PlainEncoder()
    np.testing.assert_array_equal(embed(store, third).vectors, wanted)
    assert third.batches == []


@pytest.mark.slow
def test_a_process_takes_over_from_one_that_is_killed(
    store: EmbeddingStore, wanted: Vectors, tmp_path: Path
) -> None:
    """The second finds every shard done or claimed by the first; when that dies, its claim is free."""
    folder = folder_of(store)
    vectors = {shard.number: wanted[shard.start : shard.stop] for shard in folder.parts()}
    for shard in folder.parts()[1:]:
        folder.write_part(shard, vectors[shard.number])
    hold = (
        "import sys, time; from pathlib import Path; from submissions.embeddings.folder import *\n"
        "folder = EmbeddingFolder.existing(Path(sys.argv[1]))\n"
        "with folder.claim(folder.parts()[0]) as ours: print(ours, flush=True); time.sleep(600)"
    )
    holder = forked.Process([sys.executable, "-c", hold, folder.folder], stdout=subprocess.PIPE)
    assert holder.stdout.readline() == b"True\n"
    with folder.claim(folder.parts()[0]) as ours:
        assert not ours
    second = started(store.root, tmp_path / "log")
    time.sleep(1.5)
    assert second.poll() is None  # waits
    holder.kill()
    holder.wait()
    assert second.wait(timeout=300) == 0
    assert len((tmp_path / "log").read_text().splitlines()) == SHARD_SIZE
    np.testing.assert_array_equal(embed(store, PlainEncoder()).vectors, wanted)


class Killing:
    """Pictures, one of which ends the process that opens it."""

    def __init__(self, pictures: Any, place: int) -> None:
        self.name, self.ids, self.digest = pictures.name, pictures.ids, pictures.digest
        self._pictures, self._place = pictures, place

    def missing(self) -> list[str]:
        return []

    def open(self, place: int) -> Image.Image:
        if place == self._place:
            os.kill(os.getpid(), signal.SIGKILL)
        return self._pictures.open(place)


def test_a_worker_that_is_killed_is_told_and_finished_shards_are_kept(store: EmbeddingStore) -> None:
    pytest.importorskip("torch", reason="worker processes are those of its data loader")
    pictures = shapes_pictures(40)
    with pytest.raises(
        EncoderError, match=r"a process that opens pictures was killed.* Fix: lower batch_size"
    ):
        embed_gallery(
            PlainEncoder(), Killing(pictures, 33), store=store, workers=1, batch_size=5, shard_size=5
        )
    again = PlainEncoder()
    embed_gallery(again, pictures, store=store, workers=0, batch_size=5, shard_size=5)
    assert 0 < sum(again.batches) < 40
