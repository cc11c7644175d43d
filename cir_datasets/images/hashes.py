"""A gallery's manifest with hashes and sizes filled in from a user's own picture files.

The publishers rarely say what their files are. What is measured here stays beside the benchmark and changes
nothing of it: neither its rows, nor its manifest, nor any signature. It tells whether two people hold
the same pictures, and which pictures of a gallery are one and the same (CIRCLED's construction must know).
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from cir_datasets import registry
from cir_datasets.common.atomic import whole_file, write_errors
from cir_datasets.common.key_values import KeyValues
from cir_datasets.common.paths import PictureFormat, cache_home
from cir_datasets.common.progress import done_in_parallel, step_progress
from cir_datasets.common.terminal import counted
from cir_datasets.errors import HashingError, SourceError
from cir_datasets.images.locate import EXAMPLES, Located, Roots, image_card, locate, manifest_paths
from cir_datasets.images.picture import PictureFacts, read_picture
from cir_datasets.prepared import ensure, manifest_table
from cir_datasets.rows.records import Row, image_schema

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec

_MEASURED = ("sha256", "num_bytes", "width", "height", "pixel_sha256")
_BENCHMARK_KEY = b"cir_benchmark"
_BATCH_ROWS = 10_000
_KEPT_AT_ONCE = 64
"""Files; what was read in at most so many of them is lost to a kill."""


@dataclass(frozen=True)
class HashReport:
    """What `hash_images` found.

    Args:
        located: which pictures were found.
        file: the Parquet that was written.
        read: number of files that were read now; the others were known from an earlier run.
        unreadable: by image id, why a file cannot be decoded.
        differing: by image id, which of the publisher's values a file does not have.
        byte_identical: groups of image ids whose files are the same byte by byte.
        pixel_identical: groups of image ids whose pictures are the same although their files are not.
    """

    located: Located
    file: Path
    read: int
    unreadable: Mapping[str, str]
    differing: Mapping[str, tuple[str, ...]]
    byte_identical: Sequence[Sequence[str]]
    pixel_identical: Sequence[Sequence[str]]

    @property
    def sound(self) -> bool:
        """Whether every picture found can be decoded, and is the publisher's where that is known."""
        return not (self.unreadable or self.differing)

    def to_dict(self) -> dict[str, Any]:
        """The report for a program; groups are given whole."""
        return {
            "benchmark": self.located.spec.id,
            "file": str(self.file),
            "images": self.located.total,
            "found": len(self.located.paths),
            "missing": len(self.located.missing),
            "read": self.read,
            "unreadable": dict(self.unreadable),
            "differing": {image_id: list(names) for image_id, names in self.differing.items()},
            "byte_identical": [list(group) for group in self.byte_identical],
            "pixel_identical": [list(group) for group in self.pixel_identical],
            "sound": self.sound,
        }

    def text(self) -> str:
        """The report for a person: counts, and up to five examples of each finding."""
        known = len(self.located.paths) - self.read
        lines = [self.located.summary(), f"  {counted(self.read, 'file')} read, {known:,} known from before"]
        faults = [f"{one}: {self.located.paths[one]}: {why}" for one, why in self.unreadable.items()]
        lines += _listed("unreadable (get these files again)", faults)
        lines += _listed(
            "not the publisher's", [f"{one}: {', '.join(names)}" for one, names in self.differing.items()]
        )
        lines += _listed("groups of identical files", [", ".join(group) for group in self.byte_identical])
        lines += _listed(
            "groups of identical pictures in different files",
            [", ".join(group) for group in self.pixel_identical],
        )
        return "\n".join([*lines, f"  {self.file}"])


