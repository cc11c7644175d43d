"""A query's page: what it shows is what the files rank, its filters count what `cir compare` counts."""

from __future__ import annotations

import html as entities
import io
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from datasets_publishers import write_circo
from fastapi import FastAPI
from fastapi.middleware import Middleware
from fastapi.testclient import TestClient
from leaderboard_world.entries import FILES, Entries, handed_in, server_with_board
from markupsafe import escape
from PIL import Image
from read_pages import opened

import cir_datasets
import submissions
from cir_datasets.images import COCO_PICTURES
from leaderboard import boards
from leaderboard.pages.addresses import page_at
from leaderboard.pages.query_page import _default_pair
from leaderboard.pages.site import PAGE_POLICY, Links, Page, Site, query_path
from leaderboard.server import Server
from leaderboard.settings import Settings
from leaderboard.web import site_routes
from leaderboard.web.origins import SecurityHeaders
from submissions.validation import read

BOARD = "shapes/val"
pytestmark = pytest.mark.slow


def query_page(server: Server, board: str, query_id: str, **asked: str) -> tuple[Page, str]:
    return opened(server, query_path(board, query_id), **asked)


def pair(entries: Entries) -> str:
    return f"{entries['sum'].id},{entries['random'].id}"


def test_each_method_shows_the_first_ten_of_its_file_with_the_marks_of_the_row(
    demo: Server, entries: Entries
) -> None:
    row = cir_datasets.load(BOARD).rows()[16]
    name = row["query_id"]
    _, html = query_page(demo, BOARD, name, e=pair(entries))
    lists = re.findall(r'<div class="list">.*?</div></div>', html, re.DOTALL)
    file = read(FILES["sum"])
    assert f'<p class="caption">{escape(row["relative_caption"])}</p>' in html
    shown = re.findall(r"<figure( class=\"\w+\")?><img .*?title=\"([\w-]+)\".*?<figcaption>(.*?)</", lists[0])
    assert [image for _, image, _ in shown] == file.rankings[name][:10]
    for place, (css, image, words) in enumerate(shown, start=1):
        kind = "✓ target" if image == row["target_image_id"] else ""
        kind = kind or ("✓ positive" if image in row["positive_image_ids"] else "")
        kind = kind or ("✗ hard neg." if image in row["negative_image_ids"] else "")
        assert words == f"{place} {kind}".strip()
        assert css == {"✓ target": ' class="good"', "✓ positive": ' class="right"', "": ""}.get(
            kind, ' class="bad"'
        )
    rank = file.rankings[name].index(row["target_image_id"]) + 1
    assert f"target at rank {rank}" in lists[0]
    subset = re.findall(r"title=\"([\w-]+)\"", lists[2])
    assert subset == file.subset_rankings[name]


def test_outcomes_are_those_of_cir_compare(demo: Server, entries: Entries) -> None:
    flips = submissions.compare([FILES["sum"], FILES["random"]], metrics=["recall@10"], draws=100)
    (flip,) = flips.pairs[0].flips
    won, lost = ([name for _, name in each] for each in (flip.hit_to_miss, flip.miss_to_hit))
    page, html = query_page(demo, BOARD, won[0], e=pair(entries), outcome="won")
    same = 300 - len(won) - len(lost)
    assert f"{len(won)} won, {len(lost)} lost, {same} same at R@10" in html
    assert "A hit has the target among its first 10; other right pictures do not count." in html
    assert "this query: <strong>won</strong>" in html
    turned = ",".join(reversed(pair(entries).split(",")))
    assert "this query: <strong>lost</strong>" in query_page(demo, BOARD, won[0], e=turned)[1]
    assert html.index('<form class="choices"') < html.index('aria-label="Queries"')
    ids = html[html.index("Show the pictures") :]
    assert f"<dt>target</dt><dd><code>{page.data['right_answers'][0]}</code>" in ids
    assert f"1. <code>{page.data['methods'][1]['rankings'][0]['top'][0]}</code>" in ids
    walked = [won[0]]
    while page.data and page.data["next"]:
        walked.append(page.data["next"])
        page, _ = query_page(demo, BOARD, walked[-1], e=pair(entries), outcome="won")
        assert page.data["previous"] == walked[-2]
        assert page.data["position"] == f"{len(walked)} of {len(won)}"
    assert walked == won
    other = next(name for name in cir_datasets.load(BOARD).query_ids if name not in won)
    _, html = query_page(demo, BOARD, other, e=pair(entries), outcome="won")
    assert f"Not among the {len(won)} of this filter" in html


