"""What stands on a board is scored again: old beside new, switched all at once, the old result kept."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from leaderboard_world import as_bytes, cir, rank_file
from says import says

from leaderboard import boards
from leaderboard.errors import ConflictError
from leaderboard.intake import Cover
from leaderboard.server import Server
from leaderboard.server.rescoring import rescore, switch
from leaderboard.store.submission import Submission

BOARD = boards.board("shapes/val")


def entry(server: Server, seed: int, **method: Any) -> Submission:
    content = as_bytes(rank_file(seed, f"Method {seed}", hits=0.1 * seed, **method))
    submission, _ = server.intake.take(BOARD.id, [content], Cover())
    return server.worker.process(submission)


def aged(server: Server, submission: Submission) -> Submission:
    """The submission with a result as an earlier version of a metric gave it."""
    report = copy.deepcopy(submission.scores or {})
    report["metrics"]["recall@10"] = 0.999
    report["signatures"]["recall@10"]["key"] = "an earlier metric"
    return server.store.append(submission, [("rescored", {"report": report})])


def now(server: Server, submission: Submission) -> Submission:
    found = server.store.submission(submission.id)
    assert found is not None
    return found


def test_what_has_not_changed_stays_as_it_is(server: Server) -> None:
    first = entry(server, 1)
    results = list(rescore(server, BOARD))
    assert [result.changed(BOARD) for result in results] == [False]
    assert switch(server, BOARD, results) == 0
    assert now(server, first) == first


def test_new_results_count_after_the_switch_and_the_old_ones_stay(server: Server) -> None:
    first, second = entry(server, 1), entry(server, 2)
    old = aged(server, first)
    results = list(rescore(server, BOARD))
    assert [result.changed(BOARD) for result in results] == [True, False]
    assert results[0].old(BOARD) == 0.999
    assert now(server, first) == old
    assert switch(server, BOARD, results) == 1
    done = now(server, first)
    assert done.scores == first.scores
    assert [event.kind for event in done.events][-2:] == ["rescored", "rescored"]
    assert done.events[-2].payload["report"]["metrics"]["recall@10"] == 0.999
    assert (done.state, done.events[-1].by) == ("published", "organiser")
    assert now(server, second) == second
    assert server.store.kept_values(first.id) is not None


def test_an_entry_of_an_earlier_version_gets_its_values_a_query(server: Server) -> None:
    first = entry(server, 1)
    with server.store.database.write() as connection:
        connection.execute(sa.text("UPDATE submissions SET canonical = NULL"))
        connection.execute(sa.text("DELETE FROM result_values"))
    results = list(rescore(server, BOARD))
    assert switch(server, BOARD, results) == 1
    done = now(server, first)
    assert (done.canonical, done.scores) == (first.canonical, first.scores)
    assert server.store.kept_values(first.id) is not None


def test_nothing_switches_where_one_submission_has_moved_on(server: Server) -> None:
    first, second = entry(server, 1), entry(server, 2)
    before = [aged(server, first), aged(server, second)]
    results = list(rescore(server, BOARD))
    server.store.append(before[1], [("flagged", {"reason": "meanwhile"})], by="organiser")
    with pytest.raises(ConflictError, match=r"happened to it since.*Fix: run the command once more"):
        switch(server, BOARD, results)
    assert now(server, first) == before[0]


def test_a_file_that_was_changed_on_disk_moves_no_score(server: Server, tmp_path: Path) -> None:
    first, home = entry(server, 1), ("--home", str(tmp_path / "home"))
    server.files.local_copy(first.sha256).write_bytes(as_bytes(rank_file(1, "Method 1", hits=0.9)))
    (row,) = json.loads(cir("leaderboard", "rescore", BOARD.id, "--switch", "--json", *home).stdout)
    assert (row["new"], row["note"]) == (None, "refused now: lost-file")
    assert now(server, first) == first
    verified = cir("leaderboard", "verify", *home)
    assert verified.returncode == 1
    says(verified.stdout, f"{first.sha256}.json", "is damaged", "Fix: ", first.id, BOARD.id)
    entry(server, 1)  # sent again it is whole again
    assert cir("leaderboard", "verify", *home).returncode == 0


def test_the_command_shows_both_and_switches(server: Server, tmp_path: Path) -> None:
    first = entry(server, 1)
    aged(server, first)
    home = ("--home", str(tmp_path / "home"))
    shown = cir("leaderboard", "rescore", BOARD.id, *home)
    assert shown.returncode == 0, shown.stderr
    assert "99.90" in shown.stdout
    assert "1 of 1 would change. Let them count with --switch." in shown.stderr
    switched = json.loads(cir("leaderboard", "rescore", BOARD.id, "--switch", "--json", *home).stdout)
    assert switched[0]["old"] == 0.999
    assert now(server, first).scores == first.scores
    assert "0 of 1 would change." in cir("leaderboard", "rescore", BOARD.id, *home).stderr
