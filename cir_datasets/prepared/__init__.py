"""Prepared benchmarks: the publishers' files read, checked, written once as Parquet, and loaded from there.

A prepared folder (`folder`) lies under a key: a hash of the source files' content, the builder's version, the
card's version and the checks made. The key is computed anew at every load: a changed source is never hidden
by an older cache. A folder appears in one step (`making`), so that two processes at once do no harm.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pyarrow as pa

from cir_datasets import registry, sources
from cir_datasets.errors import (
    WITHOUT_CHECKS,
    IntegrityError,
    SourceError,
    UnpinnedDataWarning,
)
from cir_datasets.prepared.folder import (
    FORMAT,
    Prepared,
    home_of,
    intact,
    is_sound,
    of_another_layout,
    read_meta,
    verified,
    whole_folders,
)
from cir_datasets.registry.cards import BenchmarkSpec
from cir_datasets.rows import Ids, StoredRows
from cir_datasets.rows.benchmark import Benchmark
from cir_metrics.errors import CallError

if TYPE_CHECKING:
    from cir_datasets.registry.overlay import Overlay


CHECKS_VARIABLE = "CIR_VERIFICATION_MODE"
"""Environment variable: the checks that are made where the caller does not say which."""

_MODES = ("all_checks", "basic_checks", "no_checks")


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
    folder = _folder(spec, _key(spec, files, skipped))
    prepared = None if force else intact(spec, folder)
    if prepared is None:
        from cir_datasets.builders import builder_class  # what was prepared is read without its builder
        from cir_datasets.prepared.making import make_prepared

        builder = builder_class(spec.card.name)(spec, {name: file.path for name, file in files.items()})
        make_prepared(builder, files, skipped, folder)
        return Prepared(spec, folder, read_meta(folder) or {})
    verified(prepared)
    with suppress(OSError):  # another user's, or read-only: reading needs no right to write
        os.utime(folder)  # the youngest folder is the one that was used last
    return prepared


def _sources_changed(prepared: Prepared) -> bool:
    """Whether a file that it was prepared from is still there, with another content; a warning says so."""
    for entry in prepared.meta["sources"].values():
        path = Path(entry["path"])
        if path.is_file() and sources.sha256_of(path) != entry["sha256"]:
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


def _key(spec: BenchmarkSpec, files: Mapping[str, sources.SourceFile], skipped: tuple[str, ...]) -> str:
    parts = {
        "format": FORMAT,
        "builder": spec.card.builder_version,
        "card": spec.card.version,
        "skipped": skipped,
        "sources": {name: file.sha256 for name, file in files.items()},
    }
    return hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


def _folder(spec: BenchmarkSpec, key: str) -> Path:
    return home_of(spec) / key


def _with_overlay(spec: BenchmarkSpec, overlay: str | Path | Overlay) -> BenchmarkSpec:
    """A benchmark with a filter list that need not be registered."""
    if spec.overlay is not None:
        raise CallError(f"{spec.id} has an overlay already. Fix: lay yours over {spec.base.id}.")
    if isinstance(overlay, str | Path):
        from cir_datasets.registry.overlay_files import read_overlay

        overlay = read_overlay(overlay, benchmark=spec.id)
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
    from cir_datasets.registry.overlay import LABEL_FIELD

    return schema.append(pa.field(LABEL_FIELD, pa.string()))


def _overlaid(base: Prepared, spec: BenchmarkSpec, overlay: Overlay, *, force: bool) -> Prepared:
    """The rows of a prepared benchmark that an overlay lists, in a prepared folder of their own."""
    key = hashlib.sha256(orjson.dumps([base.key, overlay.to_dict()])).hexdigest()[:16]
    folder = _folder(spec, key)
    found = None if force else intact(spec, folder)
    if found is not None:
        return verified(found)
    from cir_datasets.prepared.overlaid import make_overlaid  # what was prepared is read without it

    make_overlaid(base, spec, overlay, folder)
    return Prepared(spec, folder, read_meta(folder) or {})
