"""Where the publishers' files come from, and whether they are the ones that the card pins.

In this order: `data_dir` (the publisher's folder or its parent, told apart by content), the publisher's
folder below `CIR_DATA_HOME`, a download from the publisher; else an error that names all three ways.

A downloaded file that is not the pinned one is refused. A *local* file that differs is used, because a user
may hold a newer revision on purpose: the benchmark is then `unpinned`, a warning says so, and counts and
records are still checked. Files for which no hash is known yet are unpinned too.
"""

from __future__ import annotations

import functools
import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cir_datasets.common.paths import cache_home, challenge_home, data_home, sha256_of
from cir_datasets.common.yaml import read_model
from cir_datasets.errors import CardError, IntegrityError, SourceError, UnpinnedDataWarning

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec
    from cir_datasets.registry.schema import Card, PinnedFile

Origin = Literal["data_dir", "CIR_DATA_HOME", "download"]


@dataclass(frozen=True)
class SourceFile:
    """A publisher's file on this machine.

    Args:
        name: its path relative to the publisher's folder, as the card lists it.
        path: where it lies, absolute.
        sha256: hex digest of its content.
        num_bytes: its size.
        pin: what the card expects, or None where nothing is known yet.
        origin: which of the three ways it came.
        revision: the publisher's revision it was downloaded at, where known.
    """

    name: str
    path: Path
    sha256: str
    num_bytes: int
    pin: PinnedFile | None
    origin: Origin
    revision: str | None = None

    @property
    def pinned(self) -> bool:
        """Whether this is exactly the file that the card pins."""
        return self.pin is not None and self.pin.sha256 == self.sha256


def pins(name: str) -> Mapping[str, PinnedFile | None]:
    """The files of a benchmark's publisher with size and sha256; None where they are not known yet.

    Raises:
        CardError: the list is malformed.
    """
    from cir_datasets import registry

    if registry.card(name).source.publisher == "challenge":
        from cir_datasets.registry.challenges import PINS_FILE

        path = challenge_home() / name / PINS_FILE
        try:
            return _pins(path.read_text(encoding="utf-8"), str(path))
        except OSError as error:
            raise CardError(f"{path}: {error.strerror}. Fix: get the challenge's folder again.") from error
    return _packaged_pins(name)


@functools.cache
def _packaged_pins(name: str) -> Mapping[str, PinnedFile | None]:
    from cir_datasets import registry

    listed = registry.card(name).source.files
    if listed is None:
        return {}
    where, entry = f"sources/{listed}", resources.files("cir_datasets") / "sources" / listed
    try:
        text = entry.read_text(encoding="utf-8")
    except OSError as error:
        raise CardError(
            f"{where}: cannot be read: {error.strerror}. Fix: write it, or correct source.files of the card."
        ) from error
    return _pins(text, where)


def _pins(text: str, where: str) -> Mapping[str, PinnedFile | None]:
    from cir_datasets.registry.schema import SourceFiles

    return read_model(SourceFiles, text, where, CardError).root  # JSON is YAML, too


def resolve(
    spec: BenchmarkSpec, data_dir: str | Path | None = None, *, refresh: bool = False
) -> dict[str, SourceFile]:
    """The publisher's files of a benchmark, by relative name.

    An optional gallery's files are left out where they are not available; so are those of the benchmark whose
    gallery this one ranks (`gallery_from`), and of its rows, which are never downloaded for that.

    Args:
        spec: the benchmark.
        data_dir: the publisher's folder or its parent; None looks below `CIR_DATA_HOME`, then downloads.
        refresh: download again what is not pinned, in case the publisher has changed it.

    Raises:
        SourceError: a file cannot be found or fetched.
        IntegrityError: a downloaded file is not the pinned one.
    """
    card, config = spec.card, spec.config
    if card.source.publisher == "embedded":
        return {}
    required = [*config.files, *(() if config.gallery_optional else config.gallery_files)]
    optional = config.gallery_files if config.gallery_optional else ()
    root = _given_folder(card, data_dir, required)
    found: dict[str, SourceFile] = {}
    for name in required:
        local = _local(card, name, root)
        found[name] = local or _downloaded(spec, name, refresh=refresh)
    for name in optional:
        gallery = _local(card, name, root) or _local(card, name, None)
        if gallery is not None:
            found[name] = gallery
    if config.gallery_from is not None:
        fetched = any(file.origin == "download" for file in found.values())
        found |= _borrowed(config.gallery_from, data_dir, may_download=fetched)
    for file in found.values():
        _warn_if_changed(file)
    return found


def at_hand(spec: BenchmarkSpec) -> bool:
    """Whether any file of a benchmark's rows is below `CIR_DATA_HOME` or was downloaded before."""
    card = spec.card
    folder = publishers_folder(card)
    if card.source.publisher == "embedded":
        return True
    return any(
        (folder is not None and _is_file(folder / name)) or _is_file(_place(card, name))
        for name in spec.config.files
    )


