"""Training triplets: one for each positive, by a named caption rule, streamed, and shared among workers."""

from __future__ import annotations

import copy
import json
import os
import pickle
import sys
from collections import Counter
from pathlib import Path

import datasets_publishers as made
import pytest
from programs import run_program

import cir_datasets
from cir_datasets.errors import CaptionRuleError, CountError
from cir_datasets.export.triplets import Triplet
from cir_metrics.errors import CallError, UnknownNameError

ROOT = Path(__file__).resolve().parents[4]


pytestmark = pytest.mark.filterwarnings("ignore::cir_datasets.errors.UnpinnedDataWarning")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("CIR_DATA_HOME", raising=False)
    monkeypatch.setenv("CIR_GITHUB_ENDPOINT", "http://127.0.0.1:1")
    return tmp_path / "home"


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))


def made_up(home: Path, benchmark_id: str, caption_rule: str | None = None) -> cir_datasets.Triplets:
    return cir_datasets.triplets(
        benchmark_id, caption_rule=caption_rule, data_dir=home, verification_mode="no_checks"
    )


@pytest.mark.usefixtures("own_cache")
def test_each_positive_becomes_a_triplet(home: Path) -> None:
    made.write_circo(home, "val")
    found = list(made_up(home, "circo/val"))
    assert [(reference, caption, target) for reference, caption, target in found] == [
        ("000000123456", "is made up", "000000234567"),
        ("000000123456", "is made up", "000000000077"),
        ("000000000009", "has two of them", "000000000077"),
    ]
    assert [one.query_id for one in found] == ["0", "0", "1"]


def test_a_triplet_is_three_with_its_key_apart() -> None:
    triplet = Triplet("a", "is red", "b", query_id="7")
    assert (len(triplet), triplet._fields) == (3, ("reference_image_id", "caption", "target_image_id"))
    assert (triplet.reference_image_id, triplet.caption, triplet.target_image_id) == triplet
    assert triplet.query_id == "7"
    for twin in (pickle.loads(pickle.dumps(triplet)), copy.copy(triplet)):
        assert isinstance(twin, Triplet)
        assert (twin, twin.query_id) == (triplet, "7")
    assert triplet == Triplet("a", "is red", "b", query_id="8")


@pytest.mark.usefixtures("own_cache")
def test_every_turn_of_a_session_aims_at_the_ground_truth(home: Path) -> None:
    made.write_circled(home, "cirr_val")
    first, second, target = made.circled_ids("cirr_val")
    found = list(made_up(home, "circled/cirr_val"))
    assert found[:2] == [
        (first, "made up 0.1", target),
        (second, "made up 0.2", target),
    ]
    assert [one.query_id for one in found[:2]] == ["cirr_val_0000#1", "cirr_val_0000#2"]
    assert len(found) == 5
    assert found[0].reference_image_id == first


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize(
    ("rule", "captions"),
    [
        ("strip_capitalize_and", ["Is made up 0 and longer", "Is made up 1 and ", "Is made up 2 and "]),
        ("trim_and", ["is made up 0 and longer", "is made up 1", "is made up 2"]),
        ("separate", [" is made up 0", "longer", " is made up 1", "", " is made up 2", ""]),
    ],
)
def test_several_captions_follow_the_rule(home: Path, rule: str, captions: list[str]) -> None:
    made.write_fashioniq(home, "dress", "train")
    found = made_up(home, "fashioniq/dress_train", rule)
    assert [one.caption for one in found] == captions
    assert len(found) == len(captions)
    assert repr(found) == f"Triplets(fashioniq/dress_train, caption_rule={rule!r})"


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize(
    ("rule", "why"), [(None, "no caption rule was given"), ("single", "'single' is for one")]
)
def test_several_captions_need_a_rule(home: Path, rule: str | None, why: str) -> None:
    made.write_fashioniq(home, "dress", "train")
    with pytest.raises(
        CaptionRuleError, match=rf"dress_train_00000 has 2 captions.*{why}.*Fix: .*both_orders"
    ):
        made_up(home, "fashioniq/dress_train", rule)


