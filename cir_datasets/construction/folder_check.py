"""Everything that is wrong with a folder that is to be a benchmark: each fault with file, line and fix."""

from __future__ import annotations

import itertools
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cir_datasets.builders.user_folder import listed_image
from cir_datasets.common.progress import done_in_parallel
from cir_datasets.common.row_files import ENDINGS, NOT_UTF8, Tallied, read_row_file, text_lines, unit
from cir_datasets.common.terminal import counted, counted_rows
from cir_datasets.errors import CardError, RecordError, SourceError
from cir_datasets.registry import BenchmarkSpec, packaged_names
from cir_datasets.registry.challenges import challenge_names
from cir_datasets.registry.folder_card import FolderConfig, configs_of
from cir_datasets.registry.folders import CARD_FILE, card_of_folder, folders, read_folder_card
from cir_datasets.rows.benchmark import GALLERY
from cir_datasets.rows.checks import FOLDER_FIX, row_faults
from cir_datasets.rows.written import named_images, place_of, typed

if TYPE_CHECKING:
    from cir_datasets.registry.folder_card import FolderCard
    from cir_datasets.registry.schema import Card

SHOWN = 5
"""How many faults of a kind are shown to people."""
MOST = 10_000
"""Faults of one file; what stands behind them is not looked at."""
_LINE = re.compile(r": (line|row) \d.*", re.DOTALL)
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|\[[^\]]*\]|\d[\d,]*")


@dataclass(frozen=True)
class Fault:
    """Something that is wrong with a folder.

    Args:
        place: file, and line where it has one; empty where `said` names it.
        said: what is wrong, and how it is fixed.
    """

    place: str
    said: str

    def __str__(self) -> str:
        """One line."""
        return f"{self.place}: {self.said}" if self.place else self.said

    @property
    def kind(self) -> tuple[str, str]:
        """What it shares with faults of its kind: the file, and the words without what they quote."""
        return _LINE.sub("", self.place), _QUOTED.sub("...", self.said)


class _InList(NamedTuple):
    """An image of a gallery's list."""

    relative_path: str | None
    file: Path
    line: int

    @property
    def place(self) -> str:
        return f"{self.file}: line {self.line}"


@dataclass
class FolderCheck:
    """What a look at a folder found."""

    folder: Path
    name: str | None = None
    faults: list[Fault] = field(default_factory=list)
    """What may not stay: of the card, then of galleries, rows and pictures, in the order of their files."""
    notes: list[str] = field(default_factory=list)
    """What need not be, such as pictures, which scoring does without."""
    counts: dict[str, str] = field(default_factory=dict)
    """By configuration what it holds, in words."""

    @property
    def ok(self) -> bool:
        """Whether it is a benchmark."""
        return not self.faults

    @property
    def errors(self) -> list[str]:
        """Every fault, each with file, line and fix."""
        return [str(fault) for fault in self.faults]

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

    def fault_lines(self) -> Iterator[str]:
        """The faults for people: those of a row together, a few of each kind, then how many more."""
        of_kind = Counter(fault.kind for fault in self.faults)
        shown: Counter[tuple[str, str]] = Counter()
        for place, group in itertools.groupby(self.faults, key=lambda fault: fault.place):
            some = []
            for fault in group:
                shown[fault.kind] += 1
                if shown[fault.kind] <= SHOWN:
                    some.append(fault)
            if len(some) > 1 and place:
                yield f"{place}:"
                yield from (f"  {fault.said}" for fault in some)
            else:
                yield from map(str, some)
        for kind, count in of_kind.items():
            if count > SHOWN:
                where, said = kind
                yield f"{where}{': ' if where else ''}{count - SHOWN:,} more of this kind: {said}"

    def text(self) -> str:
        """The check for people."""
        lines = [f"{self.name or self.folder.name}/{config}: {said}" for config, said in self.counts.items()]
        lines += [line if line.startswith("  ") else f"error: {line}" for line in self.fault_lines()]
        lines += [f"note: {note}" for note in self.notes]
        if self.ok:
            return "\n".join([*lines, "It is a benchmark. Next:", *self._next()])
        return "\n".join([*lines, f"{counted(len(self.faults), 'error')}."])


