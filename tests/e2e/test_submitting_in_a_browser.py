"""Files are sent, corrected, published and withdrawn in headless Chromium, on pages of a real server."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import leaderboard_world as world
import pytest
from benchmark_world.dialogues import BOARD as TALKING
from benchmark_world.dialogues import as_lines, shapes_dialogue

pytestmark = [pytest.mark.browser, pytest.mark.slow]

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)> ${alert(3)} {{value}} [x](javascript:alert(4))"
)


def written(path: Path, document: dict[str, Any]) -> Path:
    path.write_text(json.dumps(document))
    return path


def choose(page: Any, server: Any, file: Path, board: str = "") -> None:
    page.goto(f"{server.url}/submit?board={board}")
    assert page.input_value("#field-board") == board
    page.set_input_files("#field-file", str(file))
    page.wait_for_selector("#named .notice")


def send(page: Any, server: Any, file: Path, board: str = "") -> None:
    choose(page, server, file, board)
    page.click("#send")


def focus_is_in(page: Any, selector: str) -> bool:
    return bool(page.evaluate("where => !!document.activeElement?.closest(where)", selector))


def wait_for_focus_in(page: Any, selector: str) -> None:
    # A page may come with its outcome already in it, and moves the focus when its script has begun.
    page.wait_for_function("where => document.activeElement?.closest(where)", arg=selector)


def test_a_rank_file_is_checked_then_published_with_the_words_of_the_form(
    page: Any, server: Any, tmp_path: Path
) -> None:
    own = {"backbone": "ViT-B/16", "zero_shot": True, "caption_rule": "the first alone"}
    document = world.rank_file(1, "From the browser", hits=0.5, **own)
    send(page, server, written(tmp_path / "run.json", document))
    page.wait_for_selector("#outcome.good")
    wait_for_focus_in(page, "#outcome")
    assert "From the browser" in page.inner_text("#outcome h2")
    assert "shapes/val#2 | data:" in page.inner_text("#outcome .signature")
    assert "not on the board" in page.inner_text("#outcome")
    assert page.inner_text("#outcome .figures .main").split() == ["R@10", "50.00"]
    assert "From the browser" not in [row["method"]["name"] for row in server.rows()]
    assert page.get_by_label("Method name").input_value() == "From the browser"
    assert page.get_by_label("Backbone").input_value() == "CLIP ViT-B/16"
    assert page.get_by_label("Zero-shot").input_value() == "yes"
    page.get_by_label("Backbone").fill("ViT-B/32")
    page.get_by_label("Submitted by").fill("A team")
    page.click("#more summary")
    assert page.get_by_label("Caption rule").input_value() == "other: the first alone"
    page.get_by_label("Text fields").fill("relative_caption, captions")
    page.get_by_label("Aggregation").fill("latest")
    page.get_by_label("Trained on").fill("made-up triplets")
    page.get_by_label("Caption rule").fill("joined by a blank")
    page.click("#act-publish")
    page.wait_for_selector("#said:text('Published.')")
    wait_for_focus_in(page, "#outcome")
    (entry,) = [row for row in server.rows() if row["method"]["name"] == "From the browser"]
    assert entry["submitter"] == "A team"
    assert entry["method"] == {
        "name": "From the browser",
        "backbone": "CLIP ViT-B/32",
        "zero_shot": True,
        "caption_rule": "space",
        "text_fields": ["relative_caption", "captions"],
        "aggregation": "latest",
        "trained_on": ["made-up triplets"],
    }
    assert page.get_by_label("Caption rule").input_value() == "space"
    page.click(".to-board")
    row = page.wait_for_selector("tr.marked")
    assert "From the browser" in row.inner_text()
    assert f"{100 * entry['main']:.2f}" in row.inner_text()
    page.go_back()
    page.wait_for_selector("#act-correct")
    page.press("#word-name", "Enter")  # saves, and does not take it off the board
    page.wait_for_selector("#said:text('Nothing has changed.')")


def test_a_broken_file_shows_its_findings_and_leaves_no_row(page: Any, server: Any, tmp_path: Path) -> None:
    before = server.rows()
    document = world.broken(world.rank_file(2, "Broken"))
    query = next(iter(document["rankings"]))
    document["rankings"]["no such query"] = document["rankings"][query]
    send(page, server, written(tmp_path / "broken.json", document))
    page.wait_for_selector("#outcome.bad h2:text('Refused: 2 errors')")
    wait_for_focus_in(page, "#outcome")
    groups = page.locator(".finding").all_inner_texts()
    assert [group.split()[:2] for group in groups] == [
        ["unknown-query", "error"],
        ["duplicate-image", "error"],
    ]
    assert f"{query}: " in groups[1]
    assert page.get_by_text("Refused: ").count() == 1, "said once"
    assert "is ranked 1st and 2nd" in groups[1]
    assert "cir validate broken.json" in groups[1]
    assert server.rows() == before
    page.reload()
    page.wait_for_selector("#outcome.bad h2:text('Refused')")
    assert page.query_selector("#owner-form") is None
    page.click("a:text('Send a corrected file')")
    page.wait_for_selector("#send")
    assert page.url.endswith("/submit?board=shapes%2Fval")


def test_without_javascript_a_submission_can_be_read_and_refreshes_itself(browser: Any, server: Any) -> None:
    document = world.broken(world.rank_file(21, "Broken and read"))
    refused = server.submitted(world.as_bytes(document))
    shown = server.submitted(world.as_bytes(world.rank_file(22, "Read without a script", hits=0.25)))
    context = browser.new_context(java_script_enabled=False, viewport={"width": 390, "height": 800})
    page = context.new_page()
    page.goto(server.url + refused["outcome_page"])
    assert "duplicate-image" in page.inner_text(".finding")
    assert "Fix:" in page.inner_text(".finding")
    page.goto(server.url + shown["outcome_page"])
    assert "25.00" in page.inner_text("#outcome")
    assert "needs JavaScript" in page.inner_text("#owner-form")
    assert not page.is_visible("[data-act]"), "a button that does nothing is not shown"
    page.click(".to-board")
    assert "Read without a script" in page.inner_text("tr.marked")
    late = server.upload(world.as_bytes(world.rank_file(23, "Looked at while it waits"))).json()
    page.goto(server.url + late["outcome_page"])
    # No script asks: the page's own <meta> loads it again until it is judged.
    page.wait_for_selector("#outcome.good")
    assert "Looked at while it waits" in page.inner_text("#outcome h2")
    context.close()


def test_a_file_on_a_wrong_board_is_sent_to_the_right_one_by_a_click(
    page: Any, server: Any, tmp_path: Path
) -> None:
    file = written(tmp_path / "run.json", world.rank_file(11, "On the wrong board"))
    send(page, server, file, board="shapes/multiturn_val")
    page.wait_for_selector("#outcome.bad h2:text('Refused')")
    assert "send it to the board shapes/val" in page.inner_text(".finding .fix")
    page.click("button:text('Check it on Shapes, single-turn')")
    page.wait_for_selector("#outcome.good")
    wait_for_focus_in(page, "#outcome")
    assert "On the wrong board" in page.inner_text("#outcome h2")


def test_a_transcript_goes_from_a_board_of_rank_files_to_the_table_of_dialogues(
    page: Any, server: Any, tmp_path: Path
) -> None:
    talk, empty = tmp_path / "talk.jsonl", tmp_path / "empty.jsonl"
    talk.write_bytes(as_lines(shapes_dialogue(name="Talked", words="<b>no</b> star")))
    empty.write_bytes(b"")
    send(page, server, empty, board=TALKING)
    page.wait_for_selector("#outcome .finding")
    assert "write the transcript again" in page.inner_text("#outcome")
    send(page, server, talk, board="shapes/val")
    page.wait_for_selector("#outcome.bad h2:text('Refused')")
    assert "It is a transcript of dialogues, not a rank file" in page.inner_text(".finding")
    page.click("button:text('Check it on Shapes, dialogue')")
    page.wait_for_selector("#outcome.good")
    assert "Talked" in page.inner_text("#outcome h2")
    page.click("#act-publish")
    page.click(".to-board")
    shown = page.wait_for_selector("tr.marked").inner_text()
    (entry,) = server.rows(TALKING)
    assert (entry["method"]["name"], entry["rank"]) == ("Talked", 1)
    assert "Talked" in shown
    assert f"{100 * entry['main']:.2f}" in shown


def test_a_rank_file_on_a_board_of_dialogues_is_sent_to_its_own_by_a_click(
    page: Any, server: Any, tmp_path: Path
) -> None:
    send(page, server, written(tmp_path / "run.json", world.rank_file(12, "No dialogue")), board=TALKING)
    page.wait_for_selector("#outcome.bad h2:text('Refused')")
    assert "It is a rank file, not a transcript" in page.inner_text(".finding")
    page.click("button:text('Check it on Shapes, single-turn')")
    page.wait_for_selector("#outcome.good")
    assert "No dialogue" in page.inner_text("#outcome h2")


def test_the_board_is_said_in_words_before_the_file_is_checked(
    page: Any, server: Any, tmp_path: Path
) -> None:
    file = written(tmp_path / "run.json", world.rank_file(41, "Named"))
    choose(page, server, file)
    page.wait_for_selector("#named :text('it will be checked there')")
    assert "Shapes, single-turn (shapes/val)" in page.inner_text("#named")
    choose(page, server, file, board="shapes/multiturn_val")
    page.wait_for_selector("#named :text('you chose Shapes, multi-turn')")
    page.click("#as-named")
    page.wait_for_selector("#named :text('it will be checked there')")
    page.wait_for_selector("#as-named", state="hidden")
    page.click("#send")
    page.wait_for_selector("#outcome.good")
    assert page.inner_text(".crumbs").split(" › ")[1] == "Shapes, single-turn"


def test_a_file_that_names_no_board_is_asked_for_one(page: Any, server: Any, tmp_path: Path) -> None:
    choose(page, server, written(tmp_path / "run.json", {"0": [1, 2]}))
    page.wait_for_selector("#named :text('name no benchmark')")
    photo = tmp_path / "photo.png"
    photo.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(99))
    choose(page, server, photo, board="shapes/val")
    page.wait_for_selector("#named :text(\"'photo.png' is not a rank file\")")
    choose(page, server, tmp_path / "run.json")
    page.wait_for_selector("#named :text('name no benchmark')")
    page.click("#send")
    page.wait_for_selector("#outcome .outcome.bad")
    wait_for_focus_in(page, "#outcome .outcome")
    shown = page.inner_text("#outcome .finding")
    assert "missing-board" in shown
    assert "in the list below" in shown
    assert page.locator("#field-board option[value='shapes/val']").inner_text().startswith("Shapes, single")


def test_without_a_file_the_page_says_so(page: Any, server: Any) -> None:
    page.goto(f"{server.url}/submit")
    page.click("#send")
    assert focus_is_in(page, "#field-file")
    assert page.eval_on_selector("#field-file", "one => one.validity.valueMissing")


DROP = """(files) => {
    const held = new DataTransfer();
    for (const [name, text] of files) held.items.add(new File([text], name));
    const drop = new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: held });
    document.querySelector("#drop").dispatchEvent(drop);
}"""


def test_what_cannot_be_taken_is_said_before_it_is_sent_and_another_file_takes_the_chosen_ones_place(
    page: Any, server: Any, tmp_path: Path
) -> None:
    page.goto(f"{server.url}/submit")
    sent: list[str] = []
    page.on("request", lambda asked: sent.append(asked.url) if asked.method == "POST" else None)
    large = tmp_path / "large.json"
    with large.open("wb") as file:
        file.truncate(65 * 2**20)
    page.set_input_files("#field-file", str(large))
    page.wait_for_selector("#named :text('large.json has 65.0 MB, and at most 64 MB are taken')")
    page.evaluate(DROP, [["a.json", "{}"], ["b.json", "{}"]])
    page.wait_for_selector("#named :text('2 files were dropped, and one is taken at a time.')")
    assert sent == []
    nameless = written(tmp_path / "none.json", {"0": [1, 2]})
    page.set_input_files("#field-file", str(nameless))
    page.click("#send")
    wait_for_focus_in(page, "#outcome .outcome.bad")
    # Another file: what was said of the last one goes.
    first = written(tmp_path / "first.json", world.rank_file(51, "First"))
    page.set_input_files("#field-file", str(first))
    page.wait_for_selector("#named :text('it will be checked there')")
    page.wait_for_selector("#outcome .outcome", state="detached")
    page.evaluate(DROP, [["second.json", json.dumps({"benchmark": "cirr/val"})]])
    page.wait_for_selector("#named :text('cirr/val takes no submissions now')")
    assert page.eval_on_selector("#field-file", "one => one.files[0].name") == "second.json"


def test_a_click_takes_the_board_that_the_file_names(page: Any, server: Any, tmp_path: Path) -> None:
    choose(page, server, written(tmp_path / "run.json", world.rank_file(55, "Named")), "shapes/multiturn_val")
    page.click("#as-named")
    page.wait_for_selector("#named :text('it will be checked there')")
    assert page.input_value("#field-board") == ""
    wait_for_focus_in(page, "#field-board")


def test_a_double_click_checks_a_file_once(page: Any, server: Any, tmp_path: Path) -> None:
    choose(page, server, written(tmp_path / "twice.json", world.rank_file(52, "Twice")))
    calls: list[str] = []
    page.on("request", lambda asked: calls.append(asked.url) if asked.url.endswith("/submit") else None)
    page.dblclick("#send")
    page.wait_for_selector("#outcome.good")
    assert len(calls) == 1


def test_the_page_goes_on_when_a_server_that_was_restarted_is_back(page: Any, tmp_path: Path) -> None:
    with world.serving(tmp_path / "home") as running:
        port = running.url.rpartition(":")[2]
        choose(page, running, written(tmp_path / "run.json", world.rank_file(53, "Restarted")))
        running.stop()
        page.click("#send")
        page.wait_for_selector("#outcome :text('The server does not answer')")
        with world.serving(tmp_path / "home", port=int(port)) as again:
            assert again.url == running.url
            page.click("#send")
            page.wait_for_selector("#outcome.good")


def test_an_old_window_writes_over_nothing(page: Any, server: Any, tmp_path: Path) -> None:
    send(page, server, written(tmp_path / "run.json", world.rank_file(54, "Two windows", hits=0.3)))
    page.wait_for_selector("#act-publish")
    other = page.context.new_page()
    other.goto(page.url)
    other.fill("#word-name", "From the other window")
    other.click("#act-publish")
    other.wait_for_selector("#said:text('Published.')")
    page.fill("#word-name", "From the old window")
    page.click("#act-publish")
    page.wait_for_selector("#trouble .notice")
    assert "has changed since you looked at it: nothing was done." in page.inner_text("#trouble")
    assert [row["method"]["name"] for row in server.rows() if "window" in row["method"]["name"]] == [
        "From the other window"
    ]
    other.close()


def test_a_board_without_data_refuses_on_the_page(page: Any, server: Any, tmp_path: Path) -> None:
    send(page, server, written(tmp_path / "run.json", world.rank_file(6)), board="cirr/val")
    page.wait_for_selector("#outcome .finding")
    assert "board-unavailable" in page.inner_text("#outcome")
    assert "cir datasets prepare cirr/val" in page.inner_text("#outcome")


def test_what_a_check_says_stays_where_the_look_at_the_file_is_answered_later(
    page: Any, server: Any, tmp_path: Path
) -> None:
    page.goto(f"{server.url}/submit")
    waiting: list[Any] = []

    def first_waits(route: Any) -> None:
        if waiting:
            route.continue_()
        else:
            waiting.append(route)

    page.route("**/submit/look*", first_waits)
    nameless = {key: part for key, part in world.rank_file(6).items() if key not in ("benchmark", "split")}
    page.set_input_files("#field-file", str(written(tmp_path / "run.json", nameless)))
    page.click("#send")
    page.wait_for_selector("#outcome .finding")
    with page.expect_response("**/submit/look*"):
        waiting[0].continue_()
    assert page.query_selector("#outcome .finding")
    assert page.inner_text("#named") == "", "a page tells once"


def test_the_page_stands_in_the_layout_of_all_pages(browser: Any, server: Any) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{server.url}/submit")
    assert page.title() == "Submit · CIR leaderboard"
    links = page.locator("header nav a").all_inner_texts()
    assert links == ["Boards", "Published results", "Metrics", "Submit", "About"]
    assert page.get_attribute("meta[property='og:title']", "content") == "Submit"
    assert page.query_selector("meta[property='og:image']") is None
    assert f"cir submit FILE --to {server.url}" in page.inner_text("main")
    context.close()


def test_without_javascript_a_plain_form_takes_good_files_and_says_what_is_wrong_with_others(
    browser: Any, server: Any, tmp_path: Path
) -> None:
    context = browser.new_context(java_script_enabled=False, viewport={"width": 390, "height": 800})
    page = context.new_page()

    def sent(file: Path, board: str = "") -> None:
        page.goto(f"{server.url}/submit?board={board}")
        assert page.input_value("#field-board") == board
        page.set_input_files("#field-file", str(file))
        page.click("main form button")

    document = world.rank_file(24, "Sent without a script", hits=0.5)
    sent(written(tmp_path / "run.json", document))
    page.wait_for_selector("#outcome.good")
    assert "/s/" in page.url
    assert "Sent without a script" in page.inner_text("#outcome h2")
    assert "Sent without a script" not in [row["method"]["name"] for row in server.rows()]
    page.goto(f"{server.url}/submit")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.check("main form [name=publish]")
    document = world.rank_file(26, "Published without a script", hits=0.4)
    page.set_input_files("#field-file", str(written(tmp_path / "again.json", document)))
    page.click("main form button")
    page.wait_for_selector("a.to-board")
    sent(written(tmp_path / "broken.json", world.broken(world.rank_file(25, "Broken without"))))
    page.wait_for_selector("#outcome.bad")
    assert "duplicate-image" in page.inner_text(".finding")
    photo = tmp_path / "photo.png"
    photo.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(99))
    sent(photo, "shapes/val")
    said = page.inner_text(".finding")
    assert "The file 'photo.png' is not a rank file, bundle or transcript: it is a PNG picture." in said
    assert page.url == f"{server.url}/submit"
    # What is refused while it comes in is a page, too.
    large = tmp_path / "large.json"
    with large.open("wb") as file:
        file.truncate(65 * 2**20)
    sent(large)
    assert page.inner_text(".finding code") == "too-large"
    assert page.title() == "Not accepted · CIR leaderboard"
    sent(written(tmp_path / "none.json", {"0": [1, 2]}))
    assert "in the list below" in page.inner_text(".finding")
    page.click("a:text('Choose another file')")
    assert page.input_value("#field-board") == ""
    context.close()


def test_a_private_link_opens_the_desk_and_goes_to_nobody_else(browser: Any, tmp_path: Path) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 800}, accept_downloads=True)
    page = context.new_page()
    page.set_default_timeout(300_000)
    asked: list[str] = []
    with_key: list[str] = []

    def note(request: Any) -> None:
        # What goes over the wire as an address: without what stands behind the #.
        headers = request.all_headers()
        asked.append(request.url.partition("#")[0] + headers.get("referer", ""))
        with_key.extend([request.url] if "x-edit-key" in headers else [])

    with world.serving_here(tmp_path / "home", CIR_LEADERBOARD_ACCOUNTS="tokens") as server:
        file = written(tmp_path / "run.json", world.rank_file(12, "By private link", notes="folded away"))
        page.on("requestfinished", note)
        send(page, server, file)
        page.wait_for_selector(".notice:has-text('bookmark it')")
        page.wait_for_selector("#act-publish")
        link = page.url
        key = link.partition("#")[2]
        assert key.startswith("edit_")
        page.keyboard.press("Control+Home")
        page.focus("a.skip")
        page.keyboard.press("Enter")
        assert (focus_is_in(page, "#main"), page.url) == (True, link)
        page.goto("about:blank")
        page.goto(link)
        page.wait_for_selector("#act-publish")
        page.get_by_label("Method name").fill("Renamed")
        page.get_by_label("Paper").fill("javascript:alert(1)")
        page.click("#act-publish")
        page.wait_for_selector("#trouble :text('https')")
        wait_for_focus_in(page, "#trouble")
        assert page.get_by_label("Method name").input_value() == "Renamed"
        page.get_by_label("Paper").fill("https://example.org/paper")
        page.click("#act-publish")
        page.wait_for_selector("#said:text('Published.')")
        assert server.rows()[0]["method"]["notes"] == "folded away"
        assert "corrected" in page.inner_text(".events")
        assert "name: By private link → Renamed" in page.inner_text(".events")
        page.click("#receipt-box summary")
        with page.expect_download() as given:
            page.click("text=Download the receipt")
        given.value.save_as(tmp_path / "receipt.json")
        world.cir("receipt", "verify", str(tmp_path / "receipt.json"), str(file), code=0)
        stranger = link.partition("#")[0]
        page.goto(stranger)
        page.wait_for_selector("#outcome.good")
        assert page.query_selector("#owner-form") is None
        assert page.query_selector("#receipt") is None
        page.goto("about:blank")
        page.goto(link)
        page.click("#act-withdraw")
        page.wait_for_selector("#sure")
        assert page.evaluate("document.activeElement.textContent") == "Keep it"
        page.keyboard.press("Escape")
        assert len(server.rows()) == 1
        page.click("#act-withdraw")
        page.click("#sure button:text('Withdraw it')")
        page.wait_for_selector("#outcome.bad:has-text('withdrawn')")
        wait_for_focus_in(page, "#outcome")
        assert server.rows() == []
        assert "Nothing of it can be changed" in page.inner_text("#submission")
        page.goto(stranger)
        page.wait_for_selector("#outcome.bad:has-text('none that you may read')")
        assert {re.sub(r"/s/\w+$", "/s/ID", one.removeprefix(server.url)) for one in with_key} > {"/s/ID"}
        assert any("/submit/look" in request for request in asked)
        assert [request for request in asked if key in request] == []
        written_down = server.log.read_text() + "".join(
            path.read_bytes().decode("latin-1") for path in server.home.rglob("*") if path.is_file()
        )
        assert key not in written_down
    context.close()


def test_hostile_ids_and_file_names_in_findings_are_text(page: Any, server: Any, tmp_path: Path) -> None:
    document = world.rank_file(4, "<script>alert(6)</script>")
    document["rankings"][HOSTILE] = next(iter(document["rankings"].values()))
    send(page, server, written(tmp_path / "a<img src=x onerror=alert(7)>.json", document))
    page.wait_for_selector("#outcome.bad h2:text('Refused')")
    shown = page.inner_text("#submission")
    assert "unknown-query" in shown
    assert "bad-metadata" in shown
    assert "<script>alert(1)</script>" in shown
    assert page.query_selector_all("main script, main img, main [onerror]") == []


def test_what_owners_and_organisers_write_is_text(page: Any, server: Any) -> None:
    document = world.rank_file(3, "Hostile notes", notes=HOSTILE, trained_on=[HOSTILE[:60]])
    done = server.submitted(world.as_bytes(document), form={"submitter": "<b onmouseover=alert(5)>me</b>"})
    for action, said in (("verify", {}), ("flag", {"reason": "trained on <b>test</b> data?"})):
        assert page.request.post(f"{server.url}/api/submissions/{done['id']}/{action}", data=said).ok
    page.goto(f"{server.url}{done['outcome_page']}")
    shown = page.inner_text("#submission")
    assert "The organisers warn: trained on <b>test</b> data?" in shown
    assert "verified by the organisers" in shown
    assert "<b onmouseover=alert(5)>me</b>" in shown
    assert page.input_value("#word-notes") == HOSTILE
    assert "flagged" in page.inner_text(".events")
    page.click("#more summary")
    page.fill("#word-paper", "<img src=x onerror=alert(8)>")
    page.click("#act-correct")
    page.wait_for_selector("#trouble .notice")
    assert page.query_selector_all("main script, main img, main b, main [onerror], main [onmouseover]") == []


def test_a_file_is_chosen_checked_and_published_by_the_keyboard_alone(
    page: Any, server: Any, tmp_path: Path
) -> None:
    file = written(tmp_path / "keys.json", world.rank_file(31, "By keyboard", hits=0.75))

    def tab_to(selector: str, limit: int = 60) -> None:
        page.wait_for_selector(selector)
        for _ in range(limit):
            page.keyboard.press("Tab")
            if focus_is_in(page, selector):
                return
        raise AssertionError(f"{selector} is not reached by Tab")

    # Who listens only when Enter is pressed may be too late: Chromium then opens a dialog of its own.
    page.on("filechooser", lambda _: None)
    page.goto(f"{server.url}/submit")
    tab_to("#field-file")
    with page.expect_file_chooser() as chooser:
        page.keyboard.press("Enter")
    chooser.value.set_files(str(file))
    page.wait_for_selector("#named .notice")
    tab_to("#send")
    page.keyboard.press("Enter")
    page.wait_for_selector("#outcome.good")
    wait_for_focus_in(page, "#outcome")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    tab_to("#act-publish")
    page.keyboard.press("Enter")
    page.wait_for_selector("#said:text('Published.')")
    wait_for_focus_in(page, "#outcome")
    tab_to(".to-board")
    page.keyboard.press("Enter")
    assert "By keyboard" in page.wait_for_selector("tr.marked").inner_text()
