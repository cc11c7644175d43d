"""A leaderboard whose log is on the Hub, killed while clients submit: what is committed outlives its disk."""

from __future__ import annotations

import copy
import hashlib
import itertools
import random
import signal
import threading
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import leaderboard_world as world
import pytest
from http_hub import COMMITS_AN_HOUR, TOKEN, Hub
from waiting import wait_for

from leaderboard.store import Store
from leaderboard.store.files import file_path

CLIENTS = 10
NAME, COPY = "me/log", "me/copy"
HOUR = 12.8
"""Seconds for an hour of the Hub: as much shorter for its limit as for the commits of the server."""


class Clients:
    """Send files one after another, to whichever server runs."""

    def __init__(self) -> None:
        self._base = world.rank_file(1)
        self.running: Any = None
        self.answered: dict[str, tuple[str, str]] = {}
        """Of each submission that was acknowledged the hash of its file, and its durability."""
        self.stopped = threading.Event()
        self._threads = [threading.Thread(target=self._send, args=(one,)) for one in range(CLIENTS)]
        for thread in self._threads:
            thread.start()

    def _send(self, client: int) -> None:
        draw = random.Random(client)
        for number in itertools.count():
            if self.stopped.wait(draw.uniform(0.2, 1.0)):
                return
            content = world.as_bytes({**self._base, "method": {"name": f"Client {client}, {number}"}})
            try:
                answer = self.running.upload(content)
            except (httpx.HTTPError, AttributeError):
                continue
            if answer.status_code == 202:
                found = answer.json()
                self.answered[found["id"]] = hashlib.sha256(content).hexdigest(), found["durability"]

    def have(self, number: int) -> bool:
        """Whether so many submissions were acknowledged."""
        return len(self.answered) >= number

    def stop(self) -> None:
        self.stopped.set()
        for thread in self._threads:
            thread.join()


def kept(home: Path) -> dict[str, str]:
    """The hash of the file of each submission; each has come once."""
    with closing(Store(f"sqlite:///{home / 'leaderboard.sqlite'}")) as store:
        found = store.of_board("shapes/val")
    for one in found:
        assert [event.sequence for event in one.events] == list(range(1, len(one.events) + 1))
        assert [event.kind for event in one.events].count("received") == 1
    assert len({one.sha256 for one in found}) == len(found)
    return {one.id: one.sha256 for one in found}


@pytest.mark.parametrize(
    "kills", [pytest.param(4, marks=pytest.mark.slow), pytest.param(20, marks=pytest.mark.exhaustive)]
)
def test_what_is_committed_outlives_the_disk_and_what_is_journalled_the_process(
    tmp_path: Path, record_property: Any, kills: int
) -> None:
    draw = random.Random(7)
    with Hub(hour=HOUR) as hub:
        settings = {
            "HF_ENDPOINT": hub.url,
            "HF_TOKEN": TOKEN,
            "CIR_LEADERBOARD_LOG": f"hf://datasets/{NAME}",
            "CIR_LEADERBOARD_COMMITS_AN_HOUR": str(int(100 * 3600 / HOUR)),
        }
        clients = Clients()
        try:
            for number in range(kills):
                received = ("journalled", "committed")[number % 2]
                with world.serving(
                    tmp_path / "kept", CIR_LEADERBOARD_RECEIVED=received, **settings
                ) as running:
                    before, clients.running = len(clients.answered), running
                    wait_for(partial(clients.have, before + CLIENTS // 2), "answers")
                    time.sleep(draw.uniform(0.0, 2.0))
                    running.stop(signal.SIGKILL)
        finally:
            clients.stop()
        hub.repositories[COPY] = copy.deepcopy(hub.repositories[NAME])
        committed = {one: of[0] for one, of in clients.answered.items() if of[1] == "committed"}
        journalled = {one: of[0] for one, of in clients.answered.items()}
        print(f"{len(journalled)} acknowledged, {len(committed)} of them committed")
        record_property("acknowledged", len(journalled))
        assert len(committed) >= kills // 2 * CLIENTS // 2
        assert committed.keys() < journalled.keys()
        # The disk is lost.
        log = {"CIR_LEADERBOARD_LOG": f"hf://datasets/{COPY}"}
        with world.serving(tmp_path / "empty", **{**settings, **log}) as running:
            # Its file is fetched, and judged.
            assert running.finished(next(iter(committed)))["state"] in ("published", "superseded")
            running.stop()
        found = kept(tmp_path / "empty")
        assert committed.items() <= found.items()
        assert all(file_path(sha256) in hub.repositories[COPY].files for sha256 in found.values())
        # The disk is kept.
        with world.serving(tmp_path / "kept", **settings) as running:
            running.stop()
        assert journalled.items() <= kept(tmp_path / "kept").items()
        # What it had not committed, it has now.
        with world.serving(tmp_path / "later", **settings) as running:
            running.stop()
        assert kept(tmp_path / "later") == kept(tmp_path / "kept")
        taken = hub.repositories[NAME].taken
        assert max(sum(at - HOUR < each <= at for each in taken) for at in taken) <= COMMITS_AN_HOUR
