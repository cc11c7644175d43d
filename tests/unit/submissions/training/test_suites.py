"""One model over a suite: each batch is of one member, and what is measured is the mean of the members."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from retrieval_models import save_clip

from cir_datasets.registry import suites
from cir_metrics.errors import CallError
from submissions import make_rank_file
from submissions.encoders.loading import load_encoder
from submissions.methods.heads.checkpoints import load_head
from submissions.methods.heads.composition import COMPOSITIONS
from submissions.methods.heads.wordpieces import TOKENIZER, load_tokenizer, read_captions
from submissions.training.composition_training import train_composition
from submissions.training.concat_training import train_concat
from submissions.training.loop import train
from submissions.training.training_options import ConcatTraining, Plan, TirgTraining
from submissions.training.triplet_examples import load_triplet_data

pytestmark = pytest.mark.usefixtures("one_thread")

MEMBERS = ("shapes/val", "shapes/multiturn_val")
"""They share images, and the second's turns have no subsets."""


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_clip(tmp_path_factory.mktemp("models") / "clip")


@pytest.fixture
def suite(monkeypatch: pytest.MonkeyPatch) -> str:
    """A suite of two benchmarks of shapes."""
    fields = suites.suite("circled/train").model_dump() | {"id": "both", "benchmarks": MEMBERS}
    monkeypatch.setitem(suites._suites(), "both", suites.Suite(**fields))
    return "both"


def config(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "config.json").read_text(encoding="utf-8"))["training"]


counts = st.lists(st.integers(2, 40), min_size=1, max_size=5)


@given(counts, st.integers(2, 9), st.integers(0, 3), st.integers(0, 3))
def test_an_epoch_has_batches_of_one_member_and_no_row_twice(
    counts: list[int], batch_size: int, seed: int, epoch: int
) -> None:
    plan = Plan(steps=1, batch_size=batch_size, seed=seed)
    steps = plan.steps_of_epoch(*counts)
    members = np.repeat(np.arange(len(counts)), counts)
    batches = [plan.rows(epoch * steps + step, *counts) for step in range(steps)]
    assert all(len(set(members[rows])) == 1 for rows in batches)
    seen = np.concatenate(batches)
    assert len(set(seen)) == len(seen)
    of_members = np.bincount(members[seen], minlength=len(counts)).tolist()
    assert of_members == [count - count % min(batch_size, count) for count in counts]


def test_drawn_batches_are_of_one_member_by_its_share(suite: str) -> None:
    plan = TirgTraining(benchmark=suite, out=Path("x"), batch_size=4).resolved(100)
    batches = [plan.rows(step, 30, 10) for step in range(400)]
    of_second = [set(rows >= 30) for rows in batches]
    assert all(len(kinds) == 1 for kinds in of_second)
    assert sum(True in kinds for kinds in of_second) == pytest.approx(100, abs=30)
    assert set(np.concatenate(batches)) == set(range(40))


def test_the_triplets_of_a_suite_are_those_of_its_members(suite: str) -> None:
    whole, parts = load_triplet_data(suite), [load_triplet_data(member) for member in MEMBERS]

    def shown(data: Any, row: int) -> tuple[str | None, str, str, str]:
        examples = data.examples
        ids = [*examples.picture_ids, None]
        return (
            ids[examples.references[row]],
            examples.captions[examples.texts[row]],
            ids[examples.targets[row]],
            examples.query_ids[examples.queries[row]],
        )

    expected = [shown(part, row) for part in parts for row in part.rows]
    assert [shown(whole, row) for row in whole.rows] == expected
    assert whole.counts == [len(part.rows) for part in parts]
    assert whole.gallery_size == sum(part.gallery_size for part in parts)
    first = len(parts[0].rows)
    for part, rows in zip(parts, (np.arange(9), np.arange(first, first + 9)), strict=True):
        own = part.allowed(rows if part is parts[0] else rows - first, composed=True)
        assert (whole.allowed(rows, composed=True) == own).all()
    beside = whole.beside(np.arange(len(whole.rows)), np.arange(len(whole.rows) * 3).reshape(-1, 3))
    assert (whole.examples.members[beside] == whole.examples.members[:, None]).all()


@pytest.mark.filterwarnings("ignore::submissions.errors.TruncationWarning")
def test_a_head_of_a_suite_names_its_members(suite: str, tmp_path: Path, clip: Path) -> None:
    done = train_concat(ConcatTraining(benchmark=suite, out=tmp_path, encoder=clip, steps=3, batch_size=8))
    assert done.steps == 3
    assert config(tmp_path)["members"] == list(MEMBERS)
    made = make_rank_file("shapes/val", "concat", checkpoint=tmp_path, encoder=clip)
    assert made.method.trained_on == list(MEMBERS)


def test_the_recall_of_a_suite_is_the_mean_of_its_members(suite: str, tmp_path: Path, clip: Path) -> None:
    options = {"benchmark": suite, "hold_out": 0.3, "epochs": 2, "epoch_steps": 2, "batch_size": 8}
    options |= {"hidden_size": 8, "learning_rate": 1e-3, "encoder": clip, "device": "cpu", "patience": 1}
    train_composition(TirgTraining(out=tmp_path, **options))
    encoder = load_encoder(clip)
    head = load_head(tmp_path, "tirg", encoder=encoder.identity, beside=TOKENIZER)
    network, tokenizer = head.module(COMPOSITIONS["tirg"]), load_tokenizer(tmp_path)
    data = load_triplet_data(suite, hold_out=0.3)
    members = [
        measured.recalls(
            network, vectors, read_captions(tokenizer, measured.captions), tokenizer.pad_token_id
        )
        for measured, vectors in zip(data.measured, data.vectors(encoder, None)[1], strict=True)
    ]
    best = config(tmp_path)["best"]
    assert len(members) == 2
    assert best["recall@10"] == pytest.approx((members[0]["recall@10"] + members[1]["recall@10"]) / 2)
    assert "recall_subset@1" in members[0]
    assert "recall_subset@1" not in best  # sessions have no subsets


def test_what_a_suite_cannot_do_is_refused(suite: str, tmp_path: Path) -> None:
    with pytest.raises(CallError, match=r"validation=both is trained on as well \(shapes/val\)"):
        TirgTraining(benchmark="shapes/val", out=tmp_path, validation=suite)
    with pytest.raises(CallError, match="1 row to train on"):
        train(None, lambda rows: None, count=[5, 1], plan=Plan(), folder=tmp_path, settings={}, label="x")  # type: ignore[arg-type,return-value]
