"""Captioning and CIReVL on shapes with the encoder that comes with the package: better than words alone."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="needs the extra `retrieval`")
pytest.importorskip("transformers", reason="needs the extra `retrieval`")

import cir_datasets
import submissions
from submissions import make_rank_file
from submissions.embeddings.store import EmbeddingStore
from submissions.encoders.loading import load_encoder
from submissions.encoders.protocol import Encoder
from submissions.scoring.intervals import Interval, intervals

METHODS = ("text_only", "captioning", "cirevl")

Found = dict[str, tuple[dict[str, float], dict[str, Interval]]]


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return load_encoder("shapes", device="cpu")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> EmbeddingStore:
    return EmbeddingStore(tmp_path_factory.mktemp("embeddings"))


def scores(benchmark: str, encoder: Encoder, store: EmbeddingStore) -> Found:
    """Values and intervals of every metric, by method."""
    rows = cir_datasets.load(benchmark)
    found = {}
    for method in METHODS:
        language = None if method == "text_only" else "oracle"
        made = make_rank_file(rows, method, encoder=encoder, language=language, store=store)
        report = submissions.score(made, rows)
        found[method] = (dict(report.metrics), dict(intervals(report, draws=2000).values))
    return found


def apart(better: Interval, worse: Interval) -> bool:
    return worse.high < better.low


@pytest.mark.slow
def test_on_queries_a_merge_beats_words_alone(encoder: Encoder, store: EmbeddingStore) -> None:
    found = scores("shapes/val", encoder, store)
    assert apart(found["cirevl"][1]["recall@10"], found["text_only"][1]["recall@10"])
    assert apart(found["captioning"][1]["recall@10"], found["text_only"][1]["recall@10"])
    assert found["cirevl"][0]["recall@10"] > found["captioning"][0]["recall@10"]


@pytest.mark.slow
def test_on_sessions_hits_rise_with_turns(encoder: Encoder, store: EmbeddingStore) -> None:
    found = scores("shapes/multiturn_val", encoder, store)
    for method in ("captioning", "cirevl"):
        values, ends = found[method]
        hits = [values[f"hits@10@turn{turn}"] for turn in (1, 2, 3, 4)]
        assert hits == sorted(hits)
        assert apart(ends["hits@10@turn4"], ends["hits@10@turn1"])
    assert apart(found["cirevl"][1]["hits_auc@10"], found["text_only"][1]["hits_auc@10"])
