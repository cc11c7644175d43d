"""Nothing is lost or doubled: web process, worker and judge are killed at random moments under load."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest

from leaderboard.store import Store

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
def test_nothing_is_lost_or_doubled(
    world: ModuleType, tmp_path: Path, database: str, record_property: Any
) -> None:
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
    # Two kills may hit the judges of one file: it ends as failed, with the reason.
    assert set(states) <= {"published", "failed"}
    assert all(one["message"] for one in ended.values() if one["state"] == "failed")
    shown = Counter(row["submission"] for row in rows)
    assert max(shown.values()) == 1
    assert {one for one, end in ended.items() if end["state"] == "published"} <= set(shown)
    kinds = [[event["kind"] for event in one["events"]] for one in ended.values()]
    assert all(each.count("scored") <= 1 and each.count("published") <= 1 for each in kinds)
    store = Store(database)
    assert store.count_waiting() == 0
    store.close()


def other_rankings(document: dict[str, Any], seed: int) -> bytes:
    """The rank file with one ranking in another order: equal rankings would be one entry."""
    queries = sorted(document["rankings"])
    query = queries[seed % len(queries)]
    images = list(document["rankings"][query])
    first = 2 + seed // len(queries)
    images[first], images[first + 1] = images[first + 1], images[first]
    return json.dumps({**document, "rankings": {**document["rankings"], query: images}}).encode()
