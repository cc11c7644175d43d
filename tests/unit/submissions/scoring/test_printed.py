"""Objects in a console and in a notebook: one line, a short table, and foreign words as words."""

from __future__ import annotations

import pickle
from importlib import resources
from typing import Any

import pytest

import cir_datasets
import submissions
from cir_metrics.errors import CallError

BAD = "<script>alert(1)</script>"
ENTRIES = resources.files("submissions.entries")
SUM, IMAGE = (str(ENTRIES / f"{name}-shapes.shapes-val.json.gz") for name in ("image_text_sum", "image_only"))
TURNS = str(ENTRIES / "random.shapes-multiturn_val.json.gz")


def printed() -> dict[str, Any]:
    run = submissions.read(SUM)
    return {
        "queries": cir_datasets.load("shapes/val"),
        "sessions": cir_datasets.load("shapes/multiturn_val"),
        "rank file": run,
        "rank file of sessions": submissions.read(TURNS),
        "bundle": submissions.RankBundle("fisd", (run, run)),
        "score": submissions.score(SUM),
        "comparison": submissions.compare([SUM, IMAGE], draws=50),
    }


def test_every_object_is_one_line_and_a_short_table() -> None:
    for name, each in printed().items():
        line, shown = repr(each), each._repr_html_()
        assert "\n" not in line, name
        assert len(line) < 160, name
        assert "<table>" in shown, name
        assert len(shown) < 12_000, name


def test_foreign_words_stay_words() -> None:
    method = submissions.Method.model_construct(name=BAD)
    run = submissions.RankFile("shapes/val", 2, method, {BAD: [BAD]})
    for each in (run, submissions.RankBundle(BAD, (run,))):
        assert "<script" not in each._repr_html_()


def test_what_is_equal_stays_equal_and_can_be_pickled() -> None:
    score = submissions.score(SUM)
    assert score == submissions.score(SUM)
    assert pickle.loads(pickle.dumps(submissions.RankFile("a/b", 1, submissions.Method(name="M"), {}))) == (
        submissions.RankFile("a/b", 1, submissions.Method(name="M"), {})
    )
    with pytest.raises(AttributeError):
        score.n = 3  # type: ignore[misc]


def test_a_frame_has_every_number_and_the_values_a_query_where_they_were_kept() -> None:
    score = submissions.score(SUM, per_query=True)
    frame = score.to_pandas()
    assert dict(zip(frame.metric, frame.value, strict=True)) == score.metrics
    rows = score.to_pandas(per_query=True)
    assert len(rows) == 300
    assert rows["recall@10"].mean() == pytest.approx(score.metrics["recall@10"])
    with pytest.raises(CallError, match="per_query=True"):
        submissions.score(SUM).to_pandas(per_query=True)
