"""Uploads at the same moment, to two servers on one store: a quota and the limit by address hold exactly."""

from __future__ import annotations

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import leaderboard_world as world
import plain_http
import pytest

from leaderboard.identity import Tokens
from leaderboard.store import Store

AT_ONCE, A_DAY, AN_HOUR = 12, 5, 20


def all_at_once(urls: list[str], token: str, files: list[bytes]) -> list[httpx.Response]:
    gate = threading.Barrier(len(files))

    def send(number: int) -> httpx.Response:
        gate.wait()
        return plain_http.post(
            f"{urls[number % len(urls)]}/api/submissions",
            params={"board": "shapes/val", "publish": "yes"},
            content=files[number],
            headers={"Authorization": f"Bearer {token}"},
            timeout=120,
        )

    with ThreadPoolExecutor(len(files)) as pool:
        return list(pool.map(send, range(len(files))))


def counted(answers: list[httpx.Response]) -> Counter[str]:
    return Counter(
        "taken" if answer.status_code == 202 else answer.json()["error"]["code"] for answer in answers
    )


@pytest.mark.slow
def test_exactly_the_quota_is_taken_of_uploads_at_once(tmp_path: Path, database: str) -> None:
    store = Store(database)
    tokens = {name: Tokens(store).create(name) for name in ("ada", "bob")}
    left = 3600 - time.time() % 3600
    if left < 120:
        time.sleep(left)  # days and hours are those of the clock
    environment = {
        "CIR_LEADERBOARD_ACCOUNTS": "tokens",
        "CIR_LEADERBOARD_DATABASE": database,
        "CIR_LEADERBOARD_QUOTA_DAY": str(A_DAY),
        "CIR_LEADERBOARD_UPLOADS_AN_HOUR": str(AN_HOUR),
    }
    home = tmp_path / "home"
    with world.serving(home, **environment) as one, world.serving(home, **environment) as two:
        files = [world.as_bytes(world.rank_file(seed, f"Of {seed}")) for seed in range(2 * AT_ONCE)]
        answers = all_at_once([one.url, two.url], tokens["ada"], files[:AT_ONCE])
        assert counted(answers) == {"taken": A_DAY, "quota": AT_ONCE - A_DAY}
        later = all_at_once([one.url, two.url], tokens["bob"], files[AT_ONCE:])
        beyond = 2 * AT_ONCE - AN_HOUR
        assert counted(later) == {"taken": A_DAY, "quota": AT_ONCE - A_DAY - beyond, "too-many": beyond}
        until = time.monotonic() + 120
        while store.condition()["waiting"] and time.monotonic() < until:
            time.sleep(0.2)
    published = store.published("shapes/val")
    store.close()
    assert Counter(each.owner for each in published) == {"token:ada": A_DAY, "token:bob": A_DAY}
