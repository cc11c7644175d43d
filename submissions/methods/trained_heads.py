"""What methods with a trained head share: which checkpoint it is, and what a rank file says of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from submissions.encoders.extras import needs_torch
from submissions.methods.card import Described, method_card
from submissions.methods.heads.checkpoints import Head, load_head
from submissions.rank_file.model import Method

if TYPE_CHECKING:
    from submissions.encoders.protocol import Encoder


def trained_on(training: Mapping[str, Any], last: Sequence[object]) -> list[str]:
    """What a head was trained on: first what the checkpoint was that its training went on from.

    Args:
        training: of its folder.
        last: what this training was on.

    Example:
        >>> trained_on({"from": {"trained_on": ["cirr/train"]}}, ["zerosight"])
        ['cirr/train', 'zerosight']
    """
    earlier = (training.get("from") or {}).get("trained_on", [])
    return list(dict.fromkeys(map(str, [*earlier, *last])))


class HeadMethod(Described):
    """A method with a trained head on an encoder's vectors.

    Args:
        checkpoint: a folder that `cir train` wrote.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"checkpoint"})
    part: ClassVar[str] = "head"
    """What the backbone's line calls it."""

    def __init__(self, checkpoint: str | Path) -> None:
        """See the class."""
        self.checkpoint = Path(checkpoint).expanduser()

    def method(self, encoder: Encoder) -> Method:
        """Who answers; the backbone's line holds the start of the head's sha256.

        Raises:
            CheckpointError: the checkpoint cannot be used with this encoder.
        """
        head = self.head(encoder)
        backbone = f"{encoder.identity.text()}; {self.part} {head.sha256[:12]}"
        return method_card(self.name).method(backbone=backbone, **self.said_of(head))

    def said_of(self, head: Head) -> dict[str, Any]:
        """What a rank file says of this head's training."""
        members = head.training.get("members") or [head.training.get("benchmark", "unknown")]
        return {"zero_shot": False, "trained_on": trained_on(head.training, members)}

    def head(self, encoder: Encoder) -> Head:
        """The head, read for an encoder.

        Raises:
            CheckpointError: it cannot be used with this encoder.
        """
        needs_torch(self.name)
        return load_head(self.checkpoint, self.name, encoder=encoder.identity)
