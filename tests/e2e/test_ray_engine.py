"""Embedding on a Ray cluster of two machines of one processor each, which both are this machine."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import forked
import numpy as np
import pytest
from PIL import Image
from retrieval_models import save_clip
from typer.testing import CliRunner

import cir_datasets
from cir_datasets.errors import MissingImagesError
from cir_metrics.errors import CallError
from submissions.cluster import Cluster, connected
from submissions.embeddings.embed import Timing, embed_gallery
from submissions.embeddings.folder import Embeddings
from submissions.embeddings.pictures import pictures_of
from submissions.embeddings.ray import embed_gallery_on_ray
from submissions.embeddings.store import EmbeddingStore
from submissions.encoders.loading import load_encoder
from submissions.encoders.protocol import Identity
from submissions.errors import EncoderError, SubmissionError

pytest.importorskip("ray", reason="Ray is not installed (extra `distributed`)")

pytestmark = pytest.mark.slow

IDS = tuple(f"image_{number:03d}" for number in range(90))
SHARDS = {"shard_size": 10, "batch_size": 4}
MEMORY = 80 << 20


class Machines:
    """A cluster whose machines can be taken away."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster as Local

        # The machine that knows the others gives no processor to workers.
        head = {"num_cpus": 0, "object_store_memory": MEMORY, "include_dashboard": False}
        self.local = Local(initialize_head=True, head_node_args=head)
        self.nodes: list[Any] = []
        for _ in range(2):
            self.add()

    @property
    def address(self) -> str:
        return str(self.local.address)

    def add(self) -> None:
        self.nodes.append(self.local.add_node(num_cpus=1, object_store_memory=MEMORY))

    def lose(self, name: str) -> None:
        (node,) = [one for one in self.nodes if one.node_id == name]
        self.nodes.remove(node)
        self.local.remove_node(node, allow_graceful=False)


@pytest.fixture(scope="module")
def machines() -> Iterator[Machines]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        import ray

        # Workers cannot import this file.
        ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
        made = Machines()
        yield made
        made.local.shutdown()


@dataclass(frozen=True)
class Means:
    """An encoder without weights: mean colours of the quarters of a picture."""

    revision: str = "1"

    @property
    def identity(self) -> Identity:
        return Identity("means", self.revision, "means", "", "float32", 12)

    def encode_images(self, images: Sequence[Image.Image]) -> Any:
        values = np.stack([np.asarray(image.resize((2, 2), Image.Resampling.BOX)) for image in images])
        rows = values.reshape(len(images), 12).astype(np.float32) + 1
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def encode_texts(self, texts: Sequence[str]) -> Any:
        raise NotImplementedError


@dataclass(frozen=True)
class Invented:
    """Pictures of noise, which tell a file that they were opened, and do what the test says before."""

    log: Path
    before: Callable[[int], None] = lambda place: None
    name: str = "invented"
    ids: Sequence[str] = IDS
    digest: str = "0" * 64

    def missing(self) -> list[str]:
        return []

    def open(self, place: int) -> Image.Image:
        self.before(place)
        with self.log.open("a") as file:
            file.write(f"{place}\n")
        noise = np.random.default_rng(place).integers(0, 256, (8, 8, 3), dtype=np.uint8)
        return Image.fromarray(noise)

    def opened(self) -> set[int]:
        return {int(line) for line in self.log.read_text().split()}


def files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def local(folder: Path) -> dict[str, bytes]:
    """What the engine without Ray leaves in the store."""
    embed_gallery(
        Means(), Invented(folder / "local.log"), store=EmbeddingStore(folder / "local"), workers=0, **SHARDS
    )
    return files(folder / "local")


def on_ray(
    pictures: Invented, to: Path | EmbeddingStore, where: Cluster, load: Any = Means, **more: Any
) -> Embeddings:
    """The pictures embedded into a store, or into `ray` below a folder."""
    store = EmbeddingStore(to / "ray") if isinstance(to, Path) else to
    return embed_gallery_on_ray(load, pictures, store=store, cluster=where, **SHARDS, **more)


def test_a_worker_that_fits_no_machine_and_an_absent_cluster_are_refused(
    machines: Machines, tmp_path: Path
) -> None:
    def embed(where: Cluster) -> None:
        on_ray(Invented(tmp_path / "log"), tmp_path, where)

    with pytest.raises(
        CallError, match=r"a worker is to have 3 processors and 0 GPUs, and no machine .* ask"
    ):
        embed(Cluster(address=machines.address, cpus=3))
    with pytest.raises(CallError, match=r"a worker is to have 1 processors and 1 GPUs, and no machine"):
        embed(Cluster(address=machines.address, gpus=1))
    with pytest.raises(CallError, match=r"no Ray cluster can be had at 127\.0\.0\.1:1: .*Fix: start one"):
        embed(Cluster(address="127.0.0.1:1"))


