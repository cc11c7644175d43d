"""Every builder on made-up files in its publisher's layout: exact rows, and every error with its words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets_publishers as made
import pytest

import cir_datasets
from cir_datasets import registry
from cir_datasets.errors import CountError, RecordError

PUBLISHED = [name for name in registry.benchmark_ids() if not name.startswith("shapes/")]


@pytest.fixture(autouse=True)
def _caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CIR_DATA_HOME", raising=False)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("CIR_GITHUB_ENDPOINT", "http://127.0.0.1:1")


pytestmark = pytest.mark.filterwarnings("ignore::cir_datasets.errors.UnpinnedDataWarning")


def load(benchmark_id: str, home: Path) -> cir_datasets.Benchmark:
    return cir_datasets.load(benchmark_id, data_dir=home, verification_mode="no_checks")


@pytest.mark.parametrize("benchmark_id", PUBLISHED)
def test_every_published_benchmark_loads_from_files_of_the_published_form(
    benchmark_id: str, tmp_path: Path
) -> None:
    made.write_for(tmp_path, benchmark_id)
    benchmark = load(benchmark_id, tmp_path)
    sizes = {"circo": 2, "circled": 2, "zerosight/all": 6}
    assert len(benchmark) == sizes.get(benchmark_id, sizes.get(benchmark_id.split("/")[0], 3))
    assert benchmark.checks_skipped == ("counts",)
    assert not benchmark.pinned
    assert len(set(benchmark.query_ids)) == len(benchmark)
    withheld = benchmark.spec.config.ground_truth == "withheld"
    assert all(not positives if withheld else positives for positives in benchmark.positives)


@pytest.mark.parametrize("benchmark_id", PUBLISHED)
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
    benchmark = load("cirr/val", tmp_path)
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
    row = load("cirr/test1", tmp_path).rows()[0]
    assert row["target_image_id"] is None
    assert row["positive_image_ids"] == row["target_soft"] == []
    assert row["auxiliary_captions"][3] == "extra 0.3"


def test_cirr_names_lose_their_suffix_and_paths_their_dot(tmp_path: Path) -> None:
    root = made.write_cirr(tmp_path, "train")
    made.edit(
        root / "captions/cap.rc2.train.json",
        lambda rows: rows[0].update(reference=rows[0]["reference"] + ".png"),
    )
    assert load("cirr/train", tmp_path).rows()[0]["reference_image_id"] == "train-0-0-img0"
    manifest = cir_datasets.image_manifest("cirr/train", data_dir=tmp_path, verification_mode="no_checks")
    assert manifest[1]["relative_path"] == "train/34/train-1-0-img1.png"
    assert manifest[1]["sha256"] is None


def test_a_fashioniq_query_keeps_its_captions_as_published(tmp_path: Path) -> None:
    made.write_fashioniq(tmp_path, "shirt", "val")
    images = made.fashioniq_images("shirt", "val")
    rows = load("fashioniq/shirt_val", tmp_path).rows()
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
    row = load("fashioniq/dress_test", tmp_path).rows()[0]
    assert row["target_image_id"] is None
    assert row["positive_image_ids"] == []


def test_the_two_protocols_of_fashioniq_share_queries_and_differ_in_gallery(tmp_path: Path) -> None:
    made.write_fashioniq(tmp_path, "toptee", "val")
    images = made.fashioniq_images("toptee", "val")
    split, union = load("fashioniq/toptee_val", tmp_path), load("fashioniq/toptee_val_union", tmp_path)
    assert split.rows() == union.rows()
    assert split.data_hash == union.data_hash
    assert split.gallery == images
    assert union.gallery == [images[1], images[0], images[2], images[3]]
    assert split.gallery_hash != union.gallery_hash


def test_a_circo_query_becomes_the_row_that_the_publishers_record_says(tmp_path: Path) -> None:
    made.write_circo(tmp_path, "val")
    benchmark = load("circo/val", tmp_path)
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
    row = load("circo/test", tmp_path).rows()[0]
    assert (row["query_id"], row["reference_image_id"]) == ("0", "000000123456")


@pytest.mark.parametrize("written", ["12345o", -1, True, 1.5, None, "1234567890123"])
def test_an_id_that_is_none_of_cocos_is_an_error(written: Any, tmp_path: Path) -> None:
    root = made.write_circo(tmp_path, "test")
    made.edit(root / "annotations/test.json", lambda rows: rows[1].update(reference_img_id=written))
    with pytest.raises(RecordError, match=r"record 2 \(id 1\): .* is not a COCO image id"):
        load("circo/test", tmp_path)


def test_circo_without_cocos_list_has_no_gallery(tmp_path: Path) -> None:
    made.write_circo(tmp_path, "val", gallery=False)
    benchmark = load("circo/val", tmp_path)
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
    benchmark = load(f"circled/{subset}", tmp_path)
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
    }
    assert benchmark.gallery is not None
    assert {first, second, target} < set(benchmark.gallery)


@pytest.mark.parametrize("suffix", [".png", ".jpg"])
@pytest.mark.parametrize("subset", made.CIRCLED_SUBSETS)
def test_circled_ids_lose_the_ending_of_an_image_file(subset: str, suffix: str, tmp_path: Path) -> None:
    root = made.write_circled(tmp_path, subset)
    made.write_source(tmp_path, subset)
    plain = load(f"circled/{subset}", tmp_path)

    def end_with_suffix(rows: Any) -> None:
        for row in rows:
            bare = [name.removesuffix(".jpg") for name in row["ground_truth_ids"]]
            row["ground_truth_ids"] = [name + suffix for name in bare]
            for turn in row["turns"]:
                turn["reference_image_id"] = turn["reference_image_id"].removesuffix(".jpg") + suffix

    made.edit(root / f"data/{subset}.json", end_with_suffix)
    ended = load(f"circled/{subset}", tmp_path)
    assert ended.rows() == plain.rows()
    assert ended.data_hash == plain.data_hash


def test_circled_without_its_source_has_no_gallery(tmp_path: Path) -> None:
    made.write_circled(tmp_path, "cirr_val")
    assert load("circled/cirr_val", tmp_path).gallery is None


def test_the_gallery_of_circled_is_found_beside_its_folder(tmp_path: Path) -> None:
    root = made.write_circled(tmp_path, "cirr_val")
    made.write_source(tmp_path, "cirr_val")
    assert load("circled/cirr_val", root).gallery == made.cirr_images("val")


# One broken file a line: benchmark, file, what is done to it, what the error says.
Change = Callable[[Any], Any]
CAP, EXT, SPLIT = (
    f"{folder}.rc2.val.json" for folder in ("captions/cap", "captions_ext/cap.ext", "image_splits/split")
)
FCAP, FSPLIT = "captions/cap.dress.val.json", "image_splits/split.dress.val.json"
COCO = "COCO2017_unlabeled/annotations/image_info_unlabeled2017.json"
BROKEN: list[tuple[str, str, Change, str]] = [
    (
        "cirr/val",
        CAP,
        lambda r: r[1].pop("caption"),
        r"record 2 \(pairid 901\): the field 'caption' is missing",
    ),
    ("cirr/val", CAP, lambda r: r[1].pop("pairid"), "record 2: the field 'pairid' is missing"),
    ("cirr/val", CAP, lambda r: r[0].pop("target_hard"), "the field 'target_hard' is missing"),
    ("cirr/val", CAP, lambda r: r[0].pop("target_soft"), "the field 'target_soft' is missing"),
    (
        "cirr/val",
        CAP,
        lambda r: r[0]["img_set"].pop("members"),
        r"pairid 900, img_set\): the field 'members'",
    ),
    ("cirr/val", CAP, lambda r: r[0].update(caption=3), "the field 'caption' must be a string, not 3"),
    (
        "cirr/val",
        CAP,
        lambda r: r[0].update(pairid="900"),
        "the field 'pairid' must be an integer, not '900'",
    ),
    ("cirr/val", CAP, lambda r: r[0].update(pairid=True), "the field 'pairid' must be an integer, not True"),
    ("cirr/val", CAP, lambda r: r[0].update(img_set=[]), "the field 'img_set' must be an object"),
    ("cirr/val", CAP, lambda r: r[0].update(reference=""), "the field 'reference' is an empty string"),
    (
        "cirr/val",
        CAP,
        lambda r: r[0]["target_soft"].update(x="y"),
        "the score of 'x' must be a number, not 'y'",
    ),
    (
        "cirr/val",
        CAP,
        lambda r: r.append(r[0]),
        r"record 4 \(query_id 900\): its id occurs a second time .*record 1",
    ),
    ("cirr/val", CAP, lambda r: r[0]["img_set"]["members"].pop(), "its subset must hold 6 different images"),
    ("cirr/val", CAP, lambda r: r[0]["img_set"]["members"].__setitem__(0, "x"), "is not in its subset"),
    (
        "cirr/val",
        CAP,
        lambda r: r[0].update(target_hard="elsewhere"),
        "target_image_id 'elsewhere' is not in its subset",
    ),
    (
        "cirr/val",
        CAP,
        lambda r: r[0].update(target_hard=r[0]["reference"]),
        "is a positive, but is removed from the ranking",
    ),
    (
        "circled/cirr_val",
        "data/cirr_val.json",
        lambda r: r[0].update(ground_truth_ids=r[0]["ground_truth_ids"] * 2),
        "twice",
    ),
    ("cirr/val", CAP, lambda r: r[0]["img_set"].update(id=10**30), "record 1.*a value does not fit"),
    ("cirr/val", CAP, lambda r: r.__setitem__(1, "text"), "record 2 must be an object, not 'text'"),
    ("cirr/val", EXT, lambda r: r.pop(), "the file of auxiliary captions has no record of that pair id"),
    (
        "cirr/val",
        EXT,
        lambda r: r.append(dict(r[0], pairid=1)),
        "cap.rc2.val.json has no query of that pair id",
    ),
    ("cirr/val", EXT, lambda r: r.append(r[0]), "pair id 902 occurs a second time .first in record 1"),
    (
        "cirr/val",
        EXT,
        lambda r: r[2].update(reference="x"),
        "its reference is 'x', but the query's is 'val-0-0-img0'",
    ),
    (
        "cirr/val",
        EXT,
        lambda r: r[0]["caption_extend"].pop("3"),
        "caption_extend must have the keys 0, 1, 2, 3",
    ),
    (
        "cirr/val",
        SPLIT,
        lambda r: r.pop("val-5-0-img1"),
        "its subset member 'val-5-0-img1' is not in the gallery",
    ),
    ("cirr/val", SPLIT, lambda r: r.update(x=None), "image 'x': its path must be a string"),
    (
        "fashioniq/dress_val",
        FCAP,
        lambda r: r[0].pop("target"),
        r"record 1 \(query_id dress_val_00000\): the field 'target' is missing",
    ),
    (
        "fashioniq/dress_val",
        FCAP,
        lambda r: r[0].update(captions="x"),
        "'captions' must be a list that is not empty",
    ),
    (
        "fashioniq/dress_val",
        FCAP,
        lambda r: r[0].update(captions=[]),
        "'captions' must be a list that is not empty",
    ),
    (
        "fashioniq/dress_val",
        FCAP,
        lambda r: r[0].update(captions=[None]),
        "an item of 'captions' must be a string",
    ),
    (
        "fashioniq/dress_val",
        FCAP,
        lambda r: r[2].update(candidate="B0"),
        "its reference 'B0' is not in the gallery",
    ),
    (
        "fashioniq/dress_val",
        FCAP,
        lambda r: r[2].update(target="B0"),
        "its target 'B0' is not in the gallery",
    ),
    (
        "fashioniq/dress_val",
        FSPLIT,
        lambda r: r.append(r[0]),
        "record 7: image .* occurs a second time .*record 1",
    ),
    ("fashioniq/dress_val", FSPLIT, lambda r: r.append(3), "record 7: an image id must be a string, not 3"),
    (
        "circo/val",
        "annotations/val.json",
        lambda r: r[0].pop("gt_img_ids"),
        r"\(id 0\): the field 'gt_img_ids'",
    ),
    (
        "circo/val",
        "annotations/val.json",
        lambda r: r[0].update(id=1),
        r"record 2 \(query_id 1\): its id occurs a sec",
    ),
    (
        "circo/val",
        "annotations/val.json",
        lambda r: r[0]["gt_img_ids"].append(5),
        "positive '000000000005' is not in",
    ),
    ("circo/val", COCO, lambda r: r.pop("images"), "the field 'images' must be a list"),
    ("circo/val", COCO, lambda r: r["images"].append(4), "image 6 must be an object, not 4"),
    (
        "circled/cirr_val",
        "data/cirr_val.json",
        lambda r: r[1].pop("turns"),
        r"cirr_val_0001\): the field 'turns'",
    ),
    (
        "circled/cirr_val",
        "data/cirr_val.json",
        lambda r: r[1].update(subset="cirr_train"),
        "its subset is 'cirr_train'",
    ),
    (
        "circled/cirr_val",
        "data/cirr_val.json",
        lambda r: r[1].update(num_turns=2),
        "num_turns is 2, but it has 3 turns",
    ),
    (
        "circled/cirr_val",
        "data/cirr_val.json",
        lambda r: r[1]["turns"].reverse(),
        r"out of order: \[3, 2, 1\]",
    ),
    (
        "circled/cirr_val",
        "data/cirr_val.json",
        lambda r: r[0].update(session_id="cirr_val_0001"),
        "occurs a second",
    ),
    (
        "circled/cirr_val",
        "data/cirr_val.json",
        lambda r: r[0].update(ground_truth_ids=[]),
        "'ground_truth_ids' must be",
    ),
    (
        "circled/cirr_val",
        "data/cirr_val.json",
        lambda r: r[0]["turns"][1].pop("turn"),
        "turn 2.: the field 'turn' is",
    ),
    (
        "circled/cirr_val",
        "data/cirr_val.json",
        lambda r: r[0]["turns"].__setitem__(0, 3),
        "turn 1 must be an object",
    ),
]


@pytest.mark.parametrize(
    ("benchmark_id", "file", "change", "words"), BROKEN, ids=[f"{b}-{w}" for b, _, _, w in BROKEN]
)
def test_a_broken_record_is_an_error_that_names_file_record_and_fix(
    benchmark_id: str, file: str, change: Change, words: str, tmp_path: Path
) -> None:
    root = made.write_for(tmp_path, benchmark_id)
    made.edit(root / file, change)
    with pytest.raises(RecordError, match=words) as error:
        load(benchmark_id, tmp_path)
    assert str(tmp_path) in str(error.value)
    assert "Fix: " in str(error.value)
    assert not list((tmp_path / "cache").rglob("meta.json"))


def test_a_circled_reference_outside_the_gallery_is_an_error(tmp_path: Path) -> None:
    root = made.write_circled(tmp_path, "cirr_val")
    made.write_source(tmp_path, "cirr_val")
    made.edit(
        root / "data/cirr_val.json", lambda rows: rows[1]["turns"][2].update(reference_image_id="dev-0")
    )
    with pytest.raises(RecordError, match="its reference of turn 3 'dev-0' is not in the gallery"):
        load("circled/cirr_val", tmp_path)


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
    (root / CAP).write_bytes(text)
    with pytest.raises(RecordError, match=words):
        load("cirr/val", tmp_path)


def test_a_file_without_records_is_an_error(tmp_path: Path) -> None:
    root = made.write_circled(tmp_path, "cirr_val")
    (root / "data/cirr_val.json").write_bytes(b"[]")
    with pytest.raises(RecordError, match=r"cirr_val\.json: it holds no record"):
        load("circled/cirr_val", tmp_path)


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
    benchmark = load("genecis/change_object", tmp_path)
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
        load("genecis/focus_object", tmp_path)
    assert fault in str(error.value)
