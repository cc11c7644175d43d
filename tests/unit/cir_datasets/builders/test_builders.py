"""Every builder on made-up files in its publisher's layout: exact rows, and every error with its words."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import datasets_publishers as made
import pytest
from datasets_publishers import load_unchecked

import cir_datasets
from cir_datasets import registry
from cir_datasets.errors import CountError, RecordError

PUBLISHED = [name for name in registry.benchmark_ids() if not name.startswith("shapes/")]


pytestmark = [
    pytest.mark.usefixtures("no_publishers"),
    pytest.mark.filterwarnings("ignore::cir_datasets.errors.UnpinnedDataWarning"),
]


@pytest.mark.parametrize("benchmark_id", PUBLISHED)
def test_every_published_benchmark_loads_from_files_of_the_published_form(
    benchmark_id: str, tmp_path: Path
) -> None:
    made.write_for(tmp_path, benchmark_id)
    benchmark = load_unchecked(benchmark_id, tmp_path)
    sizes = {"circo": 2, "circled": 2, "zerosight/all": 6}
    sizes |= {f"cirr/dialogues_{split}": 2 for split in ("train", "val")}
    sizes |= {f"cirr/dialogues_across_{split}": 1 for split in ("train", "val")}
    assert len(benchmark) == sizes.get(benchmark_id, sizes.get(benchmark_id.split("/")[0], 3))
    assert benchmark.checks_skipped == ("counts",)
    assert not benchmark.pinned
    assert len(set(benchmark.query_ids)) == len(benchmark)
    withheld = benchmark.spec.config.ground_truth == "withheld"
    assert all(not positives if withheld else positives for positives in benchmark.positives)


COUNTED = [name for name in PUBLISHED if registry.spec(name).config.queries is not None]


@pytest.mark.parametrize("benchmark_id", COUNTED)
def test_a_wrong_count_is_an_error_that_names_file_and_card(benchmark_id: str, tmp_path: Path) -> None:
    made.write_for(tmp_path, benchmark_id)
    expected = registry.spec(benchmark_id).config.queries
    with pytest.raises(CountError) as error:
        cir_datasets.load(benchmark_id, data_dir=tmp_path)
    assert f"but the card says {expected:,}" in str(error.value)
    assert registry.spec(benchmark_id).config.files[0] in str(error.value)
    assert "no_checks" in str(error.value)


def test_a_cirr_query_becomes_the_row_that_the_publishers_record_says(tmp_path: Path) -> None:
    made.write_cirr(tmp_path, "val")
    benchmark = load_unchecked("cirr/val", tmp_path)
    images = made.cirr_images("val")
    assert benchmark.rows()[1] == {
        "query_id": "901",
        "reference_image_id": images[1],
        "captions": ["made up 1"],
        "relative_caption": "made up 1",
        "target_image_id": images[2],
        "positive_image_ids": [images[2]],
        "negative_image_ids": [],
        "subset_image_ids": images[:6],
        "aspects": [],
        "subset_id": 7,
        "target_soft": [{"image_id": images[2], "score": 1.0}, {"image_id": images[5], "score": 0.5}],
        "auxiliary_captions": ["extra 1.0", "extra 1.1", "extra 1.2", "extra 1.3"],
    }
    assert benchmark.gallery == images


def test_cirr_withholds_the_truth_of_its_test_split(tmp_path: Path) -> None:
    made.write_cirr(tmp_path, "test1")
    row = load_unchecked("cirr/test1", tmp_path).rows()[0]
    assert row["target_image_id"] is None
    assert row["positive_image_ids"] == row["target_soft"] == []
    assert row["auxiliary_captions"][3] == "extra 0.3"


def test_cirr_names_lose_their_suffix_and_paths_their_dot(tmp_path: Path) -> None:
    root = made.write_cirr(tmp_path, "train")
    made.edit(
        root / "captions/cap.rc2.train.json",
        lambda rows: rows[0].update(reference=rows[0]["reference"] + ".png"),
    )
    assert load_unchecked("cirr/train", tmp_path).rows()[0]["reference_image_id"] == "train-0-0-img0"
    manifest = cir_datasets.image_manifest("cirr/train", data_dir=tmp_path, verification_mode="no_checks")
    assert manifest[1]["relative_path"] == "train/34/train-1-0-img1.png"
    assert manifest[1]["sha256"] is None


def test_a_closed_loop_of_cirr_becomes_a_session_whose_turns_have_targets(tmp_path: Path) -> None:
    made.write_cirr_loops(tmp_path, "val")
    benchmark = load_unchecked("cirr/dialogues_val", tmp_path)
    images = [f"val-{number}-1-img0" for number in range(16)]
    assert benchmark.query_ids == ["subset_9", "subset_4"]  # in the file's order; subset 11 has a gap
    row = benchmark.rows()[1]
    assert (row["ground_truth_ids"], row["num_turns"]) == ([images[5]], 5)
    assert row["turns"][1] == {
        "turn": 2,
        "reference_image_id": images[1],
        "relative_caption": "made up 1",
        "target_image_id": images[2],
        "source_query_id": "1",
    }
    assert [turn["reference_image_id"] for turn in row["turns"]] == images[:5]
    assert benchmark.gallery == images


def test_two_loops_of_cirr_are_joined_at_the_image_that_they_share(tmp_path: Path) -> None:
    root = made.write_cirr_loops(tmp_path, "val")
    (row,) = load_unchecked("cirr/dialogues_across_val", tmp_path).rows()
    asked = [turn["source_query_id"] for turn in row["turns"]]
    assert row["session_id"] == "subsets_9_4"
    assert asked == ["9", "10", "11", "6", "7", "2", "3", "4", "5", "0"]
    assert (row["turns"][4]["target_image_id"], row["ground_truth_ids"]) == ("val-2-1-img0", ["val-1-1-img0"])

    def give_the_loop_a_gap(rows: list[dict[str, Any]]) -> None:
        rows.remove(next(row for row in rows if row["pairid"] == 7))

    made.edit(root / "captions/cap.rc2.val.json", give_the_loop_a_gap)
    assert load_unchecked("cirr/dialogues_val", tmp_path).query_ids == ["subset_4"]
    with pytest.raises(RecordError, match="holds no record"):
        load_unchecked("cirr/dialogues_across_val", tmp_path)


def test_a_fashioniq_query_keeps_its_captions_as_published(tmp_path: Path) -> None:
    made.write_fashioniq(tmp_path, "shirt", "val")
    images = made.fashioniq_images("shirt", "val")
    rows = load_unchecked("fashioniq/shirt_val", tmp_path).rows()
    assert rows[1] == {
        "query_id": "shirt_val_00001",
        "reference_image_id": images[2],
        "captions": [" is made up 1", ""],
        "relative_caption": None,
        "target_image_id": images[1],
        "positive_image_ids": [images[1]],
        "negative_image_ids": [],
        "subset_image_ids": [],
        "aspects": [],
        "category": "shirt",
    }


def test_fashioniq_withholds_the_truth_of_its_test_split(tmp_path: Path) -> None:
    made.write_fashioniq(tmp_path, "dress", "test")
    row = load_unchecked("fashioniq/dress_test", tmp_path).rows()[0]
    assert row["target_image_id"] is None
    assert row["positive_image_ids"] == []


def test_the_two_protocols_of_fashioniq_share_queries_and_differ_in_gallery(tmp_path: Path) -> None:
    made.write_fashioniq(tmp_path, "toptee", "val")
    images = made.fashioniq_images("toptee", "val")
    split, union = (
        load_unchecked("fashioniq/toptee_val", tmp_path),
        load_unchecked("fashioniq/toptee_val_union", tmp_path),
    )
    assert split.rows() == union.rows()
    assert split.data_hash == union.data_hash
    assert split.gallery == images
    assert union.gallery == [images[1], images[0], images[2], images[3]]
    assert split.gallery_hash != union.gallery_hash


def test_a_circo_query_becomes_the_row_that_the_publishers_record_says(tmp_path: Path) -> None:
    made.write_circo(tmp_path, "val")
    benchmark = load_unchecked("circo/val", tmp_path)
    assert benchmark.rows()[0] == {
        "query_id": "0",
        "reference_image_id": "000000123456",
        "captions": ["is made up"],
        "relative_caption": "is made up",
        "target_image_id": "000000234567",
        "positive_image_ids": ["000000234567", "000000000077"],
        "negative_image_ids": [],
        "subset_image_ids": [],
        "aspects": ["negation"],
        "shared_concept": "a thing",
    }
    assert benchmark.gallery == [f"{number:012d}" for number in made.CIRCO_IMAGES]
    manifest = cir_datasets.image_manifest("circo/val", data_dir=tmp_path, verification_mode="no_checks")
    assert manifest[0] == {
        "image_id": "000000000009",
        "relative_path": "unlabeled2017/000000000009.jpg",
        "sha256": None,
        "pixel_sha256": None,
        "num_bytes": None,
        "width": 640,
        "height": 480,
        "license": "Attribution-NonCommercial License",
    }


@pytest.mark.parametrize("written", [123456, "123456", "000000123456", "000000123456.jpg"])
def test_circo_ids_are_12_digits_however_they_are_written(written: Any, tmp_path: Path) -> None:
    root = made.write_circo(tmp_path, "test")
    made.edit(root / "annotations/test.json", lambda rows: rows[0].update(reference_img_id=written, id="0"))
    row = load_unchecked("circo/test", tmp_path).rows()[0]
    assert (row["query_id"], row["reference_image_id"]) == ("0", "000000123456")


@pytest.mark.parametrize("written", ["12345o", -1, True, 1.5, None, "1234567890123"])
def test_an_id_that_is_none_of_cocos_is_an_error(written: Any, tmp_path: Path) -> None:
    root = made.write_circo(tmp_path, "test")
    made.edit(root / "annotations/test.json", lambda rows: rows[1].update(reference_img_id=written))
    with pytest.raises(RecordError, match=r"record 2 \(id 1\): .* is not a COCO image id"):
        load_unchecked("circo/test", tmp_path)


def test_circo_without_cocos_list_has_no_gallery(tmp_path: Path) -> None:
    made.write_circo(tmp_path, "val", gallery=False)
    benchmark = load_unchecked("circo/val", tmp_path)
    assert benchmark.gallery is None
    assert benchmark.gallery_hash is None
    with pytest.raises(cir_datasets.errors.SourceError, match="the list of its gallery is not available"):
        cir_datasets.image_manifest("circo/val", data_dir=tmp_path, verification_mode="no_checks")


@pytest.mark.parametrize("subset", made.CIRCLED_SUBSETS)
def test_a_circled_session_keeps_its_turns_and_takes_the_gallery_of_its_source(
    subset: str, tmp_path: Path
) -> None:
    made.write_circled(tmp_path, subset)
    made.write_source(tmp_path, subset)
    benchmark = load_unchecked(f"circled/{subset}", tmp_path)
    first, second, target = (name.removesuffix(".jpg") for name in made.circled_ids(subset))
    assert benchmark.rows()[0] == {
        "session_id": f"{subset}_0000",
        "subset": subset,
        "ground_truth_ids": [target],
        "num_turns": 2,
        "turns": [
            {"turn": 1, "reference_image_id": first, "relative_caption": "made up 0.1"},
            {"turn": 2, "reference_image_id": second, "relative_caption": "made up 0.2"},
        ],
        "source_query_id": None,
    }
    assert benchmark.gallery is not None
    assert {first, second, target} < set(benchmark.gallery)


@pytest.mark.parametrize("suffix", [".png", ".jpg"])
@pytest.mark.parametrize("subset", made.CIRCLED_SUBSETS)
def test_circled_ids_lose_the_ending_of_an_image_file(subset: str, suffix: str, tmp_path: Path) -> None:
    root = made.write_circled(tmp_path, subset)
    made.write_source(tmp_path, subset)
    plain = load_unchecked(f"circled/{subset}", tmp_path)

    def end_with_suffix(rows: Any) -> None:
        for row in rows:
            bare = [name.removesuffix(".jpg") for name in row["ground_truth_ids"]]
            row["ground_truth_ids"] = [name + suffix for name in bare]
            for turn in row["turns"]:
                turn["reference_image_id"] = turn["reference_image_id"].removesuffix(".jpg") + suffix

    made.edit(root / f"data/{subset}.json", end_with_suffix)
    ended = load_unchecked(f"circled/{subset}", tmp_path)
    assert ended.rows() == plain.rows()
    assert ended.data_hash == plain.data_hash


@pytest.mark.parametrize("subset", [one for one in made.CIRCLED_SUBSETS if one.endswith("_val")])
def test_a_circled_session_names_the_query_of_its_source_where_that_is_here(
    subset: str, tmp_path: Path
) -> None:
    made.write_source(tmp_path, subset)
    source = load_unchecked(registry.spec(f"circled/{subset}").config.gallery_from or "", tmp_path)
    query = source.rows()[-1]
    root = made.write_circled(tmp_path, subset)

    def begin(sessions: Any) -> None:
        first = sessions[0]["turns"][0]
        first["reference_image_id"] = query["reference_image_id"]
        first["relative_caption"] = f" {query['captions'][-1].replace(' ', '  ')} "
        sessions[0]["ground_truth_ids"] = query["positive_image_ids"][-1:]
        sessions[0]["turns"][1]["reference_image_id"] = query["reference_image_id"]
        sessions[1]["turns"][0] |= {"relative_caption": query["captions"][0]}

    made.edit(root / f"data/{subset}.json", begin)
    there = load_unchecked(f"circled/{subset}", tmp_path)
    assert there.column("source_query_id") == [query["query_id"], None]
    alone = shutil.copytree(root, tmp_path / "far/away/CIRCLED").parent
    assert load_unchecked(f"circled/{subset}", alone).column("source_query_id") == [None, None]


def test_two_spellings_of_a_target_of_circled_are_one(tmp_path: Path) -> None:
    root = made.write_circled(tmp_path, "circo_val")
    path = root / "data/circo_val.json"
    sessions = json.loads(path.read_text())
    plain = sessions[0]["ground_truth_ids"]
    sessions[0]["ground_truth_ids"] = [*plain, plain[0].removesuffix(".jpg").lstrip("0") + ".jpg"]
    path.write_text(json.dumps(sessions))
    targets = load_unchecked("circled/circo_val", tmp_path).rows()[0]["ground_truth_ids"]
    assert targets == [f"{int(plain[0].removesuffix('.jpg')):012d}"]
    sessions[0]["ground_truth_ids"] = [*plain, *plain]
    path.write_text(json.dumps(sessions))
    with pytest.raises(RecordError, match="name an image twice"):
        load_unchecked("circled/circo_val", tmp_path)


def test_circled_without_its_source_has_no_gallery(tmp_path: Path) -> None:
    made.write_circled(tmp_path, "cirr_val")
    assert load_unchecked("circled/cirr_val", tmp_path).gallery is None


def test_the_gallery_of_circled_is_found_beside_its_folder(tmp_path: Path) -> None:
    root = made.write_circled(tmp_path, "cirr_val")
    made.write_source(tmp_path, "cirr_val")
    assert load_unchecked("circled/cirr_val", root).gallery == made.cirr_images("val")


def test_a_circled_reference_outside_the_gallery_is_an_error(tmp_path: Path) -> None:
    root = made.write_circled(tmp_path, "cirr_val")
    made.write_source(tmp_path, "cirr_val")
    made.edit(
        root / "data/cirr_val.json", lambda rows: rows[1]["turns"][2].update(reference_image_id="dev-0")
    )
    with pytest.raises(RecordError, match="its reference of turn 3 'dev-0' is not in the gallery"):
        load_unchecked("circled/cirr_val", tmp_path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b'[{"pairid": 1,\n "reference": }]', r"line 2, column 15: not JSON"),
        (b"", r"line 1, column 1: not JSON"),
        (b'{"pairid": 1}', "the top level must be a list, not an object"),
        (b"[\xff]", "byte 1 is not UTF-8"),
        (b'[{"pairid": 1, "pairid": 2}]', "the key 'pairid' occurs twice in one object"),
        (b'[{"pairid": NaN}]', "NaN is not JSON"),
        (b"[" * 100_000, "its lists or objects are nested too deeply"),
        (b'[{"pairid": 1e999}]', "record 1: the number 1e999 is too large to be kept"),
        (
            b'[{"pairid": 1' + b"0" * 5000 + b"}]",
            "record 1: an integer of 5,001 digits is too large to be kept",
        ),
    ],
)
def test_a_file_that_is_not_json_is_an_error_with_its_line(text: bytes, words: str, tmp_path: Path) -> None:
    root = made.write_cirr(tmp_path, "val")
    (root / "captions/cap.rc2.val.json").write_bytes(text)
    with pytest.raises(RecordError, match=words):
        load_unchecked("cirr/val", tmp_path)


def test_a_file_without_records_is_an_error(tmp_path: Path) -> None:
    root = made.write_circled(tmp_path, "cirr_val")
    (root / "data/cirr_val.json").write_bytes(b"[]")
    with pytest.raises(RecordError, match=r"cirr_val\.json: it holds no record"):
        load_unchecked("circled/cirr_val", tmp_path)


def test_the_turn_distribution_is_checked() -> None:
    from cir_datasets.rows.checks import Tally, check_counts

    spec = registry.spec("circled/circo_val")
    right, wrong = Tally(), Tally()
    for turns, count in (spec.config.turns or {}).items():
        for number in range(count):
            right.add({"turns": [None] * turns})
            wrong.add({"turns": [None] * (turns + (number == 0))})
    check_counts(spec, right, 123_403, "file", "list")
    with pytest.raises(CountError, match="35 sessions of 2 turns, but the card says 36"):
        check_counts(spec, wrong, 123_403, "file", "list")
    with pytest.raises(CountError, match="list: 1 gallery images, but the card says 123,403"):
        check_counts(spec, right, 1, "file", "list")


def test_a_query_of_genecis_ranks_its_own_list_sorted_by_id(tmp_path: Path) -> None:
    made.write_genecis(tmp_path, "change_object")
    benchmark = load_unchecked("genecis/change_object", tmp_path)
    ids = {number: f"{number:012d}" for number in (5, 7, 8, 9, 61, 62, 63, 400)}
    first, second, third = benchmark.rows()
    assert first == {
        "query_id": "change_object_0000",
        "reference_image_id": ids[5],
        "captions": ["a cup"],
        "relative_caption": "a cup",
        "target_image_id": ids[61],
        "positive_image_ids": [ids[61]],
        "negative_image_ids": [],
        "subset_image_ids": [],
        "aspects": [],
        "gallery_image_ids": [ids[7], ids[8], ids[61], ids[400]],
    }
    assert second == {**first, "query_id": "change_object_0001"}  # a repetition stays a query
    assert third["gallery_image_ids"] == [ids[9], ids[62], ids[63]]  # where the target was there twice
    assert benchmark.gallery == [ids[number] for number in (7, 8, 9, 61, 62, 63, 400)]
    assert benchmark.reference_use == "outside"


@pytest.mark.parametrize(
    ("image", "fault"),
    [
        ({"val_image_id": 5, "instance_bbox": [0, 0, 9, 9]}, "instance_bbox"),
        ({"image_id": 5}, "val_image_id"),
        ({"val_image_id": -5}, "COCO image id"),
        (5, "must be an object"),
    ],
)
def test_an_image_of_genecis_is_a_whole_picture_of_coco(image: Any, fault: str, tmp_path: Path) -> None:
    root = made.write_genecis(tmp_path, "focus_object")

    def change(records: list[dict[str, Any]]) -> None:
        records[1]["gallery"][0] = image

    made.edit(root / "genecis/focus_object.json", change)
    with pytest.raises(RecordError, match="record 2") as error:
        load_unchecked("genecis/focus_object", tmp_path)
    assert fault in str(error.value)
