"""How long the bootstrap and the randomisation test take over ZeroSight's 54,740 queries and eight metrics.

    python perf/intervals.py                     # 10,000 draws, three runs, medians
    python perf/intervals.py --draws 1000 --queries 4181

Values are invented: four columns of zeros and ones (recall), four of fractions (average precision). The ratio
is to the draws alone: numpy's random places of all queries of all draws, without any mean. A plain loop of
`values[places].mean(axis=0)` over a hundredth of the draws stands beside it, times 100.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
from fresh import Verdict, add_bound_option, at_most

from cir_metrics.resampling import bootstrap_means, bootstrap_medians, percentile_interval
from cir_metrics.significance import randomisation_test

BOUNDS = {
    "intervals of means, s": at_most(10),
    "interval of one median, s": at_most(10),
}
LOOP_SHARE = 100


def median_seconds(task: Callable[[], object], repeat: int) -> float:
    seconds = []
    for _ in range(repeat):
        start = time.perf_counter()
        task()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--queries", type=int, default=54_740, help="queries that are drawn")
    parser.add_argument("--metrics", type=int, default=8, help="metrics, half of them zeros and ones")
    parser.add_argument("--draws", type=int, default=10_000, help="draws of the bootstrap, changes of sign")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each, whose median is printed")
    add_bound_option(parser)
    options = parser.parse_args()
    verdict = Verdict(BOUNDS, options.bound)
    n, m, draws = options.queries, options.metrics, options.draws
    random = np.random.default_rng(1)
    values = random.random((n, m))
    values[:, : m // 2] = values[:, : m // 2] < 0.4
    other = random.permutation(values)
    ranks = random.integers(1, 52, n).astype(np.float64)

    def places() -> None:
        generator = np.random.default_rng(2)
        for _ in range(draws):
            generator.integers(0, n, size=n, dtype=np.uint32)

    def loop() -> None:
        generator = np.random.default_rng(2)
        for _ in range(max(1, draws // LOOP_SHARE)):
            values[generator.integers(0, n, size=n)].mean(axis=0)

    tasks: dict[str, Callable[[], object]] = {
        "draws alone": places,
        "intervals of means": lambda: percentile_interval(bootstrap_means(values, draws=draws)),
        "interval of one median": lambda: percentile_interval(bootstrap_medians(ranks, draws=draws)),
        "tests of differences": lambda: randomisation_test(values - other, draws=draws),
    }
    print(f"{n:,} queries, {m} metrics, {draws:,} draws, median of {options.repeat}")
    found = {name: median_seconds(task, options.repeat) for name, task in tasks.items()}
    found["plain loop (a hundredth, times 100)"] = LOOP_SHARE * median_seconds(loop, options.repeat)
    for name, seconds in found.items():
        print(f"{name:<36} {seconds:7.2f} s  {seconds / found['draws alone']:6.2f} x draws alone")
    verdict.head()
    for name in ("intervals of means", "interval of one median"):
        verdict.show(f"{name}, s", found[name])
    verdict.end()


if __name__ == "__main__":
    main()
