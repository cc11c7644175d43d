"""Prepared benchmarks: the publishers' files read, checked, written once as Parquet, and loaded from there.

`cache_home()/prepared/<name>/<config>/<version>/<key>/` holds `rows.parquet`, `images.parquet` and
`places.parquet` (where the gallery is available) and `meta.json`, which holds the sha256 of every file and of
itself. They are computed anew whenever a benchmark is loaded: a bit that changed on the disk is an error,
never another score. A folder that is not whole, or of another layout, is left aside and made anew.

The key is a hash of the source files' content, the builder's version, the card's version and the checks made.
It is computed anew at every load, too: a changed source is never hidden by an older cache. A folder appears
in one step (`tables`), so that two processes at once do no harm.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa

from cir_datasets import registry
from cir_datasets.common.paths import cache_home, sha256_of
from cir_datasets.errors import (
    WITHOUT_CHECKS,
    DamagedError,
    IntegrityError,
    SourceError,
    UnpinnedDataWarning,
)
from cir_datasets.registry import BenchmarkSpec
from cir_metrics.errors import CallError

if TYPE_CHECKING:
    import pyarrow as pa

    from cir_datasets.registry.overlays import Overlay
    from cir_datasets.rows.benchmark import Benchmark
    from cir_datasets.rows.records import Row
    from cir_datasets.sources import SourceFile

FORMAT = 4
"""+1 whenever the layout of a prepared folder changes; part of the key."""
META_FILE = "meta.json"
CHECKS_VARIABLE = "CIR_VERIFICATION_MODE"
"""Environment variable: the checks that are made where the caller does not say which."""

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
        """Parquet of the gallery manifest, or None where its list was not available."""
        return None if self.meta["gallery"] is None else self.folder / "images.parquet"


def home_of(spec: BenchmarkSpec) -> Path:
    """The folder of a benchmark's prepared folders."""
    return cache_home() / "prepared" / spec.card.name / spec.config_id / str(spec.card.version)


def last_prepared(spec: BenchmarkSpec) -> Prepared | None:
    """The benchmark as it was last prepared here, whatever its sources are now; None where it never was."""
    return next((found for found in whole_folders(spec) if is_sound(found)), None)


def is_here(spec: BenchmarkSpec) -> bool:
    """Whether a benchmark is loaded without a download."""
    from cir_datasets.sources import at_hand

    return at_hand(spec) or last_prepared(spec) is not None


def whole_folders(spec: BenchmarkSpec) -> Iterator[Prepared]:
    """The prepared folders of a benchmark, the youngest first; those that are not whole are left out."""
    youngest_first = sorted(_meta_files(spec), key=lambda path: path.parent.stat().st_mtime_ns, reverse=True)
    for path in youngest_first:
        found = intact(spec, path.parent)
        if found is not None:
            yield found


def _meta_files(spec: BenchmarkSpec) -> list[Path]:
    home = home_of(spec)
    return list(home.glob(f"*/{META_FILE}")) if home.is_dir() else []


def of_another_layout(spec: BenchmarkSpec) -> bool:
    """Whether all that was prepared of a benchmark is of another version's layout."""
    found = [meta for path in _meta_files(spec) if (meta := read_meta(path.parent)) is not None]
    return bool(found) and all(meta.get("format") != FORMAT for meta in found)


def intact(spec: BenchmarkSpec, folder: Path) -> Prepared | None:
    """The prepared folder, or None where it is not there, not whole or of another layout: it is made anew.

    Sizes are looked at here, which takes no time; what the files hold is `verified`.
    """
    meta = read_meta(folder)
    if meta is None or meta.get("format") != FORMAT:
        return None
    found = Prepared(spec, folder, meta)
    if not is_sound(found):
        return found
    try:
        sizes = {name: (folder / name).stat().st_size for name in meta["files"]}
    except OSError:
        return None
    return found if all(sizes[name] == file["num_bytes"] for name, file in meta["files"].items()) else None


def is_sound(prepared: Prepared) -> bool:
    """Whether `meta.json` is what was written."""
    return meta_hash(prepared.meta) == prepared.meta.get("sha256")


