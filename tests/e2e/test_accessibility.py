"""axe-core on every page in both themes and three widths; contrast of placeholders; nothing sideways."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe import axe_script, violations

pytestmark = [pytest.mark.browser, pytest.mark.slow]

WIDTHS = (1280, 768, 390)
THEMES = ("light", "dark")
_CONTRAST = """() => {
    const channel = value => {
        value /= 255;
        return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    };
    const parts = text => (text.match(/[\\d.]+/g) || []).map(Number);
    const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
    const over = ([r, g, b, a = 1], under) => [r, g, b].map((one, place) => one * a + under[place] * (1 - a));
    const back = node => {
        const found = [];
        for (let one = node; one; one = one.parentElement)
            found.unshift(parts(getComputedStyle(one).backgroundColor));
        return found.reduce((under, colour) => over(colour, under), [255, 255, 255]);
    };
    const fields = [...document.querySelectorAll('input, textarea')];
    return fields.filter(one => one.placeholder && one.offsetParent).map(one => {
            const style = getComputedStyle(one, '::placeholder'), under = back(one);
            const colour = parts(style.color);
            const seen = over([...colour.slice(0, 3), (colour[3] ?? 1) * Number(style.opacity)], under);
            const [low, high] = [light(seen), light(under)].sort((a, b) => a - b);
            return [one.placeholder, (high + 0.05) / (low + 0.05)];
        });
}"""


@pytest.fixture(scope="module")
def opened(browser: Any, site: Any) -> Iterator[Any]:
    """A page whose own policy does not keep axe out."""
    context = browser.new_context(bypass_csp=True)
    page = context.new_page()
    page.set_default_timeout(300_000)
    yield page
    context.close()


def go(page: Any, site: Any, address: str) -> None:
    page.goto(site.url + address, wait_until="load")
    if address == "/submit":
        page.wait_for_load_state("networkidle")
    # Colours on their way from one to the other are neither.
    page.add_style_tag(
        content="*, *::before, *::after { transition: none !important; animation: none !important }"
    )


def looks(page: Any) -> Iterator[str]:
    """A page in both themes and all widths."""
    for theme in THEMES:
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            yield f"{theme}, {width}"


def test_axe_finds_nothing_serious_in_both_themes_and_three_widths(opened: Any, site: Any) -> None:
    axe_script()
    found: dict[str, dict[str, Any]] = {}
    for name, address in site.pages().items():
        go(opened, site, address)
        for look in looks(opened):
            pale = [(words, ratio) for words, ratio in opened.evaluate(_CONTRAST) if ratio < 4.5]
            wide = opened.evaluate("document.documentElement.scrollWidth - innerWidth")
            said = [*violations(opened)]
            said += [
                {"rule": "placeholder", "element": words, "why": f"{ratio:.2f}:1"} for words, ratio in pale
            ]
            said += [{"rule": "sideways", "element": "html", "why": f"{wide} px wider"}] if wide > 0 else []
            for one in said:
                key = f"{name} | {one['rule']} | {one.get('target') or one['element']}"
                found.setdefault(key, {**one, "looks": []})["looks"].append(look)
    written = os.environ.get("CIR_AXE_REPORT")
    if written:
        Path(written).write_text(json.dumps(found, indent=1))
    assert found == {}
