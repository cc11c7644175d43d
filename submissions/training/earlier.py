"""The checkpoint that a training goes on from, as `--from` names it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cir_metrics.errors import CallError

if TYPE_CHECKING:
    from submissions.encoders.protocol import Encoder
    from submissions.methods.heads.checkpoints import Head
    from submissions.methods.trained_heads import HeadMethod
    from submissions.training.training_options import Trains


def earlier_head(
    training: Trains, method: type[HeadMethod], encoder: Encoder
) -> tuple[Head | None, dict[str, Any]]:
    """The head that a training begins with, and what of it the result depends on.

    Args:
        training: its options.
        method: the method whose head is trained.
        encoder: what the head stands on.

    Returns:
        None and nothing where the training begins at random.

    Raises:
        CheckpointError: the checkpoint is of another method or encoder, or damaged.
    """
    if training.from_checkpoint is None:
        return None, {}
    known = method(training.from_checkpoint)
    head = known.head(encoder)
    return head, begins_with(head.sha256, known.said_of(head)["trained_on"])


def begins_with(sha256: str, trained_on: list[str]) -> dict[str, Any]:
    """What a training's settings hold of the checkpoint that it goes on from."""
    return {"from": {"sha256": sha256, "trained_on": trained_on}}


def check_sizes(chosen: Mapping[str, Any], there: Mapping[str, Any]) -> None:
    """Refuse sizes that are not those of the checkpoint.

    Args:
        chosen: by option what the call gives; None is what the checkpoint has.
        there: the checkpoint's, by the same names.

    Raises:
        CallError: one differs.
    """
    for name, value in chosen.items():
        if value not in (None, there.get(name)):
            raise CallError(
                f"{name}={value}, and the checkpoint of --from has {there.get(name)}. Fix: give that of "
                "the checkpoint (its config.json says how it was trained)."
            )
