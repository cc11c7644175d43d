"""Pictures of the terminal form."""

from __future__ import annotations

import pytest
from PIL import Image

from leaderboard.play.terminal import half_blocks


@pytest.mark.parametrize(
    ("size", "columns", "lines"),
    [((96, 96), 12, 6), ((96, 96), 13, 6), ((200, 100), 12, 3), ((100, 200), 6, 6), ((400, 4), 12, 1)],
)
def test_two_pixels_stand_on_a_line_and_none_is_made_up(
    size: tuple[int, int], columns: int, lines: int
) -> None:
    text = half_blocks(Image.new("RGB", size, "white"), 13 if columns == 13 else 12)
    rows = text.plain.split("\n")
    assert (len(rows), {len(row) for row in rows}) == (lines, {columns})
