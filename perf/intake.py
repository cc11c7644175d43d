"""How long senders of large files wait for their receipt, and judged files for their score.

    python perf/intake.py                                # 20 clients, 200 files of CIRR's size: some minutes
    python perf/intake.py --uploads 2 --queries 200      # a quick look

A server in a process of its own, with one worker, takes files for cirr/val: a stand-in of 4,181 queries, of
which a file ranks 50 images each, 4 MB. The clients are threads of this process, each with a connection of
its own. Each sends --uploads files as a form, as `cir submit` and browsers do, then as many as a body; the
next one as soon as it has the receipt of the last. Meanwhile the worker judges, on the same processors.

    alone      one client, nothing waits
    form       all clients, the file in a form
    body       all clients, the file as the body

The turn of a file begins when it is there and the file before it has its score, by the server's own events.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from board_api import peak_mib, server
from fresh import Verdict, add_bound_option, at_most
from stand_in import CIRR_VAL, write_cirr
from uploads import FORM, crowd

BOARD = "cirr/val"
DEPTH = 50
FORM_PATH = f"/api/submissions?board={BOARD}&publish=yes"
BOUNDS = {
    "form, p95 ms": at_most(300),
    "body, p95 ms": at_most(300),
    "scored after its turn began, p95 s": at_most(2),
    "submissions that did not end on the board": at_most(0),
    "peak of the web process, MiB": at_most(400),
}


class Files:
    """Files that are valid and differ in one ranking."""

    def __init__(self, data: Path, queries: int) -> None:
        captions = json.loads((data / "cirr/captions/cap.rc2.val.json").read_text(encoding="utf-8"))
        gallery = sorted(json.loads((data / "cirr/image_splits/split.rc2.val.json").read_text("utf-8")))
        draw = random.Random(3)
        rankings, subsets = {}, {}
        for row in captions[:queries]:
            reference = row["reference"]
            drawn = draw.sample(gallery, DEPTH + 1)
            rankings[str(row["pairid"])] = [image for image in drawn if image != reference][:DEPTH]
            members = row["img_set"]["members"]
            subsets[str(row["pairid"])] = [image for image in members if image != reference]
        self._draw = draw
        self._query, self._first = next(iter(rankings.items()))
        self._written = json.dumps(
            {
                "format": "cir-rank-file",
                "format_version": 1,
                "benchmark": BOARD,
                "benchmark_version": 1,
                "method": {"name": "METHOD"},
                "rankings": {**rankings, self._query: ["FIRST"]},
                "subset_rankings": subsets,
            },
            separators=(",", ":"),
        )

    def next(self, name: str) -> bytes:
        self._draw.shuffle(self._first)
        first = json.dumps(self._first, separators=(",", ":"))
        return self._written.replace("METHOD", name, 1).replace('["FIRST"]', first, 1).encode()


def as_form(content: bytes) -> bytes:
    head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="run.json"\r\n\r\n'
    return head + content + b"\r\n--b--\r\n"


def asked(address: str, path: str) -> Any:
    connection = http.client.HTTPConnection(address)
    connection.request("GET", path)
    found = json.loads(connection.getresponse().read())
    connection.close()
    return found


def ended(address: str, ids: Sequence[str]) -> list[dict[str, Any]]:
    """The submissions, once none waits."""
    while asked(address, "/health")["waiting"]:
        time.sleep(0.5)
    return [asked(address, f"/api/v1/submissions/{one}") for one in ids]


def turns(submissions: Sequence[dict[str, Any]]) -> list[float]:
    """Seconds from the begin of each one's turn to its score, in the order of their scores."""
    times = []
    for one in submissions:
        at = {event["kind"]: datetime.fromisoformat(event["at"]) for event in one["events"]}
        times.append((at["scored"], at["received"]))
    times.sort()
    before = [times[0][1], *(scored for scored, _ in times)]
    return [
        (scored - max(received, last)).total_seconds()
        for (scored, received), last in zip(times, before, strict=False)
    ]


def p95(seconds: Sequence[float]) -> float:
    return statistics.quantiles(seconds, n=20)[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--clients", type=int, default=20, help="that send at once")
    parser.add_argument("--uploads", type=int, default=5, help="of each client, as a form and as a body each")
    parser.add_argument("--queries", type=int, default=CIRR_VAL[0], help="of the stand-in")
    add_bound_option(parser)
    options = parser.parse_args()
    verdict = Verdict(BOUNDS, options.bound)
    with tempfile.TemporaryDirectory(prefix="cir-perf-") as name:
        data = Path(name) / "data"
        write_cirr(data / "cirr", options.queries, CIRR_VAL[1])
        made = Files(data, options.queries)
        more = {"CIR_DATA_HOME": str(data), "CIR_VERIFICATION_MODE": "no_checks"}
        with server(Path(name) / "home", more) as (address, process):
            size = len(made.next("a")) / 10**6
            print(f"files of {size:.1f} MB, {options.clients} clients, {options.uploads} uploads each")
            print(f"{'task':24} {'median ms':>9} {'p95 ms':>8} {'MB/s':>9}")
            ids: list[str] = []
            shown = {}
            for task, clients, uploads in (
                ("alone", 1, max(2, options.uploads)),
                ("form", options.clients, options.uploads),
                ("body", options.clients, options.uploads),
            ):
                contents = [
                    [made.next(f"{task} {client} {upload}") for upload in range(uploads)]
                    for client in range(clients)
                ]
                kind = "application/json" if task == "body" else FORM
                if kind == FORM:
                    contents = [[as_form(content) for content in own] for own in contents]
                began = time.perf_counter()
                taken, answers = crowd(address, FORM_PATH, kind, contents)
                rate = size * len(taken) / (time.perf_counter() - began)
                ids += [one["id"] for one in answers]
                shown[task] = 1000 * p95(taken)
                middle = 1000 * statistics.median(taken)
                print(f"{task:24} {middle:9.1f} {shown[task]:8.1f} {rate:9.0f}", flush=True)
            began = time.perf_counter()
            found = ended(address, ids)
            seconds = time.perf_counter() - began
            states = Counter(one["state"] for one in found)
            print(f"{len(ids)} submissions: {dict(states)}; the last {seconds:.0f} s after its receipt")
            peak = peak_mib(process)
            waits = turns([one for one in found if one["state"] == "published"])
            middle = statistics.median(waits)
            print(f"scored after its turn began: median {middle:.2f} s, most {max(waits):.2f} s")
    verdict.head()
    for task in ("form", "body"):
        verdict.show(f"{task}, p95 ms", shown[task])
    verdict.show("scored after its turn began, p95 s", p95(waits))
    verdict.show("submissions that did not end on the board", len(ids) - states["published"])
    verdict.show("peak of the web process, MiB", peak)
    verdict.end()


if __name__ == "__main__":
    main()
