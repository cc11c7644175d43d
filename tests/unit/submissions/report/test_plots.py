"""Pictures of reports: files of the kind that was asked for, with the labels that a reader needs."""

from __future__ import annotations

import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import TYPE_CHECKING

import benchmark_world as worlds
import pytest
from benchmark_world import reports
from says import refusal
from typer.testing import CliRunner

import submissions
from cir_datasets.errors import install_lines
from cir_datasets.registry import card, spec
from cir_datasets.rows.benchmark import Benchmark
from cir_metrics.errors import CallError, MissingExtraError
from leaderboard.cli import build
from submissions.errors import SubmissionError
from submissions.report import Report, full_report, plots
from submissions.scoring.intervals import intervals

if TYPE_CHECKING:
    from matplotlib.figure import Figure

pytest.importorskip("matplotlib")


def figure_of(report: Report, monkeypatch: pytest.MonkeyPatch) -> Figure:
    """What would be written into the file."""
    drawn: list[Figure] = []
    monkeypatch.setattr(plots, "save_plot", lambda figure, _: drawn.append(figure))
    report.plot("plot.svg")
    return drawn[0]


def labels(report: Report, folder: Path) -> list[str]:
    path = report.plot(folder / "plot.svg")
    root = ElementTree.parse(path).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    return ["".join(each.itertext()).strip() for each in root.iter("{http://www.w3.org/2000/svg}text")]


def test_a_png_is_a_png(tmp_path: Path) -> None:
    path = full_report(reports.scored("circo_like")).plot(tmp_path / "plot.PNG")
    content = path.read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = (int.from_bytes(content[place : place + 4], "big") for place in (16, 20))
    assert min(width, height) > 300


def test_sessions_are_drawn_by_turn(tmp_path: Path) -> None:
    score = reports.scored("shapes_multiturn_val")
    found = labels(full_report(score), tmp_path)
    for label in ("Hits@10", "Recall@10 at the turn", "random Hits@10", "turn (sessions that have it)", "%"):
        assert label in found
    assert "Image + text, sum on shapes/multiturn_val" in found
    sizes = [label for label in found if re.fullmatch(r"\(\d+\)", label)]
    assert sizes[-4:] == ["(108)", "(52)", "(24)", "(9)"]
    banded = labels(full_report(score, intervals(score, draws=50)), tmp_path)
    assert set(banded) - set(found) == {"95 % interval of Hits@10"}


def test_aspects_are_bars_and_one_without_queries_says_so(tmp_path: Path) -> None:
    found = labels(full_report(reports.scored("circo_like")), tmp_path)
    for label in ("Addition (3)", "Viewpoint (2)", "Compare and change (0)", "map@10", "random", "66.7"):
        assert label in found
    assert found.count("no query") == 5


def zerosight(metrics: list[str], name: str = "toy") -> Report:
    """A report by category; the board names four metrics by category."""
    images = [f"v/{number}.jpg" for number in range(60)]
    rows = []
    for number, category in enumerate(card("zerosight").report.aspect_names):
        more = {"positive_image_ids": images[:2], "negative_image_ids": images[2:4], "aspects": [category]}
        rows.append({**worlds.query(str(number), images[55], images[0], **more), "target_image_id": None})
    benchmark = Benchmark.from_rows(spec("zerosight/all"), rows, images)
    document = worlds.circo_document(benchmark)
    document["rankings"] = dict.fromkeys(benchmark.query_ids, images[2:4] + images[:2] + images[4:50])
    document["method"] = {"name": name}
    return full_report(submissions.score(json.dumps(document).encode(), benchmark, metrics=metrics))


def test_ranks_and_counts_are_not_bars(tmp_path: Path) -> None:
    benchmark = reports.circo()
    content = json.dumps(reports.circo_document(benchmark)).encode()
    found = labels(full_report(submissions.score(content, benchmark, metrics=["mean_rank"])), tmp_path)
    assert "map@10" in found
    assert not {"mean_rank", "median_rank", "censored"} & set(found)


def test_five_metrics_by_aspect_look_different_and_their_legend_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.colors import to_hex

    wide = zerosight(["pnr_map@10:released_code"], "A wide name, wider than the figure is. " * 2)
    figure = figure_of(wide, monkeypatch)
    groups = figure.axes[0].containers
    looks = {(to_hex(group[0].get_facecolor()), group[0].get_hatch()) for group in groups}
    assert len(groups) == len(looks) == 5
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()][-2:] == ["pnr_map@10:released_code", "random"]
    figure.canvas.draw()
    for drawn in (legend, figure.texts[0]):
        box = drawn.get_window_extent()
        assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= box.y0 < box.y1 <= figure.bbox.y1
    assert figure.texts[0].get_text().endswith("…")


def test_several_cutoffs_by_turn_have_lines_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    rank_file = submissions.make_rank_file("shapes/multiturn_val", "random")
    score = submissions.score(rank_file, metrics=["hits@5", "hits@1"])
    figure = figure_of(full_report(score), monkeypatch)
    lines = figure.axes[0].get_lines()
    looks = {(line.get_color(), line.get_marker(), line.get_linestyle(), line.get_mfc()) for line in lines}
    assert len(lines) == len(looks) == 9


def test_without_turns_and_aspects_the_metrics_are_bars(tmp_path: Path) -> None:
    found = labels(full_report(reports.scored("cirr_like")), tmp_path)
    for label in ("recall@50", "recall_subset@1", "map_subset@3", "score", "random"):
        assert label in found


def test_a_suites_members_are_bars(tmp_path: Path) -> None:
    members = [worlds.fashioniq(category) for category in ("dress", "shirt", "toptee")]
    content = json.dumps(worlds.fashioniq_bundle(members)).encode()
    score = submissions.score(content, {member.id: member for member in members})
    found = labels(full_report(score), tmp_path)
    assert {"fashioniq/dress_val", "fashioniq/shirt_val", "fashioniq/toptee_val", "recall@50"} <= set(found)
    assert "recall@50@micro" not in found


def test_the_same_report_gives_the_same_svg(tmp_path: Path) -> None:
    report = full_report(reports.scored("circo_like"))
    first = report.plot(tmp_path / "a.svg").read_bytes()
    assert report.plot(tmp_path / "b.svg").read_bytes() == first


def test_another_ending_is_refused(tmp_path: Path) -> None:
    with refusal("out.eps: a plot is written as .png, .svg or .pdf. Fix: name it out.png.", CallError):
        full_report(reports.scored("circo_like")).plot(tmp_path / "out.eps")


@pytest.mark.parametrize(
    ("given", "said"),
    [("", "no file is named. Fix: name a file, such as plot.png."), ("/", "/ is a folder. Fix: name a file")],
    ids=["empty", "folder"],
)
def test_a_folder_is_refused_before_any_work(given: str, said: str) -> None:
    for command in ("score", "compare"):
        done = CliRunner().invoke(build(), [command, "absent.json", "absent.json", "--plot", given])
        assert isinstance(done.exception, CallError)
        assert str(done.exception).startswith(f"--plot: {said}")
    with pytest.raises(CallError, match=f"the plot: {said}"):
        full_report(reports.scored("circo_like")).plot(given)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "none" / "out.svg"
    with refusal(f"{path}: cannot be written: No such file ... Fix: name a file", SubmissionError):
        full_report(reports.scored("circo_like")).plot(path)


def test_without_matplotlib_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with refusal(f"a plot needs matplotlib ... Fix: {install_lines('statistics')}", MissingExtraError):
        full_report(reports.scored("circo_like")).plot(tmp_path / "out.png")
    assert list(tmp_path.iterdir()) == []
