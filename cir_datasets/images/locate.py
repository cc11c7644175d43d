"""Where a gallery's pictures lie: the layout rules of a card against a user's folders.

The rules are data (`image_paths` of the card): paths with the image's id or the publisher's relative path in
them, tried in order below each folder. Folders are listed once, not asked file by file, so that a hundred
thousand pictures are found in moments. A gallery that another benchmark lends (`gallery_from`) is looked for
where that benchmark's pictures lie.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from cir_datasets import registry
from cir_datasets.common.progress import step_progress
from cir_datasets.errors import MissingImagesError, RecordError, SourceError
from cir_datasets.registry.folders import folder_of
from cir_datasets.sources import here

if TYPE_CHECKING:
    from cir_datasets.prepared import Prepared
    from cir_datasets.registry import BenchmarkSpec
    from cir_datasets.registry.schema import Card

Roots = str | Path | Sequence[str | Path] | None
"""Folder or folders that hold pictures; None is `CIR_IMAGES/<the card's image_folder>`."""

EXAMPLES = 5
"""How many missing images a message names."""

_RELATIVE = "{relative_path}"
_SAMPLE = 50


@dataclass(frozen=True)
class Missing:
    """An image that was not found, and where it was looked for."""

    image_id: str
    tried: tuple[str, ...]


@dataclass(frozen=True)
class Located:
    """Which pictures are there.

    Args:
        spec: the benchmark whose pictures were looked for.
        folders: where they were looked for.
        paths: absolute path by image id, of those that were found.
        missing: ids that were not found, in the order asked.
        examples: the first of them, with the paths tried.
        looks_like: id of another benchmark whose pictures the folders hold instead, where that is so.
    """

    spec: BenchmarkSpec
    folders: tuple[Path, ...]
    paths: Mapping[str, str]
    missing: tuple[str, ...]
    examples: tuple[Missing, ...]
    looks_like: str | None = None

    @property
    def total(self) -> int:
        """Number of images that were looked for."""
        return len(self.paths) + len(self.missing)

    def summary(self) -> str:
        """What was found and what was not, in words: a head line and a line for each example."""
        below = " or ".join(str(folder) for folder in self.folders)
        head = f"{self.spec.id}: {len(self.paths):,} of {self.total:,} images found below {below}"
        if not self.missing:
            return f"{head}."
        like = f"; this looks like the images of {self.looks_like}" if self.looks_like else ""
        lines = [f"{head}, {len(self.missing):,} missing{like}."]
        lines += [f"  {one.image_id}: tried {', '.join(one.tried) or 'no path'}" for one in self.examples]
        if not self.paths and not self.looks_like:
            lines.append(f"  {_holds(self.folders)}")
        return "\n".join(lines)

    def problems(self, seen: Iterable[tuple[str, str | None]]) -> dict[str, str]:
        """By image id what is wrong with its file, in the order asked; a bar counts what is seen.

        Args:
            seen: each image id with what is wrong, or None, in any order.
        """
        found: dict[str, str] = {}
        with step_progress(f"{self.spec.id}: looking at images", len(self.paths)) as advance:
            for image_id, problem in seen:
                if problem is not None:
                    found[image_id] = problem
                advance(1)
        return {image_id: found[image_id] for image_id in self.paths if image_id in found}

    def problem_lines(self, problems: Mapping[str, str]) -> list[str]:
        """A line for each of the first images that have a problem."""
        shown = islice(problems.items(), EXAMPLES)
        return [f"  {image_id}: {self.paths[image_id]}: {problem}" for image_id, problem in shown]

    def check(self, way_out: str) -> None:
        """Refuse missing images.

        Args:
            way_out: how the caller lets a user go on without them.

        Raises:
            MissingImagesError: images are missing; the message names up to five and the paths tried.
        """
        if self.missing:
            raise MissingImagesError(
                f"{self.summary()}\n  Fix: pass the folder that holds them, or get them; {way_out}\n"
                f"  By hand: {image_card(self.spec).images}"
            )


def image_card(spec: BenchmarkSpec) -> Card:
    """The card that says where a benchmark's pictures lie: its own, or its gallery's owner's."""
    owner = spec.config.gallery_from
    return spec.card if owner is None else registry.spec(owner).card


