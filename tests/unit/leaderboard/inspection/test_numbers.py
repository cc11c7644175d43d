"""Numbers by group: those of `cir score` for the same files, from what the store keeps."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import datasets_publishers
import numpy as np
import orjson
import pytest
from benchmark_world import suite
from leaderboard_world.entries import FILES, Entries, a_submission

from leaderboard import boards
from leaderboard.inspection.hits import LAST, default_turn, turn_label
from leaderboard.inspection.lists import KeptLists
from leaderboard.inspection.numbers import main_cutoff
from leaderboard.inspection.reports import entry_report
from leaderboard.queue.beginnings import packed_lists
from leaderboard.queue.judging import Validated, judge_file, score_file, write_values
from leaderboard.server import Server
from leaderboard.store.submission import Event
from submissions import score
from submissions.rank_file.benchmarks import Benchmarks
from submissions.report import full_report
from submissions.scoring.intervals import intervals
from submissions.validation import read


@pytest.mark.parametrize("name", ["sum", "random", "tirg"])
def test_a_report_from_the_store_is_the_files_own(demo: Server, entries: Entries, name: str) -> None:
    found, expected = demo.numbers.report(entries[name]), score(FILES[name])
    assert found is not None
    said, wanted = full_report(found).to_dict(), full_report(expected).to_dict()
    assert {**said, "file": "", "warnings": []} == {**wanted, "file": "", "warnings": []}
    assert intervals(found) == intervals(expected)


def test_groups_and_curves_are_those_of_the_report(demo: Server, entries: Entries) -> None:
    queries = demo.numbers.of(entries["sum"])
    sessions = demo.numbers.of(entries["tirg"])
    assert sessions is not None
    by_aspect = full_report(score(FILES["sum"])).groupings["by_aspect"]
    assert (queries[0].aspects, queries[0].turns, queries[0].curve) == (by_aspect, None, ())
    whole = full_report(score(FILES["tirg"])).groupings
    assert sessions[0].turns == whole["by_turn"]
    assert sessions[0].lengths == whole["by_length"]
    hits = [group.values["hits@10"] for group in whole["by_turn"].groups]
    assert [point.value for point in sessions[0].curve] == hits
    wanted = [f"hits@10@turn{turn}" for turn in range(1, len(hits) + 1)]
    drawn = intervals(score(FILES["tirg"], metrics=wanted)).values
    assert [(point.low, point.high) for point in sessions[0].curve] == [
        (drawn[name].low, drawn[name].high) for name in wanted
    ]
    assert demo.numbers.of(entries["tirg"]) is sessions


def test_ranks_are_counted_by_range(demo: Server, entries: Entries) -> None:
    import cir_datasets

    file = read(FILES["sum"])
    counts = dict.fromkeys(["1", "2-5", "6-10", "11-50", "not listed"], 0)
    for row in cir_datasets.load("shapes/val").rows():
        listed = file.rankings[row["query_id"]][:50]
        rank = listed.index(row["target_image_id"]) + 1 if row["target_image_id"] in listed else 51
        counts[next(label for end, label in zip((1, 5, 10, 50, 51), counts, strict=True) if rank <= end)] += 1
    found = demo.numbers.of(entries["sum"])
    assert {each.label: each.count for each in found[0].ranks} == counts
    assert sum(each.share for each in found[0].ranks) == pytest.approx(1)
    assert [each.label for each in demo.numbers.of(entries["tirg"])[0].ranks] == [  # type: ignore[index]
        "1",
        "2-5",
        "6-10",
        "not listed",
    ]


def test_a_dialogue_has_a_curve_and_ranks_of_the_whole_gallery(demo: Server, entries: Entries) -> None:
    found = demo.numbers.of(entries["talk"])
    metrics = (entries["talk"].scores or {})["metrics"]
    assert [point.value for point in found[0].curve] == [
        metrics[f"hits@10@turn{turn}"] for turn in range(1, 6)
    ]
    assert (found[0].aspects, found[0].turns) == (None, None)
    assert [each.label for each in found[0].ranks][-2:] == ["over 50", "not listed"]


def test_entries_side_by_side(demo: Server, entries: Entries) -> None:
    both = [entries["sum"], entries["random"]]
    assert list(demo.numbers.side_by_side(both)) == [each.id for each in both]


def test_the_cutoff_is_that_of_what_ranks() -> None:
    assert [main_cutoff(boards.board(each)) for each in ("shapes/multiturn_val", "fashioniq/val")] == [10, 10]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_suites_members_have_their_own_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CIR_DATA_HOME", str(suite.write_home(tmp_path / "data")))
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CIR_VERIFICATION_MODE", "no_checks")
    board, asked = boards.board("fashioniq/val"), Benchmarks("fashioniq/val")
    file = tmp_path / "run.json"
    file.write_bytes(orjson.dumps(suite.bundle("Ours", (0.5, 0.25, 0.1))))
    judged = judge_file(file, asked, file_name="run", form={})
    assert isinstance(judged, Validated)
    expected = score_file(judged, asked)
    write_values(expected, tmp_path / "values.npz", packed_lists(judged, expected, board.right_by))
    lists = KeptLists.read((tmp_path / "values.npz").read_bytes())
    assert [member.benchmark for member in lists.members] == list(board.benchmarks)
    assert [int(member.hits(10, LAST).sum()) for member in lists.members] == [5, 5, 3]
    report: dict[str, Any] = orjson.loads(orjson.dumps(expected.to_dict()))
    scored = Event(1, "scored", suite.MOMENT, {"report": report})
    one = a_submission("a", board=board.id, method=judged.method, events=(scored,))
    found = entry_report(board, one, (tmp_path / "values.npz").read_bytes(), lists)
    assert found is not None
    said, wanted = full_report(found).to_dict(), full_report(expected).to_dict()
    assert said["means"] == wanted["means"]
    assert [each["metrics"] for each in said["runs"]] == [each["metrics"] for each in wanted["runs"]]
    assert intervals(found) == intervals(expected)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_dialogues_turns_are_shown_by_their_own_targets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    datasets_publishers.write_cirr_loops(tmp_path / "data", "val")
    monkeypatch.setenv("CIR_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CIR_VERIFICATION_MODE", "no_checks")
    board, asked = boards.board("cirr/dialogues_val"), Benchmarks("cirr/dialogues_val")
    benchmark = asked.load(board.id)
    rankings = {
        row["session_id"]: [
            [turn["target_image_id"], *sorted({*(benchmark.gallery or ())} - {*turn.values()})]
            for turn in row["turns"]
        ]
        for row in benchmark.rows()
    }
    rankings["subset_4"][1].reverse()
    document = {"format": "cir-rank-file", "format_version": 1, "benchmark": board.id, "benchmark_version": 1}
    file = tmp_path / "run.json"
    file.write_bytes(orjson.dumps({**document, "method": {"name": "Nearly"}, "rankings": rankings}))
    judged = judge_file(file, asked, file_name="run", form={})
    assert isinstance(judged, Validated)
    expected = score_file(judged, asked)
    assert expected.metrics["turn_recall@1"] == 0.9
    write_values(expected, tmp_path / "values.npz", packed_lists(judged, expected, board.right_by))
    lists = KeptLists.read((tmp_path / "values.npz").read_bytes())
    assert lists.members[0].ranks.tolist().count(1) == 9
    report: dict[str, Any] = orjson.loads(orjson.dumps(expected.to_dict()))
    scored = Event(1, "scored", suite.MOMENT, {"report": report})
    one = a_submission("a", board=board.id, method=judged.method, events=(scored,))
    kept = entry_report(board, one, (tmp_path / "values.npz").read_bytes(), lists)
    assert kept is not None
    assert full_report(kept).groupings == full_report(expected).groupings
    assert (turn_label(board), default_turn(board)) == ("Turn R@10", LAST)


def test_values_that_are_not_of_the_rows_here_give_no_report(demo: Server, entries: Entries) -> None:
    board, one = boards.board("shapes/val"), entries["random"]
    packed = demo.store.kept_values(one.id)
    assert entry_report(board, one, packed, None) is not None
    assert entry_report(board, one, None, None) is None
    assert entry_report(boards.board("shapes/dialogue_val"), entries["talk"], packed, None) is None
    short = io.BytesIO()
    np.savez(short, **{"recall@10": np.ones(7)})
    assert entry_report(board, one, short.getvalue(), None) is None
