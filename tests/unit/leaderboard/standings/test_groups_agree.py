"""`cir compare` of a board's files says the groups of the board: shipped files, a suite, dialogues."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from benchmark_world import suite
from benchmark_world.dialogues import BOARD as DIALOGUES
from benchmark_world.dialogues import as_lines, shapes_dialogue
from cir_here import cir
from leaderboard_world.entries import ENTRIES, handed_in

from leaderboard import boards
from leaderboard.server import Server


def check_same_groups(server: Server, board: str, files: Mapping[Path, bytes]) -> list[int | None]:
    """Hand files in, compare them, and hold the groups of both against each other; returns them."""
    entries = {str(path): handed_in(server, content, path.name, board).id for path, content in files.items()}
    rows = server.tables.refresh(boards.board(board)).view["rows"]
    by_entry = {row["submission"]: row["group"] for row in rows}
    primary = boards.board(board).primary
    done = cir("compare", *entries, "--metric", primary, "--json", code=0)
    compared = json.loads(done.stdout)["methods"]
    assert [each["group"] for each in compared] == [by_entry[one] for one in entries.values()]
    assert [each["group"] for each in compared if each["group_test"] is None].count(1) == 1
    return list(by_entry.values())


@pytest.mark.parametrize("board", ["shapes/val", "shapes/multiturn_val"])
def test_shipped_files(server: Server, board: str) -> None:
    files = sorted(ENTRIES.glob(f"*.{board.replace('/', '-')}.json.gz"))
    groups = check_same_groups(server, board, {path: path.read_bytes() for path in files})
    # Oracles stand outside, the others in more groups than one.
    assert {None, 1, 2, 3} <= set(groups)


def test_bundles_of_a_suite(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CIR_DATA_HOME", str(suite.write_home(tmp_path / "data")))
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CIR_VERIFICATION_MODE", "no_checks")
    shares = {"Best": (1, 0.9, 0.9), "Near": (0.9, 0.95, 0.8), "Half": (0.5, 0.5, 0.4), "Poor": (0, 0.1, 0)}
    files = {}
    for name, hits in shares.items():
        files[tmp_path / f"{name}.json"] = json.dumps(suite.bundle(name, hits)).encode()
    for path, content in files.items():
        path.write_bytes(content)
    assert len(set(check_same_groups(server, "fashioniq/val", files))) > 1


def test_dialogues(server: Server, tmp_path: Path) -> None:
    files = {}
    for seed, hits in enumerate((0.6, 0.55, 0.3, 0.28, 0.02)):
        path = tmp_path / f"{seed}.jsonl"
        files[path] = as_lines(shapes_dialogue(seed=seed, hits=hits, name=f"Method {seed}"))
        path.write_bytes(files[path])
    assert len(set(check_same_groups(server, DIALOGUES, files))) > 1
