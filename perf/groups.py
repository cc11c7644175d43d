"""How long the rank groups of a board take, all at once and with one more entry, and how much memory.

    python perf/groups.py                                      # 300 methods, CIRR val's 4,181 queries
    python perf/groups.py --methods 60 --queries 800 --repeat 1  # a quick look

Every method has a strength of its own, in equal steps, and a value of a query is the mean of two hits, as
that of `mean(recall@5, recall_subset@1)` is: few values, and no test that is exact. Each run is a process of
its own.

    groups   every test anew, as for a board's first table
    entry    one more method, in the middle of a board whose tests are known
    product  the signs of all draws times all values, float64, block by block: the arithmetic alone
    tests    each method against its leader by `randomisation_test` alone: --tests of them, scaled to all
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
    Task,
    Verdict,
    add_bound_option,
    answer,
    at_least,
    at_most,
    environment,
    measured,
    show,
)

from cir_metrics.significance import paired_differences, randomisation_test
from cir_metrics.sums import exact_means
from submissions.comparison.groups import leader_groups

BOUNDS = {
    "groups, s": at_most(10),
    "one more entry, s": at_most(2),
    "groups / bare product (medians)": at_most(5),
    "tests one by one / groups (medians)": at_least(5),
    "peak of groups, MiB": at_most(400),
}
BLOCK = 256


def board(methods: int, queries: int) -> list[Any]:
    """Values a query of each method, best first."""
    random = np.random.default_rng(7)
    ease = random.random(queries)
    strengths = np.linspace(0.3, -0.3, methods)
    hits = [[random.random(queries) < ease + strength for _ in range(2)] for strength in strengths]
    values = [np.add(*pair, dtype=np.float64) / 2 for pair in hits]
    order = np.argsort(-exact_means(np.stack(values, axis=1)), kind="stable")
    return [values[place] for place in order]


def kept_values(folder: Path) -> list[Any]:
    return list(np.load(folder / "values.npy"))


def groups(folder: Path) -> Callable[[], Any]:
    values = kept_values(folder)

    def run() -> dict[str, Any]:
        found = leader_groups(values)
        return {"groups": found.group[-1], "settled": found.settled, "draws": found.draws}

    return run


def entry(folder: Path) -> Callable[[], Any]:
    values = kept_values(folder)
    known = json.loads((folder / "known.json").read_text(encoding="utf-8"))
    return lambda: leader_groups(values, known=known)


def product(folder: Path) -> Callable[[], Any]:
    values = np.stack(kept_values(folder), axis=1)
    draws = json.loads((folder / "draws.json").read_text(encoding="utf-8"))
    signs = (np.random.default_rng(1).random((BLOCK, len(values))) < 0.5).astype(np.float64)
    held = np.empty((BLOCK, values.shape[1]))

    def run() -> None:
        for _ in range(-(-draws // BLOCK)):
            np.matmul(signs, values, out=held)

    return run


def tests(folder: Path) -> Callable[[], Any]:
    values = kept_values(folder)
    places = json.loads((folder / "tests.json").read_text(encoding="utf-8"))

    def run() -> None:
        for one, other in places:
            randomisation_test(paired_differences(values[one], values[other]))

    return run


TASKS: dict[str, Task] = {"groups": groups, "entry": entry, "product": product, "tests": tests}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--methods", type=int, default=300, help="methods on the board")
    parser.add_argument("--queries", type=int, default=4_181, help="queries of the benchmark")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each, by turns")
    parser.add_argument("--tests", type=int, default=20, help="tests that are run one by one")
    parser.add_argument("--task", choices=TASKS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    add_bound_option(parser)
    options = parser.parse_args()
    if options.task:
        answer(TASKS, options.task, options.folder)
        return
    verdict = Verdict(BOUNDS, options.bound)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        values = board(options.methods, options.queries)
        np.save(folder / "values.npy", np.stack(values))
        middle = options.methods // 2
        known = leader_groups(values[:middle] + values[middle + 1 :])
        found = leader_groups(values)
        pairs = [(place, test.against) for place, test in enumerate(found.decided) if test is not None]
        some = pairs[:: -(-len(pairs) // options.tests)]
        for file, what in (("known", dict(known.tests)), ("draws", found.draws), ("tests", some)):
            (folder / f"{file}.json").write_text(json.dumps(what), encoding="utf-8")
        taken = measured(__file__, list(TASKS), folder, options.repeat, environment(folder))
    same = leader_groups(values, known=known.tests).group == found.group
    print(f"{options.methods:,} methods, {options.queries:,} queries, {found.draws:,} draws")
    print(f"groups: {found.group[-1]}, settled: {'yes' if found.settled else 'no'}")
    print(f"same groups with one more entry and anew: {'yes' if same else 'NO'}")
    if not same:
        verdict.fail("the groups are the same with one more entry and anew")
    print(HEAD)
    for task, one in taken.items():
        show(task, one)
    one_by_one = taken["tests"].median * len(pairs) / len(some)
    verdict.head()
    verdict.show("groups, s", taken["groups"].median)
    verdict.show("one more entry, s", taken["entry"].median)
    verdict.show("groups / bare product (medians)", taken["groups"].median / taken["product"].median)
    verdict.show("tests one by one / groups (medians)", one_by_one / taken["groups"].median)
    verdict.show("peak of groups, MiB", taken["groups"].peak_mib or 0.0)
    verdict.end()


if __name__ == "__main__":
    main()
