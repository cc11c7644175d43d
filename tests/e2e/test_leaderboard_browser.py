"""The pages in headless Chromium, served by a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from shapes_dialogues import BOARD as TALKING
from shapes_dialogues import as_lines, shapes_dialogue

pytestmark = pytest.mark.browser

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)> ${alert(3)} {{value}} [x](javascript:alert(4))"
)


@pytest.fixture(scope="module")
def server(world: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    # Caches of its own: what other tests have prepared would open boards that are closed here.
    folder = tmp_path_factory.mktemp("pages")
    alone = {"CIR_DATA_HOME": "", "CIR_CACHE_HOME": str(folder / "cache")}
    with world.serving(folder / "home", **alone) as running:
        yield running


def written(path: Path, document: dict[str, Any]) -> Path:
    path.write_text(json.dumps(document))
    return path


def send(page: Any, server: Any, file: Path, board: str = "") -> None:
    page.goto(f"{server.url}/submit?board={board}")
    page.wait_for_selector("#send")
    page.wait_for_load_state("networkidle")
    page.set_input_files("#field-file input[type=file]", str(file))
    page.wait_for_selector(f"#field-file :text('{file.stem}')")
    page.click("#send")


def test_a_rank_file_is_checked_then_published_with_the_words_of_the_form(
    page: Any, server: Any, world: ModuleType, tmp_path: Path
) -> None:
    own = {"backbone": "ViT-B/16", "zero_shot": True, "caption_rule": "the first alone"}
    document = world.rank_file(1, "From the browser", hits=0.5, **own)
    send(page, server, written(tmp_path / "run.json", document))
    page.wait_for_selector(".outcome.good")
    assert "From the browser" in page.inner_text(".outcome.good h3")
    assert "shapes/val#2 | data:" in page.inner_text(".outcome.good .signature")
    assert "not on the board" in page.inner_text(".outcome.good")
    assert "From the browser" not in [row["method"]["name"] for row in server.rows()]
    assert page.get_by_label("Method name").input_value() == "From the browser"
    assert page.get_by_label("Backbone").input_value() == "CLIP ViT-B/16"
    assert page.get_by_label("Zero-shot").input_value() == "yes"
    page.get_by_label("Backbone").fill("ViT-B/32")
    page.get_by_label("Submitted by").fill("A team")
    page.click("#more button")
    # The part that unfolds is drawn only now; a field that shows the file's word takes another.
    page.wait_for_function(
        "[...document.querySelectorAll('#more input')].some(one => one.value == 'other: the first alone')"
    )
    page.get_by_label("Text fields").fill("relative_caption, captions")
    page.get_by_label("Aggregation").fill("latest")
    page.get_by_label("Trained on").fill("made-up triplets")
    page.get_by_label("Caption rule").fill("joined by a blank")
    page.get_by_label("Caption rule").press("Enter")
    page.click("#act-publish")
    page.click(".to-board")
    row = page.wait_for_selector("tr.marked")
    (entry,) = [row for row in server.rows() if row["method"]["name"] == "From the browser"]
    shown = row.inner_text()
    assert "From the browser" in shown
    assert f"{100 * entry['main']:.2f}" in shown
    assert entry["received_at"][:10] in shown
    page.click("tr.marked summary")
    details = page.inner_text("tr.marked dl")
    assert "CLIP ViT-B/32" in details
    assert "A team" in details
    for words in ("space", "relative_caption, captions", "latest", "made-up triplets"):
        assert words in details
    assert entry["signature"] in details


def test_a_broken_file_shows_its_findings_and_leaves_no_row(
    page: Any, server: Any, world: ModuleType, tmp_path: Path
) -> None:
    before = server.rows()
    document = world.broken(world.rank_file(2, "Broken"))
    query = next(iter(document["rankings"]))
    send(page, server, written(tmp_path / "broken.json", document))
    page.wait_for_selector(".outcome.bad h3:text('Refused')")
    table = page.inner_text(".findings")
    assert "duplicate-image" in table
    assert "error" in table
    assert query in table
    assert "is ranked 1st and 2nd" in table
    assert "cir validate broken.json" in table
    assert server.rows() == before
    page.reload()
    page.wait_for_selector(".outcome.bad h3:text('Refused')")
    assert not page.is_visible("#desk")
    page.goto(f"{server.url}/?board=shapes/val")
    page.wait_for_selector(".standings, .empty")
    assert "Broken" not in page.inner_text("#board")


def test_a_file_on_a_wrong_board_is_sent_to_the_right_one_by_a_click(
    page: Any, server: Any, world: ModuleType, tmp_path: Path
) -> None:
    file = written(tmp_path / "run.json", world.rank_file(11, "On the wrong board"))
    send(page, server, file, board="shapes/multiturn_val")
    page.wait_for_selector(".outcome.bad h3:text('Refused')")
    assert "send it to the board shapes/val" in page.inner_text(".findings")
    page.click("#move:text('Shapes, single-turn')")
    page.wait_for_selector(".outcome.good")
    assert "On the wrong board" in page.inner_text(".outcome.good h3")


def test_a_transcript_goes_from_a_board_of_rank_files_to_the_table_of_dialogues(
    page: Any, server: Any, tmp_path: Path
) -> None:
    talk, empty = tmp_path / "talk.jsonl", tmp_path / "empty.jsonl"
    talk.write_bytes(as_lines(shapes_dialogue(name="Talked", words="<b>no</b> star")))
    empty.write_bytes(b"")
    send(page, server, empty, board=TALKING)
    page.wait_for_selector(".outcome.bad")
    assert "write the transcript again" in page.inner_text(".findings")
    send(page, server, talk, board="shapes/val")
    page.wait_for_selector(".outcome.bad h3:text('Refused')")
    assert "it is a transcript of dialogues, not a rank file" in page.inner_text(".findings")
    page.click("#move:text('Shapes, dialogue')")
    page.wait_for_selector(".outcome.good")
    assert "Talked" in page.inner_text(".outcome.good h3")
    page.click("#act-publish")
    page.click(".to-board")
    shown = page.wait_for_selector("tr.marked").inner_text()
    (entry,) = server.rows(TALKING)
    assert (entry["method"]["name"], entry["rank"]) == ("Talked", 1)
    assert "Talked" in shown
    assert f"{100 * entry['main']:.2f}" in shown


def test_a_rank_file_on_a_board_of_dialogues_is_sent_to_its_own_by_a_click(
    page: Any, server: Any, world: ModuleType, tmp_path: Path
) -> None:
    send(page, server, written(tmp_path / "run.json", world.rank_file(12, "No dialogue")), board=TALKING)
    page.wait_for_selector(".outcome.bad h3:text('Refused')")
    assert "it is a rank file, not a transcript" in page.inner_text(".findings")
    page.click("#move:text('Shapes, single-turn')")
    page.wait_for_selector(".outcome.good")
    assert "No dialogue" in page.inner_text(".outcome.good h3")


def test_a_file_that_names_no_board_is_asked_for_one(page: Any, server: Any, tmp_path: Path) -> None:
    send(page, server, written(tmp_path / "run.json", {"0": [1, 2]}))
    page.wait_for_selector(".outcome.bad")
    shown = page.inner_text(".findings")
    assert "missing-board" in shown
    assert "shapes/val" in shown


def test_a_private_link_opens_the_desk_and_goes_to_nobody_else(
    browser: Any, world: ModuleType, tmp_path: Path
) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.set_default_timeout(30_000)
    asked: list[str] = []

    def note(request: Any) -> None:
        # What goes over the wire: the address without what stands behind the #, and the headers.
        asked.append(request.url.partition("#")[0] + json.dumps(request.all_headers()))

    with world.serving(tmp_path / "home", CIR_LEADERBOARD_ACCOUNTS="tokens") as server:
        file = written(tmp_path / "run.json", world.rank_file(12, "By private link", notes="folded away"))
        send(page, server, file)
        page.wait_for_selector(".notice:has-text('bookmark it')")
        page.wait_for_selector("#act-publish")
        link = page.url
        key = link.partition("#")[2]
        assert key.startswith("edit_")
        page.on("requestfinished", note)
        page.goto("about:blank")
        page.goto(link)
        page.wait_for_selector("#act-publish")
        page.get_by_label("Method name").fill("Renamed")
        page.get_by_label("Paper").fill("javascript:alert(1)")
        page.click("#act-publish")
        page.wait_for_selector("#said .outcome.bad:has-text('https')")
        assert page.get_by_label("Method name").input_value() == "Renamed"
        page.get_by_label("Paper").fill("https://example.org/paper")
        page.click("#act-publish")
        page.wait_for_selector("#said :text('Published.')")
        assert server.rows()[0]["method"]["notes"] == "folded away"
        page.click(".facts a")
        page.wait_for_selector(".standings .name:text('Renamed')")
        stranger = link.partition("#")[0]
        page.goto(stranger)
        page.wait_for_selector(".outcome.good")
        assert not page.is_visible("#desk")
        page.goto("about:blank")
        page.goto(link)
        page.click("#act-withdraw")
        page.wait_for_selector(".outcome.bad:has-text('withdrawn')")
        assert server.rows() == []
        page.goto(stranger)
        page.wait_for_selector(".outcome.bad:has-text('none that you may read')")
        assert any("/queue/join" in request for request in asked)
        assert [request for request in asked if key in request] == []
        written_down = server.log.read_text() + "".join(
            path.read_bytes().decode("latin-1") for path in server.home.rglob("*") if path.is_file()
        )
        assert key not in written_down
    context.close()


def test_without_a_file_the_page_says_so(page: Any, server: Any) -> None:
    page.goto(f"{server.url}/submit")
    # The button is drawn before Gradio has connected it; the page is ready when its requests are done.
    page.wait_for_load_state("networkidle")
    page.click("#send")
    page.wait_for_selector(".outcome.bad")
    assert "no file is chosen" in page.inner_text(".outcome.bad")


def test_what_users_write_is_text_and_never_markup(
    page: Any, server: Any, world: ModuleType, tmp_path: Path
) -> None:
    document = world.rank_file(3, "Hostile notes", notes=HOSTILE, trained_on=[HOSTILE[:60]])
    done = server.submitted(world.as_bytes(document), form={"submitter": "<b onmouseover=alert(5)>me</b>"})
    assert done["state"] == "published"
    page.goto(f"{server.url}/?board=shapes/val&entry={done['id']}")
    page.wait_for_selector("tr.marked")
    page.click("tr.marked summary")
    shown = page.inner_text("tr.marked dl")
    assert HOSTILE in shown
    assert "<b onmouseover=alert(5)>me</b>" in shown
    assert page.query_selector_all("#board script, #board img, #board [onerror], #board [onmouseover]") == []
    links = page.eval_on_selector_all("#board a", "nodes => nodes.map(node => node.getAttribute('href'))")
    assert [link for link in links if not link.startswith(("./", "https://"))] == []


def test_hostile_ids_and_file_names_in_findings_are_text(
    page: Any, server: Any, world: ModuleType, tmp_path: Path
) -> None:
    document = world.rank_file(4, "<script>alert(6)</script>")
    document["rankings"][HOSTILE] = next(iter(document["rankings"].values()))
    send(page, server, written(tmp_path / "a<img src=x onerror=alert(7)>.json", document))
    page.wait_for_selector(".outcome.bad h3:text('Refused')")
    table = page.inner_text(".findings")
    assert "unknown-query" in table
    assert "bad-metadata" in table
    assert page.query_selector_all("#outcome script, #outcome img, #outcome [onerror]") == []


def test_a_method_whose_name_is_markup_stands_on_no_board(server: Any, world: ModuleType) -> None:
    for name in ("<script>alert(1)</script>", "a\u202eb", "\x1b[31mred"):
        done = server.submitted(world.as_bytes(world.rank_file(5, name)))
        assert [finding["code"] for finding in done["findings"]] == ["bad-metadata"]


def test_boards_are_picked_by_address_and_by_link(page: Any, server: Any) -> None:
    page.goto(f"{server.url}/?board=circo/val")
    page.wait_for_selector("h1:text('CIRCO')")
    assert "takes no submissions now" in page.inner_text(".notice")
    assert page.query_selector(".title .button") is None
    page.click(".picker .chip:text('CIRR') >> nth=0")
    page.wait_for_selector("h1:text('CIRR, validation')")
    assert "board=cirr%2Fval" in page.url
    facts = page.inner_text(".facts")
    assert "gallery of 2,297 images" in facts
    assert "reference removed" in facts
    assert "mean(recall@5, recall_subset@1)" in facts
    page.goto(f"{server.url}/?board=no/board")
    page.wait_for_selector(".outcome.bad:has-text('no board no/board')")


def test_a_board_without_data_refuses_on_the_page(
    page: Any, server: Any, world: ModuleType, tmp_path: Path
) -> None:
    send(page, server, written(tmp_path / "run.json", world.rank_file(6)), board="cirr/val")
    page.wait_for_selector(".outcome.bad")
    assert "board-unavailable" in page.inner_text(".findings")
    assert "cir datasets prepare cirr/val" in page.inner_text(".findings")


def test_a_page_says_what_organisers_say_and_holds_the_receipt(
    page: Any, server: Any, world: ModuleType, tmp_path: Path
) -> None:
    done = server.submitted(world.as_bytes(world.rank_file(61, "Looked at", hits=0.3)))
    for action, said in (("verify", {}), ("flag", {"reason": "trained on <b>test</b> data?"})):
        answer = page.request.post(f"{server.url}/api/submissions/{done['id']}/{action}", data=said)
        assert answer.ok
    page.goto(f"{server.url}{done['outcome_page']}")
    page.wait_for_selector(".facts :text('verified by the organisers')")
    assert "The organisers warn: trained on <b>test</b> data?" in page.inner_text("#outcome")
    page.click("summary:text('Signed receipt')")
    receipt = tmp_path / "receipt.json"
    receipt.write_text(page.inner_text(".history pre"))
    checked = world.cir("receipt", "verify", str(receipt))
    assert checked.returncode == 0, checked.stderr
    page.click("summary:text('What happened to it')")
    assert "flagged" in page.inner_text(".history ol")
    page.click(".to-board")
    badges = page.wait_for_selector("tr.marked .who").inner_text()
    assert "verified" in badges
    assert "flagged" in badges


def test_rank_groups_have_a_column_that_says_what_they_are(page: Any, server: Any, world: ModuleType) -> None:
    for seed, hits in ((51, 0.95), (52, 0.94), (53, 0.05)):
        server.submitted(world.as_bytes(world.rank_file(seed, f"In a group {seed}", hits=hits)))
    groups = [row["group"] for row in server.rows()]
    assert len(set(groups) - {None}) > 1
    page.goto(f"{server.url}/?board=shapes/val")
    page.wait_for_selector(".standings th.group")
    assert page.inner_text("th.group") == "Group"
    shown = page.eval_on_selector_all("td.group", "cells => cells.map(cell => cell.innerText)")
    assert shown == ["–" if group is None else str(group) for group in groups]
    leaders = page.eval_on_selector_all("tr.leads td.group", "cells => cells.map(cell => cell.innerText)")
    assert leaders == [str(group) for group in sorted(set(groups) - {None})]
    color = "cell => getComputedStyle(cell).borderTopColor"
    led = page.eval_on_selector("tr.leads td.group span", color)
    assert led != page.eval_on_selector("tr:not(.leads) td.group span", color)
    assert "Group: methods that paired tests cannot tell" in page.inner_text("#board .note")


def test_the_status_page_says_what_health_says(page: Any, server: Any) -> None:
    page.goto(server.url)
    page.click(".cir-foot a:text('Status')")
    page.wait_for_selector(".status")
    assert page.url.endswith("/status")
    health = server.get("/health").json()
    shown = page.inner_text(".status")
    assert "All is well" in shown
    assert f"version {health['workers'][0]['version']}, last sign of life" in shown
    assert f"{health['max_upload_bytes'] // 2**20} MB" in shown
    assert "Submissions that wait\n0" in shown
    page.click(".status a:text('as JSON')")
    assert page.url.endswith("/health")


def test_pages_load_nothing_from_elsewhere(page: Any, server: Any) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for path, selector in (
        ("/", ".picker"),
        ("/submit", "#send"),
        ("/submission", ".outcome"),
        ("/status", ".status"),
        ("/about", ".about h2"),
    ):
        page.goto(server.url + path)
        page.wait_for_selector(selector)
        page.wait_for_load_state("networkidle")
    assert len(asked) > 3
    assert [url for url in asked if not url.startswith((server.url, "data:", "blob:"))] == []


@pytest.mark.parametrize("width", [390, 1280])
def test_pages_fit_the_window(browser: Any, server: Any, world: ModuleType, width: int) -> None:
    done = server.submitted(world.as_bytes(world.rank_file(7, "A rather long name of a method " * 2)))
    context = browser.new_context(viewport={"width": width, "height": 800})
    page = context.new_page()
    for path, selector in (
        ("/?board=shapes/val", ".standings"),
        ("/submit", "#send"),
        (done["outcome_page"], "#act-withdraw"),
        ("/status", ".status"),
        ("/about", ".about h2"),
    ):
        page.goto(server.url + path)
        page.wait_for_selector(selector)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
    context.close()
