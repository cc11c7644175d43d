"""Shapes, the embedded benchmark: a small rendered world. Synthetic, and meant to be seen as such.

Pictures come from scene graphs, so that whatever a person or a model would be asked about them has an exact
answer: `describe` is the caption of a scene, `difference` the relative caption between two, `merge` the scene
that a relative caption makes of its reference. Everything is computed from nothing, in whole numbers, and is
the same on every machine. What the benchmark asks and how it was made stands in the `README.md` beside.
"""

from __future__ import annotations

from cir_datasets.shapes.draws import Draws
from cir_datasets.shapes.edits import random_scene
from cir_datasets.shapes.gallery import (
    SPLITS,
    Split,
    clip,
    load_pixels,
    manifest,
    picture,
    relative_path,
    scene,
    split,
    split_of,
    write_pictures,
)
from cir_datasets.shapes.language import NUMBERS, PLACES, VIEWS, describe, difference, merge, plural, read
from cir_datasets.shapes.render import SIDE, pixel_sha256, pixels
from cir_datasets.shapes.world import (
    BACKGROUNDS,
    COLOURS,
    SHAPES,
    SIZES,
    TEXTURES,
    VIEWPOINTS,
    Change,
    Goal,
    Look,
    Meaning,
    Scene,
    Thing,
    changes,
    distance,
    one_step_away,
)

__all__ = [
    "BACKGROUNDS",
    "COLOURS",
    "NUMBERS",
    "PLACES",
    "SHAPES",
    "SIDE",
    "SIZES",
    "SPLITS",
    "TEXTURES",
    "VIEWPOINTS",
    "VIEWS",
    "Change",
    "Draws",
    "Goal",
    "Look",
    "Meaning",
    "Scene",
    "Split",
    "Thing",
    "changes",
    "clip",
    "describe",
    "difference",
    "distance",
    "load_pixels",
    "manifest",
    "merge",
    "one_step_away",
    "picture",
    "pixel_sha256",
    "pixels",
    "plural",
    "random_scene",
    "read",
    "relative_path",
    "scene",
    "split",
    "split_of",
    "write_pictures",
]
