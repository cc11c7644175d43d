"""How long and how much memory it takes to prepare, load and score a benchmark of ZeroSight's size.

    python perf/prepare.py                       # 54,740 queries, 197,313 images, three runs each
    python perf/prepare.py --queries 1000000 --repeat 1
    python perf/prepare.py --queries 2000 --images 9000      # a quick look

A stand-in is invented (path-like ids, 5.16 positives and 10.89 hard negatives a query on average) and every
task runs in a fresh Python, so that its peak memory is its own: `VmHWM` of /proc/self/status, hence Linux
only. Printed are medians, and the ratio of the time to a bound: parsing the same JSON with orjson, whole, and
writing the same rows as Parquet, whole, without any check. Imports are not part of the times.

    prepare   cir_datasets.prepare: read, check, hash, write
    command   `cir datasets prepare`: the same from the command line, Hugging Face cache included
    load      cir_datasets.load of what was prepared
    score     load, and submissions.score of 50 images a query (not for more than 100,000 queries: the file
              would be larger than what is read)
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from fresh import ROOT, Verdict, add_bound_option, at_most, peak_mib
from stand_in import ZEROSIGHT, mode, write_run, write_stand_in

BOUNDS = {
    # The most that a million queries may need, and so whatever is smaller.
    "peak memory of prepare, MiB": at_most(500),
    "peak memory of command, MiB": at_most(500),
}
MAX_SCORED = 100_000


def bound(folder: Path) -> None:
    import orjson
    import pyarrow as pa
    import pyarrow.parquet as pq

    for name in ("train", "test", "images"):
        content = orjson.loads((folder / f"{name}.json").read_bytes())
        table = pa.table({"image_id": content}) if name == "images" else pa.Table.from_pylist(content)
        pq.write_table(table, folder / f"bound-{name}.parquet")


def task(name: str, folder: Path) -> dict[str, Any]:
    """Run one task in this process; seconds, and what else is to be shown."""
    shown: dict[str, Any] = {}
    if name == "bound":
        import orjson  # noqa: F401
        import pyarrow.parquet  # noqa: F401

        run: Any = lambda: bound(folder)  # noqa: E731
    elif name == "command":
        from leaderboard.cli import build

        arguments = ["datasets", "prepare", "zerosight/all", "--data-dir", str(folder)]
        arguments += [] if mode(folder) == "all_checks" else ["--no-checks"]
        run = lambda: build()(arguments, standalone_mode=False)  # noqa: E731
    elif name == "score":
        import cir_datasets.prepared
        import submissions.scoring

        def run() -> None:
            benchmark = cir_datasets.load("zerosight/all", data_dir=folder, verification_mode=mode(folder))
            submissions.scoring.score(folder / "run.json", benchmark)

    else:
        import cir_datasets.prepared

        function = cir_datasets.prepared.prepare if name == "prepare" else cir_datasets.prepared.load
        run = lambda: function("zerosight/all", data_dir=folder, verification_mode=mode(folder))  # noqa: E731
    started = time.perf_counter()
    run()
    seconds = time.perf_counter() - started
    if name == "score":
        shown["datasets_imported"] = "datasets" in sys.modules
    return {"seconds": seconds, "peak_mib": peak_mib(), **shown}


def measured(name: str, folder: Path, repeat: int) -> dict[str, Any]:
    """Medians over fresh processes with fresh caches (load and score use one that is filled)."""
    found = []
    for number in range(repeat):
        filled = name in ("load", "score")
        cache = folder.parent / ("cache" if filled else f"cache-{name}-{number}")
        environment = {
            **os.environ,
            "CIR_CACHE_HOME": str(cache),
            "CIR_DATA_HOME": str(folder.parent),
            "HF_HOME": str(cache / "hf"),
            "HF_HUB_OFFLINE": "1",
            "PYTHONPATH": str(ROOT),
        }
        command = [sys.executable, __file__, "--task", name, "--folder", str(folder)]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        found.append(json.loads(done.stdout.splitlines()[-1]))
    shown = {key: value for key, value in found[0].items() if key not in ("seconds", "peak_mib")}
    return {
        "seconds": statistics.median(each["seconds"] for each in found),
        "peak_mib": max(each["peak_mib"] for each in found),
        **shown,
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument(
        "--queries", type=int, default=ZEROSIGHT[0], help="queries of train and test together"
    )
    options.add_argument("--images", type=int, default=ZEROSIGHT[1], help="images of the pool")
    options.add_argument("--repeat", type=int, default=3, help="runs of each task; times are medians")
    add_bound_option(options)
    options.add_argument("--task", help=argparse.SUPPRESS)
    options.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.task == "write-run":
        write_run(given.folder, given.folder / "run.json")
        print(json.dumps({"seconds": 0, "peak_mib": 0}))
        return
    if given.task:
        print(json.dumps(task(given.task, given.folder)))
        return
    verdict, peaks = Verdict(BOUNDS, given.bound), {}
    with tempfile.TemporaryDirectory(prefix="cir-perf-") as home:
        folder = Path(home) / "ZeroSight"
        write_stand_in(folder, given.queries, given.images)
        size = sum(path.stat().st_size for path in folder.glob("*.json"))
        print(f"{given.queries:,} queries, {given.images:,} images, {size / 2**20:,.0f} MiB of JSON")
        print(f"{'task':10} {'seconds':>8} {'peak MiB':>9} {'to bound':>9}")
        tasks = ["bound", "prepare", "command", "load"]
        if given.queries <= MAX_SCORED:
            tasks += ["score"]
        reference = None
        for name in tasks:
            if name == "load":
                measured("load", folder, 1)  # fills the cache that load and score read
            if name == "score":
                measured_run(folder)
            found = measured(name, folder, given.repeat)
            reference = reference or found["seconds"]
            peaks[name] = found["peak_mib"]
            extra = "".join(f"  {key}={value}" for key, value in found.items() if key == "datasets_imported")
            print(
                f"{name:10} {found['seconds']:8.2f} {found['peak_mib']:9.0f} "
                f"{found['seconds'] / reference:9.2f}{extra}",
                flush=True,
            )
    verdict.head()
    for name in ("prepare", "command"):
        verdict.show(f"peak memory of {name}, MiB", peaks[name])
    verdict.end()


def measured_run(folder: Path) -> None:
    """Write the rank file in a process of its own, with the cache that scoring reads."""
    environment = {
        **os.environ,
        "CIR_CACHE_HOME": str(folder.parent / "cache"),
        "CIR_DATA_HOME": str(folder.parent),
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, __file__, "--task", "write-run", "--folder", str(folder)]
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)


if __name__ == "__main__":
    main()