def hash_images(
    benchmark_id: str,
    roots: Roots = None,
    *,
    out: str | Path | None = None,
    workers: int | None = None,
    allow_missing: bool = False,
    data_dir: str | Path | None = None,
    verification_mode: str | None = None,
) -> HashReport:
    """Measure every picture of a gallery: sha256, size, width, height, sha256 of the decoded RGB pixels.

    A run that was killed goes on where it was: what was read is kept, and a file is read again only if its
    size or time of change differs. The result appears in one step.

    Args:
        benchmark_id: such as `cirr/val`.
        roots: folder or folders with the pictures, or their parent; None looks below `CIR_IMAGES`.
        out: the Parquet to write; None is the place where `hashed_manifest` looks.
        workers: how many files are read at once; None is the number of processors.
        allow_missing: leave null what is missing instead of refusing.
        data_dir: the publisher's folder or its parent.
        verification_mode: `all_checks`, or `no_checks` to skip the counts; None takes
            `CIR_VERIFICATION_MODE`, else `all_checks`.

    Raises:
        MissingImagesError: images are missing; nothing has been read then.
        SourceError: a folder does not exist, or the list of the gallery is not available.
        HashingError: what was read or the result cannot be written.

    Example:
        >>> import tempfile
        >>> from cir_datasets.shapes import picture
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Path(folder, "val").mkdir()
        ...     for number in range(2):
        ...         picture(f"val-{number:06d}").save(Path(folder, f"val/{number:06d}.png"))
        ...     report = hash_images("shapes/val", folder, out=f"{folder}/out.parquet", allow_missing=True)
        >>> report.read, report.located.total, report.differing
        (2, 3940, {})
    """
    prepared = ensure(benchmark_id, data_dir=data_dir, verification_mode=verification_mode)
    located = locate(prepared.spec, manifest_paths(prepared), roots, data_dir=data_dir)
    if not allow_missing:
        located.check("or pass allow_missing=True (--allow-missing) to leave null what is missing.")
    file = hash_file(prepared.spec) if out is None else Path(out).expanduser().absolute()
    facts, read = _measured(located, workers)
    manifest = manifest_table(prepared)
    filled = _filled(manifest, facts)
    _write(filled, file, prepared.spec)
    return HashReport(
        located=located,
        file=file,
        read=read,
        unreadable={one: facts[one].problem or "" for one in located.paths if facts[one].problem},
        differing=_differing(manifest, facts),
        byte_identical=_groups((one, facts[one].sha256) for one in located.paths),
        pixel_identical=_pixel_groups(facts, located.paths),
    )


def hashed_manifest(benchmark_id: str, *, file: str | Path | None = None) -> list[Row]:
    """The manifest of a gallery with what `hash_images` measured in the user's own files.

    Args:
        benchmark_id: such as `cirr/val`.
        file: the Parquet that `hash_images` wrote; None is its usual place.

    Returns:
        Rows as `image_manifest` gives them, with `sha256`, `pixel_sha256`, `num_bytes`, `width` and `height`
        of the files; null for those that were missing.

    Raises:
        SourceError: the gallery has not been hashed here.
        HashingError: the file is damaged, or another benchmark's.
    """
    spec = registry.spec(benchmark_id)
    path = hash_file(spec) if file is None else Path(file).expanduser().absolute()
    if not path.is_file():
        raise SourceError(
            f"{path}: no such file: the images of {spec.id} have not been hashed here. "
            f"Fix: cir datasets hash {spec.id} --images DIR"
        )
    try:
        with closing(pq.ParquetFile(path)) as opened:
            table = opened.read()
    except (pa.ArrowInvalid, OSError) as error:
        raise HashingError(f"{path}: cannot be read ({error}). Fix: hash the images again.") from error
    named = (table.schema.metadata or {}).get(_BENCHMARK_KEY, b"").decode()
    if named != _stamp(spec):
        raise HashingError(
            f"{path}: holds the images of {named or 'no benchmark'}, not of {_stamp(spec)}. "
            f"Fix: cir datasets hash {spec.id} --images DIR"
        )
    rows: list[Row] = table.to_pylist()
    return rows


def hash_file(spec: BenchmarkSpec) -> Path:
    """Where the hashed manifest of a benchmark is kept."""
    return cache_home() / "hashes" / f"{spec.id}.parquet"


def facts_file(spec: BenchmarkSpec) -> Path:
    """Where it is kept what was read; benchmarks over the same pictures share it."""
    return cache_home() / "hashes" / f"{image_card(spec).name}.sqlite"


def _stamp(spec: BenchmarkSpec) -> str:
    return f"{spec.id}#{spec.card.version}"


def _measured(located: Located, workers: int | None) -> tuple[dict[str, PictureFacts], int]:
    """Facts by image id, and how many files were read for them now."""
    facts: dict[str, PictureFacts] = {}
    todo: dict[str, str] = {}
    spec = located.spec
    kept = KeyValues(facts_file(spec), HashingError)
    _take_over(facts_file(spec).with_suffix(".journal.jsonl"), kept)
    for image_id, path in located.paths.items():
        known = _known(kept, path)
        if known is None:
            todo[image_id] = path
        else:
            facts[image_id] = known
    with step_progress(f"{spec.id}: hashing images", len(located.paths)) as advance:
        advance(len(facts))
        read = functools.partial(_read, formats=image_card(spec).image_formats)
        fresh: dict[str, bytes] = {}
        try:
            for image_id, found in done_in_parallel(read, todo.items(), workers):
                facts[image_id] = found
                fresh[todo[image_id]] = orjson.dumps(asdict(found))
                if len(fresh) == _KEPT_AT_ONCE:
                    kept.put(fresh)
                    fresh.clear()
                advance(1)
        finally:
            if fresh:
                kept.put(fresh)
    return facts, len(todo)


