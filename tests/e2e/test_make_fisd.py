"""A review of `cir make fisd` filled in in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fisd_runs import OPTIONS, run, shapes_captions
from reloading import filled_and_reloaded

from cir_datasets.construction.fisd.review import write_review


def article(page: Any, id: str) -> Any:
    """A triplet, on whichever page of the review it is."""
    for button in ("#back", "#next"):
        for _ in range(20):
            if page.locator(f"[data-item={id}]").count():
                return page.locator(f"[data-item={id}]")
            page.click(button)
    raise AssertionError(f"{id} is on no page")


@pytest.mark.browser
def test_a_review_is_filled_in_saved_and_taken_in(page: Any, tmp_path: Path) -> None:
    captions = shapes_captions(tmp_path)
    made = run(tmp_path / "mine", captions)
    write_review(made.workspace.folder, made.triplets, 4, "Mine: review")
    html = made.workspace.folder / "review.html"
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(html.as_uri())
    assert page.locator("article").count() == 10 < len(made.triplets)
    changed = article(page, "change_000")
    shown = changed.locator("img").evaluate_all(
        "(all) => Promise.all(all.map((each) => each.decode().then(() => each.naturalWidth)))"
    )
    assert shown == [96, 96, 96]
    assert changed.get_by_label("Target shows").count() == 0
    counted = next(each for each in made.triplets if each.aspect == "cardinality")
    other = next(number for number in range(1, 5) if number not in counted.numbers)

    def fill() -> None:
        changed = article(page, "change_000")
        changed.get_by_label("keep").check()
        changed.get_by_label("Words instead of those above").fill('a "better", shorter wording')
        dropped = article(page, "change_001")
        dropped.get_by_label("drop").check()
        dropped.get_by_label("Note").fill("=not real; odd")
        article(page, "addition_000").get_by_label("draw anew").check()
        article(page, counted.id).get_by_label("Target shows").fill(str(other))
        article(page, counted.id).get_by_label("keep").check()

    filled_and_reloaded(page, fill, "#done", f"4 of {len(made.triplets)} triplets answered")
    page.locator("#show").select_option("open")
    assert page.locator("[data-item=change_000]").count() == 0
    with page.expect_download() as caught:
        page.locator("#save-csv").click()
    caught.value.save_as(tmp_path / "review.csv")
    assert all(url.startswith(("file://", "blob:")) for url in requests)
    now = {
        each.id: each for each in run(tmp_path / "mine", captions, review=tmp_path / "review.csv").triplets
    }
    assert now["change_000"].relative_caption == 'a "better", shorter wording'
    assert now["change_001"].failed == "review: =not real; odd"
    assert now["addition_000"].decision.attempt == 1
    assert now[counted.id].numbers[1] == other
    assert len([each for each in now.values() if each.failed is None]) >= OPTIONS.per_aspect * 6 - 1


@pytest.mark.browser
def test_the_page_fits_a_phone(page: Any, tmp_path: Path) -> None:
    made = run(tmp_path / "mine", shapes_captions(tmp_path))
    write_review(made.workspace.folder, made.triplets, 4, "Mine: review")
    html = made.workspace.folder / "review.html"
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(html.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
