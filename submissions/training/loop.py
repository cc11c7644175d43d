"""The training loop of small heads: the same weights whether it was stopped and taken up again or not.

Which rows a step sees, and what chance does in it, follow from the seed and the step's number alone;
everything else that a step changes lies in one file, written whole at the end of each epoch and every half
minute.
"""

from __future__ import annotations

import contextlib
import json
import math
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cir_datasets.common.progress import step_progress
from cir_datasets.common.stages import Stages
from cir_datasets.common.terminal import counted
from cir_metrics.errors import CallError
from cir_metrics.sums import exact_mean
from submissions.errors import CheckpointError
from submissions.methods.heads.checkpoints import CONFIG
from submissions.training.training_options import Plan

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor, nn

    from submissions.training.validation import BestEpoch

STATE = "01-training.part"
"""What an unfinished training leaves in its folder, beside its settings."""

SAVE_SECONDS = 30.0

_BEFORE = "training.pt"
"""What versions up to 0.1 left, settings and all."""
_CURVE = 20
"""Steps at most whose mean is given as the loss at the beginning and at the end."""


class _Training(Stages):
    """A training as one stage, which is kept while it goes on; the head that it ends in says what it was."""

    error = CheckpointError
    call_error = CheckpointError
    noun = "training"

    def take_up(self, parts: Mapping[str, Any], watch: BestEpoch | None) -> list[float]:
        """Put the state back, where there is one; the losses so far.

        Args:
            parts: what changes from step to step, by name: each has state_dict and load_state_dict.
            watch: what remembers the epochs.
        """
        path = self.kept("training")
        if not path.is_file():
            return []
        state = _read_state(path)
        for name, part in parts.items():
            if state.get(name):  # what scales nothing keeps nothing
                part.load_state_dict(state[name])
        if watch is not None:
            watch.take_up(state["watch"])
        losses: list[float] = state["losses"]
        return losses

    def keep_state(self, parts: Mapping[str, Any], watch: BestEpoch | None, losses: list[float]) -> None:
        """Write the state, whole or not at all."""
        import io

        import torch

        written = io.BytesIO()
        state = {**{name: part.state_dict() for name, part in parts.items()}, "losses": losses}
        if watch is not None:
            state["watch"] = watch.state()
        torch.save(state, written)
        self.keep("training", written.getvalue(), durable=True)


@dataclass(frozen=True)
class Trained:
    """What a training gives.

    Args:
        folder: where the head lies.
        steps: number of steps it had; fewer than the plan's where a watch ended it.
        first_loss: mean loss of the first steps.
        last_loss: mean loss of the last steps.
        resumed_at: the step at which it was taken up again; 0 where it began anew, `steps` where it was done.
    """

    folder: Path
    steps: int
    first_loss: float
    last_loss: float
    resumed_at: int = 0