@pytest.mark.usefixtures("own_cache")
def test_a_turn_with_several_captions_needs_a_rule(home: Path) -> None:
    sessions = [
        {
            "target": ["http://example.org/t.jpg", "B000000003"],
            "reference": [
                ["http://example.org/1.jpg", ["is red", "is long"], "B000000001"],
                ["http://example.org/2.jpg", ["is blue"], "B000000002"],
            ],
        }
    ]
    root = home / "MultiturnFashionRetrieval"
    made.write(root / "data/dress.train.json", sessions)
    made.write(root / "image_splits/split.dress.train.json", [f"B00000000{number}" for number in (1, 2, 3)])
    with pytest.raises(CaptionRuleError, match=r"dress_train_0000#1 has 2 captions"):
        made_up(home, "multiturn_fashioniq/dress_train")
    found = made_up(home, "multiturn_fashioniq/dress_train", "both_orders")
    assert [(*one, one.query_id) for one in found] == [
        ("B000000001", "Is red and is long", "B000000003", "dress_train_0000#1"),
        ("B000000001", "Is long and is red", "B000000003", "dress_train_0000#1"),
        ("B000000002", "Is blue", "B000000003", "dress_train_0000#2"),
    ]


@pytest.mark.usefixtures("own_cache")
def test_the_environment_says_which_checks_where_the_caller_does_not(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made.write_circo(home, "val")
    monkeypatch.setenv("CIR_VERIFICATION_MODE", "no_checks")
    assert len(cir_datasets.triplets("circo/val", data_dir=home)) == 3
    with pytest.raises(CountError, match="circo/val"):
        cir_datasets.triplets("circo/val", data_dir=home, verification_mode="all_checks")
    monkeypatch.delenv("CIR_VERIFICATION_MODE")
    with pytest.raises(CountError, match="circo/val"):
        cir_datasets.triplets("circo/val", data_dir=home)


@pytest.mark.usefixtures("own_cache")
def test_withheld_ground_truth_and_unknown_rules_are_said(home: Path) -> None:
    made.write_cirr(home, "test1")
    with pytest.raises(CallError, match=r"cirr/test1: its publisher withholds the ground truth"):
        made_up(home, "cirr/test1")
    with pytest.raises(UnknownNameError, match=r"no caption rule 'sum'"):
        made_up(home, "cirr/test1", "sum")


def test_triplets_of_shapes_are_those_of_its_rows() -> None:
    found = cir_datasets.triplets("shapes/val")
    expected = [
        (row["reference_image_id"], row["relative_caption"], positive, row["query_id"])
        for row in cir_datasets.load("shapes/val").rows()
        for positive in row["positive_image_ids"]
    ]
    assert [(*one, one.query_id) for one in found] == expected
    assert len(found) == len(expected) > 300
    assert list(found) == list(found), "they can be read again"


def test_shards_share_the_triplets_out() -> None:
    found = cir_datasets.triplets("shapes/multiturn_val")
    shards = [found.shard(3, index) for index in range(3)]
    halves = [half for shard in shards for half in (shard.shard(2, 0), shard.shard(2, 1))]
    assert sum(len(shard) for shard in shards) == len(found)
    assert all(0 < len(shard) < len(found) for shard in shards)
    for parts in (shards, halves):
        assert Counter(one for part in parts for one in part) == Counter(found)
    with pytest.raises(CallError, match=r"share 3 of 3: it is from 0 to 2"):
        found.shard(3, 3)


@pytest.mark.parametrize("start", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_two_workers_of_torch_give_every_triplet_once(start: str) -> None:
    data = pytest.importorskip("torch.utils.data")
    found = cir_datasets.triplets("shapes/multiturn_val")
    loader = data.DataLoader(
        found.to_torch(), batch_size=16, num_workers=2, multiprocessing_context=start, collate_fn=list
    )
    epochs = [Counter((one, one.query_id) for batch in loader for one in batch) for _ in range(2)]
    assert epochs == [Counter((one, one.query_id) for one in found)] * 2
    assert len(found.to_torch()) == len(found)


def test_torch_collates_them_by_field() -> None:
    data = pytest.importorskip("torch.utils.data")
    found = cir_datasets.triplets("shapes/val")
    (batch, *_) = data.DataLoader(found.to_torch(), batch_size=3)
    assert list(batch.caption) == [one.caption for one, _ in zip(found, range(3), strict=False)]
    references, captions, targets = batch
    assert [len(references), len(captions), len(targets), batch.query_id] == [3, 3, 3, ""]


def test_torch_is_not_imported_for_it() -> None:
    code = (
        "import sys, json, cir_datasets\n"
        "first = next(iter(cir_datasets.triplets('shapes/val')))\n"
        "print(json.dumps([len(first), 'torch' in sys.modules, 'datasets' in sys.modules]))"
    )
    done = run_program([sys.executable, "-c", code], cwd=ROOT, env=os.environ)
    assert json.loads(done.stdout) == [3, False, False]
