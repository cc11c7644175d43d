"""Queries by which single modality solves them: a small table by hand, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import benchmark_world as worlds
import pytest
from cir_here import ROOT, cir

import submissions
from cir_datasets.common.terminal import tables_text
from cir_metrics.errors import CallError
from submissions import ComparisonError
from submissions.comparison.beside import beside
from submissions.report.selection import selected

CIRR = worlds.cirr()
TARGETS = {row["query_id"]: row["target_image_id"] for row in CIRR.rows()}
QUERIES = list(TARGETS)


def document(solved: set[str], name: str, benchmark: Any = CIRR) -> dict[str, Any]:
    """A rank file that has the target of some queries first, and of the others last."""
    made = worlds.cirr_document(benchmark)
    made["method"] = {"name": name}
    for query, ids in made["rankings"].items():
        rest = [each for each in ids if each != TARGETS[query]][: len(ids) - 1]
        made["rankings"][query] = [TARGETS[query], *rest] if query in solved else [*rest, TARGETS[query]]
    return made


def score(solved: str, name: str) -> submissions.ScoreReport:
    queries = {QUERIES[int(place)] for place in solved}
    return submissions.score(json.dumps(document(queries, name)).encode(), CIRR)


def test_shares_and_values_are_those_of_the_groups() -> None:
    assert len(QUERIES) == 6
    report = submissions.full_report(score("0134", "ours"))
    found = beside(report, score("012", "words"), score("03", "pixels"), draws=200)
    groups = {each.key: each for each in found.groupings["beside:recall@1"].groups}
    assert {key: each.n for key, each in groups.items()} == {"both": 1, "text": 2, "image": 1, "neither": 2}
    assert {key: each.values["recall@1"] for key, each in groups.items()} == {
        "both": 1.0,
        "text": 0.5,
        "image": 1.0,
        "neither": 0.5,
    }
    assert groups["text"].name == "text: words"
    whole = found.groupings["beside:recall@1"].means[0]
    assert whole.values["recall@1"] == report.score.metrics["recall@1"]
    for each in groups.values():
        shared, own = each.values, "recall@1"
        assert shared["share low"] <= each.n / 6 <= shared["share high"]  # type: ignore[operator]
        assert shared["low"] <= shared[own] <= shared["high"]  # type: ignore[operator]


def test_a_group_without_queries_has_no_value_and_no_interval() -> None:
    report = submissions.full_report(score("01", "ours"))
    found = beside(report, score("", "words"), score("", "pixels"), draws=50)
    both, *_, neither = found.groupings["beside:recall@1"].groups
    assert (both.n, both.values["recall@1"], both.values["low"]) == (0, None, None)
    assert (neither.n, neither.values["share"]) == (6, 1.0)


def test_sessions_are_split_and_a_suite_by_member() -> None:
    sessions = submissions.score(submissions.make_rank_file("shapes/multiturn_val", "random"))
    found = beside(submissions.full_report(sessions), sessions, sessions, draws=20)
    names = [name for name in found.groupings if name.startswith("beside:")]
    assert names
    for name in names:
        both, text, image, neither = found.groupings[name].groups
        assert (text.n, image.n, both.n + neither.n) == (0, 0, sessions.n)
        assert not neither.values[name.partition(":")[2]]
    members = [worlds.fashioniq(each) for each in ("dress", "shirt", "toptee")]
    bundle = json.dumps(worlds.fashioniq_bundle(members)).encode()
    suite = submissions.score(bundle, {each.id: each for each in members})
    parts = beside(submissions.full_report(suite), suite, suite, draws=20).members
    assert [[name for name in part.groupings if name.startswith("beside:")] for part in parts] == [
        [f"beside:recall@{k}" for k in (1, 5, 10, 50)]
    ] * 3


def test_other_benchmarks_and_missing_queries_are_refused() -> None:
    ours = submissions.full_report(score("01", "ours"))
    other = submissions.score(submissions.make_rank_file("shapes/val", "random"))
    with pytest.raises(ComparisonError):
        beside(ours, other, other)
    short = document(set(), "words")
    del short["rankings"][QUERIES[0]]
    part = submissions.score(json.dumps(short).encode(), CIRR, allow_missing=True)
    with pytest.raises((CallError, ComparisonError)):
        beside(ours, part, score("", "pixels"))


def test_metrics_that_are_no_hits_are_refused() -> None:
    circo = worlds.circo()
    found = submissions.score(json.dumps(worlds.circo_document(circo)).encode(), circo)
    with pytest.raises(CallError):
        beside(selected(submissions.full_report(found), ["map@5"]), found, found)


def test_the_page_shows_what_the_shipped_files_give() -> None:
    entries = ROOT / "submissions" / "entries"
    ours, text, image = (
        submissions.score(entries / f"{name}-shapes.shapes-val.json.gz")
        for name in ("image_text_sum", "text_only", "image_only")
    )
    report = beside(selected(submissions.full_report(ours), ["recall@10"]), text, image)
    page = (ROOT / "docs" / "reports.md").read_text(encoding="utf-8")
    assert tables_text(report.tables()[-1:]) in page


def test_the_command_prints_the_groups(tmp_path: Any) -> None:
    files = [str(tmp_path / f"{name}.json") for name in ("image_text_sum", "text_only", "image_only")]
    for file in files:
        name = f"{Path(file).stem}_pixels"
        submissions.write(submissions.make_rank_file("shapes/val", name), file)
    done = cir(
        "score", files[0], "--metric", "recall@10", "--draws", "20", "--json", "--beside", *files[1:], code=0
    )
    rows = json.loads(done.stdout)["beside:recall@10"]
    assert [row["solver"] for row in rows] == ["both", "text", "image", "neither", "all"]
    assert sum(row["queries"] for row in rows[:4]) == 300


def test_a_side_without_subsets_splits_what_it_ranks(tmp_path: Path) -> None:
    whole = submissions.make_rank_file("shapes/val", "random").to_dict()
    alone = {key: value for key, value in whole.items() if key != "subset_rankings"}
    files = [str(tmp_path / f"{name}.json") for name in ("ours", "text", "image")]
    for file, made in zip(files, (whole, alone, whole), strict=True):
        Path(file).write_text(json.dumps(made))
    done = cir("score", files[0], "--draws", "20", "--json", "--beside", *files[1:], code=0)
    found = json.loads(done.stdout)
    assert "beside:recall@1" in found
    assert "beside:recall_subset@1" not in found
    assert "recall_subset@1" in done.stderr
