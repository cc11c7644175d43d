"""What a Ray worker may have, and what is said where Ray is not installed: no cluster is started here."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from says import says

from cir_datasets.errors import install_lines
from cir_metrics.errors import CallError, MissingExtraError, UnknownNameError
from submissions.cluster import Cluster, RayEngine, cluster_of, decided, engine_of
from submissions.embeddings.pictures import ShapesPictures
from submissions.embeddings.ray import embed_gallery_on_ray
from submissions.embeddings.store import EmbeddingStore
from submissions.encoders.protocol import Encoder

SMALL = {"CPU": 4.0, "memory": 1e9}
LARGE = {"CPU": 16.0, "GPU": 2.0}


def load() -> Encoder:
    raise AssertionError("nothing is to be loaded")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"workers": 0}, "workers=0, cpus=1, retries=3; workers are 1 or more, cpus above 0, retries 0 or"),
        ({"cpus": 0}, "workers=None, cpus=0, retries=3"),
        ({"retries": -1}, "workers=None, cpus=1, retries=-1"),
        ({"gpus": -0.5}, "gpus=-0.5; a worker's GPUs are 0 or more."),
        ({"address": "ray://head:10001"}, "ray://head:10001: Ray's client protocol cannot carry this. Fix:"),
    ],
)
def test_a_cluster_of_impossible_size_or_address_is_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(CallError) as caught:
        Cluster(**options)
    assert str(caught.value).startswith(text)


@pytest.mark.parametrize(
    ("machines", "asked", "gpus"),
    [([SMALL], None, 0), ([SMALL, LARGE], None, 1), ([SMALL, LARGE], 0, 0), ([LARGE], 0.5, 0.5)],
)
def test_a_worker_has_a_gpu_where_there_is_one(
    machines: list[dict[str, float]], asked: float | None, gpus: float
) -> None:
    assert decided(Cluster(gpus=asked), machines) == Cluster(gpus=gpus)


def test_processors_and_gpus_must_be_on_one_machine() -> None:
    with pytest.raises(CallError) as caught:
        decided(Cluster(cpus=8), [{"CPU": 16.0}, {"CPU": 4.0, "GPU": 1.0}])
    says(
        caught,
        "8 processors and 1 GPUs",
        "no machine of the cluster",
        "16 and 0, 4 and 1",
        "Fix: ask for less, or add machines",
    )


@pytest.mark.parametrize("options", [{"batch_size": 0}, {"readers": -1}])
def test_a_batch_size_or_number_of_readers_out_of_range_is_refused(
    options: dict[str, int], tmp_path: Path
) -> None:
    pytest.importorskip("ray", reason="Ray is not installed (extra `distributed`)")
    with pytest.raises(CallError, match=r"batch_size=.+, readers=.+; a batch has 1 image or more, readers"):
        embed_gallery_on_ray(load, ShapesPictures("shapes/val", ["val-000000"]), **options)


def test_without_ray_the_message_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError) as caught:
        embed_gallery_on_ray(
            load, ShapesPictures("shapes/val", ["val-000000"]), store=EmbeddingStore(tmp_path)
        )
    says(caught, "many machines needs ray", f"Fix: {install_lines('distributed')}")


def test_a_cluster_is_named_by_engine_and_address() -> None:
    pytest.importorskip("ray")
    cluster = cluster_of("ray", "auto")
    assert cluster.address == "auto"
    assert isinstance(engine_of("ray", None), RayEngine)
    assert engine_of("local", None) is None


def test_an_unknown_engine_and_an_address_without_a_cluster_are_refused() -> None:
    with pytest.raises(
        UnknownNameError, match=r"no engine 'rya'\. Did you mean 'ray'\? Fix: use local or ray"
    ):
        engine_of("rya", None)
    with pytest.raises(CallError, match="--address: of a Ray cluster"):
        engine_of("local", "auto")
