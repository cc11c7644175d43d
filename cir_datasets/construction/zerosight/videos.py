"""The videos of a folder: what their containers say of them, and which are late enough."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import orjson

from cir_datasets.common.paths import regular
from cir_datasets.common.row_files import VIDEO_CATEGORIES
from cir_datasets.common.stages import FAILED, Row
from cir_datasets.construction.filled_tables import read_filled
from cir_datasets.construction.review.form import plain
from cir_datasets.construction.zerosight.options import ZeroSightOptions
from cir_datasets.errors import ConstructionError, missing_extra

ENDINGS = frozenset(
    (
        ".3gp",
        ".avi",
        ".flv",
        ".m2ts",
        ".m4v",
        ".mkv",
        ".mov",
        ".mp4",
        ".mpeg",
        ".mpg",
        ".mts",
        ".ogv",
        ".ts",
        ".webm",
    )
)
TABLES = ("metadata.csv", "metadata.jsonl")
"""Beside the videos: `file` (path below the folder), `date` (2023-05-17) and, if there is one, `category` and
`subcategory` of each."""

_SAMPLE = 4096
_UNSAFE = re.compile(r"[^\w./-]+")


def libav() -> Any:
    """PyAV.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        import av
    except ImportError as error:
        raise missing_extra("the reading of videos", "PyAV", "construction") from error
    return av


def said_by(error: Exception) -> str:
    """What a library of videos says, without paths of this machine."""
    return str(getattr(error, "strerror", None) or error or type(error).__name__)


def files_in(folder: str | Path) -> list[Path]:
    """The video files below a folder, sorted by their path in it.

    Raises:
        ConstructionError: no such folder, or no video in it.
    """
    root = Path(folder).expanduser().absolute()
    found = [
        Path(parent, name)
        for parent, _, names in os.walk(root)
        for name in names
        if Path(name).suffix.lower() in ENDINGS and not name.startswith(".")
    ]
    if not found:
        what = "no video in it" if root.is_dir() else "no such folder"
        raise ConstructionError(
            f"{root}: {what}. Fix: name a folder with videos ({', '.join(sorted(ENDINGS))}); "
            "`python -m examples.clips` in a clone writes some of shapes."
        )
    return sorted(found, key=lambda path: path.relative_to(root).as_posix())


