"""Prepared benchmarks: the publishers' files read, checked and written once as Parquet.

`cache_home()/prepared/<name>/<config>/<version>/<key>/` holds `rows.parquet`, `images.parquet` (where the
gallery is at hand) and `meta.json`. The key is a hash of the source files' content, the builder's version,
the card's version and the checks made, and it is computed anew at every load: a changed source is never
hidden by an older cache. A folder appears in one step, so that two processes at once do no harm.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from cir_datasets import registry, sources
from cir_datasets.benchmark import Benchmark
from cir_datasets.builders import builder_class
from cir_datasets.checks import check_counts, check_images, check_rows
from cir_datasets.errors import DatasetError
from cir_datasets.hashing import data_hash, gallery_hash
from cir_datasets.paths import cache_home
from cir_datasets.records import image_schema
from cir_metrics.errors import CallError

if TYPE_CHECKING:
    from cir_datasets.builders.base import BenchmarkBuilder
    from cir_datasets.registry import BenchmarkSpec

FORMAT = 1
"""+1 whenever the layout of a prepared folder changes; part of the key."""

_MODES = ("all_checks", "basic_checks", "no_checks")


@dataclass(frozen=True)
class Prepared:
    """A prepared benchmark on disk."""

    spec: BenchmarkSpec
    folder: Path
    meta: Mapping[str, Any]

    @property
    def key(self) -> str:
        """Hash of everything that the rows depend on; the folder's name."""
        return self.folder.name

    @property
    def rows_file(self) -> Path:
        """Parquet of the queries or sessions."""
        return self.folder / "rows.parquet"

    @property
    def images_file(self) -> Path | None:
        """Parquet of the gallery manifest, or None where its list was not at hand."""
        return None if self.meta["gallery"] is None else self.folder / "images.parquet"


def prepare(
    benchmark_id: str,
    *,
    data_dir: str | Path | None = None,
    verification_mode: str = "all_checks",
    force: bool = False,
) -> Path:
    """Read, check and write a benchmark; the folder that holds it.

    Args:
        benchmark_id: such as `cirr/val`.
        data_dir: the publisher's folder or its parent; None looks below `CIR_DATA_HOME`, then downloads.
        verification_mode: `all_checks`, or `no_checks` to skip the counts (scores then say so).
        force: prepare again, and ask the publisher again for files that the card does not pin.

    Raises:
        UnknownNameError: no benchmark has that id.
        SourceError: a publisher's file cannot be found or fetched.
        RecordError: a record breaks the format.
        CountError: the rows are not as many as the card says.

    Example:
        >>> folder = prepare("shapes/val")
        >>> sorted(entry.name for entry in folder.iterdir())
        ['images.parquet', 'meta.json', 'rows.parquet']
    """
    return ensure(benchmark_id, data_dir=data_dir, verification_mode=verification_mode, force=force).folder


def load(
    benchmark_id: str, *, data_dir: str | Path | None = None, verification_mode: str = "all_checks"
) -> Benchmark:
    """A benchmark's rows, gallery and protocol; prepared at first use, never through `datasets`.

    Args:
        benchmark_id: such as `cirr/val`.
        data_dir: the publisher's folder or its parent; None looks below `CIR_DATA_HOME`, then downloads.
        verification_mode: `all_checks`, or `no_checks` to skip the counts (scores then say so).

    Raises:
        UnknownNameError: no benchmark has that id.
        SourceError: a publisher's file cannot be found or fetched.
        RecordError: a record breaks the format.
        CountError: the rows are not as many as the card says.

    Example:
        >>> benchmark = load("shapes/val")
        >>> benchmark.id, benchmark.multi_turn
        ('shapes/val', False)
    """
    prepared = ensure(benchmark_id, data_dir=data_dir, verification_mode=verification_mode)
    meta = prepared.meta
    images = prepared.images_file
    return Benchmark(
        spec=prepared.spec,
        table=read_table(prepared.rows_file),
        gallery=None
        if images is None
        else read_table(images, columns=["image_id"]).column("image_id").to_pylist(),
        data_hash=meta["data_hash"],
        gallery_hash=meta["gallery_hash"],
        pinned=meta["pinned"],
        checks_skipped=tuple(meta["checks_skipped"]),
        source_hashes={name: entry["sha256"] for name, entry in meta["sources"].items()},
    )


def ensure(
    benchmark_id: str,
    *,
    data_dir: str | Path | None = None,
    verification_mode: str = "all_checks",
    force: bool = False,
) -> Prepared:
    """The prepared benchmark, made if its key is not there yet (see `prepare`).

    Where no source file is at hand (it was prepared with a `data_dir`, say, and none is given now), what was
    prepared last is taken before anything is downloaded.
    """
    if verification_mode not in _MODES:
        raise CallError(f"verification_mode={verification_mode!r}; it is one of {', '.join(_MODES)}.")
    spec = registry.spec(benchmark_id)
    skipped = ("counts",) if verification_mode == "no_checks" else ()
    if data_dir is None and not force and not sources.at_hand(spec):
        last = last_prepared(spec)
        if last is not None and _is_current(last, skipped):
            return last
    files = sources.resolve(spec, data_dir, refresh=force)
    builder = builder_class(spec.card.name)(spec, {name: file.path for name, file in files.items()})
    folder = _folder(spec, _key(builder, files, skipped))
    if force or not (folder / "meta.json").is_file():
        _make(builder, files, skipped, folder)
    return Prepared(spec, folder, orjson.loads((folder / "meta.json").read_bytes()))


