"""Over HTTP: a rank file that was changed on the server's disk is given to nobody, and /health names it."""

from __future__ import annotations

import time
from pathlib import Path

import httpx
import leaderboard_world as world


def test_a_changed_file_is_not_served_and_health_names_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    content = world.as_bytes(world.rank_file(1, "Method 1"))
    with world.serving_here(home) as server:
        sent = httpx.post(f"{server.url}/api/submissions?board={world.BOARD}", content=content, timeout=60)
        one = sent.json()
        page, file = (f"/api/submissions/{one['id']}{part}" for part in ("", "/file"))
        while not server.get(page).json()["finished"]:
            time.sleep(0.05)
        (path,) = home.glob(f"files/??/{one['sha256']}.json")
        for written, status, lost in ((content[::-1], 503, [one["sha256"]]), (content, 200, [])):
            path.write_bytes(written)
            answer = server.get(file)
            assert answer.status_code == status
            assert (answer.content == content) == (status == 200)
            assert server.get("/health").json()["lost_files"] == lost
        path.unlink()
    with world.serving_here(home) as server:  # it looks at all of them when it starts
        while not (named := server.get("/health").json()["lost_files"]):
            time.sleep(0.05)
        assert named == [one["sha256"]]
        assert "cir leaderboard verify" in server.get("/status").text
