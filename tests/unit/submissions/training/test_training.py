"""The training loop of heads, and their checkpoints: resumed trainings, refusals, and damaged files."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cir_datasets.common.locks import only_program
from cir_metrics.errors import CallError
from submissions.errors import CheckpointError

pytest.importorskip("torch", reason="needs the extra `retrieval`")
pytest.importorskip("transformers", reason="needs the extra `retrieval`")

import torch
from torch import Tensor, nn

from submissions.encoders.protocol import Identity
from submissions.methods.heads.checkpoints import load_head, save_head
from submissions.methods.heads.mapping_network import MappingNetwork
from submissions.training.loop import STATE, Trained, finished, train
from submissions.training.training_options import Plan

ENCODER = Identity("a model", "abc", "clip", "def", "float32", 6)
PLAN = Plan(steps=12, batch_size=4, learning_rate=0.01, seed=3)
SETTINGS = {"data": "invented"}


pytestmark = pytest.mark.usefixtures("one_thread")


class Stopped(Exception):
    """What a test stops a training with, as a crash would."""


def network() -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.ReLU(), nn.Linear(8, 1))


def trained(folder: Path, *, stop_at: int | None = None, how: type[BaseException] = Stopped) -> Any:
    """A toy's weights and what was reported, stopped before a step where that is asked for."""
    module, seen = network(), []
    rows = np.random.default_rng(0).normal(size=(10, 3)).astype(np.float32)

    def loss_of(batch: NDArray[np.int64]) -> Tensor:
        if len(seen) == stop_at:
            raise how
        seen.append(batch)
        return (module(torch.from_numpy(rows[batch])) ** 2).mean()

    trained_once = train(
        module,
        loss_of,
        count=len(rows),
        plan=PLAN,
        folder=folder,
        settings=SETTINGS,
        label="toy",
        save_seconds=0.0,
    )
    return module.state_dict(), trained_once, seen


