"""Calls that are nearly right: what is said names what was meant, or the step that leads on."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import benchmark_world as worlds
import numpy as np
import pytest
from typer.testing import CliRunner

import cir_datasets
import cir_metrics
import submissions
from cir_datasets.construction.user_rows import custom_benchmark
from cir_metrics.catalogue import parse_metric
from cir_metrics.errors import CirError
from leaderboard.client import Client

ROWS = [
    {"query_id": "1", "reference_image_id": "a", "relative_caption": "in red", "positive_image_ids": ["b"]},
    {"query_id": "2", "reference_image_id": "a", "relative_caption": "in blue", "target_image_id": "c"},
]


@functools.cache
def app() -> Any:
    from leaderboard.cli import build

    return build()


def refused(*words: str) -> str:
    done = CliRunner().invoke(app(), list(words))
    assert done.exit_code in (1, 2), done.output
    return " ".join((done.output + str(done.exception)).split())


@pytest.mark.parametrize("wanted", ["CIRR/val", "Cirr/VAL", "CIRR_VAL", "CIRR"])
def test_the_case_of_a_benchmark_is_named(wanted: str) -> None:
    with pytest.raises(CirError, match="Did you mean 'cirr/val'"):
        cir_datasets.load(wanted)


METRIC_DOORS: dict[str, Callable[[str], Any]] = {
    "parse_metric": parse_metric,
    "evaluate": lambda name: cir_metrics.evaluate_single_turn([name], [["a"]], [{"target": "a"}]),
    "score": lambda name: submissions.score(b"{}", worlds.circo(), metrics=[name]),
    "custom_benchmark": lambda name: custom_benchmark("never", ROWS, ["a", "b", "c"], metrics=[name]),
}


@pytest.mark.parametrize("door", METRIC_DOORS)
def test_a_metric_that_is_misspelled_keeps_its_cutoff(door: str) -> None:
    with pytest.raises(CirError, match="Did you mean 'recall@10'"):
        METRIC_DOORS[door]("recal@10")


@pytest.mark.parametrize(
    ("column", "metric"), [("R@10", "recall@10"), ("Rs@1", "recall_subset@1"), ("MAP@5", "map@5")]
)
def test_the_column_of_a_paper_is_a_metric(column: str, metric: str) -> None:
    with pytest.raises(CirError, match=f"Did you mean '{metric}'"):
        parse_metric(column)


def test_an_array_is_to_be_ranked(tmp_path: Path) -> None:
    scores = tmp_path / "S.npy"
    with pytest.raises(CirError, match=r"no such file\. .*cir rank"):
        submissions.validate(scores)
    np.save(scores, np.zeros((3, 4)))
    for _ in range(2):
        [found] = submissions.validate(scores).findings
        assert (found.code, "cir rank" in found.fix, str(scores) in found.fix) == ("unreadable", True, True)
        scores.write_bytes(b"")


def test_standard_input_is_said_not_to_be_read() -> None:
    with pytest.raises(CirError, match=r"standard input is not read.*Fix: write it to a file"):
        submissions.validate("-")


@pytest.mark.parametrize("line", ["12060 dev-244-0-img0 0.9", "q d 1 0.9", "q Q0 d 1 0.9"])
def test_a_run_with_too_few_columns_is_a_run(line: str) -> None:
    content = "\n".join([line] * 2).encode()
    for benchmark in (None, worlds.circo()):
        [found] = submissions.validate(content, benchmark, name="three.run").findings
        assert found.code == "malformed"
        assert "a TREC run has six" in found.message


def test_a_file_that_is_compared_with_itself_is_told(tmp_path: Path) -> None:
    run = tmp_path / "run.json"
    run.write_text(json.dumps(worlds.circo_document(worlds.circo())))
    done = CliRunner().invoke(app(), ["compare", str(run), f"{tmp_path}/./run.json"])
    assert "is compared with itself, and does not differ. Fix: name another file." in done.stderr


def test_a_table_is_for_what_its_files_answer() -> None:
    from submissions.papers.table import paper_table

    benchmark = worlds.circo()
    made = paper_table([json.dumps(worlds.circo_document(benchmark)).encode()], benchmark=benchmark)
    assert made.layout == "circo"
    assert "--for" in refused("table")


def test_a_benchmark_is_measured_by_its_id() -> None:
    found = cir_datasets.measure("shapes/multiturn_val", tags=False)
    assert (found.id, found.queries) == ("shapes/multiturn_val", 200)
    with pytest.raises(CirError, match=r"benchmark is of type list. Fix: pass an id"):
        cir_datasets.measure([])  # type: ignore[arg-type]


@pytest.mark.parametrize("page", ["http://127.0.0.1:7860/submit", "http://127.0.0.1:7860/submit/"])
def test_the_address_of_the_submit_page_is_that_of_its_board(page: str) -> None:
    assert Client(page).url == "http://127.0.0.1:7860"


def test_a_metric_without_its_rows_is_refused_when_the_benchmark_is_made(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    with pytest.raises(
        CirError, match="recall@10 needs target_image_id, and 1 of 2 rows have none, row 1 first"
    ):
        custom_benchmark("mine", ROWS, ["a", "b", "c"], metrics=["recall@10"], folder=folder)
    assert not folder.exists()
