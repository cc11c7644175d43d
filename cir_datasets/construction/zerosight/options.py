"""What a run of the pipeline is asked for, and the thresholds that it filters by."""

from __future__ import annotations

import functools
from dataclasses import field, fields
from datetime import date
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from cir_datasets.common.options import by_call_alone
from cir_datasets.common.yaml import checked, parse_yaml, read_fields
from cir_datasets.construction.zerosight.choices import ZeroSightChoices
from cir_datasets.errors import ConstructionError
from cir_datasets.registry.schema import StrictModel
from cir_metrics.errors import UnknownNameError, did_you_mean

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


class ZeroSightOptions(ZeroSightChoices):
    """What decides the result, beside videos and models.

    Args:
        thresholds: of the similarities.
        after: videos of that day or earlier are left out; None takes all.

    Raises:
        UnknownNameError: a choice is not known.
        CallError: `limit` is below 1.
    """

    thresholds: Thresholds = field(default_factory=lambda: presets()["paper"])
    after: date | None = by_call_alone(PAPER_DATE)

    def settings(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "thresholds": self.thresholds.model_dump(mode="json"),
            "consensus": self.consensus,
            "after": None if self.after is None else self.after.isoformat(),
            **{each.name: getattr(self, each.name) for each in fields(ZeroSightChoices)[1:]},
        }
