"""Image-ID manifests: which images a gallery holds. Images themselves are never redistributed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cir_datasets import registry
from cir_datasets.errors import SourceError
from cir_datasets.prepared import Prepared, ensure
from cir_datasets.rows import read_table

if TYPE_CHECKING:
    import pyarrow as pa

    from cir_datasets.rows.records import Row


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
    return read_table(manifest_file(prepared))
