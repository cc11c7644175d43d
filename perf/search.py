"""How long exact search with target ranks takes, beside the bare matrix product and beside loops.

    python perf/search.py                                          # 8,760 turns x 18,500 images x 768
    python perf/search.py --queries 500 --gallery 2000 --repeat 3    # a quick look

The size is that of CIRCLED's fashioniq_shirt_train: the turn queries of its 3,518 sessions. Lists are as long
as CIRCLED's metrics use them. Everything runs in one process and by turns, float32, on all cores that BLAS
uses. The bare product is taken in blocks of the same size into one buffer, and once whole; the faster of the
two is the bound.

    product  numpy matmul, block by block, into one buffer
    whole    numpy matmul, whole (left out where the scores take more than --whole-gib)
    search   Searcher(...).search(...): the best --k of every turn, and its target's exact rank
    python   a loop in Python: a query at a time, every image scored, the gallery sorted, the target looked up
    numpy    the same loop with numpy: a product and a sort a query

The two loops take too long for all queries: they run over the first --loop-queries and are scaled up, which
favours them. Search and the loop in Python give the same ranks, which is checked; float32 products, as the
loop with numpy takes them, do not tell near-ties, and how many of its ranks differ is shown.

How the embeddings lie decides how many near-ties there are: these are independent and normal, scaled to
length 1, and every target is drawn at random, which is the dearest case.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from operator import mul
from typing import Any

import numpy as np
from fresh import Verdict, add_bound_option, at_least, at_most

from cir_metrics.gallery import BLOCK
from submissions.running.search import Searcher

BOUNDS = {
    "search / bare product (medians)": at_most(1.5),
    "loop in Python / search (medians)": at_least(50),
}


def unit_vectors(random: np.random.Generator, shape: tuple[int, int]) -> Any:
    vectors = random.standard_normal(shape, dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def python_loop(
    queries: list[list[float]], gallery: list[list[float]], ids: list[str], targets: list[str], k: int
) -> list[int]:
    """The rank of each target; the lists are made and thrown away."""
    ranks = []
    for query, target in zip(queries, targets, strict=True):
        scores = {image: sum(map(mul, query, vector)) for image, vector in zip(ids, gallery, strict=True)}
        order = sorted(ids, key=scores.__getitem__, reverse=True)
        ranks.append(order.index(target) + 1)
        del order[k:]
    return ranks


def numpy_loop(queries: Any, gallery: Any, ids: list[str], targets: Any, k: int) -> list[int]:
    """The same with a matrix product and a sort of numpy a query."""
    ranks = []
    for query, target in zip(queries, targets, strict=True):
        order = np.argsort(-(gallery @ query), kind="stable")
        ranks.append(int(np.flatnonzero(order == target)[0]) + 1)
        [ids[row] for row in order[:k]]
    return ranks


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--queries", type=int, default=8_760, help="turn queries")
    options.add_argument("--gallery", type=int, default=18_500, help="images")
    options.add_argument("--dimensions", type=int, default=768, help="dimensions of an embedding")
    options.add_argument("--k", type=int, default=10, help="images a ranking")
    options.add_argument("--repeat", type=int, default=5, help="runs of each, by turns")
    options.add_argument("--loop-queries", type=int, default=4, help="queries of the loop in Python")
    options.add_argument("--numpy-queries", type=int, default=100, help="queries of the loop with numpy")
    options.add_argument("--whole-gib", type=float, default=2, help="scores held by the whole product, GiB")
    add_bound_option(options)
    given = options.parse_args()
    verdict = Verdict(BOUNDS, given.bound)
    random = np.random.default_rng(0)
    queries = unit_vectors(random, (given.queries, given.dimensions))
    images = unit_vectors(random, (given.gallery, given.dimensions))
    targets = random.integers(0, given.gallery, given.queries)
    ids = [f"image_{number:06d}" for number in range(given.gallery)]
    held = np.empty((BLOCK, given.gallery), dtype=np.float32)
    few, some = min(given.loop_queries, given.queries), min(given.numpy_queries, given.queries)
    lists, listed = queries[:few].tolist(), images.tolist()
    named = [ids[row] for row in targets[:few]]

    def product() -> None:
        for start in range(0, given.queries, BLOCK):
            part = queries[start : start + BLOCK]
            np.matmul(part, images.T, out=held[: len(part)])

    tasks: dict[str, Callable[[], Any]] = {
        "product": product,
        "search": lambda: Searcher(images, ids).search(queries, given.k, targets=targets),
        "python": lambda: python_loop(lists, listed, ids, named, given.k),
        "numpy": lambda: numpy_loop(queries[:some], images, ids, targets[:some], given.k),
    }
    if given.queries * given.gallery * 4 <= given.whole_gib * 2**30:
        tasks["whole"] = lambda: queries @ images.T
    scale = {"python": given.queries / few, "numpy": given.queries / some}
    product()
    taken: dict[str, list[float]] = {name: [] for name in tasks}
    found: dict[str, Any] = {}
    for _ in range(given.repeat):
        for name, task in tasks.items():
            started = time.perf_counter()
            found[name] = task()
            taken[name].append((time.perf_counter() - started) * scale.get(name, 1.0))
    median = {name: statistics.median(values) for name, values in taken.items()}
    bound = min(median[name] for name in ("product", "whole") if name in median)
    print(
        f"{given.queries:,} turns x {given.gallery:,} images x {given.dimensions} float32, best {given.k}; "
        f"loops over {few} and {some} queries, scaled to all"
    )
    print(f"{'task':8} {'median s':>10} {'least s':>10} {'to bound':>10}")
    for name, values in taken.items():
        print(f"{name:8} {median[name]:10.3f} {min(values):10.3f} {median[name] / bound:10.2f}")
    ranks = found["search"].ranks
    same = found["python"] == ranks[:few].tolist()
    print(f"same ranks by search and the loop in Python: {'yes' if same else 'NO'}")
    if not same:
        verdict.fail("search and the loop in Python give the same ranks")
    print(f"ranks that float32 products get otherwise: {np.mean(found['numpy'] != ranks[:some]):.1%}")
    verdict.head()
    verdict.show("search / bare product (medians)", median["search"] / bound)
    verdict.show("loop in Python / search (medians)", median["python"] / median["search"])
    verdict.note("loop with numpy / search (medians)", median["numpy"] / median["search"])
    verdict.end()


if __name__ == "__main__":
    main()
