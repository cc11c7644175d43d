"""How long ZeroSight's thresholds take over many frames, and how much memory they hold.

    python perf/zerosight_thresholds.py                                 # 100,000 frames, 2,000 references
    python perf/zerosight_thresholds.py --frames 4000 --references 200  # a quick look

All frames are of one video, which is the dearest case: each reference is compared with every frame, twice.
The vectors are made up, scene by scene, and lie in two files that are mapped into memory, as the pipeline has
them. Shown are the time, the highest resident memory, and what the files and a whole table of similarities
would hold. Pages of the files count as resident while the system keeps them; the bound is on what is held
beyond them and beyond what was held before.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from fresh import Verdict, add_bound_option, at_most, peak_mib

from cir_datasets.construction.zerosight.options import load_thresholds
from cir_datasets.construction.zerosight.queries import target_rows
from cir_datasets.construction.zerosight.references import kept_references

BEYOND = "MiB beyond the vectors' files"
BOUNDS = {BEYOND: at_most(400)}
SCENE = 19
"""Frames of a scene: each has about as many targets as in ZeroSight, 16.05."""
SIGHT, MEANING = (0.2, 0.65, 0.8), (0.4, 0.8, 0.55)
"""How far video, scene and frame move a vector: frames of a scene lie in the middle of the paper's bands."""
MIB = 2**20


def vectors(
    path: Path, frames: int, dimensions: int, seed: int, shares: tuple[float, float, float]
) -> np.ndarray:
    """Frames near the centre of their scene, scenes near the centre of the video; written block by block."""
    draws = np.random.default_rng(seed)
    made = np.lib.format.open_memmap(path, "w+", np.float32, (frames, dimensions))
    of_video, of_scene, of_frame = shares
    whole = draws.standard_normal(dimensions) * of_video
    for start in range(0, frames, SCENE):
        stop = min(frames, start + SCENE)
        centre = whole + draws.standard_normal(dimensions) * of_scene
        block = centre + draws.standard_normal((stop - start, dimensions)) * of_frame
        made[start:stop] = block / np.linalg.norm(block, axis=1, keepdims=True)
    made.flush()
    del made
    found: np.ndarray = np.load(path, mmap_mode="r")
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--frames", type=int, default=100_000)
    options.add_argument("--references", type=int, default=2_000)
    options.add_argument("--dimensions", type=int, default=512)
    add_bound_option(options)
    given = options.parse_args()
    verdict = Verdict(BOUNDS, given.bound)
    limits = load_thresholds("paper")
    images = [f"video/{number:06d}.jpg" for number in range(given.frames)]
    with tempfile.TemporaryDirectory() as folder:
        visual, semantic = (
            vectors(Path(folder) / f"{seed}.npy", given.frames, given.dimensions, seed, shares)
            for seed, shares in enumerate((SIGHT, MEANING))
        )
        files = sum((Path(folder) / f"{seed}.npy").stat().st_size for seed in (0, 1)) / MIB
        before = peak_mib()
        started = time.perf_counter()
        some = images[:: max(1, given.frames // given.references)][: given.references]
        kept = [
            row["image"]
            for row in kept_references(
                [("video", image) for image in some],
                {image: place for place, image in enumerate(images)},
                visual,
                semantic,
                limits,
            )
            if "failed" not in row
        ]
        between = time.perf_counter()
        targets = in_bands = 0
        for row in target_rows("video", kept, images, visual, semantic, limits):
            targets += len(row["targets"])
            in_bands += row["in_bands"]
        ended = time.perf_counter()
    peak = peak_mib()
    print(f"{given.frames:,} frames, {given.dimensions} dimensions")
    print(f"{len(some):,} references, {len(kept):,} of them kept")
    each = targets / max(1, len(kept))
    print(f"{in_bands:,} frames in both bands, {targets:,} targets, {each:.1f} a reference")
    print(f"references {between - started:10.1f} s")
    print(f"targets    {ended - between:10.1f} s")
    print(f"peak       {peak:10,.0f} MiB, {before:,.0f} MiB of it before")
    print(f"files      {files:10,.0f} MiB")
    print(f"a table    {2 * len(kept) * given.frames * 8 / MIB:10,.0f} MiB of all similarities, in float64")
    verdict.head()
    verdict.show(BEYOND, max(0.0, peak - before - files))
    verdict.end()


if __name__ == "__main__":
    main()
