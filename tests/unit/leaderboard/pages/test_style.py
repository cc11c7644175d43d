"""The style sheet of all pages."""

from __future__ import annotations

import re

import pytest

from leaderboard.pages.site import STYLE, asset


@pytest.fixture(scope="module")
def sheet() -> str:
    return re.sub(r"/\*.*?\*/", "", asset(STYLE)[0].decode(), flags=re.S)


def test_every_block_is_closed(sheet: str) -> None:
    depth = 0
    for line in sheet.splitlines():
        depth += line.count("{") - line.count("}")
        assert 0 <= depth <= 2, line
    assert depth == 0


def test_nothing_is_loaded_from_elsewhere(sheet: str) -> None:
    assert "@import" not in sheet
    assert "//" not in sheet
    assert [
        each for each in re.findall(r"url\(\s*[\"']?([^)]*)", sheet) if not each.startswith("data:")
    ] == []


def test_every_colour_that_is_used_has_a_value_in_both_themes(sheet: str) -> None:
    light, dark = re.findall(r":root \{([^}]*)\}", sheet)
    used = set(re.findall(r"var\((--[\w-]+)\)", sheet))
    assert used <= set(re.findall(r"(--[\w-]+):", light))
    assert used <= set(re.findall(r"(--[\w-]+):", dark))