def test_the_first_of_the_subset_decides_where_that_is_chosen(demo: Server, entries: Entries) -> None:
    rows = cir_datasets.load(BOARD).rows()
    first = {
        key: [read(FILES[key]).subset_rankings[row["query_id"]][0] == row["target_image_id"] for row in rows]
        for key in ("sum", "random")
    }
    both = list(zip(first["sum"], first["random"], strict=True))
    won, lost = both.count((True, False)), both.count((False, True))
    name = rows[both.index((True, False))]["query_id"]
    page, html = query_page(demo, BOARD, name, e=pair(entries), by="subset", outcome="won")
    assert f"{won} won, {lost} lost, {300 - won - lost} same at Rs@1" in html
    assert "A hit has the target first in its subset." in html
    assert (page.data["by"], page.data["position"]) == ("subset", f"1 of {won}")
    assert '<option value="subset" selected>Rs@1</option>' in html
    # Sessions have no subsets, and an unknown word chooses nothing.
    page, _ = query_page(demo, BOARD, name, e=pair(entries), by="other")
    assert page.data["by"] is None


def test_all_positives_are_right_where_what_ranks_counts_them_all(tmp_path: Path) -> None:
    own = {
        "primary": "map@10",
        "primary_label": "mAP@10",
        "columns": [{"metric": "recall@10", "label": "R@10"}],
    }
    with server_with_board(tmp_path / "home", "shapes/map", **own) as server:
        entry = handed_in(server, FILES["sum"].read_bytes(), "sum.json.gz", "shapes/map")
        assert server.lists.of(entry) is not None
        server.tables.refresh(boards.board("shapes/map"))
        rows, file = cir_datasets.load(BOARD).rows(), read(FILES["sum"])
        hits = [{*row["positive_image_ids"]} & {*file.rankings[row["query_id"]][:10]} for row in rows]
        page, html = query_page(server, "shapes/map", rows[0]["query_id"], e=entry.id)
        count = sum(map(bool, hits))
        assert f"<h1>{count} hit, {300 - count} missed at Hits@10</h1>" in html
        assert "A hit has a positive among its first 10; every positive counts as a target." in html
        assert {*page.data["right_answers"]} == {*rows[0]["positive_image_ids"]}


def test_aspects_filter_and_count(demo: Server, entries: Entries) -> None:
    rows = cir_datasets.load(BOARD).rows()
    having = [row["query_id"] for row in rows if "negation" in row["aspects"]]
    page, html = query_page(demo, BOARD, having[0], e=pair(entries), aspect="negation")
    assert page.data["next"] == having[1]
    assert f'<option value="negation" selected>negation ({len(having)})</option>' in html


def test_a_search_of_the_list_goes_on_from_query_to_query(demo: Server) -> None:
    rows = cir_datasets.load(BOARD).rows()
    blue = [row["query_id"] for row in rows if "blue" in row["relative_caption"].casefold()]
    page, html = query_page(demo, BOARD, blue[1], q=" BLUE ", aspect="")
    said = [page.data[name] for name in ("previous", "position", "next")]
    assert said == [blue[0], f"2 of {len(blue)}", blue[2]]
    assert f'q/{blue[2]}?q=BLUE"' in html
    assert 'name="q" value="BLUE"' in html


def test_no_method_stays_no_method_from_query_to_query(demo: Server, entries: Entries) -> None:
    demo.tables.refresh(boards.board(BOARD))
    name = cir_datasets.load(BOARD).query_ids[1]
    for asked, kept in (({"e": ","}, ","), ({}, "")):
        page, _ = query_page(demo, BOARD, name, **asked)
        assert (page.values["asked_for"]["e"], bool(page.values["pair"])) == (kept, not kept)


def test_the_leaders_of_two_groups_are_shown_where_nobody_chooses() -> None:
    rows = [
        {"submission": name, "group": group, "is_oracle": False, "block": "current"}
        for name, group in zip("abcd", (None, 1, 1, 2), strict=True)
    ]
    assert _default_pair(rows) == ["b", "d"]
    assert _default_pair(rows[:3]) == ["a", "b"]
    assert _default_pair([]) == []


