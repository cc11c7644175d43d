"""Source captions out of files: text, tables, JSON Lines, and files as their publishers have them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from cir_datasets.construction.filled_tables import delimiter_of, first_columns, read_text, table_lines
from cir_datasets.errors import ConstructionError

_TEXTS = ("caption", "relative_caption", "target_caption")
_HQ_EDIT = dict(zip(_TEXTS, ("input", "edit", "output"), strict=True))
_SPLITS = ("val", "test")
"""Of Karpathy's files; the paper has its captions of Flickr30k from these."""
_ENDINGS = ".txt, .csv, .tsv, .token, .jsonl or .json"
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


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
        sources: its captions, in order; where images are named, the first one of each.
    """

    name: str
    sha256: str
    sources: tuple[SourceCaption, ...]


def read_captions(path: str | Path) -> CaptionFile:
    """Read a file of captions.

    One line a caption (.txt); columns `caption` and, where an edit is given, `relative_caption` and
    `target_caption` (.csv, .tsv); a .tsv without such a head has the caption in its first column, as
    Conceptual Captions has; `NAME#0`, tab, caption (.token), as Flickr30k has; one object or text a line
    (.jsonl); a list of these, the `annotations` of COCO and NoCaps, or Karpathy's `images` (.json), of whose
    splits val and test are taken. Of several captions of an image the first counts. Objects and tables may
    have the fields of HQ-Edit: `input`, `edit` and `output`.

    Args:
        path: the file, UTF-8.

    Raises:
        ConstructionError: it cannot be read, is of another kind, or a record is malformed; the message says
            where.
    """
    file = Path(path).expanduser()
    text = read_text(file, ConstructionError)
    reader = _READERS.get(file.suffix.lower())
    if reader is None:
        raise ConstructionError(f"{file}: captions are read from {_ENDINGS}. Fix: save it as one of these.")
    sources = tuple(reader(text, file))
    if not sources:
        raise ConstructionError(f"{file}: it holds no caption. Fix: write one a line.")
    return CaptionFile(file.name, hashlib.sha256(file.read_bytes()).hexdigest(), sources)


def _lines(text: str, file: Path) -> Iterator[SourceCaption]:
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            yield _source({"caption": line}, file, f"line {number}")


def _table(text: str, file: Path) -> Iterator[SourceCaption]:
    tabs = file.suffix.lower() == ".tsv"
    delimiter = "\t" if tabs else delimiter_of(text)
    first = [name.lower() for name in first_columns(text, delimiter)]
    heads = any(name in first for name in ("caption", "input"))
    # As Conceptual Captions are published: caption, tab, address.
    own = ["caption", *(f"column {place}" for place in range(2, len(first) + 1))]
    needed = ["input" if "input" in first and "caption" not in first else "caption"]
    lines = table_lines(
        text,
        file,
        needed,
        ConstructionError,
        fix="name the column of the captions so.",
        delimiter=delimiter,
        head=own if tabs and not heads else None,
        plain=tabs,
    )
    for line, row in lines:
        yield _source(row, file, f"line {line}")


def _tokens(text: str, file: Path) -> Iterator[SourceCaption]:
    lines = table_lines(
        text, file, (), ConstructionError, fix="", delimiter="\t", head=("image", "caption"), plain=True
    )
    records = ((row["image"].partition("#")[0], row, f"line {line}") for line, row in lines)
    yield from _first_of_each(records, file)


def _json_lines(text: str, file: Path) -> Iterator[SourceCaption]:
    # Not splitlines: JSON may hold other line ends of Unicode unescaped.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield _source(_parsed(line, file, f"line {number}"), file, f"line {number}")


def _json(text: str, file: Path) -> Iterator[SourceCaption]:
    found = _parsed(text, file, "it")
    if isinstance(found, dict) and "annotations" not in found and isinstance(found.get("images"), list):
        yield from _karpathy(found["images"], file)
        return
    records = found.get("annotations") if isinstance(found, dict) else found
    if not isinstance(records, list):
        raise ConstructionError(
            f"{file}: it holds neither a list nor an object with 'annotations', as COCO's captions have. "
            "Fix: write a list of captions."
        )
    numbered = enumerate(records, start=1)
    images = ((each.get("image_id") if isinstance(each, dict) else None, each, at) for at, each in numbered)
    yield from _first_of_each(((image, each, f"record {at}") for image, each, at in images), file)


def _karpathy(images: Sequence[Any], file: Path) -> Iterator[SourceCaption]:
    """The first sentence of each image of val and test."""
    for number, image in enumerate(images, start=1):
        sentences = image.get("sentences") if isinstance(image, dict) else None
        first = sentences[0] if isinstance(sentences, list) and sentences else None
        if not isinstance(first, dict):
            raise ConstructionError(
                f"{file}: image {number} has no sentences, as those of Karpathy's files have. "
                "Fix: name a file of captions."
            )
        if image.get("split") in _SPLITS:
            yield _source({"caption": first.get("raw")}, file, f"image {number}")


def _first_of_each(records: Iterable[tuple[Any, Any, str]], file: Path) -> Iterator[SourceCaption]:
    """Captions of images, each image once; a record without an image stands for itself."""
    seen = set()
    for image, record, at in records:
        if image is not None and not isinstance(image, int | str):
            raise ConstructionError(f"{file}: {at}: image_id is neither a number nor text. Fix: correct it.")
        if image is None or image not in seen:
            seen.add(image)
            yield _source(record, file, at)


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
    named = _HQ_EDIT if "input" in fields and "caption" not in fields else {name: name for name in _TEXTS}
    texts: dict[str, str | None] = {}
    for name, field in named.items():
        value = fields.get(field)
        if value is not None and not isinstance(value, str):
            raise ConstructionError(
                f"{file}: {where}: {field} is not text. Fix: write it in quotation marks."
            )
        texts[name] = " ".join(_CONTROL.sub(" ", value or "").split()) or None
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
    ".token": _tokens,
    ".jsonl": _json_lines,
    ".json": _json,
}
