"""The declared boards, and what is said of a wrong one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import cir_datasets
from cir_datasets import registry
from cir_metrics.errors import UnknownNameError
from leaderboard import boards
from leaderboard.boards import data
from leaderboard.errors import BoardError

GOOD: dict[str, Any] = {
    "id": "cirr/val",
    "title": "CIRR",
    "short_title": "CIRR",
    "group": "Single-turn",
    "order": 1,
    "benchmark": "cirr/val",
    "track": "open",
    "primary": "recall@5",
    "primary_label": "R@5",
    "columns": [{"metric": "recall@1", "label": "R@1"}],
    "description": "made up",
}
SUITE: dict[str, Any] = {"benchmark": "fashioniq/val", "primary": "recall@10"}


def test_the_boards_are_the_expected_ones() -> None:
    assert set(boards.ids()) == {
        "shapes/val",
        "shapes/multiturn_val",
        "shapes/dialogue_val",
        "cirr/dialogue_val",
        "fashioniq/dress_dialogue_val",
        "fashioniq/shirt_dialogue_val",
        "fashioniq/toptee_dialogue_val",
        "circo/dialogue_val",
        "cirr/val",
        "fashioniq/dress_val",
        "fashioniq/shirt_val",
        "fashioniq/toptee_val",
        "circo/val",
        "genecis/focus_object",
        "genecis/change_object",
        "fashioniq/val",
        *(
            f"fashioniq/{category}{gallery}_without_reference"
            for category in ("", "dress_", "shirt_", "toptee_")
            for gallery in ("val", "val_union")
        ),
        "circled",
        "circled/val",
        *(f"circled/fashioniq_{category}_val" for category in ("dress", "shirt", "toptee")),
        "circled/cirr_val",
        "circled/circo_val",
        "cirr/dialogues_val",
        "cirr/dialogues_across_val",
        "multiturn_fashioniq/dress_val",
        "multiturn_fashioniq/shirt_val",
        "multiturn_fashioniq/toptee_val",
    }


@pytest.mark.parametrize("board", boards.boards(), ids=lambda board: board.id)
def test_every_board_ranks_by_its_benchmarks_main_metric(board: boards.Board) -> None:
    if board.dialogue is None:
        assert board.primary == (board.suite or board.spec).main_metric
    else:
        # The last round of what the dialogue aims at; of several targets, how many are found.
        metric = "map" if board.spec.main_metric.startswith("map@") else "hits"
        assert board.primary == f"{metric}@{board.dialogue.choices.k}@turn{board.dialogue.choices.max_rounds}"
    assert {spec.config.ground_truth for spec in board.specs} == {"public"}
    assert boards.of_benchmark(board.benchmark, dialogue=board.dialogue is not None) == (board,)


@pytest.mark.parametrize("board", boards.boards(), ids=lambda board: board.id)
def test_directions_and_units_are_the_metrics_own(board: boards.Board) -> None:
    for column in board.columns:
        rank = column.metric.partition("@")[0] in ("mean_rank", "median_rank")
        assert (column.direction, column.unit) == (("lower", "rank") if rank else ("higher", "percent"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"benchmark": "cirr/vall"}, r"x\.yaml: no benchmark 'cirr/vall'\. Did you mean 'cirr/val'"),
        ({"primary": "map@5"}, r"cirr/val has no metric 'map@5'\. It has: recall@1"),
        ({"primary": "mean(recall@5, recall@7)"}, r"no metric 'recall@7'"),
        ({"columns": [{"metric": "recall@2", "label": "R"}]}, r"no metric 'recall@2'"),
        ({"columns": [{"metric": "median_rank", "label": "R"}]}, r"no metric 'median_rank'"),
        ({"track": "secret"}, r"track"),
        ({"colour": "red"}, r"colour"),
        ({"id": "../etc"}, r"id"),
        ({**SUITE, "primary": "recall@7"}, r"fashioniq/val has no metric 'recall@7'\. It has: recall@1, "),
        (
            {**SUITE, "columns": [{"metric": "recall@5@cirr/val", "label": "R"}]},
            r"no metric 'recall@5@cirr/val'",
        ),
        ({**SUITE, "track": "sealed", "ground_truth": "/t.json"}, r"is a suite, and a sealed board has one"),
    ],
)
def test_a_wrong_board_is_an_error_that_says_where(change: dict[str, Any], words: str) -> None:
    with pytest.raises(BoardError, match=f"(?s){words}"):
        boards.parse({**GOOD, **change}, "x.yaml")


def test_turns_are_columns_where_the_benchmark_has_them() -> None:
    columns = [{"metric": "hits@10@turn2", "label": "H"}]
    change = {"benchmark": "circled/cirr_val", "primary": "hits_auc@10", "columns": columns}
    assert boards.parse({**GOOD, **change}, "x.yaml").columns[0].metric == "hits@10@turn2"


def test_a_board_of_a_suite_has_its_members_and_their_numbers() -> None:
    columns = [
        {"metric": "recall@10@fashioniq/shirt_val", "label": "Shirt"},
        {"metric": "recall@5@micro", "label": "M"},
    ]
    board = boards.parse({**GOOD, **SUITE, "columns": columns}, "x.yaml")
    assert board.benchmarks == ("fashioniq/dress_val", "fashioniq/shirt_val", "fashioniq/toptee_val")
    assert (board.version, board.queries, board.gallery) == (1, 6016, 15536)
    assert [spec.id for spec in board.specs] == list(board.benchmarks)
    assert boards.of_benchmark("circled") == (boards.board("circled"),)
    assert (boards.board("cirr/val").suite, boards.board("cirr/val").benchmarks) == (None, ("cirr/val",))


def test_an_unknown_board_gets_a_hint() -> None:
    with pytest.raises(UnknownNameError, match=r"no board 'cirr/vall'\. Did you mean 'cirr/val'"):
        boards.board("cirr/vall")


def test_a_mean_ranks_by_both_terms() -> None:
    board = boards.board("cirr/val")
    assert board.primary_value({"recall@5": 0.2, "recall_subset@1": 0.6}) == pytest.approx(0.4, abs=1e-15)
    with pytest.raises(BoardError, match="no 'recall_subset@1'"):
        board.primary_value({"recall@5": 0.2})


def test_a_board_without_its_publishers_files_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CIR_DATA_HOME", raising=False)
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path))
    problem = data.problem(boards.board("cirr/val"))
    assert problem is not None
    assert "captions/cap.rc2.val.json is not on this server" in problem
    assert "runs `cir datasets prepare cirr/val` with the server's CIR_CACHE_HOME, where" in problem
    assert str(tmp_path) not in problem, "everybody reads it"
    monkeypatch.setenv(data.PREPARE_VARIABLE, "make prepare BENCHMARKS={benchmark}")
    problem = data.problem(boards.board("cirr/val"))
    assert problem is not None
    assert "runs `make prepare BENCHMARKS=cirr/val`, where the server was started" in problem
    assert data.problem(boards.board("shapes/val")) is None


@pytest.mark.real_data
def test_with_the_publishers_files_every_board_of_theirs_is_open(data_home: object) -> None:
    there = [board.id for board in boards.boards() if data.problem(board) is None]
    assert {"cirr/val", "fashioniq/dress_val", "circo/val"} <= set(there)


@pytest.mark.real_data
def test_a_board_whose_benchmark_was_prepared_from_a_folder_is_open(
    data_home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CIR_DATA_HOME")
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    board = boards.board("circo/val")
    assert data.problem(board) is not None
    cir_datasets.prepare("circo/val", data_dir=data_home)
    assert data.problem(board) is None


def test_withheld_ground_truth_closes_a_board() -> None:
    board = boards.parse({**GOOD, "id": "cirr/test1", "benchmark": "cirr/test1"}, "x.yaml")
    assert registry.spec("cirr/test1").config.ground_truth == "withheld"
    problem = data.problem(board)
    assert problem is not None
    assert "stays with its publisher" in problem
