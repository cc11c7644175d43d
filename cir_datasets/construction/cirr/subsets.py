"""Subsets of similar images out of a folder: first images in random order, the rule, no heavy overlaps."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cir_datasets.common.stages import FAILED, Row
from cir_datasets.construction.cirr.neighbours import MEMORY, neighbours
from cir_datasets.construction.cirr.rule import chosen
from cir_datasets.construction.cirr.subset_rule import UNIT, SubsetRule
from cir_datasets.shapes import Draws


@dataclass(frozen=True)
class SubsetMaker:
    """Makes subsets of first images; can be pickled, so that other processes may.

    Args:
        file: features (.npy), in the order of `ids`.
        ids: of all images, grouped by split.
        bounds: rows of each split, from and to, by its name.
        rule: the rule.
        memory: see `neighbours`.
    """

    file: Path
    ids: Sequence[str]
    bounds: dict[str, tuple[int, int]]
    rule: SubsetRule
    memory: int = MEMORY

    def __call__(self, firsts: Sequence[tuple[str, int]]) -> list[Row]:
        """A row for each first image, given by split and row: its subset, or why there is none."""
        features = np.load(self.file, mmap_mode="r", allow_pickle=False)
        made: dict[tuple[str, int], Row] = {}
        for split, (start, stop) in self.bounds.items():
            rows = [row - start for name, row in firsts if name == split]
            for first, near, values in neighbours(features[start:stop], rows, self.rule, memory=self.memory):
                made[split, first + start] = self._row(split, first + start, (near + start).tolist(), values)
        return [made[first] for first in firsts]

    def _row(self, split: str, first: int, near: list[int], values: Any) -> Row:
        places = chosen(values.tolist(), self.rule)
        row: Row = {
            "split": split,
            "members": [self.ids[first], *(self.ids[near[place]] for place in places)],
            "similarities": [int(values[place]) / UNIT for place in places],
        }
        if len(places) < self.rule.size - 1:
            row[FAILED] = f"only {len(places)} of {self.rule.size - 1} images could be added"
        return row


def first_images(bounds: dict[str, tuple[int, int]], seed: int, limit: int | None) -> list[tuple[str, int]]:
    """All images as first ones, split and row, in an order that the seed decides.

    Args:
        bounds: rows of each split.
        seed: of the order.
        limit: the first so many; None is all.
    """
    every = [(split, row) for split, (start, stop) in bounds.items() for row in range(start, stop)]
    return Draws("cirr", "first", seed).shuffled(every)[:limit]


def without_overlaps(subsets: Sequence[Row], *, shared: int, number: int | None, seed: int) -> list[Row]:
    """The subsets with a number each, and of those that are left out the reason.

    Greedy, in the order in which they were made: a subset goes where it shares more than `shared` images with
    one that stays. Of those that stay `number` are drawn.

    Args:
        subsets: rows of `SubsetMaker` that did not fail.
        shared: images that two subsets may share.
        number: how many are drawn at random; None keeps all.
        seed: of that draw.

    Example:
        >>> rows = [{"members": list(each)} for each in ("abcdef", "abcxyz", "abuvwx")]
        >>> [row.get("failed") for row in without_overlaps(rows, shared=2, number=None, seed=0)]
        [None, 'it shares 3 images with subset 0', None]
    """
    holding: defaultdict[str, list[int]] = defaultdict(list)
    kept: list[int] = []
    rows: list[Row] = []
    for place, subset in enumerate(subsets):
        row = {"subset": place, **subset}
        common = Counter(other for image in subset["members"] for other in holding[image])
        heavy = [other for other, times in common.items() if times > shared]
        if heavy:
            row[FAILED] = f"it shares {common[min(heavy)]} images with subset {min(heavy)}"
        else:
            kept.append(place)
            for image in subset["members"]:
                holding[image].append(place)
        rows.append(row)
    if number is not None:
        drawn = set(Draws("cirr", "drawn", seed).sample(kept, number))
        for place in kept:
            if place not in drawn:
                rows[place][FAILED] = f"not among the {number} that were drawn"
    return rows