def last_prepared(spec: BenchmarkSpec) -> Prepared | None:
    """The benchmark as it was last prepared here, whatever its sources are now; None where it never was."""
    home = _home(spec)
    folders = [path.parent for path in home.glob("*/meta.json")] if home.is_dir() else []
    if not folders:
        return None
    folder = max(folders, key=lambda path: path.stat().st_mtime_ns)
    return Prepared(spec, folder, orjson.loads((folder / "meta.json").read_bytes()))


def read_table(path: Path, columns: list[str] | None = None) -> pa.Table:
    """A Parquet file of a prepared folder.

    Raises:
        DatasetError: the file is damaged.
    """
    try:
        return pq.ParquetFile(path).read(columns=columns)  # `pq.read_table` would import pandas
    except (pa.ArrowInvalid, OSError) as error:
        raise DatasetError(
            f"{path}: cannot be read ({error}). Fix: `cir datasets prepare --force` writes it anew."
        ) from error


def _is_current(prepared: Prepared, skipped: tuple[str, ...]) -> bool:
    """Whether this version of the code would prepare the same, with the same checks."""
    meta = prepared.meta
    version = builder_class(prepared.spec.card.name).version
    return (meta["format"], meta["builder_version"], tuple(meta["checks_skipped"])) == (
        FORMAT,
        version,
        skipped,
    )


def _key(builder: BenchmarkBuilder, files: Mapping[str, sources.SourceFile], skipped: tuple[str, ...]) -> str:
    parts = {
        "format": FORMAT,
        "builder": builder.version,
        "card": builder.spec.card.version,
        "skipped": skipped,
        "sources": {name: file.sha256 for name, file in files.items()},
    }
    return hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


def _folder(spec: BenchmarkSpec, key: str) -> Path:
    return _home(spec) / key


def _home(spec: BenchmarkSpec) -> Path:
    return cache_home() / "prepared" / spec.card.name / spec.config_name / str(spec.card.version)


def _make(
    builder: BenchmarkBuilder, files: Mapping[str, sources.SourceFile], skipped: tuple[str, ...], folder: Path
) -> None:
    spec = builder.spec
    rows = list(builder.rows())
    manifest = builder.images()
    gallery = None if manifest is None else list(manifest)
    origin = files[spec.config.files[0]].path if spec.config.files else spec.id
    if gallery is not None:
        check_images(gallery, _gallery_origin(builder, files))
    ids = None if gallery is None else [image["image_id"] for image in gallery]
    check_rows(spec, rows, ids, origin)
    if "counts" not in skipped:
        check_counts(spec, rows, None if ids is None else len(ids), origin)
    meta = {
        "format": FORMAT,
        "benchmark": spec.id,
        "benchmark_version": spec.card.version,
        "builder_version": builder.version,
        "rows": len(rows),
        "gallery": None if ids is None else len(ids),
        "data_hash": data_hash(rows),
        "gallery_hash": None if ids is None else gallery_hash(ids),
        "pinned": all(file.pinned for file in files.values()),
        "checks_skipped": list(skipped),
        "sources": {name: _described(file) for name, file in files.items()},
    }
    tables = {"rows": pa.Table.from_pylist(rows, schema=builder.schema())}
    if gallery is not None:
        tables["images"] = pa.Table.from_pylist(gallery, schema=image_schema())
    _write(folder, tables, meta)


def _gallery_origin(builder: BenchmarkBuilder, files: Mapping[str, sources.SourceFile]) -> Path | str:
    source = builder.gallery_source or builder.spec
    names = [*source.config.gallery_files, *source.config.files]
    return next((files[name].path for name in names if name in files), builder.spec.id)


def _described(file: sources.SourceFile) -> dict[str, Any]:
    return {
        "path": str(file.path),
        "sha256": file.sha256,
        "num_bytes": file.num_bytes,
        "pinned": file.pinned,
        "origin": file.origin,
        "revision": file.revision,
    }


def _write(folder: Path, tables: Mapping[str, pa.Table], meta: Mapping[str, Any]) -> None:
    """Write a prepared folder beside its place and move it there in one step."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=".making-", dir=folder.parent))
    except OSError as error:
        raise DatasetError(
            f"{folder.parent}: cannot be written: {error.strerror}. Fix: set CIR_CACHE_HOME "
            "to a folder of yours."
        ) from error
    try:
        made = staging / "made"
        made.mkdir()
        for name, table in tables.items():
            pq.write_table(table, made / f"{name}.parquet")
        (made / "meta.json").write_bytes(orjson.dumps(meta, option=orjson.OPT_INDENT_2))
        _move(made, folder)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _move(made: Path, folder: Path) -> None:
    """Put a finished folder in its place, where another process may have put the same one before."""
    try:
        made.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
        # Same key, hence same content: whether a reader sees the old file or the new one, it is right.
        for path in made.iterdir():
            path.replace(folder / path.name)
