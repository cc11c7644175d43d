"""The tab with a board's queries: all of them are there, and a search finds those that say it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from read_pages import followed, read, words

import cir_datasets
from cir_datasets.browse import PAGE_QUERIES
from leaderboard import boards
from leaderboard.export.html import MirrorLinks, file_name
from leaderboard.pages.addresses import page_at
from leaderboard.pages.queries import why_hidden
from leaderboard.pages.site import Site
from leaderboard.server import Server
from leaderboard.settings import Settings

VAL, SESSIONS = "b/shapes/val", "b/shapes/multiturn_val"
EVIL = '"><script>alert(1)</script>'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    for name in ("shapes/val", "shapes/multiturn_val"):
        cir_datasets.load(name)
    opened = Server.open(Settings(tmp_path_factory.mktemp("home")))
    yield opened
    opened.close()


def listed(server: Server, path: str, **query: str) -> list[str]:
    """The ids of the tab's cards."""
    return [words(link) for link in read(server, path, tab="queries", **query).select("article h2 a")]


def test_the_pages_have_every_query_once_in_order(server: Server) -> None:
    rows = cir_datasets.load("shapes/val").rows()
    pages = [read(server, VAL, tab="queries", page=str(number)) for number in range(1, 16)]
    links = [link for page in pages for link in page.select("article h2 a")]
    assert [words(link) for link in links] == [row["query_id"] for row in rows]
    assert [link["href"] for link in links] == [f"../../{VAL}/q/{row['query_id']}" for row in rows]
    captions = [words(cell) for page in pages for cell in page.select(".caption")]
    assert captions == [row["relative_caption"] for row in rows]
    assert {len(page.select("article")) for page in pages} == {PAGE_QUERIES}
    assert words(pages[1].select_one("main p.note")).startswith("21 to 40 of 300 queries. Pictures are drawn")
    assert words(pages[1].select_one(".pages [aria-current]")) == "2"
    assert [followed(link["href"]).get("page", "1") for link in pages[0].select(".pages a")] == [
        *("1", "2", "3", "15")
    ]
    assert words(pages[0].select_one(".tabs [aria-current]")) == "Queries"


@pytest.mark.parametrize(
    ("said", "here"), [("99", "15"), ("0", "1"), ("-1", "1"), ("x", "1"), ("9" * 5000, "1")]
)
def test_a_page_that_there_is_not_is_the_nearest(server: Server, said: str, here: str) -> None:
    assert words(read(server, VAL, tab="queries", page=said).select_one(".pages [aria-current]")) == here


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"page": "17"}, "page=17 is not a choice here; page 15 of 15 is shown."),
        ({"aspect": "shouting"}, "aspect=shouting is not a choice here; “all” is taken."),
        ({"member": "cirr/val"}, "member=cirr/val is not a choice here."),
        ({"page": "3", "aspect": "negation"}, "page=3 is not a choice here; page 2 of 2 is shown."),
        ({"page": "2", "aspect": "complex", "member": "shapes/val"}, ""),
    ],
)
def test_what_an_address_asks_for_in_vain_is_said(server: Server, query: dict[str, str], said: str) -> None:
    page = read(server, VAL, tab="queries", **query)
    assert " ".join(map(words, page.select("main .notice"))) == said


def test_chosen_queries_have_a_title_of_their_own(server: Server) -> None:
    page = read(server, VAL, tab="queries", aspect="complex", q="and", page="2")
    assert words(page.select_one("title")) == (
        "Shapes, single-turn: queries, complex, “and”, page 2 · CIR leaderboard"
    )


def test_a_search_finds_captions_and_ids(server: Server) -> None:
    rows = cir_datasets.load("shapes/val").rows()
    blue = [row["query_id"] for row in rows if "blue" in row["relative_caption"].casefold()]
    assert 0 < len(blue) < 300
    page = read(server, VAL, tab="queries", q=" BLUE ")
    assert words(page.select_one("main p.note")).startswith(f"1 to 20 of {len(blue)} of 300 queries.")
    found = [name for number in range(1, 16) for name in listed(server, VAL, q="blue", page=str(number))]
    assert list(dict.fromkeys(found)) == blue
    assert listed(server, VAL, q=rows[7]["query_id"].upper()) == [rows[7]["query_id"]]
    assert page.select_one("input[name=q]")["value"] == "BLUE"
    assert all(followed(link["href"])["q"] == "BLUE" for link in page.select(".pages a"))
    empty = read(server, VAL, tab="queries", q=EVIL)
    assert words(empty.select_one("main .panel")) == "No query fits these choices. Show all"
    assert empty.select_one("input[name=q]")["value"] == EVIL
    assert empty.select("main script") == []


def test_an_aspect_leaves_the_queries_that_have_it(server: Server) -> None:
    rows = cir_datasets.load("shapes/val").rows()
    having = [row["query_id"] for row in rows if "negation" in row["aspects"]]
    assert listed(server, VAL, aspect="negation") == having[:PAGE_QUERIES]
    page = read(server, VAL, tab="queries", aspect="negation")
    assert words(page.select_one("select option[selected]")) == f"negation ({len(having)})"
    assert all(followed(link["href"])["aspect"] == "negation" for link in page.select("article h2 a"))
    assert len(listed(server, VAL, aspect="nothing")) == PAGE_QUERIES


