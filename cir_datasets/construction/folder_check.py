"""Everything that is wrong with a folder that is to be a benchmark: each fault with file, line and fix."""

from __future__ import annotations

import functools
import shlex
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cir_datasets.builders.own_folder import listed_image
from cir_datasets.common.parallel import done_in_parallel
from cir_datasets.common.row_files import NOT_UTF8, read_row_file, text_lines, unit
from cir_datasets.errors import CardError, RecordError
from cir_datasets.registry.cards import BenchmarkSpec, packaged_names
from cir_datasets.registry.challenges import challenge_names
from cir_datasets.registry.folder_card import configs_of
from cir_datasets.registry.folders import CARD_FILE, card_of_folder, folders, read_folder_card
from cir_datasets.rows.checks import OWN_FIX, row_faults
from cir_datasets.rows.written import typed

if TYPE_CHECKING:
    from cir_datasets.common.pictures import PictureFormat
    from cir_datasets.registry.folder_card import FolderCard
    from cir_datasets.registry.schema import Card

_SHOWN_MISSING = 5


@dataclass
class FolderCheck:
    """What a look at a folder found."""

    folder: Path
    name: str | None = None
    errors: list[str] = field(default_factory=list)
    """Each with file, line and fix; none of it may stay."""
    notes: list[str] = field(default_factory=list)
    """What need not be, such as pictures, which scoring does without."""
    counts: dict[str, str] = field(default_factory=dict)
    """By configuration what it holds, in words."""

    @property
    def ok(self) -> bool:
        """Whether it is a benchmark."""
        return not self.errors

    def to_dict(self) -> dict[str, Any]:
        """The check for a program."""
        return {
            "folder": str(self.folder),
            "name": self.name,
            "ok": self.ok,
            "errors": self.errors,
            "notes": self.notes,
            "counts": self.counts,
        }

    def _next(self) -> Iterator[str]:
        """Commands that load it, run a baseline and score that."""
        benchmark_id = f"{self.name}/{next(iter(self.counts))}"
        yield f"  export CIR_BENCHMARKS={shlex.quote(str(self.folder))}"
        yield f"  cir datasets prepare {self.name}"
        yield f"  cir run --benchmark {benchmark_id} --method random --out random.json"
        yield "  cir score random.json"

    def text(self) -> str:
        """The check for people."""
        lines = [f"{self.name or self.folder.name}/{config}: {said}" for config, said in self.counts.items()]
        lines += [f"error: {error}" for error in self.errors]
        lines += [f"note: {note}" for note in self.notes]
        if self.ok:
            return "\n".join([*lines, "It is a benchmark. Next:", *self._next()])
        number = len(self.errors)
        return "\n".join([*lines, f"{number:,} error{'' if number == 1 else 's'}."])


def check_folder(folder: str | Path, *, pictures: bool = True, registered: bool = True) -> FolderCheck:
    """Look at everything in a folder: card, galleries, rows, pictures.

    Args:
        folder: the folder that holds `card.yaml`.
        pictures: whether pictures are looked for and decoded.
        registered: whether its name must not be that of another benchmark.

    Example:
        >>> check_folder("/nowhere").errors
        ['/nowhere: no such folder. Fix: `cir datasets new NAME` makes one.']
    """
    root = Path(folder).expanduser().absolute()
    found = FolderCheck(root)
    try:
        short = read_folder_card(root)
        configs = configs_of(short, root)
    except CardError as error:
        found.errors.append(str(error))
        return found
    found.name = short.name
    if registered:
        found.errors += _clashes(short.name, root)
    files = {
        path
        for config in configs.values()
        for path in (config.queries, config.images)
        if not (root / path).is_file()
    }
    found.errors += [
        f"{root / path}: no such file. Fix: write it, or correct {CARD_FILE}." for path in sorted(files)
    ]
    listed = {
        path: _gallery(root / path, found.errors)
        for path in dict.fromkeys(config.images for config in configs.values())
        if path not in files
    }
    card: Card | None = None
    if not files:
        try:
            card = card_of_folder(root)
        except CardError as error:
            if not _said(str(error), found.errors):
                found.errors.append(str(error))
    if card is not None:
        for name, config in configs.items():
            found.counts[name] = _rows(
                BenchmarkSpec(card, name), root / config.queries, listed[config.images], found.errors
            )
    if pictures:
        _pictures(
            root, short, {image: path for each in listed.values() for image, path in each.items()}, found
        )
    return found


def _said(error: str, errors: list[str]) -> bool:
    """Whether the place of an error has one already."""
    place = ": ".join(error.split(": ")[:2])
    return any(one.startswith(place) for one in errors)


