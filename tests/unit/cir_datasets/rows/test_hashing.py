"""Manifests with hashes: what is measured, what is the same, what differs."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import datasets_pictures as pictures
import datasets_publishers as made
import forked
import pytest
from PIL import Image

import cir_datasets
from cir_datasets import registry
from cir_datasets.errors import HashingError, MissingImagesError, SourceError
from cir_datasets.images.hashes import facts_file, hash_file
from cir_datasets.images.picture import read_picture
from cir_metrics.errors import CallError

ROOT = Path(__file__).resolve().parents[4]


IDS = made.cirr_images("val")
VAL = registry.spec("cirr/val")

pytestmark = pytest.mark.filterwarnings("ignore::cir_datasets.errors.UnpinnedDataWarning")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CIR_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CIR_GITHUB_ENDPOINT", "http://127.0.0.1:1")
    made.write_cirr(tmp_path / "home", "val")
    return tmp_path / "home"


@pytest.fixture
def images(tmp_path: Path) -> Path:
    return pictures.write_nlvr2(tmp_path / "images", "val", IDS)


def hashed(roots: Any, **options: Any) -> Any:
    return cir_datasets.hash_images("cirr/val", roots, verification_mode="no_checks", **options)


def test_hashes_and_sizes_of_all_pictures_are_measured(images: Path) -> None:
    before = cir_datasets.load("cirr/val", verification_mode="no_checks")
    report = hashed(images)
    assert (report.read, report.sound, report.located.total) == (8, True, 8)
    rows = cir_datasets.hashed_manifest("cirr/val")
    assert [row["image_id"] for row in rows] == IDS
    for row in rows:
        path = images / row["relative_path"]
        with Image.open(path) as image:
            pixels = image.convert("RGB").tobytes()
        assert (row["width"], row["height"], row["num_bytes"]) == (6, 4, path.stat().st_size)
        assert row["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
        assert row["pixel_sha256"] == hashlib.sha256(pixels).hexdigest()
    after = cir_datasets.load("cirr/val", verification_mode="no_checks")
    assert (after.data_hash, after.gallery_hash) == (before.data_hash, before.gallery_hash)
    assert cir_datasets.image_manifest("cirr/val", verification_mode="no_checks")[0]["sha256"] is None


def test_a_second_run_reads_only_what_changed(images: Path) -> None:
    first = hashed(images)
    again = hashed(images)
    assert (again.read, again.file.read_bytes()) == (0, first.file.read_bytes())
    pictures.write_picture(images / f"val/{IDS[2]}.png", "another", size=(9, 9))
    changed = hashed(images)
    assert changed.read == 1
    assert cir_datasets.hashed_manifest("cirr/val")[2]["width"] == 9


def test_identical_files_and_identical_pictures_are_groups(images: Path) -> None:
    whole = (images / f"val/{IDS[0]}.png").read_bytes()
    for image_id in (IDS[3], IDS[5]):
        (images / f"val/{image_id}.png").write_bytes(whole)
    with Image.open(images / f"val/{IDS[1]}.png") as image:
        image.save(images / f"val/{IDS[6]}.png", compress_level=0)
        image.resize((4, 6)).save(images / f"val/{IDS[7]}.png")  # the same bytes of pixels, another shape
    report = hashed(images)
    assert report.byte_identical == [[IDS[0], IDS[3], IDS[5]]]
    assert report.pixel_identical == [[IDS[1], IDS[6]]]
    assert report.sound
    assert f"1 groups of identical files:\n    {IDS[0]}, {IDS[3]}, {IDS[5]}" in report.text()


def test_missing_images_are_refused_or_left_null(images: Path) -> None:
    (images / f"val/{IDS[4]}.png").unlink()
    with pytest.raises(MissingImagesError, match=r"7 of 8 images found .* 1 missing"):
        hashed(images)
    assert not hash_file(VAL).exists()
    report = hashed(images, allow_missing=True)
    assert report.located.missing == (IDS[4],)
    rows = cir_datasets.hashed_manifest("cirr/val")
    assert [row["sha256"] is None for row in rows] == [image_id == IDS[4] for image_id in IDS]


def test_damaged_pictures_keep_their_row_and_are_named(images: Path) -> None:
    (images / f"val/{IDS[1]}.png").write_bytes(b"")
    (images / f"val/{IDS[2]}.png").write_bytes(b"<html>not found</html>")
    report = hashed(images)
    assert dict(report.unreadable) == {
        IDS[1]: "the file is empty",
        IDS[2]: "not a picture in JPEG or PNG",
    }
    assert not report.sound
    assert "2 unreadable (get these files again):" in report.text()
    assert f"{IDS[1]}: {images / 'val' / IDS[1]}.png: the file is empty" in report.text()
    row = cir_datasets.hashed_manifest("cirr/val")[2]
    assert (row["num_bytes"], row["width"], row["pixel_sha256"]) == (22, None, None)


@pytest.mark.slow
def test_files_that_are_not_the_publishers_are_named(tmp_path: Path) -> None:
    from cir_datasets.shapes import picture, relative_path

    for number in range(3):
        image_id = f"val-{number:06d}"
        path = tmp_path / relative_path(image_id)
        path.parent.mkdir(exist_ok=True)
        picture(f"val-{number + (number == 2):06d}").save(path)
    report = cir_datasets.hash_images("shapes/val", tmp_path, allow_missing=True)
    assert dict(report.differing) == {"val-000002": ("pixel_sha256",)}


def test_benchmarks_over_the_same_pictures_share_what_was_read(home: Path, images: Path) -> None:
    assert hashed(images).read == 8
    made.write_circled(home, "cirr_val")
    report = cir_datasets.hash_images("circled/cirr_val", images, verification_mode="no_checks")
    assert (report.read, report.file) == (0, hash_file(registry.spec("circled/cirr_val")))


@pytest.mark.parametrize("workers", [1, 3])
def test_the_result_does_not_depend_on_the_workers(images: Path, tmp_path: Path, workers: int) -> None:
    out = tmp_path / f"{workers}.parquet"
    assert hashed(images, workers=workers, out=out).file == out
    rows = cir_datasets.hashed_manifest("cirr/val", file=out)
    assert [row["sha256"] for row in rows] == [
        hashlib.sha256((images / f"val/{image_id}.png").read_bytes()).hexdigest() for image_id in IDS
    ]
    with pytest.raises(CallError, match="workers=0; it is 1 or more"):
        hashed(images, workers=0, out=tmp_path / "new.parquet")


def test_a_manifest_that_is_not_there_damaged_or_anothers_is_said(images: Path, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"have not been hashed here\. Fix: cir datasets hash cirr/val"):
        cir_datasets.hashed_manifest("cirr/val")
    out = hashed(images).file
    with pytest.raises(HashingError, match=r"holds the images of cirr/val#1, not of cirr/train#1"):
        cir_datasets.hashed_manifest("cirr/train", file=out)
    out.write_bytes(b"PAR1 and then nothing")
    with pytest.raises(HashingError, match=r"cannot be read .* Fix: hash the images again"):
        cir_datasets.hashed_manifest("cirr/val")
    (tmp_path / "in the way").write_text("")
    with pytest.raises(HashingError, match=r"cannot be written: .* Fix: pass out="):
        hashed(images, out=tmp_path / "in the way" / "out.parquet")


def test_what_version_0_1_kept_is_taken_over_and_a_torn_line_costs_that_line_alone(images: Path) -> None:
    report = hashed(images)
    whole = report.file.read_bytes()
    lines = [
        json.dumps({"path": path, **asdict(read_picture(path))}) for path in report.located.paths.values()
    ]
    facts_file(VAL).unlink()
    journal = facts_file(VAL).with_suffix(".journal.jsonl")
    journal.write_text("\n".join(lines)[:-10])
    report = hashed(images)
    assert (report.read, report.file.read_bytes()) == (1, whole)
    assert hashed(images).read == 0
    assert not journal.exists()


def test_a_damaged_file_of_what_was_read_is_named(images: Path) -> None:
    facts_file(VAL).parent.mkdir(parents=True)
    facts_file(VAL).write_bytes(b"no database, and long enough to be looked at" * 100)
    with pytest.raises(HashingError, match=r"cirr\.sqlite: it is damaged\. Fix: remove it"):
        hashed(images)


def test_a_picture_too_large_to_decode_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = pictures.write_picture(tmp_path / "big.png", "big", size=(300, 300))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    problem = read_picture(path).problem
    assert problem is not None
    assert "90000 pixels" in problem


@pytest.mark.slow
def test_the_command_hashes_and_compares_pictures(images: Path, tmp_path: Path) -> None:
    (images / f"val/{IDS[1]}.png").write_bytes((images / f"val/{IDS[0]}.png").read_bytes())
    command = [sys.executable, "-W", "ignore", "-m", "leaderboard.cli", "datasets", "hash", "cirr/val"]
    command += ["--root", str(images), "--no-checks"]

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        return forked.run([*command, *more], cwd=ROOT, capture_output=True, text=True, check=False)

    done = run("--json", "--workers", "2")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["images"], found["read"], found["byte_identical"]) == (8, 8, [[IDS[0], IDS[1]]])
    assert found["file"] == str(tmp_path / "cache/hashes/cirr/val.parquet")
    done = run()
    assert done.returncode == 0
    assert "0 files read, 8 known from before" in done.stdout
    (images / f"val/{IDS[2]}.png").write_bytes(b"gone")
    assert run().returncode == 1
    (images / f"val/{IDS[2]}.png").unlink()
    done = run()
    assert done.returncode == 1
    assert "--allow-missing" in done.stderr
    assert run("--allow-missing").returncode == 0
