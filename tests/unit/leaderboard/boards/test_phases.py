"""Phases of a board: when it takes files, how many, and when their results are shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from leaderboard_world import rank_file
from leaderboard_world.entries import add_entry
from read_pages import html_of, read, submission_html, words

from leaderboard import boards
from leaderboard.boards.data import problem
from leaderboard.commands.show import board_text
from leaderboard.errors import UploadRefusedError
from leaderboard.intake import Cover, Intake
from leaderboard.intake.life import act
from leaderboard.intake.quotas import Allowance, Quotas
from leaderboard.queue.worker import Worker
from leaderboard.server import Server
from leaderboard.settings import Settings
from leaderboard.standings.tables import Tables
from leaderboard.standings.views import held_back_words, submission_view
from leaderboard.store.schema import submissions
from leaderboard.store.submission import Submission

BOARD = "own/shapes"
NOW = datetime.now(UTC)


def write(home: Path, *phases: dict[str, Any]) -> None:
    """A board of shapes with these phases; times are days from now."""
    board = boards.board("shapes/val").model_dump(mode="json") | {"id": BOARD, "title": "Own", "order": 1}
    written = [
        phase | {name: (NOW + timedelta(days=phase[name])).isoformat() for name in ("opens", "closes")}
        for phase in phases
    ]
    (home / "boards").mkdir(exist_ok=True)
    # The length is part of what tells that the file has changed.
    text = json.dumps(board | {"phases": written})
    path = home / "boards" / "own.yaml"
    path.write_text(text + " " * (path.stat().st_size % 7 + 1 if path.exists() else 0), encoding="utf-8")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    write(tmp_path, {"name": "dev", "opens": -1, "closes": 1, "a_day": 2, "in_all": 3})
    opened = Server.open(Settings(tmp_path))
    yield opened
    opened.close()
    boards.use(None)


@pytest.fixture
def intake(server: Server) -> Intake:
    quotas = Quotas(server.store, Allowance(uploads_an_hour=100))
    return Intake(server.settings, server.store, server.files, problem, quotas)


def refused(intake: Intake, content: bytes = b"x", owner: str = "token:ada") -> UploadRefusedError:
    with pytest.raises(UploadRefusedError) as error:
        intake.take(BOARD, [content], Cover(owner=owner))
    return error.value


def test_outside_a_phase_a_file_is_refused_and_the_next_one_named(server: Server, intake: Intake) -> None:
    intake.take(BOARD, [b"0"], Cover(owner="token:ada"))
    write(server.settings.home, {"name": "test", "opens": 3, "closes": 5})
    error = refused(intake)
    assert (error.code, error.status) == ("phase-closed", 409)
    assert f"test, opens on {NOW + timedelta(days=3):%Y-%m-%d}" in error.message
    write(server.settings.home, {"name": "test", "opens": -5, "closes": -3})
    assert "its last phase, test, closed" in refused(intake).message
    page = read(server, f"b/{BOARD}")
    said = words(page.select_one(".notice"))
    assert "This board takes no submissions now: its last phase, test, closed" in said
    assert page.select("#enter, .title .button") == []


def test_a_phase_has_quotas_of_its_own_and_counts_what_came_in_it(server: Server, intake: Intake) -> None:
    for number in range(2):
        intake.take(BOARD, [str(number).encode()], Cover(owner="token:ada"))
    error = refused(intake)
    assert "the 2 submissions a day" in error.message
    assert "2 files wait to be judged: a place is free again if one of them is refused; else" in error.fix
    intake.take(BOARD, [b"0"], Cover(owner="token:bob"))
    # A phase that has opened since counts from its own beginning.
    write(server.settings.home, {"name": "test", "opens": 0, "closes": 1, "in_all": 1})
    with server.store.database.write() as connection:
        connection.execute(sa.update(submissions).values(received_at=NOW - timedelta(hours=1)))
    assert intake.take(BOARD, [b"2"], Cover(owner="token:ada"))[1]
    assert "all 1 submissions" in refused(intake, b"3").message


def test_a_file_of_an_earlier_phase_is_sent_again_in_the_next(server: Server, intake: Intake) -> None:
    content = json.dumps(rank_file(1)).encode()
    worker = Worker(server.files, server.store)

    def sent() -> tuple[Submission, bool]:
        one, new = intake.take(BOARD, [content], Cover(owner="token:ada", publish=False))
        return act(server.store, worker.process(one), "publish", "owner") if new else one, new

    first, new = sent()
    assert (first.state, new) == ("published", True)
    assert sent() == (first, False)
    # The dev phase has closed an hour ago, and the test phase is open.
    with server.store.database.write() as connection:
        connection.execute(sa.update(submissions).values(received_at=NOW - timedelta(hours=1)))
    write(server.settings.home, {"name": "test", "opens": 0, "closes": 1, "in_all": 3})
    second, new = sent()
    assert (second.state, new, second.attempt) == ("published", True, 2)
    assert sent() == (second, False)
    found = server.tables.of(boards.board(BOARD)).view["rows"]
    assert {row["submission"] for row in found} == {first.id, second.id}
    phases = [{"name": "dev", "opens": -1, "closes": 0}, {"name": "test", "opens": 0, "closes": 1}]
    write(server.settings.home, *phases)
    moments = [each["title"] for each in read(server, f"b/{BOARD}").select(".standings time")]
    assert sorted(moment.partition(", phase ")[2] for moment in moments) == ["dev", "test"]


def test_a_file_that_waits_is_published_where_that_is_asked_when_it_comes_again(
    server: Server, intake: Intake
) -> None:
    content = json.dumps(rank_file(1)).encode()
    first, _ = intake.take(BOARD, [content], Cover(owner="token:ada", publish=False))
    assert intake.take(BOARD, [content], Cover(owner="token:ada", publish=True)) == (first, False)
    assert Worker(server.files, server.store).process(first).state == "published"


def test_where_a_phase_has_quotas_a_token_is_needed(server: Server, intake: Intake) -> None:
    error = refused(intake, owner="link:0123")
    assert (error.code, error.status) == ("needs-token", 401)
    assert intake.take("shapes/val", [b"x"], Cover(owner="link:0123"))[1]


def test_results_are_shown_when_the_phase_has_closed(server: Server) -> None:
    write(server.settings.home, {"name": "test", "opens": -1, "closes": 1, "results": "at_end"})
    board = boards.board(BOARD)
    entry = add_entry(server.store, 1, board=BOARD)
    tables = Tables(server.store)
    assert tables.of(board).view["rows"] == []
    assert server.entries(board) == []
    shown = tables.of(board).view
    promise = f"1 entry, shown from {NOW + timedelta(days=1):%Y-%m-%d at %H:%M} UTC."
    assert (shown["entries"], held_back_words(shown)) == (1, promise)
    assert promise in board_text(board, shown)
    assert promise in html_of(server, f"b/{BOARD}")
    view = submission_view(entry)
    assert (view["scores"], view["scores_from"]) == (None, (NOW + timedelta(days=1)).isoformat())
    assert "results are shown when its phase has closed" in view["message"]
    page = submission_html(server, entry)
    assert "50.00" not in page
    assert "Accepted: Method 1" in page
    assert "to-board" not in page, "it has no row yet"
    assert submission_view(entry, organiser=True)["scores"] == entry.scores
    private = server.store.append(entry, [("private", {})])
    assert "figures" not in submission_html(server, private, "owner")
    published = server.store.append(private, [("published", {})])
    # The same board a day later: the phase has closed, nothing else has happened.
    write(server.settings.home, {"name": "test", "opens": -1, "closes": 0, "results": "at_end"})
    board = boards.board(BOARD)
    assert [row["submission"] for row in tables.of(board).view["rows"]] == [entry.id]
    assert submission_view(published)["scores"] == entry.scores
    tables.close()


def test_what_a_board_held_back_is_held_back_when_its_file_is_gone_or_wrong(server: Server) -> None:
    write(server.settings.home, {"name": "test", "opens": -1, "closes": 1, "results": "at_end"})
    entry = add_entry(server.store, 1, board=BOARD)
    file = server.settings.home / "boards/own.yaml"
    for broken in (lambda: file.write_text("id: own/shapes\ntrack: opne\n"), file.unlink):
        broken()
        boards.use(server.settings.home)
        assert BOARD not in boards.ids()
        view = submission_view(entry)
        assert (view["scores"], view["file"]) == (None, None)
        assert submission_view(entry, organiser=True)["scores"] == entry.scores
        assert "50.00" not in submission_html(server, entry)


def test_the_page_and_the_api_say_the_phases(server: Server) -> None:
    phases = [
        {"name": "dev", "opens": -1, "closes": 1, "a_day": 2, "in_all": 3},
        {"name": "test", "opens": 2, "closes": 4, "results": "at_end"},
    ]
    write(server.settings.home, *phases)
    said = words(read(server, f"b/{BOARD}", tab="about").select_one("main"))
    assert "Phases dev: " in said
    assert "UTC, 2 a day, 3 in all" in said
    assert "UTC, results at its end" in said
    view = server.tables.of(boards.board(BOARD)).view
    assert [phase["name"] for phase in view["phases"]] == ["dev", "test"]
    assert view["closed"] is None
