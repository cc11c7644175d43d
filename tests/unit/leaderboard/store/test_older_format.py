"""A home that an earlier version filled: ranked among itself, marked, taken along, and scored again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from leaderboard_world import as_bytes, rank_file

import submissions
from cir_metrics.catalogue import FORMAT, Signature
from leaderboard import boards
from leaderboard.commands.show import board_text
from leaderboard.intake import Cover
from leaderboard.queue.child import judge
from leaderboard.server import Server
from leaderboard.server.rescoring import rescore, switch
from leaderboard.settings import Settings
from leaderboard.store.transfer import export_store, import_store

BOARD = boards.board("shapes/val")
COMMAND = f"cir leaderboard rescore {BOARD.id} --switch"
SINCE_FORMAT_3 = ("reference_held", "reference_declared", "gallery_kind", "ranked", "repaired", "unverified")


def in_format_2(stored: dict[str, Any]) -> dict[str, Any]:
    """A signature as version 0.1.0 wrote it before format 3."""
    parts = {name: value for name, value in stored.items() if name not in ("key", "text", *SINCE_FORMAT_3)}
    made = Signature.from_dict({**parts, "format": 2})
    return {**made.to_dict(), "text": str(made)}


def stored_entry(server: Server, tmp_path: Path, seed: int, name: str, *, older: bool) -> str:
    """An entry with its file and its values, written without a process of its own."""
    content = as_bytes(rank_file(seed, name, hits=0.1 * seed))
    submission, _ = server.intake.take(BOARD.id, [content], Cover())
    score = submissions.score(content)
    report = score.to_dict()
    if older:
        report["signatures"] = {each: in_format_2(one) for each, one in report["signatures"].items()}
    kept = tmp_path / f"{seed}.npz"
    path = server.files.local_copy(submission.sha256)
    judge(path, BOARD.id, file_name=name, form={}, values_to=kept, right_by=BOARD.right_by)
    happened: Any = [
        ("validated", {"findings": [], "text": ""}),
        ("scored", {"report": report}),
        ("published", {}),
    ]
    server.store.append(
        submission, happened, method={"name": name}, canonical=f"{seed:064x}", kept_values=kept.read_bytes()
    )
    return submission.id


def standing(server: Server) -> list[tuple[str, int | None, str, int | None]]:
    rows = server.tables.refresh(BOARD).view["rows"]
    return [(row["method"]["name"], row["rank"], row["block"], row["group"]) for row in rows]


MIXED = [("Since", 1, "current", 1), ("Before", 1, "older_format", 1)]
"""The older one has more hits, and takes nobody's rank."""


@pytest.fixture
def server(url: str, tmp_path: Path) -> Iterator[Server]:
    opened = Server.open(Settings(tmp_path / "home", database=url))
    stored_entry(opened, tmp_path, 3, "Before", older=True)
    stored_entry(opened, tmp_path, 1, "Since", older=False)
    yield opened
    opened.close()


def test_a_stored_home_is_taken_along_and_scored_again(server: Server, tmp_path: Path) -> None:
    assert standing(server) == MIXED
    view = server.tables.of(BOARD).view
    assert COMMAND in view["blocks"]["older_format"]
    assert COMMAND in board_text(BOARD, view)
    with closing(Server.open(Settings(tmp_path / "copy"))) as copy:
        export_store(server.store, server.files, tmp_path / "export")
        import_store(tmp_path / "export", copy.store, copy.files)
        assert standing(copy) == MIXED
    results = list(rescore(server, BOARD))
    assert [result.changed(BOARD) for result in results] == [True, False]
    assert switch(server, BOARD, results) == 1
    assert standing(server) == [("Before", 1, "current", 1), ("Since", 2, "current", 2)]
    (before,) = server.store.of_board(BOARD.id)[:1]
    formats = [
        event.payload["report"]["signatures"]["recall@10"]["format"]
        for event in before.events
        if event.kind in ("scored", "rescored")
    ]
    assert formats == [2, FORMAT]
