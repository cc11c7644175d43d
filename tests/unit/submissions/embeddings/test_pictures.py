"""Pictures of a benchmark: from the publisher's layout, drawn, or all of a folder."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets_pictures import colour_of, stand_in_for_ghostscript, write_eps, write_nlvr2
from datasets_publishers import cirr_images, write_cirr
from PIL import Image

import cir_datasets
from cir_datasets.errors import MissingImagesError, SourceError
from cir_datasets.registry import spec
from cir_datasets.rows.benchmark import Benchmark
from cir_datasets.shapes import pixels, scene
from submissions.embeddings.pictures import FilePictures, ShapesPictures, pictures_in, pictures_of

pytestmark = pytest.mark.filterwarnings("ignore::cir_datasets.errors.UnpinnedDataWarning")


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A made-up CIRR, and no other data."""
    monkeypatch.setenv("CIR_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CIR_GITHUB_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.delenv("CIR_IMAGES", raising=False)
    write_cirr(tmp_path / "home", "val")
    return tmp_path / "home"


@pytest.fixture
def cirr(home: Path) -> Benchmark:
    return cir_datasets.load("cirr/val", verification_mode="no_checks")


IDS = cirr_images("val")


def test_paths_are_those_of_the_list_that_the_benchmark_was_read_with(
    cirr: Benchmark, home: Path, tmp_path: Path
) -> None:
    write_nlvr2(tmp_path / "nlvr2", "val", IDS)
    elsewhere = {image: f"./elsewhere/{image}.png" for image in IDS}
    write_cirr(tmp_path / "other", "val")
    (tmp_path / "other/cirr/image_splits/split.rc2.val.json").write_text(json.dumps(elsewhere))
    other = cir_datasets.load("cirr/val", data_dir=tmp_path / "other", verification_mode="no_checks")
    assert pictures_of(cirr, images=tmp_path / "nlvr2").missing() == []
    assert pictures_of(other, images=tmp_path / "nlvr2").missing() == list(other.gallery or ())


def test_a_publishers_layout_is_found_below_a_folder_or_its_parent(
    cirr: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_nlvr2(tmp_path / "nlvr2", "val", IDS)
    shown = pictures_of(cirr, images=tmp_path / "nlvr2")
    assert isinstance(shown, FilePictures)
    assert (shown.name, list(shown.ids)) == ("cirr/val", list(cirr.gallery or ()))
    assert set(shown.ids) == set(IDS)
    assert shown.missing() == []
    assert shown.open(4).getpixel((2, 2)) == colour_of(shown.ids[4])
    monkeypatch.setenv("CIR_IMAGES", str(tmp_path))
    assert pictures_of(cirr).digest == shown.digest
    some = pictures_of(cirr, ids=[IDS[7], IDS[2]])
    assert some.open(0).getpixel((2, 2)) == colour_of(IDS[7])
    assert pickle.loads(pickle.dumps(some)).digest == some.digest != shown.digest


def test_files_that_are_absent_are_missing_in_the_gallerys_order(cirr: Benchmark, tmp_path: Path) -> None:
    write_nlvr2(tmp_path / "some", "val", [IDS[number] for number in (0, 1, 4, 5, 6)])
    shown = pictures_of(cirr, images=tmp_path / "some")
    assert shown.missing() == [image for image in shown.ids if image in (IDS[2], IDS[3], IDS[7])]
    with pytest.raises(MissingImagesError, match=rf"^cirr/val: image '{IDS[3]}' has no file\. Fix: get the"):
        shown.open(shown.ids.index(IDS[3]))


def test_a_folder_that_is_not_there_and_none_at_all(cirr: Benchmark, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="CIR_IMAGES"):
        pictures_of(cirr)
    with pytest.raises(SourceError, match="absent"):
        pictures_of(cirr, images=tmp_path / "absent")
    without = Benchmark.from_rows(spec("cirr/val"), cirr.rows(), None)
    with pytest.raises(SourceError, match=r"^cirr/val: the list of its gallery is not available\. Fix:"):
        pictures_of(without, images=tmp_path)


def test_shapes_are_drawn_where_no_folder_is_given() -> None:
    shown = pictures_of(cir_datasets.load("shapes/val"))
    assert isinstance(shown, ShapesPictures)
    assert len(shown.ids) == 3940
    assert (np.asarray(shown.open(17)) == pixels(scene(shown.ids[17]))).all()
    assert shown.missing() == []
    assert shown.digest == pictures_of(cir_datasets.load("shapes/multiturn_val")).digest


@pytest.mark.parametrize(
    ("mode", "colour", "wanted"),
    [
        ("L", 90, (90, 90, 90)),
        ("RGBA", (10, 20, 30, 0), (10, 20, 30)),
        ("P", 5, None),
        ("1", 1, (255, 255, 255)),
        ("CMYK", (0, 0, 0, 0), (255, 255, 255)),
    ],
)
def test_every_mode_comes_as_rgb(
    mode: str, colour: int | tuple[int, ...], wanted: tuple[int, ...] | None, tmp_path: Path
) -> None:
    path = tmp_path / ("one.jpg" if mode == "CMYK" else "one.png")
    Image.new(mode, (8, 8), colour).save(path)
    shown = pictures_in(tmp_path)
    made = shown.open(0)
    assert made.mode == "RGB"
    assert wanted is None or made.getpixel((3, 3)) == wanted
    assert shown.missing() == []


@pytest.mark.parametrize(("value", "grey"), [(0, 0), (255, 0), (30_000, 117), (65_535, 255)])
@pytest.mark.parametrize("suffix", [".png", ".tif"])
def test_of_grey_values_of_16_bits_the_upper_8_are_taken(
    value: int, grey: int, suffix: str, tmp_path: Path
) -> None:
    path = tmp_path / f"one{suffix}"
    Image.fromarray(np.full((8, 8), value, dtype=np.uint16)).save(path)
    shown = FilePictures("one", ("a",), (str(path),), str(tmp_path))
    assert shown.open(0).getpixel((3, 3)) == (grey, grey, grey)
    assert shown.missing() == []


def test_pictures_are_not_turned_as_exif_says(tmp_path: Path) -> None:
    """The page on retrieval says so; the publishers' programs do the same."""
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (8, 4)).save(tmp_path / "one.jpg", exif=exif)
    assert pictures_in(tmp_path).open(0).size == (8, 4)


@pytest.mark.parametrize("at", [0.02, 0.5, 0.98])
def test_a_png_that_is_damaged_anywhere_is_missing(at: float, tmp_path: Path) -> None:
    noise = np.random.default_rng(1).integers(0, 255, (200, 200, 3), dtype=np.uint8)
    path = tmp_path / "one.png"
    Image.fromarray(noise).save(path)
    whole = bytearray(path.read_bytes())
    whole[int(len(whole) * at)] ^= 1
    path.write_bytes(whole)
    assert pictures_in(tmp_path).missing() == ["one.png"]
    assert "bad header checksum in b'IDAT'" in pictures_in(tmp_path).why_missing("one.png")


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".webp", ".gif", ".bmp"])
def test_a_file_that_is_cut_off_is_missing_in_every_format(suffix: str, tmp_path: Path) -> None:
    noise = np.random.default_rng(1).integers(0, 255, (40, 40, 3), dtype=np.uint8)
    path = tmp_path / f"one{suffix}"
    Image.fromarray(noise).save(path)
    assert pictures_in(tmp_path).missing() == []
    path.write_bytes(path.read_bytes()[:-200])
    assert pictures_in(tmp_path).missing() == [path.name]
    assert pictures_in(tmp_path).why_missing(path.name).startswith(f"{path}: ")


