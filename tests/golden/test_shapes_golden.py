"""Shapes is the same on every machine: hashes of its rows and pixels, pinned.

`python tests/golden/test_shapes_golden.py [val|train ...]` prints them. A change of any hash moves published
numbers: raise the card's version and the builder's with it.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cir_datasets import registry
from cir_datasets.builders.shapes import Shapes
from cir_datasets.rows.hashing import data_hash, gallery_hash

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = json.loads((ROOT / "tests" / "golden" / "shapes.json").read_text(encoding="utf-8"))


def hashes(config: str) -> dict[str, Any]:
    """What is pinned of a configuration; the card's and the builder's versions belong to it."""
    builder = Shapes(registry.spec(f"shapes/{config}"), {})
    rows, images = list(builder.rows()), list(builder.images())
    pixels = "".join(row["pixel_sha256"] for row in images)
    return {
        "card_version": builder.spec.card.version,
        "builder_version": builder.spec.card.builder_version,
        "rows_sha256": hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest(),
        "data_hash": data_hash(rows),
        "gallery_hash": gallery_hash(row["image_id"] for row in images),
        "pixels_sha256": hashlib.sha256(pixels.encode()).hexdigest(),
        "pictures": {row["image_id"]: row["pixel_sha256"] for row in images[:5]},
    }


def test_the_golden_file_says_where_it_comes_from() -> None:
    assert "test_shapes_golden.py" in GOLDEN["from"]["command"]
    assert set(GOLDEN["configs"]) == set(registry.card("shapes").configs)


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name.endswith("train") else [])
        for name in GOLDEN["configs"]
    ],
)
def test_rows_and_pixels_are_the_pinned_ones(config: str) -> None:
    assert hashes(config) == GOLDEN["configs"][config]


@pytest.mark.slow
def test_another_process_with_other_string_hashes_makes_the_same() -> None:
    environment = os.environ | {"PYTHONHASHSEED": "4242", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, __file__, "val", "multiturn_val"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {name: GOLDEN["configs"][name] for name in ("val", "multiturn_val")}


if __name__ == "__main__":
    print(json.dumps({config: hashes(config) for config in sys.argv[1:] or GOLDEN["configs"]}, indent=2))
