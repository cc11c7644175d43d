"""The pictures of a gallery by place: from a user's folder, or, of shapes, drawn when they are asked for."""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from cir_datasets.common.paths import DECODING_ERRORS, PICTURE_FORMATS, PictureFormat, open_picture, regular
from cir_datasets.errors import MissingImagesError, SourceError

if TYPE_CHECKING:
    from PIL.Image import Image

    from cir_datasets.images.locate import Located
    from cir_datasets.rows.benchmark import Benchmark

_DRAWN = "drawn"
_LOOKED_AT = 16
_TAIL_BYTES = 64
_SAMPLE_BYTES = 4096
_READERS = 16
_ENDS = {"JPEG": b"\xff\xd9", "MPO": b"\xff\xd9", "PNG": b"IEND", "GIF": b"\x3b"}
"""What a whole file of a format ends with."""


class Pictures(Protocol):
    """Images by id and place. Can be pickled: other processes open pictures too."""

    @property
    def name(self) -> str:
        """Whose pictures they are: a benchmark's id, or what a person calls them."""

    @property
    def ids(self) -> Sequence[str]:
        """Image ids, in the manifest's order."""

    @property
    def digest(self) -> str:
        """sha256 (hex) over the ids and what is known of each picture's content."""

    def missing(self) -> list[str]:
        """Ids whose picture is absent or cannot be read, in order."""

    def open(self, place: int) -> Image:
        """The picture at a place of `ids`, RGB.

        Raises:
            MissingImagesError: it is absent or cannot be read.
        """


@dataclass(frozen=True)
class FilePictures:
    """Pictures in files.

    Args:
        name: whose they are.
        ids: image ids.
        paths: path of each, or None where there is no file.
        root: folder that paths are given relative to; where it lies does not change the digest.
        formats: those that the files may have; in another one a picture cannot be read.
    """

    name: str
    ids: Sequence[str]
    paths: Sequence[str | None]
    root: str
    formats: tuple[PictureFormat, ...] = PICTURE_FORMATS

    @classmethod
    def located(cls, ids: Sequence[str], found: Located) -> FilePictures:
        """The pictures of a benchmark, as far as they were found.

        Args:
            ids: image ids.
            found: where they lie.
        """
        from cir_datasets.images.locate import image_card

        paths = tuple(found.paths.get(image) for image in ids)
        return cls(found.spec.id, ids, paths, str(found.folders[0]), image_card(found.spec).image_formats)

    @functools.cached_property
    def digest(self) -> str:
        """sha256 (hex) over ids, relative paths, and of each file its size, first, middle and last 4 KiB.

        Of a file of 12 KiB or less that is all. Where it lies and when it was written change nothing.
        """
        from cir_datasets.common.progress import done_in_parallel

        jobs = ((place, path) for place, path in enumerate(self.paths) if path is not None)
        # Threads beyond the processors: over a network each file takes a few ms of waiting.
        known = dict(done_in_parallel(_sampled, jobs, _READERS))
        rows = (
            [image, None if path is None else _below(self.root, path), *known.get(place, (None, None))]
            for place, (image, path) in enumerate(zip(self.ids, self.paths, strict=True))
        )
        return _digest(rows)

    def missing(self) -> list[str]:
        """Ids whose file is absent or unreadable.

        The header of every file is read, and its end; a file that seems cut off is decoded to be sure. Of
        PNG the checksums of all parts are computed.
        """
        from cir_datasets.common.progress import done_in_parallel, step_progress

        bad = {image for image, path in zip(self.ids, self.paths, strict=True) if path is None}
        jobs = ((image, path) for image, path in zip(self.ids, self.paths, strict=True) if path is not None)
        with step_progress(f"{self.name}: looking at pictures", len(self.ids) - len(bad)) as advance:
            for image, problem in done_in_parallel(self._problem, jobs, None):
                if problem is not None:
                    bad.add(image)
                advance(1)
        return [image for image in self.ids if image in bad]

    def why_missing(self, image: str) -> str:
        """Why a picture of `missing` is one, for a person."""
        path = self.paths[list(self.ids).index(image)]
        if path is None:
            return f"no file below {self.root}"
        return f"{path}: {self._problem(path) or 'cannot be decoded'}"

    def open(self, place: int) -> Image:
        """The picture at a place of `ids`, RGB, as Pillow decodes it; of grey values of 16 bits the upper 8.

        Raises:
            MissingImagesError: it is absent or cannot be read.
        """
        path = self.paths[place]
        if path is None:
            raise MissingImagesError(f"{self.name}: image {self.ids[place]!r} has no file. {_FIX}")
        try:
            with open_picture(path, self.formats) as image:
                return _as_rgb(image)
        except DECODING_ERRORS as error:
            raise MissingImagesError(
                f"{self.name}: image {self.ids[place]!r}: {path} cannot be decoded: {error}. {_FIX}"
            ) from error

    def _problem(self, path: str) -> str | None:
        """Why a picture cannot be read, or None."""
        try:
            with open_picture(path, self.formats) as image:
                end = _ENDS.get(image.format or "")
                if end is None or end not in _tail(path):
                    image.load()
                elif image.format == "PNG":
                    image.verify()
        except DECODING_ERRORS as error:
            return str(error) or type(error).__name__
        return None