@pytest.fixture(scope="module")
def joined(machines: Machines) -> Iterator[Machines]:
    """The machines, with one connection for all tests from here on: each one of its own costs new workers."""
    with connected(Cluster(address=machines.address)):
        yield machines


def test_a_worker_that_is_killed_is_replaced_and_nothing_changes(joined: Machines, tmp_path: Path) -> None:
    killed = tmp_path / "killed"

    def die_once(place: int) -> None:
        if place == 45 and not killed.exists():
            killed.write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)

    pictures = Invented(tmp_path / "log", die_once)
    made = on_ray(pictures, tmp_path, Cluster(address=joined.address))
    assert int(killed.read_text()) != os.getpid()
    assert pictures.opened() == set(range(90))
    assert list(made.ids) == list(IDS)
    assert files(tmp_path / "ray") == local(tmp_path)


def test_a_machine_that_is_lost_is_done_without(joined: Machines, tmp_path: Path) -> None:
    lost = tmp_path / "lost"

    def hang_once(place: int) -> None:
        if place == 45 and not lost.exists():
            import ray

            part = lost.with_suffix(".part")
            part.write_text(ray.get_runtime_context().get_node_id())
            part.rename(lost)
            time.sleep(600)

    def pull_the_plug() -> None:
        while not lost.exists():
            time.sleep(0.05)
        joined.lose(lost.read_text())

    plug = threading.Thread(target=pull_the_plug, daemon=True)
    plug.start()
    on_ray(Invented(tmp_path / "log", hang_once), tmp_path, Cluster(address=joined.address))
    plug.join()
    joined.add()
    assert files(tmp_path / "ray") == local(tmp_path)


def test_a_shard_that_kills_every_worker_is_told_and_the_rest_is_kept(
    joined: Machines, tmp_path: Path
) -> None:
    def die(place: int) -> None:
        if place == 85:
            os.kill(os.getpid(), signal.SIGKILL)

    store = EmbeddingStore(tmp_path / "ray")
    where = Cluster(address=joined.address, workers=1, retries=1)
    text = r"a worker died 2 times at images 80 to 89 of invented, perhaps"
    with pytest.raises(SubmissionError, match=text):
        on_ray(Invented(tmp_path / "1", die), store, where)
    (entry,) = store.list()
    assert entry.done == 80
    # Resumed: what is finished is not opened again, by either engine.
    pictures = Invented(tmp_path / "2")
    on_ray(pictures, store, where)
    assert pictures.opened() == set(range(80, 90))
    assert files(tmp_path / "ray") == local(tmp_path)
    on_ray(Invented(tmp_path / "3"), store, where)
    assert not (tmp_path / "3").exists()


def test_a_real_encoder_gives_the_vectors_of_the_local_engine(joined: Machines, tmp_path: Path) -> None:
    folder = save_clip(tmp_path / "clip")
    load = functools.partial(load_encoder, str(folder), device="cpu", threads=1)
    pictures = pictures_of(cir_datasets.load("shapes/val"), ids=cir_datasets.load("shapes/val").gallery[:100])
    options: dict[str, Any] = {"shard_size": 40, "batch_size": 16}
    made = embed_gallery_on_ray(
        load,
        pictures,
        store=EmbeddingStore(tmp_path / "ray"),
        cluster=Cluster(address=joined.address),
        readers=1,
        **options,
    )
    same = embed_gallery(load(), pictures, store=EmbeddingStore(tmp_path / "local"), **options)
    assert made.vectors.shape == (100, 24)
    assert made.identity == same.identity
    assert files(tmp_path / "ray") == files(tmp_path / "local")


def test_another_encoder_on_a_worker_is_refused(joined: Machines, tmp_path: Path) -> None:
    asking = os.getpid()

    def load() -> Means:
        if os.getpid() == asking:
            return Means()
        return Means("2")

    with pytest.raises(EncoderError, match=r"^on .+: the encoder is .*revision='2'.*, not .*revision='1'"):
        on_ray(Invented(tmp_path / "log"), tmp_path, Cluster(address=joined.address, workers=1), load)
    assert not (tmp_path / "log").exists()


def test_pictures_that_workers_lack_are_an_error_and_never_zeros(joined: Machines, tmp_path: Path) -> None:
    asking = os.getpid()

    def absent(place: int) -> None:
        if place >= 20 and os.getpid() != asking:
            raise MissingImagesError(f"{IDS[place]} is not here")

    pictures = Invented(tmp_path / "log", absent)
    where = Cluster(address=joined.address, workers=1)
    store = EmbeddingStore(tmp_path / "ray")
    # Which of the shards that lack pictures is heard of first is Ray's choice.
    with pytest.raises(MissingImagesError, match=r"^on .+: image_0[2-8]0 is not here$"):
        on_ray(pictures, store, where)
    with pytest.raises(MissingImagesError, match=r"'image_0[2-8]0' can be opened here and not on a worker"):
        on_ray(pictures, store, where, skip_missing=True)
    (entry,) = store.list()
    assert entry.done in (0, 10, 20)


