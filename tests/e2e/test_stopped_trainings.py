"""Trainings that are killed or interrupted go on where they were."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import forked
import pytest
from interruptible import wait_for

pytest.importorskip("torch", reason="needs the extra `retrieval`")
pytest.importorskip("transformers", reason="needs the extra `retrieval`")

import datasets_publishers as made
import torch
from datasets_pictures import write_nlvr2
from head_worlds import few_pictures
from retrieval_models import save_clip

from submissions.embeddings.store import EmbeddingStore
from submissions.encoders.loading import load_encoder
from submissions.training.loop import STATE, Plan
from submissions.training.pic2word_training import train_pic2word

TRAIN = """
import sys, torch
from pathlib import Path
from head_worlds import few_pictures
from submissions.encoders.loading import load_encoder
from submissions.training.loop import Plan
from submissions.training.pic2word_training import train_pic2word
from submissions.embeddings.store import EmbeddingStore
torch.set_num_threads(1)
model, out, store = map(Path, sys.argv[1:])
train_pic2word(
    load_encoder(model), few_pictures(20), out, plan=Plan(120, 8, 0.001),
    store=EmbeddingStore(store), save_seconds=0.0,
)
"""


@pytest.mark.slow
def test_a_training_that_was_killed_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    model = save_clip(tmp_path / "model")
    out, store = tmp_path / "killed", tmp_path / "store"
    fixtures = str(Path(__file__).parents[1] / "fixtures")
    program = f"import sys; sys.path.insert(0, {fixtures!r})\n{TRAIN}"
    process = forked.Process([sys.executable, "-c", program, *map(str, (model, out, store))])
    wait_for((out / STATE).exists, process)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    encoder, plan = load_encoder(model), Plan(120, 8, 0.001)
    assert not (out / "config.json").exists()
    going_on = train_pic2word(encoder, few_pictures(20), out, plan=plan, store=EmbeddingStore(store))
    assert 0 < going_on.resumed_at < plan.steps
    train_pic2word(encoder, few_pictures(20), tmp_path / "whole", plan=plan, store=EmbeddingStore(store))
    weights = [(folder / "model.safetensors").read_bytes() for folder in (out, tmp_path / "whole")]
    assert weights[0] == weights[1]
    assert sorted(path.name for path in out.iterdir()) == ["config.json", "model.safetensors"]


COMPOSITION = """
import sys, os
os.environ |= {"CIR_DATA_HOME": sys.argv[1] + "/home", "CIR_CACHE_HOME": sys.argv[1] + "/cache"}
os.environ["CIR_VERIFICATION_MODE"] = "no_checks"
import torch
from pathlib import Path
from submissions.embeddings.store import EmbeddingStore
from submissions.encoders.loading import load_encoder
from submissions.training.composition_training import train_composition
from submissions.training.triplet_plan import NetworkShape
torch.set_num_threads(1)
root = Path(sys.argv[1])
done = train_composition(
    load_encoder(root / "model"), "cirr/train", root / sys.argv[2], composition=sys.argv[3],
    shape=NetworkShape(hidden_size=16, layers=1, heads=2), epochs=40, epoch_steps=5, batch_size=8,
    learning_rate=0.01, validation="cirr/val", device="cpu", images=root / "nlvr2",
    store=EmbeddingStore(root / "store"), save_seconds=0.0,
)
assert done.last_loss > 0  # there are negatives, so that the weights depend on what is drawn
print(done.resumed_at)
"""


@pytest.mark.slow
def test_a_composition_that_was_killed_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    for split in ("train", "val"):
        made.write_cirr_of_two_subsets(tmp_path / "home", split)
        write_nlvr2(tmp_path / "nlvr2", split, made.cirr_images(split))
    save_clip(tmp_path / "model")

    def start(out: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", COMPOSITION, str(tmp_path), out, "tirg"]
        return forked.Process(command, stdout=subprocess.PIPE, text=True)

    process = start("killed")
    wait_for((tmp_path / "killed" / STATE).exists, process)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not (tmp_path / "killed/config.json").exists()
    outcomes = {out: start(out).communicate()[0] for out in ("killed", "whole")}
    assert 0 < int(outcomes["killed"]) < 200
    assert int(outcomes["whole"]) == 0
    for file in ("model.safetensors", "config.json"):
        both = [(tmp_path / out / file).read_bytes() for out in ("killed", "whole")]
        assert both[0] == both[1]


@pytest.mark.slow
def test_a_command_that_is_interrupted_keeps_its_state_and_says_so(tmp_path: Path) -> None:
    shown, folder = few_pictures(6), tmp_path / "pictures"
    folder.mkdir()
    for place, name in enumerate(shown.ids):
        shown.open(place).save(folder / f"{name}.png")
    model = save_clip(tmp_path / "model")
    out = tmp_path / "head"
    command = [sys.executable, "-m", "leaderboard.cli", "train", "pic2word", "--images", str(folder)]
    command += ["--encoder", str(model), "--out", str(out), "--threads", "1", "--hidden-size", "8"]
    command += ["--batch-size", "2", "--steps", "1000000"]
    process = forked.Process(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for((out / STATE).exists, process)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (130, "")
    assert stderr == "interrupted; the same command goes on from here.\n"
    assert torch.load(out / STATE, weights_only=True)["losses"]