def _known(kept: KeyValues, path: str) -> PictureFacts | None:
    """What was read in a file before, if it is still the same file by its size and time of change."""
    try:
        status = os.stat(path)  # noqa: PTH116  (called for each image)
    except OSError as error:
        raise _not_readable(path, error) from error
    content = kept.get(path)
    known = None if content is None else PictureFacts(**orjson.loads(content))
    same = known is not None and (known.num_bytes, known.mtime_ns) == (status.st_size, status.st_mtime_ns)
    return known if same else None


def _take_over(journal: Path, kept: KeyValues) -> None:
    """Take over what versions up to 0.1 kept, a line a file; the last line of a file counts."""
    if not journal.is_file():
        return
    lines: dict[str, bytes] = {}
    for line in journal.read_bytes().splitlines():
        with contextlib.suppress(orjson.JSONDecodeError, KeyError, TypeError):
            entry = orjson.loads(line)  # one that was cut short by a kill is passed over
            path = entry.pop("path")
            lines[path] = orjson.dumps(asdict(PictureFacts(**entry)))
    kept.put(lines)
    journal.unlink()


def _read(path: str, formats: Collection[PictureFormat]) -> PictureFacts:
    try:
        return read_picture(path, formats)
    except OSError as error:
        raise _not_readable(path, error) from error


def _not_readable(path: str, error: OSError) -> HashingError:
    return HashingError(
        f"{path}: cannot be read: {error.strerror}. Fix: check its permissions; what was hashed so far is "
        "kept."
    )


def _filled(manifest: pa.Table, facts: Mapping[str, PictureFacts]) -> pa.Table:
    """The manifest with what was measured; what the publisher says stays only where there is no file."""
    rows: list[Row] = manifest.to_pylist()
    for row in rows:
        found = facts.get(row["image_id"])
        if found is not None:
            row.update((name, getattr(found, name)) for name in _MEASURED)
    return pa.Table.from_pylist(rows, schema=image_schema())


def _differing(manifest: pa.Table, facts: Mapping[str, PictureFacts]) -> dict[str, tuple[str, ...]]:
    """Which values of the publisher's manifest a file does not have."""
    found: dict[str, tuple[str, ...]] = {}
    for batch in manifest.select(["image_id", *_MEASURED]).to_batches(_BATCH_ROWS):
        for row in batch.to_pylist():
            one = facts.get(row["image_id"])
            if one is not None and one.problem is None:
                names = tuple(name for name in _MEASURED if row[name] not in (None, getattr(one, name)))
                if names:
                    found[row["image_id"]] = names
    return found


def _groups(keyed: Iterable[tuple[str, Any]]) -> list[list[str]]:
    """Ids that share a key, in groups of two and more, in the order of their first member."""
    groups: dict[Any, list[str]] = defaultdict(list)
    for image_id, key in keyed:
        groups[key].append(image_id)
    return [group for group in groups.values() if len(group) > 1]


def _pixel_groups(facts: Mapping[str, PictureFacts], image_ids: Iterable[str]) -> list[list[str]]:
    """Groups of equal pictures that are not all one and the same file."""
    keyed = (
        (one, (facts[one].width, facts[one].height, facts[one].pixel_sha256))
        for one in image_ids
        if facts[one].problem is None
    )
    return [group for group in _groups(keyed) if len({facts[one].sha256 for one in group}) > 1]


def _write(table: pa.Table, file: Path, spec: BenchmarkSpec) -> None:
    """Write the Parquet beside its place and move it there."""
    fix = "pass out= (--out), a file in a folder of yours; what was hashed so far is kept."
    with write_errors(file, HashingError, fix):
        if file.is_file() and file.stat().st_size and file.open("rb").read(4) != b"PAR1":
            raise HashingError(f"{file}: no Parquet, so it is not overwritten. Fix: name another --out.")
        with whole_file(file) as out:
            pq.write_table(table.replace_schema_metadata({_BENCHMARK_KEY: _stamp(spec).encode()}), out)


def _listed(what: str, lines: Sequence[str]) -> list[str]:
    if not lines:
        return []
    return [f"  {len(lines):,} {what}:", *(f"    {line}" for line in lines[:EXAMPLES])]
