"""What a hostile file leaves in the log that is never shortened."""

from __future__ import annotations

import json
from typing import Any

import pytest

from leaderboard.intake import Cover
from leaderboard.server import Server

MANY = 50_000
HEAD = {"format": "cir-rank-file", "format_version": 1, "benchmark": "shapes/val", "benchmark_version": 2}


@pytest.mark.parametrize(
    "document",
    [
        {**HEAD, "method": {f"field{n}": 0 for n in range(MANY)}, "rankings": {}},
        {**HEAD, "method": {"name": "a"}, "rankings": {f"query{n}": n for n in range(MANY)}},
        {**HEAD, "method": {"name": "a"}, "rankings": {"q" * MANY: []}, "x" * MANY: 1},
        {"format": "cir-rank-bundle", "suite": "fashioniq/val", "runs": [{}] * MANY},
    ],
    ids=["method", "queries", "long names", "runs"],
)
def test_a_hostile_file_leaves_little_in_the_log(document: dict[str, Any], server: Server) -> None:
    content = json.dumps(document).encode()
    taken, _ = server.intake.take("shapes/val", [content], Cover("run.json"))
    done = server.worker.process(taken)
    assert done.state == "rejected"
    assert done.findings
    assert sum(len(json.dumps(event.payload)) for event in done.events) < 10_000
