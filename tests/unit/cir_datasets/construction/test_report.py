"""The page about a construction: whole without a network, and harmless whatever captions hold."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from PIL import Image

from cir_datasets.common.plots import empty_figure
from cir_datasets.common.stages import StageState
from cir_datasets.common.terminal import Cell, Table
from cir_datasets.construction.report import Example, Section, Step, write_report
from cir_datasets.errors import ConstructionError

STAGES = (
    StageState(
        "captions", "captions pictures", Path("01-captions.jsonl"), finished=True, rows=1200, failed=3
    ),
    StageState("turns", "walks", Path("02-turns.jsonl"), finished=False, parts=2),
    StageState("filters", "filters", Path("03-filters.jsonl"), finished=False),
)


def picture(image: str) -> Image.Image:
    if image == "gone":
        raise FileNotFoundError(image)
    return Image.new("RGBA", (400, 200), (200, 30, 30, 128))


def page(path: Path) -> str:
    figure = empty_figure(3, 2, pads=(0.1, 0.1))
    figure.add_subplot().plot([1, 2, 3])
    evil = "<script>alert(1)</script>"
    examples = (
        Example(evil, (Step("a", "reference", evil), Step("gone", "target", kind="good")), note="seen twice"),
    )
    table = Table("Drops", ("reason", "rows"), ((Cell("too like"), Cell("12")),), ("a note of the table",))
    section = Section("What was dropped", (table,), (("a curve", figure),), examples, ("a note",))
    write_report(
        path, title="Sessions", summary="of shapes", stages=STAGES, sections=[section], open_picture=picture
    )
    return path.read_text("utf-8")


def test_the_page_holds_everything_and_needs_nothing_else(tmp_path: Path) -> None:
    text = page(tmp_path / "report.html")
    for words in ("1,200", "2 parts", "to do", "too like", "a note of the table", "seen twice", "a curve"):
        assert words in text
    assert set(re.findall(r'(?:src|href)="([^;,"]*)', text)) == {"data:image/jpeg", "data:image/svg+xml"}
    assert text.count("data:image/jpeg") == 1, "a picture that cannot be opened is shown by its id"
    assert '<span class="fine">gone</span>' in text
    assert "<script" not in text


def test_two_pages_of_one_run_are_the_same_bytes(tmp_path: Path) -> None:
    assert page(tmp_path / "one.html") == page(tmp_path / "two.html")


def test_a_folder_that_cannot_be_written_explains_itself(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConstructionError, match=r"cannot be written: .* Fix: name another folder"):
        page(tmp_path / "file" / "report.html")


def test_columns_of_numbers_stand_to_the_right(tmp_path: Path) -> None:
    text = page(tmp_path / "report.html")
    assert "<th class=number>rows</th>" in text
    assert "<td class=number>1,200</td>" in text
    assert "<th>what it does</th>" in text
