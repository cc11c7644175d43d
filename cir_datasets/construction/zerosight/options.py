"""What a run of the pipeline is asked for, and the thresholds that it filters by."""

from __future__ import annotations

import functools
from dataclasses import asdict, dataclass, field
from datetime import date
from importlib import resources
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import Field, model_validator

from cir_datasets.common.yaml import checked, parse_yaml, read_fields
from cir_datasets.errors import ConstructionError
from cir_datasets.registry.schema import StrictModel
from cir_metrics.errors import CallError, UnknownNameError, did_you_mean

Consensus = Literal["paper", "released"]
UnknownDates = Literal["drop", "keep"]
PoolFrames = Literal["sampled", "raw"]
Ending = Literal["jpg", "png"]
CHOICES = {
    "consensus": get_args(Consensus),
    "unknown_dates": get_args(UnknownDates),
    "pool_frames": get_args(PoolFrames),
    "pictures": get_args(Ending),
}
PAPER_DATE = date(2022, 3, 31)
"""Videos after this day: what CLIP's successors were trained on ends there."""

Cosine = float
_FILE = "thresholds.yaml"


class Thresholds(StrictModel):
    """Limits of cosine similarities; `thresholds.yaml` says what each does."""

    reference_visual: Cosine = Field(ge=-1, le=1)
    reference_semantic: Cosine = Field(ge=-1, le=1)
    target_visual: tuple[Cosine, Cosine]
    target_semantic: tuple[Cosine, Cosine]
    mutual_visual: Cosine = Field(ge=-1, le=1)
    neighbour: Cosine = Field(ge=-1, le=1)

    @model_validator(mode="after")
    def _ordered(self) -> Thresholds:
        for name in ("target_visual", "target_semantic"):
            low, high = getattr(self, name)
            if not -1 <= low <= high <= 1:
                raise ValueError(f"{name}: {low} to {high} is not a band of cosines. Fix: write [low, high]")
        return self


@functools.cache
def presets() -> dict[str, Thresholds]:
    """The thresholds that come with this package, by name.

    Example:
        >>> presets()["paper"].target_visual
        (0.35, 0.5)
    """
    text = (resources.files(__package__ or "") / _FILE).read_text("utf-8")
    return {
        name: checked(Thresholds, given, f"{_FILE}: {name}", ConstructionError)
        for name, given in parse_yaml(text).items()
    }


def load_thresholds(name: str, **instead: Any) -> Thresholds:
    """Thresholds by name, or of a YAML file with the same fields.

    Args:
        name: `paper`, `shapes`, or a file.
        instead: values that replace those of that name; None leaves a value.

    Raises:
        UnknownNameError: neither a name nor a file.
        ConstructionError: the file is malformed, or a band is.

    Example:
        >>> load_thresholds("paper", mutual_visual=0.9).mutual_visual
        0.9
    """
    known = presets()
    if name in known:
        fields, origin = known[name].model_dump(), name
    elif Path(name).is_file():
        fields, _ = read_fields(Path(name), ConstructionError, "mutual_visual: 0.85")
        origin = name
    else:
        raise UnknownNameError(
            f"no thresholds {name!r}.{did_you_mean(name, known)} Fix: use {', '.join(known)}, or a YAML file."
        )
    given = {key: value for key, value in instead.items() if value is not None}
    return checked(Thresholds, {**fields, **given}, f"thresholds {origin}", ConstructionError)


@dataclass(frozen=True)
class ZeroSightOptions:
    """What decides the result, beside videos and models.

    Args:
        thresholds: of the similarities.
        consensus: `paper` (Eq. 3-5), or `released`, the rule of the released code.
        after: videos of that day or earlier are left out; None takes all.
        unknown_dates: whether videos whose date is not known are left out (`drop`) or taken (`keep`).
        pool_frames: every fifth of the frames at one a second (`sampled`), or of all frames (`raw`).
        pictures: format of the frames, `jpg` or `png`.
        seed: of the split.
        limit: only so many videos, the first ones by name; None takes all.

    Raises:
        UnknownNameError: a choice is not known.
        CallError: `limit` is below 1.
    """

    thresholds: Thresholds = field(default_factory=lambda: presets()["paper"])
    consensus: Consensus = "paper"
    after: date | None = PAPER_DATE
    unknown_dates: UnknownDates = "drop"
    pool_frames: PoolFrames = "sampled"
    pictures: Ending = "jpg"
    seed: int = 0
    limit: int | None = None

    def __post_init__(self) -> None:
        """Check the choices."""
        for name, known in CHOICES.items():
            value = getattr(self, name)
            if value not in known:
                raise UnknownNameError(
                    f"{name} {value!r} is not known.{did_you_mean(str(value), known)} "
                    f"Fix: use {' or '.join(known)}."
                )
        if self.limit is not None and self.limit < 1:
            raise CallError(f"limit={self.limit}. Fix: use 1 or more, or leave it out.")

    def settings(self) -> dict[str, Any]:
        """As JSON values."""
        plain = asdict(self)
        return {
            **plain,
            "thresholds": self.thresholds.model_dump(mode="json"),
            "after": None if self.after is None else self.after.isoformat(),
        }