def meta_hash(meta: Mapping[str, Any]) -> str:
    """sha256 (hex) of the canonical JSON of what `meta.json` holds beside its own `sha256`."""
    held = {name: value for name, value in meta.items() if name != "sha256"}
    return hashlib.sha256(orjson.dumps(held, option=orjson.OPT_SORT_KEYS)).hexdigest()


def verified(prepared: Prepared) -> Prepared:
    """The prepared benchmark, after a look at every bit of its files.

    Raises:
        DamagedError: a file holds something else than what was written.
    """
    folder, damaged, root = prepared.folder, META_FILE, None
    if is_sound(prepared):
        files = prepared.meta["files"].items()
        names = (name for name, file in files if sha256_of(folder / name) != file["sha256"])
        first = next(names, None)
        if first is None:
            return prepared
        damaged = first
        root = _given_root(prepared)
    command = f"cir datasets prepare --force {prepared.spec.id}"
    command += "" if root is None else f" --data-dir {shlex.quote(root)}"
    # An overlay that is not registered has no id that a command knows.
    way = f"remove {folder}" if prepared.spec.overlay else f"`{command}`, or remove {folder}"
    raise DamagedError(
        f"{folder / damaged}: its sha256 is not the one that was noted when {prepared.spec.id} was prepared. "
        "A disk or a program has changed it, and scores might change with it. "
        f"Fix: {way}, which is made anew when it is needed."
    )


def _given_root(prepared: Prepared) -> str | None:
    """The folder that was given as `data_dir` when a benchmark was prepared; None where none was."""
    found = prepared.meta["sources"].items()
    roots = {entry["path"].removesuffix(f"/{name}") for name, entry in found if entry["origin"] == "data_dir"}
    return roots.pop() if len(roots) == 1 else None


