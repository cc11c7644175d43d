"""How long readers of a board wait, while 20 of them ask at once, again and again.

    python perf/board_api.py                                    # 1,000 entries, 20 clients
    python perf/board_api.py --entries 100 --requests 20        # a quick look

A server in a process of its own holds a board of --entries entries, each with values a query; the clients are
20 threads of this process, each with a connection of its own that stays open and takes gzip, as browsers
do. Each asks --requests times, the next time as soon as it has the whole answer.

    table      the whole board as JSON
    unchanged  the same, naming the ETag that it has: answered 304
    page       100 entries from the middle
    csv        the whole board as CSV, packed for each
    change     the first reader after one more entry, alone: the table is made anew
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from fresh import ROOT, Verdict, add_bound_option, at_most, environment

sys.path.insert(0, str(ROOT / "tests" / "fixtures"))

from leaderboard_world.entries import BOARD, add_entry

from leaderboard.store import Store

BOUNDS = {
    "table, p95 ms": at_most(50),
    "unchanged, p95 ms": at_most(50),
    "page, p95 ms": at_most(50),
    "first reader after a change, s": at_most(2),
    "peak of the web process, MiB": at_most(400),
}
GZIP = {"Accept-Encoding": "gzip"}


def filled(home: Path, entries: int) -> None:
    """A home with a board."""
    home.mkdir()
    store = Store(f"sqlite:///{home / 'leaderboard.sqlite'}")
    for seed in range(entries):
        notes = "What was done, in some words. " * 10
        add_entry(store, seed, 0.1 + 0.8 * seed / entries, backbone="ViT-B/32", notes=notes)
    store.close()


@contextlib.contextmanager
def server(home: Path, more: Mapping[str, str] | None = None, *options: str) -> Iterator[tuple[str, int]]:
    """A served leaderboard with more variables and options: its address, and the id of its process."""
    log = home.parent / "server.log"
    command = [
        sys.executable,
        "-m",
        "leaderboard.cli",
        "leaderboard",
        "serve",
        "--port",
        "0",
        "--home",
        str(home),
        *options,
    ]
    with log.open("w") as handle:
        env = {**environment(home.parent), **(more or {})}
        process = subprocess.Popen(command, cwd=ROOT, env=env, stderr=handle)
    try:
        while not (found := re.search(r"Leaderboard on http://(\S+)", log.read_text(encoding="utf-8"))):
            if process.poll() is not None:
                raise SystemExit(log.read_text(encoding="utf-8"))
            time.sleep(0.1)
        yield found[1], process.pid
    finally:
        process.terminate()
        process.wait()


def ask(
    connection: http.client.HTTPConnection, path: str, headers: Mapping[str, str]
) -> tuple[float, int, int, str]:
    """Seconds, status, bytes and ETag of one request."""
    began = time.perf_counter()
    connection.request("GET", path, headers=dict(headers))
    answer = connection.getresponse()
    body = answer.read()
    return time.perf_counter() - began, answer.status, len(body), answer.getheader("ETag") or ""


def crowd(address: str, path: str, headers: Mapping[str, str], clients: int, requests: int) -> list[float]:
    """Seconds of all requests of all clients; every answer must be 200, or 304 where it can be."""
    wanted = 304 if "If-None-Match" in headers else 200
    taken: list[float] = []
    wrong: list[int] = []
    start = threading.Barrier(clients)

    def client() -> None:
        connection = http.client.HTTPConnection(address)
        ask(connection, path, headers)
        start.wait()
        for _ in range(requests):
            seconds, status, _, _ = ask(connection, path, headers)
            taken.append(seconds)
            if status != wanted:
                wrong.append(status)
        connection.close()

    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong or len(taken) != clients * requests:
        raise SystemExit(f"{path}: {len(taken)} answers, {len(wrong)} of them with the status {set(wrong)}")
    return taken


def peak_mib(process: int) -> float:
    found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{process}/status").read_text(encoding="ascii"))
    return int(found[1]) / 1024 if found else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--entries", type=int, default=1000, help="on the board")
    parser.add_argument("--clients", type=int, default=20, help="that ask at once")
    parser.add_argument("--requests", type=int, default=50, help="of each client")
    add_bound_option(parser)
    options = parser.parse_args()
    verdict = Verdict(BOUNDS, options.bound)
    with tempfile.TemporaryDirectory() as name:
        home = Path(name) / "home"
        filled(home, options.entries)
        board, middle = f"/api/v1/boards/{BOARD}", options.entries * 4 // 2
        page = f"/api/v1/entries?board={BOARD}&after={middle}&limit=100"
        with server(home) as (address, process):
            alone = http.client.HTTPConnection(address)
            first = ask(alone, board, GZIP)[0]
            while b'"groups_pending":true' in body_of(alone, board):
                time.sleep(0.2)
            _, _, size, etag = ask(alone, board, GZIP)
            plain = ask(alone, board, {})[2]
            asked = {
                "table": (board, GZIP),
                "unchanged": (board, {**GZIP, "If-None-Match": etag}),
                "page": (page, GZIP),
                "csv": (f"{board}?format=csv", GZIP),
            }
            print(f"{options.entries:,} entries, {options.clients} clients, {options.requests} requests each")
            print(f"table: {plain:,} bytes, {size:,} by gzip; made in {first:.2f} s")
            print(f"{'task':24} {'median ms':>9} {'p95 ms':>8} {'a second':>9}")
            p95 = {}
            for task, (path, headers) in asked.items():
                began = time.perf_counter()
                taken = crowd(address, path, headers, options.clients, options.requests)
                rate = len(taken) / (time.perf_counter() - began)
                p95[task] = 1000 * statistics.quantiles(taken, n=20)[-1]
                print(
                    f"{task:24} {1000 * statistics.median(taken):9.1f} {p95[task]:8.1f} {rate:9.0f}",
                    flush=True,
                )
            store = Store(f"sqlite:///{home / 'leaderboard.sqlite'}")
            add_entry(store, options.entries, 0.5)
            store.close()
            alone.close()
            changed = ask(alone, board, {**GZIP, "If-None-Match": etag})
            if changed[1] != 200:
                verdict.fail("one more entry is seen at once")
            peak = peak_mib(process)
    verdict.head()
    for task in ("table", "unchanged", "page"):
        verdict.show(f"{task}, p95 ms", p95[task])
    verdict.show("first reader after a change, s", changed[0])
    verdict.show("peak of the web process, MiB", peak)
    verdict.end()


def body_of(connection: http.client.HTTPConnection, path: str) -> bytes:
    """The body of the answer to a GET."""
    connection.request("GET", path)
    return connection.getresponse().read()


if __name__ == "__main__":
    main()
