"""A form that is YAML alone, from the page in a real browser to merged answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import axe
import pytest

from cir_datasets.construction.review.agreement import import_answers
from cir_datasets.construction.review.form import load_form
from cir_datasets.construction.review.page import page_html
from cir_datasets.shapes import picture

FORM = """
name: sessions
item: [session, sessions]
page_size: 25
instructions: [Judge each session as a whole.]
pictures:
  - {field: turns, label: Turns, small: true}
  - {field: target, label: looked for, frame: good, small: true}
texts:
  - {field: judge, label: The model says, below: true}
questions:
  - {name: naturalness, kind: stars, label: How natural is it?, needed: true}
  - name: judge_is_right
    kind: choice
    label: Is the model right?
    choices: {yes: yes, no: no}
    sets: {naturalness: "3"}
  - {name: repeats, kind: number, label: Turns that repeat another one, min: 0, max: 6}
  - {name: also, kind: sort, label: Also right, pictures: gallery, choices: {right: right}}
  - {name: note, kind: text, label: Note, min_words: 2}
"""
ITEMS: list[dict[str, Any]] = [
    {
        "id": f"s{number:03d}",
        "turns": [{"picture": "0.png", "text": "in red"}, {"picture": "1.png", "text": "and <b>larger</b>"}],
        "target": "2.png",
        "gallery": ["2.png", {"picture": "3.png", "name": "red car.png"}],
        "judge": 'coherent, & "dull"',
    }
    for number in range(400)
]


@pytest.fixture
def html(tmp_path: Path) -> Path:
    (tmp_path / "sessions.yaml").write_text(FORM)
    for number in range(4):
        picture(f"val-{number:06d}").save(tmp_path / f"{number}.png")
    path = tmp_path / "page.html"
    path.write_text(page_html(load_form(tmp_path / "sessions.yaml"), ITEMS, title="Sessions"), "utf-8")
    return path


@pytest.mark.browser
def test_a_form_of_yaml_alone_is_answered_by_keyboard_and_merged(page: Any, html: Path) -> None:
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(html.as_uri())
    assert page.locator("article").count() == 25
    first = page.locator("[data-item=s000]")
    assert first.locator("figure").nth(1).inner_text().endswith("and <b>larger</b>")
    page.focus("#annotator")
    page.keyboard.type("Ann")
    # Through the buttons and what is to be done to the first question.
    while page.evaluate("document.activeElement.name") != "naturalness-0":
        page.keyboard.press("Tab")
    page.keyboard.press("Alt+4")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.type("2")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.closest('article').dataset.item") == "s001"
    page.keyboard.press("Alt+2")
    page.keyboard.press("Alt+ArrowRight")
    third = page.locator("[data-item=s002]")
    third.locator("input[data-question=judge_is_right][value=no]").check()
    third.get_by_label("what red car.png is").select_option("right")
    third.get_by_label("Note").fill("dull")
    assert "Too short: write 2 different words" in third.inner_text()
    third.get_by_label("Note").fill('=dull, "flat"\nthroughout')
    page.click("#next")
    assert page.inner_text("#place") == "26 to 50 of 400"
    assert page.text_content("#done") == "3 of 400 sessions answered"
    files = []
    for ending in ("json", "csv"):
        with page.expect_download() as caught:
            page.click(f"#save-{ending}")
        files.append(html.with_name(f"ann.{ending}"))
        caught.value.save_as(files[-1])
    assert all(url.startswith(("file://", "blob:")) for url in requests)
    form = load_form(html.with_name("sessions.yaml"))
    for file in files:
        made = import_answers(form, ITEMS, [file])
        assert not any("failed" in row for row in made.answers)
        assert {row["annotator"] for row in made.answers} == {"Ann"}
        one, two, three = made.merged[:3]
        assert (one["naturalness"], one["judge_is_right"], one["repeats"]) == (4, "yes", 2)
        assert (two["naturalness"], two["judge_is_right"]) == (2, None)
        assert (three["naturalness"], three["judge_is_right"], three["right"]) == (3, "no", ["red car.png"])
        assert three["note"] == '=dull, "flat" throughout'


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_fits_and_axe_finds_nothing(browser: Any, html: Path, width: int, scheme: str) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True
    )
    page = context.new_page()
    page.goto(html.as_uri())
    page.locator("[data-item=s000]").get_by_label("Note").fill("dull")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert axe.violations(page) == []
    context.close()


@pytest.mark.browser
def test_one_picture_is_chosen_and_a_text_takes_back_that_it_does_not_apply(page: Any, html: Path) -> None:
    items = [{"id": "1", "caption": "red", "reference": "0.png", "target": "1.png"}]
    items[0]["candidates"] = ["1.png", "2.png", "3.png"]  # type: ignore[assignment]
    for name in ("performance", "auxiliary"):
        html.write_text(page_html(load_form(name), items, title=name, memory=name), "utf-8")
        page.goto(html.as_uri())
        page.fill("#annotator", "Ann")
        if name == "performance":
            page.get_by_label("what 2.png is").select_option("chosen")
            page.locator("fieldset img[alt='3.png']").click()
        else:
            for question in ("preserved", "changed", "camera", "background"):
                page.locator(f"input[data-question={question}_none]").first.check()
            page.locator("textarea[data-question=camera]").fill("from further away")
        assert page.text_content("#done").startswith("1 of 1")
        with page.expect_download() as caught:
            page.click("#save-csv")
        caught.value.save_as(html.with_suffix(".csv"))
        made = import_answers(load_form(name), items, [html.with_suffix(".csv")])
        assert not any("failed" in row for row in made.answers)
        if name == "performance":
            assert made.merged[0]["chosen"] == ["3.png"]
        else:
            assert (made.merged[0]["camera"], made.merged[0]["camera_none"]) == ("from further away", None)
            assert made.merged[0]["background_none"] == "cr0"
