"""What hostile files of at most 1 MB cost: the bombs of the tests, each read in every way by a fresh process.

    python perf/bombs.py                                 # all of them: about half an hour
    python perf/bombs.py --bomb within-parquet --repeat 3
    python perf/bombs.py --bomb gzip-lines --way validate --way compare

A bomb is made by `tests/fixtures/bombs.py`, and read by `tests/fixtures/bomb_probe.py`. The processor time is
that of the whole process, which also starts Python and loads the benchmark; of several runs it is the median.
The memory is the highest peak. A process that ends otherwise than by an answer has missed both bounds.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from fresh import ROOT, Verdict, add_bound_option, at_most, environment

FIXTURES = ROOT / "tests" / "fixtures"
sys.path[:0] = [str(FIXTURES), str(ROOT)]

from bombs import BOMBS  # noqa: E402

TIME, MEMORY = "most processor time, s", "most memory, MiB"
BOUNDS = {TIME: at_most(5), MEMORY: at_most(512)}
READERS = ("validate", "score", "judge", "compare", "fuse", "explain")
FORMATS = ("native", "lines", "trec", "parquet")
CONVERSIONS = tuple(
    f"convert {how}to {form}"
    for how in ("", "under gzip ")
    for form in FORMATS
    if not (how and form == "parquet")
)
OVERLAYS = ("overlay in .json", "overlay in .parquet")
SECONDS, ADDRESSES = 120, 3 * 2**30
"""A bomb that goes off ends its own process, not the machine."""


@dataclass(frozen=True)
class Cost:
    """What one way of reading one bomb took."""

    bomb: str
    way: str
    seconds: float
    peak_mib: float


def ways_of(bomb: str) -> tuple[str, ...]:
    """What is refused when it is read need not be converted; few bombs look like an overlay."""
    converted = CONVERSIONS if bomb.startswith("within-") else ()
    return READERS + converted + (OVERLAYS if "overlay" in bomb else ())


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))


def probe(path: Path, bomb: str, way: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(FIXTURES / "bomb_probe.py"), str(path), BOMBS[bomb].benchmark, way]
    return subprocess.run(
        command, cwd=ROOT, env=env, capture_output=True, text=True, check=False, preexec_fn=limited
    )


def cost(path: Path, bomb: str, way: str, repeat: int, env: dict[str, str]) -> Cost | None:
    """Median of the processor time and highest peak; None where the benchmark has no such way."""
    seconds, peaks = [], []
    for _ in range(repeat):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = probe(path, bomb, way, env)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode:
            print(f"{bomb}, {way}: {done.stderr[-500:]}", file=sys.stderr)
            return Cost(bomb, way, math.inf, math.inf)
        found = json.loads(done.stdout)
        if not found["said"]:
            return None
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        peaks.append(found["peak"])
    return Cost(bomb, way, statistics.median(seconds), max(peaks))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--bomb", action="append", metavar="NAME", help="bombs whose names start like this")
    parser.add_argument("--way", action="append", metavar="NAME", help="ways whose names start like this")
    parser.add_argument("--repeat", type=int, default=1, help="runs of each, whose median is printed")
    parser.add_argument("--worst", type=int, default=10, help="lines that are printed of time and of memory")
    add_bound_option(parser)
    options = parser.parse_args()
    verdict = Verdict(BOUNDS, options.bound)
    chosen = [name for name in BOMBS if name.startswith(tuple(options.bomb or [""]))]
    costs: list[Cost] = []
    prepared: set[str] = set()
    with tempfile.TemporaryDirectory(prefix="cir-perf-") as home:
        env = environment(Path(home))
        for name in chosen:
            path = Path(home) / "run"
            path.write_bytes(BOMBS[name].build())
            if BOMBS[name].benchmark not in prepared:
                probe(path, name, "no way", env)
                prepared.add(BOMBS[name].benchmark)
            for way in ways_of(name):
                if way.startswith(tuple(options.way or [""])):
                    found = cost(path, name, way, options.repeat, env)
                    costs += [] if found is None else [found]
    if not costs:
        raise SystemExit(
            f"nothing is chosen. Bombs: {', '.join(BOMBS)}. Ways: {', '.join(ways_of('within-'))}."
        )
    print(f"{len(chosen)} bombs, {len(costs)} readings, median of {options.repeat}")
    for figure in ("seconds", "peak_mib"):
        print(f"\n{'bomb, way':66} {'s':>8} {'peak MiB':>9}")
        for each in sorted(costs, key=lambda one: -float(getattr(one, figure)))[: options.worst]:
            print(f"{f'{each.bomb}, {each.way}':66} {each.seconds:8.2f} {each.peak_mib:9.0f}")
    verdict.head()
    verdict.show(TIME, max(each.seconds for each in costs))
    verdict.show(MEMORY, max(each.peak_mib for each in costs))
    verdict.end()


if __name__ == "__main__":
    main()
