"""How fast a benchmark of ZeroSight's size is scored, beside the ways in use.

    python perf/zerosight.py                                # 54,740 queries of 50 results, five runs each
    python perf/zerosight.py --queries 3000 --images 12000  # a quick look

Every run is a fresh Python; imports are not part of the times. Printed are medians, least values and peak
memory, then the ratios with what is asked of them. All give mAP and PNR-mAP at 5, 10, 25 and 50 (the last
four mAP alone), and the script stops where two of them disagree.

    orjson     orjson parses the two files, queries.json and results.json, and nothing else: the bound
    score      cir_datasets.load and submissions.score of the rank file: checks, numbers, signatures
    parquet    the same from the rank file as Parquet (`cir convert --to parquet`)
    evaluate   the two files parsed with orjson, then cir_metrics.evaluate_single_turn
    torch_loop the two files parsed with json, then a loop over the queries in the manner of the paper's
               program: numpy isin on arrays of strings, torch cumsum, and for PNR-mAP's weights a nonzero
               and a mean of torch at each of the 50 places, which is most of its time
    python_loop  the same loop with the weights in plain Python, a running mean over the 50 places; nothing is
               asked of the ratio to it
    map_ours   mAP of lists that are parsed already, with cir_metrics.evaluate_single_turn
    pytrec     the same with pytrec_eval, its dictionaries included
    ranx       the same with ranx, compiled before, its Qrels and Run included
    memory     orjson's whole parse of the rank file, for comparison
    cir        `cir score --json` of the rank file, imports and report included: its peak of memory is what
               is compared with the file's size
    cir_parquet  the same from Parquet

A small file is scored before the clock starts, so that what is imported on first use is not part of the times
either. pytrec_eval and ranx divide by all positives where ours divides by min(positives, K): their values are
compared where K reaches the number of positives. perf/requirements.txt lists what is needed beside the suite.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fresh import (
    HEAD,
    ROOT,
    Measured,
    Verdict,
    add_bound_option,
    answer,
    at_least,
    at_most,
    environment,
    measured,
    show,
)
from stand_in import ZEROSIGHT, mode, write_released, write_run, write_stand_in

KS = (5, 10, 25, 50)
MAPS = [f"map@{k}" for k in KS]
METRICS = [*MAPS, *(f"pnr_map@{k}" for k in KS)]
SMALL = "small"
"""Folder of a small stand-in beside the other."""
PEERS = {"pytrec": "pytrec_eval", "ranx": "ranx", "torch_loop": "torch", "python_loop": "torch"}
LOOPS = ("torch_loop", "python_loop")
BOUNDS = {
    "torch loop / score": at_least(30),
    "torch loop / evaluate": at_least(25),
    "score / orjson": at_most(2),
    "evaluate / orjson": at_most(3),
    "pytrec_eval / ours, mAP of parsed lists": at_least(1.5),
    "ranx / ours, mAP of parsed lists": at_least(5),
    # Half a second of 0.9 is the same work for both, and 0.2 s are the process that decodes Parquet.
    "Parquet / JSON": at_most(0.6),
    "peak memory of cir / size of the JSON": at_most(6),
    "peak memory of cir_parquet / size of the JSON": at_most(2),
}


def parse_released(folder: Path) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:
    import orjson

    return (
        orjson.loads((folder / "queries.json").read_bytes()),
        orjson.loads((folder / "results.json").read_bytes()),
    )


def orjson_task(folder: Path) -> Callable[[], Any]:
    import orjson  # noqa: F401

    return lambda: len(parse_released(folder))


def memory_task(folder: Path) -> Callable[[], Any]:
    import orjson

    return lambda: len(orjson.loads((folder / "run.json").read_bytes()))


def score_task(folder: Path, file: str = "run.json") -> Callable[[], Any]:
    import cir_datasets.prepared
    import submissions.scoring

    def run(folder: Path = folder) -> Any:
        benchmark = cir_datasets.load("zerosight/all", data_dir=folder, verification_mode=mode(folder))
        return submissions.scoring.score(folder / file, benchmark).metrics

    run(folder.parent / SMALL)
    return run


def parquet_task(folder: Path) -> Callable[[], Any]:
    return score_task(folder, "run.parquet")


def cir_task(folder: Path, file: str = "run.json") -> Callable[[], Any]:
    def run() -> Any:
        from leaderboard.cli import main

        sys.argv = ["cir", "score", str(folder / file), "--json"]
        with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.suppress(SystemExit):
            main()
        return json.loads(printed.getvalue())["metrics"]

    os.environ["CIR_DATA_HOME"] = str(folder.parent)
    os.environ["CIR_VERIFICATION_MODE"] = mode(folder)
    return run


def cir_parquet_task(folder: Path) -> Callable[[], Any]:
    return cir_task(folder, "run.parquet")


def asked(queries: list[dict[str, Any]], results: dict[str, list[str]]) -> tuple[list[Any], list[Any]]:
    """Rankings and references as cir_metrics takes them."""
    rankings = [results[query["id"]] for query in queries]
    references = [
        {"positives": query["groundtruths"], "negatives": query["negativeInstances"]} for query in queries
    ]
    return rankings, references


def evaluate_task(folder: Path) -> Callable[[], Any]:
    import orjson  # noqa: F401

    from cir_metrics import evaluate_single_turn

    return lambda: evaluate_single_turn(METRICS, *asked(*parse_released(folder))).values


def torch_loop_task(folder: Path, *, plain_weights: bool = False) -> Callable[[], Any]:
    import numpy as np
    import torch

    def plain(wrong: list[bool]) -> list[float]:
        weights, count, total = [], 0, 0
        for place, is_wrong in enumerate(wrong, start=1):
            weights.append(total / count / place if count else 1.0)
            if is_wrong:
                count, total = count + 1, total + place
        return weights

    def one(ranking: list[str], positives: list[str], negatives: list[str]) -> list[float]:
        listed = np.array(ranking)
        hit = torch.tensor(np.isin(listed, np.array(positives)))
        wrong = torch.tensor(np.isin(listed, np.array(negatives)))
        places = torch.arange(1, len(listed) + 1)
        precisions = torch.cumsum(hit, dim=0) / places.double()
        if plain_weights:
            weights = torch.tensor(plain(wrong.tolist()), dtype=torch.float64)
        else:
            weights = torch.ones(len(listed), dtype=torch.float64)
            for place in range(len(listed)):
                before = torch.nonzero(wrong[:place]).flatten() + 1
                if len(before):
                    weights[place] = torch.mean(before.double() / (place + 1))
        values = []
        for terms in (precisions * hit, precisions * hit * weights):
            values += [float(terms[:k].sum()) / min(len(positives), k) for k in KS]
        return values

    def run() -> Any:
        queries = json.loads((folder / "queries.json").read_text(encoding="utf-8"))
        results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
        rows = [
            one(results[query["id"]], query["groundtruths"], query["negativeInstances"]) for query in queries
        ]
        return dict(zip(METRICS, np.mean(np.array(rows), axis=0).tolist(), strict=True))

    return run


def python_loop_task(folder: Path) -> Callable[[], Any]:
    return torch_loop_task(folder, plain_weights=True)


def map_ours_task(folder: Path) -> Callable[[], Any]:
    from cir_metrics import evaluate_single_turn

    rankings, references = asked(*parse_released(folder))
    return lambda: evaluate_single_turn(MAPS, rankings, references).values


def pytrec_task(folder: Path) -> Callable[[], Any]:
    import pytrec_eval

    queries, results = parse_released(folder)
    measures = {f"map_cut.{','.join(map(str, KS))}"}

    def run() -> Any:
        relevant = {query["id"]: dict.fromkeys(query["groundtruths"], 1) for query in queries}
        ranked = {
            query: {image: float(-place) for place, image in enumerate(ranking)}
            for query, ranking in results.items()
        }
        found = pytrec_eval.RelevanceEvaluator(relevant, measures).evaluate(ranked)
        return {f"map@{k}": sum(row[f"map_cut_{k}"] for row in found.values()) / len(found) for k in KS}

    return run


def ranx_task(folder: Path) -> Callable[[], Any]:
    import ranx

    queries, results = parse_released(folder)

    def evaluate(some: list[dict[str, Any]]) -> Any:
        relevant = {query["id"]: dict.fromkeys(query["groundtruths"], 1) for query in some}
        ranked = {
            query["id"]: {image: float(-place) for place, image in enumerate(results[query["id"]])}
            for query in some
        }
        found = ranx.evaluate(ranx.Qrels(relevant), ranx.Run(ranked), MAPS)
        return {name: float(value) for name, value in found.items()}

    evaluate(queries[:50])  # compiles
    return lambda: evaluate(queries)


TASKS = {
    "orjson": orjson_task,
    "score": score_task,
    "parquet": parquet_task,
    "evaluate": evaluate_task,
    "torch_loop": torch_loop_task,
    "python_loop": python_loop_task,
    "map_ours": map_ours_task,
    "pytrec": pytrec_task,
    "ranx": ranx_task,
    "memory": memory_task,
    "cir": cir_task,
    "cir_parquet": cir_parquet_task,
}


def write_all(folder: Path, queries: int, images: int, env: dict[str, str]) -> None:
    """The stand-in, prepared; the rank file as JSON and as Parquet; ZeroSight's two files."""
    write_stand_in(folder, queries, images)
    command = [sys.executable, __file__, "--task", "write-run", "--folder", str(folder)]
    subprocess.run(command, env=env, stdout=subprocess.DEVNULL, check=True)
    write_released(folder)
    cir = [sys.executable, "-m", "leaderboard.cli", "convert", str(folder / "run.json"), "--to", "parquet"]
    subprocess.run(
        [*cir, "--out", str(folder / "run.parquet")], env=env, stdout=subprocess.DEVNULL, cwd=ROOT, check=True
    )


