"""What tables say beside the numbers: the gallery that was checked, kinds of entries, parts of signatures."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from leaderboard_world.entries import START, a_submission

from leaderboard import boards
from leaderboard.commands.show import board_text
from leaderboard.pages.board.head import facts
from leaderboard.pages.labels import metric_value
from leaderboard.standings import Entry, block_words, checked_gallery, standings
from leaderboard.standings.views import table_view
from leaderboard.store.submission import Event, Submission

CIRCO = boards.board("circo/val")
PARTS = {"data": "4f1c2ab", "gallery": "unknown", "metric": "1", "n": "220", "v": "0.1.0"}


def submission(
    name: str, minute: int, *, baseline: bool = False, size: int | None = None, **parts: str
) -> Submission:
    at = START + timedelta(minutes=minute)
    said = {**PARTS, "gallery": "unknown" if size is None else f"{size}:9be02d1", **parts}
    text = " | ".join(["circo/val#1", *(f"{key}:{value}" for key, value in said.items())])
    key = text.partition(" | n:")[0]
    signature = {"format": 3, "key": key, "text": text, "gallery_size": size}
    report = {"metrics": {"map@5": minute / 100}, "signatures": {"map@5": signature}}
    events = (Event(1, "scored", at, {"report": report}), Event(2, "published", at, {}))
    return a_submission(name, board=CIRCO.id, number=minute, at=at, baseline=baseline, events=events)


def entries(*found: Submission) -> list[Entry]:
    return standings(CIRCO, found)


def rows(*found: Submission) -> list[dict[str, Any]]:
    return table_view(CIRCO, entries(*found), 2**20)["rows"]


def text_of(board: boards.Board, found: list[Entry]) -> str:
    return board_text(board, table_view(board, found, 2**20))


def gallery_said(found: list[Entry]) -> str:
    view = table_view(CIRCO, found, 2**20)
    (gallery,) = (fact for fact in facts(CIRCO, view) if fact.term == "Gallery")
    return gallery.said


def test_a_gallery_that_was_not_checked_is_not_stated() -> None:
    unchecked = entries(submission("a", 1))
    assert checked_gallery(CIRCO, unchecked) is None
    assert "gallery not checked, " in text_of(CIRCO, unchecked)
    assert gallery_said(unchecked) == "not checked (123,403 by the card)"
    assert table_view(CIRCO, unchecked, 2**20)["protocol"]["gallery_checked"] is False


def test_a_gallery_that_was_checked_is_stated_as_the_signatures_have_it() -> None:
    checked = entries(submission("a", 1, size=3000))
    assert "gallery 3,000, " in text_of(CIRCO, checked)
    assert gallery_said(checked) == "3,000 images"
    assert table_view(CIRCO, checked, 2**20)["protocol"]["gallery_checked"] is True


def test_an_empty_board_states_the_gallery_only_where_its_list_is_at_hand(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CIR_DATA_HOME", raising=False)
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path))
    assert "gallery not checked" in text_of(CIRCO, [])
    assert "gallery 2,297" in text_of(boards.board("cirr/val"), [])


def test_signatures_show_the_parts_that_differ() -> None:
    def differing(other: Submission) -> str:
        first, second = rows(submission("a", 1), other)
        assert (first["submission"], first["block"], first["why"]) == ("b", "current", "")
        return str(second["why"])

    assert ": gallery, metric differs." in differing(submission("b", 2, size=3000, metric="1:released_code"))
    assert ": data differs." in differing(submission("b", 2, data="other"))
    assert differing(submission("b", 2)) == ""


def test_no_name_imitates_the_mark_of_a_baseline() -> None:
    text = text_of(
        CIRCO, entries(submission("Floor", 1, baseline=True), submission("Mine (baseline)   baseline", 2))
    )
    head, _, mine, floor = text.splitlines()[1:]
    assert head.split()[:3] == ["#", "Kind", "Method"]
    assert floor.split()[:3] == ["-", "baseline", "Floor"]
    assert mine.split()[:2] == ["1", "Mine"]
    assert mine.index("Mine") == floor.index("Floor") == head.index("Method")


@pytest.mark.parametrize(
    ("primary", "step", "shown"),
    [("mean(map@5, map@10)", 5.0, "57.5"), ("map@5", 5.0, "57"), ("mean(map@5, map@10)", 0.01, "57.50")],
)
def test_a_mean_is_told_in_finer_steps_than_its_terms(primary: str, step: float, shown: str) -> None:
    board = CIRCO.model_copy(update={"primary": primary, "step": step})
    assert metric_value(board, primary, 0.575) == shown
    (entry,) = entries(submission("a", 1))
    assert f" {shown} " in text_of(board, [replace(entry, value=0.575)])


def test_a_table_explains_entries_without_a_rank() -> None:
    text = text_of(CIRCO, entries(submission("a", 1, data="other"), submission("b", 2)))
    assert text.splitlines()[-2] == block_words(CIRCO, "signature")
    assert block_words(CIRCO, "signature") not in text_of(CIRCO, entries(submission("b", 2)))
