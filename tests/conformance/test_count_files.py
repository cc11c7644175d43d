"""How many files the ways through the suite run through: printed, and bounded loosely."""

from __future__ import annotations

from pathlib import Path

import pytest
from count_files import JUDGE, SCORE, UPLOAD, lines_of, touched

import submissions

SCORED, JUDGED, THROUGH_THE_WEB = 35, 33, 60
"""Files; through the web with the pages' routes, and what is kept of an entry for the pages. The figures are
printed (`pytest -s`, or the script); this only stops a way that grows a lot."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run") / "run.json"
    submissions.write(submissions.make_rank_file("shapes/val", "random", k=50), path)
    return path


@pytest.mark.parametrize(
    ("way", "last", "most"),
    [
        (SCORE, "submissions.scoring", SCORED),
        pytest.param(UPLOAD, "leaderboard.queue.worker", THROUGH_THE_WEB, marks=pytest.mark.slow),
        (JUDGE, "submissions.scoring", JUDGED),
    ],
    ids=["score", "upload", "judge"],
)
def test_a_way_through_the_suite_stays_short(
    way: str, last: str, most: int, run: Path, tmp_path: Path
) -> None:
    found = touched(way, run, tmp_path)
    print("\n".join(lines_of(found)))
    assert last in found.files
    assert len(found.files) <= most


def test_cir_score_loads_no_other_command(run: Path, tmp_path: Path) -> None:
    commands = {name for name in touched(SCORE, run, tmp_path).files if ".commands." in name}
    assert commands == {"submissions.commands.score"}
