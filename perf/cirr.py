"""CIRR's subsets of 100,000 features of 512 numbers: time a first image, and the memory that it takes.

python perf/cirr.py [--images 100000] [--firsts 1024]
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from cir_datasets.construction.cirr.rule import SubsetRule
from cir_datasets.construction.cirr.subsets import SubsetMaker, first_images


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--images", type=int, default=100_000)
    parser.add_argument("--firsts", type=int, default=1024)
    arguments = parser.parse_args()
    number, dimensions = arguments.images, 512
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "features.npy"
        features = np.lib.format.open_memmap(file, "w+", np.float32, (number, dimensions))
        centres = rng.normal(size=(2000, dimensions)).astype(np.float32)
        for at in range(0, number, 8192):
            rows = centres[rng.integers(0, 2000, min(8192, number - at))]
            features[at : at + 8192] = rows + 0.5 * rng.normal(size=rows.shape).astype(np.float32)
        features.flush()
        del features
        bounds = {"test": (0, number)}
        maker = SubsetMaker(file, [str(row) for row in range(number)], bounds, SubsetRule())
        firsts = first_images(bounds, 0, arguments.firsts)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        started = time.perf_counter()
        made = maker(firsts)
        seconds = time.perf_counter() - started
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    full = sum("failed" not in row for row in made)
    print(f"{number:,} images, {len(firsts):,} first images, {full:,} subsets")
    print(f"{1000 * seconds / len(firsts):.1f} ms a first image")
    print(
        f"highest {after / 1024:,.0f} MiB, {(after - before) / 1024:,.0f} while subsets were made; "
        f"all similarities would be {4 * number**2 / 2**20:,.0f} MiB"
    )


if __name__ == "__main__":
    main()