def _beside(root: Path, path: str, configs: Mapping[str, FolderConfig]) -> str | None:
    """A file that is called like one that the card names but for its ending, and is not named itself."""
    named = {each for config in configs.values() for each in (config.queries, config.images)}
    others = (Path(path).with_suffix(ending).as_posix() for ending in ENDINGS)
    return next((each for each in others if each not in named and (root / each).is_file()), None)


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
        found.faults.append(Fault("", str(error)))
        return found
    found.name = short.name
    if registered:
        found.faults += _clashes(short.name, root)
    files = {
        path
        for config in configs.values()
        for path in (config.queries, config.images)
        if not (root / path).is_file()
    }
    for path in sorted({path for config in configs.values() for path in (config.queries, config.images)}):
        beside = _beside(root, path, configs)
        if path in files:
            fix = f"name {beside} in {CARD_FILE}" if beside else f"write it, or correct {CARD_FILE}"
            found.faults.append(Fault(str(root / path), f"no such file. Fix: {fix}."))
        elif beside:
            found.notes.append(f"{beside} is not read: {CARD_FILE} names {path}.")
    card: Card | None = None
    problem: CardError | None = None
    if not files:
        try:
            card = card_of_folder(root)
        except CardError as error:
            problem = error
    of_files: list[Fault] = []
    listed = {
        path: _gallery(root / path, of_files)
        for path in dict.fromkeys(config.images for config in configs.values())
        if path not in files
    }
    for name, config in configs.items():
        if config.queries not in files and config.images in listed:
            spec = None if card is None else BenchmarkSpec(card, name)
            found.counts[name] = _rows(
                spec, root / config.queries, listed[config.images], of_files, short.gallery == "per_query"
            )
    if problem is not None and not _said(str(problem), of_files):
        found.faults.append(Fault("", str(problem)))
    found.faults += of_files
    if pictures:
        _pictures(root, short, {image: at for each in listed.values() for image, at in each.items()}, found)
    return found


def _said(error: str, faults: list[Fault]) -> bool:
    """Whether the place of an error has a fault already."""
    place = ": ".join(error.split(": ")[:2])
    return any(str(fault).startswith(place) for fault in faults)


def _clashes(name: str, folder: Path) -> Iterator[Fault]:
    place = f"{folder / CARD_FILE}: name"
    fix = f"Fix: give it another name in {CARD_FILE}."
    if name in packaged_names():
        yield Fault(place, f"{name!r} is a benchmark of this package. {fix}")
    elif name in challenge_names():
        yield Fault(place, f"{name!r} is a challenge that is known here. {fix}")
    known = folders().get(name)
    if known is not None and known.folder.resolve() != folder.resolve():
        yield Fault(place, f"{name!r} is that of {known.folder}, too. {fix}")


def _gallery(path: Path, faults: list[Fault]) -> dict[str, _InList]:
    """The images of a gallery's list, by id."""
    found: dict[str, _InList] = {}
    paths: dict[str, int] = {}
    before = len(faults)
    for number, text in text_lines(path):
        if _too_many(path, number, faults, before):
            break
        row, fault = ({}, NOT_UTF8) if text is None else listed_image(text)
        if fault is not None:
            faults.append(Fault(f"{path}: line {number}", fault))
            continue
        image, place = row["image_id"], row["relative_path"]
        if image in found:
            said = f"{image!r} is there twice (first in line {found[image].line}). Fix: keep one."
            faults.append(Fault(f"{path}: line {number}", said))
            continue
        if place is not None and paths.setdefault(place, number) != number:
            said = f"{image!r} has the picture {place!r} of another (first in line {paths[place]})"
            faults.append(Fault(f"{path}: line {number}", f"{said}. Fix: correct one of them."))
        found[image] = _InList(place, path, number)
    return found


def _too_many(path: Path, number: int, faults: list[Fault], before: int) -> bool:
    """Whether a file has more faults than anybody reads; the last one says so."""
    if len(faults) - before < MOST:
        return False
    said = f"{len(faults) - before:,} faults before it: it and what follows were not looked at"
    faults.append(Fault(f"{path}: {unit(path)} {number}", f"{said}. Fix: correct those, and check again."))
    return True


