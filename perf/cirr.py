"""How long CIRR's subsets take over many features, and what they hold, beside a plain matrix product.

    python perf/cirr.py                                     # 100,000 images, 1,024 first images
    python perf/cirr.py --images 4000 --firsts 128          # a quick look

    ours     the subset of each first image: products, exact similarities near the limits, the rule
    product  cosines in float32 of the same first images with all others, block by block; nothing is looked
             for in them, so that no program that compares every pair takes less

Both take turns in one process, and medians are compared. The vectors are made up, around 2,000 centres, and
lie in a file that is mapped into memory, as the pipeline has them. Memory is what Python and numpy hold at
most while subsets are made, in a run of its own; all similarities at once would be 37 GiB.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
import tracemalloc
from pathlib import Path

import numpy as np
from fresh import Verdict, add_bound_option, at_most

from cir_datasets.construction.cirr.subset_rule import SubsetRule
from cir_datasets.construction.cirr.subsets import SubsetMaker, first_images

RATIO, HELD = "ours / product", "MiB held at most"
BOUNDS = {RATIO: at_most(4), HELD: at_most(100)}
CENTRES, ROWS, MIB = 2000, 8192, 2**20


def written(file: Path, images: int, dimensions: int) -> None:
    """Features around centres, written block by block."""
    draws = np.random.default_rng(0)
    features = np.lib.format.open_memmap(file, "w+", np.float32, (images, dimensions))
    centres = draws.standard_normal((CENTRES, dimensions), np.float32)
    for at in range(0, images, ROWS):
        some = centres[draws.integers(0, CENTRES, min(ROWS, images - at))]
        features[at : at + ROWS] = some + 0.5 * draws.standard_normal(some.shape, np.float32)
    features.flush()


def product(file: Path, firsts: np.ndarray) -> None:
    """Cosines of first images with all, a block at a time."""
    features = np.load(file, mmap_mode="r")
    queries = features[firsts] / np.linalg.norm(features[firsts], axis=1, keepdims=True)
    for at in range(0, len(features), ROWS):
        block = features[at : at + ROWS]
        np.divide(queries @ block.T, np.linalg.norm(block, axis=1))


def seconds(function: object, *given: object) -> float:
    started = time.perf_counter()
    function(*given)  # type: ignore[operator]
    return time.perf_counter() - started


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--images", type=int, default=100_000)
    options.add_argument("--firsts", type=int, default=1024)
    options.add_argument("--dimensions", type=int, default=512)
    options.add_argument("--repeat", type=int, default=5)
    add_bound_option(options)
    given = options.parse_args()
    verdict = Verdict(BOUNDS, given.bound)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "features.npy"
        written(file, given.images, given.dimensions)
        bounds = {"test": (0, given.images)}
        maker = SubsetMaker(file, [str(row) for row in range(given.images)], bounds, SubsetRule())
        firsts = first_images(bounds, 0, given.firsts)
        rows = np.array([row for _, row in firsts])
        ours, plain = [], []
        for _ in range(given.repeat):
            ours.append(seconds(maker, firsts))
            plain.append(seconds(product, file, rows))
        tracemalloc.start()
        full = sum("failed" not in row for row in maker(firsts))
        _, held = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    print(f"{given.images:,} images, {given.dimensions} dimensions")
    print(f"{len(firsts):,} first images, {full:,} subsets")
    for name, taken in (("ours", ours), ("product", plain)):
        print(
            f"{name:8} {1000 * statistics.median(taken) / len(firsts):8.2f} ms a first image, "
            f"median of {len(taken)}"
        )
    verdict.head()
    verdict.show(RATIO, statistics.median(ours) / statistics.median(plain))
    verdict.show(HELD, held / MIB)
    verdict.end()


if __name__ == "__main__":
    main()
