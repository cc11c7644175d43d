"""Pages of queries and rankings in a real browser: filters, keys, phone, and no host is asked."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

import pytest

import cir_datasets
from cir_datasets.browse import browse_queries
from cir_datasets.construction.new_folder import new_folder
from cir_datasets.rows.benchmark import Benchmark
from submissions.report.ranking_page import browse_rankings

ENTRIES = resources.files("submissions.entries")
FILES = [str(ENTRIES / f"{name}-shapes.shapes-val.json.gz") for name in ("image_text_sum", "image_only")]


def words(page: Any) -> str:
    return "".join(page.locator("main").inner_text().split())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two methods on shapes, with all pictures."""
    return browse_rankings(FILES, out=tmp_path_factory.mktemp("page") / "page.html")


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_a_page_of_rankings_filters_pages_and_fits(page: Any, made: Path, width: int) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(made.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    written = words(page)
    page.locator("[name=q]").fill("no caption says this")
    assert page.locator("article").count() == 0
    page.locator("[name=q]").fill("")
    assert words(page) == written  # the script shows what the template wrote
    page.locator("[name=outcome]").select_option("won")
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
    page.locator("article:focus").get_by_text("shapes_val_00250").wait_for()
    assert all(each.startswith(("file:", "data:")) for each in asked)


@pytest.mark.browser
def test_the_first_page_is_readable_without_javascript(browser: Any, tmp_path: Path) -> None:
    sessions = str(ENTRIES / "image_text_sum-shapes-weighted.shapes-multiturn_val.json.gz")
    made = browse_rankings([sessions], out=tmp_path / "page.html")
    context = browser.new_context(viewport={"width": 390, "height": 844}, java_script_enabled=False)
    page = context.new_page()
    page.goto(made.as_uri())
    assert page.locator("article").count() == 20
    assert not page.locator("#filters").is_visible()
    assert page.locator("noscript").inner_text().startswith("These are the first 20 of 200.")
    row = cir_datasets.load("shapes/multiturn_val").head(1)[0]
    first = page.locator("article").first
    assert row["session_id"] in first.inner_text()
    for turn in row["turns"]:
        assert turn["relative_caption"] in first.inner_text()
        assert first.locator(f"img[alt='reference: {turn['reference_image_id']}']").first.is_visible()
    for target in row["ground_truth_ids"]:
        assert first.locator(f".asked img[alt='✓ target: {target}']").is_visible()
    context.close()


@pytest.mark.browser
def test_linked_pictures_are_shown(page: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = new_folder("linked", tmp_path / "my # folder")
    monkeypatch.setenv("CIR_BENCHMARKS", str(folder))
    own = cir_datasets.load("linked/test")
    made = browse_queries(own, tmp_path / "page.html", pictures="link")
    page.goto(made.as_uri())
    pictures = page.locator("img")
    assert pictures.count() >= 2 * len(own)
    pictures.evaluate_all("all => all.forEach((each) => { each.loading = 'eager'; })")
    page.wait_for_function("[...document.images].every((each) => each.complete)")
    assert pictures.evaluate_all("all => all.every((each) => each.naturalWidth > 0)")


@pytest.mark.browser
def test_foreign_words_run_nothing(page: Any, tmp_path: Path) -> None:
    bad = "</script><img src=x onerror=alert(1)>"
    whole = cir_datasets.load("shapes/val")
    rows = [
        row | {"query_id": f"{place}{bad}", "captions": [bad]} for place, row in enumerate(whole.head(25))
    ]
    benchmark = Benchmark.from_rows(whole.spec, rows, whole.gallery)
    page.goto(browse_queries(benchmark, tmp_path / "page.html", pictures="none").as_uri())
    page.locator("#next").click()
    assert page.locator("article").count() == 5
    assert page.locator(".caption").first.inner_text() == bad
    page.set_content(benchmark.queries._repr_html_())
    assert page.locator(".caption").first.inner_text() == bad
