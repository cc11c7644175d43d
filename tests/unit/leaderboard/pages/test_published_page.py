"""The page of published results: every row of every source, its filters, and methods of several numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

import pytest

from cir_datasets.registry.published import published
from cir_datasets.registry.published_differences import differences, numbers_of
from leaderboard.pages.addresses import page_at
from leaderboard.pages.site import Links, Site
from leaderboard.server import Server
from leaderboard.settings import Settings

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


def plain(html: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", html)))


def test_every_row_of_every_source_stands_there_with_its_source_protocol_and_note(site: Site) -> None:
    said = plain(written(site))
    for row in published():
        assert row.method in said
        assert f"{row.cite}, {row.table}" in said
        assert re.sub(r"\s+", " ", row.protocol) in said
        assert row.note in said
        for number in numbers_of(row).values():
            assert number.text in said


def test_a_sentence_on_top_says_why_none_is_ranked(site: Site) -> None:
    html = written(site)
    first = html[html.index("<h1>") : html.index("<form")]
    assert "None of these numbers is ranked with our own" in first


@pytest.mark.parametrize(
    ("method", "benchmark", "numbers"),
    [("SPRC", "fashioniq/val", ("64.85", "62.14")), ("BLIP4CIR+Bi", "cirr/test1", ("72.59", "63.95"))],
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
    assert "apart by" in section
    anchor = re.search(r'<section class="panel" id="(several-[^"]+)"', html)
    assert anchor is not None
    assert html.count(f'href="#{anchor[1]}"') == 2, "both rows lead to it"


def test_filters_choose_by_benchmark_and_method(site: Site) -> None:
    html = written(site, benchmark="circo/test", method="seize")
    rows = re.findall(r'<tr><th scope="row">([^<]+)', html)
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


def test_without_a_server_it_has_no_form(site: Site) -> None:
    class Still(Links):
        live, note = False, "a copy"

    html = site.written(page_at(site, "published", {}), Still("published"))
    assert "<form" not in html
    assert 'href="#cirr-test1"' in html


def test_ids_are_there_once(site: Site) -> None:
    ids = re.findall(r' id="([^"]+)"', written(site))
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', written(site))) <= set(ids)
