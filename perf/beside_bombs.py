"""How long innocent files wait beside hostile ones: the bombs of the tests, which somebody else has sent.

    python perf/beside_bombs.py                          # all bombs, 20 innocent files: some minutes
    python perf/beside_bombs.py --bomb gzip --files 5    # a quick look

A server in a process of its own, with accounts and one worker. First the innocent files are sent alone, then,
with other rankings, after all bombs, which another owner has sent. Owners take turns, so that an innocent
file waits for one bomb more than alone; what that takes is the delay.
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from board_api import peak_mib, server
from fresh import ROOT, Verdict, add_bound_option, at_most

sys.path.insert(0, str(ROOT / "tests" / "fixtures"))

from bombs import BOMBS
from leaderboard_world import as_bytes, rank_file

from leaderboard.boards import ids as board_ids
from leaderboard.identity import Tokens
from leaderboard.settings import Settings
from leaderboard.store import Store

BOUNDS = {
    "delay by bombs, s a file": at_most(5),
    "innocent files that did not end on the board": at_most(0),
    "bombs that did not end": at_most(0),
    "peak of the web process, MiB": at_most(400),
}


def sent(address: str, token: str, board: str, content: bytes) -> str:
    """The id of a file that was taken in."""
    connection = http.client.HTTPConnection(address)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/octet-stream"}
    connection.request("POST", f"/api/submissions?board={board}&publish=yes", content, headers)
    answer = connection.getresponse()
    said = json.loads(answer.read())
    connection.close()
    if answer.status not in (200, 202):
        raise SystemExit(f"{answer.status}: {said}")
    return str(said["id"])


def ended(address: str, token: str, submission: str) -> dict[str, Any]:
    while True:
        connection = http.client.HTTPConnection(address)
        headers = {"Authorization": f"Bearer {token}"}
        connection.request("GET", f"/api/v1/submissions/{submission}", headers=headers)
        found: dict[str, Any] = json.loads(connection.getresponse().read())
        connection.close()
        if found["finished"]:
            return found
        time.sleep(0.2)


def waited(submission: Mapping[str, Any]) -> float:
    """Seconds from the receipt of a file to its end."""
    first, *_, last = (datetime.fromisoformat(event["at"]) for event in submission["events"])
    return (last - first).total_seconds()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--bomb", action="append", metavar="NAME", help="bombs whose names start like this")
    parser.add_argument("--files", type=int, default=20, help="innocent files")
    add_bound_option(parser)
    options = parser.parse_args()
    verdict = Verdict(BOUNDS, options.bound)
    chosen = {
        name: bomb
        for name, bomb in BOMBS.items()
        if name.startswith(tuple(options.bomb or [""])) and bomb.benchmark in board_ids()
    }
    with tempfile.TemporaryDirectory(prefix="cir-perf-") as name:
        home = Path(name) / "home"
        home.mkdir()
        store = Store(Settings(home).database_url)
        ada, mallory = (Tokens(store).create(owner) for owner in ("ada", "mallory"))
        store.close()
        more = {"CIR_LEADERBOARD_ACCOUNTS": "tokens", "CIR_DATA_HOME": ""}
        found: dict[str, list[dict[str, Any]]] = {}
        with server(home, more) as (address, process):
            hostile: dict[str, str] = {}
            # The first file waits for the worker to start.
            ended(address, ada, sent(address, ada, "shapes/val", as_bytes(rank_file(9999, "first"))))
            for task in ("alone", "beside"):
                if task == "beside":
                    hostile = {
                        name: sent(address, mallory, bomb.benchmark, bomb.build())
                        for name, bomb in chosen.items()
                    }
                made = [
                    as_bytes(rank_file(seed + 1000 * len(hostile), f"{task} {seed}"))
                    for seed in range(options.files)
                ]
                files = [sent(address, ada, "shapes/val", content) for content in made]
                found[task] = [ended(address, ada, one) for one in files]
            ends = {name: ended(address, mallory, one) for name, one in hostile.items()}
            peak = peak_mib(process)
    states = Counter(one["state"] for one in ends.values())
    print(f"{len(chosen)} bombs: {dict(states)}; {options.files} innocent files")
    print(f"{'task':24} {'median s':>9} {'most s':>9}")
    last = {}
    for task, submissions in found.items():
        seconds = [waited(one) for one in submissions]
        last[task] = max(seconds)
        print(f"{task:24} {statistics.median(seconds):9.2f} {last[task]:9.2f}")
    innocent = [one["state"] for submissions in found.values() for one in submissions]
    verdict.head()
    verdict.show("delay by bombs, s a file", (last["beside"] - last["alone"]) / options.files)
    verdict.show("innocent files that did not end on the board", len(innocent) - innocent.count("published"))
    verdict.show("bombs that did not end", sum(state == "failed" for state in states.elements()))
    verdict.show("peak of the web process, MiB", peak)
    verdict.end()


if __name__ == "__main__":
    main()
