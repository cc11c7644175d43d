"""The choices of CIRCLED's construction; where paper and released code differ, the paper's is the default."""

from __future__ import annotations

from cir_datasets.common.options import Options, by_call_alone, check_values, option
from cir_datasets.errors import ConstructionError
from cir_metrics.errors import UnknownNameError, did_you_mean

CAPTIONS = ("caption", "caption_clothes")
"""Prompts that describe an image; the command takes that of the benchmark."""

UNFILTERED = "_unfiltered"
"""Behind a made benchmark's name in that of the sessions that the quality filters removed."""


class CircledSettings(Options):
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
        selected: weight of the chosen image, alpha of equation 9, from 0.
        rejected: weight of the mean of the others shown, beta, from 0; it is taken off.
        words: weight of the merged caption, gamma, from 0.
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

    k: int = option(
        10,
        "First images of a ranking, 2 or more, that are shown; a session succeeds once a "
        "target is among them.",
        min=2,
    )
    max_turns: int = option(6, "Turns at most, the query included; 7 is what the released code plays.", min=2)
    history: str = option(
        "paper",
        "Captions that a new one must differ from: paper (all), released (without the first).",
        choices=("paper", "released"),
        in_file=True,
    )
    circo_target: str = option(
        "best",
        "Of several targets the one that words aim at: best (nearest to the search), or annotated.",
        choices=("best", "annotated"),
        in_file=True,
    )
    duplicates: str = option(
        "gallery",
        "Equal pictures are searched once: within the gallery, or over all splits (released).",
        choices=("gallery", "released"),
        in_file=True,
    )
    attempts: int = option(
        3, "Attempts at a caption that differs enough; the last is used.", min=1, in_file=True
    )
    selected: float = option(0.08, "Weight of the chosen image in the next query.", min=0, in_file=True)
    rejected: float = option(
        0.29, "Weight of the mean of the others shown, which is taken off.", min=0, in_file=True
    )
    words: float = option(0.44, "Weight of the merged caption in the next query.", min=0, in_file=True)
    epsilon: int = option(30, "Places that a target may fall from turn to turn.", min=0, in_file=True)
    tau: float = option(
        0.8, "Similarity of two captions that is too high, above 0 to 1.", min=0, max=1, in_file=True
    )
    captions: str = by_call_alone(CAPTIONS[0])
    seed: int = option(0, "Seed, a whole number from 0, of all that is drawn.")
    limit: int | None = option(None, "At most so many: sessions that are begun, drawn by the seed.", min=1)

    def __post_init__(self) -> None:
        """Check every choice."""
        check_values(self, ConstructionError)
        if self.captions not in CAPTIONS:
            raise UnknownNameError(
                f"captions={self.captions!r} is not a choice.{did_you_mean(self.captions, CAPTIONS)} "
                f"Fix: use {' or '.join(CAPTIONS)}."
            )
        if self.tau <= 0:
            raise ConstructionError(f"tau={self.tau}; it is above 0 and at most 1. Fix: choose another one.")
