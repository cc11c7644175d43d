"""Frames of videos as picture files: one a second, or every fifth of all."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cir_datasets.common.atomic import whole_file, write_errors
from cir_datasets.common.stages import FAILED, Row
from cir_datasets.construction.workspace import BENCHMARK
from cir_datasets.construction.zerosight.choices import Ending
from cir_datasets.construction.zerosight.videos import libav, said_by
from cir_datasets.errors import ConstructionError
from cir_datasets.registry.folder_card import PICTURES

if TYPE_CHECKING:
    from PIL.Image import Image

EVERY = 5
"""Of the pool's frames."""
FRAMES = f"{BENCHMARK}/{PICTURES}"
"""Folder of the pictures: the benchmark's own, in that of the run."""
_FORMATS: dict[str, dict[str, Any]] = {
    "jpg": {"format": "JPEG", "quality": 95},
    "png": {"format": "PNG"},
}
MOST_FRAMES = 7200
"""Of a video: two hours, a frame a second. Some kilobytes may hold days of one small picture."""


@dataclass(frozen=True)
class FrameWriter:
    """Writes the frames of videos; can be pickled.

    Args:
        videos: the folder of the videos.
        out: the pipeline's folder; pictures go to `benchmark/images/VIDEO/000003.jpg` in it, by their second.
        ending: their format.
        raw: every fifth frame of all (`raw-000005.jpg`, by their number) instead of one a second.
    """

    videos: Path
    out: Path
    ending: Ending
    raw: bool = False

    def __call__(self, rows: Sequence[Row]) -> list[Row]:
        """A row a frame; where decoding ends early, a row that says so comes last."""
        return [frame for row in rows for frame in self._frames(row)]

    def _frames(self, row: Row) -> Iterator[Row]:
        av = libav()
        written = 0
        try:
            for number, picture in self._pictures(av, row):
                if written == MOST_FRAMES:
                    yield {
                        "video": row["video"],
                        FAILED: f"only its first {MOST_FRAMES:,} frames are taken; for more cut it up",
                    }
                    return
                name = f"raw-{number:06d}" if self.raw else f"{number:06d}"
                image = f"{row['video']}/{name}.{self.ending}"
                self._write(picture, image)
                yield {
                    "image": image,
                    "video": row["video"],
                    "number": number,
                    "width": picture.width,
                    "height": picture.height,
                }
                written += 1
        except (av.error.FFmpegError, ValueError) as error:
            yield {
                "video": row["video"],
                FAILED: f"it cannot be decoded after {written:,} frames: {said_by(error)}",
            }
            return
        if not written:
            yield {"video": row["video"], FAILED: "it has no frames"}

    def _pictures(self, av: Any, row: Row) -> Iterator[tuple[int, Image]]:
        with av.open(str(self.videos / row["file"])) as container:
            stream = container.streams.video[0]
            start, following = None, 0
            for count, frame in enumerate(container.decode(stream)):
                if self.raw:
                    if count % EVERY == 0:
                        yield count, _upright(frame)
                    continue
                time = frame.time if frame.time is not None else count / float(stream.average_rate or 1)
                start = time if start is None else start
                # A frame stands for the second that it is the first of. A second without one has none.
                second = math.floor(time - start + 1e-6)
                if following <= second:
                    following = second + 1
                    yield second, _upright(frame)

    def _write(self, picture: Image, image: str) -> None:
        path = self.out / FRAMES / image
        with write_errors(path, ConstructionError), whole_file(path) as file:
            picture.save(file, **_FORMATS[self.ending])


def _upright(frame: Any) -> Image:
    """The frame as it is meant to be seen: phones write a rotation beside it."""
    picture: Image = frame.to_image()
    turned = int(getattr(frame, "rotation", 0) or 0) % 360
    return picture.rotate(turned, expand=True) if turned else picture