def _rows(
    spec: BenchmarkSpec | None,
    path: Path,
    gallery: Mapping[str, _InList],
    faults: list[Fault],
    per_query: bool,
) -> str:
    """Look at every row; what there is, in words. Without a card the first row says which kind it is."""
    members = frozenset(gallery)
    unlisted, before = dict(gallery) if per_query else {}, len(faults)
    of_file = Tallied()
    lines: dict[str, int] = {}
    turns: Counter[int] = Counter()
    try:
        for number, fields in read_row_file(path):
            if _too_many(path, number, faults, before):
                break
            of_file.rows += 1
            place = place_of(path, number, fields)
            if isinstance(fields, str):
                faults.append(Fault(place, fields))
                continue
            of_file.first = of_file.first or fields
            multi_turn = of_file.multi_turn if spec is None else spec.kind == "multi_turn"
            extra = of_file.extra if spec is None else spec.card.extra_fields
            row, said = typed(fields, multi_turn, extra)
            row_id = fields.get("session_id" if multi_turn else "query_id")
            if isinstance(row_id, str):
                first = lines.setdefault(row_id, number)
                if first != number:
                    twice = f"its id is there twice (first in {unit(path)} {first})"
                    apart = multi_turn and path.suffix == ".csv"
                    other = ", or write a session's lines one after the other" if apart else ""
                    said = [*said, f"{twice}. Fix: give it another{other}."]
            if row:
                turns[len(row.get("turns", (row,)))] += 1
                for image in row.get(GALLERY) or ():
                    unlisted.pop(image, None)
            if row and spec is not None:
                said = [*said, *(f"{fault}. {FOLDER_FIX}" for fault in row_faults(spec, row, members))]
            else:
                said = [
                    *said,
                    *(
                        f"its {role} {image!r} is not in the gallery ({counted(len(members), 'image')}). "
                        f"{FOLDER_FIX}"
                        for role, image in named_images(fields)
                        if image not in members and not (per_query and role == "reference")
                    ),
                ]
            faults += [Fault(place, one) for one in said]
    except RecordError as error:
        faults.append(Fault("", str(error)))
    if len(faults) == before:
        fix = "Fix: list it with a query, or leave it out."
        faults += [
            Fault(at.place, f"{image!r} is in no query's {GALLERY}. {fix}") for image, at in unlisted.items()
        ]
    return _in_words(of_file, turns, len(gallery))


def _in_words(of_file: Tallied, turns: Counter[int], images: int) -> str:
    lengths = ", ".join(f"{count:,} of {length} turns" for length, count in sorted(turns.items()))
    rows = counted_rows(of_file.rows, of_file.multi_turn)
    return f"{rows}{f' ({lengths})' if of_file.multi_turn and lengths else ''}, {counted(images, 'image')}"


def _pictures(root: Path, short: FolderCard, wanted: dict[str, _InList], found: FolderCheck) -> None:
    """Look for each picture and decode it; where there is none at all, a note says what cannot be done."""
    from cir_datasets.images.locate import Search, picture_folders

    search = Search(picture_folders(root, short.image_folder), short.image_paths)
    paths: dict[str, str] = {}
    absent: list[str] = []
    for image, at in wanted.items():
        try:
            path = search.find(image, at.relative_path)
        except RecordError:
            said = "as a path it leads out of the image folder. Fix: give it another id, or put a tab and the"
            found.faults.append(Fault(at.place, f"image {image!r}: {said} path of its picture behind it."))
            continue
        except (SourceError, OSError) as error:
            found.faults.append(Fault("", str(error)))
            return
        if path is None:
            absent.append(image)
        else:
            paths[image] = path
    if not paths:
        sought = ""
        if absent:
            tried = ", ".join(search.candidates(absent[0], wanted[absent[0]].relative_path))
            sought = f" of these images (of {absent[0]!r} tried: {tried or 'nothing, for want of a folder'})"
        found.notes.append(
            f"{root / short.image_folder}: there are no pictures{sought}. Scoring needs none; "
            "`cir run` with an encoder does: put them there, say image_folder: in card.yaml, set "
            "CIR_IMAGES to the folder above it, or give --images."
        )
        return
    for image in absent[:SHOWN]:
        tried = ", ".join(search.candidates(image, wanted[image].relative_path))
        found.faults.append(Fault("", f"image {image!r} has no picture: tried {tried}. Fix: put it there."))
    if len(absent) > SHOWN:
        more = f"{len(absent) - SHOWN:,} more images have no picture. Fix: as above."
        found.faults.append(Fault("", more))
    from cir_datasets.images.picture import problem_of

    problems = dict(done_in_parallel(problem_of, paths.items(), None))
    unusable = {image: fault for image, fault in problems.items() if fault is not None}
    for image in sorted(unusable):
        said = f"image {image!r}: {unusable[image]}. Fix: replace the picture."
        found.faults.append(Fault(str(paths[image]), said))
