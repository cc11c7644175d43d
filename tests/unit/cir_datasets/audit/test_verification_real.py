"""`verify` and the statistics on the publishers' own annotations (where `CIR_DATA_HOME` holds them)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import cir_datasets
from cir_datasets.audit.verification import Verification, verify

HOME = os.environ.get("CIR_DATA_HOME", "")

pytestmark = [
    pytest.mark.real_data,
    pytest.mark.skipif(not HOME, reason="CIR_DATA_HOME is not set: no real annotations"),
]


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    # The same cache as the other tests on real annotations: nothing is prepared twice.
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "datasets-real-cache"))
    monkeypatch.setenv("CIR_GITHUB_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")


def details(found: Verification, kind: str) -> list[dict[str, Any]]:
    return [result.details for result in found.results if result.kind == kind]


@pytest.mark.parametrize(
    ("benchmark_id", "what", "published", "ours"),
    [("cirr/val", "queries", 4184, 4181), ("cirr/test1", "gallery", 2316, 2315)],
)
def test_cirr_is_sound_and_its_known_differences_are_told(
    benchmark_id: str, what: str, published: int, ours: int
) -> None:
    found = verify(benchmark_id)
    assert found.ok
    (known,) = details(found, "difference")
    assert (known["what"], known["published"], known["ours"]) == (what, published, ours)
    assert f"{ours:,} here, {published:,} published" in found.text()


@pytest.mark.parametrize(
    ("benchmark_id", "extra"),
    [("cirr/val", 6), ("cirr/test1", 4), ("fashioniq/dress_test", 6), ("fashioniq/shirt_test", 6)],
)
def test_repeated_queries_are_counted(benchmark_id: str, extra: int) -> None:
    (found,) = details(verify(benchmark_id), "repeated")
    assert found["extra"] == extra


@pytest.mark.parametrize(
    ("benchmark_id", "train", "rows", "listed", "used"),
    [
        ("fashioniq/shirt_val", "fashioniq/toptee_train", 2038, 140, 72),
        ("fashioniq/toptee_val", "fashioniq/shirt_train", 1961, 145, 71),
        ("multiturn_fashioniq/dress_val", "multiturn_fashioniq/dress_train", 1000, 416, 416),
        ("multiturn_fashioniq/shirt_val", "multiturn_fashioniq/shirt_train", 681, 192, 192),
        ("multiturn_fashioniq/toptee_val", "multiturn_fashioniq/toptee_train", 719, 233, 233),
    ],
)
def test_leaks_between_splits_are_counted_as_published(
    benchmark_id: str, train: str, rows: int, listed: int, used: int
) -> None:
    found = verify(benchmark_id)
    assert found.ok
    leak = next(leak for leak in details(found, "leak") if leak.get("train") == train)
    assert (leak["rows"], leak["target_listed"], leak["target_used"]) == (rows, listed, used)


def test_dress_shares_no_image_with_any_train_split() -> None:
    (leak,) = details(verify("fashioniq/dress_val"), "leak")
    assert leak == {"apart": [f"fashioniq/{name}_train" for name in ("dress", "shirt", "toptee")]}


@pytest.mark.parametrize(("benchmark_id", "turns"), [("dialogues_val", 1845), ("dialogues_across_val", 3580)])
def test_every_turn_of_cirrs_dialogues_is_a_query(benchmark_id: str, turns: int) -> None:
    cir_datasets.load("cirr/val")
    found = verify(f"cirr/{benchmark_id}")
    assert found.ok
    assert {"queries": "cirr/val", "turns": turns, "shared": turns} in details(found, "leak")


@pytest.mark.slow
def test_the_language_of_the_captions_is_that_of_the_papers() -> None:
    """CIRCLED says 5.3 to 11.2 words, CIRR's Table 1 11.3 and 5.3: counts differ by what one word is."""
    cirr = cir_datasets.measure(cir_datasets.load("cirr/val"), tags=False)
    assert cirr.mean_length == pytest.approx(11.2, abs=0.3)
    assert cirr.subsets == 503
    dress = cir_datasets.measure(cir_datasets.load("fashioniq/dress_val"))
    assert dress.mean_length == pytest.approx(5.3, abs=0.1)
    shares = dress.class_shares
    # FashionIQ has many adjectives, CIRR few: the contrast that CIRCLED's Section 3.4 is about.
    assert shares["adjective"] > shares["noun"]
    tagged = cir_datasets.measure(cir_datasets.load("cirr/val")).class_shares
    assert tagged["noun"] > 2 * tagged["verb"] > 2 * tagged["adjective"]


def test_an_overlay_of_real_queries_scores(tmp_path: Path) -> None:
    import json

    base = cir_datasets.load("cirr/val")
    kept = base.query_ids[10:20]
    path = tmp_path / "ten.json"
    path.write_text(
        json.dumps(
            {"overlay": "ten", "benchmark": "cirr/val", "benchmark_version": 1, "queries": kept[::-1]}
        ),
        encoding="utf-8",
    )
    overlay = cir_datasets.load("cirr/val", overlay=path)
    assert overlay.query_ids == kept
    assert len(overlay.left_out) == 4171
    assert overlay.gallery_hash == base.gallery_hash
