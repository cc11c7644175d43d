"""Entries side by side: numbers are those of `cir compare`, and what does not compare is refused in words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from leaderboard_world.entries import FILES, Entries, add_entry, handed_in, server_with_board
from read_pages import opened

import submissions
from cir_metrics.significance import PValue
from leaderboard import boards
from leaderboard.pages.addresses import page_at
from leaderboard.pages.compare_page import signed
from leaderboard.pages.site import Site
from leaderboard.server import Server
from leaderboard.store.submission import Submission
from submissions.comparison.difference import Difference, Pair
from submissions.comparison.result import ComparedMethod, Comparison, shown_p
from submissions.scoring.intervals import Interval

OTHER = FILES["sum"].with_name("text_only-shapes.shapes-val.json.gz")


@pytest.fixture
def few(tmp_path: Path) -> Iterator[Server]:
    """Boards with entries whose files nobody has."""
    with server_with_board(tmp_path / "home", "shapes/again") as server:
        yield server


@pytest.fixture(scope="module")
def pair(demo: Server, entries: Entries) -> list[Submission]:
    other = handed_in(demo, OTHER.read_bytes(), OTHER.name)
    demo.lists.of(other)
    return [entries["random"], other]


@pytest.mark.slow
def test_numbers_are_those_of_cir_compare(demo: Server, pair: list[Submission]) -> None:
    found = submissions.compare([FILES["random"], OTHER])
    demo.compared.of(pair, None)
    page, html = opened(demo, "compare", e=",".join(each.id for each in pair))
    (said,) = page.data["pairs"]
    (wanted,) = found.pairs
    assert said["metrics"] == found.to_dict()["pairs"][0]["metrics"]
    (flips,) = wanted.flips
    assert (said["won"], said["lost"]) == (len(flips.hit_to_miss), len(flips.miss_to_hit))
    main = wanted.differences["recall@10"]
    board = boards.board("shapes/val")
    assert f'<strong class="delta">{signed(board, "recall@10", main.difference)}</strong>' in html
    number = {p: shown_p(p) if p < 0.0001 else f"= {p:.4f}" for p in (main.test.p, main.adjusted)}
    words = html.replace("&lt; ", "<")
    assert f"p {number[main.test.p]} (after Holm&#39;s correction over the" in words
    assert f"tests of this page p {number[main.adjusted]})" in words
    verdict = "significant at 5 %" if main.significant else "not significant at 5 %"
    assert f">{verdict}</span>" in html


@pytest.mark.slow
def test_won_and_lost_lead_into_the_query_browser(demo: Server, pair: list[Submission]) -> None:
    demo.compared.of(pair, None)
    page, html = opened(demo, "compare", e=",".join(each.id for each in pair))
    (said,) = page.data["pairs"]
    for outcome in ("won", "lost"):
        links = re.findall(rf'href="\./(b/[^"?]+)\?([^"]*outcome={outcome})[^"]*">(\d+) {outcome}</a>', html)
        ((path, query, number),) = links
        assert int(number) == said[outcome]
        asked = dict(part.split("=") for part in query.replace("&amp;", "&").split("&"))
        there = page_at(Site(demo), path, asked)
        assert there.data["position"] == f"1 of {said[outcome]}"


@pytest.mark.slow
def test_more_than_two_entries_are_a_table_of_pairs(
    demo: Server, entries: Entries, pair: list[Submission]
) -> None:
    three = [*pair, entries["sum"]]
    demo.compared.of(three, None)
    page, html = opened(demo, "compare", e=",".join(each.id for each in three))
    assert page.data is not None
    board = boards.board("shapes/val")
    table = html[html.index("<caption>Every pair by R@10</caption>") :].partition("</table>")[0]
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in table.split("<tr>")[2:]]
    told = [[re.sub("<[^>]*>", "", cell) for cell in row] for row in rows]
    assert len(told) == len(page.data["pairs"]) == 3
    for cells, said in zip(told, page.data["pairs"], strict=True):
        main = said["metrics"]["recall@10"]
        low, high = (signed(board, "recall@10", end) for end in main["interval"])
        better = "first better" if main["difference"] > 0 else "second better"
        assert cells[2:] == [
            signed(board, "recall@10", main["difference"]),
            f"[{low}, {high}]",
            shown_p(main["p_holm"]).replace("<", "&lt;"),
            better if main["significant"] else "not significant",
            str(said["won"]),
            str(said["lost"]),
            "this pair",
        ]
    assert html.count("<details><summary>") == 3, "every metric of a pair is a click away"


@pytest.mark.slow
def test_queries_that_flip_in_the_subset_are_counted_where_that_ranks(tmp_path: Path) -> None:
    own = {"primary": "mean(recall@10, recall_subset@1)", "primary_label": "Mean"}
    with server_with_board(tmp_path / "home", "shapes/own", **own) as server:
        sent = [
            handed_in(server, file.read_bytes(), file.name, "shapes/own") for file in (FILES["sum"], OTHER)
        ]
        for each in sent:
            server.lists.of(each)
        server.tables.refresh(boards.board("shapes/own"))
        server.compared.of(sent, None)
        page, html = opened(server, "compare", e=",".join(each.id for each in sent))
        (said,) = page.data["pairs"]
        rs1 = said["metrics"]["recall_subset@1"]
        words = re.sub("<[^>]*>", "", html)
        assert f"In the subset: {rs1['wins']} won, {rs1['losses']} lost, {rs1['ties']} same" in words
        r10 = said["metrics"]["recall@10"]
        assert f"{r10['wins']} won, {r10['losses']} lost, {r10['ties']} same: a hit has the target" in words
        path, asked = re.findall(r'href="\./(b/[^"?]+)\?([^"]*outcome=won[^"]*by=subset)"', html)[0]
        there = page_at(
            Site(server), path, dict(part.split("=") for part in asked.replace("&amp;", "&").split("&"))
        )
        assert there.data["position"] == f"1 of {rs1['wins']}"


@pytest.mark.slow
def test_sessions_have_curves_with_bands_and_queries_have_aspects(
    demo: Server, entries: Entries, pair: list[Submission]
) -> None:
    other = FILES["tirg"].with_name("image_only-shapes.shapes-multiturn_val.json.gz")
    if not other.exists():
        other = next(FILES["tirg"].parent.glob("image_only*.shapes-multiturn_val.json.gz"))
    second = handed_in(demo, other.read_bytes(), other.name)
    sessions = [entries["tirg"], second]
    for each in sessions:
        demo.lists.of(each)
    demo.compared.of(sessions, None)
    _, html = opened(demo, "compare", e=",".join(each.id for each in sessions))
    assert "Hits@10 by turn" in html
    for file in (FILES["tirg"], other):
        report = submissions.score(file)
        for turn in (1, 3):
            value = 100 * report.metrics[f"hits@10@turn{turn}"]
            assert re.search(rf'<th scope="row">{turn}</th>.*?{value:.2f} \[', html)
    demo.compared.of(pair, None)
    _, html = opened(demo, "compare", e=",".join(each.id for each in pair))
    table = re.findall(r'<th scope="row">Negation</th><td class=num>(\d+)</td>', html)
    assert table == ["38"]
    assert html.count('<svg class="plot"') == 1


def test_what_is_not_two_to_four_entries_is_chosen_by_a_form(few: Server) -> None:
    store = few.store
    one = [add_entry(store, number) for number in range(5)]
    _, html = opened(few, "compare")
    assert 'href="./compare?board=shapes%2Fval"' in html
    _, html = opened(few, "compare", board="shapes/val")
    assert html.count("<select") == 4
    _, html = opened(few, "compare", e=one[2].id)
    assert f'<option value="{one[2].id}" selected>Method 2' in html
    assert "1 entry chosen" in html
    _, html = opened(few, "compare", e=",".join(each.id for each in one))
    assert "5 entries chosen: a comparison takes 2 to 4" in html
    _, html = opened(few, "compare", e=f"{one[2].id},zzz")
    assert f'<option value="{one[2].id}" selected>Method 2' in html, "what is known stays chosen"


def test_entries_of_other_boards_or_unknown_ones_are_refused_in_a_sentence(few: Server) -> None:
    store = few.store
    one = add_entry(store, 1, name="<b>One</b>")
    other = add_entry(store, 2, board="shapes/again")
    page, html = opened(few, "compare", e=f"{one.id},zzz")
    assert (page.status, "no submission &#39;zzz&#39; here" in html) == (404, True)
    hidden = store.append(add_entry(store, 3), [("hidden", {"reason": "a reason"})])
    page, html = opened(few, "compare", e=f"{one.id},{hidden.id}")
    assert (page.status, "a reason" in html) == (404, False)
    waits, _ = store.receive(board="shapes/val", sha256="b" * 64, size=1, file_name="run.json")
    page, html = opened(few, "compare", e=f"{one.id},{waits.id}")
    assert (page.status, "is not listed on" in html) == (404, True)
    page, html = opened(few, "compare", e=f"{one.id},{other.id}")
    assert page.status == 400
    assert "different boards: &lt;b&gt;One&lt;/b&gt; on shapes/val; Method 2 on shapes/again" in html


def test_a_comparison_that_takes_long_says_so_and_looks_again(
    few: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = ",".join(add_entry(few.store, number).id for number in (1, 2))

    def not_yet(*_: object) -> Comparison | None:
        return None

    monkeypatch.setattr(few.compared, "of", not_yet)
    page, html = opened(few, "compare", e=ids)
    assert (page.status, page.data) == (202, {"state": "being made"})
    assert '<meta http-equiv="refresh" content="3">' in html
    assert "is being made" in html


def test_what_sets_two_entries_apart_stands_before_their_numbers(
    few: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = tuple(add_entry(few.store, seed).id for seed in (80, 81))
    test = PValue(0.04, "binomial", 30)
    one = Difference("recall@10", 300, 0.1, Interval(0.0, 0.2), test, 0.04, True, 30, 270, 0)
    warning, other = (
        "reference: one ranks it in 2,017 of 2,017 lists, the other in 0",
        "sessions are left out",
    )
    methods = [
        ComparedMethod(name, entry, letter, 1, {"recall@10": value}, {})
        for name, entry, letter, value in zip(("one", "other"), entries, "ab", (0.5, 0.4), strict=True)
    ]
    made = Comparison(
        benchmark="shapes/val",
        benchmark_version=2,
        unit="queries",
        n=300,
        leading="recall@10",
        metrics=("recall@10",),
        methods=tuple(methods),
        pairs=(Pair("one", "other", {"recall@10": one}, ()),),
        signatures={},
        draws=10_000,
        seed=2026,
        notes=(warning, other),
    )
    monkeypatch.setattr(few.compared, "of", lambda *_: made)
    page, html = opened(few, "compare", e=",".join(entries))
    notice, numbers = html.index(f'<p class="notice">{warning}'), html.index("Their numbers")
    assert notice < numbers < html.index(f'<p class="note">{other}')
    assert html.count(warning) == 1
    assert page.data["notes"] == [warning, other]
