"""Source captions out of files: text, CSV, TSV, JSON Lines, and COCO's JSON of captions."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from cir_datasets.errors import ConstructionError

_TEXTS = ("caption", "relative_caption", "target_caption")
_ENDINGS = ".txt, .csv, .tsv, .jsonl or .json"


@dataclass(frozen=True)
class SourceCaption:
    """A caption, and where it stands.

    Args:
        caption: one line, blanks around it removed.
        at: file and line, or file and number of the record.
        relative_caption: where the file brings an edit of its own (HQ-Edit does).
        target_caption: likewise.
    """

    caption: str
    at: str
    relative_caption: str | None = None
    target_caption: str | None = None


@dataclass(frozen=True)
class CaptionFile:
    """A file of captions.

    Args:
        name: its name without folder.
        sha256: of its bytes, hex.
        sources: its captions, in order; of COCO's JSON the first one of each image.
    """

    name: str
    sha256: str
    sources: tuple[SourceCaption, ...]


def read_captions(path: str | Path) -> CaptionFile:
    """Read a file of captions.

    One line a caption (.txt); columns `caption` and, where an edit is given, `relative_caption` and
    `target_caption` (.csv, .tsv; a .tsv without such a head has the caption in its first column); one object
    or text a line (.jsonl); a list of these, or COCO's `annotations` (.json).

    Args:
        path: the file, UTF-8.

    Raises:
        ConstructionError: it cannot be read, is of another kind, or a record is malformed; the message says
            where.
    """
    file = Path(path).expanduser()
    try:
        content = file.read_bytes()
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConstructionError(f"{file}: byte {error.start} is not UTF-8. Fix: save it as UTF-8.") from error
    except OSError as error:
        raise ConstructionError(f"{file}: cannot be read: {error.strerror}. Fix: check the path.") from error
    reader = _READERS.get(file.suffix.lower())
    if reader is None:
        raise ConstructionError(f"{file}: captions are read from {_ENDINGS}. Fix: save it as one of these.")
    sources = tuple(reader(text, file))
    if not sources:
        raise ConstructionError(f"{file}: it holds no caption. Fix: write one a line.")
    return CaptionFile(file.name, hashlib.sha256(content).hexdigest(), sources)


def _lines(text: str, file: Path) -> Iterator[SourceCaption]:
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            yield _source({"caption": line}, file, f"line {number}")


def _table(text: str, file: Path) -> Iterator[SourceCaption]:
    tabs = file.suffix.lower() == ".tsv"
    lines = csv.reader(io.StringIO(text), delimiter="\t" if tabs else ",", quoting=3 if tabs else 0)
    head = [name.strip().lower() for name in next(lines, [])]
    if "caption" not in head:
        if not tabs:
            raise ConstructionError(
                f"{file}: line 1 names the columns {', '.join(head) or '(none)'}, and none is 'caption'. "
                "Fix: name the column of the captions so."
            )
        # As Conceptual Captions are published: caption, tab, address.
        yield from _rows(csv.reader(io.StringIO(text), delimiter="\t", quoting=3), ["caption"], file)
        return
    yield from _rows(lines, head, file)


def _rows(lines: Any, head: list[str], file: Path) -> Iterator[SourceCaption]:
    try:
        for fields in lines:
            if any(field.strip() for field in fields):
                yield _source(dict(zip(head, fields, strict=False)), file, f"line {lines.line_num}")
    except csv.Error as error:
        raise ConstructionError(
            f"{file}: line {lines.line_num}: {error}. Fix: correct the quotation marks there."
        ) from error


def _json_lines(text: str, file: Path) -> Iterator[SourceCaption]:
    # Not splitlines: JSON may hold other line ends of Unicode unescaped.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield _source(_parsed(line, file, f"line {number}"), file, f"line {number}")


def _json(text: str, file: Path) -> Iterator[SourceCaption]:
    found = _parsed(text, file, "it")
    records = found.get("annotations") if isinstance(found, dict) else found
    if not isinstance(records, list):
        raise ConstructionError(
            f"{file}: it holds neither a list nor an object with 'annotations', as COCO's captions have. "
            "Fix: write a list of captions."
        )
    seen = set()
    for number, record in enumerate(records, start=1):
        image = record.get("image_id") if isinstance(record, dict) else None
        if image is None or image not in seen:
            seen.add(image)
            yield _source(record, file, f"record {number}")


def _parsed(text: str, file: Path, where: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ConstructionError(f"{file}: {where} is not JSON: {error}. Fix: correct it.") from error


def _source(record: Any, file: Path, where: str) -> SourceCaption:
    fields: Mapping[str, Any] = {"caption": record} if isinstance(record, str) else record
    if not isinstance(fields, Mapping):
        raise ConstructionError(
            f"{file}: {where} is neither text nor an object with a 'caption'. Fix: correct it."
        )
    texts: dict[str, str | None] = {}
    for name in _TEXTS:
        value = fields.get(name)
        if value is not None and not isinstance(value, str):
            raise ConstructionError(f"{file}: {where}: {name} is not text. Fix: write it in quotation marks.")
        texts[name] = " ".join((value or "").split()) or None
    caption = texts.pop("caption")
    if caption is None:
        raise ConstructionError(f"{file}: {where}: it has no caption. Fix: write one, or leave it out.")
    if (texts["relative_caption"] is None) != (texts["target_caption"] is None):
        raise ConstructionError(
            f"{file}: {where}: it has one of relative_caption and target_caption. Fix: write both or neither."
        )
    return SourceCaption(caption, f"{file.name}, {where}", texts["relative_caption"], texts["target_caption"])


_READERS: Mapping[str, Callable[[str, Path], Iterator[SourceCaption]]] = {
    ".txt": _lines,
    ".csv": _table,
    ".tsv": _table,
    ".jsonl": _json_lines,
    ".json": _json,
}