def needs_relative_path(spec: BenchmarkSpec) -> bool:
    """Whether a picture of this benchmark is found by the publisher's relative path."""
    return any(_RELATIVE in template for template in image_card(spec).image_paths)


def image_folders(spec: BenchmarkSpec, roots: Roots) -> tuple[Path, ...]:
    """The folders below which a benchmark's pictures are looked for.

    A given root may be the folder of the pictures or its parent, as `data_dir` may be for annotations.

    Raises:
        SourceError: a folder does not exist, or none was given and `CIR_IMAGES` is not set.
    """
    card = image_card(spec)
    if roots is None:
        home = os.environ.get("CIR_IMAGES")
        beside = picture_folders(folder_of(card.name), card.image_folder or "") if card.in_folder else ()
        if not beside and not home:
            where = f" (it would hold {card.image_folder}/)" if card.image_folder else ""
            raise SourceError(
                f"{spec.id}: where are its images? Fix: name the folder that holds them (--images, "
                "or images= and roots= in Python), or set CIR_IMAGES to "
                f"its parent{where}.\n  By hand: {card.images}"
            )
        given = list(beside) or [Path(home or "") / (card.image_folder or "")]
    else:
        given = [Path(roots)] if isinstance(roots, str | Path) else [Path(root) for root in roots]
    folders: list[Path] = []
    for root in given:
        folder = root.expanduser().absolute()
        if not folder.is_dir():
            raise SourceError(
                f"{spec.id}: image folder {folder}: no such folder. Fix: pass the folder that holds the "
                f"images.\n  By hand: {card.images}"
            )
        folders.append(folder)
        if roots is not None and card.image_folder and (folder / card.image_folder).is_dir():
            folders.append(folder / card.image_folder)
    if not folders:
        raise SourceError(f"{spec.id}: roots is empty. Fix: pass the folder that holds the images.")
    return tuple(dict.fromkeys(folders))


def picture_folders(folder: Path, image_folder: str) -> tuple[Path, ...]:
    """Where the pictures of a folder of its makers may lie: beside its card, and below `CIR_IMAGES`.

    Args:
        folder: the benchmark's.
        image_folder: as its card says it; an absolute path is taken as it is. The root of all files is none:
            any file of the machine would be a picture.
    """
    home = os.environ.get("CIR_IMAGES")
    places = [folder / image_folder, *([Path(home).expanduser().absolute() / image_folder] if home else [])]
    resolved = {place: place.resolve() for place in places if place.is_dir()}
    return tuple(place for place, at in resolved.items() if at != at.parent)


def locate(
    spec: BenchmarkSpec,
    wanted: Iterable[tuple[str, str | None]],
    roots: Roots,
    *,
    data_dir: str | Path | None = None,
) -> Located:
    """Find pictures below a user's folders.

    Args:
        spec: the benchmark.
        wanted: image ids, each with the publisher's relative path or None.
        roots: folder or folders; None looks below `CIR_IMAGES`.
        data_dir: the publisher's folder, used to tell which other split a wrong folder holds.

    Raises:
        SourceError: a folder does not exist or cannot be listed.
        RecordError: an id or a path leads out of the folder.
    """
    folders = image_folders(spec, roots)
    search = Search(folders, image_card(spec).image_paths)
    paths: dict[str, str] = {}
    missing: list[str] = []
    examples: list[Missing] = []
    for image_id, relative_path in wanted:
        found = search.find(image_id, relative_path)
        if found is not None:
            paths[image_id] = found
            continue
        missing.append(image_id)
        if len(examples) < EXAMPLES:
            examples.append(Missing(image_id, tuple(search.candidates(image_id, relative_path))))
    like = None
    if len(missing) > len(paths):
        like = _other_split(spec, search, len(paths) / (len(paths) + len(missing)), data_dir)
    return Located(spec, folders, paths, tuple(missing), tuple(examples), like)