@dataclass(frozen=True)
class ShapesPictures:
    """Pictures of shapes, drawn in memory.

    Args:
        name: the benchmark's id.
        ids: image ids of shapes.
    """

    name: str
    ids: Sequence[str]

    @functools.cached_property
    def digest(self) -> str:
        """sha256 (hex) over the ids, and over the pixels of a few: what draws all draws those."""
        from cir_datasets.shapes import pixel_sha256, pixels, scene

        some = self.ids[:: max(1, len(self.ids) // _LOOKED_AT)]
        drawn = {image: pixel_sha256(pixels(scene(image))) for image in some}
        return _digest([image, _DRAWN, drawn.get(image)] for image in self.ids)

    def missing(self) -> list[str]:
        """None is."""
        return []

    def open(self, place: int) -> Image:
        """The picture at a place of `ids`, 96 x 96 RGB."""
        from cir_datasets.shapes import picture

        return picture(self.ids[place])


def still_missing(pictures: Pictures, images: Collection[str]) -> list[str]:
    """Of images that were missing, those that still are.

    Args:
        pictures: the gallery.
        images: ids that were missing at another time.
    """
    if isinstance(pictures, FilePictures):  # a few of a gallery's files are looked at, not all
        rows = [row for row in zip(pictures.ids, pictures.paths, strict=True) if row[0] in images]
        few = replace(pictures, ids=[id_ for id_, _ in rows], paths=[path for _, path in rows])
        absent = set(few.missing())
    else:
        absent = set(pictures.missing())
    return [
        image
        for place, image in enumerate(pictures.ids)
        if image in images and (image in absent or not _opens(pictures, place))
    ]


def _opens(pictures: Pictures, place: int) -> bool:
    try:
        pictures.open(place)
    except MissingImagesError:
        return False
    return True


_FIX = (
    "Fix: get the publisher's file again. cir run and cir embed can go on without it (--skip-missing, in "
    "Python skip_missing=True)."
)


def pictures_of(
    benchmark: Benchmark, *, images: str | Path | None = None, ids: Sequence[str] | None = None
) -> Pictures:
    """The pictures of a benchmark's gallery.

    Args:
        benchmark: whose pictures.
        images: folder that holds them in the publisher's layout, or its parent; None looks below
            `CIR_IMAGES`, and draws the pictures of shapes.
        ids: other images of that benchmark than its gallery (references, say); None is the gallery.

    Raises:
        SourceError: the folder does not exist, none was given, or the gallery's list is not available.

    Example:
        >>> import cir_datasets
        >>> pictures_of(cir_datasets.load("shapes/val")).open(0).size
        (96, 96)
    """
    from cir_datasets.images.locate import locate, needs_relative_path

    spec = benchmark.spec
    wanted = benchmark.gallery if ids is None else ids
    if wanted is None:
        raise SourceError(
            f"{spec.id}: the list of its gallery is not available. "
            f"Fix: see `cir datasets show {spec.id}` for where the publisher's list is had."
        )
    if images is None and spec.card.source.publisher == "embedded":
        return ShapesPictures(spec.id, tuple(wanted))
    known = publisher_paths(benchmark) if needs_relative_path(spec) else {}
    located = locate(spec, ((image, known.get(image)) for image in wanted), images)
    return FilePictures.located(tuple(wanted), located)


def pictures_in(folder: str | Path, *, name: str | None = None) -> FilePictures:
    """All pictures below a folder, for training and for collections that belong to no benchmark.

    Args:
        folder: searched with its sub-folders, for .jpg, .jpeg, .png, .webp, .gif and .bmp.
        name: what to call them; None is the folder's name.

    Returns:
        Pictures whose ids are their paths below the folder, sorted.

    Raises:
        SourceError: no such folder, or no picture in it.
    """
    root = Path(folder).expanduser().absolute()
    endings = {".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp"}
    found = sorted(
        str(path)
        for parent, _, names in os.walk(root)
        for path in (Path(parent, each) for each in names)
        if path.suffix.lower() in endings
    )
    if not found:
        what = "no picture in it" if root.is_dir() else "no such folder"
        raise SourceError(f"{root}: {what}. Fix: pass a folder with pictures.")
    ids = tuple(Path(path).relative_to(root).as_posix() for path in found)
    return FilePictures(name or root.name, ids, tuple(found), str(root))


def publisher_paths(benchmark: Benchmark) -> dict[str, str | None]:
    """The publisher's relative path, or None, by image id, as the benchmark was read with its gallery.

    Rows in memory have none of their own: the benchmark of that name as it was last prepared has them.

    Raises:
        SourceError: they are not available.
    """
    from cir_datasets.images.locate import manifest_paths
    from cir_datasets.prepared import last_prepared

    if benchmark.manifest is not None:
        table = benchmark.manifest
        columns = (table.column(name).to_pylist() for name in ("image_id", "relative_path"))
        return dict(zip(*columns, strict=True))
    prepared = last_prepared(benchmark.spec)
    if prepared is None or prepared.images_file is None:
        raise SourceError(
            f"{benchmark.id}: its pictures are found by the publisher's paths, which are not available. "
            f"Fix: run `cir datasets prepare {benchmark.id}`."
        )
    return dict(manifest_paths(prepared))


def _digest(rows: Iterable[Sequence[object]]) -> str:
    whole = hashlib.sha256()
    for row in rows:
        whole.update(json.dumps(row, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n")
    return whole.hexdigest()


def _below(root: str, path: str) -> str:
    """A path relative to a folder; quickly where it lies in it, as a hundred thousand do."""
    prefix = root + os.sep
    return path[len(prefix) :] if path.startswith(prefix) else os.path.relpath(path, root)


def _sampled(path: str) -> tuple[int | None, str | None]:
    """Size of a file, and sha256 (hex) of its beginning, middle and end; None where it cannot be read."""
    try:
        with regular(path).open("rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            found = hashlib.sha256()
            for start in (0, (size - _SAMPLE_BYTES) // 2, size - _SAMPLE_BYTES):
                file.seek(max(0, start))
                found.update(file.read(_SAMPLE_BYTES))
            return size, found.hexdigest()
    except OSError:
        return None, None


def _as_rgb(image: Image) -> Image:
    """A picture with three channels of 8 bits."""
    if image.mode.startswith("I;16"):  # Pillow would cut values off at 255: all but black becomes white
        import numpy as np
        from PIL import Image as Module

        return Module.fromarray((np.asarray(image) >> 8).astype(np.uint8)).convert("RGB")
    return image.convert("RGB")


def _tail(path: str) -> bytes:
    with Path(path).open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL_BYTES))
        return file.read()