def test_a_folder_without_pictures_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"no picture in it\. Fix: pass a folder with pictures"):
        pictures_in(tmp_path)
    with pytest.raises(SourceError, match="absent: no such folder"):
        pictures_in(tmp_path / "absent")


@pytest.fixture
def ghostscript(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a stand-in for Ghostscript leaves behind when Pillow starts it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    monkeypatch.setattr("PIL.EpsImagePlugin.gs_binary", None)
    return stand_in_for_ghostscript(folder)


def test_a_picture_is_opened_in_the_formats_of_the_card_alone(
    cirr: Benchmark, tmp_path: Path, ghostscript: Path
) -> None:
    folder = write_nlvr2(tmp_path / "nlvr2", "val", IDS)
    for image, kind in ((IDS[0], "EPS"), (IDS[1], "GIF"), (IDS[2], "JPEG")):
        Image.new("RGB", (6, 4)).save(folder / f"val/{image}.png", kind)
    shown = pictures_of(cirr, images=folder)
    assert isinstance(shown, FilePictures)
    assert shown.missing() == [image for image in shown.ids if image in IDS[:2]]
    assert shown.why_missing(IDS[0]).endswith(f"{IDS[0]}.png: not a picture in JPEG or PNG")
    assert shown.why_missing(IDS[1]).endswith(f"{IDS[1]}.png: not a picture in JPEG or PNG, but in GIF")
    with pytest.raises(MissingImagesError, match="cannot be decoded: not a picture in JPEG or PNG"):
        shown.open(shown.ids.index(IDS[0]))
    options: dict[str, Any] = {"verification_mode": "no_checks", "allow_missing": True}
    report = cir_datasets.hash_images("cirr/val", folder, **options)
    assert set(report.unreadable) == set(IDS[:2])
    coverage = cir_datasets.image_coverage(
        "cirr/val", folder, open_files=True, verification_mode="no_checks", workers=1
    )
    assert set(coverage.unusable) == set(IDS[:2])
    assert not ghostscript.exists()


def test_a_folder_of_ones_own_is_opened_without_other_programs_too(tmp_path: Path, ghostscript: Path) -> None:
    write_eps(tmp_path / "own/one.png")
    shown = pictures_in(tmp_path / "own")
    assert shown.missing() == ["one.png"]
    with pytest.raises(MissingImagesError, match="not a picture in BMP or GIF or JPEG or PNG or TIFF or"):
        shown.open(0)
    assert not ghostscript.exists()


def test_a_card_names_only_formats_that_pillow_decodes_itself() -> None:
    from cir_datasets.registry.schema import Card

    described = spec("cirr/val").card.model_dump()
    with pytest.raises(
        ValueError, match=r"image_formats[\s\S]*'BMP', 'GIF', 'JPEG', 'PNG', 'TIFF' or 'WEBP'"
    ):
        Card.model_validate({**described, "image_formats": ["PNG", "EPS"]})
