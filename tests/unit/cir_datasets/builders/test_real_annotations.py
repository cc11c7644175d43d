"""The publishers' own annotations: counts, traps, pins (where `CIR_DATA_HOME` holds them)."""

from __future__ import annotations

import json
import os
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from slowly import with_slow

import cir_datasets
import submissions
from cir_datasets import registry, sources
from cir_datasets.errors import SourceError
from submissions.running.user_scores import rank_file_from_scores

HOME = os.environ.get("CIR_DATA_HOME", "")

pytestmark = [
    pytest.mark.real_data,
    pytest.mark.skipif(not HOME, reason="CIR_DATA_HOME is not set: no real annotations"),
]

HERE = [
    "cirr/val",
    "cirr/test1",
    "circo/val",
    "circo/test",
    *(f"fashioniq/{config}" for config in registry.card("fashioniq").configs),
    *(f"multiturn_fashioniq/{config}" for config in registry.card("multiturn_fashioniq").configs),
]


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "datasets-real-cache"))
    monkeypatch.setenv("CIR_GITHUB_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")


def published(benchmark_id: str) -> tuple[list[dict[str, Any]], list[str] | None]:
    """Records and gallery as the publisher's own files hold them, read without any builder of ours."""
    spec = registry.spec(benchmark_id)
    folder, config = Path(HOME) / spec.card.source.folder, spec.config
    records = json.loads((folder / config.files[0]).read_text(encoding="utf-8"))
    if "_union" in spec.config_name:
        return records, list({record[role] for record in records for role in ("candidate", "target")})
    split = folder / config.gallery_files[0]
    if not split.exists():
        return records, None
    listed = json.loads(split.read_text(encoding="utf-8"))
    coco = spec.card.name == "circo"
    return records, [f"{image['id']:012d}" for image in listed["images"]] if coco else list(listed)


@pytest.mark.parametrize("benchmark_id", HERE)
def test_rows_and_gallery_are_as_many_as_the_publishers_files_hold(benchmark_id: str) -> None:
    records, images = published(benchmark_id)
    benchmark = cir_datasets.load(benchmark_id)
    config = benchmark.spec.config
    assert len(benchmark) == len(records) == config.queries
    if images is None:
        assert benchmark.gallery is None
    else:
        assert sorted(benchmark.gallery or ()) == sorted(images)
        assert len(images) == config.gallery
        assert benchmark.pinned
    assert benchmark.checks_skipped == ()
    withheld = config.ground_truth == "withheld"
    assert all(bool(positives) != withheld for positives in benchmark.positives)


