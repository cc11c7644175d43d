"""Nothing is lost or doubled: web process, worker and judge are killed at random moments under load."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import forked
import httpx
import leaderboard_world as world
import pytest
import sqlalchemy as sa
from waiting import wait_for

from leaderboard.intake import Cover
from leaderboard.queue.jobs import BEATS_A_LEASE
from leaderboard.server import Server
from leaderboard.settings import Settings
from leaderboard.store import Store
from leaderboard.store.schema import jobs, workers
from leaderboard.store.submission import Submission

KILLS = int(os.environ.get("CIR_TEST_KILLS", "12"))
"""How many processes are killed; a hundred take about ten minutes."""
KINDS = ("child", "worker", "child", "web")
"""What is killed, by turns; the moment is drawn."""
SECONDS = 300.0


def processes(parent: int) -> dict[str, list[int]]:
    """Ids of the server's process, of its workers and of their judges."""
    workers = children(parent)
    return {"web": [parent], "worker": workers, "child": [one for each in workers for one in children(each)]}


def looked_for(parent: int, wanted: str, seconds: float = 3.0) -> list[int]:
    """Ids of the wanted processes, waiting for one to begin: a judge lives for less than a second."""
    until = time.monotonic() + seconds
    while not (found := processes(parent)[wanted]) and time.monotonic() < until:
        time.sleep(0.01)
    return found


def children(parent: int) -> list[int]:
    try:
        found = Path(f"/proc/{parent}/task/{parent}/children").read_text()
    except OSError:
        return []
    others = []
    with suppress(OSError):
        for task in Path(f"/proc/{parent}/task").iterdir():
            if task.name != str(parent):
                others += (task / "children").read_text().split()
    return [int(one) for one in [*found.split(), *others]]


@pytest.mark.slow
def test_nothing_is_lost_or_doubled(tmp_path: Path, database: str, record_property: Any) -> None:
    draw = random.Random(5)
    base = world.rank_file(1)
    settings = {"CIR_LEADERBOARD_DATABASE": database}
    acknowledged: dict[str, int] = {}
    killed: Counter[str] = Counter()
    sent = 0
    while sum(killed.values()) < KILLS:
        with world.serving(tmp_path / "home", **settings) as running:
            while sum(killed.values()) < KILLS and running.process.poll() is None:
                sent += 1
                content = other_rankings({**base, "method": {"name": f"Number {sent}"}}, sent)
                with suppress(httpx.HTTPError):
                    answer = running.upload(content)
                    if answer.status_code == 202:
                        acknowledged[answer.json()["id"]] = sent
                time.sleep(draw.uniform(0.0, 0.6))
                wanted = KINDS[sum(killed.values()) % len(KINDS)]
                found = looked_for(running.process.pid, wanted)
                if found:
                    with suppress(ProcessLookupError):
                        os.kill(draw.choice(found), signal.SIGKILL)
                        killed[wanted] += 1
                    if wanted == "web":
                        running.process.wait()
    with world.serving(tmp_path / "home", **settings) as running:
        ended = {one: running.finished(one, SECONDS) for one in acknowledged}
        rows = running.rows()
    states = Counter(one["state"] for one in ended.values())
    record_property("kills", dict(killed))
    print(f"{sum(killed.values())} kills {dict(killed)}, {len(acknowledged)} acknowledged: {dict(states)}")
    assert set(killed) == set(KINDS)
    # Two kills may hit one file's judges or workers, which says nothing about the file.
    assert set(states) == {"published"}
    shown = Counter(row["submission"] for row in rows)
    assert max(shown.values()) == 1
    assert set(ended) <= set(shown)
    kinds = [[event["kind"] for event in one["events"]] for one in ended.values()]
    assert all(each.count("scored") <= 1 and each.count("published") <= 1 for each in kinds)
    store = Store(database)
    assert store.condition()["waiting"] == 0
    store.close()


WORKING = """
import sys
from pathlib import Path
from leaderboard.queue.worker import Worker
from leaderboard.server import Server
from leaderboard.settings import Settings
server = Server.open(Settings(Path(sys.argv[1]), database=sys.argv[2]))
Worker(server.files, server.store, refresh=server.tables.refresh, lease_seconds=float(sys.argv[3])).run()
"""


@pytest.mark.slow
def test_jobs_of_a_dead_worker_end_within_three_leases_of_steady_uploads(
    tmp_path: Path, database: str
) -> None:
    numbers = itertools.count()
    server = Server.open(Settings(tmp_path / "home", database=database))

    def received(content: bytes) -> Submission:
        # Each by somebody new, whose turn comes before that of those who were served.
        cover = Cover(owner=f"new {next(numbers)}")
        return server.intake.take(world.BOARD, [content], cover)[0]

    def keep_waiting() -> None:
        while server.store.condition()["waiting"] < 4:
            received(b"[%d]" % next(numbers))

    def one(query: sa.Select[Any]) -> Any:
        with server.store.database.read() as connection:
            return connection.execute(query).scalar_one_or_none()

    def holder(submission: Submission) -> forked.Process | None:
        name = str(one(sa.select(jobs.c.worker).where(jobs.c.submission_id == submission.id)))
        return next((each for each in both if f":{each.pid}:" in name), None)

    # A lease is as long as this machine needs for five files now: beats alone are counted.
    for seed in (1000, 1001):
        began = time.monotonic()
        server.worker.process(received(world.as_bytes(world.rank_file(seed))))
    lease = max(2.0, 5 * (time.monotonic() - began))
    command = [sys.executable, "-c", WORKING, str(server.settings.home), database, str(lease)]
    alive = sa.select(sa.func.count()).select_from(workers)
    both = [forked.Process(command, cwd=world.ROOT, stderr=subprocess.DEVNULL) for _ in "ab"]
    try:
        wait_for(lambda: one(alive) == 2, "two workers")
        dead = None
        for seed in itertools.count():
            held = received(world.as_bytes(world.rank_file(seed, f"Held {seed}")))
            while dead is None and not server.store.submission(held.id).finished:
                keep_waiting()
                dead = holder(held)
            if dead is not None:
                # What it judges when it is stopped is what it judges when it is killed.
                dead.send_signal(signal.SIGSTOP)
                if holder(held) is dead:
                    break
                dead.send_signal(signal.SIGCONT)
                dead = None
        dead.kill()
        dead.wait()
        (survivor,) = (each for each in both if each is not dead)
        beats = sa.select(workers.c.beat).where(workers.c.id.contains(f":{survivor.pid}:"))
        begun = one(beats)
        while not (found := server.store.submission(held.id)).finished:
            keep_waiting()
            assert one(beats) - begun <= 3 * BEATS_A_LEASE
            time.sleep(0.05)
        assert found.state == "published"
        wait_for(lambda: one(alive) == 1, "the dead worker's end")
    finally:
        for each in both:
            each.kill()
            each.wait()
        server.close()


def other_rankings(document: dict[str, Any], seed: int) -> bytes:
    """The rank file with one ranking in another order: equal rankings would be one entry."""
    queries = sorted(document["rankings"])
    query = queries[seed % len(queries)]
    images = list(document["rankings"][query])
    first = 2 + seed // len(queries)
    images[first], images[first + 1] = images[first + 1], images[first]
    return json.dumps({**document, "rankings": {**document["rankings"], query: images}}).encode()
