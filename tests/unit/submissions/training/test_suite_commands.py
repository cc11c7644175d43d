"""`cir train` over a suite: every trainer, early stopping on the suite's mean, and going on from there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import datasets_publishers as made
import numpy as np
import pytest
import yaml
from benchmark_world.suite import QUERIES, write_home, write_pictures
from cir_here import cir
from datasets_pictures import write_flat, write_nlvr2
from retrieval_models import save_bert, save_clip

from cir_datasets.registry import members_of

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore::cir_datasets.errors.UnpinnedDataWarning"),
    pytest.mark.filterwarnings("ignore::submissions.errors.TruncationWarning"),
]

TRAIN, VAL = members_of("fashioniq/train"), members_of("fashioniq/val")
LAYERS = {"layers": 1, "heads": 2, "feed_forward": 8}
COMPOSED = {"hidden_size": 8, "epochs": 2, "epoch_steps": 2, "caption_rule": "trim_and"}
KINDS: dict[str, dict[str, Any]] = {
    "concat": {"steps": 4, "caption_rule": "trim_and"},
    "magiclens": {"steps": 4, "caption_rule": "trim_and", **LAYERS},
    "pic2word": {"steps": 4},
    "tirg": COMPOSED,
    "cirplant": {**COMPOSED, **LAYERS},
}

MANY: dict[str, Any] = {**COMPOSED, "epochs": 12, "learning_rate": 0.003}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny FashionIQ, of two splits, with pictures, and a CLIP."""
    root = tmp_path_factory.mktemp("fashioniq")
    for split in ("train", "val"):
        write_home(root / "home", split)
    write_pictures(root / "pictures")
    save_clip(root / "clip")
    return root


@pytest.fixture(autouse=True)
def publishers(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CIR_DATA_HOME", str(world / "home"))
    monkeypatch.setenv("CIR_CACHE_HOME", str(world / "cache"))
    monkeypatch.setenv("CIR_VERIFICATION_MODE", "no_checks")


def train(name: str, world: Path, out: Path, *words: object, **options: Any) -> Any:
    """What the config of `cir train NAME` says of its training."""
    usual = {"benchmark": "fashioniq/train", "encoder": str(world / "clip"), "batch_size": 4, "device": "cpu"}
    file = out.with_suffix(".yaml")
    file.write_text(yaml.safe_dump({**usual, "images": str(world / "pictures"), **options}), "utf-8")
    done = cir("train", name, *map(str, ["--config", file, "--out", out, *words]))
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{out}\n"
    return json.loads((out / "config.json").read_text(encoding="utf-8"))["training"]


@pytest.mark.parametrize("name", KINDS)
def test_each_trainer_takes_a_suite_and_goes_on_from_its_checkpoint(
    name: str, world: Path, tmp_path: Path
) -> None:
    before = train(name, world, tmp_path / "before", **KINDS[name])
    assert before["members"] == list(TRAIN)
    later = {key: value for key, value in KINDS[name].items() if key not in LAYERS or name == "magiclens"}
    after = train(
        name, world, tmp_path / "after", "--from", tmp_path / "before", "--benchmark", TRAIN[1], **later
    )
    assert "members" not in after
    known = [f"pictures of {member}" for member in TRAIN] if name == "pic2word" else list(TRAIN)
    assert after["from"]["trained_on"] == known
    encoder = [] if name == "magiclens" else ["--encoder", world / "clip"]
    words = ["-b", VAL[0], "-m", name, "--checkpoint", tmp_path / "after", *encoder, "--device", "cpu"]
    (tmp_path / "run.yaml").write_text("caption_rule: trim_and\n", "utf-8")
    words += ["--images", world / "pictures", "--config", tmp_path / "run.yaml", "-o", tmp_path / "run.json"]
    done = cir("run", *map(str, words))
    assert done.returncode == 0, done.stderr
    method = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))["method"]
    assert method["trained_on"] == known  # the second was on one of these
    assert method["name"]