@pytest.mark.parametrize("benchmark_id", HERE)
def test_data_dir_finds_the_same_as_the_data_home(benchmark_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = cir_datasets.load(benchmark_id)
    monkeypatch.delenv("CIR_DATA_HOME")
    folder = Path(HOME) / found.spec.card.source.folder
    assert cir_datasets.load(benchmark_id, data_dir=HOME).data_hash == found.data_hash
    assert cir_datasets.load(benchmark_id, data_dir=folder).data_hash == found.data_hash


def pairs(benchmark_id: str) -> Counter[tuple[str, str]]:
    rows = cir_datasets.load(benchmark_id).rows()
    return Counter((row["reference_image_id"], "\n".join(row["captions"])) for row in rows)


@pytest.mark.parametrize(("benchmark_id", "repeated"), [("cirr/val", 6), ("cirr/test1", 4)])
def test_cirr_keeps_its_duplicate_pairs(benchmark_id: str, repeated: int) -> None:
    found = pairs(benchmark_id)
    assert found.total() - len(found) == repeated


def test_cirr_test1_keeps_its_empty_caption() -> None:
    captions = cir_datasets.load("cirr/test1").column("relative_caption")
    assert sum(not caption.strip() for caption in captions) == 1


def test_in_37_queries_of_cirr_val_the_soft_labels_lack_the_target() -> None:
    rows = cir_datasets.load("cirr/val").rows()
    soft = [{entry["image_id"] for entry in row["target_soft"]} for row in rows]
    lacking = [row for row, images in zip(rows, soft, strict=True) if row["target_image_id"] not in images]
    assert len(lacking) == 37
    assert all(len(row["subset_image_ids"]) == 6 for row in rows)
    assert all(row["reference_image_id"] in row["subset_image_ids"] for row in rows)
    assert all(len(row["auxiliary_captions"]) == 4 for row in rows)


@pytest.mark.parametrize(
    ("config", "empty"),
    [("shirt_val", 1), ("shirt_test", 1), ("toptee_train", 12), ("toptee_val", 2), ("dress_train", 0)],
)
def test_fashioniq_keeps_its_empty_captions(config: str, empty: int) -> None:
    captions = cir_datasets.load(f"fashioniq/{config}").column("captions")
    assert sum(not caption.strip() for both in captions for caption in both) == empty
    assert all(len(both) == 2 for both in captions)


@pytest.mark.parametrize("config", ["dress_test", "shirt_test"])
def test_fashioniq_keeps_its_duplicate_rows(config: str) -> None:
    found = pairs(f"fashioniq/{config}")
    assert found.total() - len(found) == 6


def test_fashioniq_galleries_overlap() -> None:
    galleries = [
        cir_datasets.load(f"fashioniq/{config}").gallery or []
        for config in registry.card("fashioniq").configs
        if config.endswith(("_train", "_val", "_test"))
    ]
    assert sum(map(len, galleries)) == 77_683
    assert len({image for gallery in galleries for image in gallery}) == 74_381


def test_a_union_is_a_part_of_the_split() -> None:
    split, union = cir_datasets.load("fashioniq/dress_val"), cir_datasets.load("fashioniq/dress_val_union")
    assert set(union.gallery or ()) < set(split.gallery or ())
    assert split.query_ids == union.query_ids


@pytest.mark.parametrize("protocol", ["dress_val", "toptee_val_union"])
def test_the_protocol_without_the_reference_differs_in_nothing_else(protocol: str) -> None:
    kept = cir_datasets.load(f"fashioniq/{protocol}")
    removed = cir_datasets.load(f"fashioniq/{protocol}_without_reference")
    assert (kept.data_hash, kept.gallery_hash) == (removed.data_hash, removed.gallery_hash)
    assert (kept.excludes_reference, removed.excludes_reference) == (False, True)


def test_circo_has_positives_and_aspects() -> None:
    benchmark = cir_datasets.load("circo/val")
    rows = benchmark.rows()
    assert sum(len(row["positive_image_ids"]) for row in rows) / len(rows) == pytest.approx(4.2, abs=0.05)
    assert len({aspect for row in rows for aspect in row["aspects"]}) == 9
    assert all(row["target_image_id"] in row["positive_image_ids"] for row in rows)
    assert all(len(image) == 12 for row in rows for image in row["positive_image_ids"])


def sessions() -> list[dict[str, Any]]:
    configs = registry.card("multiturn_fashioniq").configs
    return [row for config in configs for row in cir_datasets.load(f"multiturn_fashioniq/{config}").rows()]


def test_multiturn_fashioniq_keeps_every_session_turn_and_caption() -> None:
    rows = sessions()
    assert Counter(row["num_turns"] for row in rows) == {1: 1, 2: 8_649, 3: 2_216, 4: 640}
    assert [row["subset"] for row in rows if row["num_turns"] == 1] == ["toptee_train"]
    turns = [turn for row in rows for turn in row["turns"]]
    assert Counter(len(turn["captions"]) for turn in turns) == {2: 26_474, 1: 21, 3: 12}
    assert sum(not caption.strip() for turn in turns for caption in turn["captions"]) == 13
    assert all((turn["relative_caption"] is None) == (len(turn["captions"]) != 1) for turn in turns)
    references = [[turn["reference_image_id"] for turn in row["turns"]] for row in rows]
    assert sum(len(set(each)) < len(each) for each in references) == 11


def test_earlier_captions_of_multiturn_fashioniq_describe_the_next_image_of_the_chain() -> None:
    # A FashionIQ query is known by its reference and one of its captions.
    targets: dict[tuple[str, str], set[str]] = {}
    for config in registry.card("fashioniq").configs:
        if config.endswith(("_train", "_val")):
            for row in cir_datasets.load(f"fashioniq/{config}").rows():
                for caption in row["captions"]:
                    key = row["reference_image_id"], caption.strip()
                    targets.setdefault(key, set()).add(row["target_image_id"])
    found: Counter[str] = Counter()
    for row in (row for row in sessions() if row["subset"].endswith("_val")):
        for turn, following in pairwise(row["turns"]):
            own = {(turn["reference_image_id"], caption.strip()) for caption in turn["captions"]}
            meant = set().union(*(targets.get(key, set()) for key in own))
            found["turns"] += 1
            found["known"] += bool(meant)
            found["next"] += following["reference_image_id"] in meant
            found["target"] += row["ground_truth_ids"][0] in meant
    assert found == {"turns": 3_213, "known": 1_992, "next": 1_954, "target": 3}
    (trap,) = [
        each for each in registry.card("multiturn_fashioniq").traps if "next image of the chain" in each
    ]
    assert "3,213 earlier turns 1,992" in trap
    assert "in 1,954 of them and the session's target in 3" in trap


def test_a_third_of_multiturn_fashioniqs_val_targets_are_targets_in_train() -> None:
    targets: dict[str, set[str]] = {"train": set(), "val": set()}
    for row in sessions():
        targets[row["subset"].split("_")[1]].update(row["ground_truth_ids"])
    assert (len(targets["val"]), len(targets["val"] & targets["train"])) == (2_189, 729)


def test_what_is_not_here_is_named() -> None:
    if (Path(HOME) / "cirr/captions/cap.rc2.train.json").exists():
        pytest.skip("CIRR's training captions are here")
    with pytest.raises(SourceError, match=r"cap\.rc2\.train\.json is not available"):
        cir_datasets.load("cirr/train")


def test_every_local_file_of_the_lists_is_the_pinned_one() -> None:
    for name in ("cirr", "fashioniq", "circo", "multiturn_fashioniq"):
        folder = Path(HOME) / registry.card(name).source.folder
        pinned = {folder / file: pin for file, pin in sources.pins(name).items() if pin is not None}
        local = [path for path in pinned if path.exists()]
        assert local
        assert [path for path in local if path.stat().st_size != pinned[path].bytes] == []


@pytest.mark.parametrize(
    "name", with_slow(["cirr", "fashioniq", "circo", "multiturn_fashioniq"], "fashioniq")
)
def test_published_annotations_load_as_they_were(name: str, tmp_path: Path) -> None:
    import datasets

    from cir_datasets.publishing.publish import publish

    (done,) = publish(name, tmp_path / "published", skip_missing=True)
    assert done.warnings == ()
    assert set(done.skipped) <= {f"cirr/{name}train" for name in ("", "dialogues_", "dialogues_across_")}
    for config in done.configs:
        found = datasets.load_dataset(str(done.folder), config.name, cache_dir=str(tmp_path / "cache"))
        if config.is_manifest:
            wanted = cir_datasets.image_manifest(config.spec.id)
        else:
            wanted = cir_datasets.load(config.spec.id).rows()
        assert found[config.split].to_list() == wanted


@pytest.mark.parametrize(
    ("config", "images", "repeated", "shorter"),
    [("focus_object", 2192, 427, []), ("change_object", 2734, 167, [19])],
)
def test_genecis_is_what_its_files_hold_and_a_constant_scorer_wins_nothing(
    config: str, images: int, repeated: int, shorter: list[int]
) -> None:
    benchmark = cir_datasets.load(f"genecis/{config}")
    assert (len(benchmark), len(benchmark.gallery or ()), benchmark.pinned) == (1960, images, True)
    file = next(Path(HOME).glob(f"**/genecis/{config}.json"))
    rows = benchmark.rows()
    for record, row in zip(json.loads(file.read_text()), rows, strict=True):
        listed = {f"{each['val_image_id']:012d}" for each in [record["target"], *record["gallery"]]}
        assert row["gallery_image_ids"] == sorted(listed)
        assert row["target_image_id"] == f"{record['target']['val_image_id']:012d}"
        assert row["relative_caption"] == record["condition"]
    assert [n for n, row in enumerate(rows) if len(row["gallery_image_ids"]) != 15] == shorter
    whole = Counter(
        json.dumps({name: value for name, value in row.items() if name != "query_id"}) for row in rows
    )
    assert whole.total() - len(whole) == repeated
    # Every image equal: the released code gives recall@1 100, chance is 1 in 15.
    made = rank_file_from_scores(
        benchmark,
        np.zeros((len(benchmark), images)),
        query_ids=benchmark.query_ids,
        image_ids=benchmark.gallery,
        method="Constant",
    )
    assert submissions.score(made, benchmark).metrics["recall@1"] == pytest.approx(1 / 15, abs=0.02)
