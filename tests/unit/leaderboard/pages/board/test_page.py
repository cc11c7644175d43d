"""A board's page without a browser: its table, what an address chooses of it, and what it says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup
from fastapi import FastAPI
from fastapi.testclient import TestClient
from leaderboard_world import challenges
from leaderboard_world.entries import BOARD, METRIC, START, a_submission, add_entry
from read_pages import column, followed, html_of, read, words
from starlette.middleware import Middleware

import cir_datasets
from leaderboard import boards
from leaderboard.challenge.making import Rules, default_phase, make
from leaderboard.challenge.material import Material
from leaderboard.pages.addresses import page_at
from leaderboard.pages.board.choices import read_choices
from leaderboard.pages.board.rows import BEST_PUBLISHED, PAGE_ROWS, lines_of, published_lines, shown
from leaderboard.pages.published_rows import rows_for
from leaderboard.pages.site import Links, Site
from leaderboard.server import Server
from leaderboard.settings import Settings
from leaderboard.standings import standings
from leaderboard.standings.views import table_view
from leaderboard.store.submission import Event, Submission
from leaderboard.web import formats, site_routes
from leaderboard.web.origins import SecurityHeaders

PATH = f"b/{BOARD}"
TALK = (
    "cir multiround --benchmark shapes/val --method image_text_sum --simulator oracle --max-rounds 5 --k 10 "
    "--out dialogue.jsonl"
)
EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"


def refreshed(server: Server) -> dict[str, Any]:
    return server.tables.refresh(boards.board(BOARD)).view


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    cir_datasets.load(BOARD)  # an example needs prepared queries
    server = Server.open(Settings(tmp_path_factory.mktemp("mixed")))
    add_entry(server.store, 1, 0.9, submitter="Ada's lab", backbone="CLIP ViT-B/32 (openai)", zero_shot=True)
    add_entry(server.store, 2, 0.88, backbone="shapes (x)", zero_shot=False, trained_on=["shapes/train"])
    add_entry(server.store, 3, 0.2, backbone="CLIP ViT-L/14", caption_rule="single")
    add_entry(server.store, 4, 0.5, baseline=True, zero_shot=True)
    add_entry(server.store, 5, 0.99, oracle="scene_graphs")
    refreshed(server)
    yield server
    server.close()


def test_rows_stand_by_value_and_share_groups_and_baselines_and_oracles_stand_behind(mixed: Server) -> None:
    page = read(mixed, PATH)
    assert column(page, "name") == [f"Method {seed}" for seed in (1, 2, 3, 4, 5)]
    assert column(page, "place") == ["1 leading group", "1 leading group", "2", "", ""]
    kinds = [row["class"][0] for row in page.select(".standings tbody tr")]
    assert kinds == ["method", "method", "method", "block", "baseline", "block", "oracle"]
    above = [words(row).partition(",")[0] for row in page.select("tr.block")]
    assert above == ["Baselines", "Oracles"]
    # A group is a colour, and a number that is seen at its first row.
    assert [row["class"][1:3] for row in page.select("tr.grouped")] == [
        ["grouped", g] for g in ("g1", "g1", "g2")
    ]
    seen = page.select(".place span:not(.visually-hidden)")
    assert [words(each) for each in seen] == ["1", "2"]
    assert [words(row.select_one(".name > a")) for row in page.select("tr.opens")] == ["Method 1", "Method 3"]
    day = datetime.now(UTC).date().isoformat()
    assert [each.replace(day, "").strip() for each in column(page, "aside")] == [
        "CLIP ViT-B/32 zero-shot",
        "shapes trained: shapes/train",
        "CLIP ViT-L/14",
        "zero-shot",
        "",
    ]
    assert "paired tests on the queries find no difference" in words(page.select_one("main"))
    # The JSON, and with it CSV and Parquet, have the order of the page; methods alone have ranks.
    rows = refreshed(mixed)["rows"]
    order = [(row["method"]["name"], row["rank"]) for row in rows]
    assert order == [(f"Method {n}", rank) for n, rank in ((1, 1), (2, 2), (3, 3), (4, None), (5, None))]
    listed = formats.as_csv(refreshed(mixed)).decode().splitlines()[1:]
    assert [line.split(",")[2] for line in listed] == column(page, "name")


@pytest.mark.parametrize(
    ("query", "place", "absent"),
    [
        ({}, "place", set()),
        ({"q": "Method 4", "training": "zero-shot"}, "name", {"place"}),
        ({"hide": "oracle", "q": "Method 5"}, "", set()),
    ],
)
def test_a_column_is_there_where_some_row_has_something_in_it(
    mixed: Server, query: dict[str, str], place: str, absent: set[str]
) -> None:
    page = read(mixed, PATH, **query)
    heads = [head["class"][0] for head in page.select("thead th")]
    assert heads[:1] == ([place] if place else [])
    assert absent.isdisjoint(heads)
    rows = page.select(".standings tbody tr:not(.block)")
    assert {len(row.select("td, th")) for row in rows} <= {len(heads)}
    for at in range(len(heads)):
        assert {words(row.select("td, th")[at]) for row in rows} != {"–"}


def test_a_row_says_its_number_and_interval_as_the_table_has_them(mixed: Server) -> None:
    view = refreshed(mixed)
    page = read(mixed, PATH)
    for row in view["rows"]:
        shown = page.select_one(f"#entry-{row['submission']}")
        low, high = row["interval"]
        half = f"±{50 * (high - low):.1f}"
        assert words(shown.select_one(".main")) == f"{100 * row['main']:.2f} {half}"
        ends = f"{100 * low:.2f} to {100 * high:.2f}"
        assert shown.select_one(".half")["title"] == ends
        picture = shown.select_one("svg[role=img]")
        assert picture["aria-label"] == ends
        day = "" if row["baseline"] or row["is_oracle"] else row["received_at"][:10]
        assert words(shown.select_one("time")) == day
        assert shown.select_one(".name a")["href"].endswith(f"/e/{row['submission']}")
        assert shown.select_one("input[form=compare]")["value"] == row["submission"]
    form = page.select_one("form#compare")
    assert (form["method"], form["action"]) == ("get", "../../compare")
    # The scale spans the methods that are shown; a baseline beyond has its number alone.
    page = read(mixed, PATH, training="zero-shot")
    (alone,) = page.select("tr.baseline")
    assert (alone.select("svg"), words(alone.select_one(".half"))[:1]) == ([], "±")
    low, high = (float(end) for end in words(page.select_one("th.interval small")).split(" to "))
    own = next(row for row in view["rows"] if row["method"]["name"] == "Method 1")
    assert high - low < 140 * (own["interval"][1] - own["interval"][0])
    assert low <= 100 * own["interval"][0] < 100 * own["interval"][1] <= high


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ({"q": "vit-l"}, [3]),
        ({"q": "ADA'S"}, [1]),
        ({"q": "method clip"}, [1, 3]),
        ({"q": "2"}, [1, 2]),
        ({"training": "zero-shot"}, [1, 4]),
        ({"training": "trained"}, [2]),
        ({"training": "not stated"}, [3, 5]),
        ({"encoder": "shapes"}, [2]),
        ({"trained_on": "shapes/train"}, [2]),
        ({"hide": "baseline"}, [1, 2, 3, 5]),
        ({"hide": "oracle,baseline"}, [1, 2, 3]),
        ({"verified": "no", "hide": "oracle"}, [1, 2, 3, 4]),
        ({"sort": "main", "order": "asc"}, [3, 2, 1, 4, 5]),
        ({"sort": "name"}, [1, 2, 3, 4, 5]),
        ({"sort": "name", "order": "desc"}, [3, 2, 1, 4, 5]),
        ({"sort": "recall@1"}, [1, 2, 3, 4, 5]),
    ],
    ids=lambda value: "-".join(map(str, value.items())) if isinstance(value, dict) else "",
)
def test_an_address_searches_filters_and_sorts(mixed: Server, query: dict[str, str], left: list[int]) -> None:
    assert column(read(mixed, PATH, **query), "name") == [f"Method {seed}" for seed in left]


def test_what_is_not_known_in_an_address_is_said_and_left_alone(mixed: Server) -> None:
    wrong = {"sort": "size", "order": "up", "training": "x", "hide": "all", "page": "-1", "verified": "1"}
    page = read(mixed, PATH, **wrong, utm_source="y")
    assert len(column(page, "name")) == 5
    said = " ".join(words(each) for each in page.select(".note[role=status]"))
    assert [name for name, value in wrong.items() if f"{name}={value} " not in said] == []
    assert "utm_source" not in said


def test_filters_that_leave_nothing_say_so_and_link_to_all(mixed: Server) -> None:
    page = read(mixed, PATH, q="no such method")
    assert page.select(".standings") == []
    panel = page.select_one(".panel")
    assert "No row fits these choices" in words(panel)
    assert panel.select_one("a")["href"] == f"../../{PATH}#table"
    assert page.select_one("input[type=search]")["value"] == "no such method"


def test_links_and_form_keep_what_is_chosen(mixed: Server) -> None:
    page = read(mixed, PATH, q="method", sort="name", order="desc", hide="oracle", training="zero-shot")
    by_value = next(each for each in page.select("thead a") if words(each) == "R@10")
    assert followed(by_value["href"]) == {"q": "method", "hide": "oracle", "training": "zero-shot"}
    name = next(head for head in page.select("thead th") if words(head).startswith("Method"))
    assert name["aria-sort"] == "descending"
    assert followed(name.select_one("a")["href"])["sort"] == "name"
    assert "order" not in followed(name.select_one("a")["href"])
    form = page.select_one("form.choices")
    sent = {each["name"]: each["value"] for each in form.select("input")}
    assert sent == {"q": "method", "sort": "name", "order": "desc", "training": "zero-shot", "hide": "oracle"}
    assert form["method"] == "get"
    assert form.has_attr("data-at-once")
    assert form.select_one("button") is not None


@pytest.mark.slow
def test_a_long_table_has_pages_and_a_permalink_opens_the_one_that_holds_it(server: Server) -> None:
    for seed in range(2 * PAGE_ROWS + 7):
        add_entry(server.store, seed, seed / 107)
    view = server.tables.of(boards.board(BOARD)).view
    order = [row["submission"] for row in view["rows"]]
    page = read(server, PATH)
    assert len(page.select(".standings tbody tr")) == PAGE_ROWS
    assert "1 to 50 of 107 rows" in words(page.select_one(".under"))
    links = {words(each): each["href"] for each in page.select(".pages a")}
    assert list(links) == ["1", "2", "3"]
    assert followed(links["3"]) == {"page": "3"}
    last = read(server, PATH, page="3")
    assert [row["id"] for row in last.select(".standings tbody tr")] == [
        f"entry-{one}" for one in order[100:]
    ]
    assert words(last.select_one(".pages [aria-current]")) == "3"
    for place in (0, 49, 50, 106):
        found = read(server, PATH, entry=order[place])
        (marked,) = found.select("tr.marked")
        assert marked["id"] == f"entry-{order[place]}"
        assert words(found.select_one(".pages [aria-current]")) == str(place // PAGE_ROWS + 1)
    other = read(server, PATH, entry=order[106], page="1")
    assert other.select("tr.marked") == []
    assert f"The entry {order[106]} is on page 3." in words(other.select_one("main"))
    assert len(read(server, PATH, page="all").select(".standings tbody tr")) == 107
    beyond = read(server, PATH, page="9")
    assert len(beyond.select(".standings tbody tr")) == 7
    assert "There is no page 9" in words(beyond.select_one("main"))


def test_an_entry_that_is_not_on_the_board_is_said_and_no_row_is_marked(mixed: Server) -> None:
    page = read(mixed, PATH, entry=EVIL)
    assert page.select("tr.marked, main script, [onerror]") == []
    assert f"The entry {EVIL[:100]} is not on this board" in words(page.select_one(".notice"))


@pytest.mark.parametrize("board", [BOARD, "fashioniq/val", "shapes/dialogue_val", "circled"])
def test_the_last_tab_says_the_whole_protocol(mixed: Server, board: str) -> None:
    page = read(mixed, f"b/{board}", tab="about")
    found = boards.board(board)
    listed = [words(each) for each in page.select("table tbody th")]
    assert listed[: len(found.benchmarks)] == list(found.benchmarks)
    paths = [each["href"] for each in page.select("main ul a")]
    assert any(path.startswith("../../m/" if "/" in board else "../m/") for path in paths)
    said = words(page.select_one("main"))
    card = found.spec.card
    assert card.license.annotations in said
    assert " ".join(card.traps[0].split()) in said
    assert "Of equal values the earlier entry stands first" in said
    if board == BOARD:
        assert "the rows that were scored" in said
        assert "image only: 44.67" in said
    if board == "fashioniq/val":
        assert "fashioniq/val_union" in said


def test_what_people_write_is_text_in_every_place(server: Server) -> None:
    add_entry(
        server.store,
        1,
        submitter=EVIL,
        name=EVIL,
        backbone=EVIL,
        trained_on=[EVIL],
        paper="javascript:alert(1)",
        caption_rule=EVIL,
        notes=EVIL,
    )
    add_entry(server.store, 2, backbone="other", trained_on=["b"], caption_rule="single")
    refreshed(server)
    for query in ({}, {"q": EVIL}, {"encoder": EVIL}, {"sort": EVIL}, {"entry": EVIL}, {"hide": EVIL}):
        text = html_of(server, PATH, **query)
        page = read(server, PATH, **query)
        assert page.select("main script, [onerror], [src=x]") == []
        assert "<script>alert" not in text
        assert [a["href"] for a in page.select("a") if a["href"].lower().startswith("javascript")] == []
    assert column(read(server, PATH), "name")[0] in (EVIL, "Method 2")


def test_an_entry_of_another_signature_stands_last_and_says_what_differs() -> None:
    def scored(name: str, value: float, gallery: str, minute: int) -> Submission:
        text = f"{BOARD}#2 | data:a052383 | gallery:{gallery} | n:300 | v:0.1.0"
        signature = {"format": 3, "key": f"gallery:{gallery}", "text": text, "gallery_size": 100}
        report = {"metrics": {METRIC: value}, "signatures": {METRIC: signature}}
        at = START + timedelta(minutes=minute)
        events = (Event(minute, "scored", at, {"report": report}), Event(minute, "published", at, {}))
        return a_submission(name, at=at, events=events)

    board = boards.board(BOARD)
    of_own = scored("own", 0.9, "100:9be02d1", 1)
    view = table_view(board, standings(board, [of_own, scored("usual", 0.3, "3940:1103980", 2)]), 2**20)
    found = shown(board, lines_of(board, view), read_choices(board, {})[0])
    assert [(line.name, line.kind, line.mark) for line in found.lines] == [
        ("usual", "method", ""),
        ("own", "apart", "does not compare"),
    ]


def test_until_groups_are_made_ranks_stand_in_their_place(server: Server) -> None:
    for seed in (1, 2):
        add_entry(server.store, seed, seed / 3)
    view = server.tables.of(boards.board(BOARD)).view
    assert view["groups_pending"]
    assert [line.place for line in lines_of(boards.board(BOARD), view)] == ["1", "2"]


def test_a_board_without_entries_says_so(server: Server) -> None:
    page = read(server, "b/shapes/multiturn_val")
    assert "This board has no entry yet." in words(page.select_one("main"))
    assert page.select(".standings, form.choices") == []


def test_the_metric_that_ranks_is_named(mixed: Server) -> None:
    (head,) = read(mixed, PATH).select("thead th.main")
    assert (words(head).rstrip(" ▾"), head["title"], head["aria-sort"]) == ("R@10", METRIC, "descending")


def facts_of(page: BeautifulSoup) -> dict[str, str]:
    pairs = page.select(".facts > div")
    return {words(pair.select_one("dt")): words(pair.select_one("dd")) for pair in pairs}


def protocol_of(page: BeautifulSoup) -> list[str]:
    return words(page.select_one(".protocol")).split(" · ")


def test_the_head_says_what_is_ranked_by_what_and_on_which_protocol(mixed: Server) -> None:
    page = read(mixed, PATH)
    assert words(page.select_one("h1")) == "Shapes, single-turn"
    # One line of protocol, then the table; what explains comes below.
    parts = "h1, .protocol, .standings, .task, .example, #enter"
    order = [part.get("class", [part.name])[0] for part in page.select(parts)]
    assert order == ["h1", "protocol", "standings", "task", "example", "ol"]
    assert [each.name for each in page.select("#what, .enter, .embed")] == ["details"] * 3
    assert page.select("main details[open]") == []
    assert protocol_of(page) == [
        "Ranked by R@10",
        "Queries 300",
        "Gallery 100 images",  # as the made-up signatures of these entries have it
        "Reference removed",
        "Chance 0.25 %",
        "a query, how to enter",
    ]
    assert words(page.select_one(".badges")) == "open synthetic"
    assert words(page.select_one(".task")) == (
        "Given a picture and a sentence that says what to change, rank 3,940 pictures so that the wanted one "
        "is among the first ten."
    )
    assert facts_of(read(mixed, PATH, tab="about")) == {
        "Versions": "benchmark 2, metric 1",
        "File": "rank file, up to 64 MB",
    }
    example = page.select_one(".example")
    pictures = example.select("img")
    assert [picture["alt"].partition(":")[0] for picture in pictures] == ["reference", "right"]
    assert all(picture["src"].startswith("../../site/pictures/shapes/") for picture in pictures)
    assert words(example.select_one(".caption")).startswith("“")


def test_three_steps_are_commands_of_this_board(mixed: Server) -> None:
    page = read(mixed, PATH)
    assert [words(each) for each in page.select("#enter h3")] == ["Rank", "Check the rank file", "Submit"]
    lines = [line for each in page.select("#enter pre") for line in each.get_text().splitlines()]
    assert lines == [
        "cir datasets prepare shapes/val",
        'cir rank --benchmark shapes/val --lists rankings.json --method "My method" --out run.json',
        "cir score run.json",
        "cir submit run.json --to URL --board shapes/val --publish",
    ]
    assert page.select_one("#enter [data-site]")["data-site"] == "../../"
    # What a reader tries first must not write over the file of the commands.
    assert "cir run --benchmark shapes/val --method random --out random.json" in words(
        page.select_one("#enter .note code")
    )


@pytest.mark.parametrize(
    ("board", "badge", "sentence", "command", "fact"),
    [
        (
            "fashioniq/val",
            "suite of 3",
            "is among the first ten, or at least among the first 50. The score is the mean of the three.",
            'cir rank --benchmark fashioniq/val --lists rankings/ --method "My method" --out run.json',
            ("File", "bundle, up to 64 MB"),
        ),
        (
            "shapes/dialogue_val",
            "dialogue",
            "in each round a new sentence about the best picture found",
            TALK,
            ("Chance", "3.49 %"),
        ),
        (
            "shapes/multiturn_val",
            "sessions",
            "Given a picture and, turn by turn, sentences that say what to change",
            "cir score run.json",
            ("Sessions", "200"),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and "/" in value and " " not in value else "",
)
def test_each_kind_of_board_says_its_own_task_and_way_in(
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    board: str,
    badge: str,
    sentence: str,
    command: str,
    fact: tuple[str, str],
) -> None:
    monkeypatch.setattr("leaderboard.boards.data.problem", lambda _board: None)
    page = read(server, f"b/{board}")
    assert badge in words(page.select_one(".badges"))
    assert sentence in words(page.select_one(".task"))
    assert command in page.select_one("#enter").get_text().splitlines()
    facts = facts_of(read(server, f"b/{board}", tab="about"))
    assert f"{fact[0]} {fact[1]}" in protocol_of(page) or facts[fact[0]] == fact[1]
    if board == "shapes/dialogue_val":
        assert "A simulated user (oracle) compares captions" in words(page.select_one("main"))


def test_chance_needs_no_data_where_queries_have_one_target(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CIR_DATA_HOME", raising=False)
    # (5/2296 + 1/5) / 2: the reference is removed, and a subset has five others.
    # Five rounds, each a new order: 1 - (1 - 1/2296)^5, and 1 - (1 - 10/3817)^5 where the reference is kept.
    for board, chance in (
        ("cirr/val", f"{100 * (5 / 2296 + 1 / 5) / 2:.2f} %"),
        ("circo/val", "not known here"),
        ("cirr/dialogue_val", f"{100 * (1 - (1 - 1 / 2296) ** 5):.2f} %"),
        ("fashioniq/dress_dialogue_val", f"{100 * (1 - (1 - 10 / 3817) ** 5):.2f} %"),
        ("circo/dialogue_val", "not known here"),
    ):
        assert f"Chance {chance}" in protocol_of(read(server, f"b/{board}")), board


def test_data_that_is_here_is_not_called_missing(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leaderboard.boards.data.problem", lambda _board: None)
    monkeypatch.setattr("leaderboard.pages.queries.last_prepared", lambda _spec: None)
    example = words(read(server, "b/cirr/val").select_one(".example"))
    assert "real queries stand here once a file has come" in example


def test_a_closed_board_says_what_it_lacks_and_shows_published_results(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CIR_DATA_HOME", raising=False)
    page = read(server, "b/fashioniq/val")
    notice = words(page.select_one(".notice"))
    assert "This board takes no submissions now" in notice
    assert "cir datasets prepare fashioniq/val" in notice
    assert "open" not in words(page.select_one(".badges"))
    assert page.select("#enter, .title .button") == []
    at_home = [line for each in page.select("#at-home pre") for line in each.get_text().splitlines()]
    assert [line.rpartition(" --lists")[0] or line for line in at_home] == [
        "cir datasets prepare fashioniq/dress_val fashioniq/shirt_val fashioniq/toptee_val",
        "cir rank --benchmark fashioniq/val",
        "cir score run.json",
    ]
    assert words(page.select_one(".notice code")) == "cir datasets prepare fashioniq/val"
    assert "An invented example" in words(page.select_one(".example"))
    rows = page.select(".standings tbody tr:not(.block)")
    assert {row["class"][0] for row in rows} == {"published"}
    heads = [words(each).partition("\xa0")[0] for each in page.select(".standings thead th")]
    # No rank, nothing to tick, and no column that no source has a number for.
    assert heads[0] == "Method"
    empty = [
        head
        for place, head in enumerate(heads)
        if {words(row.select("td, th")[place]) for row in rows} <= {"–", ""}
    ]
    assert empty == []
    by_name = {words(row.select_one(".name > a")): row for row in rows}
    assert words(by_name["DQU-CIR"].select_one(".main")) == "71.77"
    source = by_name["DQU-CIR"].select_one("small a")
    assert words(source) == "OpenCodePapers, FIQ"
    assert source["href"].startswith(
        "../../published?benchmark=fashioniq%2Fval#fashioniq-val-opencodepapers-3-"
    )
    longest = max(len(words(each)) for each in page.select(".standings small a"))
    assert longest <= 20, "stands whole on one line"
    assert page.select("input[form=compare]") == []
    hidden = read(server, "b/fashioniq/val", hide="published")
    assert "No row fits" in words(hidden.select_one(".panel"))


def test_a_sealed_board_shows_no_picture_and_says_where_its_folder_comes_from(
    places: challenges.Places, material: Material
) -> None:
    name = challenges.NAME
    make(material, Rules(name, "Autumn", str(places.ground_truth), (default_phase(),)))
    server = Server.open(Settings(places.home, accounts="tokens"))
    try:
        page = read(server, f"b/{challenges.ID}")
        home = read(server, "")
    finally:
        server.close()
    assert "sealed" in words(page.select_one(".badges"))
    sealed = [row for row in home.select(".boards tbody tr") if "sealed" in words(row.select("td")[-1])]
    assert [row.select_one("th a")["href"] for row in sealed] == [f"./b/{challenges.ID}"]
    assert page.select(".example img") == []
    assert "picture-" not in str(page)
    commands = page.select_one("#enter").get_text()
    assert f"cir challenge join {challenges.NAME}" in commands
    assert "cir validate run.json" in commands
    assert "cir score" not in commands
    assert "export CIR_LEADERBOARD_TOKEN=TOKEN" in commands


def test_the_table_goes_along_in_other_forms_with_hostile_names_escaped(server: Server) -> None:
    name = "50% {\\input} _a_ & #1"
    add_entry(server.store, 1, 0.9, name=name, paper="https://example.org/p")
    add_entry(server.store, 2, 0.1, baseline=True)
    add_entry(server.store, 3, 0.2, baseline=True, name="A Baseline of old", submitter="A & B")
    view = refreshed(server)
    board = boards.board(BOARD)
    latex = formats.as_latex(board, view).decode()
    assert "50\\% \\{\\textbackslash{}input\\} \\_a\\_ \\& \\#1 & 1 & " in latex
    assert "Method 2 (baseline) & -- & " in latex
    assert "Method & Group & R@10 & R@1 & R@50" in latex
    assert "\nA Baseline of old & " in latex, "its name says it"
    bibtex = formats.as_bibtex(board, view, "Boards", "https://board.example.org").decode()
    assert bibtex.count("@misc{cir-") == 3
    assert re.findall(r"^  (?:author|key) .*$", bibtex, re.MULTILINE) == [
        "  key          = {50\\% \\{{\\textbackslash}input\\} \\_a\\_ \\& \\#1},",
        "  author       = {{A \\& B}},",
        "  key          = {Method 2},",
    ]
    assert "{50\\% \\{{\\textbackslash}input\\} \\_a\\_ \\& \\#1: R@10 " in bibtex
    assert f"https://board.example.org/e/{view['rows'][0]['submission']}" in bibtex
    assert "Paper: https://example.org/p." in bibtex


VIEWS = (
    {},
    {"q": "CIRPLANT"},
    {"q": "2"},
    {"training": "zero-shot"},
    {"encoder": "shapes"},
    {"hide": "baseline"},
    {"sort": "recall@1"},
    {"sort": "recall@1", "order": "asc"},
    {"page": "all"},
    {"tab": "trend"},
    {"tab": "about"},
    {"tab": "aspects"},
    {"tab": "aspects", "metric": "map@10"},
    {"embed": "1"},
)


def test_each_view_of_a_board_has_its_own_title_and_the_address_of_the_plain_page(tmp_path: Path) -> None:
    server = Server.open(Settings(tmp_path / "home", url="https://board.example.org"))
    for seed in range(PAGE_ROWS + 1):
        add_entry(server.store, seed, backbone="shapes (x)")
    ids = [row["submission"] for row in refreshed(server)["rows"][:3]]
    site = Site(server)
    views = [*VIEWS, {"page": "2"}, {"entry": ids[0]}, {"tab": "aspects", "e": ",".join(ids)}]
    pages = [page_at(site, PATH, view) for view in views]
    titles = [page.title for page in pages]
    written = [site.written(page, Links(PATH)) for page in pages]
    server.close()
    assert len(set(titles)) == len(titles)
    assert titles[:2] == ["Shapes, single-turn", "Shapes, single-turn, search “CIRPLANT”"]
    assert "Shapes, single-turn, page 2" in titles
    assert re.fullmatch(r"Shapes, single-turn: aspects, Method \d+ and Method \d+ and 1 more", titles[-1])
    kept = '<link rel="canonical" href="https://board.example.org/b/shapes/val">'
    assert [kept in html for html in written if "<nav" in html] == [True] * (len(pages) - 1)


def test_links_beside_the_table_lead_to_its_other_forms_and_one_may_be_framed(mixed: Server) -> None:
    page = read(mixed, PATH)
    links = {words(each): each["href"] for each in page.select(".exports a")}
    assert links["CSV"] == "../../api/v1/boards/shapes/val?format=csv"
    assert links["BibTeX"].endswith("?format=bibtex")
    assert "Published CSV" not in links, "no source prints a number for it"
    reported = {words(each): each["href"] for each in read(mixed, "b/cirr/val").select(".exports a")}
    assert reported == {
        "Published CSV": "../../api/v1/published?board=cirr%2Fval",
        "Feed": "../../api/v1/feed.atom?board=cirr%2Fval",
    }, "files of entries are not offered where there is none"
    assert links["Feed"] == "../../api/v1/feed.atom?board=shapes%2Fval"
    assert "/b/shapes/val?embed=1" in page.select_one("#frame").get_text()
    app = FastAPI(middleware=[Middleware(SecurityHeaders)])
    app.include_router(site_routes.router(mixed))
    client = TestClient(app)
    for query, ancestors in (("", "frame-ancestors 'self'"), ("?embed=1", "frame-ancestors *")):
        assert client.get(f"/{PATH}{query}").headers["content-security-policy"].endswith(ancestors)
    bare = read(mixed, PATH, embed="1")
    assert bare.select("form, nav, header, script, input") == []
    assert len(bare.select(".standings tbody tr:not(.block)")) == 5
    assert bare.select_one("h1 a")["target"] == "_blank"


def test_published_rows_of_the_own_split_stand_there_the_best_alone(server: Server) -> None:
    board = boards.board("fashioniq/val")
    lines = [line for line in rows_for(board) if not line.other_split]
    page = read(server, "b/fashioniq/val")
    above = page.select_one("tr.block")
    assert words(above) == f"Published, as reported · all {len(lines)}"
    assert followed(above.select_one("a")["href"]) == {"benchmark": "fashioniq/val"}
    assert column(page, "name") == [line.row.method for line in lines[:BEST_PUBLISHED]]
    assert "–" not in words(page.select_one(".standings tbody")), "what is not printed is blank"
    dress = "recall@10@fashioniq/dress_val"
    numbers = (each.numbers.get(dress) for each in lines)
    by_dress = sorted((float(each.value) for each in numbers if each), reverse=True)
    view = shown(board, published_lines(board), read_choices(board, {"sort": dress})[0])
    assert [100 * line.values[dress] for line in view.left] == pytest.approx(by_dress[:BEST_PUBLISHED])
    searched = read(server, "b/fashioniq/val", q="SPRC")
    assert column(searched, "name") == [each.row.method for each in lines if "SPRC" in each.row.method]
    # No source prints what ranks here, and those of the test split are another question's.
    of_cirr = read(server, "b/cirr/val")
    assert of_cirr.select("thead .main, thead .place") == []
    assert "test split" not in words(of_cirr.select_one(".standings"))
