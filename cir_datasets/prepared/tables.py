"""The tables of a prepared folder: rows are read, checked, hashed and written in one pass, a batch at a time.

What stays in memory is a batch of rows, the ids of the rows and the ids of the gallery: a million queries
need less than 500 MiB (`perf/prepare.py --queries 1000000` shows it).

Where the ground truth stands in the gallery is noted, too. Scoring compares ids, and a million of them as
texts take longer to read than all metrics to compute; as places in the manifest they are small numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cir_datasets.common.atomic import staging_folder
from cir_datasets.common.paths import cache_home
from cir_datasets.common.progress import step_progress
from cir_datasets.errors import FIX, DatasetError, RecordError
from cir_datasets.rows import StoredRows
from cir_datasets.rows.benchmark import GALLERY, Benchmark
from cir_datasets.rows.checks import Tally, check_counts, checked_images, checked_rows
from cir_datasets.rows.hashing import DataHasher, gallery_hash
from cir_datasets.rows.records import Row, image_schema

if TYPE_CHECKING:
    from cir_datasets.builders import BenchmarkBuilder
    from cir_datasets.sources import SourceFile

PLACES_FILE = "places.parquet"
_BATCH_ROWS = 2**15
_ID_COLUMNS = ("target_image_id", "positive_image_ids", "negative_image_ids", "ground_truth_ids")


def write_places(folder: Path) -> None:
    """Write `places.parquet` beside a prepared benchmark's rows and manifest.

    A column with an id that the manifest does not name is left out: its readers take the ids.

    Args:
        folder: holds `rows.parquet` and `images.parquet`.
    """
    gallery = pq.read_table(folder / "images.parquet", columns=["image_id"]).column(0).combine_chunks()
    rows = pq.ParquetFile(folder / "rows.parquet")
    columns: dict[str, pa.ChunkedArray] = {"row": pa.chunked_array([pa.array(range(rows.metadata.num_rows))])}
    for name in _ID_COLUMNS:
        if name in rows.schema_arrow.names:
            found = _column(rows, name, gallery)
            if found:
                columns[name] = pa.chunked_array(found)
    table = pa.table(columns)
    pq.write_table(table, folder / PLACES_FILE, row_group_size=max(1, len(table)))


def _column(rows: pq.ParquetFile, name: str, gallery: pa.Array) -> list[pa.Array]:
    """Places of a column, the ids of a batch in memory at a time; empty where one is not in the gallery."""
    found = []
    for batch in rows.iter_batches(_BATCH_ROWS, columns=[name]):
        places = _places(batch.column(0), gallery)
        if places is None:
            return []
        found.append(places)
    return found


def _places(chunk: pa.Array, gallery: pa.Array) -> pa.Array | None:
    """Places of ids or of lists of ids; None where one is not in the gallery."""
    listed = pa.types.is_list(chunk.type)
    ids = chunk.flatten() if listed else chunk
    places = pc.index_in(ids, value_set=gallery)
    if places.null_count != ids.null_count:
        return None
    if not listed:
        return places
    lengths = pc.list_value_length(chunk).fill_null(0)
    ends = pa.array(np.concatenate([[0], np.cumsum(lengths.to_numpy())]), pa.int32())
    return pa.ListArray.from_arrays(ends, places, mask=chunk.is_null() if chunk.null_count else None)


BATCH_ROWS = 4096
_PREFIX = ".making-"


def make_prepared(
    builder: BenchmarkBuilder, files: Mapping[str, SourceFile], skipped: tuple[str, ...], made: Path
) -> dict[str, Any]:
    """Read, check and write a benchmark to a folder.

    Args:
        builder: reads the publisher's files.
        files: those files, by the relative name that the card lists.
        skipped: names of the checks that are not to be made (`counts`).
        made: the folder, from `new_folder`.

    Returns:
        What `meta.json` says of them.

    Raises:
        RecordError: a record breaks the format.
        CountError: the rows are not as many as the card says.
    """
    spec = builder.spec
    gallery = _write_images(builder, files, made / "images.parquet")
    tally, data_hash, lists_hash = _write_rows(builder, gallery, made / "rows.parquet")
    if gallery is not None:
        write_places(made)
    origin = files[spec.config.files[0]].path if spec.config.files else spec.id
    if not tally.rows:
        raise RecordError(f"{origin}: it holds no record. {FIX}")
    if "counts" not in skipped:
        size = None if gallery is None else len(gallery)
        check_counts(spec, tally, size, origin, _gallery_origin(builder, files))
    hashed = lists_hash or (None if gallery is None else gallery_hash(gallery))
    lender = builder.gallery_source
    # Another benchmark's rows say where a session comes from; nothing that is scored depends on them.
    beside = set() if lender is None else {*lender.config.files} - {*lender.config.gallery_files}
    made_of = Benchmark(spec, StoredRows(made / "rows.parquet"), gallery, data_hash, hashed)
    return {
        "benchmark": spec.id,
        "benchmark_version": spec.card.version,
        "builder_version": spec.card.builder_version,
        "rows": tally.rows,
        "gallery": None if gallery is None else len(gallery),
        "data_hash": data_hash,
        "gallery_hash": hashed,
        "reference": made_of.reference_use,
        "pinned": all(file.pinned for name, file in files.items() if name not in beside),
        "checks_skipped": list(skipped),
        "sources": {name: _described(file) for name, file in files.items()},
    }


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A folder to fill, beside the place of `folder`, and moved there in one step when all went well.

    What preparations that were killed have left is swept first.

    Raises:
        DatasetError: the place cannot be written.
    """
    root, fix = cache_home() / "prepared", "set CIR_CACHE_HOME to a folder of yours."
    with staging_folder(folder.parent, _PREFIX, error=DatasetError, fix=fix, sweep_below=root) as made:
        yield made
        _move(made, folder)


