"""An epoch's numbers by `submissions.Evaluator`, beside what a training loop writes by hand.

`lean` normalises, multiplies block by block, masks the reference and takes torch's `topk`: it knows no ties,
no ids and no metrics. `full` sorts the whole matrix, makes names of it and masks these, as CLIP4Cir and what
descends from it do. `first epoch` is of a new evaluator, whose lists are put in order to their end, as those
of each best step are. The four take turns in one process, so that a ratio is of one run. Memory is the peak
of a process beyond that of one that holds the same inputs and evaluators and computes nothing.

Vectors are drawn; sizes are FashionIQ's three categories and CIRR's validation split.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fresh

DIMENSIONS = 768
ROUNDS = 9
FASHIONIQ = {"dress": (2017, 3817), "shirt": (2038, 6346), "toptee": (1961, 5373)}
CIRR = (4181, 2297)
BLOCK = 256

BOUNDS = {
    "FashionIQ: evaluator / lean": fresh.at_most(1.15),
    "FashionIQ: first epoch / lean": fresh.at_most(2),
    "FashionIQ: full sort / evaluator": fresh.at_least(4),
    "FashionIQ: MiB beside the inputs": fresh.at_most(64),
    "CIRR: evaluator / lean": fresh.at_most(1.15),
    "CIRR: first epoch / lean": fresh.at_most(2),
    "CIRR: full sort / evaluator": fresh.at_least(4),
    "CIRR: MiB beside the inputs": fresh.at_most(64),
}


def benchmark(benchmark_id: str, queries: int, images: int) -> Any:
    """Made-up rows of a size; the reference is image n, the target the next one."""
    import cir_datasets
    from cir_datasets.rows.benchmark import Benchmark

    ids = [f"im{number:05d}" for number in range(images)]
    rows = []
    for number in range(queries):
        six = [ids[(number + step) % images] for step in range(6)]
        row = {"query_id": f"q{number}", "reference_image_id": six[0], "captions": ["other"]}
        row |= {"relative_caption": "other", "negative_image_ids": [], "aspects": []}
        row |= {"target_image_id": six[1], "positive_image_ids": [six[1]], "subset_image_ids": six}
        rows.append(row)
    return Benchmark.from_rows(cir_datasets.spec(benchmark_id), rows, ids)


class World:
    """Vectors, benchmarks and evaluators of one suite or benchmark."""

    def __init__(self, name: str) -> None:
        import torch

        import submissions

        torch.manual_seed(0)
        sizes = FASHIONIQ if name == "FashionIQ" else {"": CIRR}
        self.parts = []
        for category, (queries, images) in sizes.items():
            of = f"fashioniq/{category}_val" if category else "cirr/val"
            vectors = torch.randn(queries, DIMENSIONS), torch.randn(images, DIMENSIONS)
            self.parts.append((*vectors, benchmark(of, queries, images)))
        self.evaluators = self.made()
        small = submissions.Evaluator(benchmark("fashioniq/dress_val", 60, 60))
        small(queries=torch.randn(60, 8), images=torch.randn(60, 8))  # What is imported late is here now.

    def made(self) -> list[Any]:
        """New evaluators."""
        import submissions

        return [submissions.Evaluator(asked) for *_, asked in self.parts]

    def evaluator(self) -> None:
        for (queries, images, _), evaluator in zip(self.parts, self.evaluators, strict=True):
            evaluator(queries=queries, images=images)

    def lean(self) -> None:
        import torch

        for queries, images, _ in self.parts:
            queries, images = (torch.nn.functional.normalize(each) for each in (queries, images))
            for start in range(0, len(queries), BLOCK):
                scores = queries[start : start + BLOCK] @ images.T
                rows = torch.arange(len(scores))
                scores[rows, (rows + start) % len(images)] = -torch.inf
                scores.topk(50).indices.tolist()

    def full(self) -> None:
        import numpy as np
        import torch

        for queries, images, _ in self.parts:
            names = np.array([f"im{number:05d}" for number in range(len(images))])
            references = names[np.arange(len(queries)) % len(images)]
            targets = names[(np.arange(len(queries)) + 1) % len(images)]
            queries, images = (torch.nn.functional.normalize(each) for each in (queries, images))
            order = torch.argsort(1 - queries @ images.T, dim=-1).numpy()
            ranked = names[order]
            kept = ranked != np.repeat(references, len(names)).reshape(ranked.shape)
            ranked = ranked[kept].reshape(len(ranked), -1)
            hits = torch.from_numpy(ranked == np.repeat(targets, ranked.shape[1]).reshape(ranked.shape))
            [float(hits[:, :k].sum() / len(hits)) for k in (1, 5, 10, 50)]
            if len(self.parts) == 1:
                places = (np.arange(len(queries))[:, None] + np.arange(1, 6)) % len(images)
                members = (ranked[..., None] == names[places][:, None, :]).sum(-1).astype(bool)
                of_group = hits[torch.from_numpy(members)].reshape(len(hits), -1)
                [float(of_group[:, :k].sum() / len(hits)) for k in (1, 2, 3)]


def times(name: str) -> fresh.Task:
    """Seconds of the three, by turns."""

    def task(_: Path) -> Callable[[], Any]:
        world = World(name)

        def run() -> dict[str, list[float]]:
            found: dict[str, list[float]] = {"lean": [], "evaluator": [], "first epoch": [], "full": []}
            for _ in range(ROUNDS + 1):
                for each, seconds in found.items():
                    if each == "first epoch":
                        world.evaluators = world.made()
                    work = getattr(world, "evaluator" if each == "first epoch" else each)
                    started = time.perf_counter()
                    work()
                    seconds.append(time.perf_counter() - started)
            return {each: seconds[1:] for each, seconds in found.items()}

        return run

    return task


def memory(name: str, computes: bool) -> fresh.Task:
    """The peak with and without the computation."""

    def task(_: Path) -> Callable[[], Any]:
        world = World(name)
        return world.evaluator if computes else lambda: None

    return task


TASKS: dict[str, fresh.Task] = {}
for _name in ("FashionIQ", "CIRR"):
    TASKS |= {f"{_name} times": times(_name)}
    TASKS |= {f"{_name} inputs": memory(_name, False), f"{_name} computed": memory(_name, True)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--task", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    fresh.add_bound_option(parser)
    options = parser.parse_args()
    if options.task:
        fresh.answer(TASKS, options.task, options.folder)
        return
    verdict = fresh.Verdict(BOUNDS, options.bound)
    with tempfile.TemporaryDirectory() as folder:
        env = fresh.environment(Path(folder))
        found = fresh.measured(__file__, list(TASKS), Path(folder), 1, env)
    print(fresh.HEAD)
    for name in ("FashionIQ", "CIRR"):
        for each, seconds in found[f"{name} times"].shown.items():
            fresh.show(f"{name}: {each}", fresh.Measured(seconds))
    verdict.head()
    for name in ("FashionIQ", "CIRR"):
        shown = found[f"{name} times"].shown

        def ratio(one: str, other: str, shown: dict[str, Any] = shown) -> float:
            return statistics.median(a / b for a, b in zip(shown[one], shown[other], strict=True))

        verdict.show(f"{name}: evaluator / lean", ratio("evaluator", "lean"))
        verdict.show(f"{name}: first epoch / lean", ratio("first epoch", "lean"))
        verdict.show(f"{name}: full sort / evaluator", ratio("full", "evaluator"))
        peaks = [found[f"{name} {kind}"].peak_mib or 0 for kind in ("computed", "inputs")]
        verdict.show(f"{name}: MiB beside the inputs", peaks[0] - peaks[1])
    verdict.end()


if __name__ == "__main__":
    main()