def local_files(spec: BenchmarkSpec) -> dict[str, Path] | None:
    """Paths of the publisher's files that are here without a download, whatever their content.

    Args:
        spec: the benchmark.

    Returns:
        By relative name, with the list of a gallery that is another benchmark's, where it is here; None where
        a file of the rows, or of a gallery that is not optional, is missing.
    """
    card, config = spec.card, spec.config
    listed = (*config.files, *config.gallery_files)
    found = {name: path for name in listed if (path := here(card, name)) is not None}
    optional = config.gallery_files if config.gallery_optional else ()
    if any(name not in found and name not in optional for name in listed):
        return None
    if config.gallery_from is not None:
        from cir_datasets import registry

        lender = registry.spec(config.gallery_from)
        lent = {name: here(lender.card, name) for name in lender.config.gallery_files}
        found |= {name: path for name, path in lent.items() if path is not None}
    return found


def publishers_folder(card: Card) -> Path | None:
    """The publisher's folder at or below `CIR_DATA_HOME`, or the one of its card; None without either."""
    if card.source.publisher == "challenge":
        return challenge_home() / card.name
    if card.in_folder:
        from cir_datasets.registry.folders import folder_of

        return folder_of(card.name)
    home = data_home()
    if home is None:
        return None
    files = {name for config in card.configs.values() for name in config.files}
    inside = home / card.source.folder
    return home if not inside.is_dir() and any(_is_file(home / name) for name in files) else inside


def here(card: Card, name: str) -> Path | None:
    """Where a file lies below `CIR_DATA_HOME`, else among the downloads."""
    folder = publishers_folder(card)
    if folder is not None and _is_file(folder / name):
        return folder / name
    return _kept(card, name)


def _place(card: Card, name: str) -> Path:
    """Where a downloaded file is kept."""
    return cache_home() / "sources" / card.name / (card.source.revision or "unpinned") / name


def _kept(card: Card, name: str) -> Path | None:
    """An earlier download of the file, if it is there and still the pinned one."""
    path, pin = _place(card, name), pins(card.name).get(name)
    if not path.is_file():
        return None
    fits = pin is None or (path.stat().st_size == pin.bytes and sha256_of(path) == pin.sha256)
    return path if fits else None


def _record_of(path: Path) -> Path:
    """The file beside a downloaded one that says where that came from."""
    return path.with_name(f"{path.name}.origin.json")


def _revision_of(path: Path) -> str | None:
    """The publisher's revision that a downloaded file was taken at, where it is known."""
    record = _record_of(path)
    revision = json.loads(record.read_text(encoding="utf-8")).get("revision") if record.is_file() else None
    return None if revision is None else str(revision)


def _given_folder(card: Card, data_dir: str | Path | None, required: Sequence[str]) -> Path | None:
    """The publisher's folder at or in `data_dir`; None where no `data_dir` was given."""
    if data_dir is None:
        return None
    given = Path(data_dir).expanduser().absolute()
    if not given.is_dir():
        raise SourceError(f"data_dir {given}: no such folder. Fix: pass the folder that holds {required[0]}.")
    root = _folder_with(given, card.source.folder, required)
    if root is not None:
        return root
    near = _folder_with(given, card.source.folder, required[:1]) or given
    missing = [name for name in required if not _is_file(near / name)]
    raise SourceError(
        f"data_dir {given}: neither the folder of {card.name} nor its parent: {near / missing[0]} does not "
        f"exist.\n"
        f"  Fix: pass the folder that holds {', '.join(missing)}, or leave data_dir out to look in "
        f"CIR_DATA_HOME and at the publisher.\n  By hand: {card.source.instructions}{_pages(card)}"
    )


def _pages(card: Card) -> str:
    pages = card.source.pages
    return f"\n  The publishers' pages: {', '.join(pages)}" if pages else ""


def _folder_with(given: Path, folder: str, names: Sequence[str]) -> Path | None:
    """`given` itself, its sub-folder of the publisher's name, or its only sub-folder that holds `names`."""
    inside = _children(given)
    named = [child for child in inside if child.name.lower() == folder.lower()]
    for candidate in (given, *named):
        if all(_is_file(candidate / name) for name in names):
            return candidate
    holding = [child for child in inside if all(_is_file(child / name) for name in names)]
    return holding[0] if len(holding) == 1 else None


def _children(folder: Path) -> list[Path]:
    """What is in a folder, sorted; nothing where it may not be read."""
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _is_file(path: Path) -> bool:
    """Whether there is a file that may be looked at."""
    try:
        return path.is_file()
    except OSError:
        return False


def _local(card: Card, name: str, root: Path | None) -> SourceFile | None:
    """The file in `root`, else (without a root) in the publisher's folder below `CIR_DATA_HOME`."""
    if root is not None:
        return _read(card, name, root / name, "data_dir") if _is_file(root / name) else None
    folder = publishers_folder(card)
    path = None if folder is None else folder / name
    return _read(card, name, path, "CIR_DATA_HOME") if path is not None and _is_file(path) else None


