"""An entry's page, and what it says of submissions that are no entries."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from leaderboard_world.entries import BOARD, FILES, METRIC, Entries, add_entry
from read_pages import opened, words
from read_pages import read as read_page

import cir_datasets
import submissions
from leaderboard import boards
from leaderboard.pages.site import Page
from leaderboard.server import Server
from leaderboard.settings import Settings
from leaderboard.store.submission import Submission
from submissions.report import full_report
from submissions.validation import read

EVIL = "\"'><script>alert(1)</script>{\\x}"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with closing(Server.open(Settings(tmp_path / "home", url="https://board.example.org"))) as opened:
        yield opened


def entry(server: Server, submission: Submission | str) -> tuple[Page, str]:
    return opened(server, f"e/{submission if isinstance(submission, str) else submission.id}")


def test_the_first_line_has_number_interval_group_and_board(server: Server) -> None:
    best, worst = add_entry(server.store, 1, 0.9), add_entry(server.store, 2, 0.1)
    server.tables.refresh(boards.board(BOARD))
    rows = {row["submission"]: row for row in server.tables.of(boards.board(BOARD)).view["rows"]}
    for submission, group in ((best, 1), (worst, 2)):
        row = rows[submission.id]
        low, high = row["interval"]
        said = f"R@10 {100 * row['main']:.2f} [{100 * low:.2f}, {100 * high:.2f}], group {group} of 2"
        page, html = entry(server, submission)
        assert f"<strong>{said}</strong> on <a href=" in html
        assert page.description.startswith(f"{said} on Shapes,")


def test_what_strangers_wrote_stays_text_and_only_https_becomes_a_link(server: Server) -> None:
    words = {"name": EVIL, "paper": "https://example.org/a", "code": "javascript:alert(2)", "notes": EVIL}
    submission = add_entry(server.store, 1, submitter=EVIL, **words)
    submission = server.store.append(submission, [("flagged", {"reason": EVIL})], by="organiser")
    _, html = entry(server, submission)
    assert "<script>alert" not in html
    assert html.count("&lt;script&gt;alert(1)") >= 5
    assert 'href="https://example.org/a" rel="noopener' in html
    assert "javascript:alert" not in html
    assert "The organisers flag this entry" in html


def test_the_citation_can_be_read_back_by_a_bibtex_reader(server: Server) -> None:
    submission = add_entry(server.store, 1, submitter="Ada & Ben {at} 50% \\o/")
    _, html = entry(server, submission)
    (cited,) = re.findall(r'<pre id="bibtex">(.*?)</pre>', html, re.DOTALL)
    assert cited.startswith(f"@misc{{cir-{submission.id},")
    braces = cited.replace(r"\{", "").replace(r"\}", "")
    assert braces.count("{") == braces.count("}")
    assert r"Ada \&amp; Ben \{at\} 50\% {\textbackslash}o/" in cited
    assert f"https://board.example.org/e/{submission.id}" in cited


def test_every_metric_and_every_part_of_the_signature_is_there(server: Server) -> None:
    submission = add_entry(server.store, 1)
    _, html = entry(server, submission)
    for metric in (METRIC, "recall@1", "median_rank", "recall_subset@1"):
        assert f"<code>{metric}</code>" in html or f'title="{metric}"' in html
    for part in (f"{BOARD}#1", "data:abc", "n:300", "v:1"):
        # A narrow window may break a part behind its colon.
        assert re.search(rf"<code>{part.replace(':', ':<wbr>')}</code></th><td>\w", html)
    assert '<a href="../m/recall_at_k" title="recall@10">R@10</a>' in html


def test_what_it_beats_are_its_neighbours_the_leader_the_best_baseline_and_chance(server: Server) -> None:
    made = {seed: add_entry(server.store, seed, 0.9 - 0.1 * seed) for seed in range(8)}
    add_entry(server.store, 8, 0.3, baseline=True, name="Floor")
    add_entry(server.store, 9, 0.2, baseline=True, name="Cellar")
    server.tables.refresh(boards.board(BOARD))
    page = read_page(server, f"e/{made[4].id}")
    lines = [[words(cell) for cell in row.select("td, th")] for row in page.select(".beside-others tbody tr")]
    names = ["Method 0", *(f"Method {seed}" for seed in range(2, 7)), "Floor", "chance"]
    assert [line[1] for line in lines] == names
    assert words(page.select_one("tr.own th")) == "Method 4"
    assert "before 3 of 7 other methods" in words(page.select_one("main")).lower()
    assert [line[3][:1] for line in lines] == ["-", "-", "-", "", "+", "+", "+", ""]
    assert lines[0][3] == f"{float(lines[3][2]) - float(lines[0][2]):+.2f}"
    assert [fold.h2.get_text() for fold in page.select("details.folded:not([open])") if fold.h2] == [
        "Signature",
        "File and history",
        "Cite",
    ]


def test_a_private_submission_is_not_told_from_one_that_there_is_not(server: Server) -> None:
    submission = add_entry(server.store, 1)
    for kind in ("private", "hidden", "withdrawn"):
        hidden = server.store.append(submission, [(kind, {"reason": {} if kind == "private" else EVIL})])
        page, html = entry(server, hidden)
        none, unknown = entry(server, "0" * 12)
        assert page.status == none.status == 404
        assert html.replace(submission.id, "0" * 12) == unknown
        submission = server.store.append(hidden, [("restored", {"to": "published"})])
    assert entry(server, submission)[0].status == 200


def test_what_waits_or_was_refused_leads_to_its_own_page(server: Server) -> None:
    store = server.store
    waits, _ = store.receive(board=BOARD, sha256="a" * 64, size=1, file_name="run.json")
    page, html = entry(server, waits)
    assert (page.status, f'href="../s/{waits.id}"' in html) == (404, True)
    assert "waits to be judged" in html
    refused = store.append(waits, [("rejected", {"findings": [], "text": ""})])
    assert "found errors" in entry(server, refused)[1]


@pytest.mark.slow
def test_what_the_lists_show_is_what_the_file_holds(demo: Server, entries: Entries) -> None:
    report = submissions.score(FILES["sum"])
    file, benchmark = read(FILES["sum"]), cir_datasets.load(BOARD)
    _, html = entry(demo, entries["sum"])
    ranked = {image for ranking in file.rankings.values() for image in ranking}
    never = len(set(benchmark.gallery or ()) - ranked)
    assert f"<td>{never:,} of 3,940 images" in html
    assert '<td><span class="fits">✓</span> in 0 of 300 lists (0.00 %)' in html
    first = [file.rankings[row["query_id"]][0] == row["target_image_id"] for row in benchmark.rows()]
    assert f'<th scope="row">1</th><td class="num">{sum(first)}</td>' in html
    assert sum(first) == round(300 * report.metrics["recall@1"])
    grouped = full_report(report).groupings["by_aspect"]
    for group in (*grouped.groups, *grouped.means):
        value = f"{100 * (group.values['recall@10'] or 0):.2f}"
        assert f'<th scope="row">{group.name}</th><td class=num>{group.n:,}</td><td class=num>{value}' in html
    assert html.count('<svg class="plot"') == 2
    heads = re.findall("<h2>(.*?)</h2>", html)
    assert heads[:4] == ["Numbers", "What it beats", "What it answered", "Method"]
    assert heads[4:] == ["Where targets stand", "Protocol check", "Signature", "File and history", "Cite"]


@pytest.mark.slow
def test_sessions_have_a_curve(demo: Server, entries: Entries) -> None:
    report = submissions.score(FILES["tirg"])
    _, html = entry(demo, entries["tirg"])
    for turn in range(1, 7):
        value = f"{100 * report.metrics[f'hits@10@turn{turn}']:.2f}"
        assert f'<th scope="row">{turn}</th><td>{value} [' in html
    assert html.count('<svg class="plot"') == 2
    assert re.findall("<h3>(.*?)</h3>", html)[0] == "Hits@10 by turn"
    assert "Hits AUC@10" in html
    assert ">sessions, %<" in html
    assert ">queries, %<" not in html
