"""Benchmarks that are folders of their makers: which are known here, and what their cards become.

`CIR_BENCHMARKS` names such folders, or folders of them, with `:` between; a package names its own by an entry
point of the group `cir_benchmarks.benchmarks`. A folder that cannot be used never hides another benchmark: it
is refused, with the reason, where its own name is used.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from cir_datasets.common.paths import FOLDERS_GROUP, FOLDERS_VARIABLE, is_name
from cir_datasets.errors import CardError, RecordError

if TYPE_CHECKING:
    from cir_datasets.registry.folder_card import FolderCard
    from cir_datasets.registry.schema import Card

CARD_FILE = "card.yaml"


@dataclass(frozen=True)
class Known:
    """A folder that is registered, under the name of its card."""

    name: str
    folder: Path
    origin: str
    """`CIR_BENCHMARKS`, or the entry point that names it."""
    problem: str | None = None
    """Why it cannot be used, or None."""


def folders() -> dict[str, Known]:
    """The folders that are registered, by name; two of one name are refused, each with the reason.

    Example:
        >>> "cirr" in folders()
        False
    """
    found: dict[str, Known] = {}
    for known in _known():
        other = found.get(known.name)
        if other is None:
            found[known.name] = known
        elif other.folder != known.folder:
            origins = " or ".join(dict.fromkeys((other.origin, known.origin)))
            said = (
                f"{other.folder} and {known.folder} are both named {known.name!r}. Fix: give one of them "
                f"another name in its {CARD_FILE}, or take it out of {origins}."
            )
            found[known.name] = Known(known.name, other.folder, other.origin, other.problem or said)
    return dict(sorted(found.items()))


def folder_of(name: str) -> Path:
    """Where the files of a registered folder lie.

    Raises:
        CardError: no folder of that name is registered.
    """
    known = folders().get(name)
    if known is None:
        raise CardError(
            f"the folder of the benchmark {name!r} is not known here any more. "
            f"Fix: name it in {FOLDERS_VARIABLE}."
        )
    return known.folder


def card_of_folder(folder: Path) -> Card:
    """The card of a folder, with what its files say: counts, kind, examples. Read again when a file changes.

    Raises:
        CardError: the folder, its card or one of its files is not there, or malformed.
    """
    from cir_datasets.registry.folder_card import expanded, files_of

    short = read_folder_card(folder)
    files = files_of(short, folder)
    try:
        return expanded(folder, short, tuple(_state(folder / name) for name in files))
    except RecordError as error:
        raise CardError(str(error)) from error


def read_folder_card(folder: Path) -> FolderCard:
    """What a folder's `card.yaml` says.

    Raises:
        CardError: it is not there, or malformed; the message names field, line and fix.
    """
    path = folder / CARD_FILE
    if not folder.is_dir():
        raise CardError(f"{folder}: no such folder. Fix: `cir datasets new NAME` makes one.")
    if not path.is_file():
        raise CardError(f"{path}: no such file. Fix: write it; `cir datasets new NAME` makes an example.")
    return _read(path, _state(path))


def missing() -> list[str]:
    """Which registered places hold no benchmark, a sentence each."""
    said = [problem for _, place, problem in _places() if not place]
    return [problem for problem in said if problem is not None]


@functools.lru_cache(maxsize=256)
def _read(path: Path, state: tuple[int, int, int]) -> FolderCard:
    """The card, read again when the file has changed."""
    from cir_datasets.common.yaml import checked, read_fields
    from cir_datasets.registry.folder_card import FolderCard

    fields, text = read_fields(path, CardError, "name: mine")
    return checked(FolderCard, fields, str(path), CardError, text)


def _state(path: Path) -> tuple[int, int, int]:
    """What changes with a file; of a file that is not there no content is known by it."""
    try:
        found = path.stat()
    except OSError:
        return (0, 0, 0)
    return found.st_mtime_ns, found.st_size, found.st_ino


def _known() -> Iterator[Known]:
    """The registered folders in order, as often as they are named."""
    for origin, folder, _ in _places():
        if folder is None:
            continue
        try:
            yield Known(read_folder_card(folder).name, folder, origin)
        except CardError as error:
            yield Known(_name_in(folder), folder, origin, str(error))


def _name_in(folder: Path) -> str:
    """The name that a malformed card says, as far as it can be read; else the folder's."""
    import yaml

    from cir_datasets.common.yaml import parse_yaml

    try:
        fields = parse_yaml((folder / CARD_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return folder.name
    name = fields.get("name") if isinstance(fields, dict) else None
    return name if isinstance(name, str) and is_name(name) else folder.name


def _places() -> Iterator[tuple[str, Path | None, str | None]]:
    """Origin and folder of each benchmark that is named; or None and why there is none."""
    value = os.environ.get(FOLDERS_VARIABLE, "")
    # A folder whose name holds the separator is one folder.
    named = [value] if Path(value).expanduser().is_dir() else value.split(os.pathsep)
    for given in filter(None, named):
        yield from _benchmarks_in(Path(given).expanduser().absolute(), FOLDERS_VARIABLE)
    for origin, paths, problem in _entry_points(tuple(sys.path)):
        if problem is not None:
            yield origin, None, problem
        for path in paths:
            yield from _benchmarks_in(path, origin)


def _benchmarks_in(place: Path, origin: str) -> Iterator[tuple[str, Path | None, str | None]]:
    """A folder that is a benchmark, or those in it that are."""
    try:
        if (place / CARD_FILE).is_file():
            yield origin, place, None
            return
        inside = sorted(path.parent for path in place.glob(f"*/{CARD_FILE}")) if place.is_dir() else None
    except OSError as error:
        yield (
            origin,
            None,
            f"{origin}: {place}: cannot be read: {error.strerror}. Fix: check its permissions.",
        )
        return
    if inside is None:
        file = place.is_file()
        what, fix = ("is a file", "name its folder") if file else ("no such folder", "correct the path")
        if not file and origin == FOLDERS_VARIABLE and os.pathsep in os.environ.get(FOLDERS_VARIABLE, ""):
            # A folder whose name holds the separator cannot stand beside others, its parent can.
            fix += f"; {os.pathsep!r} stands between folders, so where a name holds it name its parent"
        yield origin, None, f"{origin}: {place}: {what}. Fix: {fix}."
    elif not inside:
        yield (
            origin,
            None,
            (
                f"{origin}: {place}: neither it nor a folder in it holds {CARD_FILE}. "
                "Fix: name the folder of a benchmark; `cir datasets new NAME` makes one."
            ),
        )
    else:
        yield from ((origin, folder, None) for folder in inside)


@functools.lru_cache(maxsize=8)
def _entry_points(path: tuple[str, ...]) -> tuple[tuple[str, tuple[Path, ...], str | None], ...]:
    """Origin and folders of each entry point, or why it gives none; asked once for what Python can import."""
    found: list[tuple[str, tuple[Path, ...], str | None]] = []
    for point in metadata.entry_points(group=FOLDERS_GROUP):
        origin = f"the entry point {point.name}"
        try:
            found.append((origin, _folders_of(point), None))
        except CardError as error:
            found.append((origin, (), f"{origin}: {error}"))
    return tuple(found)


def _folders_of(point: metadata.EntryPoint) -> tuple[Path, ...]:
    fix = "Fix: let it name a package, a path, or a function that gives one."
    try:
        given = point.load()
        return tuple(_paths(given() if callable(given) else given))
    except TypeError as error:
        raise CardError(f"{point.value} gives no folder ({error}). {fix}") from error
    except Exception as error:
        raise CardError(f"{point.value} failed: {type(error).__name__}: {error}. {fix}") from error


def _paths(given: Any) -> Iterable[Path]:
    """The folders that an entry point's value stands for."""
    if isinstance(given, ModuleType):
        inside = list(getattr(given, "__path__", ())) or [Path(given.__file__ or "").parent]
        return [Path(path) for path in inside]
    if isinstance(given, str | os.PathLike):
        return [Path(given).expanduser().absolute()]
    return [path for one in given for path in _paths(one)]
