"""A training that goes on from a trained checkpoint: its weights, and what its files say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from retrieval_models import save_clip

from cir_metrics.errors import CallError, CirError
from submissions import make_rank_file
from submissions.encoders.loading import load_encoder
from submissions.errors import CheckpointError
from submissions.methods.heads.checkpoints import read_tensors
from submissions.training.composition_training import train_composition
from submissions.training.concat_training import train_concat
from submissions.training.magiclens_training import train_magiclens
from submissions.training.pic2word_training import train_pic2word
from submissions.training.training_options import (
    CirplantTraining,
    ConcatTraining,
    MagicLensTraining,
    Pic2WordTraining,
    TirgTraining,
)

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore::submissions.errors.TruncationWarning"),
]

COMPOSED = {"epochs": 1, "epoch_steps": 2, "hidden_size": 8}
SIZES = {"layers": 1, "heads": 2, "feed_forward": 8}
KINDS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "concat": (train_concat, ConcatTraining, {"steps": 2}),
    "pic2word": (train_pic2word, Pic2WordTraining, {"steps": 2}),
    "magiclens": (train_magiclens, MagicLensTraining, {"steps": 2, "layers": 1, "heads": 2}),
    "tirg": (train_composition, TirgTraining, COMPOSED),
    "cirplant": (
        train_composition,
        CirplantTraining,
        {**COMPOSED, **SIZES},
    ),
}


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_clip(tmp_path_factory.mktemp("models") / "clip")


def run(name: str, folder: Path, clip: Path, **options: Any) -> Any:
    train, kind, usual = KINDS[name]
    common = {"benchmark": "shapes/val", "encoder": clip, "device": "cpu", "batch_size": 8}
    return train(kind(out=folder, **(common | usual | options)))


def config(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "config.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", KINDS)
def test_a_training_begins_with_the_weights_and_says_so(name: str, tmp_path: Path, clip: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    run(name, first, clip, learning_rate=0.01)
    # A rate of almost nothing leaves the weights as they began.
    later = {"learning_rate": 1e-12, "seed": 7, "from_checkpoint": first}
    if name in ("tirg", "cirplant"):
        later |= dict.fromkeys(["hidden_size", *(SIZES if name == "cirplant" else ())])
    run(name, second, clip, **later)
    one, two = (read_tensors(folder / "model.safetensors") for folder in (first, second))
    assert one.keys() == two.keys()
    parameters = [key for key in one if "running_" not in key and "num_batches" not in key]
    assert all(torch.allclose(one[key], two[key], atol=1e-6) for key in parameters)
    other = tmp_path / "other"
    run(name, other, clip, learning_rate=1e-12, seed=7)
    begun_anew = read_tensors(other / "model.safetensors")
    assert not all(torch.allclose(one[key], begun_anew[key], atol=1e-3) for key in parameters)
    # The folder holds the later training, which is not the one that begins anew.
    assert run(name, second, clip, **later).resumed_at == 2
    with pytest.raises(CheckpointError, match="other settings"):
        run(name, second, clip, **{**later, "from_checkpoint": None})
    said = config(second)["training"]["from"]["trained_on"]
    assert said == (["pictures of shapes/val"] if name == "pic2word" else ["shapes/val"])


def test_a_rank_file_names_all_that_was_trained_on(tmp_path: Path, clip: Path) -> None:
    run("concat", tmp_path / "a", clip)
    run("concat", tmp_path / "b", clip, benchmark="shapes/multiturn_val", from_checkpoint=tmp_path / "a")
    run("concat", tmp_path / "c", clip, seed=3, from_checkpoint=tmp_path / "b")
    made = make_rank_file("shapes/val", "concat", checkpoint=tmp_path / "c", encoder=load_encoder(clip))
    assert made.method.trained_on == ["shapes/val", "shapes/multiturn_val"]


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("concat", {"hidden_size": 5}, "hidden_size=5, and the checkpoint of --from has"),
        ("magiclens", {"layers": 3}, "layers=3, and the checkpoint of --from has 1"),
        ("tirg", {"hidden_size": 9}, "hidden_size=9, and the checkpoint of --from has 8"),
        ("cirplant", {"recipe": "paper"}, "normalised_input=True, and the checkpoint of --from has False"),
    ],
)
def test_other_sizes_than_the_checkpoints_are_refused(
    tmp_path: Path, clip: Path, name: str, options: dict[str, Any], words: str
) -> None:
    run(name, tmp_path / "a", clip)
    with pytest.raises(CallError) as refused:
        run(name, tmp_path / "b", clip, from_checkpoint=tmp_path / "a", **options)
    assert words in str(refused.value)
    assert not (tmp_path / "b").exists()


def test_checkpoints_that_do_not_fit_are_refused(tmp_path: Path, clip: Path) -> None:
    run("concat", tmp_path / "a", clip)
    with pytest.raises(CirError, match="model_type is 'concat', not 'tirg'"):
        run("tirg", tmp_path / "b", clip, from_checkpoint=tmp_path / "a")
    run("magiclens", tmp_path / "m", clip)
    other = save_clip(tmp_path / "clip", seed=5)
    with pytest.raises(CheckpointError, match="its CLIP is not"):
        run("magiclens", tmp_path / "n", other, from_checkpoint=tmp_path / "m")
    with pytest.raises(CheckpointError, match="of the family clip, not magiclens"):
        run("magiclens", tmp_path / "n", clip, from_checkpoint=clip)
    with pytest.raises(CallError, match="--init and --from both give the weights"):
        CirplantTraining(benchmark="shapes/val", out=tmp_path, init=tmp_path, from_checkpoint=tmp_path)