def train(
    module: nn.Module,
    loss_of: Callable[[NDArray[np.int64]], Tensor],
    *,
    count: int | Sequence[int],
    plan: Plan,
    folder: Path,
    settings: Mapping[str, Any],
    label: str,
    save_seconds: float = SAVE_SECONDS,
    undecayed: Collection[str] = (),
    watch: BestEpoch | None = None,
) -> Trained:
    """Train a module; a training that was stopped goes on where its last state was written.

    Args:
        module: what is trained; its weights are changed in place.
        loss_of: the loss of a batch, of the rows it is given.
        count: number of rows; of a suite each member's, one behind the other: a step sees one member.
        plan: how.
        folder: where the state is kept; made where it is missing.
        settings: what else the result depends on; a state with others is refused.
        label: what the progress bar says.
        save_seconds: seconds between two states, beside those at the end of each epoch.
        undecayed: names of the parameters that have no weight decay.
        watch: what looks at the module after each epoch; it may end the training.

    Raises:
        CallError: there is too little to train on.
        CheckpointError: the folder holds another training, another program trains in it, or the loss is no
            longer a number.
    """
    import torch

    counts = [count] if isinstance(count, int) else [*count]
    if min(counts) < 2:
        raise CallError(
            f"{label}: {counted(min(counts), 'row')} to train on; two are the least. Fix: use a larger split."
        )
    whole = {**settings, **plan.numbers, "rows": counts[0] if len(counts) == 1 else counts}
    epoch_steps = plan.steps_of_epoch(*counts)
    optimizer = torch.optim.AdamW(
        _groups(module, undecayed), lr=plan.learning_rate, weight_decay=plan.weight_decay
    )
    device = next(module.parameters()).device
    scaler = torch.amp.GradScaler(device.type, enabled=plan.precision == "float16")
    parts = {"module": module, "optimizer": optimizer, "scaler": scaler}
    devices = sorted({p.device.index or 0 for p in module.parameters() if p.device.type == "cuda"})
    module.train()
    with (
        _Training.held(folder, forget=True),
        step_progress(label, plan.steps) as advance,
        torch.random.fork_rng(devices=devices),
        _Interrupts() as interrupts,
    ):
        training = _opened(folder, whole)
        losses = training.take_up(parts, watch)
        resumed_at, saved = len(losses), time.monotonic()
        advance(resumed_at)
        for step in range(resumed_at, plan.steps):
            if watch is not None and step % epoch_steps == 0:
                _let_look(watch, module, step)
                if watch.stopped:
                    break
            with interrupts.held():
                torch.manual_seed(plan.seed * 1_000_003 + step)
                for group in optimizer.param_groups:
                    group["lr"] = plan.rate(step)
                with _mixed(device, plan.precision):
                    loss = loss_of(plan.rows(step, *counts))
                value = float(loss.detach())
                if not math.isfinite(value):
                    raise CheckpointError(
                        f"{label}: the loss of step {step} is {value}. "
                        "Fix: use a smaller learning rate and another folder."
                    )
                optimizer.zero_grad()
                scaler.scale(loss).backward()  # type: ignore[no-untyped-call]  # torch gives it no types
                if plan.clip is not None:
                    scaler.unscale_(optimizer)
                    torch.nn.utils.clip_grad_norm_(module.parameters(), plan.clip)
                scaler.step(optimizer)
                scaler.update()
                losses.append(value)
            advance(1)
            ends_epoch = len(losses) % epoch_steps == 0 and len(losses) < plan.steps
            if ends_epoch or interrupts.waiting or time.monotonic() - saved >= save_seconds:
                training.keep_state(parts, watch, losses)
                saved = time.monotonic()
            if interrupts.waiting:
                raise KeyboardInterrupt
    if watch is not None and not watch.stopped:
        _let_look(watch, module, plan.steps)
    module.eval()
    # Of a short training its two halves, so that the two means are of different steps.
    few = min(_CURVE, max(1, len(losses) // 2))
    first, last = exact_mean(losses[:few]), exact_mean(losses[-few:])
    return Trained(folder, len(losses), first, last, resumed_at)


@dataclass(frozen=True, eq=False)
class Lesson:
    """What a training begins with.

    Args:
        module: what is trained.
        loss_of: the loss of a batch.
        counts: number of rows of each member of a suite; of a benchmark, its rows.
        save: writes the head, with what is said of its training as `training`.
        undecayed: names of the parameters that have no weight decay.
        watch: what looks at the module after each epoch.
    """

    module: nn.Module
    loss_of: Callable[[NDArray[np.int64]], Tensor]
    counts: Sequence[int]
    save: Callable[..., object]
    undecayed: Collection[str] = ()
    watch: BestEpoch | None = None


def train_head(
    folder: Path,
    plan: Plan,
    settings: Mapping[str, Any],
    label: str,
    begin: Callable[[], Lesson],
    save_seconds: float,
) -> Trained:
    """Train a head and write it, unless the folder holds it already.

    Args:
        folder: where the head goes.
        plan: how it is trained.
        settings: what else the result depends on.
        label: what the progress bar says.
        begin: computes vectors and makes the module, its weights drawn from the plan's seed.
        save_seconds: as of `train`.

    Raises:
        CallError: there is too little to train on.
        CheckpointError: as of `train`.
    """
    # Without a checkpoint that it goes on from, which is said nowhere then, it is another training as well.
    earlier = finished(folder, {"from": None, **settings, **plan.numbers})
    if earlier is not None:
        # A kill between the head's writing and this leaves the state.
        forget(folder)
        return earlier
    lesson = begin()
    done = train(
        lesson.module,
        lesson.loss_of,
        count=lesson.counts,
        plan=plan,
        folder=folder,
        settings=settings,
        label=label,
        save_seconds=save_seconds,
        undecayed=lesson.undecayed,
        watch=lesson.watch,
    )
    losses = {"first_loss": done.first_loss, "last_loss": done.last_loss}
    lesson.save(training={**settings, **plan.numbers, **losses})
    forget(folder)
    return done


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """While this lasts, torch draws from a seed, on the CPU."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


class _Interrupts:
    """Ctrl-C inside a step waits until the step is done; a second Ctrl-C does not wait.

    A step that is cut off leaves a network that is neither the one before it nor the one after it: its norms
    and some of its weights have moved. Such a state is never written. Outside the main thread, and where a
    program handles Ctrl-C itself, nothing is changed.
    """

    def __init__(self) -> None:
        self.waiting = False
        self._inside = False
        self._before: Any = None

    def __enter__(self) -> _Interrupts:
        current = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT)
        if current is signal.default_int_handler:
            self._before = signal.signal(signal.SIGINT, self._asked)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Of a step: Ctrl-C waits for its end."""
        self._inside = True
        yield
        self._inside = False

    def _asked(self, *_: object) -> None:
        if not self._inside or self.waiting:
            raise KeyboardInterrupt
        self.waiting = True


def _let_look(watch: BestEpoch, module: nn.Module, step: int) -> None:
    """Let a watch look, once a step, also where an earlier process was stopped while it looked."""
    if watch.seen < step:
        module.eval()
        watch.look(module, step)
        module.train()


def _groups(module: nn.Module, undecayed: Collection[str]) -> list[dict[str, Any]]:
    """The parameters as AdamW takes them."""
    decayed = [value for name, value in module.named_parameters() if name not in undecayed]
    plain = [value for name, value in module.named_parameters() if name in undecayed]
    return [{"params": decayed}, *([{"params": plain, "weight_decay": 0.0}] if plain else [])]


def _mixed(device: Any, precision: str | None) -> Any:
    """Mixed precision of the forward pass, where it is asked for."""
    import torch

    return torch.autocast(device.type, getattr(torch, precision or "float32"), enabled=precision is not None)


def finished(folder: Path, settings: Mapping[str, Any]) -> Trained | None:
    """What a folder says of this very training, where it holds it and it is done.

    Raises:
        CheckpointError: it holds a head that was trained in another way, which must not be overwritten.
    """
    path = folder / CONFIG
    if not path.is_file():
        return None
    try:
        held = json.loads(path.read_text(encoding="utf-8"))["training"]
        steps = int(held.get("trained_steps", held["steps"]))
        found = Trained(folder, steps, float(held["first_loss"]), float(held["last_loss"]), steps)
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"{path}: says nothing of a training. Fix: use another folder, or remove this one."
        ) from error
    _Training.refuse_other(folder, {name: held.get(name) for name in settings}, settings)
    return found


def forget(folder: Path) -> None:
    """Remove the state of a training that is done, and what a kill in the midst of writing one has left."""
    if _Training.begun(folder):
        _Training.existing(folder).remove()
    (folder / _BEFORE).unlink(missing_ok=True)


def _opened(folder: Path, settings: Mapping[str, Any]) -> _Training:
    """The training of a folder; one that an earlier version began is taken over."""
    before = folder / _BEFORE
    taken_over = before.is_file() and not _Training.begun(folder)
    if taken_over:
        _Training.refuse_other(folder, json.loads(_read_state(before)["settings"]), settings)
    training = _Training(folder, "training", {"training": "steps of the optimiser"}, settings)
    # Also where a kill came between the two.
    if before.is_file() and not training.kept("training").is_file():
        before.replace(training.kept("training"))
    return training


def _read_state(path: Path) -> dict[str, Any]:
    import pickle

    import torch

    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        state["losses"] = [float(loss) for loss in state["losses"]]
    except (pickle.UnpicklingError, RuntimeError, EOFError, KeyError, ValueError, TypeError) as error:
        raise CheckpointError(
            f"{path}: not the state of a training. Fix: remove it; the training begins anew."
        ) from error
    return state
