"""`cir compare --joined`: hits of single queries beside those of the sessions that began with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cir_here import invoked

import cir_datasets
from cir_datasets.construction.folder import write_benchmark
from cir_datasets.rows.records import session_row
from cir_metrics.errors import CallError
from submissions import make_rank_file
from submissions.comparison.joined import compare_joined
from submissions.errors import ComparisonError

K = 10


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Random rankings of shapes/val, and of forty sessions that began with its queries; two are of none."""
    source = cir_datasets.load("shapes/val")
    rows, told = [], []
    for number, row in enumerate(source.rows()[:40]):
        targets = row["positive_image_ids"]
        other = next(image for image in source.gallery or () if image not in targets)
        turns = [
            (row["reference_image_id"], row["relative_caption"]),
            *[(other, "further away")] * (1 + number % 2),
        ]
        rows.append(session_row(f"s{number:02d}", "s", targets, turns))
        query = row["query_id"] + ("-2" if number % 3 == 0 else "")
        told.append({"session_id": f"s{number:02d}", "query": "none" if number < 2 else query, "merged": []})
    write_benchmark(
        tmp_path / "mine",
        name="mine",
        title="Mine",
        configs={"test": rows},
        galleries=list(source.gallery or ()),
        reference="kept",
        made={"pipeline": "circled", "benchmark": "shapes/val"},
    )
    (tmp_path / "mine/ranks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in told))
    monkeypatch.setenv("CIR_BENCHMARKS", str(tmp_path / "mine"))
    single, sessions = tmp_path / "single.json", tmp_path / "sessions.json"
    single.write_bytes(make_rank_file("shapes/val", "random").to_json())
    sessions.write_bytes(make_rank_file("mine/test", "random").to_json())
    return single, sessions


def test_hits_of_both_are_what_their_files_say(files: tuple[Path, Path]) -> None:
    found = compare_joined(files, draws=50)
    single, sessions = (json.loads(path.read_text())["rankings"] for path in files)
    told = {
        row["session_id"]: row["query"].removesuffix("-2")
        for row in map(json.loads, (files[1].parent / "mine/ranks.jsonl").read_text().splitlines())
    }
    rows: list[dict[str, Any]] = [
        row for row in cir_datasets.load("mine/test").rows() if told[row["session_id"]] != "none"
    ]
    assert found.n == len(rows) == 38

    def hit(ranking: list[str], row: dict[str, Any]) -> bool:
        return not {*ranking[:K]}.isdisjoint(row["ground_truth_ids"])

    alone = sum(hit(single[told[row["session_id"]]], row) for row in rows) / 38
    last = sum(hit(sessions[row["session_id"]][-1], row) for row in rows) / 38
    first = sum(hit(sessions[row["session_id"]][0], row) for row in rows) / 38
    second = sum(any(hit(one, row) for one in sessions[row["session_id"]][:2]) for row in rows) / 38
    by_file = {method.file: method.values for method in found.methods}
    assert [*by_file[str(files[0])].values()] == pytest.approx([alone] * len(found.metrics))
    assert by_file[str(files[1])]["final_recall@10"] == pytest.approx(last)
    assert by_file[str(files[1])]["hits@10@turn1"] == pytest.approx(first)
    assert by_file[str(files[1])]["hits@10@turn2"] == pytest.approx(second)
    flipped = {row["id"] for row in found.flipped()}
    assert flipped <= {row["session_id"] for row in rows}
    assert found.notes[0].startswith("38 of 40 sessions begin with 38 queries of shapes/val")
    assert found.notes[1].startswith(f"{files[0]}: shapes/val#")
    assert found.notes[2].startswith(f"{files[1]}: mine/test#")


def test_what_cannot_be_joined_is_refused(files: tuple[Path, Path], tmp_path: Path) -> None:
    single, _ = files
    with pytest.raises(CallError, match="a rank file of each"):
        compare_joined([single, single])
    with pytest.raises(CallError, match=r"no metric 'recall@10'\. Fix: use one of hits@10@turn1"):
        compare_joined(files, metrics=["recall@10"])
    card = tmp_path / "mine/card.yaml"
    card.write_text(card.read_text().replace("benchmark: shapes/val", "benchmark: cirr/val"))
    # Ids of two datasets may be the same: the source's name decides.
    with pytest.raises(ComparisonError, match="Fix: name a file for cirr/val"):
        compare_joined(files)
    other = tmp_path / "other.json"
    other.write_bytes(make_rank_file("shapes/multiturn_val", "random").to_json())
    with pytest.raises(ComparisonError, match="no session of shapes/multiturn_val began with a query"):
        compare_joined([single, other])


def test_the_command_prints_both_and_takes_no_benchmark(files: tuple[Path, Path]) -> None:
    single, sessions = files
    done = invoked("compare", single, sessions, "--joined", "--draws", 50, code=0)
    assert "2 methods on mine/test#1, 38 sessions" in done.stdout
    assert "Random (shapes/val) against Random (mine/test)" in done.stdout
    refused = invoked("compare", single, sessions, "--joined", "--benchmark", "mine/test")
    assert "leave --benchmark out" in f"{refused.output} {refused.exception}"
