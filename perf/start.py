"""What importing costs, and how long `cir score` takes from the shell on a file of CIRR val's size.

    python perf/start.py             # twenty-one imports of each, seven runs of cir score
    python perf/start.py --repeat 3  # a quick look

`import cir_metrics` is timed beside `import numpy`, each the whole life of a fresh Python, by turns. It does
not even load numpy; so what the first use of a metric imports is timed too. `cir score` is timed from its
start to its exit, on a rank file with 50 images and a subset of 3 a query, beside the time that orjson takes
to parse that file in a process that has loaded it. `cir score` reads every byte of the prepared files to
compare it with its hash: what that takes is a row of its own (`verify`), and its share of `cir score` and the
time for files of ZeroSight's size at that rate are shown below. The benchmark is cirr/val of CIR_DATA_HOME
where that names a folder that holds it, and an invented one of the same size elsewhere; it is prepared
before.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fresh import (
    HEAD,
    ROOT,
    Measured,
    Verdict,
    add_bound_option,
    answer,
    at_most,
    environment,
    measured,
    show,
)
from stand_in import CIRR_VAL, write_cirr

LARGE = 64
"""MiB of large prepared files, such as ZeroSight's."""

BOUNDS = {
    "import cir_metrics above import numpy, ms": at_most(0),
    "import cir_metrics.evaluation above import numpy, ms": at_most(50),
    "verify / cir score": at_most(0.05),
    "cir score less twice the parse of its file by orjson, s": at_most(0.8),
}
IMPORTS = {
    "python": "pass",
    "numpy": "import numpy",
    "cir_metrics": "import cir_metrics",
    "cir_metrics.evaluation": "import cir_metrics.evaluation",
    "cir_metrics.gallery": "import cir_metrics.gallery",
}


def rank(folder: Path) -> Callable[[], Any]:
    import submissions.rank_file.model
    from submissions import make_rank_file

    return lambda: submissions.rank_file.model.write(
        make_rank_file("cirr/val", "random", k=50), folder / "run.json"
    )


def parse(folder: Path) -> Callable[[], Any]:
    import orjson

    return lambda: len(orjson.loads((folder / "run.json").read_bytes()))


def verify(folder: Path) -> Callable[[], Any]:
    from cir_datasets.prepared import ensure, verified

    prepared = ensure("cirr/val")
    return lambda: verified(prepared)


TASKS = {"rank": rank, "orjson": parse, "verify": verify}


def lives(commands: dict[str, Sequence[str]], repeat: int, env: dict[str, str]) -> dict[str, Measured]:
    """Seconds from start to exit of several commands, by turns."""
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(repeat + 1):
        for name, command in commands.items():
            started = time.perf_counter()
            subprocess.run(command, env=env, capture_output=True, cwd=ROOT, check=True)
            taken[name].append(time.perf_counter() - started)
    # The first run of each writes byte code and fills the machine's file cache.
    return {name: Measured(values[1:]) for name, values in taken.items()}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--repeat", type=int, default=7, help="runs of cir score")
    options.add_argument("--imports", type=int, default=21, help="runs of each import")
    add_bound_option(options)
    options.add_argument("--task", help=argparse.SUPPRESS)
    options.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.task:
        answer(TASKS, given.task, given.folder)
        return
    verdict = Verdict(BOUNDS, given.bound)
    with tempfile.TemporaryDirectory(prefix="cir-perf-") as home:
        folder, env = Path(home), environment(Path(home))
        real = Path(os.environ.get("CIR_DATA_HOME", "")) / "cirr" / "captions" / "cap.rc2.val.json"
        if not os.environ.get("CIR_DATA_HOME") or not real.exists():
            write_cirr(folder / "data" / "cirr", *CIRR_VAL)
            env["CIR_DATA_HOME"] = str(folder / "data")
        measured(__file__, ["rank"], folder, 1, env)  # prepares the benchmark, too
        size = (folder / "run.json").stat().st_size / 2**20
        print(f"cirr/val of {env['CIR_DATA_HOME']}; run.json: {size:.1f} MiB")
        print(HEAD)
        found = lives(
            {name: [sys.executable, "-c", code] for name, code in IMPORTS.items()}, given.imports, env
        )
        found |= lives(
            {"cir score": [sys.executable, "-m", "leaderboard.cli", "score", str(folder / "run.json")]},
            given.repeat,
            env,
        )
        found |= measured(__file__, ["orjson", "verify"], folder, given.repeat, env)
        cache = Path(env["CIR_CACHE_HOME"]) / "prepared" / "cirr" / "val"
        prepared = sum(path.stat().st_size for path in cache.rglob("*") if path.is_file()) / 2**20
        for name, each in found.items():
            show(name, each)
    verdict.head()
    for module in ("cir_metrics", "cir_metrics.evaluation"):
        above = 1000 * (found[module].median - found["numpy"].median)
        verdict.show(f"import {module} above import numpy, ms", above)
    verified, parse, score = (found[name].median for name in ("verify", "orjson", "cir score"))
    verdict.show("verify / cir score", verified / score)
    verdict.show("cir score less twice the parse of its file by orjson, s", score - 2 * parse)
    large = 1000 * verified / prepared * LARGE
    print(f"verify: {prepared:.1f} MiB in {1000 * verified:.1f} ms; {LARGE} MiB at that rate: {large:.0f} ms")
    verdict.end()


if __name__ == "__main__":
    main()
