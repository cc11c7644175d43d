"""Everything that decides a run of CIRR's construction, beside the images and the models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from cir_datasets.common.options import by_call_alone, check_values, option
from cir_datasets.common.paths import NAME_RULE, is_name
from cir_datasets.common.stages import CALLED
from cir_datasets.construction.cirr.subset_rule import SubsetRule
from cir_datasets.construction.names import check_name
from cir_metrics.errors import CallError

if TYPE_CHECKING:
    from cir_datasets.construction.review.form import ReviewForm

DIALOGUES = "dialogues"
"""Folder of the benchmark of sessions, beside that of single queries."""
PATHS = "paths.jsonl"
IN_ALL = 100
"""Per cent of the images."""


class CirrPlan(SubsetRule):
    """What decides a run.

    Args:
        name: of the benchmark; that of its dialogues has `_dialogues` behind it. None until it is known.

    Raises:
        CallError: a number, a share or a name cannot be.
    """

    title: str = option("", "Title for people; default: the name.", in_file=True)
    # In CIRR's val and test1 two subsets share 2 at most: counted over the 126,253 pairs of subsets of each.
    shared: int = option(2, "Images that two subsets may share; the paper does not say.", in_file=True)
    subsets: int | None = option(None, "Draw so many of the subsets that are left; default: take all.", min=1)
    limit: int | None = option(None, "At most so many: images that are tried as a first one.", min=1)
    # As in CIRR, section 4.1.
    splits: str = option(
        "train=80,val=10,test=10", "Shares of the images in percent; no image is in two splits."
    )
    seed: int = option(0, "Seed, a whole number from 0, of all that is drawn.", min=0)
    annotators: int = option(1, "Pages of tasks; subsets are dealt out to them.", min=1)
    common: int = option(0, "Pairs that are on every page, to compare annotators.", min=0, in_file=True)
    min_words: int = option(3, "Shorter captions are refused.", min=1, in_file=True)
    max_alike: int = option(
        2, "Pairs for which one annotator may write the same caption.", min=1, in_file=True
    )
    name: str | None = by_call_alone(None)

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        super().__post_init__()
        check_values(self, CallError)
        for name in (self.name, f"{self.name}_{DIALOGUES}") if self.name is not None else ():
            check_name(name)
        if not 0 <= self.shared <= self.size:
            raise CallError(f"{self.shared} shared images. Fix: name a number from 0 to {self.size}.")
        for name in self.shares:
            if not is_name(name):
                raise CallError(f"a split cannot be called {name!r}. Fix: choose a name of {NAME_RULE}.")
        if PATHS.removesuffix(".jsonl") in self.shares:
            raise CallError(
                f"a split cannot be called 'paths': the dialogue paths are in {PATHS}. Fix: rename it."
            )

    @property
    def heading(self) -> str:
        """What people call the benchmark."""
        return self.title or str(self.name)

    @property
    def form(self) -> ReviewForm:
        """What annotators are asked."""
        from cir_datasets.construction.cirr.answers import annotation_form

        return annotation_form(self.min_words, self.max_alike)

    @property
    def shares(self) -> dict[str, int]:
        """By split its share of the images, in percent."""
        parts = [part.partition("=") for part in self.splits.split(",")]
        by_split = {name: int(share) for name, _, share in parts if share.isascii() and share.isdigit()}
        if len(by_split) < len(parts) or min(by_split.values()) < 1 or sum(by_split.values()) != IN_ALL:
            raise CallError(
                f"--splits {self.splits!r}: shares are whole percents from 1 that add up to 100, and each "
                "split is there once. Fix: write it as train=80,val=10,test=10, or test=100."
            )
        return by_split

    def to_dict(self) -> dict[str, Any]:
        """As JSON values, as the settings of a run hold it: without what the result is called."""
        return {
            "rule": {entry.name: getattr(self, entry.name) for entry in fields(SubsetRule)},
            **{name: getattr(self, name) for name in ("shared", "subsets", "limit")},
            "splits": self.shares,
            **{name: getattr(self, name) for name in ("seed", "annotators", "common")},
            "limits": {"least_words": self.min_words, "most_alike": self.max_alike},
        }

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> CirrPlan:
        """The plan of a run.

        Args:
            settings: as the run was begun with them.
        """
        values = dict(settings["plan"])
        rule, limits, shares = values.pop("rule"), values.pop("limits"), values.pop("splits")
        return cls(
            **rule,
            **values,
            **settings[CALLED],
            splits=",".join(f"{name}={share}" for name, share in shares.items()),
            min_words=limits["least_words"],
            max_alike=limits["most_alike"],
        )
