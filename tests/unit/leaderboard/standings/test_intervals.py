"""Intervals of main values: the digits of `submissions.scoring` on the same files, from kept values."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from benchmark_world import suite
from benchmark_world.dialogues import as_lines, shapes_dialogue
from leaderboard_world.entries import a_submission, packed

from leaderboard import boards
from leaderboard.boards import Board
from leaderboard.queue.judging import Validated, judge_file, score_file, write_values
from leaderboard.standings import Entry, standings
from leaderboard.standings.tested import Ends, main_intervals, opened
from leaderboard.store.submission import Event
from submissions.rank_file.benchmarks import Benchmarks
from submissions.scoring.intervals import intervals
from submissions.scoring.score_report import ScoreReport

ENTRIES = resources.files("submissions.entries")


def judged(board: Board, file: Path, folder: Path) -> tuple[ScoreReport, Entry, bytes]:
    """The score of a file, its line on the board, and what the store keeps of its values."""
    asked = Benchmarks(board.benchmark)
    found = judge_file(file, asked, file_name=file.name, form={}, dialogue=board.dialogue)
    assert isinstance(found, Validated), found.payload["text"]
    report = score_file(found, asked)
    write_values(report, folder / "values.npz")
    scored = Event(1, "scored", suite.MOMENT, {"report": orjson.loads(orjson.dumps(report.to_dict()))})
    (entry,) = standings(board, [a_submission("a", board=board.id, method=found.method, events=(scored,))])
    return report, entry, (folder / "values.npz").read_bytes()


def drawn(board: Board, entry: Entry, kept: Any) -> Ends | None:
    return main_intervals(board, [entry], {"a": kept}, {})[0].get("a")


def printed(report: ScoreReport) -> Ends:
    found = intervals(report).values[report.main_metric]
    return found.low, found.high


@pytest.mark.parametrize(
    ("board", "file"),
    [
        ("shapes/val", "image_text_sum-shapes.shapes-val.json.gz"),
        ("shapes/multiturn_val", "tirg-shapes-latest.shapes-multiturn_val.json.gz"),
    ],
)
def test_the_interval_of_an_entry_is_that_of_its_file(board: str, file: str, tmp_path: Path) -> None:
    found = boards.board(board)
    report, entry, packed_values = judged(found, Path(str(ENTRIES / file)), tmp_path)
    assert drawn(found, entry, opened(packed_values, found.primary_terms)) == printed(report)


def test_the_interval_of_a_dialogue_is_that_of_its_transcript(tmp_path: Path) -> None:
    board = boards.board("shapes/dialogue_val")
    (tmp_path / "talk.jsonl").write_bytes(as_lines(shapes_dialogue(hits=0.4)))
    report, entry, packed_values = judged(board, tmp_path / "talk.jsonl", tmp_path)
    assert drawn(board, entry, opened(packed_values)) == printed(report)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_interval_of_a_suite_is_drawn_member_by_member(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CIR_DATA_HOME", str(suite.write_home(tmp_path / "data")))
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CIR_VERIFICATION_MODE", "no_checks")
    board = boards.board("fashioniq/val")
    (tmp_path / "run.json").write_bytes(orjson.dumps(suite.bundle("Ours", (0.5, 0.25, 0.1))))
    report, entry, packed_values = judged(board, tmp_path / "run.json", tmp_path)
    kept = opened(packed_values, board.primary_terms)
    assert drawn(board, entry, kept) == printed(report)
    # As an earlier version kept it: weighted, and without the members' own values.
    joined = {name: values for name, values in kept.items() if "/" not in name}
    assert drawn(board, entry, joined) == printed(report)
    assert drawn(board, entry, {"recall@10": kept["recall@10"]}) is None
    one_less = {name: values[1:] for name, values in joined.items()}
    assert drawn(board, entry, one_less) is None


def test_values_with_another_mean_give_no_interval(tmp_path: Path) -> None:
    board = boards.board("shapes/val")
    _, entry, _ = judged(board, Path(str(ENTRIES / "random.shapes-val.json.gz")), tmp_path)
    assert drawn(board, entry, {"recall@10": np.ones(300)}) is None
    assert drawn(board, entry, {"recall@1": np.ones(300)}) is None
    assert drawn(board, entry, {}) is None


def test_a_median_has_no_interval(tmp_path: Path) -> None:
    board = boards.board("shapes/val").model_copy(update={"primary": "median_rank"})
    values = {"median_rank": np.ones(300)}
    assert main_intervals(board, [], {"a": values}, {}) == ({}, {})


def test_many_entries_share_draws_and_have_the_same_intervals_as_alone(tmp_path: Path) -> None:
    board = boards.board("shapes/val")
    names = sorted(each.name for each in ENTRIES.iterdir() if each.name.endswith("shapes-val.json.gz"))[:3]
    entries, kept, alone = [], {}, {}
    for name in names:
        report, entry, packed_values = judged(board, Path(str(ENTRIES / name)), tmp_path)
        one = a_submission(name, board=board.id, method=entry.method, events=entry.submission.events)
        entries += standings(board, [one])
        kept[name], alone[name] = opened(packed_values), printed(report)
    assert main_intervals(board, entries, kept, {})[0] == alone


@pytest.mark.parametrize(
    "damaged",
    [b"", b"PK\x03\x04 and then nothing", packed({"recall@10": np.array(["a"])}), None],
    ids=["empty", "broken zip", "texts", "none"],
)
def test_values_that_cannot_be_read_are_none(damaged: bytes | None) -> None:
    assert opened(damaged) == {}