def read_meta(folder: Path) -> dict[str, Any] | None:
    """What `meta.json` holds, or None where it cannot be read."""
    try:
        meta = orjson.loads((folder / META_FILE).read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return None
    return meta if isinstance(meta, dict) else None


def checks_wanted(verification_mode: str | None = None) -> str:
    """The checks to make: those that the caller names, else `CIR_VERIFICATION_MODE`, else `all_checks`.

    Args:
        verification_mode: what the caller says, or None.

    Example:
        >>> checks_wanted("no_checks")
        'no_checks'
    """
    return verification_mode or os.environ.get(CHECKS_VARIABLE) or "all_checks"


def prepare(
    benchmark_id: str,
    *,
    data_dir: str | Path | None = None,
    verification_mode: str | None = None,
    force: bool = False,
) -> Path:
    """Read, check and write a benchmark; the folder that holds it.

    Args:
        benchmark_id: such as `cirr/val`.
        data_dir: the publisher's folder or its parent; None looks below `CIR_DATA_HOME`, then downloads.
        verification_mode: `all_checks`, or `no_checks` to skip the counts (scores then say so); None takes
            `CIR_VERIFICATION_MODE`, else `all_checks`.
        force: prepare again, and ask the publisher again for files that the card does not pin.

    Raises:
        UnknownNameError: no benchmark has that id.
        SourceError: a publisher's file cannot be found or fetched.
        RecordError: a record breaks the format.
        CountError: the rows are not as many as the card says.

    Example:
        >>> folder = prepare("shapes/val")
        >>> sorted(entry.name for entry in folder.iterdir())
        ['images.parquet', 'meta.json', 'places.parquet', 'rows.parquet']
    """
    return ensure(benchmark_id, data_dir=data_dir, verification_mode=verification_mode, force=force).folder


def load(
    benchmark_id: str,
    *,
    data_dir: str | Path | None = None,
    verification_mode: str | None = None,
    overlay: str | Path | Overlay | None = None,
) -> Benchmark:
    """A benchmark's rows, gallery and protocol; prepared at first use, never through `datasets`.

    Args:
        benchmark_id: such as `cirr/val`, or `cirr/val+shortcut_free` where that overlay is registered.
        data_dir: the publisher's folder or its parent; None looks below `CIR_DATA_HOME`, then downloads.
        verification_mode: `all_checks`, or `no_checks` to skip the counts (scores then say so); None takes
            `CIR_VERIFICATION_MODE`, else `all_checks`.
        overlay: a filter list to lay over the benchmark without registering it: a file or an `Overlay`.

    Raises:
        OverlayError: the overlay is malformed, or names a query that the benchmark lacks.
        UnknownNameError: no benchmark has that id.
        SourceError: a publisher's file cannot be found or fetched.
        RecordError: a record breaks the format.
        CountError: the rows are not as many as the card says.
        DamagedError: what was prepared is not on the disk as it was written.

    Example:
        >>> benchmark = load("shapes/val")
        >>> benchmark.id, benchmark.multi_turn
        ('shapes/val', False)
    """
    from cir_datasets.rows import Ids, StoredRows  # who asks what is prepared reads no rows
    from cir_datasets.rows.benchmark import Benchmark

    spec = registry.spec(benchmark_id)
    if overlay is not None:
        spec = _with_overlay(spec, overlay)
    prepared = ensure(spec, data_dir=data_dir, verification_mode=verification_mode)
    meta = prepared.meta
    manifest = None if prepared.images_file is None else StoredRows(prepared.images_file)
    return Benchmark(
        spec=prepared.spec,
        table=StoredRows(prepared.rows_file),
        gallery=None if manifest is None else Ids(manifest.column("image_id").combine_chunks()),
        data_hash=meta["data_hash"],
        gallery_hash=meta["gallery_hash"],
        pinned=meta["pinned"],
        checks_skipped=tuple(meta["checks_skipped"]),
        source_hashes={name: entry["sha256"] for name, entry in meta["sources"].items()},
        left_out=frozenset(meta.get("left_out", ())),
        manifest=manifest,
    )


def ensure(
    benchmark: str | BenchmarkSpec,
    *,
    data_dir: str | Path | None = None,
    verification_mode: str | None = None,
    force: bool = False,
) -> Prepared:
    """The prepared benchmark, made if its key is not there yet (see `prepare`).

    Where no source file is available (it was prepared with a `data_dir`, say, and none is given now), what
    was prepared last is taken before anything is downloaded.

    Raises:
        DamagedError: a prepared file is not as it was written.
        DatasetError: as for `load`.
    """
    mode = checks_wanted(verification_mode)
    if mode not in _MODES:
        raise CallError(f"verification_mode={mode!r}; it is one of {', '.join(_MODES)}.")
    spec = registry.spec(benchmark) if isinstance(benchmark, str) else benchmark
    if spec.overlay is not None:
        base = ensure(spec.base, data_dir=data_dir, verification_mode=mode, force=force)
        return _overlaid(base, spec, spec.overlay, force=force)
    skipped = ("counts",) if mode == "no_checks" else ()
    if spec.card.source.publisher == "embedded":
        return _of_files(spec, {}, skipped, force=force)
    from cir_datasets import sources

    last = None
    if data_dir is None and not force and not sources.at_hand(spec):
        last = next(whole_folders(spec), None)
        if last is not None and _is_current(last, skipped) and not _sources_changed(last):
            return verified(last)
    try:
        files = sources.resolve(spec, data_dir, refresh=force)
    except SourceError as error:
        if data_dir is None and last is None and of_another_layout(spec):
            raise SourceError(
                f"{error}\n  What another version of this package prepared in {home_of(spec)} has another "
                "layout. It is not read; with the publisher's files it is made anew."
            ) from error
        unchecked = last is not None and not skipped and _is_current(last, ("counts",))
        if isinstance(error, IntegrityError) or not unchecked:
            raise
        raise SourceError(
            f"{spec.id} was prepared here without its checks, which this call does not skip. Fix: to use "
            f"what was prepared, {WITHOUT_CHECKS}\n  To check it: {error}"
        ) from error
    return _of_files(spec, files, skipped, force=force)


def _of_files(
    spec: BenchmarkSpec, files: Mapping[str, SourceFile], skipped: tuple[str, ...], *, force: bool
) -> Prepared:
    """What is prepared of these files, made where it is not there or `force` is set."""
    folder = home_of(spec) / _key(spec, files, skipped)
    prepared = None if force else intact(spec, folder)
    if prepared is not None:
        verified(prepared)
        with suppress(OSError):  # another user's, or read-only: reading needs no right to write
            os.utime(folder)  # the youngest folder is the one that was used last
        return prepared
    from cir_datasets.builders import builder_class  # what was prepared is read without its builder
    from cir_datasets.prepared.tables import make_prepared, new_folder

    builder = builder_class(spec.card.name)(spec, {name: file.path for name, file in files.items()})
    with new_folder(folder) as made:
        return _written(spec, folder, made, make_prepared(builder, files, skipped, made))


def _written(spec: BenchmarkSpec, folder: Path, made: Path, facts: Mapping[str, Any]) -> Prepared:
    """Write `meta.json`, which makes a folder a prepared one: with the hashes of all files, and its own."""
    files = {
        path.name: {"sha256": sha256_of(path), "num_bytes": path.stat().st_size}
        for path in sorted(made.iterdir())
    }
    meta = {"format": FORMAT, **facts, "files": files}
    meta["sha256"] = meta_hash(meta)
    (made / META_FILE).write_bytes(orjson.dumps(meta, option=orjson.OPT_INDENT_2))
    return Prepared(spec, folder, meta)


def _sources_changed(prepared: Prepared) -> bool:
    """Whether a file that it was prepared from is still there, with another content; a warning says so."""
    for entry in prepared.meta["sources"].values():
        path = Path(entry["path"])
        if path.is_file() and sha256_of(path) != entry["sha256"]:
            warnings.warn(
                f"{path}: changed since {prepared.spec.id} was prepared from it, so that what was prepared "
                "is not used. Fix: prepare it anew: "
                f"`cir datasets prepare {prepared.spec.id} --data-dir FOLDER` (in Python data_dir=).",
                UnpinnedDataWarning,
                stacklevel=3,
            )
            return True
    return False


def _is_current(prepared: Prepared, skipped: tuple[str, ...]) -> bool:
    """Whether this version of the code would prepare the same, with the same checks.

    Raises:
        DamagedError: what says so was changed.
    """
    if not is_sound(prepared):
        verified(prepared)
    meta = prepared.meta
    found = meta["format"], meta["builder_version"], tuple(meta["checks_skipped"])
    return found == (FORMAT, prepared.spec.card.builder_version, skipped)


def _key(spec: BenchmarkSpec, files: Mapping[str, SourceFile], skipped: tuple[str, ...]) -> str:
    parts = {
        "format": FORMAT,
        "builder": spec.card.builder_version,
        "card": spec.card.version,
        "skipped": skipped,
        "sources": {name: file.sha256 for name, file in files.items()},
    }
    return hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


def _with_overlay(spec: BenchmarkSpec, overlay: str | Path | Overlay) -> BenchmarkSpec:
    """A benchmark with a filter list that need not be registered."""
    if spec.overlay is not None:
        raise CallError(f"{spec.id} has an overlay already. Fix: lay yours over {spec.base.id}.")
    if isinstance(overlay, str | Path):
        overlay = registry.read_overlay(overlay, benchmark=spec.id)
    if (overlay.benchmark, overlay.benchmark_version) != (spec.id, spec.card.version):
        raise CallError(
            f"the overlay {overlay.name!r} was made for {overlay.benchmark}#{overlay.benchmark_version}, not "
            f"for {spec.id}#{spec.card.version}. Fix: load {overlay.benchmark} with it."
        )
    return BenchmarkSpec(spec.card, spec.config_name, overlay)


def row_schema(spec: BenchmarkSpec) -> pa.Schema:
    """Arrow schema of a benchmark's rows, the overlay's label included."""
    from cir_datasets.builders import builder_class

    schema = builder_class(spec.card.name)(spec.base, {}).schema()
    if spec.overlay is None:
        return schema
    from cir_datasets.registry.overlays import LABEL_FIELD

    return schema.append(pa.field(LABEL_FIELD, pa.string()))


def _overlaid(base: Prepared, spec: BenchmarkSpec, overlay: Overlay, *, force: bool) -> Prepared:
    """The rows of a prepared benchmark that an overlay lists, in a prepared folder of their own."""
    folder = home_of(spec) / hashlib.sha256(orjson.dumps([base.key, overlay.to_dict()])).hexdigest()[:16]
    prepared = None if force else intact(spec, folder)
    if prepared is not None:
        return verified(prepared)
    from cir_datasets.prepared.overlays import make_overlaid  # what was prepared is read without it
    from cir_datasets.prepared.tables import new_folder

    with new_folder(folder) as made:
        facts = make_overlaid(base.rows_file, base.images_file, overlay, made)
        return _written(spec, folder, made, {**base.meta, "benchmark": spec.id, **facts})


def image_manifest(
    benchmark_id: str, *, data_dir: str | Path | None = None, verification_mode: str | None = None
) -> list[Row]:
    """The gallery of a benchmark, one row an image, in the publisher's order.

    Args:
        benchmark_id: such as `cirr/val`.
        data_dir: the publisher's folder or its parent; None looks below `CIR_DATA_HOME`, then downloads.
        verification_mode: `all_checks`, or `no_checks` to skip the counts; None takes
            `CIR_VERIFICATION_MODE`, else `all_checks`.

    Returns:
        Rows with `image_id`, `relative_path` (to the benchmark's folder below `CIR_IMAGES`) and what is
        known of hashes, sizes and licence; null where the publisher does not say.

    Raises:
        SourceError: the list of the gallery is not available.

    Example:
        >>> image_manifest("shapes/val")[0]["relative_path"] is not None
        True
    """
    prepared = ensure(benchmark_id, data_dir=data_dir, verification_mode=verification_mode)
    rows: list[Row] = manifest_table(prepared).to_pylist()
    return rows


def manifest_file(prepared: Prepared) -> Path:
    """Parquet of a prepared benchmark's manifest.

    Raises:
        SourceError: the list of its gallery is not available; the message says where it would be.
    """
    if prepared.images_file is None:
        spec = prepared.spec
        source = spec if spec.config.gallery_from is None else registry.spec(spec.config.gallery_from)
        publisher = source.card.source
        raise SourceError(
            f"{spec.id}: the list of its gallery is not available "
            f"({', '.join(source.config.gallery_files)} of {publisher.repository}).\n"
            f"  Fix: put it below CIR_DATA_HOME/{publisher.folder}, or name the folder that holds it: "
            f"`cir datasets prepare {spec.id} --data-dir FOLDER` (in Python data_dir=).\n"
            f"  By hand: {publisher.instructions}"
        )
    return prepared.images_file


def manifest_table(prepared: Prepared) -> pa.Table:
    """The manifest of a prepared benchmark as an Arrow table (see `manifest_file`)."""
    from cir_datasets.rows import read_table

    return read_table(manifest_file(prepared))


def add_overlay(
    path: str | Path, *, benchmark: str | None = None, name: str | None = None, replace: bool = False
) -> Overlay:
    """Register an overlay: check its file and put it into the folder of overlays, as JSON.

    Where the benchmark's rows are available, its query ids are checked against them; else they are when it is
    first loaded.

    Args:
        path: the file, see `read_overlay`.
        benchmark: what it is laid over, where the file does not say.
        name: its name, where the file does not say.
        replace: whether it may take the place of a registered overlay of the same name.

    Raises:
        OverlayError: the file is malformed, names a query that the benchmark lacks, or an overlay of that
            name is registered and `replace` is False; what was registered stays as it was.
        UnknownNameError: no benchmark has that id.
    """
    from cir_datasets.common.atomic import write_whole
    from cir_datasets.prepared.overlays import restrict
    from cir_datasets.registry.overlays import overlay_fault, overlay_file
    from cir_datasets.rows import read_table

    overlay = registry.read_overlay(path, benchmark=benchmark, name=name)
    place = overlay_file(overlay.benchmark, overlay.name)
    if place.exists() and not replace:
        overlay_fault(
            Path(path).expanduser(),
            f"{overlay.id} is registered already ({place})",
            'name it anew ("overlay" in a JSON file), or pass --replace (replace=True)',
        )
    spec = registry.spec(overlay.benchmark)
    if is_here(spec):
        restrict(read_table(ensure(spec).rows_file), overlay)
    try:
        write_whole(place, (json.dumps(overlay.to_dict(), ensure_ascii=False, indent=1) + "\n").encode())
    except OSError as error:
        overlay_fault(place, f"cannot be written: {error.strerror}", "set CIR_OVERLAYS to a folder of yours")
    return overlay
