"""How long `rank_file_from_scores` takes for a memory map of scores, and how much memory, beside numpy alone.

    python perf/scores.py                                  # 8,000 queries, 123,403 images: 3.9 GB on disk
    python perf/scores.py --queries 500 --images 5000           # a quick look

    ours          a rank file of the best 50 of each row, checked for NaN, joined by ids, ties in their order
    argpartition  blocks of 64 rows are read and `np.argpartition` is called; nothing is written or checked

Scores are drawn at random. The benchmark is made of CIRCO's card with as many queries, each with one right
answer. Tasks take turns, each run in a Python of its own; loading and making the benchmark is not counted.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from fresh import (
    HEAD,
    Verdict,
    add_bound_option,
    answer,
    at_most,
    environment,
    measured,
    show,
)

RATIO, PEAK = "ours / argpartition (medians)", "peak memory of ours, MiB"
BOUNDS = {RATIO: at_most(1.5), PEAK: at_most(2048)}
ROWS, BEST = 64, 50


def written(folder: Path, queries: int, images: int) -> None:
    """Scores, block by block, and their shape."""
    draws = np.random.default_rng(0)
    scores = np.lib.format.open_memmap(folder / "scores.npy", "w+", np.float32, (queries, images))
    for at in range(0, queries, ROWS):
        scores[at : at + ROWS] = draws.random((min(ROWS, queries - at), images), np.float32)
    scores.flush()
    (folder / "shape.json").write_text(json.dumps([queries, images]))


def ours(folder: Path) -> Callable[[], Any]:
    from cir_datasets.registry import spec
    from cir_datasets.rows.benchmark import Benchmark
    from submissions import rank_file_from_scores

    queries, images = json.loads((folder / "shape.json").read_text())
    gallery = [f"{number:012d}" for number in range(images)]
    rows: list[dict[str, Any]] = [
        {
            "query_id": str(number),
            "reference_image_id": gallery[number % images],
            "captions": ["is red"],
            "relative_caption": "is red",
            "target_image_id": gallery[(number + 1) % images],
            "positive_image_ids": [gallery[(number + 1) % images]],
            "negative_image_ids": [],
            "subset_image_ids": [],
            "aspects": [],
        }
        for number in range(queries)
    ]
    benchmark = Benchmark.from_rows(spec("circo/val"), rows, gallery)
    scores = np.load(folder / "scores.npy", mmap_mode="r")

    def made() -> dict[str, Any]:
        found = rank_file_from_scores(
            benchmark, scores, query_ids=benchmark.query_ids, image_ids=gallery, method="Random"
        )
        return {"rankings": len(found.rankings)}

    return made


def argpartition(folder: Path) -> Callable[[], Any]:
    scores = np.load(folder / "scores.npy", mmap_mode="r")

    def found() -> None:
        for at in range(0, len(scores), ROWS):
            np.argpartition(scores[at : at + ROWS], scores.shape[1] - BEST, axis=1)

    return found


TASKS = {"ours": ours, "argpartition": argpartition}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--queries", type=int, default=8_000)
    options.add_argument("--images", type=int, default=123_403)
    options.add_argument("--repeat", type=int, default=3, help="runs of each, by turns")
    options.add_argument("--task", choices=TASKS, help=argparse.SUPPRESS)
    options.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    add_bound_option(options)
    given = options.parse_args()
    if given.task:
        answer(TASKS, given.task, given.folder)
        return
    verdict = Verdict(BOUNDS, given.bound)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        written(folder, given.queries, given.images)
        taken = measured(__file__, list(TASKS), folder, given.repeat, environment(folder))
    print(f"{given.queries:,} queries, {given.images:,} images, float32 in a file that is mapped into memory")
    print(HEAD)
    for task, this in taken.items():
        show(task, this)
    if taken["ours"].shown != {"rankings": given.queries}:
        verdict.fail("each query has a ranking")
    verdict.head()
    verdict.show(RATIO, taken["ours"].median / taken["argpartition"].median)
    verdict.show(PEAK, taken["ours"].peak_mib or 0)
    verdict.end()


if __name__ == "__main__":
    main()
