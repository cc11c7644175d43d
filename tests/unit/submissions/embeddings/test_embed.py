"""Embedding galleries: pictures that are missing, worker processes, what is reported, and bad input."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmark_world.embeddings import file_gallery, shapes_pictures
from benchmark_world.encoders import PlainEncoder
from PIL import Image
from says import says

from cir_datasets.errors import MissingImagesError, install_lines
from cir_metrics.errors import CallError, MissingExtraError
from submissions.embeddings.embed import Timing, embed_gallery, encode_shard
from submissions.embeddings.pictures import FilePictures
from submissions.embeddings.store import Embeddings, EmbeddingStore
from submissions.encoders.extras import needs_ray, needs_torch
from submissions.encoders.loading import load_encoder
from submissions.encoders.protocol import PreparingEncoder
from submissions.errors import EncoderError


def prepared(images: Sequence[Image.Image]) -> dict[str, Any]:
    return {"pixels": np.stack([np.asarray(image.resize((8, 8))) for image in images])}


class PreparingColours(PlainEncoder):
    """Half of its work can be done elsewhere."""

    prepare = staticmethod(prepared)

    def encode_prepared(self, made: Any) -> Any:
        return self.encode_images([Image.fromarray(np.asarray(each)) for each in made["pixels"]])


@pytest.fixture
def store(tmp_path: Path) -> EmbeddingStore:
    return EmbeddingStore(tmp_path / "store")


BROKEN = ("absent", "empty", "", "text", "cut")


def test_missing_pictures_are_listed_before_anything_is_encoded(
    store: EmbeddingStore, tmp_path: Path
) -> None:
    pictures = file_gallery(tmp_path / "images", broken=BROKEN)
    assert pictures.missing() == ["image00", "image01", "image03", "image04"]
    encoder = PlainEncoder()
    with pytest.raises(MissingImagesError) as caught:
        embed_gallery(encoder, pictures, store=store, workers=0)
    lines = str(caught.value).splitlines()
    assert lines[0] == "invented/val: 4 of 30 images are missing or cannot be read:"
    assert lines[1] == f"  image00: no file below {tmp_path / 'images'}"
    assert lines[2].startswith(
        f"  image01: {tmp_path / 'images' / 'image01.png'}: not a picture in BMP or GIF or"
    )
    assert [line.split(":")[0].strip() for line in lines[1:5]] == pictures.missing()
    assert lines[5].startswith("  Fix: get them from the publisher. cir run and cir embed can go on")
    assert len(lines) == 6
    assert encoder.batches == []
    assert store.list() == []


@pytest.mark.parametrize("skip_missing", [False, True])
def test_where_every_picture_is_missing_the_folder_is_doubted(
    skip_missing: bool, store: EmbeddingStore, tmp_path: Path
) -> None:
    pictures = file_gallery(tmp_path / "images", 3, broken=["absent", "empty", "garbled"])
    with pytest.raises(MissingImagesError) as caught:
        embed_gallery(PlainEncoder(), pictures, store=store, workers=0, skip_missing=skip_missing)
    lines = str(caught.value).splitlines()
    assert lines[0] == "invented/val: 3 of 3 images are missing or cannot be read:"
    says(lines[-1], "Fix: see that the folder of the images (--images)", "the publisher's layout")
    assert store.list() == []


def test_at_most_twenty_missing_pictures_are_named(store: EmbeddingStore, tmp_path: Path) -> None:
    pictures = file_gallery(tmp_path / "images", broken=["absent"] * 24)
    with pytest.raises(MissingImagesError) as caught:
        embed_gallery(PlainEncoder(), pictures, store=store, workers=0)
    lines = str(caught.value).splitlines()
    assert lines[0] == "invented/val: 24 of 30 images are missing or cannot be read:"
    assert lines[20].startswith("  image19:")
    assert lines[21] == "  ... and 4 more"


@pytest.mark.parametrize("workers", [0, 1])
def test_skipped_pictures_get_zeros_and_move_no_other_vector(
    workers: int, store: EmbeddingStore, tmp_path: Path
) -> None:
    whole = embed_gallery(PlainEncoder(), file_gallery(tmp_path / "whole"), store=store, workers=0)
    pictures = file_gallery(tmp_path / "broken", broken=(*BROKEN, "garbled", "miswritten"))
    made = embed_gallery(
        PlainEncoder(),
        pictures,
        store=store,
        skip_missing=True,
        batch_size=4,
        shard_size=7,
        workers=workers,
    )
    # What only decoding shows is found as well, later.
    assert pictures.missing() == [f"image{number:02d}" for number in (0, 1, 3, 4, 5)]
    assert made.missing == {*pictures.missing(), "image06"}
    assert made.vectors.shape == (30, 12)  # nobody leaves the gallery
    gone = [image in made.missing for image in made.ids]
    assert (made.vectors[gone] == 0).all()
    np.testing.assert_array_equal(made.vectors[np.logical_not(gone)], whole.vectors[np.logical_not(gone)])
    with pytest.raises(MissingImagesError, match="invented/val: 6 of 30 images are missing"):
        embed_gallery(PlainEncoder(), pictures, store=store, shard_size=7, workers=0)


def test_a_picture_that_only_decoding_shows_damaged_stops_the_run(
    store: EmbeddingStore, tmp_path: Path
) -> None:
    pictures = file_gallery(tmp_path / "images", broken=[""] * 8 + ["miswritten"])
    assert pictures.missing() == []
    encoder = PlainEncoder()
    with pytest.raises(
        MissingImagesError, match=r"image 'image08': .*image08\.png cannot be decoded: .* Fix:"
    ):
        embed_gallery(encoder, pictures, store=store, batch_size=5, shard_size=5, workers=0)
    # Mended, it is another gallery, and nothing old is used.
    other = file_gallery(tmp_path / "mended")
    assert not embed_gallery(encoder, other, store=store, batch_size=5, shard_size=5, workers=0).missing


def test_a_replaced_file_is_another_gallery(store: EmbeddingStore, tmp_path: Path) -> None:
    pictures = file_gallery(tmp_path / "images", 3)
    before = pictures.digest
    moved = file_gallery(tmp_path / "moved", 3)
    assert moved.digest == before  # where the folder lies is no matter
    Image.new("RGB", (9, 9)).save(tmp_path / "images" / "image01.png")
    again = FilePictures(pictures.name, pictures.ids, pictures.paths, pictures.root)
    assert again.digest != before


def test_a_file_that_changes_and_keeps_its_size_is_another_gallery(tmp_path: Path) -> None:
    for number, colour in enumerate(("red", "blue")):
        Image.new("RGB", (64, 64), colour).save(tmp_path / f"{number}.bmp")
    first, second = tmp_path / "0.bmp", tmp_path / "1.bmp"
    before = FilePictures("one", ("a",), (str(first),), str(tmp_path))
    digest = before.digest
    assert first.stat().st_size == second.stat().st_size > 12_288 - 1
    first.write_bytes(second.read_bytes())
    assert FilePictures(before.name, before.ids, before.paths, before.root).digest != digest
    # Between the parts that are read nothing is noticed: the page on retrieval says so.
    large = bytearray(100_000)
    first.write_bytes(large)
    digest = FilePictures(before.name, before.ids, before.paths, before.root).digest
    large[20_000] = 1
    first.write_bytes(large)
    assert FilePictures(before.name, before.ids, before.paths, before.root).digest == digest


def test_a_missing_picture_that_is_mended_is_encoded(store: EmbeddingStore, tmp_path: Path) -> None:
    """Also where the gallery's digest cannot show it; of others nothing is encoded again."""
    pictures = file_gallery(tmp_path / "images", broken=["", "garbled", "", "miswritten"])
    good = file_gallery(tmp_path / "good")
    digest = pictures.digest

    class Same(FilePictures):
        digest = property(lambda _: digest)

    def again(encoder: PlainEncoder, *, skip_missing: bool) -> Embeddings:
        shown = Same(pictures.name, pictures.ids, pictures.paths, pictures.root)
        return embed_gallery(encoder, shown, store=store, workers=0, shard_size=2, skip_missing=skip_missing)

    assert again(PlainEncoder(), skip_missing=True).missing == {"image01", "image03"}
    unchanged = PlainEncoder()
    assert again(unchanged, skip_missing=True).missing == {"image01", "image03"}
    assert unchanged.batches == []
    for number in (1, 3):
        path = tmp_path / "images" / f"image{number:02d}.png"
        path.write_bytes((tmp_path / "good" / path.name).read_bytes())
        encoder = PlainEncoder()
        made = again(encoder, skip_missing=number == 1)
        assert made.missing == ({"image03"} if number == 1 else set())
        assert encoder.batches == [2]
    whole = embed_gallery(PlainEncoder(), good, store=EmbeddingStore(tmp_path / "other"), workers=0)
    np.testing.assert_array_equal(made.vectors, whole.vectors)