def _clashes(name: str, folder: Path) -> Iterator[str]:
    fix = f"Fix: give it another name in {CARD_FILE}."
    if name in packaged_names():
        yield f"{folder / CARD_FILE}: name: {name!r} is a benchmark of this package. {fix}"
    elif name in challenge_names():
        yield f"{folder / CARD_FILE}: name: {name!r} is a challenge that is known here. {fix}"
    known = folders().get(name)
    if known is not None and known.folder.resolve() != folder.resolve():
        yield f"{folder / CARD_FILE}: name: {name!r} is that of {known.folder}, too. {fix}"


def _gallery(path: Path, errors: list[str]) -> dict[str, str | None]:
    """Ids and paths of a gallery's list."""
    found: dict[str, str | None] = {}
    lines: dict[str, int] = {}
    paths: dict[str, int] = {}
    for number, text in text_lines(path):
        row, fault = ({}, NOT_UTF8) if text is None else listed_image(text)
        if fault is not None:
            errors.append(f"{path}: line {number}: {fault}")
            continue
        image, place = row["image_id"], row["relative_path"]
        if image in lines:
            errors.append(
                f"{path}: line {number}: {image!r} is there twice (first in line {lines[image]}). "
                "Fix: keep one."
            )
            continue
        if place is not None and paths.setdefault(place, number) != number:
            errors.append(
                f"{path}: line {number}: {image!r} has the picture {place!r} of another (first in line "
                f"{paths[place]}). Fix: correct one of them."
            )
        lines[image], found[image] = number, place
    return found


def _rows(spec: BenchmarkSpec, path: Path, gallery: Collection[str], errors: list[str]) -> str:
    """Look at every row; what the configuration holds, in words."""
    multi_turn, members = spec.kind == "multi_turn", frozenset(gallery)
    id_name = "session_id" if multi_turn else "query_id"
    lines: dict[str, int] = {}
    turns: Counter[int] = Counter()
    rows = 0
    try:
        for number, fields in read_row_file(path):
            rows += 1
            place = f"{path}: {unit(path)} {number}"
            if isinstance(fields, str):
                errors.append(f"{place}: {fields}")
                continue
            row, faults = typed(fields, multi_turn, spec.card.own_fields)
            row_id = fields.get(id_name)
            if isinstance(row_id, str):
                place += f" ({id_name} {row_id})"
                first = lines.setdefault(row_id, number)
                if first != number:
                    faults = [
                        *faults,
                        f"its id is there twice (first in {unit(path)} {first}). Fix: give it another.",
                    ]
            if row:
                faults = [*faults, *(f"{fault}. {OWN_FIX}" for fault in row_faults(spec, row, members))]
                turns[len(row.get("turns", (row,)))] += 1
            errors += [f"{place}: {fault}" for fault in faults]
    except RecordError as error:
        errors.append(str(error))
    noun = "sessions" if multi_turn else "queries"
    lengths = ", ".join(f"{count:,} of {length} turns" for length, count in sorted(turns.items()))
    return f"{rows:,} {noun}" + (f" ({lengths})" if multi_turn else "") + f", {len(gallery):,} images"


def _pictures(root: Path, short: FolderCard, wanted: dict[str, str | None], found: FolderCheck) -> None:
    """Look for each picture and decode it; where there is none at all, a note says what cannot be done."""
    from cir_datasets.images.locate import Search, picture_folders

    try:
        places = picture_folders(root, short.image_folder)
        search = Search(places, short.image_paths)
        paths = {
            image: path for image, name in wanted.items() if (path := search.find(image, name)) is not None
        }
    except (RecordError, OSError) as error:
        found.errors.append(str(error))
        return
    if not paths:
        found.notes.append(
            f"{root / short.image_folder}: there are no pictures. Scoring needs none; `cir run` with an "
            "encoder does: put them there, or say image_folder: in card.yaml, or give --images."
        )
        return
    absent = [image for image in wanted if image not in paths]
    for image in absent[:_SHOWN_MISSING]:
        tried = ", ".join(search.candidates(image, wanted[image]))
        found.errors.append(f"image {image!r} has no picture: tried {tried}. Fix: put it there.")
    if len(absent) > _SHOWN_MISSING:
        found.errors.append(f"{len(absent) - _SHOWN_MISSING:,} more images have no picture. Fix: as above.")
    from cir_datasets.common.pictures import PICTURE_FORMATS

    look = functools.partial(_problem, formats=PICTURE_FORMATS)
    unusable = {
        image: fault for image, fault in done_in_parallel(look, paths.items(), None) if fault is not None
    }
    for image in sorted(unusable):
        found.errors.append(f"{paths[image]}: image {image!r}: {unusable[image]}. Fix: replace the picture.")


def _problem(path: str, formats: Collection[PictureFormat]) -> str | None:
    from cir_datasets.images.picture import read_picture

    try:
        return read_picture(path, formats).problem
    except OSError as error:
        return f"cannot be read: {error.strerror}"
