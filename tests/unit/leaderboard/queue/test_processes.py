"""The workers that a web process keeps: none judges while another server writes the leaderboard's log."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from leaderboard_world.entries import shipped
from waiting import wait_for

from leaderboard.intake import Cover
from leaderboard.queue.processes import WorkerProcesses
from leaderboard.server import Server
from leaderboard.settings import Settings


@pytest.mark.slow
def test_a_server_that_loses_its_place_stops_its_workers(tmp_path: Path) -> None:
    server = Server.open(Settings(tmp_path / "home"))
    lost = threading.Event()
    kept = WorkerProcesses(server.settings.home, 1, lost.is_set)

    def workers() -> int:
        return len(server.store.condition()["workers"])

    def state() -> str:
        found = server.store.submission(submission.id)
        return found.state

    kept.start()
    try:
        wait_for(lambda: workers() == 1, "a worker")
        lost.set()
        wait_for(lambda: workers() == 0, "the end of the worker")
        submission, _ = server.intake.take("shapes/val", [shipped("random")], Cover())
        assert (workers(), state()) == (0, "received")
        lost.clear()
        wait_for(lambda: state() == "published", "the next worker")
    finally:
        kept.stop()
        server.close()
