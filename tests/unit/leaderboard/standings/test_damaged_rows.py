"""A damaged row of the database is left out of its board; the board and its other rows stay."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from leaderboard_world.entries import shipped

from leaderboard import boards
from leaderboard.intake import Cover
from leaderboard.server import Server
from leaderboard.settings import Settings
from leaderboard.standings.views import submission_view
from leaderboard.store.schema import UNREADABLE

BOARD = boards.board("shapes/val")
MADE = json.loads(shipped("random"))
_SCORED = "WHERE kind = 'scored' AND submission_id = ?"
DAMAGES = [
    f"UPDATE events SET payload = '{{\"report\": {{' {_SCORED}",
    f'UPDATE events SET payload = \'{{"report": {{"metrics": [1]}}}}\' {_SCORED}',
    "UPDATE submissions SET method = '[1, 2]' WHERE id = ?",
]


DATES = [
    "UPDATE submissions SET received_at = 'yesterday' WHERE id = ?",
    "UPDATE submissions SET scored_at = x'00ff' WHERE id = ?",
    "UPDATE submissions SET received_at = 7 WHERE id = ?",
    "UPDATE events SET at = '2026-13-41 25:61:61' WHERE submission_id = ?",
    "UPDATE events SET at = '' WHERE submission_id = ?",
]


def test_a_date_that_cannot_be_read_takes_no_row_along(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server.open(Settings(tmp_path))
    taken, _ = server.intake.take(BOARD.id, [json.dumps(MADE).encode()], Cover(owner="token:ada"))
    done = server.worker.process(taken)
    server.close()
    for damage in DATES:
        with sqlite3.connect(tmp_path / "leaderboard.sqlite") as connection:
            connection.execute("DROP TRIGGER IF EXISTS events_refuse_update")
            connection.execute(damage, (done.id,))
        caplog.clear()
        again = Server.open(Settings(tmp_path))
        found = again.store.submission(done.id)
        assert UNREADABLE in (found.received_at, found.scored_at, found.events[0].at)
        assert "a date in the database cannot be read" in caplog.text
        assert [entry.name for entry in again.entries(BOARD)] == ["Random"]
        again.tables.refresh(BOARD)
        assert [row["submission"] for row in again.tables.of(BOARD).view["rows"]] == [done.id]
        assert submission_view(found)["state"] == "published"
        assert again.health()["waiting"] == 0
        other, new = again.intake.take(BOARD.id, [b"[1]"], Cover(owner=damage))
        assert new
        assert again.worker.process(other).state == "rejected"
        again.close()


def test_a_damaged_row_does_not_take_its_board_down(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    home = tmp_path / "home"
    server = Server.open(Settings(home))
    sent = []
    for number in range(len(DAMAGES) + 1):
        content = json.dumps({**MADE, "method": {"name": f"Method {number}"}}).encode()
        taken, _ = server.intake.take(BOARD.id, [content], Cover(owner=f"token:{number}"))
        sent.append(server.worker.process(taken))
    assert [one.state for one in sent] == ["published"] * len(sent)
    server.close()
    with sqlite3.connect(home / "leaderboard.sqlite") as connection:
        connection.execute("DROP TRIGGER events_refuse_update")
        for damage, one in zip(DAMAGES, sent, strict=False):
            connection.execute(damage, (one.id,))
    again = Server.open(Settings(home))
    assert [entry.name for entry in again.entries(BOARD)] == ["Method 3"]
    again.tables.refresh(BOARD)
    assert [row["submission"] for row in again.tables.of(BOARD).view["rows"]] == [sent[3].id]
    again.close()
    for one in sent[:3]:
        assert f"submission {one.id} is left out of shapes/val" in caplog.text
