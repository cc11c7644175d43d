"""Closed loops against every order of a subset's images, and on CIRR's own annotations."""

from __future__ import annotations

import json
import os
import random
from itertools import pairwise, permutations
from pathlib import Path

import pytest

from cir_datasets.rows.closed_loops import closed_loop

HOME = os.environ.get("CIR_DATA_HOME", "")
IMAGES = ["a", "b", "c", "d", "e", "f"]


@pytest.mark.parametrize("seed", range(40))
def test_a_loop_is_found_where_some_order_of_the_images_is_one(seed: int) -> None:
    chance = random.Random(seed)
    pairs = {tuple(chance.sample(IMAGES, 2)) for _ in range(chance.randint(6, 18))}
    targets: dict[str, list[str]] = {}
    for reference, target in sorted(pairs):
        targets.setdefault(reference, []).append(target)
    loops = [["a", *rest] for rest in permutations(IMAGES[1:]) if {*pairwise(["a", *rest, "a"])} <= pairs]
    found = closed_loop(targets, IMAGES)
    assert (found is None) == (not loops)
    assert found is None or found in loops


@pytest.mark.real_data
@pytest.mark.skipif(not HOME, reason="CIR_DATA_HOME is not set: no real annotations")
def test_the_loops_of_cirr_are_those_of_the_publishers_sequence() -> None:
    """The file numbers the images of a subset; the loop goes by these numbers (paper, Figure 6)."""
    captions = json.loads((Path(HOME) / "cirr/captions/cap.rc2.val.json").read_text(encoding="utf-8"))
    subsets: dict[int, list[dict[str, int | str]]] = {}
    for each in captions:
        ranks = {name: each["img_set"][name] for name in ("reference_rank", "target_rank")}
        pair = {"reference": each["reference"], "target": each["target_hard"], **ranks}
        subsets.setdefault(each["img_set"]["id"], []).append(pair)
    members = {each["img_set"]["id"]: each["img_set"]["members"] for each in captions}
    loops = 0
    for subset, pairs in subsets.items():
        targets: dict[str, list[str]] = {}
        for pair in pairs:
            targets.setdefault(str(pair["reference"]), []).append(str(pair["target"]))
        following = {
            p["reference_rank"] for p in pairs if p["target_rank"] == (int(p["reference_rank"]) + 1) % 6
        }
        found = closed_loop(targets, members[subset])
        assert (found is not None) == (len(following) == 6)
        loops += found is not None
    assert (loops, len(subsets)) == (369, 503)