def digest_of(folder: str | Path, files: Sequence[Path]) -> str:
    """sha256 (hex) over paths, sizes and samples of the videos, and over the tables beside them."""
    root = Path(folder).expanduser().absolute()
    whole = hashlib.sha256()
    for path in files:
        whole.update(f"{path.relative_to(root).as_posix()}\n".encode("utf-8", "surrogateescape"))
        try:
            with regular(path).open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                whole.update(f"{size}\n".encode())
                for start in (0, (size - _SAMPLE) // 2, size - _SAMPLE):
                    file.seek(max(0, start))
                    whole.update(file.read(_SAMPLE))
        except OSError:
            # Such as a link to nothing: its row says why it is left out.
            whole.update(b"unreadable\n")
    for name in TABLES:
        if (root / name).is_file():
            whole.update((root / name).read_bytes())
    return whole.hexdigest()


def video_rows(folder: str | Path, files: Sequence[Path], options: ZeroSightOptions) -> Iterator[Row]:
    """A row a video: id, file, date, and what its container says; `failed` where it is left out."""
    root = Path(folder).expanduser().absolute()
    dates, categories = _metadata(root)
    names = [path.relative_to(root).as_posix() for path in files]
    shown = [name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace") for name in names]
    for place, (name, video) in enumerate(zip(names, _video_ids(names), strict=True)):
        row: Row = {"video": video, "file": shown[place]}
        if options.limit is not None and place >= options.limit:
            continue
        if shown[place] != name:
            yield row | {FAILED: "its name is not UTF-8"}
            continue
        row |= _container(files[place])
        if name in dates:
            row |= {"date": dates[name].isoformat(), "date_from": "metadata"} | categories[name]
        why = row.get(FAILED) or _too_early(row.get("date"), options)
        yield row | ({FAILED: why} if why else {})
    for name in sorted(dates.keys() - set(names)):
        yield {"video": name, "file": name, FAILED: "a table of dates names it, and there is no such video"}


def _too_early(day: str | None, options: ZeroSightOptions) -> str | None:
    if options.after is None:
        return None
    if day is None:
        return "its date is not known" if options.unknown_dates == "drop" else None
    return None if date.fromisoformat(day) > options.after else f"it is not after {options.after}"


def _video_ids(names: Sequence[str]) -> Iterator[str]:
    """An id a video: its path without ending, in letters that every file system and table takes."""
    taken: set[str] = set()
    for name in names:
        short = _UNSAFE.sub("_", name.rpartition(".")[0]).strip("/") or "video"
        found, number = short, 1
        while found in taken:
            number += 1
            found = f"{short}-{number}"
        taken.add(found)
        yield found


def _container(path: Path) -> Row:
    av = libav()
    try:
        with av.open(str(regular(path))) as container:
            if not container.streams.video:
                return {FAILED: "it has no pictures"}
            stream = container.streams.video[0]
            seconds = None if container.duration is None else container.duration / 1_000_000
            if stream.duration is not None and stream.time_base is not None:
                seconds = float(stream.duration * stream.time_base)
            row: Row = {
                "seconds": None if seconds is None else round(seconds, 3),
                "width": stream.codec_context.width,
                "height": stream.codec_context.height,
                "codec": stream.codec_context.name,
            }
            said = container.metadata.get("creation_time") or stream.metadata.get("creation_time")
            day = None if said is None else _day(said)
            if day is not None:
                row |= {"date": day.isoformat(), "date_from": "container"}
            return row
    except (av.error.FFmpegError, OSError, ValueError) as error:
        return {FAILED: f"it cannot be opened: {said_by(error)}"}


def _day(text: str) -> date | None:
    try:
        return datetime.fromisoformat(text.strip()).date()
    except ValueError:
        return None


def _metadata(root: Path) -> tuple[Mapping[str, date], Mapping[str, Row]]:
    """Dates by file, and categories as far as there are any, of the table beside the videos."""
    found: dict[str, date] = {}
    categories: dict[str, Row] = {}
    where: dict[str, str] = {}
    for name in TABLES:
        path = root / name
        if not path.is_file():
            continue
        for line, row in _table(path):
            at = f"{path}: line {line}"
            file, day = row.get("file"), _day(str(row.get("date") or ""))
            if not file or not isinstance(file, str) or day is None:
                raise ConstructionError(
                    f"{at} has no file or no date that can be read: {row!r}. "
                    "Fix: write `file` as the path below the folder, and `date` as 2023-05-17."
                )
            if file in found:
                raise ConstructionError(
                    f"{at}: {file!r} stands in {where[file]}, too. Fix: keep one of them."
                )
            found[file], where[file] = day, f"{name}, line {line}"
            said = {column: plain(row.get(column.removeprefix("video_"))) for column in VIDEO_CATEGORIES}
            categories[file] = {column: text for column, text in said.items() if text}
    return found, categories


def _table(path: Path) -> list[tuple[int, dict[str, Any]]]:
    if path.suffix == ".csv":
        return list(read_filled(path, ("file", "date"), ConstructionError, fix="name them in line 1."))
    found = []
    try:
        for line, text in enumerate(path.read_bytes().split(b"\n"), start=1):
            if text.strip():
                row = orjson.loads(text)
                if not isinstance(row, dict):
                    raise ConstructionError(
                        f"{path}: line {line} is not an object. Fix: write "
                        '{"file": "a.mp4", "date": "2023-05-17"}.'
                    )
                found.append((line, row))
    except OSError as error:
        raise ConstructionError(f"{path}: cannot be read: {error.strerror}. Fix: check it.") from error
    except orjson.JSONDecodeError as error:
        raise ConstructionError(f"{path}: line {line} is not JSON ({error}). Fix: correct it.") from error
    return found
