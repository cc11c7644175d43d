"""To erase a sender takes their words out of the log as well; else the log cannot be changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from leaderboard import boards
from leaderboard.intake.life import act
from leaderboard.standings.tables import Tables
from leaderboard.store import Store
from leaderboard.store.schema import events
from leaderboard.store.submission import Submission

BOARD = "shapes/val"
FINDING = {"code": "c", "severity": "warning", "message": "Jane Doe", "fix": "ask Jane", "examples": ["Jane"]}
REPORT = {"file": "jane.json", "method": "Jane Doe net", "metrics": {"recall@10": 0.5}, "warnings": [FINDING]}


def jane(store: Store) -> Submission:
    """An entry whose every field and event holds its sender's name."""
    said: dict[str, Any] = {"submitter": "Jane Doe", "owner": "jane", "form": {"notes": "Jane" * 2000}}
    one, _ = store.receive(board=BOARD, sha256="a" * 64, size=1, file_name="jane.json", **said)
    findings = {"findings": [FINDING], "text": "Jane Doe" * 2000, "claims": {}}
    method = {"name": "Jane Doe net", "notes": "call Jane", "backbone": "CLIP ViT-B/32"}
    one = store.append(
        one, [("validated", findings), ("scored", {"report": REPORT}), ("published", {})], method=method
    )
    return act(store, one, "correct", "owner", method={**method, "name": "Jane Doe net 2"})


def in_database(store: Store) -> str:
    """All texts that its tables hold."""
    with store.database.read() as connection:
        tables = sa.inspect(connection).get_table_names()
        return str([connection.exec_driver_sql(f"SELECT * FROM {name}").all() for name in tables])


def test_an_erased_sender_stands_in_no_file_of_the_database(store: Store, tmp_path: Path) -> None:
    one = jane(store)
    tables = Tables(store)
    tables.of(boards.board(BOARD))
    tables.close()
    assert "jane" in in_database(store).lower()
    erased = act(store, one, "erase", "organiser")
    assert "jane" not in in_database(store).lower()
    assert [event.kind for event in erased.events] == [*(event.kind for event in one.events), "erased"]
    assert [event.at for event in erased.events[:-1]] == [event.at for event in one.events]
    assert (erased.scores or {})["metrics"] == {"recall@10": 0.5}
    store.close()
    for path in tmp_path.glob("board.sqlite*"):
        assert b"jane" not in path.read_bytes().lower(), path


def test_what_comes_after_holds_no_words_of_the_file(store: Store) -> None:
    """Scoring again reads the file, which still says who wrote it."""
    erased = act(store, jane(store), "erase", "organiser")
    store.append(erased, [("rescored", {"report": {**REPORT, "metrics": {"recall@10": 0.6}}})])
    assert "jane" not in in_database(store).lower()


def test_the_database_lets_texts_of_erased_submissions_change_and_nothing_else(store: Store) -> None:
    kept, _ = store.receive(board=BOARD, sha256="b" * 64, size=1, file_name="b.json", owner="bob")
    gone = act(store, jane(store), "erase", "organiser")
    refused: list[tuple[Submission, dict[str, Any]]] = [
        (kept, {"payload": {}}),
        *((gone, {name: value}) for name, value in (("kind", "x"), ("sequence", 99), ("by", "x"))),
        (gone, {"submission_id": kept.id}),
    ]
    for one, values in refused:
        theirs = events.c.submission_id == one.id
        with pytest.raises(sa.exc.DBAPIError, match="append-only"), store.database.write() as connection:
            connection.execute(events.update().where(theirs).values(**values))
    with pytest.raises(sa.exc.DBAPIError, match="append-only"), store.database.write() as connection:
        connection.execute(events.delete().where(events.c.submission_id == gone.id))
    assert store.submission(gone.id) == gone