def test_an_encoder_that_gives_no_vectors_is_named(store: EmbeddingStore) -> None:
    class Overflowing(PlainEncoder):
        def encode_images(self, images: Sequence[Image.Image]) -> Any:
            return super().encode_images(images) * np.nan

    class Black(PlainEncoder):
        def encode_images(self, images: Sequence[Image.Image]) -> Any:
            return super().encode_images(images) * 0

    with pytest.raises(EncoderError, match=r"^the encoder plain \(float32\) gave values that are not finite"):
        embed_gallery(Overflowing(), shapes_pictures(3), store=store, workers=0)
    with pytest.raises(EncoderError, match="gave a vector of length 0 for one"):  # zeros are for the missing
        embed_gallery(Black(), shapes_pictures(3), store=store, workers=0)


def test_a_store_is_given_as_itself_or_by_its_folder(tmp_path: Path) -> None:
    for where in (tmp_path / "store", str(tmp_path / "store"), EmbeddingStore(tmp_path / "store")):
        embed_gallery(PlainEncoder(), shapes_pictures(3), store=where, workers=0)
    assert len(EmbeddingStore(tmp_path / "store").list()) == 1
    with pytest.raises(
        CallError, match=r"^store=3; it is an EmbeddingStore, the path of a folder, or None\."
    ):
        embed_gallery(PlainEncoder(), shapes_pictures(3), store=3, workers=0)  # type: ignore[arg-type]


