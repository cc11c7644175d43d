"""All baselines of a board: which they are, why others are left out, and what they are called."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmark_world import small_shapes
from benchmark_world.encoders import PlainEncoder

import submissions
from cir_datasets.errors import install_lines
from cir_metrics.errors import MissingExtraError
from submissions import make_rank_file
from submissions.embeddings.store import EmbeddingStore
from submissions.encoders import loading
from submissions.running.baselines import Baseline, baselines, run_baselines

WEIGHTLESS = ["random", "image_only_pixels", "text_only_pixels", "image_text_sum_pixels"]


@pytest.fixture
def with_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether torch is installed where the tests run or not."""
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: name in ("torch", "transformers") or find(name)
    )


@pytest.mark.usefixtures("with_torch")
def test_shapes_have_those_of_the_shipped_encoder_too() -> None:
    found = baselines("shapes/val")
    assert found.left_out == ()
    assert [each.name for each in found.run] == [
        *WEIGHTLESS,
        "image_only-shapes",
        "text_only-shapes",
        "image_text_sum-shapes",
        "captioning-shapes",
        "cirevl-shapes",
    ]
    assert found.run[-1] == Baseline("cirevl", "shapes", "oracle")
    sessions = [each.name for each in baselines("shapes/multiturn_val").run]
    assert [name for name in sessions if name.startswith("image_text_sum-shapes")] == [
        f"image_text_sum-shapes-{how}" for how in ("latest", "average", "weighted", "feedback")
    ]
    assert len(set(sessions)) == len(sessions)


@pytest.mark.slow
def test_without_torch_those_without_weights_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("torch", "transformers", "faiss", "safetensors"):
        monkeypatch.setitem(sys.modules, name, None)
    found = baselines("shapes/val")
    assert [each.name for each in found.run] == WEIGHTLESS
    (why,) = found.left_out
    assert why == (
        "torch and transformers not installed: only the baselines without weights are run. "
        f"For the others: {install_lines('retrieval')}."
    )
    made = dict(run_baselines("shapes/val", found, k=10, device="cpu", search="exact"))
    assert [rank_file.method.backbone.split()[0] for rank_file in made.values()] == ["none"] * 4
    with pytest.raises(
        MissingExtraError, match=r"on PyPI, or use --method image_only_pixels, which needs no torch"
    ):
        make_rank_file("shapes/val", "image_only")
    with pytest.raises(MissingExtraError, match=re.escape(install_lines("retrieval")) + "$"):
        make_rank_file("shapes/val", "cirevl", language="oracle")


def test_elsewhere_an_encoder_is_named() -> None:
    found = baselines("cirr/val")
    assert [each.name for each in found.run] == ["random"]
    assert found.left_out == ("No --encoder given: only the baselines without weights are run.",)
    found = baselines("cirr/val", encoder="openai/clip-vit-base-patch32")
    assert [each.name for each in found.run] == [
        "random",
        "image_only-clip-vit-base-patch32",
        "text_only-clip-vit-base-patch32",
        "image_text_sum-clip-vit-base-patch32",
    ]
    assert found.left_out == ("No --language given: captioning, cirevl left out.",)
    found = baselines("circled/cirr_val", encoder="/models/clip/", language="openai:gpt-4o-mini")
    assert found.left_out == ()
    assert found.run[-1] == Baseline("cirevl", "/models/clip/", "openai:gpt-4o-mini", "feedback")
    assert found.run[-1].name == "cirevl-clip-feedback"


def test_each_is_run_once_with_one_encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[Any] = []

    def load(name: str, **options: Any) -> PlainEncoder:
        loaded.append((name, options))
        return PlainEncoder(name)

    monkeypatch.setattr(loading, "load_encoder", load)
    benchmark = small_shapes("multiturn_val", rows=3)
    chosen = baselines(benchmark, encoder="a/plain", language="oracle")
    store = EmbeddingStore(tmp_path)
    made = dict(run_baselines(benchmark, chosen, device="cpu", store=store, workers=0))
    assert loaded == [("a/plain", {"revision": None, "device": "cpu", "dtype": "float32"})]
    assert tuple(made) == chosen.run
    names = [rank_file.method.name for rank_file in made.values()]
    assert len(set(names)) == len(names)
    for each, rank_file in made.items():
        assert submissions.validate(rank_file, benchmark).ok
        if each.aggregation:
            assert rank_file.method.aggregation.startswith(each.aggregation)


def test_the_command_of_a_baseline_is_whole() -> None:
    assert Baseline("cirevl", "shapes", "oracle", "feedback").command("shapes/multiturn_val", "run.json") == (
        "cir run --benchmark shapes/multiturn_val --method cirevl --encoder shapes --language oracle "
        "--aggregation feedback --out run.json"
    )
