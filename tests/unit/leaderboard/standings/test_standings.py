"""The order of a board: ties share a rank, the earlier stands first, other data is not ranked."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from leaderboard_world.entries import START, a_submission

import submissions
from cir_metrics.catalogue import FORMAT, Signature
from leaderboard import boards
from leaderboard.boards import data
from leaderboard.standings import standings
from leaderboard.store.submission import Event, Submission


def entry(
    name: str, value: float, minute: int, *, key: str = "same", metric: str = "recall@10"
) -> Submission:
    at = START + timedelta(minutes=minute)
    signature = {"format": FORMAT, "key": key, "text": f"{key} | n:1"}
    report = {"metrics": {metric: value}, "signatures": {metric: signature}}
    events = (Event(1, "scored", at, {"report": report}), Event(2, "published", at, {}))
    return a_submission(name, number=minute, at=at, events=events)


def shown(*submissions: Submission) -> list[tuple[int | None, str]]:
    return [(line.rank, line.name) for line in standings(boards.board("shapes/val"), submissions)]


def test_best_first_and_ties_share_a_rank_with_the_earlier_first() -> None:
    late, early = entry("late", 0.5, 3), entry("early", 0.5, 1)
    best, worst = entry("best", 0.9, 4), entry("worst", 0.1, 0)
    assert shown(late, best, worst, early) == [(1, "best"), (2, "early"), (2, "late"), (4, "worst")]


def test_a_baseline_stands_behind_the_methods_without_a_rank() -> None:
    best = replace(entry("best", 0.9, 0), baseline=True)
    assert shown(best, entry("b", 0.2, 1), entry("a", 0.5, 2)) == [(1, "a"), (2, "b"), (None, "best")]


def test_the_last_bit_of_a_float_makes_no_rank() -> None:
    a, b = entry("a", 0.1 + 0.2, 1), entry("b", 0.3, 0)
    assert a.scores != b.scores
    assert shown(a, b) == [(1, "b"), (1, "a")]


def test_scores_on_other_data_are_listed_without_a_rank() -> None:
    old, new = entry("old", 0.9, 0, key="v1"), entry("new", 0.2, 1, key="v2")
    assert shown(old, new) == [(1, "new"), (None, "old")]


def ranked_against(current: str | None, *submissions: Submission) -> list[tuple[int | None, str]]:
    keys = None if current is None else (current,)
    return [(line.rank, line.name) for line in standings(boards.board("shapes/val"), submissions, keys)]


def test_what_the_servers_own_data_gives_is_ranked_however_late_another_comes() -> None:
    first, second = entry("first", 0.5, 0, key="here"), entry("second", 0.9, 1, key="here")
    stranger = entry("stranger", 0.7, 2, key="elsewhere")
    wanted = [(1, "second"), (2, "first"), (None, "stranger")]
    assert ranked_against("here", first, second, stranger) == wanted


def test_where_nothing_was_scored_on_the_servers_data_the_latest_is_ranked() -> None:
    old, new = entry("old", 0.9, 0, key="v1"), entry("new", 0.2, 1, key="v2")
    for current in ("v3", None):
        assert ranked_against(current, old, new) == [(1, "new"), (None, "old")]


def test_who_skipped_images_takes_nobodys_rank() -> None:
    first, late = entry("first", 0.5, 0, key="whole"), entry("late", 0.9, 1, key="skipped")
    late.events[0].payload["report"]["signatures"]["recall@10"]["checks_skipped"] = ["images"]
    assert ranked_against(None, first, late) == [(1, "first"), (None, "late")]
    assert ranked_against(None, late) == [(1, "late")]


def test_the_current_keys_are_those_that_a_submission_gets() -> None:
    for board_id in ("shapes/val", "shapes/multiturn_val"):
        board = boards.board(board_id)
        report = submissions.score(submissions.make_rank_file(board.benchmark, "random"))
        wanted = tuple(report.signature_key(term) for term in board.primary_terms)
        assert data.current_keys(board) == wanted


def test_without_prepared_data_there_are_no_current_keys(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path))
    assert data.current_keys(boards.board("shapes/val")) is None


def test_where_lower_is_better_the_lowest_is_first() -> None:
    board = boards.board("shapes/multiturn_val").model_copy(
        update={"primary": "mean_rank", "primary_direction": "lower", "primary_unit": "rank"}
    )
    lines = standings(
        board, [entry("far", 30.0, 0, metric="mean_rank"), entry("near", 2.5, 1, metric="mean_rank")]
    )
    assert [(line.rank, line.name) for line in lines] == [(1, "near"), (2, "far")]


def test_an_empty_board_is_an_empty_table() -> None:
    assert shown() == []


def test_values_stay_unrounded_fractions() -> None:
    line = standings(boards.board("shapes/val"), [entry("a", 1 / 3, 0)])[0]
    assert line.metrics["recall@10"] == 1 / 3
    assert line.to_dict()["main"] == 1 / 3


def test_a_score_stored_in_format_1_is_shown_and_not_ranked_with_new_ones() -> None:
    board = boards.board("shapes/val")
    report = submissions.score(submissions.make_rank_file(board.benchmark, "random"))
    stored = report.to_dict()["signatures"]["recall@10"]
    written = {name: value for name, value in stored.items() if name not in ("format", "key", "text")}
    before = Signature.from_dict(written)
    old, new = entry("old", 0.9, 0), entry("new", 0.2, 1)
    for one, signature in ((old, before), (new, report.signatures["recall@10"])):
        own = {**signature.to_dict(), "text": str(signature)}
        one.events[0].payload["report"]["signatures"] = dict.fromkeys(board.primary_terms, own)
    lines = standings(board, [old, new], data.current_keys(board))
    assert [(line.rank, line.name, line.block) for line in lines] == [
        (1, "new", "current"),
        (1, "old", "older_format"),
    ]
    assert lines[1].signature == str(before)
    assert "sig:" not in lines[1].signature
    assert "sig:3" in lines[0].signature
    assert before.data_hash == report.signatures["recall@10"].data_hash  # type: ignore[union-attr]
