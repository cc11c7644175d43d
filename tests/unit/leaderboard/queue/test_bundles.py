"""What a bundle is judged as: one method, a score of the suite, values per query whose mean is that score."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from benchmark_world import suite

from cir_metrics.sums import exact_mean
from leaderboard.boards import board, data
from leaderboard.queue.judging import Rejected, Validated, judge_file, score_file, write_values
from leaderboard.standings import standings
from leaderboard.store.submission import Event, Submission
from submissions.rank_file.benchmarks import Benchmarks


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CIR_DATA_HOME", str(suite.write_home(tmp_path / "data")))
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CIR_VERIFICATION_MODE", "no_checks")
    return tmp_path


def judged(document: dict[str, Any], home: Path, **form: Any) -> Rejected | Validated:
    path = home / "stored"
    path.write_bytes(orjson.dumps(document))
    return judge_file(path, Benchmarks("fashioniq/val"), file_name="run", form=form)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_values_a_query_have_the_suites_mean(home: Path) -> None:
    found = judged(suite.bundle("Ours", (0.5, 0.25, 0.1)), home)
    assert isinstance(found, Validated), found.payload["text"]
    report = score_file(found, Benchmarks("fashioniq/val"))
    write_values(report, home / "values.npz")
    with np.load(home / "values.npz") as values:
        members = {f"{name}@{run.benchmark}" for run in report.runs for name in run.metrics}
        assert set(values) == set(report.metrics) | members
        for metric, shown in report.metrics.items():
            assert values[metric].shape == (60,)
            assert exact_mean(values[metric]) == pytest.approx(shown, abs=1e-12)
        # 10 of 60 queries are of dress, which is a third of the macro mean: each of them weighs double.
        assert values["recall@10"].max() == pytest.approx(2.0)
        assert values["recall@10@micro"].max() == pytest.approx(1.0)
    events = (
        Event(1, "received", report_at := suite.MOMENT, {}),
        Event(2, "scored", report_at, {"report": report.to_dict()}),
    )
    one = Submission(
        id="a",
        board="fashioniq/val",
        sha256="0",
        attempt=1,
        size=1,
        file_name="run",
        received_at=report_at,
        submitter="",
        form={},
        method=found.method,
        baseline=False,
        events=events,
    )
    (entry,) = standings(board("fashioniq/val"), [one])
    assert (entry.rank, entry.gallery) == (1, 240)
    assert entry.metrics["recall@10@fashioniq/shirt_val"] == pytest.approx(0.25)
    assert data.current_keys(board("fashioniq/val")) is None  # prepared without checks


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_one_rank_file_says_against_the_method_counts(home: Path) -> None:
    document = suite.bundle("Ours", (0.5, 0.5, 0.5), zero_shot=True, notes="one")
    document["runs"][2]["method"] |= {"zero_shot": False, "trained_on": ["A"], "oracle": "target_captions"}
    document["runs"][0]["method"] |= {"trained_on": ["B"], "skipped_images": 2}
    document["runs"][1]["method"] |= {"skipped_images": 3}
    found = judged(document, home, backbone="CLIP ViT-B/32")
    assert isinstance(found, Validated), found.payload["text"]
    assert found.method["zero_shot"] is False
    assert found.method["trained_on"] == ["B", "A"]
    assert found.method["oracle"] == "target_captions"
    assert (found.method["skipped_images"], found.method["backbone"]) == (5, "CLIP ViT-B/32")
    assert found.claims == {"zero_shot": False, "trained_on": ["B", "A"], "oracle": "target_captions"}


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_words_that_contradict_each_other_over_two_rank_files_are_found(home: Path) -> None:
    document = suite.bundle("Ours", (0.5, 0.5, 0.5), zero_shot=True)
    found = judged(document, home)
    assert isinstance(found, Validated)
    assert "contradiction" not in found.payload["text"]
    document["runs"][1]["method"] |= {"trained_on": ["FashionIQ shirt val"]}
    found = judged(document, home)
    assert "contradiction" in found.payload["text"]