def test_choices_that_there_are_not_are_said(demo: Server, entries: Entries) -> None:
    asked = {"outcome": "odd", "aspect": "zzz", "turn": "99", "by": "zzz", "member": "a/b"}
    page, html = query_page(demo, BOARD, "shapes_val_00001", e=pair(entries), **asked)
    for name, said in asked.items():
        assert f"{name}={said} is not a choice here" in html
    right = {"outcome": "won", "aspect": "negation", "member": BOARD}
    page, _ = query_page(demo, BOARD, "shapes_val_00001", e=pair(entries), **right)
    assert page.values["notes"] == []
    row = cir_datasets.load("shapes/multiturn_val").rows()[0]
    one = entries["tirg"].id
    _, html = query_page(demo, "shapes/multiturn_val", row["session_id"], e=one, turn="99")
    assert "turn=99 is not a choice here; “any turn” is taken." in html


def test_a_filter_is_not_called_unknown_where_lists_are_not_kept(
    demo: Server, entries: Entries, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(demo.lists), "of", lambda self, submission: None)
    asked = {"e": pair(entries), "outcome": "won", "by": "subset"}
    page, html = query_page(demo, BOARD, "shapes_val_00001", **asked)
    assert "is not a choice here" not in html
    assert len(page.values["notes"]) == 2


def test_sessions_show_every_turn_and_the_turn_that_decides_is_chosen(demo: Server, entries: Entries) -> None:
    row = cir_datasets.load("shapes/multiturn_val").rows()[2]
    file, one = read(FILES["tirg"]), entries["tirg"].id
    _, html = query_page(demo, "shapes/multiturn_val", row["session_id"], e=one)
    for turn in row["turns"]:
        assert f"<small>turn {turn['turn']}</small>{escape(turn['relative_caption'])}" in html
    for turn, listed in enumerate(file.rankings[row["session_id"]]):
        ranks = [listed.index(each) + 1 for each in row["ground_truth_ids"] if each in listed[:10]]
        words = f"target at rank {min(ranks)}" if ranks else "target not among its"
        assert re.findall(r"<small>(target .*?)</small>", html)[turn].startswith(words)
    sessions = cir_datasets.load("shapes/multiturn_val").rows()
    for turn in (1, 2, 3):
        page, html = query_page(
            demo, "shapes/multiturn_val", row["session_id"], e=one, turn=str(turn), outcome="hit"
        )
        hit = sum(
            any(
                set(each["ground_truth_ids"]) & set(listed[:10])
                for listed in file.rankings[each["session_id"]][:turn]
            )
            for each in sessions
        )
        assert f"<h1>{hit:,} hit, {200 - hit:,} missed at Hits@10</h1>" in html
        assert page.data["turn"] == str(turn)
    value = submissions.score(FILES["tirg"]).metrics["hits@10@turn3"]
    assert hit == round(200 * value)


def test_a_dialogue_shows_what_was_said_in_each_round(demo: Server, entries: Entries) -> None:
    talk = entries["talk"]
    lists = demo.lists.of(talk)
    name = lists.member().names[0]
    _, html = query_page(demo, "shapes/dialogue_val", name, e=talk.id)
    said = [escape(each.caption) for each in lists.member().rounds(name)]
    rounds = html[html.index(f'e/{talk.id}">') :]
    assert re.findall(r'<p class="caption"><small>round \d+</small>(.*?)</p>', rounds) == said


