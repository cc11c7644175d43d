"""A suite's page: the mean with its members, how a bundle is made, published averages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from cir_datasets.registry.suites import suite, suite_ids
from leaderboard import boards
from leaderboard.pages.addresses import page_at
from leaderboard.pages.site import Links, Page, Site
from leaderboard.server import Server
from leaderboard.settings import Settings
from leaderboard.store import Store
from submissions.scoring.score_report import shown_value

EVIL = '"><script>alert(1)</script>'
SUITE = "fashioniq/val"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    server = Server.open(Settings(tmp_path / "home"))
    yield Site(server)
    server.close()


def written(site: Site, suite_id: str) -> tuple[Page, str]:
    path = f"suite/{suite_id}"
    page = page_at(site, path, {})
    return page, site.written(page, Links(path))


def plain(html: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", html)))


def add_bundle(store: Store, name: str, values: dict[str, float]) -> None:
    """An entry of the suite's board: by `metric@member` a value."""
    metrics = {metric: value for metric, value in values.items() if "/" in metric}
    for metric in ("recall@10", "recall@50"):
        of_members = [value for key, value in metrics.items() if key.startswith(f"{metric}@")]
        metrics[metric] = sum(of_members) / len(of_members)
    runs = [
        {
            "benchmark": member,
            "metrics": {metric: values[f"{metric}@{member}"] for metric in ("recall@10", "recall@50")},
        }
        for member in suite(SUITE).benchmarks
    ]
    own = {metric: value for metric, value in metrics.items() if "/" not in metric}
    signature = {"format": 3, "key": "same", "text": f"{SUITE}#1 | v:1", "gallery_size": 100}
    report = {"metrics": own, "runs": runs, "signatures": dict.fromkeys(own, signature)}
    submission, _ = store.receive(
        board=SUITE, sha256=f"{len(name):064x}", size=1, file_name="bundle.json", submitter="", baseline=False
    )
    submission = store.append(
        submission, [("validated", {"findings": [], "text": ""})], method={"name": name}
    )
    store.append(submission, [("scored", {"report": report}), ("published", {})])


def test_the_mean_stands_with_its_members_beside_it(site: Site) -> None:
    members = suite(SUITE).benchmarks
    values = {
        f"{metric}@{member}": (place + cutoff) / 100
        for place, member in enumerate(members, start=1)
        for metric, cutoff in (("recall@10", 10), ("recall@50", 50))
    }
    add_bundle(site.server.store, f"N{EVIL}", values)
    page, html = written(site, SUITE)
    assert page.status == 200
    row = re.search(r"<tr><td>[^<]*</td><th scope=\"row\">.*?</tr>", html, re.DOTALL)
    assert row is not None
    expected = [(place + 10 + place + 50) / 200 for place in (1, 2, 3)]
    shown = [shown_value("recall@10", each).strip() for each in (sum(expected) / 3, *expected)]
    assert re.findall(r"\b\d+\.\d+\b", plain(row[0])) == shown
    assert "<script>alert" not in html


@pytest.mark.parametrize("suite_id", suite_ids())
def test_every_suite_has_a_page_with_members_and_a_bundles_commands(site: Site, suite_id: str) -> None:
    page, html = written(site, suite_id)
    assert page.status == 200
    found = suite(suite_id)
    said = plain(html)
    assert [member for member in found.benchmarks if member not in said] == []
    assert f"--to native --benchmark {suite_id} --out bundle.json" in said
    own = [board.id for board in boards.boards() if board.benchmark == suite_id]
    assert ("cir submit bundle.json" in said) == bool(own)
    linked = {board.benchmark for board in boards.boards() if board.benchmark in found.benchmarks}
    to_root = "../" * (1 + suite_id.count("/"))
    assert [member for member in linked if f'href="{to_root}b/{member}"' not in html] == []


def test_published_averages_stand_as_reported(site: Site) -> None:
    said = plain(written(site, SUITE)[1])
    for number in ("64.85", "62.135", "71.77"):
        assert number in said
    assert "never ranked with the entries" in said
    assert "55.83 69.50" not in said
    assert "SPN4CIR Liu et al., FISD, 2026, Table 1, row 11 55.83 58.50 69.50 13.00" in plain(
        written(site, "fisd")[1]
    )
    assert "No source prints an average" in plain(written(site, "circled")[1])


def test_an_unknown_suite_is_a_page_that_names_the_nearest(site: Site) -> None:
    page, html = written(site, "fashioniq/vall")
    assert page.status == 404
    assert 'Did you mean <a href="../../suite/fashioniq/val">fashioniq/val</a>' in html
