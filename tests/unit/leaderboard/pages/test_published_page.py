"""The page of published results: every row of every source, its filters, and methods of several numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from html import unescape
from urllib.parse import unquote

import pytest
from bs4 import BeautifulSoup

from cir_datasets.registry.published import Number, published
from leaderboard import boards
from leaderboard.pages.addresses import page_at
from leaderboard.pages.published_differences import differences
from leaderboard.pages.published_rows import rows_for
from leaderboard.pages.published_tables import published_benchmarks, tables_of
from leaderboard.pages.site import Links, Site
from leaderboard.server import Server
from leaderboard.settings import Settings

CIRR_MEAN = "mean(recall@5, recall_subset@1)"
LEAST = Number(Decimal(), "0", False)
EVIL = '"><script>alert(1)</script>'


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    server = Server.open(Settings(tmp_path_factory.mktemp("published") / "home"))
    yield Site(server)
    server.close()


def written(site: Site, **query: str) -> str:
    page = page_at(site, "published", query)
    assert page.status == 200
    return site.written(page, Links("published"))


def whole(site: Site) -> str:
    """The pages of all benchmarks, one behind the other."""
    return "".join(written(site, benchmark=name) for name in published_benchmarks())


def plain(html: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", html)))


def test_every_row_of_every_source_stands_there_with_its_source_protocol_and_note(site: Site) -> None:
    said = plain(whole(site))
    for row in published():
        assert row.method in said
        assert f"{row.paper.cite}, {row.table.name}" in said
        assert re.sub(r"\s+", " ", row.table.protocol) in said
        assert row.note in said
        for number in row.numbers.values():
            assert number.text in said


def test_names_that_differ_by_case_alone_have_one_order_in_every_process(site: Site) -> None:
    page = page_at(site, "published", {})
    names = list(page.values["methods"])
    assert len(set(map(str.casefold, names))) < len(names), "there are such names"
    assert names == sorted(names, key=lambda name: (name.casefold(), name))


def test_a_sentence_on_top_says_why_none_is_ranked(site: Site) -> None:
    html = written(site)
    first = html[html.index("<h1>") : html.index("<form")]
    assert "None is ranked: nobody here has the rank files" in first


@pytest.mark.parametrize(
    ("method", "benchmark", "numbers"),
    [("SPRC", "fashioniq/val", ("64.85", "62.135")), ("BLIP4CIR+Bi", "cirr/test1", ("72.59", "63.95"))],
    ids=["SPRC", "BLIP4CIR+Bi"],
)
def test_both_numbers_stand_side_by_side_with_the_difference_named(
    site: Site, method: str, benchmark: str, numbers: tuple[str, str]
) -> None:
    html = written(site, method=method, benchmark=benchmark)
    section = html[html.index(f">{method} on ") : html.index("</section>", html.index(f">{method} on "))]
    assert [each for each in numbers if each not in section] == []
    why = next(one.why for one in differences() if (one.method, one.benchmark) == (method, benchmark))
    assert why in unescape(section)
    assert '<th scope="row">difference</th>' in section
    anchor = re.search(r'<section class="panel" id="(several-[^"]+)"', html)
    rows = html[html.index('class="of-benchmark"') :]
    assert rows.count(f'href="#{anchor[1]}"') == 2, "both rows lead to it"


def test_filters_choose_by_benchmark_and_method(site: Site) -> None:
    html = written(site, benchmark="circo/test", method="seize")
    rows = re.findall(r'<tr id="[^"]+"><th scope="row">([^<]+)', html)
    assert {row.strip() for row in rows} == {"SEIZE"}
    assert "<code>circo/test</code>" in html
    assert "<code>cirr/test1</code>" not in html
    assert '<option value="circo/test" selected>' in html


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"benchmark": "cirr/test2"}, "No source prints numbers of a benchmark 'cirr/test2'. Did you mean"),
        ({"method": "SPRCC"}, "No source has a method 'SPRCC'. Did you mean 'SPRC'?"),
        (
            {"method": "DQU-CIR", "benchmark": "circo/val"},
            "No source prints a number of 'DQU-CIR' on 'circo/val'.",
        ),
        ({"method": EVIL}, "No source has a method"),
    ],
    ids=["benchmark", "method", "both", "hostile"],
)
def test_a_choice_of_nothing_says_so(site: Site, query: dict[str, str], said: str) -> None:
    html = written(site, **query)
    assert said in unescape(html)
    assert "<script>alert" not in html
    assert page_at(site, "published", query).description.startswith("No source prints a number ")


def test_without_a_server_it_has_no_form(site: Site) -> None:
    class Still(Links):
        live, note = False, "a copy"

    html = site.written(page_at(site, "published", {}), Still("published"))
    assert "<form" not in html
    assert 'href="./published?benchmark=cirr/test1"' in unquote(html)


def test_the_list_of_benchmarks_comes_first_and_names_the_highest_number_and_whose_it_is(site: Site) -> None:
    page = BeautifulSoup(written(site), "html.parser")
    index, pairs = page.select("table.index")
    lines = [[" ".join(cell.get_text().split()) for cell in row("td")] for row in index.select("tbody tr")]
    titles = [" ".join(head.get_text().split()) for head in index.select("tbody th")]
    assert titles[:4] == ["CIRR, test1", "FashionIQ average", "CIRCO, test", "CIRR, val"]
    rows = [row for row in published() if any(name == "cirr/test1" for name, _ in row.values)]
    highest = max(row.numbers.get(("cirr/test1", CIRR_MEAN), LEAST).value for row in rows)
    sources = {row.source for row in rows}
    # A phone has no room for the column of metrics: each stands below its number there.
    metric = "Mean of R@5, Rs@1"
    assert lines[0] == [str(len(rows)), str(len(sources)), f"{highest}{metric}", metric, "TMCIR"]
    whose = index.select_one("tbody .whose a")
    of_benchmark = BeautifulSoup(written(site, benchmark="cirr/test1"), "html.parser")
    anchor = whose["href"].partition("#")[2]
    assert of_benchmark.select_one(f"tr[id='{anchor}'] th").get_text().strip() == "TMCIR"
    said = {tuple(cell.get_text().strip() for cell in row(["th", "td"])) for row in pairs.select("tbody tr")}
    assert len(said) == len(differences())
    assert ("SPRC", "FashionIQ average", "64.85 · 62.135") in said
    assert ("BLIP4CIR+Bi", "CIRR, test1", "72.59 · 63.95") in said


def test_tables_have_no_empty_column_and_those_by_round_come_last_under_grouped_heads() -> None:
    benchmarks = dict.fromkeys(name for row in published() for name, _ in row.values)
    for name in benchmarks:
        tables = tables_of(name)
        kinds = ["by round" in table.kind for table in tables]
        assert kinds == sorted(kinds)
        for table in tables:
            for place, column in enumerate(table.columns):
                assert any(line.numbers[place] is not None for line in table.lines), (name, column.metric)
    hits = tables_of("cirr/val")[0]
    assert [(group, [column.part for column in columns]) for group, columns in hits.groups] == [
        ("Hits@1, round", ["1", "3", "5"]),
        ("Hits@5, round", ["1", "3", "5"]),
    ]


def test_the_heads_stand_above_their_numbers(site: Site) -> None:
    """In every table each row of heads and each row of numbers spans the same columns."""
    page = BeautifulSoup(whole(site), "html.parser")
    tables = page.select("table.reported")
    assert len(tables) > 20
    for table in tables:
        first, *second = table.select("thead tr")
        wide = sum(int(head.get("colspan", 1)) for head in first("th"))
        grouped = sum(int(head.get("colspan", 1)) for head in first("th", scope="colgroup"))
        assert [len(row("th")) for row in second] == ([grouped] if grouped else [])
        assert {len(row(["th", "td"])) for row in table.select("tbody tr")} == {wide}


def test_each_choice_has_its_own_title_and_description(site: Site) -> None:
    choices = [{}, {"benchmark": "cirr/val"}, {"benchmark": "cirr/test1"}, {"method": "SPRC"}]
    choices += [{"benchmark": "cirr/val", "method": "SPRC"}, {"method": "CASE"}]
    pages = [page_at(site, "published", choice) for choice in choices]
    assert len({page.title for page in pages}) == len({page.description for page in pages}) == len(pages)
    assert pages[4].title == "Published results of SPRC on CIRR, val"
    long = page_at(site, "published", {"benchmark": "b" * 500, "method": "m" * 500})
    assert all(len(page.description) <= 160 and len(page.title) <= 160 for page in (*pages, long))


@pytest.mark.slow
def test_sources_are_links_and_the_rows_of_boards_lead_to_their_place(site: Site) -> None:
    pages = {
        name: BeautifulSoup(written(site, benchmark=name), "html.parser") for name in published_benchmarks()
    }
    ids = {(name, tag["id"]) for name, one in pages.items() for tag in one.select("[id]")}
    led = [line for board in boards.boards() for line in rows_for(board)]
    assert len(led) > 100
    assert [line.anchor for line in led if (line.listed_under, line.anchor) not in ids] == []
    page = BeautifulSoup(whole(site), "html.parser")
    for row in published():
        assert row.paper.url is None or page.select(f".from a[href='{row.paper.url}']"), row.paper.url
    place = page.find(id=next(line.anchor for line in led if line.row.method == "SPRC (retrained)"))
    assert place.select_one(".from").get_text().strip() == "QuRe 2025, T2/3/5"


def test_ids_are_there_once(site: Site) -> None:
    for html in (written(site), *(written(site, benchmark=name) for name in published_benchmarks())):
        ids = re.findall(r' id="([^"]+)"', html)
        assert len(ids) == len(set(ids))
        assert set(re.findall(r'href="#([^"]+)"', html)) <= set(ids)
