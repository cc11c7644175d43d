"""The page of a review in a real browser: what is decided there comes back as a table that is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from reloading import filled_and_reloaded

from cir_datasets.construction.zerosight.review import read_review, reviewed_rows, write_review

BAD = '<img src=x onerror=alert(1)> "quoted", with commas'


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_what_is_decided_on_the_page_is_read_back(page: Any, tmp_path: Path, width: int) -> None:
    queries = [
        {
            "query": f"v/{number}",
            "reference": "v/r.png",
            "caption": BAD,
            "category": "attribute",
            "positives": ["v/a.png", "v/b.png"],
            "negatives": ["v/c.png"],
        }
        for number in range(3)
    ]
    (tmp_path / "benchmark/images/v").mkdir(parents=True)
    for name in "rabc":
        Image.new("RGB", (96, 96), (200, 30, 30)).save(tmp_path / f"benchmark/images/v/{name}.png")
    write_review(tmp_path, queries)
    made = tmp_path / "review.html"
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(made.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.get_by_label("Caption", exact=True).first.input_value() == BAD
    seen = page.locator("img").first
    assert seen.evaluate("image => image.decode().then(() => image.naturalWidth)") == 96
    first, second = page.locator("article").nth(0), page.locator("article").nth(1)

    def fill() -> None:
        first.get_by_label("keep", exact=True).check()
        first.get_by_label("Caption", exact=True).fill("with a blue star")
        first.get_by_label("what v/b.png is").select_option("negative")
        second.get_by_label("drop", exact=True).check()
        second.get_by_label("Note").fill("all alike")

    filled_and_reloaded(page, fill, "#done", "2 of 3 queries answered")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save answers (CSV)").click()
    saved.value.save_as(tmp_path / "done.csv")
    rows = list(reviewed_rows(queries, read_review(tmp_path / "done.csv", queries)))
    assert rows[0]["caption"] == "with a blue star"
    assert (rows[0]["positives"], rows[0]["negatives"]) == (["v/a.png"], ["v/b.png", "v/c.png"])
    assert rows[1]["failed"] == "review: all alike"
    assert rows[2] == queries[2] | {"verdict": "", "note": ""}