class Search:
    """Looks for pictures in listings of folders, each read once.

    Args:
        folders: where to look, in order.
        templates: paths below a folder, as `image_paths` of a card has them, in order.
    """

    def __init__(self, folders: Sequence[Path], templates: Sequence[str]) -> None:
        """See the class."""
        self._folders = [str(folder) for folder in folders]
        self._templates = templates
        self._listings: dict[str, frozenset[str]] = {}

    def find(self, image_id: str, relative_path: str | None) -> str | None:
        """The path of a picture, or None where there is none."""
        for path in self.candidates(image_id, relative_path):
            folder, name = os.path.split(path)
            names = self._listings.get(folder)
            if names is None:
                names = self._listings[folder] = _files_in(folder)
            if name in names:
                return path
        return None

    def candidates(self, image_id: str, relative_path: str | None) -> Iterator[str]:
        """Every path that is tried for a picture.

        Raises:
            RecordError: one leads out of the folder.
        """
        for folder in self._folders:
            for template in self._templates:
                if relative_path is None and _RELATIVE in template:
                    continue
                inside = template.format(image_id=image_id, relative_path=relative_path)
                if inside.startswith("/") or (".." in inside and ".." in PurePosixPath(inside).parts):
                    raise RecordError(
                        f"image {image_id!r}: its path {inside!r} leads out of the image folder. Fix: get "
                        "the publisher's file again, or correct that record."
                    )
                yield os.path.join(folder, inside)  # noqa: PTH118  (pathlib is ten times as slow here)


def _files_in(folder: str) -> frozenset[str]:
    """Names of the files in a folder; a link to nothing is none."""
    try:
        with os.scandir(folder) as entries:
            return frozenset(entry.name for entry in entries if entry.is_file())
    except (FileNotFoundError, NotADirectoryError):
        return frozenset()
    except OSError as error:
        raise SourceError(
            f"{folder}: cannot be listed: {error.strerror}. Fix: check its permissions."
        ) from error


def _holds(folders: Sequence[Path]) -> str:
    """What is in the folders instead, by example."""
    seen: list[str] = []
    for folder in folders:
        for parent, names, files in os.walk(folder):
            names.sort()
            inside = (Path(parent, name).relative_to(folder).as_posix() for name in sorted(files))
            seen += islice(inside, 3 - len(seen))
            if len(seen) >= 3:
                return f"There are files such as {', '.join(seen)}."
    return f"There are files such as {', '.join(seen)}." if seen else "No file is there."


def _other_split(
    spec: BenchmarkSpec, search: Search, share: float, data_dir: str | Path | None
) -> str | None:
    """The benchmark whose pictures the folders hold instead: most of its first images are there."""
    family = {spec.id, spec.config.gallery_from}
    best, best_share = None, max(share, 0.5)
    card = image_card(spec)
    for config, details in card.configs.items():
        other = registry.spec(f"{card.name}/{config}")
        if other.id in family or details.gallery_from is not None:
            continue
        sample = list(islice(gallery_paths(other, data_dir), _SAMPLE))
        found = sum(search.find(image_id, path) is not None for image_id, path in sample)
        if sample and found / len(sample) > best_share:
            best, best_share = other.id, found / len(sample)
    return best


def gallery_paths(
    spec: BenchmarkSpec, data_dir: str | Path | None = None
) -> Iterator[tuple[str, str | None]]:
    """Ids and paths of a gallery's images as `manifest_paths`, from what is here; none where nothing is.

    Nothing is downloaded or prepared, and queries are not read where a list of the images is there.
    """
    from cir_datasets.builders import builder_class
    from cir_datasets.prepared import last_prepared

    prepared = last_prepared(spec)
    if prepared is not None and prepared.images_file is not None:
        yield from manifest_paths(prepared)
        return
    needed = spec.config.gallery_files or spec.config.files
    given = [] if data_dir is None else [Path(data_dir).expanduser()]
    near = [place for each in given for place in (each, each / spec.card.source.folder)]
    files = {}
    for name in needed:
        path = next((place / name for place in near if (place / name).is_file()), here(spec.card, name))
        if path is None:
            return
        files[name] = path
    for row in builder_class(spec.card.name)(spec, files).images() or ():
        yield row["image_id"], row["relative_path"]


def manifest_paths(prepared: Prepared) -> Iterator[tuple[str, str | None]]:
    """Ids of a prepared benchmark's gallery, each with the publisher's relative path or None.

    Raises:
        SourceError: the list of its gallery is not available.
    """
    from cir_datasets.prepared import manifest_file
    from cir_datasets.rows import read_table

    table = read_table(manifest_file(prepared), columns=["image_id", "relative_path"])
    for batch in table.to_batches(10_000):
        yield from zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)
