"""The pages of metrics: what the cards say stands there, examples give what they print, boards are named."""

from __future__ import annotations

import ast
import re
from html import unescape

import evaluate
import pytest
from read_pages import opened

import cir_metrics
from cir_metrics.catalogue import METRICS
from leaderboard import boards
from leaderboard.pages.markdown import html_of
from leaderboard.server import Server


def test_all_metrics_are_listed_with_the_boards_that_they_rank(host: Server) -> None:
    page, html = opened(host, "m")
    assert page.status == 200
    assert [name for name in METRICS if f'href="./m/{name}"' not in html] == []
    row = html[html.index('href="./m/map_at_k"') : html.index('href="./m/pnr_map"')]
    ranked = [board.id for board in boards.boards() if board.primary_terms[0].startswith("map@")]
    assert re.findall(r'href="\./b/([^"]+)"', row) == ranked


@pytest.mark.parametrize("name", METRICS)
def test_a_metrics_page_has_formula_source_ties_traps_and_how_to_call_it(host: Server, name: str) -> None:
    page, html = opened(host, f"m/{name}")
    entry = METRICS[name]
    assert (page.status, page.title) == (200, entry.title)
    for said in (entry.description, entry.source, f'evaluate.load("{name}")'):
        assert said in unescape(html)
    headings = [unescape(each) for each in re.findall(r"<h2>([^<]+)</h2>", html)]
    for heading in (
        "What it means",
        "Example",
        "Traps",
        "Boards that show it",
        "Call it",
        "Source",
        "Inputs",
    ):
        assert heading in headings
    assert any(heading.startswith("Equation") for heading in headings)
    assert "against the target" in html
    assert "<script>" not in html
    assert "style=" not in html


@pytest.mark.parametrize("name", METRICS)
def test_the_example_gives_the_numbers_that_the_page_prints(host: Server, name: str) -> None:
    _, html = opened(host, f"m/{name}")
    example = html[html.index("<h2>Example</h2>") :]
    code = unescape(re.sub(r"<[^>]+>", "", example[example.index("<pre>") : example.index("</pre>")]))
    lines = [line for line in code.splitlines() if line.strip()]
    printed = ast.literal_eval("".join(line for line in lines if not line.startswith((">>>", "..."))))
    source = [line[4:] for line in lines if line.startswith((">>>", "..."))]
    known = {"cir_metrics": cir_metrics, "evaluate": evaluate}
    exec("\n".join(source[:-1]), known)
    assert eval(source[-1], known) == printed


def test_variants_and_what_released_code_does_otherwise_stand_there(host: Server) -> None:
    _, html = opened(host, "m/pnr_map")
    assert "released code" in html
    assert "The equation and the released code differ" in html
    assert "plain mean over turns under the name AUC" in re.sub(r"\s+", " ", opened(host, "m/hits_auc")[1])


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (
            "m/recall",
            'no metric recall here.</p>\n<p>Did you mean <a href="../m/recall_at_k">recall_at_k</a>',
        ),
        ("m/map_at", 'no metric map_at here.</p>\n<p>Did you mean <a href="../m/map_at_k">map_at_k</a>'),
        ("m/%3Cscript%3E", "no metric &lt;script&gt; here.</p>"),
    ],
    ids=["printed name", "misspelt", "hostile"],
)
def test_an_unknown_metric_is_a_page_that_names_the_nearest(host: Server, path: str, said: str) -> None:
    page, html = opened(host, path)
    assert page.status == 404
    assert said in re.sub("\n+", "\n", html)
    assert "<script>" not in html


def test_markdown_of_cards_cannot_bring_html_or_scripts() -> None:
    html = html_of("<script>alert(1)</script> [a](javascript:alert(1))\n\n| a | |\n|---|--:|\n| b | c |\n")
    assert "<script>" not in html
    assert 'href="javascript' not in html
    assert '<th scope="col">a</th>' in html
    assert 'tabindex="0"' in html


def test_an_empty_head_of_a_table_is_left_out() -> None:
    html = html_of("| | |\n|---|---|\n| b | c |\n")
    assert "<th" not in html
    assert "<td>b</td>" in html
