"""Write clips of shapes as video files, in a clone: MPEG-4 in MP4, 96 x 96, four frames a second.

What `cir make zerosight` is tried on: videos whose every scene is known. Needs PyAV, as that command does.

Example:
    python -m examples.clips --out clips --videos 20
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import av

from cir_datasets.shapes import SIDE, Scene, clip, pixels

FRAMES_A_SECOND = 4
MOST_CLIPS = 100_000


def write_clips(folder: str | Path, videos: int, *, first: int = 0) -> list[Path]:
    """Write clips as video files.

    Args:
        folder: made where it is missing.
        videos: how many, from 1.
        first: number of the first.

    Returns:
        The files, `clip-000000.mp4` and so on. One that is there already is left alone.

    Raises:
        ValueError: a number is out of range.
        OSError: a file cannot be written.
    """
    if videos < 1 or first < 0 or first + videos > MOST_CLIPS:
        raise ValueError(
            f"{videos} clips from number {first}: there are 0 to {MOST_CLIPS - 1:,}. Fix: ask for those."
        )
    root = Path(folder).expanduser().absolute()
    root.mkdir(parents=True, exist_ok=True)
    paths = [root / f"clip-{number:06d}.mp4" for number in range(first, first + videos)]
    for number, path in enumerate(paths, start=first):
        if not path.is_file():
            part = path.with_suffix(".part")
            _write(clip(number), part)
            part.replace(path)
    return paths


def _write(scenes: Sequence[Scene], path: Path) -> None:
    # `bitexact`: without it a file holds the version of the library that wrote it.
    with av.open(str(path), "w", format="mp4", options={"fflags": "+bitexact"}) as out:
        stream = out.add_stream("mpeg4", rate=FRAMES_A_SECOND, options={"flags": "+bitexact", "qscale": "2"})
        stream.width = stream.height = SIDE
        stream.pix_fmt = "yuv420p"
        stream.codec_context.qmin, stream.codec_context.qmax = 2, 2
        for scene in scenes:
            frame = av.VideoFrame.from_ndarray(pixels(scene), format="rgb24")
            for _ in range(FRAMES_A_SECOND):
                out.mux(stream.encode(frame))
                frame.pts = None
        out.mux(stream.encode(None))


def main() -> None:
    """Write clips and print their folder."""
    parser = argparse.ArgumentParser(prog="python -m examples.clips", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="the folder to write")
    parser.add_argument("--videos", type=int, default=20, help="how many")
    parser.add_argument("--first", type=int, default=0, help="number of the first")
    call = parser.parse_args()
    try:
        write_clips(call.out, call.videos, first=call.first)
    except (OSError, ValueError) as error:
        sys.exit(f"{error}")
    sys.stdout.write(f"{call.out}\n")


if __name__ == "__main__":
    main()