def _downloaded(spec: BenchmarkSpec, name: str, *, refresh: bool) -> SourceFile:
    card = spec.card
    if card.source.publisher == "unpublished":
        raise SourceError(_pending(spec, name))
    folder = publishers_folder(card)
    if folder is not None and card.in_folder:
        raise SourceError(
            f"{spec.id}: {folder / name} does not exist. Fix: write it, or correct card.yaml; "
            f"`cir datasets check {folder}` says what else is wrong."
        )
    if folder is not None and card.source.publisher == "challenge":
        raise SourceError(
            f"{spec.id}: {folder / name} does not exist. "
            "Fix: get the challenge's folder again, and run  cir challenge join FOLDER"
        )
    path, pin, kept = _place(card, name), pins(card.name).get(name), _kept(card, name)
    if kept is None or (refresh and pin is None):
        from cir_datasets.sources.download import fetch

        try:
            fetch(card.source, name, pin, path, _record_of(path))
        except IntegrityError:
            raise
        except SourceError as error:
            if kept is None:
                raise SourceError(_all_ways(spec, name, error)) from error
    return _read(card, name, path, "download", _revision_of(path) or card.source.revision)


def _all_ways(spec: BenchmarkSpec, name: str, error: SourceError) -> str:
    folder, home = spec.card.source.folder, data_home()
    looked = f"{home / folder} has no such file" if home else "not set"
    return (
        f"{spec.id}: the publisher's file {name} is not available.\n"
        f"  data_dir: not given. CIR_DATA_HOME: {looked}. Download: {error}\n"
        f"  Fix: `cir datasets prepare {spec.id} --data-dir FOLDER` (in Python data_dir=), where FOLDER "
        f"holds {name}; or set CIR_DATA_HOME to the parent of {folder}/; or try again with a network.\n"
        f"  By hand: {spec.card.source.instructions}"
    )


def _pending(spec: BenchmarkSpec, name: str) -> str:
    card, home = spec.card, data_home()
    folder = card.source.folder
    looked = f"{home / folder} has no such file" if home else "not set"
    return (
        f"{spec.id}: pending publication: the publishers of {card.short_title} have not released {name}.\n"
        f"  data_dir: not given. CIR_DATA_HOME: {looked}.{_pages(card)}\n"
        f"  Fix: if you have the data, lay it out as `cir datasets show {card.name}` says, then "
        f"`cir datasets prepare {spec.id} --data-dir FOLDER` (in Python data_dir=), or set CIR_DATA_HOME "
        f"to the parent of {folder}/.\n"
        f"  To try it without the data: `cir datasets template {card.name} DIR` writes a small example."
    )


def _borrowed(gallery_from: str, data_dir: str | Path | None, *, may_download: bool) -> dict[str, SourceFile]:
    """Gallery and rows of another benchmark: from beside `data_dir`, `CIR_DATA_HOME` or earlier downloads.

    The network is used only where the rows themselves were downloaded; a gallery that cannot be had is left
    out, never an error. Rows are taken where they are here alone.
    """
    from cir_datasets import registry

    source = registry.spec(gallery_from)
    card, names = source.card, source.config.gallery_files
    listed = dict.fromkeys((*names, *source.config.files))
    roots: list[Path | None] = []
    if data_dir is not None:
        given = Path(data_dir).expanduser().absolute()
        # Beside the given folder only one of the publisher's name counts: any other may be somebody's copy.
        beside = given.parent / card.source.folder
        near = [_folder_with(given, card.source.folder, each) for each in (names, source.config.files)]
        roots = [*near, beside if beside.is_dir() else None]
    found: dict[str, SourceFile] = {}
    for name in listed:
        local = next((file for root in roots if root and (file := _local(card, name, root))), None)
        file = local or _local(card, name, None) or _earlier_download(card, name)
        if file is None and name in names and may_download and not source.config.gallery_optional:
            try:
                file = _downloaded(source, name, refresh=False)
            except SourceError:
                file = None
        if file is not None:
            found[name] = file
    whole = all(name in found for name in names)
    return found if whole else {name: file for name, file in found.items() if name not in names}


def _earlier_download(card: Card, name: str) -> SourceFile | None:
    path = _kept(card, name)
    return None if path is None else _read(card, name, path, "download", _revision_of(path))


def _read(card: Card, name: str, path: Path, origin: Origin, revision: str | None = None) -> SourceFile:
    digest, size = sha256_of(path), path.stat().st_size
    # The maker's own file is what it is: there is no other that it should be.
    if card.in_folder:
        from cir_datasets.registry.schema import PinnedFile

        return SourceFile(name, path, digest, size, PinnedFile(bytes=size, sha256=digest), origin, revision)
    return SourceFile(name, path, digest, size, pins(card.name).get(name), origin, revision)


def _warn_if_changed(file: SourceFile) -> None:
    if file.pin is not None and not file.pinned:
        warnings.warn(
            f"{file.path}: not the file that the card pins (sha256 {file.sha256[:12]}, {file.num_bytes} "
            f"bytes; pinned {file.pin.sha256[:12]}, {file.pin.bytes} bytes). It is used, and results say "
            "`unpinned-data`.",
            UnpinnedDataWarning,
            stacklevel=2,
        )
