"""The trainings' calls of 0.1 still train, and warn: a folder of today's call holds the same training."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `retrieval`")
pytest.importorskip("transformers", reason="needs the extra `retrieval`")

from benchmark_world.embeddings import shapes_pictures
from retrieval_models import save_clip

from cir_metrics.errors import CirError
from submissions.embeddings.store import EmbeddingStore
from submissions.encoders.loading import load_encoder
from submissions.encoders.protocol import Encoder
from submissions.errors import CheckpointError
from submissions.training.composition_training import train_composition
from submissions.training.concat_training import train_concat
from submissions.training.loop import Plan
from submissions.training.magiclens_training import train_magiclens
from submissions.training.pic2word_training import train_pic2word
from submissions.training.training_options import (
    ConcatTraining,
    MagicLensTraining,
    Pic2WordTraining,
    TirgTraining,
)

pytestmark = pytest.mark.usefixtures("one_thread")

PLAN = Plan(steps=2, batch_size=4, learning_rate=0.01, seed=3)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    return load_encoder(save_clip(tmp_path_factory.mktemp("models") / "clip"), device="cpu")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory, encoder: Encoder) -> dict[str, Any]:
    return {"store": EmbeddingStore(tmp_path_factory.mktemp("store"))}


def held_to(train: Any, training: Any, old: tuple[Any, ...], new: dict[str, Any], **named: Any) -> None:
    """Train by today's call; that of 0.1 takes the training as its own, and refuses it with another seed."""
    done = train(training, **new)
    with pytest.warns(DeprecationWarning, match=f"{type(training).__name__}"):
        assert train(*old, **named).last_loss == done.last_loss
    other = {"plan": Plan(2, 4, 0.01, seed=4)} if "plan" in named else {"seed": 4}
    with (
        pytest.warns(DeprecationWarning, match="goes with 0.3"),
        pytest.raises(CheckpointError, match="seed 3, not 4"),
    ):
        train(*old, **{**named, **other})


def test_concat(tmp_path: Path, encoder: Encoder, kept: dict[str, Any]) -> None:
    training = ConcatTraining(
        **PLAN.numbers, encoder=encoder, benchmark="shapes/val", out=tmp_path, hidden_size=8
    )
    held_to(train_concat, training, (encoder, "shapes/val", tmp_path), kept, plan=PLAN, hidden_size=8, **kept)


def test_pic2word(tmp_path: Path, encoder: Encoder, kept: dict[str, Any]) -> None:
    pictures = shapes_pictures(6)
    training = Pic2WordTraining(**PLAN.numbers, encoder=encoder, out=tmp_path, hidden_size=8)
    held_to(
        train_pic2word,
        training,
        (encoder, pictures, tmp_path),
        {"pictures": pictures, **kept},
        plan=PLAN,
        hidden_size=8,
        **kept,
    )


def test_magiclens(tmp_path: Path, encoder: Encoder) -> None:
    training = MagicLensTraining(
        **PLAN.numbers, encoder=encoder, benchmark="shapes/val", out=tmp_path, layers=1, heads=1
    )
    held_to(
        train_magiclens,
        training,
        (encoder, "shapes/val", tmp_path),
        {},
        plan=PLAN,
        layers=1,
        heads=1,
        batch_size=16,
    )


def test_tirg(tmp_path: Path, encoder: Encoder, kept: dict[str, Any]) -> None:
    sizes = {"epochs": 1, "epoch_steps": 2, "batch_size": 4, "seed": 3}
    training = TirgTraining(
        **sizes,
        encoder=encoder,
        benchmark="shapes/val",
        out=tmp_path,
        hidden_size=8,
        device="cpu",
        learning_rate=1e-5,
    )
    held_to(
        train_composition,
        training,
        (encoder, "shapes/val", tmp_path),
        kept,
        composition="tirg",
        hidden_size=8,
        device="cpu",
        shape=None,
        init=None,
        **sizes,
        **kept,
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"composition": "tirgg"},
            "no composition 'tirgg'. Did you mean 'tirg'? Fix: use one of cirplant, tirg.",
        ),
        ({"composition": "tirg", "init": "bert"}, "init='bert': TirgTraining has no such option."),
    ],
)
@pytest.mark.filterwarnings("ignore:train_composition:DeprecationWarning")
def test_what_the_old_call_refuses(options: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(CirError, match=re.escape(words)):
        train_composition("shapes", "shapes/val", tmp_path, **options)


def test_a_plan_is_given_by_name(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="takes 3 positional arguments"):
        train_concat("shapes", "shapes/val", tmp_path, PLAN)