def test_sessions_show_their_first_turn_and_are_found_by_the_others(server: Server) -> None:
    rows = cir_datasets.load("shapes/multiturn_val").rows()
    page = read(server, SESSIONS, tab="queries")
    cards = [[words(each) for each in card.select(".caption")] for card in page.select("article")]
    assert cards == [
        [f"turn {turn['turn']} {turn['relative_caption']}" for turn in row["turns"]]
        for row in rows[:PAGE_QUERIES]
    ]
    later = rows[3]["turns"][1]["relative_caption"]
    assert rows[3]["session_id"] in listed(server, SESSIONS, q=later)
    three = [row["session_id"] for row in rows if len(row["turns"]) == 3]
    assert listed(server, SESSIONS, turns="3") == three[:PAGE_QUERIES]


def test_a_sealed_board_and_one_without_data_have_no_such_tab(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CIR_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    page = read(server, "b/cirr/val", tab="queries")
    assert "Queries" not in [words(each) for each in page.select(".tabs a")]
    assert page.select_one("article") is None
    monkeypatch.undo()
    sealed = boards.board("shapes/val").model_copy(update={"track": "sealed", "ground_truth": "/nowhere"})
    assert not why_hidden(Site(server), boards.board("shapes/val"))
    assert why_hidden(Site(server), sealed)
    monkeypatch.setattr(boards, "find", lambda name: sealed)
    page = read(server, VAL, tab="queries")
    assert "Queries" not in [words(each) for each in page.select(".tabs a")]
    assert page.select_one("article") is None
    assert cir_datasets.load("shapes/val").rows()[0]["query_id"] not in str(page)


def test_a_suites_members_are_chosen(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmark_world.suite import write_home

    write_home(tmp_path / "data")
    monkeypatch.setenv("CIR_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CIR_VERIFICATION_MODE", "no_checks")
    board = boards.board("fashioniq/val")
    for member in board.benchmarks:
        cir_datasets.load(member)
    opened = Server.open(Settings(tmp_path / "home"))
    page = read(opened, "b/fashioniq/val", tab="queries")
    assert [words(each) for each in page.select("select[name=member] option")] == list(board.benchmarks)
    member = board.benchmarks[1]
    page = read(opened, "b/fashioniq/val", tab="queries", member=member)
    links = page.select("article h2 a")
    assert [words(link) for link in links] == list(cir_datasets.load(member).query_ids)
    assert {followed(link["href"])["member"] for link in links} == {member}
    assert words(page.select_one("select[name=member] [selected]")) == member
    assert page.select("main img") == []
    opened.close()


def test_a_copy_has_pages_and_no_form(server: Server) -> None:
    links = MirrorLinks(
        VAL, f"{VAL}/tab-queries.html", lambda at, _: file_name(at[0], dict(at[1])), "A copy."
    )
    site = Site(server)
    page = BeautifulSoup(site.written(page_at(site, VAL, {"tab": "queries"}), links), "html.parser")
    assert page.select("form, input, select, main img") == []
    assert [link["href"] for link in page.select(".pages a")] == [
        "tab-queries.html",
        *(f"page-{number}-tab-queries.html" for number in (2, 3, 15)),
    ]
    assert page.select("article h2 a")[0]["href"] == "q/shapes_val_00000/index.html"


def test_hostile_captions_and_ids_stay_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "odd"
    folder.mkdir()
    (folder / "card.yaml").write_text("name: odd\ntitle: Odd\nprivate: true\n")
    (folder / "images.txt").write_text("".join(f"image{number}\n" for number in range(5)))
    query = {"query_id": EVIL, "reference_image_id": "image0", "target_image_id": "image1"}
    (folder / "queries.jsonl").write_text(json.dumps({**query, "relative_caption": EVIL}) + "\n")
    (tmp_path / "home/boards").mkdir(parents=True)
    declared = {"id": "odd/test", "benchmark": "odd/test", "order": 1, "track": "open", "group": "Own"}
    declared |= {"title": "Odd", "short_title": "Odd", "primary": "recall@10", "primary_label": "R@10"}
    declared |= {"columns": [{"metric": "recall@1", "label": "R@1"}], "description": "Odd ids."}
    (tmp_path / "home/boards/odd.yaml").write_text(json.dumps(declared))
    monkeypatch.setenv("CIR_BENCHMARKS", str(folder))
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    opened = Server.open(Settings(tmp_path / "home"))
    try:
        cir_datasets.load("odd/test")
        page = read(opened, "b/odd/test", tab="queries", q="ALERT")
        assert [words(each) for each in page.select("article h2, article .caption")] == [EVIL, EVIL]
        assert page.select("main script") == []
        (link,) = page.select("article h2 a")
        path = link["href"].removeprefix("../../").partition("?")[0]
        assert page_at(Site(opened), path, followed(link["href"])).status == 200
    finally:
        opened.close()
        boards.use(None)
