"""The query browser, an entry and a comparison in headless Chromium, with and without JavaScript."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import leaderboard_world as world
import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]
SECONDS = 90.0


@dataclass
class Shown:
    """A served leaderboard with two entries whose lists are read."""

    url: str
    ids: tuple[str, str]

    def query(self, number: int, **asked: str) -> str:
        chosen = {"e": ",".join(self.ids), **asked}
        words = "&".join(f"{name}={value}" for name, value in chosen.items())
        return f"{self.url}/b/shapes/val/q/shapes_val_{number:05d}?{words}"


@pytest.fixture(scope="module")
def shown(new_database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    """The first of the two hits the first 120 of 300 queries, the second the first 60."""
    home = tmp_path_factory.mktemp("queries") / "home"
    with world.serving_here(home, CIR_LEADERBOARD_DATABASE=new_database()) as server:
        sent = [
            server.submitted(world.as_bytes(world.rank_file(number, name, hits=hits)))["id"]
            for number, (name, hits) in enumerate([("More", 0.4), ("Fewer", 0.2)])
        ]
        found = Shown(server.url, (sent[0], sent[1]))
        until = time.monotonic() + SECONDS
        while "Where they differ" not in server.get(found.query(0).removeprefix(server.url)).text:
            assert time.monotonic() < until, "the lists are not read"
            time.sleep(0.5)
        yield found


def here(page: Any) -> str:
    """The query and the place in its filter."""
    name = page.inner_text(".crumbs").rpartition("› ")[2].strip()
    return f"{name}, {page.inner_text('.steps .where')}"


def test_filters_and_keys_walk_through_what_one_method_wins(page: Any, shown: Shown) -> None:
    page.goto(shown.query(3))
    assert "Where they differ" in page.inner_text("h1")
    page.get_by_text("Filter and methods").click()  # a pointer chooses at once
    page.get_by_label("Outcome").select_option("won")
    page.wait_for_url("**outcome=won**")
    number = 60
    assert here(page) == f"shapes_val_00003, Not among the {number} of this filter"
    page.get_by_role("link", name="Next →").click()
    page.wait_for_url("**00060?**")
    assert here(page) == f"shapes_val_00060, 1 of {number}"
    page.keyboard.press("j")
    page.wait_for_url("**00061?**")
    page.keyboard.press("j")
    page.wait_for_url("**00062?**")
    page.keyboard.press("k")
    page.wait_for_url("**00061?**")
    assert here(page) == f"shapes_val_00061, 2 of {number}"
    assert "outcome=won" in page.url
    assert "lost (0)" in page.get_by_label("Outcome").inner_text()
    page.get_by_role("link", name="list", exact=True).click()
    page.wait_for_url("**tab=queries**")
    assert page.locator("article").count() == 20
    assert "1 to 20 of 60 of 300 queries." in page.inner_text("main")
    page.get_by_role("link", name="shapes_val_00079").click()
    page.wait_for_url("**/q/**")
    assert here(page) == f"shapes_val_00079, 20 of {number}"


def test_keys_are_left_to_a_field_and_to_shortcuts(page: Any, shown: Shown) -> None:
    page.goto(shown.query(61, outcome="won"))
    before = page.url
    page.get_by_label("Method 1").focus()
    page.keyboard.press("k")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Control+k")
    page.wait_for_timeout(300)
    assert page.url == before


def test_choosing_a_method_sends_the_form_and_keeps_the_filter(page: Any, shown: Shown) -> None:
    page.goto(shown.query(61, outcome="won", aspect="change"))
    assert page.get_by_label("Aspect").input_value() == "change"
    page.locator("h1").click()
    page.get_by_label("Method 2").select_option("")
    page.wait_for_url(lambda url: f"e={shown.ids[1]}" not in url and shown.ids[1] not in url)
    assert "aspect=change" in page.url
    assert "missed at R@10" in page.inner_text("h1")
    assert page.locator(".queries .list").count() == 2, "a ranking and the ranking of the subset"


def test_a_list_is_gone_through_by_the_keyboard_and_sent_by_its_button(page: Any, shown: Shown) -> None:
    page.goto(shown.query(61))
    before = page.url
    page.focus("summary:text('Filter and methods')")
    page.keyboard.press("Enter")
    page.get_by_label("Method 2").focus()
    for _ in range(3):
        page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.name") == "e", "the focus stays in the list"
    assert page.url == before
    page.focus("button:text('Show')")
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: url != before)


def test_without_javascript_links_and_the_form_do_the_same(browser: Any, shown: Shown) -> None:
    context = browser.new_context(java_script_enabled=False, viewport={"width": 390, "height": 800})
    page = context.new_page()
    page.goto(shown.query(60, outcome="won"))
    page.get_by_role("link", name="Next →").click()
    assert here(page) == "shapes_val_00061, 2 of 60"
    page.get_by_label("Method 2").select_option("")
    page.get_by_role("button", name="Show", exact=True).click()
    assert "missed at R@10" in page.inner_text("h1")
    assert page.locator("main").bounding_box()["width"] <= 390
    context.close()


def test_both_rankings_and_the_meaning_of_the_frames_are_on_the_first_screen(
    browser: Any, shown: Shown
) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(shown.query(3))
    for part in ("h1", ".folded", ".steps", ".key", ".queries .list >> nth=0", ".queries .list >> nth=1"):
        box = page.locator(part).first.bounding_box()
        assert box is not None, part
        assert box["y"] + box["height"] <= 900, part
    page.close()


def test_pictures_are_there_and_the_page_does_not_move(page: Any, shown: Shown) -> None:
    page.goto(shown.query(3))
    page.wait_for_load_state("networkidle")
    loaded = page.evaluate("[...document.querySelectorAll('.queries img')].map(i => i.naturalWidth)")
    assert len(loaded) > 10
    assert set(loaded[:10]) == {96}
    shifts = page.evaluate(
        """() => new Promise(done => { let sum = 0; new PerformanceObserver(list => { for (const e of
        list.getEntries()) sum += e.value; }).observe({type: 'layout-shift', buffered: true});
        setTimeout(() => done(sum), 300); })"""
    )
    assert shifts < 0.1


def test_an_entry_leads_to_its_queries_and_to_a_comparison(page: Any, shown: Shown) -> None:
    page.goto(f"{shown.url}/e/{shown.ids[1]}")
    assert "R@10 20.00 [" in page.inner_text(".score")
    page.get_by_role("link", name="-20.00").click()
    page.get_by_text("significant at 5 %").first.wait_for()
    assert "−20.00" in page.inner_text(".delta")
    page.get_by_role("link", name="60 lost").first.click()
    page.wait_for_url("**outcome=lost**")
    assert here(page) == "shapes_val_00060, 1 of 60"
