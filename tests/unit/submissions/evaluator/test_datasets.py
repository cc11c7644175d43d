"""Datasets of the evaluation side: what items hold, in spawned workers, and what is refused at once."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmark_world import small_shapes
from datasets_pictures import write_nlvr2
from datasets_publishers import cirr_images, write_cirr

import cir_datasets
import submissions
from cir_datasets.errors import CaptionRuleError, MissingImagesError
from cir_datasets.shapes import picture

torch = pytest.importorskip("torch")


@pytest.mark.parametrize(
    "workers",
    [{}, pytest.param({"num_workers": 2, "multiprocessing_context": "spawn"}, marks=pytest.mark.slow)],
)
def test_items_are_in_the_order_of_the_benchmark(workers: dict[str, Any]) -> None:
    shapes = small_shapes(rows=5)
    rows = shapes.rows()
    queries = pickle.loads(pickle.dumps(submissions.query_dataset(shapes, transform=np.array)))
    images = pickle.loads(pickle.dumps(submissions.image_dataset(shapes, transform=np.array)))
    batches = list(torch.utils.data.DataLoader(queries, batch_size=2, **workers))
    assert [id_ for batch in batches for id_ in batch["query_id"]] == [row["query_id"] for row in rows]
    assert [text for batch in batches for text in batch["text"]] == [row["captions"][0] for row in rows]
    for row, pixels in zip(rows, torch.cat([batch["reference"] for batch in batches]), strict=True):
        assert np.array_equal(pixels, picture(row["reference_image_id"]))
    assert images.ids == tuple(shapes.gallery or ())
    assert np.array_equal(images[3]["image"], picture(images.ids[3]))


def test_turns_of_sessions_are_items() -> None:
    sessions = cir_datasets.load("shapes/multiturn_val")
    queries = submissions.query_dataset(sessions)
    first = sessions.rows()[0]
    assert queries.ids[0] == f"{first['session_id']}#1"
    assert len(queries) == sum(len(row["turns"]) for row in sessions.rows())


@pytest.mark.filterwarnings("ignore::cir_datasets.errors.UnpinnedDataWarning")
def test_what_is_missing_is_said_before_a_worker_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    write_cirr(tmp_path / "home", "val")
    cirr = cir_datasets.load("cirr/val", data_dir=tmp_path / "home", verification_mode="no_checks")
    write_nlvr2(tmp_path / "nlvr2", "val", cirr_images("val")[1:])
    with pytest.raises(MissingImagesError, match=r"1 of .* images have no file below .*Fix: pass images="):
        submissions.image_dataset(cirr, tmp_path / "nlvr2")


def test_several_captions_need_a_rule() -> None:
    shapes = small_shapes(rows=2)
    rows = [{**row, "captions": ["is RED!", "v-neck"]} for row in shapes.rows()]
    several = type(shapes).from_rows(shapes.spec, rows, shapes.gallery)
    with pytest.raises(CaptionRuleError, match=r"Fix: caption_rule="):
        submissions.query_dataset(several)
    rule = cir_datasets.caption_rule("lower_spelled_and", spelling={"neck": "collar"})
    assert submissions.query_dataset(several, caption_rule=rule)[0]["text"] == "is red and v collar"
    both = submissions.query_dataset(several, caption_rule="both_orders")[0]["text"]
    assert both == ("Is red! and v-neck", "V-neck and is RED!")