@pytest.mark.parametrize("make", [PlainEncoder, PreparingColours])
@pytest.mark.parametrize("roomy", [True, False], ids=["shared memory", "pipes"])
def test_worker_processes_change_nothing(
    make: type[PlainEncoder], roomy: bool, store: EmbeddingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch", reason="worker processes are those of its data loader")
    from submissions.embeddings import opening

    monkeypatch.setattr(opening, "_ROOMY_BYTES", 0 if roomy else 1 << 62)
    pictures, encoder = shapes_pictures(23), make()
    assert isinstance(encoder, PreparingEncoder) == (make is PreparingColours)
    timing = Timing()
    made = embed_gallery(
        encoder, pictures, store=store, workers=2, batch_size=3, shard_size=10, timing=timing
    )
    assert encoder.batches == [3, 3, 3, 1, 3, 3, 3, 1, 3]
    assert timing.images == 23
    assert 0 < timing.model < timing.total
    alone = make()
    parts = [
        encode_shard(alone, pictures, shard, batch_size=3)
        for shard in store.folder(encoder.identity, pictures, shard_size=10).parts()
    ]
    np.testing.assert_array_equal(made.vectors, np.concatenate(parts))


def test_without_torch_pictures_are_opened_in_the_main_process(
    store: EmbeddingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    encoder = PlainEncoder()
    made = embed_gallery(encoder, shapes_pictures(9), store=store, workers=2, batch_size=4)
    assert made.vectors.shape == (9, 12)
    assert encoder.batches == [4, 4, 1]


@pytest.mark.parametrize("absent", ["torch", "transformers"])
def test_what_an_encoder_needs_is_named(absent: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, absent, None)
    wanted = re.escape(f"an encoder needs {absent}. Fix: {install_lines('retrieval')}")
    with pytest.raises(MissingExtraError, match=wanted):
        load_encoder(tmp_path)


def test_what_other_engines_need_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, extra, ask in (("torch", "retrieval", needs_torch), ("ray", "distributed", needs_ray)):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(MissingExtraError) as caught:
            ask("this")
        assert str(caught.value) == f"this needs {module}. Fix: {install_lines(extra)}"


def test_an_error_of_the_encoder_comes_through_and_claims_end(store: EmbeddingStore) -> None:
    class Failing(PlainEncoder):
        def encode_images(self, images: Sequence[Image.Image]) -> Any:
            if sum(self.batches) >= 10:
                raise EncoderError("enough")
            return super().encode_images(images)

    with pytest.raises(EncoderError, match=r"^enough$"):
        embed_gallery(Failing(), shapes_pictures(20), store=store, workers=0, batch_size=5, shard_size=5)
    again = PlainEncoder()
    embed_gallery(again, shapes_pictures(20), store=store, workers=0, batch_size=5, shard_size=5)
    assert sum(again.batches) == 10


@pytest.mark.parametrize(("batch_size", "workers"), [(0, 0), (1, -1)])
def test_a_batch_size_or_number_of_workers_out_of_range_is_refused(
    batch_size: int, workers: int, store: EmbeddingStore
) -> None:
    with pytest.raises(CallError, match=rf"batch_size={batch_size}, workers={workers}; a batch has 1 image"):
        embed_gallery(PlainEncoder(), shapes_pictures(3), store=store, batch_size=batch_size, workers=workers)


def test_a_person_who_waits_sees_rate_and_remaining_time(
    store: EmbeddingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr("cir_datasets.common.progress.PATIENCE_SECONDS", 0.0)
    monkeypatch.setenv("COLUMNS", "150")
    monkeypatch.setenv("TERM", "xterm")
    embed_gallery(PlainEncoder(0.02), shapes_pictures(40), store=store, workers=0, batch_size=1)
    shown = screen.getvalue()
    assert "shapes/val: encoding images" in shown
    assert "/40" in shown
    assert "/s" in shown
    assert "left" in shown
    quiet = Terminal()
    monkeypatch.setattr("sys.stderr", quiet)
    embed_gallery(PlainEncoder(), shapes_pictures(39), store=store, workers=0, progress=False)
    assert quiet.getvalue() == ""


def test_a_folder_yields_its_pictures_in_order_and_nothing_else(tmp_path: Path) -> None:
    from submissions.embeddings.pictures import pictures_in

    file_gallery(tmp_path / "images" / "below", 3)
    (tmp_path / "images" / "notes.txt").write_text("no picture")
    found = pictures_in(tmp_path / "images")
    assert found.name == "images"
    assert list(found.ids) == ["below/image00.png", "below/image01.png", "below/image02.png"]
    assert found.open(1).size == (40, 25)