def check_values(found: dict[str, Measured]) -> None:
    """Stop where two ways give different numbers."""
    expected = found["score"].shown
    for name in ("parquet", "evaluate", *LOOPS, "map_ours", "cir", "cir_parquet"):
        for metric, value in (found[name].shown if name in found else {}).items():
            if abs(value - expected[metric]) > 1e-9:
                raise SystemExit(f"{name} says {metric} = {value}, score says {expected[metric]}")
    for name in ("pytrec", "ranx"):
        if name in found and abs(found[name].shown["map@50"] - expected["map@50"]) > 1e-6:
            raise SystemExit(f"{name} says map@50 = {found[name].shown['map@50']}, not {expected['map@50']}")


def show_ratios(found: dict[str, Measured], json_mib: float, verdict: Verdict) -> None:
    median = {name: each.median for name, each in found.items()}
    verdict.head()
    for figure, one, other in (
        ("torch loop / score", "torch_loop", "score"),
        ("torch loop / evaluate", "torch_loop", "evaluate"),
        ("score / orjson", "score", "orjson"),
        ("evaluate / orjson", "evaluate", "orjson"),
        ("pytrec_eval / ours, mAP of parsed lists", "pytrec", "map_ours"),
        ("ranx / ours, mAP of parsed lists", "ranx", "map_ours"),
        ("Parquet / JSON", "parquet", "score"),
    ):
        if one in median:
            verdict.show(figure, median[one] / median[other])
        else:
            verdict.leave_out(figure)
    for name in ("cir", "cir_parquet"):
        verdict.show(f"peak memory of {name} / size of the JSON", (found[name].peak_mib or 0) / json_mib)
    if "python_loop" in median:
        verdict.note("loop with plain-Python weights / score", median["python_loop"] / median["score"])
    verdict.end()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--queries", type=int, default=ZEROSIGHT[0], help="queries, all of which are ranked")
    options.add_argument("--images", type=int, default=ZEROSIGHT[1], help="images of the pool")
    options.add_argument("--repeat", type=int, default=5, help="runs of each task, by turns")
    options.add_argument("--loops", type=int, default=3, help="runs of the two loops, which take long")
    options.add_argument("--only", nargs="+", choices=TASKS, help="tasks, without ratios; default: all")
    add_bound_option(options)
    options.add_argument("--task", help=argparse.SUPPRESS)
    options.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.task == "write-run":
        write_run(given.folder, given.folder / "run.json")
        return
    if given.task:
        answer(TASKS, given.task, given.folder)
        return
    verdict = Verdict(BOUNDS, given.bound)
    names = list(given.only or TASKS)
    for name in [name for name in names if name in PEERS]:
        if importlib.util.find_spec(PEERS[name]) is None:
            print(f"{name}: {PEERS[name]} is not installed, left out (pip install -r perf/requirements.txt)")
            names.remove(name)
    with tempfile.TemporaryDirectory(prefix="cir-perf-") as home:
        folder, env = Path(home) / "ZeroSight", environment(Path(home))
        write_all(folder, given.queries, given.images, env)
        write_all(folder.parent / SMALL, 200, 900, env)
        sizes = {path.name: path.stat().st_size / 2**20 for path in sorted(folder.glob("*.*"))}
        print(f"{given.queries:,} queries, {given.images:,} images; MiB: ", end="")
        print(", ".join(f"{name} {size:,.1f}" for name, size in sizes.items()))
        print(HEAD)
        found = measured(__file__, [name for name in names if name not in LOOPS], folder, given.repeat, env)
        found |= measured(__file__, [name for name in names if name in LOOPS], folder, given.loops, env)
        for name in names:
            show(name, found[name])
        if given.only is None:
            check_values(found)
            show_ratios(found, sizes["run.json"], verdict)


if __name__ == "__main__":
    main()
