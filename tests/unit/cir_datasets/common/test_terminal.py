"""Tables fit the screen: columns are left out and named, and nothing is wrapped."""

from __future__ import annotations

import fcntl
import os
import struct
import termios

import pytest
from typer.testing import CliRunner

from cir_datasets.common.terminal import fitted, screen_columns
from leaderboard.cli import build

ROWS = [
    ["#", "Kind", "Method", "R@10", "95 %", "R@50"],
    ["1", "", "A sum of pictures and captions (an encoder, weighted)", "59.00", "[53.67, 64.33]", "95.33"],
    ["2", "baseline", "Random", "0.67", "[0.00, 1.67]", "1.33"],
]
NUMBERS = (0, 3, 4, 5)
FULL = 1 + 8 + 53 + 5 + 14 + 5 + 5 * 2


def at(width: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(width))
    return fitted(ROWS, right=NUMBERS, keep=(0, 2, 3)).split("\n")


def test_where_there_is_room_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = at(FULL, monkeypatch)
    assert [len(line) for line in lines] == [FULL, FULL, FULL]


@pytest.mark.parametrize(
    ("width", "left_out"),
    [(FULL - 1, "R@50"), (FULL - 8, "95 %"), (80, "95 %"), (70, "Kind, 95 %"), (66, "Kind, 95 %, R@50")],
)
def test_what_has_no_room_is_left_out_and_named(
    width: int, left_out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    *table, note = at(width, monkeypatch)
    assert max(map(len, table)) <= width
    assert not set(left_out.split(", ")) & set(table[0].split("  "))
    assert f"left out: {left_out}." in note
    assert f"COLUMNS={FULL} " in note


def test_columns_that_stay_have_names_without_their_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    head, first, *_ = at(48, monkeypatch)
    assert max(len(head), len(first)) <= 48
    assert first.endswith("59.00")
    assert first.split("  ")[1].startswith("A sum of ")
    assert "…" in first
    assert " weighted)" in first


def test_a_terminal_says_its_width_and_a_pipe_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS")
    outer, inner = os.openpty()
    reading, writing = os.pipe()
    try:
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        for descriptor, width in ((inner, 80), (writing, None)):
            with os.fdopen(descriptor, "w", closefd=False) as stream:
                monkeypatch.setattr("sys.stdout", stream)
                assert screen_columns() == width
    finally:
        monkeypatch.undo()
        for descriptor in (outer, inner, reading, writing):
            os.close(descriptor)


@pytest.mark.parametrize("chosen", ["", "0", "wide"])
def test_columns_that_is_no_number_is_not_heeded(chosen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", chosen)
    monkeypatch.setattr("sys.stdout", None)
    assert screen_columns() is None


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize(
    "words",
    [
        ("datasets", "list"),
        ("metrics", "list"),
        ("methods", "list"),
        ("table", "--for", "cirr", "--published", "all"),
    ],
)
def test_commands_print_tables_that_fit(width: int, words: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(build(), list(words), env={"COLUMNS": str(width)})
    assert shown.exit_code == 0, shown.output
    whole = CliRunner().invoke(build(), list(words), env={"COLUMNS": "1000"}).stdout
    assert "left out" in shown.stdout
    assert "left out" not in whole
    table, _, _ = shown.stdout.partition(f"To fit {width} characters, left out: ")
    # A title stands above a paper's table; it is a sentence.
    assert max(map(len, table.splitlines()[words[0] == "table" :])) <= width
