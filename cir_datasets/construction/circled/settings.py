"""The choices of CIRCLED's construction; where paper and released code differ, the paper's is the default."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from cir_datasets.errors import ConstructionError
from cir_metrics.errors import UnknownNameError, did_you_mean

HISTORIES = ("paper", "released")
TARGETS = ("best", "annotated")
DUPLICATES = ("gallery", "released")


@dataclass(frozen=True, kw_only=True)
class CircledSettings:
    """What decides how sessions are made.

    Args:
        k: images that are shown, from 2; a session succeeds once a target is among them.
        max_turns: turns at most, from 2; the query is the first.
        history: captions that a new one must differ from: `paper` (all), `released` (without the first).
        circo_target: where a query has several targets, the one that words aim at: `best` (nearest to the
            search so far) or `annotated`. The next reference is chosen by the nearest one in either case.
        duplicates: equal pictures of which the first alone is searched: those of the `gallery`, or those of
            all splits (`released`).
        attempts: at a caption that differs enough, from 1; the last one is used as it is.
        selected: weight of the chosen image, equation 9.
        rejected: weight of the mean of the others shown; it is taken off.
        words: weight of the merged caption.
        epsilon: places that a target may fall from one turn to the next.
        tau: similarity of two captions of a session that is too high.
        captions: prompt that describes an image: `caption`, or `caption_clothes`.
        seed: of the draw of `limit`.
        limit: sessions that are begun at most; None is all.

    Raises:
        ConstructionError: a number is out of range.
        UnknownNameError: a name is not one of those.

    Example:
        >>> CircledSettings(max_turns=7).max_turns
        7
    """

    k: int = 10
    max_turns: int = 6
    history: str = HISTORIES[0]
    circo_target: str = TARGETS[0]
    duplicates: str = DUPLICATES[0]
    attempts: int = 3
    selected: float = 0.08
    rejected: float = 0.29
    words: float = 0.44
    epsilon: int = 30
    tau: float = 0.8
    captions: str = "caption"
    seed: int = 0
    limit: int | None = None

    def __post_init__(self) -> None:
        """Check every choice."""
        for name, least in (("k", 2), ("max_turns", 2), ("attempts", 1), ("epsilon", 0)):
            if getattr(self, name) < least:
                raise ConstructionError(
                    f"{name}={getattr(self, name)}; it is {least} or more. Fix: choose another number."
                )
        if self.limit is not None and self.limit < 1:
            raise ConstructionError(f"limit={self.limit}; it is 1 or more. Fix: choose another number.")
        if not 0 < self.tau <= 1:
            raise ConstructionError(f"tau={self.tau}; it is above 0 and at most 1. Fix: choose another one.")
        for name, known in (
            ("history", HISTORIES),
            ("circo_target", TARGETS),
            ("duplicates", DUPLICATES),
            ("captions", ("caption", "caption_clothes")),
        ):
            value = getattr(self, name)
            if value not in known:
                raise UnknownNameError(
                    f"{name}={value!r}: there is no such choice.{did_you_mean(value, known)} "
                    f"Fix: use one of {', '.join(known)}."
                )

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)
