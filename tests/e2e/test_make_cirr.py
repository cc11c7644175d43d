"""`cir make cirr` with a person at the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cir_datasets.construction.cirr.answers import AnswerLimits, checked_answers, read_answers
from cir_datasets.construction.cirr.pairs import pairs_of
from cir_datasets.construction.cirr.tasks import tasks_of, write_tasks
from cir_datasets.shapes import picture


@pytest.mark.browser
def test_what_a_person_writes_on_a_page_is_what_is_imported(page: Any, tmp_path: Path) -> None:
    members = [f"val-{number:06d}" for number in range(6)]
    pairs = pairs_of({"subset": 0, "split": "test", "members": members})
    tasks = tasks_of(pairs, annotators=1, shared=0, seed=0)
    written = write_tasks(tmp_path, tasks, run="r", title="<b>Mine</b>", open_picture=picture)
    page.goto(written[0].as_uri())
    assert page.inner_text("h1") == "<b>Mine</b>"
    page.fill("#annotator", "Ann")
    page.fill("#caption", 'a "red" star, too')
    page.keyboard.press("Enter")
    assert page.inner_text("#place") == "Pair 2 of 9"
    page.keyboard.press("Alt+3")
    page.keyboard.press("Alt+ArrowRight")
    page.fill("#caption", "=two blue circles")
    page.reload()
    assert page.inner_text("#done") == "3 of 9 pairs answered"
    shown = page.evaluate("[...document.images].map((image) => image.naturalWidth > 0)")
    assert shown == [True] * 6
    for ending in ("json", "csv"):
        with page.expect_download() as saved:
            page.click(f"#save-{ending}")
        file = tmp_path / f"answers.{ending}"
        saved.value.save_as(file)
        rows = checked_answers(read_answers(file), tasks, AnswerLimits(), run="r")
        assert [(row["task"], row["caption"], row["mark"]) for row in rows] == [
            ("t1-0-0", 'a "red" star, too', ""),
            ("t1-0-1", "", "unrelated"),
            ("t1-0-2", "=two blue circles", ""),
        ]
        assert not any("failed" in row for row in rows)
        assert {row["annotator"] for row in rows} == {"Ann"}
