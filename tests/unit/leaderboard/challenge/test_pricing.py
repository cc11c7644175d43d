"""What a sealed board sells: the rule's offers, what is refused, and no door that tells what has no price."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args

import pytest
import sqlalchemy as sa
import yaml
from leaderboard_world import challenges as world
from leaderboard_world import opened_app
from leaderboard_world.entries import add_entry
from read_pages import submission_html

from cir_metrics.errors import CallError, CirError, UnknownNameError
from leaderboard import boards
from leaderboard.boards import Phase
from leaderboard.boards.pricing import BoardPrice, Unit, offered
from leaderboard.challenge.checking import faults
from leaderboard.challenge.making import Rules, make
from leaderboard.challenge.material import Material
from leaderboard.errors import UploadRefusedError
from leaderboard.export.html import write_mirror
from leaderboard.identity import Role, Tokens
from leaderboard.intake.quotas import Allowance, Quotas
from leaderboard.store import Store
from leaderboard.store.schema import submissions

NOW = datetime.now(UTC)
FIVE: dict[str, Unit] = {f"recall@{k}": "percent" for k in (1, 5, 10, 50)} | {"map@5": "percent"}
FINER = re.compile(rb"(?<![\d.])(?<!\d:)(?:37\.19|42\.71|0\.3719|0\.4271)")
"""The stored numbers of an entry, of which its board tells the first as 35; no counts of bytes, no times."""


def phase(name: str, opens: int, closes: int, **limits: Any) -> Phase:
    return Phase(name=name, opens=NOW + timedelta(days=opens), closes=NOW + timedelta(days=closes), **limits)


def made(places: world.Places, material: Material, *phases: Phase) -> boards.Board:
    make(material, Rules(world.NAME, "Autumn", str(places.ground_truth), phases))
    return boards.board(world.ID)


def rewritten(places: world.Places, name: str = world.NAME, **change: Any) -> boards.Board:
    file = places.home / "boards" / f"{world.NAME}.yaml"
    board = yaml.safe_load(file.read_text(encoding="utf-8")) | change
    file.with_stem(name).write_text(yaml.safe_dump(board), encoding="utf-8")
    return boards.board(world.ID)


@pytest.mark.parametrize(
    ("queries", "phases", "step", "columns", "answers", "small"),
    [
        (50, 1, 5.0, 1, 4, True),
        (50, 4, 5.0, 1, 4, True),
        (200, 1, 1.0, 1, 10, False),
        (1000, 1, 0.01, 1, 35, False),
        (1000, 2, 1.0, 1, 53, False),
        (5000, 1, 0.01, 5, 28, False),
        (40000, 1, 0.01, 5, 100, False),
    ],
)
def test_what_a_new_challenge_tells_follows_from_its_size(
    queries: int, phases: int, step: float, columns: int, answers: int, small: bool
) -> None:
    price = offered(queries, 500, ["recall@10"], FIVE, phases)
    assert (price.step, len(price.units), price.answers, price.small) == (step, columns, answers, small)


def test_a_test_that_affords_no_answer_in_each_phase_is_refused() -> None:
    with pytest.raises(CallError, match=r"4 answers, and phases: 5\. Fix: seal more queries"):
        offered(50, 500, ["recall@10"], FIVE, 5)


def test_bits_are_those_of_the_values_that_a_number_may_have() -> None:
    units: dict[str, Unit] = {"recall@1": "percent", "map@5": "percent", "mean_rank": "rank"}
    # log2(51) + log2(10001) + log2(50001): shares of 50 queries, steps of a mean, ranks in hundredths.
    assert BoardPrice(50, 500, units, 0.01).of_answer == pytest.approx(5.6724 + 13.2879 + 15.6096, abs=1e-3)
    assert BoardPrice(50, 512, units, 0.01).of_labels == 450


def test_a_new_challenge_has_the_quotas_that_it_affords(places: world.Places, material: Material) -> None:
    board = made(places, material, phase("dev", -1, 1), phase("test", 2, 3))
    assert (board.step, board.columns, list(board.labels)) == (5.0, (), ["map@5"])
    assert [(each.in_all, each.a_day, each.results) for each in board.phases] == [(1, 1, "at_end")] * 2
    assert list(faults(board)) == []


def test_quotas_that_sell_the_test_are_refused(places: world.Places, material: Material) -> None:
    with pytest.raises(CirError, match=r"in_all: 100 answers sell up to 100% .* Fix: write 3 for all phases"):
        made(places, material, phase("test", -1, 1, in_all=100))
    assert not places.ground_truth.exists()


COLUMNS = [{"metric": name, "label": name} for name in FIVE]
MANY = [phase("test", -1, 1, in_all=100).model_dump(mode="json")]
SHOWN = [phase("test", -1, 1).model_dump(mode="json")]


@pytest.mark.parametrize(
    ("change", "fixes"),
    [
        ({"columns": COLUMNS, "step": 0.01, "phases": MANY}, ["tell less", "write 1 for", "give the board"]),
        ({"columns": COLUMNS, "step": 0.01}, ["tell less", "write 1 for"]),
        ({"phases": MANY}, ["write 3 for", "give the board"]),
        ({"phases": SHOWN}, ["give the board"]),
        ({"phases": []}, ["give the board"]),
    ],
)
def test_a_file_that_sells_the_test_is_no_board(
    places: world.Places, material: Material, change: dict[str, Any], fixes: list[str]
) -> None:
    before = made(places, material, phase("test", -1, 1))
    assert rewritten(places, **change) == before, "it stays as it was"
    assert boards.wrong_files() == ("autumn.yaml",)
    boards.use(places.home)
    with pytest.raises(UnknownNameError, match=r"Wrong files in .*: autumn\.yaml"):
        boards.board(world.ID)


def test_lists_of_their_own_have_no_price_without_their_size(
    places: world.Places, material: Material
) -> None:
    rows = [{**row, "gallery_image_ids": [image for image, _ in material.images]} for row in material.rows]
    board = made(places, replace(material, rows=rows), phase("test", -1, 1))
    assert board.price is not None
    assert boards.wrong_files() == ()
    rewritten(places, choices=None)
    assert boards.wrong_files() == ("autumn.yaml",)


def test_another_board_over_the_same_labels_is_a_fault(places: world.Places, material: Material) -> None:
    board = made(places, material, phase("test", -1, 1))
    rewritten(places, "winter", id="winter/test")
    assert [each.partition(": ")[2][:19] for each in faults(board)] == ["winter/test asks fo"]


def test_a_submission_that_no_phase_holds_any_more_waits_for_the_next_end(
    places: world.Places, material: Material
) -> None:
    made(places, material, phase("test", -1, 2))
    moved = phase("test", 1, 2, in_all=1, results="at_end")
    board = rewritten(places, phases=[moved.model_dump(mode="json")])
    assert board.shown_from(NOW) == moved.closes
    assert board.shown_from(moved.closes + timedelta(days=1)) == moved.closes


def test_answers_of_all_phases_count(places: world.Places, material: Material) -> None:
    made(places, material, phase("dev", -2, -1), phase("test", 0, 1))
    phases = [phase("dev", -2, -1, results="at_end"), phase("test", 0, 1, results="at_end")]
    board = rewritten(places, phases=[each.model_dump(mode="json") for each in phases])
    store = Store(f"sqlite:///{places.home / 'board.sqlite'}")
    quotas = Quotas(store, Allowance(in_all=50))
    assert quotas.of("", board).left == 3
    for number in range(2):
        add_entry(store, number, board=world.ID)
    with store.database.write() as connection:
        connection.execute(sa.update(submissions).values(received_at=NOW - timedelta(days=1.5)))
    assert quotas.of("", board).left == 1
    add_entry(store, 2, board=world.ID)
    with store.database.write() as connection, pytest.raises(UploadRefusedError) as raised:
        quotas.admit(connection, "", board)
    store.close()
    assert raised.value.code == "quota"


def test_what_a_clock_ahead_has_scored_counts_on_its_own_day(
    places: world.Places, material: Material
) -> None:
    board = made(places, material, phase("test", -1, 1))
    store = Store(f"sqlite:///{places.home / 'board.sqlite'}")
    add_entry(store, 0, board=world.ID)
    quotas = Quotas(store, Allowance())
    left = [quotas.of("", board).left_today]
    with store.database.write() as connection:
        connection.execute(sa.update(submissions).values(scored_at=NOW + timedelta(days=30)))
    left.append(quotas.of("", board).left_today)
    store.close()
    assert left[1] == (left[0] or 0) + 1


def test_no_door_tells_more_than_is_priced(places: world.Places, material: Material, tmp_path: Path) -> None:
    # The phase has closed, so that results are shown.
    made(places, material, phase("test", -3, -2))
    with opened_app(tmp_path, accounts="tokens") as (client, server):
        sent = []
        for seed, state in enumerate(("published", "private")):
            one = add_entry(server.store, seed, board=world.ID, alike=("map@5",))
            metrics = {"map@5": 0.3719, "recall@1": 0.4271, "recall@10": 0.4271}
            report = {**(one.scores or {}), "metrics": metrics, "main_metric": "map@5", "main": 0.3719}
            sent.append(server.store.append(one, [("rescored", {"report": report}), (state, {})]))
        paths = [f"/b/{world.ID}?tab={tab}" for tab in ("", "about", "queries", "trend", "aspects")]
        paths += ["/", "/status", f"/published?benchmark={world.ID}", "/m", "/m/map@5"]
        paths += [f"/compare?board={world.ID}&a={sent[0].id}&b={sent[1].id}"]
        paths += [f"/{kind}/{one.id}" for kind in "es" for one in sent]
        routes = client.get("/api/openapi.json").json()["paths"]
        for route in (route for route, methods in routes.items() if "get" in methods):
            for one in sent:
                path = re.sub(r"\{submission_id\}", one.id, re.sub(r"\{board\w*(:path)?\}", world.ID, route))
                paths += [path, f"{path}?board={world.ID}"]
        tokens = {role: Tokens(server.store).create(role, role) for role in get_args(Role)}
        headers = {role: {"Authorization": f"Bearer {token}"} for role, token in tokens.items()}
        answers = {path: client.get(path, headers=headers["user"]) for path in paths}
        write_mirror(server, tmp_path / "mirror", 2, NOW, lambda pages: None)
        of_owner = submission_html(server, sent[1], "owner")
        whole = client.get(f"/api/v1/submissions/{sent[1].id}", headers=headers["organiser"]).content
    files = [path for path in (tmp_path / "mirror").rglob("*") if path.is_file()]
    assert b">35<" in answers[f"/b/{world.ID}?tab="].content
    assert ">35<" in of_owner
    told = [path for path in paths if path[1:3] in ("b/", "e/", "s/")]
    assert [path for path in told if b"35.00" in answers[path].content] == []
    assert sum(answer.status_code == 200 for answer in answers.values()) > 20
    assert [path for path, answer in answers.items() if FINER.search(answer.content)] == []
    assert [path for path in files if FINER.search(path.read_bytes())] == []
    assert not FINER.search(of_owner.encode())
    assert FINER.search(whole), "organisers read what is stored"
