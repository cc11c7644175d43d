"""How long ranks straight from embeddings take, beside the bare matrix product.

    python perf/ranks.py                                         # 8,760 queries x 18,500 images x 768
    python perf/ranks.py --queries 1000 --gallery 4000 --repeat 3  # a quick look
    python perf/ranks.py --search                                # also rankings and ranks in one pass

Everything runs in one process and by turns, float32, on all cores that BLAS uses. The bare product is taken
in blocks of the same size into one buffer, and once whole; the faster of the two is the bound. `Gallery`
checks the embeddings, multiplies, counts, and scores near-ties anew. Printed are medians, least values,
ratios to the bound, the peak of memory beyond the embeddings, and whether all block sizes gave
the same ranks.

    product    numpy matmul, block by block, into one buffer
    whole      numpy matmul, whole (left out where the scores take more than --whole-gib)
    ranks      Gallery(...).target_ranks, one target a query
    targets    the same with four targets a query
    best       Gallery(...).best_target_ranks of the four
    search     the best 50 of each query and its target's rank in one pass; `perf/search.py` bounds it

How the embeddings lie decides how many near-ties there are: these are independent and normal, scaled to
length 1, and every target is drawn at random, which is the dearest case (a target that stands high has few
images beside it).
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from fresh import Verdict, add_bound_option, at_most, peak_mib

from cir_metrics.gallery import BLOCK, Gallery

BLOCKS = (64, 200, 512, 1000)
BOUNDS = {
    "ranks / bare product (medians)": at_most(1.3),
    "ranks / bare product (least values)": at_most(1.3),
    "targets / bare product (medians)": at_most(1.3),
    "best / bare product (medians)": at_most(1.3),
}


def unit_vectors(random: np.random.Generator, shape: tuple[int, int]) -> Any:
    vectors = random.standard_normal(shape, dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def seconds(tasks: dict[str, Callable[[], Any]], repeat: int) -> dict[str, list[float]]:
    taken: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(repeat):
        for name, task in tasks.items():
            started = time.perf_counter()
            task()
            taken[name].append(time.perf_counter() - started)
    return taken


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--queries", type=int, default=8_760, help="queries")
    options.add_argument("--gallery", type=int, default=18_500, help="images")
    options.add_argument("--dimensions", type=int, default=768, help="dimensions of an embedding")
    options.add_argument("--block", type=int, default=BLOCK, help="queries whose scores are held at once")
    options.add_argument("--repeat", type=int, default=7, help="runs of each, by turns")
    options.add_argument("--whole-gib", type=float, default=2, help="scores held by the whole product, GiB")
    options.add_argument("--search", action="store_true", help="also rankings and ranks in one pass")
    add_bound_option(options)
    given = options.parse_args()
    verdict = Verdict(BOUNDS, given.bound)
    random = np.random.default_rng(0)
    queries = unit_vectors(random, (given.queries, given.dimensions))
    images = unit_vectors(random, (given.gallery, given.dimensions))
    one = random.integers(0, given.gallery, given.queries)
    four = np.argsort(random.random((given.queries, 8)), axis=1)[:, :4] + random.integers(
        0, given.gallery - 8, (given.queries, 1)
    )
    ids = [f"image_{number:06d}" for number in range(given.gallery)]
    held = np.empty((given.block, given.gallery), dtype=np.float32)

    def product() -> None:
        for start in range(0, given.queries, given.block):
            part = queries[start : start + given.block]
            np.matmul(part, images.T, out=held[: len(part)])

    def ranks(block: int = given.block) -> Any:
        return Gallery(images).target_ranks(queries, one, block=block)

    product()
    # Forget the peak so far (proc(5)): only what ranking needs is to be seen, its block of scores included.
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = peak_mib()
    first = ranks()
    grown = peak_mib() - before
    tasks: dict[str, Callable[[], Any]] = {
        "product": product,
        "ranks": ranks,
        "targets": lambda: Gallery(images).target_ranks(queries, four, block=given.block),
        "best": lambda: Gallery(images).best_target_ranks(queries, four, block=given.block),
    }
    if given.queries * given.gallery * 4 <= given.whole_gib * 2**30:
        tasks["whole"] = lambda: queries @ images.T
    if given.search:
        tasks["search"] = lambda: Gallery(images, ids).search(queries, 50, targets=one, block=given.block)
    taken = seconds(tasks, given.repeat)
    bound = {
        "median": min(statistics.median(taken[name]) for name in ("product", "whole") if name in taken),
        "least": min(min(taken[name]) for name in ("product", "whole") if name in taken),
    }
    print(
        f"{given.queries:,} x {given.gallery:,} x {given.dimensions} float32, blocks of {given.block}, "
        f"peak beyond the embeddings: {grown:.0f} MiB"
    )
    print(f"{'task':10} {'median s':>9} {'least s':>9} {'to bound':>9} {'(least)':>9}")
    for name, values in taken.items():
        median, least = statistics.median(values), min(values)
        print(
            f"{name:10} {median:9.3f} {least:9.3f} {median / bound['median']:9.2f} "
            f"{least / bound['least']:9.2f}"
        )
    same = all(bool((ranks(block) == first).all()) for block in BLOCKS)
    print(f"same ranks in blocks of {', '.join(map(str, BLOCKS))}: {'yes' if same else 'NO'}")
    if not same:
        verdict.fail("ranks in blocks of different sizes are the same")
    verdict.head()
    for name in ("ranks", "targets", "best"):
        verdict.show(f"{name} / bare product (medians)", statistics.median(taken[name]) / bound["median"])
    verdict.show("ranks / bare product (least values)", min(taken["ranks"]) / bound["least"])
    verdict.end()


if __name__ == "__main__":
    main()
