"""Entries that do not compare: blocks of a board, their reasons, and the marks, wherever a board is shown."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

import pytest
from leaderboard_world.entries import METRIC, add_entry
from read_pages import column, read, words

from cir_datasets.registry.suites import SuiteSignature
from cir_metrics.catalogue import FORMAT, Signature
from leaderboard import boards
from leaderboard.commands.show import board_text
from leaderboard.inspection.differences import Compared
from leaderboard.server import Server
from leaderboard.settings import Settings
from leaderboard.standings import UNVERIFIED, block_words
from leaderboard.standings.views import compared_rows
from leaderboard.web import formats
from submissions.errors import ComparisonError

BOARD = boards.board("fashioniq/dress_val")
PATH = f"b/{BOARD.id}"
QUERIES = 2017
ENTRIES: dict[str, tuple[float, dict[str, Any]]] = {
    "other": (0.7, {"data_hash": "b" * 64, "reference_held": (2017, 2017)}),
    "kept": (0.5, {"reference_held": (2017, 2017)}),
    "low": (0.45, {"reference_held": (40, 2017), "reference_declared": "kept"}),
    "silent": (0.4, {"reference_held": (0, 2017)}),
    "removed": (0.9, {"reference": "removed", "reference_held": (0, 2017), "reference_declared": "removed"}),
    "union": (0.8, {"ranked": "fashioniq/dress_val_union", "reference_held": (1800, 2017)}),
    "old": (0.99, {"format": 2}),
    "old2": (0.6, {"format": 2}),
}
"""By name what ranks, and what is special of its signature."""
WHERE = {"removed": "reference", "union": "gallery", "other": "signature", "old": "older_format"}


def signature(**parts: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "benchmark": "fashioniq/dress_val",
        "benchmark_version": 1,
        "data_hash": "a" * 64,
    }
    plain |= {"gallery_hash": "c" * 64, "gallery_size": 3817, "reference": "kept", "n": QUERIES}
    plain |= {"ties": "listed", "metric": METRIC, "variant": "default", "metric_version": 1}
    made = Signature(**{**plain, "package_version": "0.1.0", **parts})
    return {**made.to_dict(), "text": str(made)}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    opened = Server.open(Settings(tmp_path_factory.mktemp("blocks")))
    for seed, (name, (strength, parts)) in enumerate(ENTRIES.items()):
        own = signature(**parts)
        add_entry(
            opened.store,
            seed,
            strength,
            board=BOARD.id,
            queries=QUERIES,
            signature=own,
            alike=("recall@50",),
            name=name,
        )
    opened.tables.refresh(BOARD)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def rows(server: Server) -> dict[str, dict[str, Any]]:
    return {row["method"]["name"]: row for row in server.tables.of(BOARD).view["rows"]}


def test_each_block_ranks_for_itself_or_not_at_all(server: Server, rows: dict[str, dict[str, Any]]) -> None:
    order = [(row["method"]["name"], row["rank"], row["block"]) for row in rows.values()]
    assert order == [
        ("kept", 1, "current"),
        ("low", 2, "current"),
        ("silent", 3, "current"),
        ("old", 1, "older_format"),
        ("old2", 2, "older_format"),
        ("removed", None, "reference"),
        ("union", None, "gallery"),
        ("other", None, "signature"),
    ]
    groups = {name: row["group"] for name, row in rows.items()}
    # Tests go across no two blocks: the first of each leads its own group 1.
    assert (groups["kept"], groups["old"], groups["old2"]) == (1, 1, 2)
    assert {groups[name] for name in ("removed", "union", "other")} == {None}
    leading = [row["method"]["name"] for row in compared_rows(list(rows.values()))]
    assert leading == ["kept", "low", "silent"]
    assert server.tables.of(BOARD).view["blocks"] == {
        block: block_words(BOARD, block)
        for block in ("current", "older_format", "reference", "gallery", "signature")
    }


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("kept", ""),
        ("silent", ""),
        ("old", f"format 2, and new ones {FORMAT}"),
        ("removed", "declares that the reference image was removed; the board has it kept"),
        ("union", "evidently rank fashioniq/dress_val_union"),
        ("other", "entries: data differs"),
    ],
)
def test_each_row_says_why_it_stands_apart(rows: dict[str, dict[str, Any]], name: str, why: str) -> None:
    assert why in rows[name]["why"]
    assert bool(rows[name]["why"]) == bool(why)


def test_the_evidence_of_the_reference_stands_in_every_row(rows: dict[str, dict[str, Any]]) -> None:
    assert rows["low"]["reference_evidence"] == {
        "used": "kept",
        "held": 40,
        "lists": 2017,
        "declared": "kept",
        "unverified": False,
        "members": {},
    }
    assert rows["old"]["reference_evidence"]["held"] is None
    marked = [name for name, row in rows.items() if row["reference_evidence"]["unverified"]]
    assert marked == ["silent"]


def test_a_suites_evidence_is_that_of_all_its_members(server: Server) -> None:
    board = boards.board("fashioniq/val")
    members = [
        Signature.from_dict(signature(benchmark=each, reference_held=held))
        for each, held in zip(board.benchmarks, [(5, 10), (0, 20), (30, 30)], strict=True)
    ]
    own = SuiteSignature.of("fashioniq/val", 1, METRIC, members)
    stored = {**own.to_dict(), "text": str(own)}
    add_entry(
        server.store,
        20,
        board=board.id,
        queries=60,
        signature={
            **stored,
            "members": [*stored["members"][:2], {**stored["members"][2], "reference": "removed"}],
        },
    )
    (row,) = server.tables.of(board).view["rows"]
    assert row["reference_evidence"] == {
        "used": "kept, removed",
        "held": 35,
        "lists": 60,
        "declared": "",
        "unverified": True,
        "members": dict(zip(board.benchmarks, [[5, 10], [0, 20], [30, 30]], strict=True)),
    }
    page = words(read(server, f"e/{row['submission']}").select_one("main"))
    assert "kept, removed; 35 of 60 lists hold it; fashioniq/dress_val: 5 of 10; " in page
    assert (row["block"], row["rank"]) == ("reference", None)
    assert "removed in fashioniq/toptee_val" in row["why"]


def test_the_page_shows_blocks_below_each_other_with_their_reasons(server: Server) -> None:
    page = read(server, PATH, hide="published")
    bodies = page.select(".standings tbody")
    assert [words(body.select_one("tr.block th")) for body in bodies if body.select_one("tr.block")] == [
        " ".join(block_words(BOARD, block).split())
        for block in ("older_format", "reference", "gallery", "signature")
    ]
    assert [words(name) for name in bodies[2].select(".name > a")] == ["removed"]
    marks = dict(zip(column(page, "name"), column(page, "aside"), strict=True))
    assert "reference removed" in marks["removed"]
    assert "other gallery" in marks["union"]
    assert "older format" in marks["old"]
    assert [name for name, mark in marks.items() if "reference unverified" in mark] == ["silent"]
    assert UNVERIFIED in words(page.select_one("main"))
    # However the rows are sorted, no block mixes with another.
    turned = read(server, PATH, hide="published", sort="name", order="desc")
    assert column(turned, "name") == ["silent", "low", "kept", "old2", "old", "removed", "union", "other"]


@pytest.mark.parametrize("name", [*WHERE, "silent", "kept"])
def test_the_entrys_page_says_why_and_places_it_within_its_block(
    server: Server, rows: dict[str, dict[str, Any]], name: str
) -> None:
    page = read(server, f"e/{rows[name]['submission']}")
    notices = " ".join(words(each) for each in page.select(".notice"))
    assert (rows[name]["why"] in notices) if name in WHERE else "compare" not in notices
    assert (UNVERIFIED in notices) == (name == "silent")
    assert rows[name]["reference_evidence"]["used"] in words(page.select_one("dl.listed"))
    place = {"kept": "group 1 of", "old": "group 1 of 2"}.get(
        name, "without a rank" if name in WHERE else "group"
    )
    assert place in words(page.select_one(".score"))


def test_files_name_block_and_mark(server: Server) -> None:
    view = server.tables.of(BOARD).view
    table = {row["name"]: row for row in csv.DictReader(io.StringIO(formats.as_csv(view).decode()))}
    assert {name: table[name]["block"] for name in WHERE} == WHERE
    assert [table["low"][f"reference_{each}"] for each in ("used", "held", "lists")] == ["kept", "40", "2017"]
    assert (table["silent"]["reference_unverified"], table["kept"]["reference_unverified"]) == (
        "true",
        "false",
    )
    assert "fashioniq/dress_val_union" in table["union"]["why"]
    latex = formats.as_latex(BOARD, view).decode()
    for said in ("silent (reference unverified)", "removed (reference removed)", "old (older format)"):
        assert said in latex
    assert latex.count("\\midrule") >= 5


def test_the_terminal_shows_the_same_blocks(server: Server) -> None:
    lines = board_text(BOARD, server.tables.of(BOARD).view).splitlines()
    heads = [lines.index(block_words(BOARD, block)) for block in ("older_format", "reference", "gallery")]
    assert heads == sorted(heads)
    assert "removed" in lines[heads[1] + 1]
    assert lines[-1] == UNVERIFIED
    assert "reference unverified" in next(line for line in lines if " silent " in line)


def test_no_test_goes_across_two_blocks(server: Server, rows: dict[str, dict[str, Any]]) -> None:
    found = {name: server.store.submission(row["submission"]) for name, row in rows.items()}
    for name, part in (
        ("removed", "ref: kept against removed"),
        ("union", "ranked: "),
        ("old", "sig: 3 against 2"),
    ):
        with pytest.raises(ComparisonError, match=part):
            Compared(server.numbers).of([found["kept"], found[name]])
