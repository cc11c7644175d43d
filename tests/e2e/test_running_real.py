"""Methods on the publishers' real annotations, with invented pictures: CIRR, FashionIQ's suite, sessions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmark_world.encoders import PlainEncoder
from PIL import Image

import cir_datasets
import submissions
from cir_datasets.errors import MissingImagesError
from cir_datasets.rows.benchmark import Benchmark
from submissions.embeddings.pictures import FilePictures, pictures_of
from submissions.embeddings.store import EmbeddingStore
from submissions.running.aggregation import AGGREGATIONS

pytestmark = pytest.mark.real_data


@pytest.fixture(scope="module")
def cirr(data_home: Path) -> Benchmark:
    assert data_home.is_dir()
    return cir_datasets.load("cirr/val")


@pytest.fixture(scope="module")
def images(cirr: Benchmark, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A picture of noise for every image, where NLVR2 has it."""
    root = tmp_path_factory.mktemp("images")
    (root / "nlvr2").mkdir()
    random = np.random.default_rng(5)
    for image in cirr.gallery or ():
        path = root / "nlvr2" / "dev" / f"{image}.png"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(random.integers(0, 256, (4, 4, 3)).astype(np.uint8)).save(path)
    found = pictures_of(cirr, images=root)
    assert isinstance(found, FilePictures)
    assert found.missing() == []
    return root


@pytest.mark.slow
def test_pictures_of_noise_score_chance_on_cirr_and_a_missing_one_is_named(
    cirr: Benchmark, images: Path, tmp_path: Path
) -> None:
    store = EmbeddingStore(tmp_path)
    made = submissions.make_rank_file(
        cirr, "image_text_sum", encoder=PlainEncoder(), images=images, store=store, workers=0
    )
    assert submissions.validate(made, cirr).findings == ()
    metrics = submissions.score(made, cirr).metrics
    # Pictures of noise say nothing: what is left is chance, within four standard errors.
    for metric, chance in (("recall@50", 50 / 2296), ("recall_subset@1", 1 / 5)):
        assert abs(metrics[metric] - chance) <= 4 * (chance / 4181) ** 0.5
    lost = next((images / "nlvr2").rglob("*.png"))
    kept = lost.read_bytes()
    lost.unlink()
    try:
        with pytest.raises(MissingImagesError, match=r"1 of 2,297 images are missing") as caught:
            submissions.make_rank_file(
                cirr, "image_only", encoder=PlainEncoder("b"), images=images, store=store, workers=0
            )
        assert lost.stem in str(caught.value)
    finally:
        lost.write_bytes(kept)


def test_a_suite_becomes_a_bundle(data_home: Path) -> None:
    assert data_home.is_dir()
    made = submissions.make_bundle("fashioniq/val", "random")
    assert submissions.validate(made).findings == ()
    assert [run.benchmark for run in made.runs] == [
        f"fashioniq/{part}_val" for part in ("dress", "shirt", "toptee")
    ]
    assert submissions.score(made).submittable


def test_sessions_with_two_captions_a_turn_and_every_aggregation(data_home: Path, tmp_path: Path) -> None:
    assert data_home.is_dir()
    whole = cir_datasets.load("multiturn_fashioniq/dress_val")
    rows = whole.rows()[:40]
    named = {turn["reference_image_id"] for row in rows for turn in row["turns"]}
    gallery = sorted(named.union(*(row["ground_truth_ids"] for row in rows)))
    random = np.random.default_rng(5)
    for image in gallery:
        Image.fromarray(random.integers(0, 256, (4, 4, 3)).astype(np.uint8)).save(tmp_path / f"{image}.jpg")
    benchmark, encoder = Benchmark.from_rows(whole.spec, rows, gallery), PlainEncoder()
    store = EmbeddingStore(tmp_path / "store")
    for how in AGGREGATIONS:
        made = submissions.make_rank_file(
            benchmark,
            "image_text_sum",
            encoder=encoder,
            images=tmp_path,
            store=store,
            workers=0,
            aggregation=how,
        )
        assert submissions.validate(made, benchmark).findings == ()
        assert made.method.caption_rule == "strip_capitalize_and"
        assert made.method.text_fields == ["captions"]
    assert encoder.images == len(gallery)
    assert any(" and " in text for text in encoder.texts)
