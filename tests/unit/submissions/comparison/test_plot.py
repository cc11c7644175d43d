"""The forest plot of a comparison: its rows, marks and numbers, by what the files hold."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import benchmark_world as worlds
import pytest
from PIL import Image

import submissions
from cir_metrics.errors import CallError
from submissions.comparison import plot as plotting
from submissions.comparison.result import Comparison


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    benchmark = worlds.cirr(queries=30)
    files = worlds.write(tmp_path_factory.mktemp("files"), worlds.three_methods(benchmark))
    metrics = ["recall@5", "recall_subset@1", "mean_rank"]
    return submissions.compare(files, benchmark, metrics=metrics, draws=200)


def texts(path: Path) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", path.read_text(encoding="utf-8"))


def test_every_metric_of_every_pair_has_a_row_with_its_numbers(found: Comparison, tmp_path: Path) -> None:
    shown = texts(found.plot(tmp_path / "differences.svg"))
    for pair in found.pairs:
        # Once among the shares, once among the ranks.
        assert shown.count(f"{pair.first} minus {pair.second}".replace("&", "&amp;")) == 2
        for metric, each in pair.differences.items():
            unit = 1 if metric == "mean_rank" else 100
            ends = ", ".join(f"{unit * end:+.2f}" for end in (each.interval.low, each.interval.high))
            assert f"{unit * each.difference:+.2f} [{ends}]".replace("+0.00", "0.00") in shown
    assert [shown.count(metric) for metric in found.metrics] == [3, 3, 3]
    assert any("ranks; to the left the first is better" in text for text in shown)
    assert any("Holm over 3 metrics x 3 pairs, alpha 0.05" in text for text in shown)


def test_a_mark_is_full_where_the_difference_is_significant(
    found: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr(plotting, "save_plot", lambda figure, path: drawn.append(figure) or path)
    found.plot(tmp_path / "differences.svg")
    (figure,) = drawn
    shares = [metric for metric in found.metrics if metric != "mean_rank"]
    wanted = [pair.differences[metric] for pair in found.pairs for metric in shares]
    marks = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert [mark.get_markerfacecolor() != "white" for mark in marks] == [each.significant for each in wanted]
    assert {each.significant for each in wanted} == {True, False}
    assert [mark.get_xdata()[0] for mark in marks] == pytest.approx(
        [100 * each.difference for each in wanted]
    )


def test_a_picture_has_no_empty_height_and_the_same_bytes_again(found: Comparison, tmp_path: Path) -> None:
    one, two = found.plot(tmp_path / "one.png"), found.plot(tmp_path / "two.png")
    assert one.read_bytes() == two.read_bytes()
    with Image.open(one) as picture:
        rows = picture.convert("L").point(lambda value: 255 * (value < 200)).getbbox()
        assert rows[3] - rows[1] > 0.9 * picture.height


def test_another_ending_and_too_many_rows_are_refused(
    found: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CallError, match=r"written as \.png, \.svg or \.pdf"):
        found.plot(tmp_path / "differences.eps")
    monkeypatch.setattr(plotting, "MOST_ROWS", 10)
    with pytest.raises(CallError, match=r"would have 15 rows, and 10 can be read"):
        found.plot(tmp_path / "differences.svg")
    assert list(tmp_path.iterdir()) == []