def same(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    return all(torch.equal(first[name], second[name]) for name in first | second)


@pytest.mark.parametrize("how", [Stopped, KeyboardInterrupt])
def test_a_training_taken_up_again_gives_the_same_weights(tmp_path: Path, how: type[BaseException]) -> None:
    whole, trained_once, _ = trained(tmp_path / "whole")
    assert trained_once.resumed_at == 0
    for stop_at in (5, 3):  # stopped twice: at step 5, then three steps further on
        with pytest.raises(how):
            trained(tmp_path / "parts", stop_at=stop_at, how=how)
    parts, retold, seen = trained(tmp_path / "parts")
    assert retold == replace(trained_once, folder=tmp_path / "parts", resumed_at=8)
    assert len(seen) == PLAN.steps - 8
    assert same(whole, parts)
    assert not same(whole, network().state_dict())


class Interrupted(nn.Module):
    """Passes on what it is given, and counts it; the fourth time Ctrl-C falls behind it, once or twice."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.norm, self.times, self.calls = nn.BatchNorm1d(3), times, 0

    def forward(self, values: Tensor) -> Tensor:
        found: Tensor = self.norm(values)
        self.calls += 1
        if self.calls == 4:
            for _ in range(self.times):
                signal.raise_signal(signal.SIGINT)
        return found


@pytest.mark.parametrize(("times", "resumed_at"), [(1, 4), (2, 2)])
def test_ctrl_c_in_the_midst_of_a_step_ends_with_the_same_weights(
    tmp_path: Path, times: int, resumed_at: int
) -> None:
    """A norm has moved by then. The step is done before the state is written, or it is not written at all."""
    rows = np.random.default_rng(0).normal(size=(10, 3)).astype(np.float32)

    def run(folder: Path, norm: Interrupted) -> tuple[dict[str, Tensor], Trained]:
        module = nn.Sequential(norm, network())
        made = train(
            module,
            lambda batch: (module(torch.from_numpy(rows[batch])) ** 2).mean(),
            count=len(rows),
            plan=PLAN,  # two steps an epoch
            folder=folder,
            settings=SETTINGS,
            label="toy",
        )
        return module.state_dict(), made

    whole, _ = run(tmp_path / "whole", Interrupted(0))
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "parts", Interrupted(times))
    assert signal.getsignal(signal.SIGINT) is before
    parts, made = run(tmp_path / "parts", Interrupted(0))
    assert made.resumed_at == resumed_at
    assert same(whole, parts)


def test_an_epoch_sees_no_row_twice_and_the_next_has_another_order() -> None:
    plan = Plan(steps=10, batch_size=4, learning_rate=1.0, seed=5)
    first = np.concatenate([plan.rows(step, 14) for step in range(3)])
    second = np.concatenate([plan.rows(step, 14) for step in range(3, 6)])
    assert len(set(first.tolist())) == len(first) == 12
    assert first.tolist() != second.tolist()
    assert sorted(plan.rows(7, 3).tolist()) == [0, 1, 2]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"steps": 0}, "steps=0 is out of range. Fix: use a whole number, 1 or more"),
        ({"batch_size": 1}, "batch_size=1 is out of range"),
        ({"seed": -1}, "seed=-1 is out of range"),
        ({"learning_rate": 0.0}, "learning_rate=0.0; it is above 0"),
        ({"learning_rate": float("nan")}, "learning_rate=nan; it is above 0"),
        ({"weight_decay": -1.0}, "weight_decay=-1.0 is out of range"),
    ],
)
def test_numbers_out_of_range_are_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(CallError, match=words):
        replace(PLAN, **change)


def test_a_state_of_other_settings_or_of_no_training_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        trained(tmp_path, stop_at=4)
    module = network()

    def again(plan: Plan) -> Trained:
        return train(
            module,
            lambda rows: torch.zeros(1),
            count=10,
            plan=plan,
            folder=tmp_path,
            settings=SETTINGS,
            label="toy",
        )

    with pytest.raises(CheckpointError, match=r"holds a training with other settings .*seed 3, not 4"):
        again(replace(PLAN, seed=4))
    (tmp_path / STATE).write_bytes(b"nothing")
    with pytest.raises(CheckpointError, match=r"not the state of a training\. Fix: remove it"):
        again(PLAN)


def test_a_training_of_version_0_1_is_taken_over_where_its_settings_are_the_same(tmp_path: Path) -> None:
    whole, *_ = trained(tmp_path / "whole")
    folder = tmp_path / "before"
    with pytest.raises(Stopped):
        trained(folder, stop_at=4)
    state = torch.load(folder / STATE, weights_only=True)
    settings = json.loads((folder / "make.json").read_text())["settings"]
    for path in folder.iterdir():
        path.unlink()
    torch.save({**state, "settings": json.dumps({**settings, "seed": 1})}, folder / "training.pt")
    with pytest.raises(CheckpointError, match=r"holds a training with other settings \(seed 1, not 3"):
        trained(folder)
    torch.save({**state, "settings": json.dumps(settings)}, folder / "training.pt")
    weights, retold, _ = trained(folder)
    assert retold.resumed_at > 0
    assert same(weights, whole)
    assert not (folder / "training.pt").exists()


def test_another_program_that_trains_in_the_folder_is_left_alone(tmp_path: Path) -> None:
    lock = only_program(tmp_path, tmp_path / ".lock", error=CheckpointError, busy=CheckpointError)
    refused = pytest.raises(CheckpointError, match="another program writes it")
    with lock, ThreadPoolExecutor(1) as other, refused:
        other.submit(trained, tmp_path).result()
    trained(tmp_path)


def test_a_loss_that_is_not_a_number_and_too_few_rows_stop_a_training(tmp_path: Path) -> None:
    module = network()

    def run(count: int) -> Trained:
        return train(
            module,
            lambda rows: torch.tensor(float("nan"), requires_grad=True),
            count=count,
            plan=PLAN,
            folder=tmp_path,
            settings={},
            label="toy",
        )

    with pytest.raises(CheckpointError, match="toy: the loss of step 0 is nan"):
        run(10)
    with pytest.raises(CallError, match="toy: 1 row to train on; two are the least"):
        run(1)


def head(folder: Path) -> Path:
    sizes = {"vector_size": 6, "token_size": 5, "hidden_size": 4, "dropout": 0.0}
    torch.manual_seed(0)
    return save_head(
        folder,
        "pic2word",
        MappingNetwork(**sizes),  # type: ignore[arg-type]  # sizes are of two kinds
        sizes=sizes,
        encoder=ENCODER,
        training={**asdict(PLAN), "first_loss": 2.0, "last_loss": 1.0},
    )


def test_a_head_comes_back_as_it_was(tmp_path: Path) -> None:
    folder = head(tmp_path / "head")
    read = load_head(folder, "pic2word", encoder=ENCODER)
    module = read.module(MappingNetwork)
    torch.manual_seed(0)
    assert same(module.state_dict(), MappingNetwork(6, 5, 4).state_dict())
    assert not module.training
    assert read.sha256 == json.loads((folder / "config.json").read_text())["weights_sha256"]
    assert finished(folder, asdict(PLAN)) == Trained(folder, 12, 2.0, 1.0, resumed_at=12)
    with pytest.raises(CheckpointError, match="steps 12, not 13"):
        finished(folder, {"steps": 13})


def edit(**change: Any) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **change}))

    return apply


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (
            lambda folder: (folder / "config.json").unlink(),
            "holds no config.json, so it is not a checkpoint of",
        ),
        (lambda folder: (folder / "config.json").write_text("{"), "config.json: not JSON"),
        (edit(model_type="concat"), "model_type is 'concat', not 'pic2word'"),
        (edit(format_version=9), "format_version is 9, not 1"),
        (edit(encoder=None), "says no encoder or no sizes"),
        (edit(sizes={"vector_size": 6}), "its sizes make no head"),
        (
            edit(sizes={"vector_size": 7, "token_size": 5, "hidden_size": 4}),
            "of another shape layers.0.weight",
        ),
        (edit(weights_sha256="0"), "its sha256 is not the one that config.json names"),
        (lambda folder: (folder / "model.safetensors").unlink(), "model.safetensors: no such file"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"x"), "not a safetensors file"),
        (
            edit(encoder={**asdict(ENCODER), "revision": "old"}),
            r"trained on the encoder 'a model', .*revision 'old', not 'abc'.*cir train pic2word --encoder",
        ),
    ],
)
def test_a_damaged_or_foreign_folder_is_refused(
    tmp_path: Path, damage: Callable[[Path], object], words: str
) -> None:
    folder = head(tmp_path)
    damage(folder)
    with pytest.raises(CheckpointError, match=words):
        load_head(folder, "pic2word", encoder=ENCODER).module(MappingNetwork)
