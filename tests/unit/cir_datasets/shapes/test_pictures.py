"""Pictures: drawn, hashed, listed and written."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cir_datasets.errors import DatasetError
from cir_datasets.shapes import (
    SIDE,
    Draws,
    Scene,
    Thing,
    load_pixels,
    manifest,
    picture,
    pixel_sha256,
    pixels,
    random_scene,
    relative_path,
    scene,
    split,
    write_pictures,
)
from cir_datasets.shapes.world import BACKGROUNDS, COLOURS, SHAPES, SIZES, TEXTURES, VIEWPOINTS
from cir_metrics.errors import CallError, UnknownNameError


def test_every_look_background_and_viewpoint_shows() -> None:
    """No two values of any attribute draw the same picture."""
    base = {"shape": "circle", "colour": "red", "size": "large", "texture": "striped"}
    for attribute, values in (("shape", SHAPES), ("colour", COLOURS), ("size", SIZES), ("texture", TEXTURES)):
        drawn = {
            pixel_sha256(pixels(Scene((Thing(**(base | {attribute: value}), cells=(4,)),), "sandy")))
            for value in values
        }
        assert len(drawn) == len(values), attribute
    thing = Thing(**base, cells=(4,))
    assert len({pixel_sha256(pixels(Scene((thing,), name))) for name in BACKGROUNDS}) == len(BACKGROUNDS)
    assert len({pixel_sha256(pixels(Scene((thing,), "sandy", view))) for view in VIEWPOINTS}) == len(
        VIEWPOINTS
    )


@pytest.mark.parametrize("viewpoint", VIEWPOINTS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_thing_is_seen_on_every_background(shape: str, size: str, viewpoint: str) -> None:
    """Drawing an object changes at least thirty pixels clearly, whatever its colour and what lies behind."""
    for background in BACKGROUNDS:
        for i, colour in enumerate(COLOURS):
            other = Thing("heart" if shape == "star" else "star", COLOURS[i - 1], "small", "plain", (0,))
            thing = Thing(shape, colour, size, "plain", (4,))
            without = pixels(Scene((other,), background, viewpoint, 5)).astype(int)
            with_it = pixels(Scene((other, thing), background, viewpoint, 5)).astype(int)
            clear = np.abs(with_it - without).max(axis=-1) > 60
            assert clear.sum() >= 30, (background, colour)


def test_objects_stand_in_their_cells() -> None:
    for cell in range(9):
        one = pixels(Scene((Thing("circle", "red", "large", "plain", (cell,)),), "starry")).astype(int)
        red = (one[..., 0] > 180) & (one[..., 1] < 80)
        rows, columns = np.nonzero(red)
        assert (int(rows.mean()) * 3 // SIDE) * 3 + int(columns.mean()) * 3 // SIDE == cell


def test_a_thing_cut_by_the_edge_is_drawn_in_part() -> None:
    close = pixels(Scene((Thing("square", "red", "large", "plain", (0,)),), "snowy", "close"))
    assert close.shape == (SIDE, SIDE, 3)
    assert close.dtype == np.uint8


def test_pictures_are_new_arrays() -> None:
    one = random_scene(Draws("fresh"))
    pixels(one)[:] = 0
    assert pixels(one).any()


def test_the_manifest_tells_the_pictures() -> None:
    val = split("val")
    rows = list(manifest("val"))
    assert [row["image_id"] for row in rows] == val.image_ids
    assert len({row["pixel_sha256"] for row in rows}) == len(rows)
    assert {(row["width"], row["height"], row["license"]) for row in rows} == {(SIDE, SIDE, "CC0-1.0")}
    assert {(row["sha256"], row["num_bytes"]) for row in rows} == {(None, None)}
    for row in rows[::500]:
        shown = picture(row["image_id"])
        assert (shown.mode, shown.size) == ("RGB", (SIDE, SIDE))
        assert pixel_sha256(np.asarray(shown)) == row["pixel_sha256"]
        assert row["relative_path"] == relative_path(row["image_id"])


def test_a_png_decodes_to_the_pixels_that_were_hashed() -> None:
    file = io.BytesIO()
    picture("val-000007").save(file, format="PNG")
    with Image.open(file) as decoded:
        assert pixel_sha256(np.asarray(decoded.convert("RGB"))) == pixel_sha256(pixels(scene("val-000007")))


def test_all_pixels_at_once_equal_the_pictures_one_by_one() -> None:
    ids, whole = load_pixels("multiturn_val")
    assert ids == split("val").image_ids
    assert whole.shape == (len(ids), SIDE, SIDE, 3)
    for i in (0, 99, len(ids) - 1):
        assert (whole[i] == pixels(scene(ids[i]))).all()


def test_shrunk_pixels_are_rounded_means() -> None:
    _, small = load_pixels("val", shrink=4)
    _, whole = load_pixels("val")
    means = whole[:50].reshape(50, 24, 4, 24, 4, 3).mean(axis=(2, 4))
    assert small.shape[1:] == (24, 24, 3)
    assert np.abs(small[:50] - means).max() <= 0.5


@pytest.mark.parametrize("shrink", [0, 5, -2])
def test_a_bad_shrink_names_the_value(shrink: int) -> None:
    with pytest.raises(CallError, match=rf"shrink={shrink}; it must divide 96"):
        load_pixels("val", shrink=shrink)


@pytest.mark.parametrize("image_id", ["val-999999", "val-12", "test-000001", "val/000001.png", ""])
def test_an_unknown_image_is_named(image_id: str) -> None:
    with pytest.raises(UnknownNameError, match=rf"no image '{image_id}'"):
        scene(image_id)


def test_an_unknown_configuration_and_split_are_named() -> None:
    with pytest.raises(UnknownNameError, match=r"no configuration 'test'.*val, multiturn_val, train"):
        load_pixels("test")
    with pytest.raises(UnknownNameError, match=r"no split 'multiturn_val'"):
        split("multiturn_val")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pictures of val in a folder of their own."""
    folder = tmp_path_factory.mktemp("images") / "shapes"
    assert write_pictures("val", folder) == len(split("val").scenes)
    return folder


@pytest.mark.slow
def test_pictures_are_written_as_the_manifest_says(written: Path) -> None:
    rows = list(manifest("multiturn_val"))
    files = sorted(path.relative_to(written).as_posix() for path in written.rglob("*") if path.is_file())
    assert files == sorted(row["relative_path"] for row in rows)
    for row in rows[::40]:
        with Image.open(written / row["relative_path"]) as image:
            assert (image.mode, image.size) == ("RGB", (row["width"], row["height"]))
            assert pixel_sha256(np.asarray(image)) == row["pixel_sha256"]


@pytest.mark.slow
def test_only_missing_damaged_and_wrong_files_are_written_anew(written: Path) -> None:
    paths = [written / relative_path(image_id) for image_id in split("val").image_ids[:6]]
    before = paths[5].stat().st_mtime_ns
    paths[0].unlink()
    paths[1].write_bytes(paths[1].read_bytes()[:200])
    paths[2].write_bytes(b"not a picture")
    paths[3].write_bytes(paths[4].read_bytes())
    assert write_pictures("multiturn_val", written) == 4
    assert paths[5].stat().st_mtime_ns == before
    assert write_pictures("val", written) == 0


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "val").write_text("in the way")
    with pytest.raises(DatasetError, match=r"val: cannot be written: .* Fix: use another folder"):
        write_pictures("val", tmp_path)