def test_pictures_that_nobody_can_open_get_zeros_where_that_is_asked_for(
    joined: Machines, tmp_path: Path
) -> None:
    def damaged(place: int) -> None:
        if place in (3, 88):
            raise MissingImagesError(f"{IDS[place]} is damaged")

    pictures = Invented(tmp_path / "log", damaged)
    where = Cluster(address=joined.address, workers=1)
    store = EmbeddingStore(tmp_path / "ray")
    made = on_ray(pictures, store, where, skip_missing=True)
    assert made.missing == {"image_003", "image_088"}
    assert (np.flatnonzero(~made.vectors.any(axis=1)) == [3, 88]).all()
    with pytest.raises(
        MissingImagesError, match=r"2 of 90 images are missing or cannot be read:\n  image_003"
    ):
        on_ray(pictures, store, where)


def test_a_shard_that_another_process_is_at_is_waited_for(joined: Machines, tmp_path: Path) -> None:
    pictures = Invented(tmp_path / "log")
    store = EmbeddingStore(tmp_path / "ray")
    folder = store.folder(Means().identity, pictures, shard_size=SHARDS["shard_size"])
    folder.prepare()
    claimed, opened = threading.Event(), set[int]()

    def hold_and_give_up() -> None:
        with folder.claim(folder.parts()[4]):
            claimed.set()
            while len(folder.parts_to_do()) > 1:
                time.sleep(0.05)
            opened.update(pictures.opened())

    other = threading.Thread(target=hold_and_give_up, daemon=True)
    other.start()
    claimed.wait()
    where = Cluster(address=joined.address)
    on_ray(pictures, store, where)
    other.join()
    assert opened == set(range(90)) - set(range(40, 50))
    assert pictures.opened() == set(range(90))
    assert files(tmp_path / "ray") == local(tmp_path)


def test_the_command_embeds_on_a_cluster(
    joined: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from leaderboard.cli import build

    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path))
    options = ["embed", "-b", "shapes/val", "-e", str(save_clip(tmp_path / "clip")), "--device", "cpu"]
    where = ["--engine", "ray", "--address", joined.address, "--max-workers", "1", "--cpus-per-worker", "1"]
    done = CliRunner().invoke(build(), [*options, *where])
    assert done.exit_code == 0, done.output
    assert np.load(done.stdout.strip(), mmap_mode="r").shape == (3940, 24)
    again = CliRunner().invoke(build(), options)
    assert again.stdout == done.stdout
    assert "0 images encoded: all were in the store" in again.stderr


INTERRUPTED = """
import functools, sys, time
import cir_datasets
from submissions.encoders.loading import load_encoder
from submissions.embeddings.pictures import pictures_of
from submissions.cluster import Cluster
from submissions.embeddings.ray import embed_gallery_on_ray
from submissions.embeddings.store import EmbeddingStore

model, store, address = sys.argv[1:]
benchmark = cir_datasets.load("shapes/val")
embed_gallery_on_ray(
    functools.partial(load_encoder, model, device="cpu", threads=1),
    pictures_of(benchmark, ids=benchmark.gallery[:600]),
    store=EmbeddingStore(store),
    cluster=Cluster(address=address, workers=1),
    shard_size=8,
    batch_size=8,
)
"""


def test_an_interrupted_call_keeps_its_shards_for_any_engine(joined: Machines, tmp_path: Path) -> None:
    model = save_clip(tmp_path / "clip")
    command = [sys.executable, "-c", INTERRUPTED, str(model), str(tmp_path / "ray"), joined.address]
    with forked.Process(command, stderr=subprocess.PIPE, text=True) as asking:
        ray = EmbeddingStore(tmp_path / "ray")
        while not any(entry.done for entry in ray.list()) and asking.poll() is None:
            time.sleep(0.02)
        asking.send_signal(signal.SIGINT)
        _, printed = asking.communicate(timeout=120)
    assert asking.returncode == -signal.SIGINT or "KeyboardInterrupt" in printed, printed
    store = EmbeddingStore(tmp_path / "ray")
    (entry,) = store.list()
    assert 0 < entry.done < entry.images
    encoder = load_encoder(str(model), device="cpu", threads=1)
    pictures = pictures_of(cir_datasets.load("shapes/val"), ids=cir_datasets.load("shapes/val").gallery[:600])
    options: dict[str, Any] = {"shard_size": 8, "batch_size": 8, "workers": 0}
    timing = Timing()
    made = embed_gallery(encoder, pictures, store=store, timing=timing, **options)
    assert timing.images == entry.images - entry.done
    whole = embed_gallery(encoder, pictures, store=EmbeddingStore(tmp_path / "local"), **options)
    assert made.vectors.tobytes() == whole.vectors.tobytes()
