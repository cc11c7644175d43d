"""A mirror of a served leaderboard, opened from its folder in headless Chromium with nothing behind it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import leaderboard_world as world
import pytest
from leaderboard_world.site import HOSTILE, LONG_BOARD
from links import problems

pytestmark = [pytest.mark.browser, pytest.mark.slow]

QUERIES = 3


@pytest.fixture(scope="module")
def mirror(site: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("mirror") / "pages of ours"
    home = ["--home", str(site.server.home)]
    alone = {"CIR_DATA_HOME": "", "CIR_CACHE_HOME": str(site.server.home.parent / "cache")}
    done = world.cir(
        "leaderboard", "export-html", str(folder), "--queries", str(QUERIES), *home, **alone, code=0
    )
    assert done.stdout.strip() == str(folder / "index.html")
    return folder


def test_every_link_of_every_page_leads_to_a_file(mirror: Path, site: Any) -> None:
    assert list(problems(mirror)) == []
    queries = list(mirror.glob("b/shapes/val/q/*/index.html"))
    assert len(queries) == QUERIES
    assert len(list(mirror.glob("e/*/index.html"))) == len(site.by_name)
    assert len(list(mirror.glob("site/pictures/**/*.png"))) > QUERIES
    assert len(list(mirror.glob(f"b/{LONG_BOARD}/page-2.html"))) == 1
    text = "".join(path.read_text() for path in mirror.rglob("*.html"))
    assert "Kept private" not in text
    assert "Withdrawn" not in text
    for waiting in ("This page looks again", 'http-equiv="refresh"', "are being computed"):
        assert waiting not in text


def test_a_reader_goes_from_page_to_page_without_a_server(mirror: Path, browser: Any) -> None:
    context = browser.new_context(offline=True)
    page = context.new_page()
    asked: list[str] = []
    said: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.goto((mirror / "index.html").as_uri())
    page.locator("main a[href*='b/shapes/val/']").first.click()
    assert page.locator(".standings tbody tr").count() > 5
    page.locator(".standings tbody th a").first.click()
    assert page.url.startswith((mirror / "e").as_uri())
    page.locator(".crumbs a").last.click()
    assert page.locator(".standings tbody tr").count() > 5
    page.goto(next(mirror.glob("b/shapes/val/q/*/index.html")).as_uri())
    assert page.locator("main img").count() > 5
    # A picture that comes into view is read only then.
    page.evaluate("[...document.images].forEach(one => { one.loading = 'eager'; })")
    # Asked again and again from here: what polls in the page needs the eval that the page forbids.
    while not page.evaluate("[...document.images].every(one => one.complete && one.naturalWidth > 0)"):
        page.wait_for_timeout(100)
    page.goto((mirror / "b" / LONG_BOARD / "index.html").as_uri())
    assert HOSTILE[0] in page.inner_text("main")
    assert page.evaluate("getComputedStyle(document.querySelector('a.skip')).position") == "absolute"
    assert [address for address in asked if not address.startswith(mirror.as_uri())] == []
    assert said == []
    context.close()