def test_pictures_of_others_are_ids_and_a_suite_has_members(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from benchmark_world.suite import write_home

    write_home(tmp_path / "data")
    monkeypatch.setenv("CIR_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CIR_VERIFICATION_MODE", "no_checks")
    page, html = query_page(server, "fashioniq/val", "shirt_val_00001")
    assert page.status == 404
    assert "are not prepared on this server" in html
    assert "cir datasets prepare fashioniq/dress_val fashioniq/shirt_val fashioniq/toptee_val" in html
    assert not (tmp_path / "cache" / "prepared").exists(), "nothing is prepared for a reader"
    for category in ("dress", "shirt", "toptee"):
        cir_datasets.load(f"fashioniq/{category}_val")
    page, html = query_page(server, "fashioniq/val", "shirt_val_00001")
    assert page.status == 200, html
    assert '<span class="id">S002</span>' in html
    assert "<img" not in html
    assert "the pictures are their publisher's." in entities.unescape(html)
    assert page.data["benchmark"] == "fashioniq/shirt_val"


def test_a_hosts_pictures_are_small_copies_where_it_names_their_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from benchmark_world.suite import write_home

    write_home(tmp_path / "data")
    monkeypatch.setenv("CIR_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CIR_VERIFICATION_MODE", "no_checks")
    folder = tmp_path / "images" / "fashion-iq"
    folder.mkdir(parents=True)
    for name in ("S002", "alien"):
        Image.new("RGB", (400, 200), "teal").save(folder / f"{name}.png")
    cir_datasets.load("fashioniq/shirt_val")
    place = "site/pictures/of/fashioniq/shirt_val"
    for pictures, status in ((tmp_path / "images", 200), (None, 404)):
        server = Server.open(Settings(tmp_path / "home", pictures=pictures))
        _, html = query_page(server, "fashioniq/shirt_val", "shirt_val_00001")
        assert (f'<img src="../../../../{place}/S002.jpg"' in html) is (status == 200)
        app = FastAPI()
        app.include_router(site_routes.router(server))
        client = TestClient(app)
        answer = client.get(f"/{place}/S002.jpg")
        assert answer.status_code == status
        assert client.get(f"/{place}/alien.jpg").status_code == 404, "it is of no gallery"
        assert client.get(f"/{place}/S003.jpg").status_code == 404
        if status == 200:
            with Image.open(io.BytesIO(answer.content)) as small:
                assert (small.format, small.size) == ("JPEG", (192, 96))
        server.close()


def test_cocos_pictures_come_from_coco_where_a_reader_asks_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_circo(tmp_path / "data", "val")
    monkeypatch.setenv("CIR_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CIR_VERIFICATION_MODE", "no_checks")
    cir_datasets.load("circo/val")
    server = Server.open(Settings(tmp_path / "home"))
    page, html = query_page(server, "circo/val", "0")
    assert (page.policy, "<img" in html) == (PAGE_POLICY, False)
    (link,) = re.findall(r'href="([^"]*pictures=publisher)"', html)
    assert "q/0?" in link
    page, html = query_page(server, "circo/val", "0", pictures="publisher")
    shown = re.findall(r'<img src="([^"]+)"', html)
    assert {address.rpartition("/")[2] for address in shown} >= {"000000123456.jpg", "000000234567.jpg"}
    assert {address.rpartition("/")[0] + "/" for address in shown} == {COCO_PICTURES}
    assert 'q/1?pictures=publisher"' in html, "the next query goes on with them"
    app = FastAPI(middleware=[Middleware(SecurityHeaders)])
    app.include_router(site_routes.router(server))
    client = TestClient(app)
    for query, allowed in (("", False), ("?pictures=publisher", True)):
        said = client.get(f"/b/circo/val/q/0{query}").headers["content-security-policy"]
        assert (COCO_PICTURES in said) is allowed
    server.close()


def test_what_cannot_be_shown_is_said(demo: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    page, html = query_page(demo, BOARD, "shapes_val_0001")
    assert page.status == 404
    near = re.findall(r'<a href="../../../../b/shapes/val/q/(\w+)">\1</a>', html)
    assert len(near) == 5
    assert set(near) < set(cir_datasets.load(BOARD).query_ids)
    assert query_page(demo, BOARD, near[0])[0].status == 200
    monkeypatch.setattr(demo.tables, "problem", lambda board: f"{board.id} is not here.")
    page, html = query_page(demo, BOARD, "shapes_val_00001")
    assert page.status == 404
    assert f"{BOARD} is not here." in html


def test_a_sealed_board_shows_no_query_and_no_lists_and_compares_nothing(
    demo: Server, entries: Entries, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed = boards.board(BOARD).model_copy(update={"track": "sealed", "ground_truth": "/nowhere"})
    find = boards.find
    monkeypatch.setattr(boards, "find", lambda name: sealed if name == BOARD else find(name))
    row = cir_datasets.load(BOARD).rows()[3]
    page, html = query_page(demo, BOARD, row["query_id"], e=pair(entries))
    assert (page.status, page.data) == (404, None)
    assert "is sealed" in html
    assert row["target_image_id"] not in html
    assert row["relative_caption"] not in html
    one = page_at(Site(demo), f"e/{entries['sum'].id}", {})
    html = Site(demo).written(one, Links("e/x"))
    assert "rank files are not given out" in html
    for words in (">sha256 ", "/file", "Protocol check", "Where targets stand", "query by query"):
        assert words not in html
    refused = page_at(Site(demo), "compare", {"e": pair(entries)})
    assert refused.status == 400
    assert "is sealed: it publishes no values per query" in Site(demo).written(refused, Links("compare"))


def test_entries_that_are_not_on_the_board_are_named(demo: Server, entries: Entries) -> None:
    other = entries["tirg"].id
    _, html = query_page(demo, BOARD, "shapes_val_00001", e=f"{entries['sum'].id},{other},<b>")
    assert f"{other} is not an entry of this board" in html
    assert "&lt;b&gt; is not an entry of this board" in html


ODD = ["a/b", "a%2Fb", "two words", "ü?x=1#y", '"><b>', "/q/", "....", "plain"]


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A board of a benchmark whose ids and captions are as odd as may be."""
    folder = tmp_path_factory.mktemp("odd")
    (folder / "odd").mkdir()
    images = [f"image/{number} ü" for number in range(20)]
    queries = [
        {
            "query_id": name,
            "reference_image_id": images[0],
            "relative_caption": f"<script>alert({number})</script>",
            "target_image_id": images[number + 1],
        }
        for number, name in enumerate(ODD)
    ]
    (folder / "odd/card.yaml").write_text("name: odd\ntitle: Odd\nprivate: true\n")
    (folder / "odd/images.txt").write_text("".join(f"{each}\n" for each in images))
    (folder / "odd/queries.jsonl").write_text("".join(json.dumps(each) + "\n" for each in queries))
    (folder / "home/boards").mkdir(parents=True)
    declared = {"id": "odd/test", "benchmark": "odd/test", "order": 1, "track": "open", "group": "Own"}
    declared |= {"title": "Odd", "short_title": "Odd", "primary": "recall@10", "primary_label": "R@10"}
    declared |= {"columns": [{"metric": "recall@1", "label": "R@1"}], "description": "Odd ids."}
    (folder / "home/boards/odd.yaml").write_text(json.dumps(declared))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CIR_BENCHMARKS", str(folder / "odd"))
        patch.setenv("CIR_CACHE_HOME", str(folder / "cache"))
        server = Server.open(Settings(folder / "home"))
        draw = random.Random(1)
        rankings = {name: draw.sample(images[1:], 19) for name in ODD}
        whole = {"format": "cir-rank-file", "format_version": 1, "benchmark": "odd/test"}
        whole |= {"benchmark_version": 1, "method": {"name": "Odd"}}
        sent = handed_in(server, json.dumps({**whole, "rankings": rankings}).encode(), "odd.json")
        # Intake refuses such a name; here it stands in the store.
        evil = {"name": "<img src=x onerror=alert(1)>"}
        server.lists.of(server.store.append(sent, [("corrected", {"fields": ["name"]})], method=evil))
        yield Site(server)
        server.close()
        boards.use(None)


@pytest.mark.parametrize("name", ODD, ids=lambda name: quote(name, safe=""))
def test_odd_ids_have_a_page_that_links_to_its_neighbours(odd: Site, name: str) -> None:
    app = FastAPI()
    app.include_router(site_routes.router(odd.server))
    with TestClient(app) as client:
        path = f"/{query_path('odd/test', name)}"
        answer = client.get(path)
        assert answer.status_code == 200
        assert f"› {escape(name)}</p>" in answer.text
        assert "<script>alert" not in answer.text
        assert "<img src=x" not in answer.text
        assert "&lt;script&gt;alert" in answer.text
        place = ODD.index(name)
        for way, other in (("next", place + 1), ("prev", place - 1)):
            found = re.search(rf'rel="{way}" class="[\w ]+" href="([^"]+)"', answer.text)
            if not 0 <= other < len(ODD):
                assert found is None
                continue
            there = client.get(str(answer.request.url.join(entities.unescape(found[1]))))
            as_json = client.get(str(there.request.url.copy_merge_params({"format": "json"})))
            assert as_json.json()["id"] == ODD[other]
        for address in re.findall(r'(?:src|href)="(\.[^"]*site/[^"]+)"', answer.text):
            there = answer.request.url.join(entities.unescape(address))
            assert urlsplit(str(there)).path.startswith("/site/")
