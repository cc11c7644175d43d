"""Image ids joined to picture files: layouts, what is missing, lazy columns, streams, the coverage report."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import datasets_pictures as pictures
import datasets_publishers as made
import pytest
from cir_here import cir

import cir_datasets
from cir_datasets import attach_images, registry
from cir_datasets.errors import MissingImagesError, MissingImagesWarning, RecordError, SourceError
from cir_datasets.images.locate import locate
from cir_metrics.errors import CallError

ROOT = Path(__file__).resolve().parents[4]


pytestmark = pytest.mark.filterwarnings("ignore::cir_datasets.errors.UnpinnedDataWarning")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of publishers' folders, found by `CIR_DATA_HOME`; caches of this test alone; no network."""
    import datasets

    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CIR_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CIR_VERIFICATION_MODE", "no_checks")  # of streams: the counts are not the card's
    monkeypatch.delenv("CIR_IMAGES", raising=False)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("CIR_GITHUB_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "hf/datasets"))
    return tmp_path / "home"


@pytest.fixture
def images(tmp_path: Path) -> Path:
    return tmp_path / "images"


def load(name: str, config: str, **options: Any) -> Any:
    import datasets

    return datasets.load_dataset(name, config, **{"verification_mode": "no_checks", **options})


def attach(ds: Any, roots: Any = None, **options: Any) -> Any:
    return attach_images(ds, roots, verification_mode="no_checks", **options)


def colour(picture: Any) -> tuple[int, ...]:
    """The colour in the middle, coarsely: JPEG moves it a little."""
    found = picture.convert("RGB").getpixel((picture.width // 2, picture.height // 2))
    return tuple(value // 32 for value in found)


def expected(image_id: str) -> tuple[int, ...]:
    return tuple(value // 32 for value in pictures.colour_of(image_id))


@pytest.mark.parametrize("split", ["train", "val"])
def test_cirr_images_are_found_in_the_layout_of_nlvr2(home: Path, images: Path, split: str) -> None:
    made.write_cirr(home, split)
    pictures.write_nlvr2(images / "nlvr2", split, made.cirr_images(split))
    before = load("cirr", split)
    (name,) = before
    for root in (images / "nlvr2", images):  # the folder, or its parent
        after = attach(before, root)[name]
        assert after.remove_columns(["reference_image", "target_image"]).to_list() == before[name].to_list()
        for row in after:
            assert colour(row["reference_image"]) == expected(row["reference_image_id"])
            assert colour(row["target_image"]) == expected(row["target_image_id"])


def test_images_are_found_below_CIR_IMAGES(home: Path, images: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made.write_cirr(home, "val")
    ds = load("cirr", "val", split="validation")
    with pytest.raises(SourceError, match=r"cirr/val: where are its images\? Fix: .*it would hold nlvr2/"):
        attach(ds)
    monkeypatch.setenv("CIR_IMAGES", str(images))
    with pytest.raises(SourceError, match=r"nlvr2: no such folder"):
        attach(ds)
    pictures.write_nlvr2(images / "nlvr2", "val", made.cirr_images("val"))
    assert attach(ds)[0]["reference_image"].size == (6, 4)


def test_fashioniq_images_are_found_in_flat_folders_with_either_suffix(home: Path, images: Path) -> None:
    made.write_fashioniq(home, "dress", "val")
    ids = made.fashioniq_images("dress", "val")
    pictures.write_flat(images, ids[:2], ".png")
    pictures.write_flat(images / "more/images", ids[2:], ".jpg")
    rows = attach(load("fashioniq", "dress_val", split="validation"), [images, images / "more"])
    for row in rows:
        assert colour(row["reference_image"]) == expected(row["reference_image_id"])
        assert colour(row["target_image"]) == expected(row["target_image_id"])


@pytest.mark.parametrize("gallery", [True, False], ids=["with-gallery-list", "without"])
def test_circo_images_are_found_in_the_layout_of_coco(home: Path, images: Path, gallery: bool) -> None:
    made.write_circo(home, "val", gallery=gallery)
    pictures.write_coco(images, made.CIRCO_IMAGES)
    for root in (images, images / "unlabeled2017"):
        row = attach(load("circo", "val", split="validation"), root)[0]
        assert colour(row["reference_image"]) == expected("000000123456")


def test_withheld_targets_are_null(home: Path, images: Path) -> None:
    made.write_cirr(home, "test1")
    pictures.write_nlvr2(images, "test1", made.cirr_images("test1"))
    ds = attach(load("cirr", "test1", split="test"), images)
    assert [row["target_image"] for row in ds] == [None] * 3
    assert all(row["reference_image"] is not None for row in ds)


def test_sessions_get_an_image_a_turn_from_the_source_gallery(home: Path, images: Path) -> None:
    made.write_circled(home, "cirr_val")
    made.write_cirr(home, "val")
    pictures.write_nlvr2(images, "val", made.cirr_images("val"))
    for row in attach(load("circled", "cirr_val", split="validation"), images):
        turns = [turn["reference_image_id"] for turn in row["turns"]]
        assert [colour(picture) for picture in row["reference_images"]] == [expected(one) for one in turns]
        assert [colour(one) for one in row["ground_truth_images"]] == [
            expected(one) for one in row["ground_truth_ids"]
        ]


def test_manifest_and_rows_get_their_images_streamed_or_not(home: Path, images: Path) -> None:
    made.write_cirr(home, "val")
    ids = made.cirr_images("val")
    pictures.write_nlvr2(images, "val", ids)
    for streaming in (False, True):
        manifest = attach(load("cirr", "val_images", split="validation", streaming=streaming), images)
        assert [colour(row["image"]) for row in manifest] == [expected(one) for one in ids]
        rows = attach(load("cirr", "val", streaming=streaming), images)["validation"]
        assert [colour(row["target_image"]) for row in rows] == [expected(one) for one in ids[1:4]]
        assert rows.features["captions"] == load("cirr", "val", split="validation").features["captions"]


def test_sessions_stream_too_and_to_workers(home: Path, images: Path) -> None:
    data = pytest.importorskip("torch.utils.data")
    made.write_circled(home, "cirr_val")
    made.write_cirr(home, "val")
    pictures.write_nlvr2(images, "val", made.cirr_images("val"))
    stream = attach(load("circled", "cirr_val", split="validation", streaming=True), images)
    assert [[one.size for one in row["reference_images"]] for row in stream] == [[(6, 4)] * 2, [(6, 4)] * 3]
    loader = data.DataLoader(stream, batch_size=None, num_workers=1)
    assert [len(row["reference_images"]) for row in loader] == [2, 3]


def test_pictures_are_decoded_only_when_they_are_read(home: Path, images: Path) -> None:
    import datasets

    made.write_cirr(home, "val")
    pictures.write_nlvr2(images, "val", made.cirr_images("val"))
    broken = images / "val" / f"{made.cirr_images('val')[1]}.png"
    content = bytearray(broken.read_bytes())
    content[content.index(b"IDAT") + 6] ^= 0xFF  # header and end stay whole
    broken.write_bytes(content)
    ds = attach(load("cirr", "val", split="validation"), images)
    assert ds["query_id"][:] == ["900", "901", "902"]
    assert ds["reference_image"][0].size == (6, 4)
    with pytest.raises(OSError, match="broken"):
        ds[0]["target_image"]
    as_paths = ds.cast_column("target_image", datasets.Image(decode=False))
    assert as_paths[0]["target_image"] == {"bytes": None, "path": str(broken)}


def test_missing_images_are_counted_and_named_with_the_paths_tried(home: Path, images: Path) -> None:
    made.write_cirr(home, "val")
    ids = made.cirr_images("val")
    pictures.write_nlvr2(images, "val", ids[:3])
    ds = load("cirr", "val", split="validation")
    with pytest.raises(MissingImagesError) as caught:
        attach(ds, images)
    message = str(caught.value)
    assert f"cirr/val: 3 of 4 images found below {images}, 1 missing." in message
    assert f"{ids[3]}: tried {images}/val/{ids[3]}.png, {images}/images/val/{ids[3]}.png" in message
    assert "Fix: " in message
    assert "allow_missing=True" in message
    assert "NLVR2" in message


def test_missing_images_can_be_null_and_no_row_is_dropped(home: Path, images: Path) -> None:
    made.write_cirr(home, "val")
    ids = made.cirr_images("val")
    pictures.write_nlvr2(images, "val", ids[:3])
    for streaming in (False, True):
        ds = load("cirr", "val", split="validation", streaming=streaming)
        with pytest.warns(MissingImagesWarning, match=r"3 of 4 images found .* 1 missing"):
            rows = list(attach(ds, images, allow_missing=True))
        assert [row["query_id"] for row in rows] == ["900", "901", "902"]
        assert [row["target_image"] is None for row in rows] == [False, False, True]


@pytest.mark.parametrize("suffix", [".png", ".jpg"])
def test_damaged_files_are_refused_when_attaching(home: Path, images: Path, suffix: str) -> None:
    made.write_fashioniq(home, "dress", "val")
    ids = made.fashioniq_images("dress", "val")
    files = {image_id: images / f"{image_id}{suffix}" for image_id in ids}
    for image_id, path in files.items():
        pictures.write_picture(path, image_id, size=(90, 90))
    ds = load("fashioniq", "dress_val_images", split="validation")
    assert [row["image"].size for row in attach(ds, images)] == [(90, 90)] * len(ids)
    empty, foreign, cut, trailing, *_ = files.items()
    empty[1].write_bytes(b"")
    foreign[1].write_bytes(b"<html>not found</html>")
    cut[1].write_bytes(cut[1].read_bytes()[:-40])
    trailing[1].write_bytes(trailing[1].read_bytes() + b"put there by a camera")
    with pytest.raises(MissingImagesError) as caught:
        attach(ds, images)
    message = str(caught.value)
    assert f"fashioniq/dress_val: 3 of {len(ids)} image files are damaged." in message
    assert f"\n  {empty[0]}: {empty[1]}: the file is empty" in message
    assert f"\n  {foreign[0]}: {foreign[1]}: not a picture in " in message
    assert f"\n  {cut[0]}: {cut[1]}: " in message
    assert str(trailing[1]) not in message
    assert "Fix: get these files again; or pass allow_missing=True" in message
    files[ids[-1]].unlink()
    for streaming in (False, True):
        ds = load("fashioniq", "dress_val_images", split="validation", streaming=streaming)
        with pytest.warns(MissingImagesWarning, match=rf"(?s)1 missing.*3 of {len(ids) - 1} image files are"):
            rows = list(attach(ds, images, allow_missing=True))
        nulls = {row["image_id"] for row in rows if row["image"] is None}
        assert nulls == {empty[0], foreign[0], cut[0], ids[-1]}


def test_five_damaged_files_are_named_and_all_are_counted(home: Path, images: Path) -> None:
    made.write_cirr(home, "val")
    ids = made.cirr_images("val")
    pictures.write_nlvr2(images, "val", ids)
    for image_id in ids[:7]:
        (images / f"val/{image_id}.png").write_bytes(b"")
    with pytest.raises(MissingImagesError, match=r"7 of 8 image files are damaged") as caught:
        attach(load("cirr", "val_images", split="validation"), images)
    assert str(caught.value).count("the file is empty") == 5


def test_only_five_examples_are_named(home: Path, images: Path) -> None:
    made.write_cirr(home, "val")
    images.mkdir()
    with pytest.raises(MissingImagesError, match=r"0 of 8 images found") as caught:
        attach(load("cirr", "val_images", split="validation"), images)
    assert str(caught.value).count(": tried ") == 5
    assert "No file is there." in str(caught.value)


def test_images_of_another_split_are_recognised(home: Path, images: Path) -> None:
    for split in ("train", "val"):
        made.write_cirr(home, split)
    pictures.write_nlvr2(images, "train", made.cirr_images("train"))
    with pytest.raises(
        MissingImagesError,
        match=r"cirr/val: 0 of 8 images found .*; this looks like the images of cirr/train",
    ):
        attach(load("cirr", "val_images", split="validation"), images)


def test_other_files_are_named_where_no_split_fits(home: Path, images: Path) -> None:
    made.write_cirr(home, "val")
    pictures.write_flat(images, ["holiday"])
    with pytest.raises(MissingImagesError, match=r"There are files such as holiday\.png\."):
        attach(load("cirr", "val", split="validation"), images)


def test_another_root_replaces_the_columns(home: Path, images: Path, tmp_path: Path) -> None:
    made.write_cirr(home, "val")
    pictures.write_nlvr2(images, "val", made.cirr_images("val"))
    shutil.copytree(images, tmp_path / "moved")
    import datasets

    ds = attach(attach(load("cirr", "val", split="validation"), images), tmp_path / "moved")
    path = ds.cast_column("reference_image", datasets.Image(decode=False))[0]["reference_image"]["path"]
    assert path.startswith(str(tmp_path / "moved"))


def test_shuffled_and_filtered_rows_keep_their_own_images(home: Path, images: Path) -> None:
    made.write_cirr(home, "val")
    pictures.write_nlvr2(images, "val", made.cirr_images("val"))
    ds = load("cirr", "val", split="validation").select([2, 0])
    for row in attach(ds, images):
        assert colour(row["reference_image"]) == expected(row["reference_image_id"])


def test_a_file_of_ones_own_needs_the_benchmark_and_may_bring_a_manifest(home: Path, images: Path) -> None:
    import datasets

    ds = datasets.Dataset.from_list([{"query_id": "1", "reference_image_id": "a"}])
    pictures.write_picture(images / "deep/a.png", "a")
    with pytest.raises(CallError, match=r"which benchmark is this dataset of\?.*Fix: pass benchmark="):
        attach(ds, images)
    with pytest.raises(SourceError, match=r"Or pass manifest=, the rows of cirr/val_images"):
        attach(ds, images, benchmark="cirr/val")
    manifest = [{"image_id": "a", "relative_path": "deep/a.png"}]
    row = attach(ds, images, benchmark="cirr/val", manifest=manifest)[0]
    assert colour(row["reference_image"]) == expected("a")
    assert "target_image" not in row


@pytest.mark.parametrize(
    ("ds", "words"),
    [([], "not list"), ({"train": 1}, "not int")],
)
def test_what_is_not_a_dataset_is_refused(ds: Any, words: str) -> None:
    with pytest.raises(CallError, match=rf"takes what load_dataset returns, {words}"):
        attach(ds)


def test_columns_without_ids_are_refused(home: Path) -> None:
    import datasets

    made.write_cirr(home, "val")
    ds = load("cirr", "val", split="validation").select_columns(["query_id"])
    with pytest.raises(CallError, match=r"no column of image ids among \['query_id'\]"):
        attach(ds, home)
    stream = datasets.IterableDataset.from_generator(lambda: iter([{"image_id": "a"}]))
    with pytest.raises(CallError, match=r"columns of this stream are not known"):
        attach(stream, home, benchmark="cirr/val")


@pytest.mark.parametrize("path", ["../secret.png", "/etc/passwd", "a/../../b.png"])
def test_a_path_out_of_the_folder_is_refused(images: Path, path: str) -> None:
    images.mkdir()
    with pytest.raises(RecordError, match=r"leads out of the image folder"):
        locate(registry.spec("cirr/val"), [("a", path)], images)


def test_links_to_nothing_count_as_missing(images: Path) -> None:
    images.mkdir()
    (images / "a.png").symlink_to(images / "gone.png")
    located = locate(registry.spec("cirr/val"), [("a", None)], images)
    assert located.missing == ("a",)


def test_each_turn_of_shapes_gets_its_own_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np

    from cir_datasets.shapes import picture, relative_path

    monkeypatch.setenv("CIR_CACHE_HOME", str(Path(os.environ["CIR_TEST_HOME"]) / "cache"))
    rows = load("shapes", "multiturn_val", split="validation").select(range(5))
    named = {turn["reference_image_id"] for row in rows for turn in row["turns"]}
    named |= {image_id for row in rows for image_id in row["ground_truth_ids"]}
    for image_id in named:
        path = tmp_path / relative_path(image_id)
        path.parent.mkdir(exist_ok=True)
        picture(image_id).save(path)
    for row in attach_images(rows, tmp_path):
        shown = [np.asarray(one) for one in row["reference_images"]]
        wanted = [np.asarray(picture(turn["reference_image_id"])) for turn in row["turns"]]
        assert all(np.array_equal(one, other) for one, other in zip(shown, wanted, strict=True))


def test_image_paths_name_every_file_or_say_what_is_missing(home: Path, images: Path) -> None:
    made.write_cirr(home, "val")
    ids = made.cirr_images("val")
    pictures.write_nlvr2(images, "val", ids[:7])
    options: dict[str, Any] = {"verification_mode": "no_checks"}
    with pytest.raises(MissingImagesError, match=r"7 of 8 images found"):
        cir_datasets.image_paths("cirr/val", images, **options)
    found = cir_datasets.image_paths("cirr/val", images, allow_missing=True, **options)
    assert found == {image_id: images / "val" / f"{image_id}.png" for image_id in ids[:7]}


def test_coverage_tells_missing_empty_and_damaged_apart(home: Path, images: Path) -> None:
    made.write_cirr(home, "val")
    ids = made.cirr_images("val")
    pictures.write_nlvr2(images, "val", ids[1:])
    (images / f"val/{ids[1]}.png").write_bytes(b"")
    whole = pictures.write_picture(images / f"val/{ids[2]}.png", ids[2], size=(90, 90)).read_bytes()
    (images / f"val/{ids[2]}.png").write_bytes(whole[: len(whole) // 2])
    options: dict[str, Any] = {"verification_mode": "no_checks"}
    quick = cir_datasets.image_coverage("cirr/val", images, **options)
    assert quick.located.missing == (ids[0],)
    assert dict(quick.unusable) == {ids[1]: "the file is empty"}
    thorough = cir_datasets.image_coverage("cirr/val", images, open_files=True, workers=2, **options)
    assert list(thorough.unusable) == [ids[1], ids[2]]
    assert "truncated" in thorough.unusable[ids[2]].lower()
    assert "2 unreadable files" in thorough.text()


def test_coverage_without_a_gallery_list_looks_for_what_the_rows_name(home: Path, images: Path) -> None:
    made.write_circo(home, "val", gallery=False)
    pictures.write_coco(images, [123456, 234567, 77, 9])
    coverage = cir_datasets.image_coverage("circo/val", images, verification_mode="no_checks")
    assert (coverage.listed_by, coverage.located.total, coverage.complete) == ("rows", 4, True)
    assert "gallery's list is not available" in coverage.text()
    made.write_circled(home, "cirr_val")
    pictures.write_flat(images, made.circled_ids("cirr_val"))
    sessions = cir_datasets.image_coverage("circled/cirr_val", images, verification_mode="no_checks")
    assert (sessions.listed_by, sessions.located.total, sessions.complete) == ("rows", 3, True)


def test_the_command_exits_with_1_where_images_are_missing(home: Path, images: Path) -> None:
    made.write_cirr(home, "val")
    ids = made.cirr_images("val")
    pictures.write_nlvr2(images, "val", ids[1:])
    call = ("datasets", "images", "cirr/val", "--root", str(images), "--no-checks")
    done = cir(*call, "--json", code=1)
    found = json.loads(done.stdout)
    assert (found["images"], found["found"], found["missing"], found["complete"]) == (8, 7, 1, False)
    assert found["missing_examples"] == [
        {
            "image_id": ids[0],
            "tried": [
                f"{images}/val/{ids[0]}.png",
                f"{images}/images/val/{ids[0]}.png",
                f"{images}/{ids[0]}.png",
            ],
        }
    ]
    pictures.write_nlvr2(images, "val", ids[:1])
    done = cir(*call, "--open")
    assert (done.returncode, done.stdout) == (0, f"cirr/val: 8 of 8 images found below {images}.\n")
    done = cir("datasets", "images", "cirr/val", "--root", str(images / "nowhere"), "--no-checks", code=2)
    assert "no such folder" in done.stderr