def stop(values: list[float], patience: int) -> int:
    """Epochs that a training of these recalls has."""
    for epoch in range(len(values)):
        if epoch - int(np.argmax(values[: epoch + 1])) >= patience:
            return epoch + 1
    return len(values)


def histories(world: Path, folder: Path, seed: int) -> dict[str, list[float]]:
    """Recall@10 after each epoch, measured on each member, on their mean and on all their queries as one."""
    of_members = {
        member: train("tirg", world, folder / f"{seed} {place}", validation=member, seed=seed, **MANY)
        for place, member in enumerate(VAL)
    }
    found = {name: [each["recall@10"] for each in done["history"]] for name, done in of_members.items()}
    values, sizes = np.array([*found.values()]), [*QUERIES.values()]
    micro = np.average(values, axis=0, weights=sizes)
    return {**found, "mean": values.mean(axis=0).tolist(), "micro": micro.tolist()}


def test_patience_counts_epochs_of_the_mean_of_a_suite(world: Path, tmp_path: Path) -> None:
    # Of these trainings one which the mean ends elsewhere than any other number does, and before its end.
    seed, patience, mean = next(
        (seed, patience, found["mean"])
        for seed in (4, 2, 0, 1, 3)
        for found in [histories(world, tmp_path, seed)]
        for patience in range(1, MANY["epochs"])
        for ends in [{name: stop(values, patience) for name, values in found.items()}]
        if ends.pop("mean") not in {MANY["epochs"], *ends.values()}
    )
    options = {**MANY, "seed": seed, "patience": patience}
    training = train("tirg", world, tmp_path / "suite", validation="fashioniq/val", **options)
    history = [each["recall@10"] for each in training["history"]]
    assert history == pytest.approx(mean[: stop(mean, patience)])
    assert training["best"] == training["history"][int(np.argmax(history))]
    assert training["trained_steps"] == 2 * len(history) < training["steps"]


def test_init_is_a_bert_and_from_what_was_trained_on_it(world: Path, tmp_path: Path) -> None:
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "is", "made", "up", "longer"]
    numbers = {word: number for number, word in enumerate(words)}
    save_bert(tmp_path / "bert", {**sizes, "vocab_size": len(words)}, numbers)
    few = {"epochs": 1, "epoch_steps": 2, "caption_rule": "trim_and"}
    first = train("cirplant", world, tmp_path / "first", "--init", tmp_path / "bert", **few)
    second = train("cirplant", world, tmp_path / "second", "--from", tmp_path / "first", **few)
    assert first["init"]
    assert second["init"] is None
    assert second["sizes"] == first["sizes"]
    assert second["words_sha256"] == first["words_sha256"]


def test_one_model_over_the_training_subsets_of_circled(
    world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, pictures = tmp_path / "home", tmp_path / "pictures"
    members = members_of("circled/train")
    for member in members:
        subset = member.partition("/")[2]
        made.write_source(home, subset)
        made.write_circled(home, subset)
        others = (
            made.cirr_images("train")
            if subset == "cirr_train"
            else made.fashioniq_images(subset.split("_")[1], "train")
        )

        def six_of_two_targets(sessions: Any, target: str = others[-1]) -> None:
            sessions[1]["ground_truth_ids"] = [target]
            for number in range(2, 6):
                sessions.append(
                    {**sessions[number - 2], "session_id": f"{sessions[0]['subset']}_{number:04d}"}
                )

        made.edit(home / f"CIRCLED/data/{subset}.json", six_of_two_targets)
        if subset == "cirr_train":
            write_nlvr2(pictures / "nlvr2", "train", others)
        else:
            write_flat(pictures / "fashion-iq", others)
    monkeypatch.setenv("CIR_DATA_HOME", str(home))
    monkeypatch.setenv("CIR_IMAGES", str(pictures))
    options = {**COMPOSED, "images": None, "caption_rule": None, "hold_out": 0.34, "patience": 1}
    training = train("tirg", world, tmp_path / "head", benchmark="circled/train", **options)
    assert training["members"] == list(members)
    assert training["best"]["recall@10"] >= 0
