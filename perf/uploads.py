"""How long senders wait for their receipt, beside a plain FastAPI route that writes and syncs the same bytes.

    python perf/uploads.py                           # 20 clients, files of 4 MB: some minutes
    python perf/uploads.py --rounds 1 --uploads 1    # a quick look

Two servers in processes of their own, on one disk: the leaderboard without a worker, and an application with
two routes, one for a body and one for a form, which write what comes into a file, sync it, and answer. Both
read HTTP with httptools. The leaderboard has accounts, quotas and receipts. The servers take turns, round by
round; a round is --clients threads of this process, each with a connection of its own. Each sends --uploads
files, the next one as soon as the last one is acknowledged. A ratio is that of the medians of all rounds.
Beside the seconds stands what the server has used of the processors for a file.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import secrets
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import uvicorn
from board_api import server
from fastapi import FastAPI, Request, UploadFile
from fastapi.concurrency import run_in_threadpool
from fresh import Verdict, add_bound_option, at_most, environment

MB = 10**6
OURS, FORM = "/api/submissions?board=shapes/val", "multipart/form-data; boundary=b"
BOUNDS = {"body / plain": at_most(1.3), "form / plain": at_most(1.3)}


def serve_plain(folder: Path) -> None:
    """The plain application, on a free port that it prints."""
    app = FastAPI()

    @app.post("/body")
    async def body(request: Request) -> dict[str, int]:
        with (folder / secrets.token_hex(8)).open("wb") as file:
            async for chunk in request.stream():
                file.write(chunk)
            file.flush()
            await run_in_threadpool(os.fsync, file.fileno())
            return {"size": file.tell()}

    @app.post("/form")
    def form(file: UploadFile) -> dict[str, int]:
        with (folder / secrets.token_hex(8)).open("wb") as written:
            while chunk := file.file.read(2**20):
                written.write(chunk)
            written.flush()
            os.fsync(written.fileno())
            return {"size": written.tell()}

    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(f"127.0.0.1:{listener.getsockname()[1]}", flush=True)
        config = uvicorn.Config(app, http="httptools", log_level="warning", access_log=False)
        uvicorn.Server(config).run(sockets=[listener])


def processor_seconds(process: int) -> float:
    """What a process has used of the processors."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def contents(size: int, count: int, *, form: bool) -> list[bytes]:
    """Files that differ, each as a request's body."""
    head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="run.json"\r\n\r\n' if form else b""
    rest = b'", "' + b"0123456789" * (size // 10) + b'"]' + (b"\r\n--b--\r\n" if form else b"")
    return [head + b'["' + secrets.token_hex(8).encode() + rest for _ in range(count)]


def crowd(
    address: str, path: str, kind: str, files: Sequence[Sequence[bytes]]
) -> tuple[list[float], list[dict[str, Any]]]:
    """Seconds until each file of each client is acknowledged, and the answers, as they came."""
    taken: list[float] = []
    answers: list[dict[str, Any]] = []
    start = threading.Barrier(len(files))

    def client(own: Sequence[bytes]) -> None:
        connection = http.client.HTTPConnection(address)
        connection.connect()
        start.wait()
        for body in own:
            began = time.perf_counter()
            connection.request("POST", path, body=body, headers={"Content-Type": kind})
            answer = connection.getresponse()
            said = answer.read()
            if answer.status not in (200, 202):
                raise SystemExit(f"{path}: {answer.status}: {said[:300]!r}")
            taken.append(time.perf_counter() - began)
            answers.append(json.loads(said))
        connection.close()

    threads = [threading.Thread(target=client, args=(own,)) for own in files]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(answers) != sum(map(len, files)):
        raise SystemExit(f"{path}: a client was not answered")
    return taken, answers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--clients", type=int, default=20, help="that send at once")
    parser.add_argument("--uploads", type=int, default=3, help="of each client in a round")
    parser.add_argument("--rounds", type=int, default=5, help="of each server, by turns")
    parser.add_argument("--mb", type=float, default=4, help="of a file")
    parser.add_argument("--plain", type=Path, help=argparse.SUPPRESS)
    add_bound_option(parser)
    options = parser.parse_args()
    if options.plain:
        serve_plain(options.plain)
        return
    verdict = Verdict(BOUNDS, options.bound)
    found: dict[str, list[float]] = {}
    processor: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="cir-perf-") as name:
        folder = Path(name)
        written = folder / "plain"
        written.mkdir()
        command = [sys.executable, __file__, "--plain", str(written)]
        env = environment(folder)
        plain = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
        try:
            assert plain.stdout is not None
            beside = plain.stdout.readline().strip()
            more = {"CIR_LEADERBOARD_ACCOUNTS": "tokens", "CIR_LEADERBOARD_UPLOADS_AN_HOUR": str(10**6)}
            with server(folder / "home", more, "--workers", "0") as (address, process):
                for turn in range(options.rounds + 1):
                    for task in ("body", "form"):
                        kind = FORM if task == "form" else "application/json"
                        for whose, at, path, pid in (
                            ("plain", beside, f"/{task}", plain.pid),
                            ("ours", address, OURS, process),
                        ):
                            files = [
                                contents(int(options.mb * MB), options.uploads, form=task == "form")
                                for _ in range(options.clients)
                            ]
                            before = processor_seconds(pid)
                            taken, _ = crowd(at, path, kind, files)
                            if turn:  # the first is to be warm
                                found.setdefault(f"{task}, {whose}", []).extend(taken)
                                spent = (processor_seconds(pid) - before) / len(taken)
                                processor.setdefault(f"{task}, {whose}", []).append(spent)
                        for file in written.iterdir():
                            file.unlink()
        finally:
            plain.terminate()
            plain.wait()
    print(f"files of {options.mb:g} MB, {options.clients} clients, {options.rounds} rounds by turns")
    print(f"{'task':24} {'median ms':>9} {'p95 ms':>8} {'processor ms':>13}")
    for task, seconds in found.items():
        middle, p95 = statistics.median(seconds), statistics.quantiles(seconds, n=20)[-1]
        spent = statistics.median(processor[task])
        print(f"{task:24} {1000 * middle:9.1f} {1000 * p95:8.1f} {1000 * spent:13.1f}")
    verdict.head()
    for task in ("body", "form"):
        ours, theirs = (statistics.median(found[f"{task}, {whose}"]) for whose in ("ours", "plain"))
        verdict.show(f"{task} / plain", ours / theirs)
    verdict.end()


if __name__ == "__main__":
    main()
