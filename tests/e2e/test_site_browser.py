"""The reading pages in headless Chromium: choices, rows, keyboard, zoom, no scripts, hostile texts."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import plain_http
import pytest
from leaderboard_world.site import HOSTILE, LONG, LONG_BOARD

pytestmark = [pytest.mark.browser, pytest.mark.slow]

INTERACTIVE = (
    "status",
    "submit",
    "submission, private",
    "submission, published",
    "submission, rejected",
    "submission, withdrawn",
)
"""Pages that need scripts, or show more with them; and one that says the time."""
_SHIFTS = """() => { window.shifts = 0; new PerformanceObserver(list => {
    for (const one of list.getEntries()) if (!one.hadRecentInput) window.shifts += one.value;
}).observe({type: 'layout-shift', buffered: true}); }"""
_FOREIGN = """() => [...document.querySelectorAll('main *')].flatMap(node => [
    ...(/^(script|b|x)$/i.test(node.tagName) ? [node.outerHTML.slice(0, 80)] : []),
    ...(node.tagName === 'IMG' && /^x$|onerror/.test(node.getAttribute('src')) ? [node.outerHTML] : []),
    ...[...node.attributes].map(one => one.name).filter(name => name.startsWith('on')),
    ...(node.tagName === 'A' && /^\\s*javascript:/i.test(node.getAttribute('href')) ? [node.outerHTML] : []),
])"""
_FOCUS = """async () => {
    const node = document.activeElement, style = getComputedStyle(node);
    let box, frames = 0;
    do {
        await new Promise(done => requestAnimationFrame(done));
        box = node.getBoundingClientRect();
    } while ((box.bottom <= 0 || box.top >= innerHeight) && ++frames < 600);
    const words = node.innerText || node.name || node.id || node.tagName;
    return {words: node === document.body ? 'BODY' : words.slice(0, 40),
        ring: (style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2)
            || style.boxShadow !== 'none',
        seen: box.width > 0 && box.bottom > 0 && box.top < innerHeight};
}"""


def rows(page: Any) -> list[str]:
    return [str(one) for one in page.locator(".standings tbody tr th.name > a").all_inner_texts()]


def asked(page: Any) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def words(page: Any) -> str:
    return " ".join(page.inner_text("main").split())


@pytest.fixture(scope="module")
def without_scripts(browser: Any) -> Iterator[Any]:
    context = browser.new_context(java_script_enabled=False)
    yield context.new_page()
    context.close()


def test_choices_of_rows_stand_in_the_address_and_hold_for_who_opens_it(page: Any, each_site: Any) -> None:
    page.goto(f"{each_site.url}/b/{LONG_BOARD}")
    page.get_by_role("link", name="Zero-shot", exact=True).click()
    page.wait_for_url("**training=zero-shot*")
    assert page.locator(".standings tbody tr").count() == LONG // 2
    page.fill("input[name=q]", "blip")
    page.keyboard.press("Enter")
    page.wait_for_url("**q=blip*")
    found = rows(page)
    # The third of three backbones, and of these the even ones; one of them has another name.
    assert {*found} == {*(f"Method {number}" for number in range(2, LONG - 4, 6)), HOSTILE[3]}
    assert asked(page)["training"] == ["zero-shot"]
    page.locator("th.name a, th.other a").first.click()
    page.wait_for_url("**sort=*")
    assert page.locator("th[aria-sort]").count() == 1
    assert {*rows(page)} == {*found}
    other = page.context.new_page()
    other.goto(page.url)
    assert rows(other) == rows(page)


def test_fifty_rows_a_page_and_a_linked_row_is_in_view(page: Any, each_site: Any) -> None:
    page.goto(f"{each_site.url}/b/{LONG_BOARD}?hide=published")
    first = rows(page)
    page.get_by_role("navigation", name="Pages of the table").get_by_role(
        "link", name="2", exact=True
    ).click()
    page.wait_for_url("**page=2*")
    second = rows(page)
    assert (len(first), len(first) + len(second)) == (50, LONG)
    assert not {*first} & {*second}
    entry = each_site.by_name[second[-1]]
    page.goto(f"{each_site.url}/b/{LONG_BOARD}?entry={entry}#entry-{entry}")
    row = page.locator(f"#entry-{entry}")
    assert second[-1] in row.inner_text()
    assert "marked" in row.get_attribute("class")
    # A browser goes to the row behind the # once the page stands.
    page.wait_for_function(
        """name => {
            const box = document.getElementById(name).getBoundingClientRect();
            const head = document.querySelector('.standings thead th').getBoundingClientRect();
            return box.top >= head.bottom - 1 && box.bottom <= innerHeight;
        }""",
        arg=f"entry-{entry}",
    )


def test_the_head_of_a_long_table_stays_when_rows_are_scrolled(page: Any, site: Any) -> None:
    page.goto(f"{site.url}/b/{LONG_BOARD}")
    page.locator(".standings tbody tr").nth(40).scroll_into_view_if_needed()
    box = page.locator(".standings thead th").first.bounding_box()
    assert 0 <= box["y"] < 800


def test_ticked_entries_are_compared_without_a_script_too(
    page: Any, without_scripts: Any, each_site: Any
) -> None:
    for opened in (page, without_scripts):
        opened.goto(f"{each_site.url}/b/shapes/val")
        boxes = opened.locator(".standings input[name=e]")
        names = [rows(opened)[place] for place in (0, 1)]
        for place in (0, 1):
            boxes.nth(place).check()
        opened.get_by_role("button", name=re.compile("Compare")).click()
        assert urlsplit(opened.url).path == "/compare"
        assert len(asked(opened)["e"]) == 2
        for name in names:
            assert name in words(opened)


def test_hostile_texts_are_texts_on_every_page(page: Any, each_site: Any) -> None:
    hostile = each_site.by_name[HOSTILE[0]]
    places = [f"/b/{LONG_BOARD}", f"/b/{LONG_BOARD}?q={'%3Cscript%3E'}", f"/e/{hostile}", "/"]
    places += [
        f"/compare?e={hostile},{each_site.by_name[HOSTILE[1]]}",
        "/b/%3Cscript%3Ealert(1)%3C/script%3E",
    ]
    places += [f"/e/{each_site.by_name[name]}" for name in HOSTILE[1:]]
    places += ["/m/%3Cimg%20src=x%20onerror=alert(1)%3E", "/b/shapes/val/q/%22%3E%3Cb%3Ex", "/s/%3Cb%3E"]
    for place in places:
        page.goto(each_site.url + place)
        assert page.evaluate(_FOREIGN) == [], place
    page.goto(f"{each_site.url}/b/{LONG_BOARD}")
    assert {*HOSTILE} <= {*rows(page)}
    page.goto(f"{each_site.url}/e/{hostile}")
    assert words(page).count("<script>alert(1)</script>") >= 2


def test_the_keyboard_reaches_the_content_first_and_focus_is_seen(page: Any, site: Any) -> None:
    # A smooth scroll to what has the focus lasts as long as the machine is busy.
    page.emulate_media(reduced_motion="reduce")
    for address in ("/", "/b/shapes/val", f"/e/{site.by_name[HOSTILE[0]]}"):
        page.goto(site.url + address)
        page.keyboard.press("Tab")
        assert page.evaluate(_FOCUS)["words"] == "Skip to the content"
        unseen = []
        for _ in range(25):
            found = page.evaluate(_FOCUS)
            if found["words"] == "BODY":
                break
            if not (found["ring"] and found["seen"]):
                unseen.append(found)
            page.keyboard.press("Tab")
        assert unseen == [], address
        page.goto(site.url + address)
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"


def test_every_page_is_quiet_steady_and_fits_at_200_percent(browser: Any, each_site: Any) -> None:
    """640 pixels of two device pixels each are what a screen of 1280 shows at 200 % zoom."""
    context = browser.new_context(viewport={"width": 640, "height": 400}, device_scale_factor=2)
    context.add_init_script(f"({_SHIFTS})()")
    opened = context.new_page()
    away: list[str] = []
    opened.on("request", lambda request: away.append(request.url))
    found, titles, descriptions = [], {}, {}
    for name, address in each_site.pages().items():
        opened.goto(each_site.url + address, wait_until="load")
        if opened.evaluate("document.documentElement.scrollWidth > innerWidth"):
            found.append(f"{name}: wider than the window")
        shifts = opened.evaluate("window.shifts")
        if shifts >= 0.1:
            found.append(f"{name}: layout shifts of {shifts:.3f}")
        titles[name] = opened.title()
        descriptions[name] = opened.get_attribute("meta[name=description]", "content")
        for og in ("title", "description"):
            if not opened.get_attribute(f"meta[property='og:{og}']", "content"):
                found.append(f"{name}: no og:{og}")
    context.close()
    found += [
        f"asks {one}" for one in away if not one.startswith(each_site.url) and not one.startswith("data:")
    ]
    for kind in (titles, descriptions):
        found += [
            f"{name} says what {other} says: {text}"
            for name, text in kind.items()
            for other in kind
            if other < name and kind[other] == text and "second page" not in (name, other)
        ]
    assert found == []


def test_titles_are_all_different_for_choices_too(each_site: Any) -> None:
    addresses = each_site.pages() | each_site.choices()
    titles: dict[str, str] = {}
    for name, address in addresses.items():
        found = re.search("<title>([^<]+)</title>", plain_http.get(each_site.url + address, timeout=60).text)
        assert found is not None, name
        assert found[1] not in titles, f"{name} has the title of {titles[found[1]]}: {found[1]}"
        titles[found[1]] = name


def test_reading_pages_say_all_of_it_without_scripts(page: Any, without_scripts: Any, site: Any) -> None:
    def lost(address: str) -> set[str]:
        texts = []
        for opened in (page, without_scripts):
            opened.goto(site.url + address)
            if opened is page:
                # Without scripts there is nothing that copies.
                opened.evaluate("document.querySelectorAll('[data-copy]').forEach(one => one.remove())")
            # With scripts a command names the address at which the page was opened.
            here = rf"--to http\S+|--to URL|{re.escape(site.url)}"
            texts.append({*re.sub(here, "URL", words(opened)).split()})
        assert len(texts[1]) > 10, address
        return texts[0] - texts[1]

    for name, address in site.pages().items():
        # What is computed for the first reader is there for the next one.
        tries = 0
        while name not in INTERACTIVE and (missing := lost(address)) and tries < 10:
            tries += 1
            page.wait_for_timeout(1000)
        assert name in INTERACTIVE or not missing, (name, missing)


def test_dark_pages_are_dark_and_light_ones_light(browser: Any, site: Any) -> None:
    for theme, dark in (("light", False), ("dark", True)):
        context = browser.new_context(color_scheme=theme)
        opened = context.new_page()
        for name, address in site.pages().items():
            opened.goto(site.url + address)
            colour = opened.evaluate("getComputedStyle(document.body).backgroundColor")
            brightness = sum(map(int, re.findall(r"\d+", colour)[:3])) / 3
            assert (brightness < 128) is dark, f"{name}: {colour}"
        context.close()


def test_every_reading_page_is_packed_and_is_not_sent_twice(each_site: Any) -> None:
    wrong = []
    with httpx.Client(base_url=each_site.url, timeout=300) as client:
        for name, address in each_site.pages().items():
            if name == "submit":
                continue
            first = client.get(address, headers={"Accept-Encoding": "gzip"})
            expected = 404 if name == "not found" else 200
            if first.status_code != expected or first.headers.get("content-encoding") != "gzip":
                wrong.append(f"{name}: {first.status_code}, {first.headers.get('content-encoding')}")
            if expected == 200 and name != "status":  # which says the time
                tag = {"If-None-Match": first.headers.get("etag", "none")}
                again = client.get(address, headers=tag)
                if (again.status_code, again.content) != (304, b""):
                    wrong.append(f"{name}: {again.status_code} to its own tag")
    assert wrong == []


def test_a_table_is_shown_in_a_frame_of_another_site_and_other_pages_are_not(page: Any, site: Any) -> None:
    board = f"{site.url}/b/{LONG_BOARD}"
    html = f'<iframe id="table" src="{board}?embed=1"></iframe><iframe id="page" src="{board}"></iframe>'

    class Elsewhere(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(html.encode())

        def log_message(self, *_: Any) -> None:
            pass

    refused: list[str] = []
    page.on("console", lambda message: refused.append(message.text))
    # Another port is another origin.
    with ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        page.goto(f"http://127.0.0.1:{other.server_port}/")
        page.frame_locator("#table").locator(".standings tbody tr").nth(LONG - 11).wait_for(state="attached")
        other.shutdown()
    assert page.frame_locator("#table").locator("h1 a").get_attribute("target") == "_blank"
    assert sorted(frame.url for frame in page.frames[1:]) == [
        "chrome-error://chromewebdata/",
        f"{board}?embed=1",
    ]
    assert any("frame-ancestors" in said for said in refused), refused


def test_empty_fields_stay_out_of_the_address_and_dead_buttons_are_not_shown(
    page: Any, without_scripts: Any, site: Any
) -> None:
    page.goto(f"{site.url}/b/{LONG_BOARD}")
    page.fill("form.choices [name=q]", "Method 7")
    page.press("form.choices [name=q]", "Enter")
    page.wait_for_url("**q=Method**")
    assert asked(page) == {"q": ["Method 7"]}
    assert "=&" not in page.url
    assert not page.url.partition("#")[0].endswith("=")
    page.locator("details.embed > summary").click()
    assert page.get_by_role("button", name="Copy link").is_visible()
    without_scripts.goto(f"{site.url}/b/{LONG_BOARD}")
    assert without_scripts.locator("[data-copy]").count() > 0
    assert without_scripts.locator("[data-copy]:visible").count() == 0
