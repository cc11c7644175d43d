"""Pages of queries and rankings in a real browser: filters, keys, phone, and no host is asked."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from submissions.browse import browse_rankings

ENTRIES = resources.files("submissions.entries")
FILES = [str(ENTRIES / f"{name}-shapes.shapes-val.json.gz") for name in ("image_text_sum", "image_only")]


def words(page: Any) -> str:
    return "".join(page.locator("main").inner_text().split())


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_a_page_of_rankings_filters_pages_and_fits(page: Any, tmp_path: Path, width: int) -> None:
    made = browse_rankings(FILES, out=tmp_path / "page.html")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(made.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    written = words(page)
    page.locator("#text").fill("no caption says this")
    assert page.locator("article").count() == 0
    page.locator("#text").fill("")
    assert words(page) == written  # the script shows what the template wrote
    page.locator("input[value=won]").check()
    assert page.locator("#where").text_content() == "1 to 20 of 102"
    page.locator("#next").click()
    assert page.locator("#where").text_content() == "21 to 40 of 102"
    page.locator("h1").click()
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement === document.querySelectorAll('article')[1]")
    page.keyboard.press("k")
    assert page.evaluate("document.activeElement === document.querySelectorAll('article')[0]")
    page.goto(f"{made.as_uri()}#q=shapes_val_00250")
    page.reload()
    assert "shapes_val_00250" in page.evaluate("document.activeElement.textContent")
    assert all(each.startswith(("file:", "data:")) for each in asked)
