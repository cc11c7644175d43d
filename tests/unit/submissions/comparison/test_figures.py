"""Figures of several methods: lines, bars and marks by what the files hold, as SVG and as PDF."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import benchmark_world as worlds
import pytest
from cir_here import invoked

import cir_datasets
from cir_datasets.rows.benchmark import Benchmark
from cir_metrics.errors import CallError
from submissions.comparison import figures
from submissions.comparison.figures import write_figures
from submissions.errors import ComparisonError
from submissions.rank_file.model import Method, RankFile, write
from submissions.scoring import score
from submissions.scoring.score_report import ScoreReport

if TYPE_CHECKING:
    from matplotlib.figure import Figure

pytest.importorskip("matplotlib")

IMAGES = [f"im{number}" for number in range(40)]
STAR = "\N{BLACK STAR}"
Places = list[list[int]]
"""Of each session the place of its target at every turn."""


def scored(method: str, aggregation: str, config: str, places: Places, **changes: Any) -> ScoreReport:
    rows = [
        {**worlds.session(f"s{number}", len(turns), "im39"), "subset": config}
        for number, turns in enumerate(places)
    ]
    gallery = changes.get("gallery", IMAGES)
    benchmark = Benchmark.from_rows(cir_datasets.spec(f"circled/{config}"), rows, gallery)
    rankings = {
        row["session_id"]: [[*IMAGES[: place - 1], "im39", *IMAGES[place - 1 : 39]][:10] for place in turns]
        for row, turns in zip(rows, places, strict=True)
    }
    run = worlds.rank_file_of(benchmark.id, rankings, method={"name": method, "aggregation": aggregation})
    return score(json.dumps(run).encode(), benchmark, name=f"{method}.{config}.json")


LATEST, WEIGHTED = "latest", "weighted (alpha 0.8)"
SCORES = [
    # One session of two is found at turn 1, none at its end; then none, and both.
    scored("A (clip, latest)", LATEST, "cirr_val", [[3, 20], [20, 20]]),
    scored("A (clip, weighted)", WEIGHTED, "cirr_val", [[20, 3], [20, 3]]),
    scored("B", "", "cirr_val", [[20, 3], [20, 20]]),
    # Two of three at turn 1, one of them and the third at the end; then one, and two.
    scored("A (clip, latest)", LATEST, "fashioniq_dress_val", [[3, 3], [3, 20], [20, 20, 3]]),
    scored("A (clip, weighted)", WEIGHTED, "fashioniq_dress_val", [[20, 3], [3, 20], [20, 20, 20]]),
    scored("B", "", "fashioniq_dress_val", [[3, 3], [20, 3], [20, 3, 3]]),
]


@pytest.fixture
def drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Figure]:
    """The figures by the name of their file."""
    found: dict[str, Figure] = {}
    monkeypatch.setattr(
        figures, "save_plot", lambda figure, path: found.setdefault(path.stem, figure) and path
    )
    write_figures(SCORES, tmp_path)
    return found


def lines(axes: Any) -> dict[str, list[float]]:
    """By label in the legend the numbers of a line."""
    return {line.get_label(): [round(value, 2) for value in line.get_ydata()] for line in axes.lines}


def test_hits_by_turn_are_a_panel_a_subset_and_a_line_a_method(drawn: dict[str, Figure]) -> None:
    dress, cirr = drawn["hits_by_turn"].axes
    assert [axes.get_title(loc="left") for axes in (dress, cirr)] == ["fashioniq_dress_val", "cirr_val"]
    # Of A the aggregation with the larger area: on dress latest, on cirr weighted (as large as latest's).
    assert lines(dress) == {"A (clip)": [66.67, 66.67, 100.0], "B": [33.33, 100.0, 100.0]}
    assert lines(cirr) == {"A (clip)": [50.0, 50.0], "B": [0.0, 50.0]}


def test_bars_are_a_group_a_subset_with_the_best_of_it_marked(drawn: dict[str, Figure]) -> None:
    final, area = drawn["by_subset"].axes
    assert [axes.get_title(loc="left") for axes in (final, area)] == ["Final Recall@10", "AUC over Hits@10"]
    assert [label.get_text() for label in area.get_xticklabels()] == [
        "fashioniq_dress_val\n(3)",
        "cirr_val\n(2)",
    ]
    # A on dress, A on cirr, B on dress, B on cirr; behind a number the aggregation it is of.
    assert [text.get_text() for text in final.texts] == [
        "66.7 L",
        f"{STAR} 100.0 W",
        f"{STAR} 100.0",
        "50.0",
    ]
    assert [text.get_text() for text in area.texts] == ["75.0 L", f"{STAR} 50.0 L", f"{STAR} 83.3", "25.0"]
    heights = [round(bar.get_height(), 1) for bar in final.patches]
    assert heights == [66.7, 100.0, 100.0, 50.0]
    (head,) = drawn["by_subset"].texts
    assert "(L latest, W weighted 0.8)" in " ".join(head.get_text().split())


def test_aggregations_stand_side_by_side_with_the_best_marked(drawn: dict[str, Figure]) -> None:
    (panel,) = drawn["aggregations_circled_cirr_val"].axes
    assert panel.get_title(loc="left") == f"A (clip)\n{STAR} weighted 0.8: 100.0"
    assert lines(panel) == {"latest": [50.0, 50.0], "weighted 0.8": [0.0, 100.0]}
    (star,) = panel.texts
    assert (star.get_text(), star.xy) == (STAR, (2, 100.0))
    (panel,) = drawn["aggregations_circled_fashioniq_dress_val"].axes
    assert panel.get_title(loc="left") == f"A (clip)\n{STAR} latest: 66.7"


def test_each_figure_is_an_svg_and_a_pdf_the_same_each_time(tmp_path: Path) -> None:
    first, again = (write_figures(SCORES[2:4], tmp_path / name) for name in ("one", "two"))
    assert [path.name for path in first] == [
        f"{name}{ending}" for name in ("hits_by_turn", "by_subset") for ending in (".svg", ".pdf")
    ]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in again]
    assert all(path.read_bytes().startswith(b"%PDF") for path in first if path.suffix == ".pdf")
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", first[0].read_text(encoding="utf-8"))
    assert {"A (clip)", "B", "turn"} <= set(texts)


def test_what_cannot_be_drawn_together_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        CallError, match=r"both of 'B' on circled/cirr_val .* Fix: name one of them otherwise"
    ):
        write_figures([SCORES[2], SCORES[2]], tmp_path / "none")
    benchmark = worlds.cirr()
    queries = score(json.dumps(worlds.cirr_document(benchmark)).encode(), benchmark)
    with pytest.raises(CallError, match="the figures are of sessions"):
        write_figures([queries], tmp_path / "none")
    other = scored("C", "", "cirr_val", [[3, 3], [3, 3]], gallery=[*IMAGES, "im40"])
    with pytest.raises(ComparisonError, match="gallery"):
        write_figures([SCORES[2], other], tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_the_command_draws_files_of_any_benchmarks(tmp_path: Path) -> None:
    """`shapes/multiturn_val` shows Hits@10 on its board; a name is given to a file's method."""
    benchmark = cir_datasets.load("shapes/multiturn_val")
    images = list(benchmark.gallery or ())[:10]
    rankings: dict[str, Any] = {row["session_id"]: [images] * row["num_turns"] for row in benchmark.rows()}
    file = str(tmp_path / "run.json")
    write(RankFile(benchmark.id, benchmark.version, Method(name="Same for all"), rankings, None), file)
    done = invoked("plot", file, "--out", tmp_path / "figures", "--name", f"{file}=Mine", code=0)
    assert [Path(line).name for line in done.stdout.splitlines()] == [
        "hits_by_turn.svg",
        "hits_by_turn.pdf",
        "by_subset.svg",
        "by_subset.pdf",
    ]
    assert ">Mine<" in (tmp_path / "figures/hits_by_turn.svg").read_text(encoding="utf-8")
    wrong = invoked("plot", file, "--out", tmp_path / "figures", "--name", "other.json=Mine")
    assert "other.json, which is not among the files" in str(wrong.exception)
