"""Bundles on the board of a suite: by `cir submit`, by the API, and by the pages in headless Chromium."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import leaderboard_world as world
import plain_http
import pytest
from benchmark_world import suite

import submissions

BOARD = "fashioniq/val"


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Where the data is, for server and client: a FashionIQ that is not the card's."""
    folder = tmp_path_factory.mktemp("suites")
    return {
        "CIR_DATA_HOME": str(suite.write_home(folder / "data")),
        "CIR_CACHE_HOME": str(folder / "cache"),
        "CIR_VERIFICATION_MODE": "no_checks",
    }


@pytest.fixture(scope="module")
def server(given: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with world.serving_here(tmp_path_factory.mktemp("home"), **given) as running:
        yield running


def written(path: Path, document: dict[str, Any]) -> Path:
    path.write_text(json.dumps(document))
    return path


def named(server: Any, name: str) -> list[dict[str, Any]]:
    return [row for row in server.rows(BOARD) if row["method"]["name"] == name]


def test_cir_submit_takes_a_bundle_to_the_suites_board(
    server: Any, given: dict[str, str], tmp_path: Path
) -> None:
    file = written(tmp_path / "bundle.json", suite.bundle("By hand", (0.5, 0.25, 0.1)))
    done = world.cir("submit", str(file), "--to", server.url, "--publish", **given, code=0)
    # Dress 5 of 10, shirt 5 of 20, toptee 3 of 30: macro 28.33 %, micro 13 of 60.
    assert (
        "fashioniq/shirt_val: recall@1 25.00, recall@5 25.00, recall@10 25.00, recall@50 25.00" in done.stdout
    )
    assert "main: mean(recall@10, recall@50) = 28.33" in done.stdout
    (row,) = named(server, "By hand")
    assert row["main"] == pytest.approx(0.85 / 3, abs=1e-12)
    assert row["metrics"]["recall@10@micro"] == pytest.approx(13 / 60, abs=1e-12)
    assert row["metrics"]["recall@10@fashioniq/toptee_val"] == pytest.approx(0.1, abs=1e-12)
    assert row["signature"].startswith("fashioniq/val#1 | mean:macro | members:3:")
    table = server.get(f"/api/v1/boards/{BOARD}").json()
    assert table["members"] == [f"fashioniq/{category}_val" for category in suite.QUERIES]
    assert table["protocol"]["gallery_images"] == 240
    again = world.cir("submit", str(file), "--to", server.url, **given)
    assert "It is on that board already" in again.stderr
    scored = json.loads(world.cir("score", str(file), "--json", **given).stdout)
    assert scored["main"] == pytest.approx(row["main"], abs=1e-12)
    assert row["signature"] == scored["signatures"]["recall@10"]["text"]


@pytest.mark.parametrize("how", suite.REFUSALS)
def test_a_broken_bundle_explains_itself_and_its_correction_is_taken(
    server: Any, given: dict[str, str], tmp_path: Path, how: str
) -> None:
    code, words = suite.REFUSALS[how]
    document = suite.broken(how)
    file = written(tmp_path / f"{how}.json", document)
    done = world.cir("submit", str(file), "--to", server.url, **given)
    assert (done.returncode, done.stdout) == (1, "")
    assert words in " ".join(done.stderr.split())
    assert "is not sent" in done.stderr
    found = server.submitted(json.dumps(document).encode(), board=None)
    assert (found["state"], found["board"]) == ("rejected", BOARD)
    (finding,) = [each for each in found["findings"] if each["severity"] == "error"]
    assert finding["code"] == code
    assert words in finding["message"]
    assert named(server, "Broken") == []
    assert found["file_removed_at"] is None
    (kept,) = (path for path in server.home.rglob("*") if found["sha256"] in path.name)
    assert json.loads(kept.read_bytes()) == document
    whole = suite.bundle(f"Corrected {how}", (0.5, 0.5, 0.5), seed=2 + list(suite.REFUSALS).index(how))
    assert server.submitted(json.dumps(whole).encode(), board=None)["state"] == "published"


def test_a_rank_file_on_the_suites_board_is_offered_its_own(server: Any) -> None:
    alone = suite.run("dress", "Alone", hits=0.5)
    found = server.submitted(json.dumps(alone).encode(), board=BOARD)
    assert found["state"] == "rejected"
    (finding,) = found["findings"]
    assert 'this file answers "fashioniq/dress_val" alone' in finding["message"]
    assert "--board fashioniq/dress_val" in finding["fix"]
    assert server.submitted(json.dumps(alone).encode(), board=None)["board"] == "fashioniq/dress_val"


def test_the_files_of_one_method_for_all_members_are_joined_to_the_suites_bundle(server: Any) -> None:
    shares = {"dress": 0.5, "shirt": 0.25, "toptee": 0.1}
    # Another seed than elsewhere: a file that ranks the same stands on no board twice.
    made = [suite.run(each, "In parts", hits=share, seed=9) for each, share in shares.items()]
    runs = [json.dumps(run) for run in made]
    alone = [
        server.submitted(run.encode(), board=None) for run in (*runs[:2], runs[1].replace("parts", "other"))
    ]
    page = server.url + alone[0]["outcome_page"]
    join = f"{server.url}/api/v1/submissions/{alone[0]['id']}/bundle"
    assert 'data-act="bundle"' not in plain_http.get(page, timeout=60).text
    assert plain_http.post(join, timeout=60).json()["error"]["code"] == "wrong-state"
    server.submitted(gzip.compress(runs[2].encode()), board=None)
    assert 'data-act="bundle"' in plain_http.get(page, timeout=60).text
    done = server.finished(plain_http.post(join, timeout=60).json()["id"])
    assert (done["board"], done["state"]) == (BOARD, "private")
    assert done["scores"]["main"] == pytest.approx(0.85 / 3, abs=1e-12)
    assert 'data-act="bundle"' not in plain_http.get(page, timeout=60).text, "it is there"
    # A better file of one category makes a new bundle, unless it is one that cannot be joined.
    better = json.dumps(suite.run("dress", "In parts", hits=0.9, seed=9)).encode()
    [run] = submissions.convert([better], "parquet")
    server.submitted(run.content, board=None)
    assert 'data-act="bundle"' not in plain_http.get(page, timeout=60).text
    # Other rankings: those of a file that has a row are its owner's second attempt at it.
    best = json.dumps(suite.run("dress", "In parts", hits=0.95, seed=9)).encode()
    server.submitted(best, board=None)
    assert 'data-act="bundle"' in plain_http.get(page, timeout=60).text


def test_what_the_rank_files_own_up_to_counts_for_the_whole(server: Any) -> None:
    whole = suite.bundle("Trained on one", (0.3, 0.35, 0.4), zero_shot=True)
    whole["runs"][1]["method"] |= {"zero_shot": False, "trained_on": ["FashionIQ train"]}
    found = server.submitted(json.dumps(whole).encode(), board=None)
    assert found["state"] == "published"
    (row,) = named(server, "Trained on one")
    assert (row["method"]["zero_shot"], row["method"]["trained_on"]) == (False, ["FashionIQ train"])


def choose(page: Any, server: Any, file: Path) -> None:
    page.goto(f"{server.url}/submit")
    page.set_input_files("#field-file", str(file))


@pytest.mark.browser
def test_the_page_finds_the_suites_board_and_shows_the_members(
    page: Any, server: Any, tmp_path: Path
) -> None:
    file = written(tmp_path / "bundle.json", suite.bundle("From the browser", (0.6, 0.35, 0.2)))
    choose(page, server, file)
    page.wait_for_selector("#named :text('FashionIQ, validation, average of the categories')")
    page.click("#send")
    page.wait_for_selector("#outcome.good")
    assert "FashionIQ, validation, average of the categories" in page.inner_text(".crumbs")
    rows = [line.split() for line in page.inner_text("table.numbers").splitlines()]
    assert ["fashioniq/shirt_val", "35.00", "35.00", "35.00", "35.00"] in rows
    page.click("#act-publish")
    page.click(".to-board")
    shown = page.wait_for_selector("tr.marked").inner_text()
    assert "From the browser" in shown
    assert "38.33" in shown


@pytest.mark.browser
@pytest.mark.parametrize("how", ["missing", "doubled"])
def test_the_page_says_what_is_wrong_with_a_bundle(page: Any, server: Any, tmp_path: Path, how: str) -> None:
    choose(page, server, written(tmp_path / f"{how}.json", suite.broken(how)))
    page.click("#send")
    page.wait_for_selector("#outcome.bad h2")
    assert suite.REFUSALS[how][1] in page.inner_text(".findings")
    assert named(server, "Broken") == []
