"""The page of a dialogue in a real browser: its pictures are there, and a phone shows it whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benchmark_world import dialogues as world

from submissions.embeddings.pictures import ShapesPictures
from submissions.multiround.page import write_page

BAD = "<img src=x onerror=alert(1)><script>alert(2)</script> and a word that is " + "long" * 60


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_a_dialogue_fits_desktop_and_phone_and_words_stay_words(
    page: Any, tmp_path: Path, width: int
) -> None:
    made = world.transcript()
    rounds = [each.model_copy(update={"caption": BAD}) for each in made.rounds]
    pictures = ShapesPictures("shapes/val", tuple(world.GALLERY))
    path = write_page(made.model_copy(update={"rounds": rounds}), pictures, tmp_path / "page.html")
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(path.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("article").count() == 3
    assert page.locator(".said").first.text_content() == BAD
    seen = page.locator("img").first
    seen.scroll_into_view_if_needed()
    assert seen.evaluate("image => image.decode().then(() => image.naturalWidth)") == 96
