"""The choices of a run that its command has in the same words: loaded without pydantic."""

from __future__ import annotations

from typing import Literal, get_args

from cir_datasets.common.options import Options, check_values, option
from cir_metrics.errors import CallError

Consensus = Literal["paper", "released"]
UnknownDates = Literal["drop", "keep"]
PoolFrames = Literal["sampled", "raw"]
Ending = Literal["jpg", "png"]


class ZeroSightChoices(Options):
    """The choices of a run that a command has in the same words as a Python call.

    Args:
        consensus: `paper` (Eq. 3-5), or `released`, the rule of the released code.
        unknown_dates: whether videos whose date is not known are left out (`drop`) or taken (`keep`).
        pool_frames: every fifth of the frames at one a second (`sampled`), or of all frames (`raw`).
        pictures: format of the frames, `jpg` or `png`.
        seed: of the split.
        limit: only so many videos, the first ones by name; None takes all.
    """

    consensus: Consensus = option(
        "paper",
        "paper (Eq. 3-5), or released: the highest mean over neighbours.",
        choices=get_args(Consensus),
        kind=str,
        in_file=True,
    )
    unknown_dates: UnknownDates = option(
        "drop", "Videos without a known date: drop or keep.", choices=get_args(UnknownDates), kind=str
    )
    pool_frames: PoolFrames = option(
        "sampled",
        "Every fifth frame of other videos: of those at one a second (sampled), or of all (raw).",
        choices=get_args(PoolFrames),
        kind=str,
        in_file=True,
    )
    pictures: Ending = option(
        "jpg", "Format of the frames: jpg or png.", choices=get_args(Ending), kind=str, in_file=True
    )
    seed: int = option(0, "Seed, a whole number from 0, of all that is drawn.")
    limit: int | None = option(None, "At most so many: videos.", min=1)

    def __post_init__(self) -> None:
        """Check the choices."""
        check_values(self, CallError)
