"""Which of a benchmark's pictures a user has: what `cir datasets images` reports."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cir_datasets.common.progress import done_in_parallel
from cir_datasets.images.locate import EXAMPLES, Located, Roots, image_card, locate, manifest_paths
from cir_datasets.images.picture import problem_of
from cir_datasets.prepared import Prepared, ensure
from cir_datasets.rows import read_table
from cir_datasets.rows.benchmark import SUBSET

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec


@dataclass(frozen=True)
class Coverage:
    """Which pictures of a benchmark are there and can be used.

    Args:
        located: which were found, and where they were looked for.
        listed_by: `gallery`, or `rows` where the gallery's list is not available and the images that queries
            or sessions name were looked for instead.
        unusable: by image id, why a file that is there is not a picture.
        opened: whether every file was decoded; else only empty files were looked for.
    """

    located: Located
    listed_by: str
    unusable: Mapping[str, str]
    opened: bool

    @property
    def spec(self) -> BenchmarkSpec:
        """The benchmark."""
        return self.located.spec

    @property
    def complete(self) -> bool:
        """Whether every picture is there and none was found to be unusable."""
        return not self.located.missing and not self.unusable

    def to_dict(self) -> dict[str, Any]:
        """The report for a program."""
        located = self.located
        return {
            "benchmark": self.spec.id,
            "folders": [str(folder) for folder in located.folders],
            "listed_by": self.listed_by,
            "images": located.total,
            "found": len(located.paths),
            "missing": len(located.missing),
            "missing_examples": [
                {"image_id": one.image_id, "tried": list(one.tried)} for one in located.examples
            ],
            "looks_like": located.looks_like,
            "opened": self.opened,
            "unusable": len(self.unusable),
            "unusable_examples": [
                {"image_id": image_id, "path": located.paths[image_id], "problem": problem}
                for image_id, problem in list(self.unusable.items())[:EXAMPLES]
            ],
            "complete": self.complete,
        }

    def text(self) -> str:
        """The report for a person."""
        lines = [self.located.summary()]
        if self.listed_by == "rows":
            lines.append(
                "  The gallery's list is not available: these are the images that queries or sessions name."
            )
        if self.unusable:
            what = "unreadable" if self.opened else "empty"
            lines.append(f"{self.spec.id}: {len(self.unusable):,} {what} files.")
            lines += self.located.problem_lines(self.unusable)
        if not self.complete:
            lines.append(f"  By hand: {image_card(self.spec).images}")
        return "\n".join(lines)


def image_coverage(
    benchmark_id: str,
    roots: Roots = None,
    *,
    open_files: bool = False,
    workers: int | None = None,
    data_dir: str | Path | None = None,
    verification_mode: str | None = None,
) -> Coverage:
    """Which of a benchmark's pictures are in a user's folders.

    Args:
        benchmark_id: such as `cirr/val`.
        roots: folder or folders with the pictures, or their parent; None looks below `CIR_IMAGES`.
        open_files: decode every picture too; without it only missing and empty files are found.
        workers: how many files are read at once; None is the number of processors.
        data_dir: the publisher's folder or its parent.
        verification_mode: `all_checks`, or `no_checks` to skip the counts; None takes
            `CIR_VERIFICATION_MODE`, else `all_checks`.

    Raises:
        SourceError: a folder does not exist, or none was given and `CIR_IMAGES` is not set.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as empty:
        ...     coverage = image_coverage("shapes/val", empty)
        >>> len(coverage.located.paths), coverage.complete
        (0, False)
    """
    prepared = ensure(benchmark_id, data_dir=data_dir, verification_mode=verification_mode)
    located, listed_by = located_images(prepared, roots, data_dir)
    files = located.paths.items()
    checked = (
        done_in_parallel(
            functools.partial(problem_of, formats=image_card(located.spec).image_formats), files, workers
        )
        if open_files
        else ((image_id, _emptiness(path)) for image_id, path in files)
    )
    return Coverage(located, listed_by, located.problems(checked), open_files)


def image_paths(
    benchmark_id: str,
    roots: Roots = None,
    *,
    allow_missing: bool = False,
    data_dir: str | Path | None = None,
    verification_mode: str | None = None,
) -> dict[str, Path]:
    """Where each picture of a benchmark's gallery lies.

    Args:
        benchmark_id: such as `cirr/val`.
        roots: folder or folders with the pictures, or their parent; None looks below `CIR_IMAGES`.
        allow_missing: leave out what is missing instead of refusing.
        data_dir: the publisher's folder or its parent.
        verification_mode: `all_checks`, or `no_checks` to skip the counts; None takes
            `CIR_VERIFICATION_MODE`, else `all_checks`.

    Returns:
        Absolute paths by image id, in the manifest's order. Where the gallery's list is not available these
        are the images that queries or sessions name.

    Raises:
        MissingImagesError: images are missing; the message counts them and names up to five.
        SourceError: a folder does not exist, or none was given and `CIR_IMAGES` is not set.
    """
    prepared = ensure(benchmark_id, data_dir=data_dir, verification_mode=verification_mode)
    located, _ = located_images(prepared, roots, data_dir)
    if not allow_missing:
        located.check("or pass allow_missing=True to leave them out.")
    return {image_id: Path(path) for image_id, path in located.paths.items()}


def located_images(prepared: Prepared, roots: Roots, data_dir: str | Path | None) -> tuple[Located, str]:
    """Where a prepared benchmark's pictures are, and whether `gallery` or `rows` said which they are."""
    if prepared.images_file is not None:
        return locate(prepared.spec, manifest_paths(prepared), roots, data_dir=data_dir), "gallery"
    named = dict.fromkeys(_named(prepared))
    return locate(prepared.spec, ((one, None) for one in named), roots, data_dir=data_dir), "rows"


def _named(prepared: Prepared) -> Iterator[str]:
    """Every image that the rows name, as often as they do."""
    if prepared.spec.kind == "multi_turn":
        table = read_table(prepared.rows_file, columns=["turns", "ground_truth_ids"])
        for batch in table.to_batches(10_000):
            for turns, truths in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                yield from (turn["reference_image_id"] for turn in turns if turn["reference_image_id"])
                yield from truths
        return
    single = ("reference_image_id", "target_image_id")
    many = ("positive_image_ids", "negative_image_ids", SUBSET)
    for batch in read_table(prepared.rows_file, columns=[*single, *many]).to_batches(10_000):
        for name in single:
            yield from (image_id for image_id in batch.column(name).to_pylist() if image_id)
        for name in many:
            yield from (image_id for images in batch.column(name).to_pylist() for image_id in images)


def _emptiness(path: str) -> str | None:
    try:
        return None if os.stat(path).st_size else "the file is empty"  # noqa: PTH116  (called for each image)
    except OSError as error:
        return f"cannot be looked at: {error.strerror}"