def _write_images(builder: BenchmarkBuilder, files: Mapping[str, SourceFile], path: Path) -> list[str] | None:
    """Write the manifest; the image ids, or None where the gallery's list is not available."""
    images = builder.images()
    if images is None:
        return None
    origin = _gallery_origin(builder, files)
    ids: list[str] = []

    def noted() -> Iterator[Row]:
        for image in checked_images(images, origin):
            ids.append(image["image_id"])
            yield image

    _write_table(path, image_schema(), noted(), lambda number: f"{origin}: record {number}")
    return ids


def _write_rows(
    builder: BenchmarkBuilder, gallery: list[str] | None, path: Path
) -> tuple[Tally, str, str | None]:
    """Write the rows; how many there are, the data hash, and that of galleries per query, if any."""
    tally = Tally()
    spec = builder.spec
    per_query = spec.per_query
    unlisted = set(gallery or ()) if per_query else set()
    rows = checked_rows(spec, builder.rows(), gallery, builder.row_origin)
    with (
        DataHasher(path.parent) as hasher,
        DataHasher(path.parent, galleries=True) as of_lists,
        step_progress(f"preparing {spec.id}", spec.config.queries) as advance,
    ):

        def noted() -> Iterator[Row]:
            for row in rows:
                try:
                    hasher.add(row)
                    if per_query:
                        of_lists.add(row)
                        unlisted.difference_update(row[GALLERY])
                except TypeError as error:
                    raise RecordError(f"{builder.row_origin(tally.rows + 1)}: {error}. {FIX}") from error
                tally.add(row)
                advance(1)
                yield row

        _write_table(path, builder.schema(), noted(), builder.row_origin)
        if unlisted:
            raise RecordError(
                f"{spec.id}: the image {min(unlisted)!r} of its gallery is in no query's {GALLERY}. "
                "Fix: list it with a query, or leave it out."
            )
        return tally, hasher.hexdigest(), of_lists.hexdigest() if per_query else None


_DICTIONARY = 2**24
"""Bytes of a row group's distinct ids at most: within that, a reader gets each id once (`StoredRows.ids`)."""


_GROUP = 2**26
"""Bytes of rows in memory that are written as one row group."""


def _write_table(path: Path, schema: pa.Schema, rows: Iterable[Row], origin: Callable[[int], str]) -> None:
    """Write rows in few row groups: each holds the ids it names once, and a reader reads them so."""
    with pq.ParquetWriter(path, schema, dictionary_pagesize_limit=_DICTIONARY) as writer:
        group: list[pa.RecordBatch] = []
        for batch in _arrow_batches(rows, schema, origin):
            group.append(batch)
            if sum(each.nbytes for each in group) >= _GROUP:
                _write_group(writer, group)
                group = []
        if group:
            _write_group(writer, group)


def _write_group(writer: pq.ParquetWriter, group: list[pa.RecordBatch]) -> None:
    table = pa.Table.from_batches(group)
    writer.write_table(table, row_group_size=max(1, len(table)))


def _arrow_batches(
    rows: Iterable[Row], schema: pa.Schema, origin: Callable[[int], str]
) -> Iterator[pa.RecordBatch]:
    """At least one batch, so that a table without rows has its columns."""
    batch: list[Row] = []
    written = 0
    for row in rows:
        batch.append(row)
        if len(batch) == BATCH_ROWS:
            yield _arrow_batch(batch, schema, written, origin)
            written += len(batch)
            batch = []
    if batch or not written:
        yield _arrow_batch(batch, schema, written, origin)


def _arrow_batch(
    rows: list[Row], schema: pa.Schema, before: int, origin: Callable[[int], str]
) -> pa.RecordBatch:
    """Rows as Arrow; where one does not fit (a number too large, text that is not UTF-8) it is named."""
    try:
        return pa.RecordBatch.from_pylist(rows, schema=schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError, OverflowError) as error:
        if len(rows) == 1:
            raise RecordError(f"{origin(before + 1)}: a value does not fit: {error}. {FIX}") from error
        for place, row in enumerate(rows):
            _arrow_batch([row], schema, before + place, origin)
        raise


def _gallery_origin(builder: BenchmarkBuilder, files: Mapping[str, SourceFile]) -> Path | str:
    source = builder.gallery_source or builder.spec
    names = [*source.config.gallery_files, *source.config.files]
    return next((files[name].path for name in names if name in files), builder.spec.id)


def _described(file: SourceFile) -> dict[str, Any]:
    return {
        "path": str(file.path),
        "sha256": file.sha256,
        "num_bytes": file.num_bytes,
        "pinned": file.pinned,
        "origin": file.origin,
        "revision": file.revision,
    }


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
