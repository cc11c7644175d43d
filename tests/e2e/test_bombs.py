"""Every eighth bomb that a board takes, beside 20 innocent files; `perf/beside_bombs.py` shows delays."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import leaderboard_world as world
import pytest
from bombs import BOMBS

INNOCENT = 20


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Any]:
    alone = {"CIR_DATA_HOME": "", "CIR_CACHE_HOME": str(tmp_path / "cache")}
    with world.serving(tmp_path / "home", **alone) as running:
        yield running


@pytest.mark.slow
def test_bombs_end_refused_and_innocent_files_on_the_board(server: Any) -> None:
    names = [name for name, bomb in BOMBS.items() if bomb.benchmark == world.BOARD]
    bombs = {name: BOMBS[name].build() for name in names[::8]}
    contents = [world.as_bytes(world.rank_file(seed, f"Innocent {seed}")) for seed in range(INNOCENT)]
    with ThreadPoolExecutor(8) as pool:
        sent = [pool.submit(server.upload, content) for content in [*bombs.values(), *contents]]
        answers = [each.result() for each in sent]
    assert {answer.status_code for answer in answers} == {202}
    ids = [answer.json()["id"] for answer in answers]
    ended = [server.finished(one, 900) for one in ids]
    assert {each["state"] for each in ended[len(bombs) :]} == {"published"}
    taken = [name for name, each in zip(bombs, ended, strict=False) if each["state"] != "rejected"]
    print(f"{len(bombs)} bombs; not rejected: {taken}")
    assert [name for name in taken if BOMBS[name].codes] == []
    assert "failed" not in {each["state"] for each in ended}
    assert server.get("/health").status_code == 200
    assert len(server.rows()) >= INNOCENT
