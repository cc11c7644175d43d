"""Image columns for the datasets that `load_dataset` gives: ids joined to files in a user's folders.

Only paths are added; a picture is decoded when its cell is read (`datasets.Image`). All files are looked for
before anything is attached, those that are empty, cut off or no pictures are refused, and no row is dropped.
"""

from __future__ import annotations

import dataclasses
import functools
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cir_datasets import registry
from cir_datasets.common.progress import done_in_parallel
from cir_datasets.errors import MissingImagesError, MissingImagesWarning, SourceError
from cir_datasets.images.locate import (
    Located,
    Roots,
    image_card,
    locate,
    manifest_paths,
    needs_relative_path,
)
from cir_datasets.images.picture import damage
from cir_datasets.prepared import ensure
from cir_datasets.registry import IMAGES_SUFFIX, BenchmarkSpec
from cir_metrics.errors import CallError, UnknownNameError

_BATCH_ROWS = 10_000
_WAY_OUT = "or pass allow_missing=True to keep every row, with null for these images."


@dataclass(frozen=True)
class _ImageColumn:
    """An image column and where its ids are.

    Args:
        name: of the new column.
        source: the column that holds the ids: strings, lists of strings, or structs with `field`.
        field: of each struct of a list, or None.
        many: whether a cell holds a list of images.
    """

    name: str
    source: str
    field: str | None = None
    many: bool = False

    def ids(self, cell: Any) -> list[str | None]:
        """The image ids of a cell, in order."""
        if not self.many:
            return [cell]
        return [item if self.field is None else item[self.field] for item in cell or ()]


_COLUMNS = (
    _ImageColumn("image", "image_id"),
    _ImageColumn("reference_image", "reference_image_id"),
    _ImageColumn("target_image", "target_image_id"),
    _ImageColumn("reference_images", "turns", field="reference_image_id", many=True),
    _ImageColumn("ground_truth_images", "ground_truth_ids", many=True),
)


@dataclass(frozen=True)
class _SplitWithColumns:
    """One split, the benchmark that it is of, and what is attached to it."""

    dataset: Any
    spec: BenchmarkSpec
    columns: tuple[_ImageColumn, ...]


def attach_images(
    ds: Any,
    roots: Roots = None,
    *,
    benchmark: str | None = None,
    allow_missing: bool = False,
    manifest: Iterable[Mapping[str, Any]] | None = None,
    data_dir: str | Path | None = None,
    verification_mode: str | None = None,
) -> Any:
    """Join the image ids of a dataset to local picture files, decoded only when they are read.

    Queries get `reference_image` and `target_image` (null where the target is withheld), sessions
    `reference_images` (one a turn) and `ground_truth_images`, a `<config>_images` manifest gets `image`; all
    are `datasets.Image`. Every file is looked for first, and its size, header and end are looked at; a stream
    is read once for its ids, so attach before you repeat it without end.

    Args:
        ds: a `datasets.Dataset`, `DatasetDict`, `IterableDataset` or `IterableDatasetDict` of our benchmarks.
        roots: folder or folders with the pictures in the publisher's own layout, or their parent; None looks
            in `CIR_IMAGES/<the card's image_folder>`.
        benchmark: id such as `cirr/val`, where `ds` no longer knows (a file of your own, say).
        allow_missing: keep every row and leave null what is missing or damaged, with a warning that says how
            many.
        manifest: rows with `image_id` and `relative_path`; None takes the publisher's own where it is needed.
        data_dir: the publisher's folder or its parent, for that manifest.
        verification_mode: `all_checks`, or `no_checks` as the benchmark was loaded; None takes
            `CIR_VERIFICATION_MODE`, else `all_checks`.

    Returns:
        A dataset of the same type with the same rows and the image columns added.

    Raises:
        MissingImagesError: images are missing, or their files are empty, cut off or no pictures; the message
            counts them and names up to five with their files.
        SourceError: a folder does not exist, or none was given and `CIR_IMAGES` is not set.
        CallError: `ds` is not a dataset of ours, or it is not known which.

    Example:
        >>> import tempfile
        >>> import cir_datasets, datasets
        >>> from cir_datasets.shapes import picture
        >>> ds = datasets.load_dataset("shapes", "val", split="validation").select([0])
        >>> with tempfile.TemporaryDirectory() as root:
        ...     for image_id in (ds[0]["reference_image_id"], ds[0]["target_image_id"]):
        ...         path = Path(root, cir_datasets.shapes.relative_path(image_id))
        ...         path.parent.mkdir(exist_ok=True)
        ...         picture(image_id).save(path)
        ...     attach_images(ds, root)[0]["reference_image"].size
        (96, 96)
    """
    parts = {key: _part(split, benchmark) for key, split in _splits(ds).items()}
    known = None if manifest is None else {row["image_id"]: row.get("relative_path") for row in manifest}
    located: dict[str, Located] = {}
    for benchmark_id in dict.fromkeys(part.spec.id for part in parts.values()):
        same = [part for part in parts.values() if part.spec.id == benchmark_id]
        spec = same[0].spec
        paths = _relative_paths(same, known, data_dir, verification_mode)
        wanted = dict.fromkeys(image_id for part in same for image_id in _ids(part))
        found = locate(spec, ((one, paths.get(one)) for one in wanted), roots, data_dir=data_dir)
        damaged = _damaged(found)
        if allow_missing:
            said = [*([found.summary()] if found.missing else []), *_damage_text(found, damaged)]
            if said:
                text = "\n".join([*said, "  Those images are null."])
                warnings.warn(text, MissingImagesWarning, stacklevel=2)
        else:
            found.check(_WAY_OUT)
            if damaged:
                raise MissingImagesError(
                    "\n".join([*_damage_text(found, damaged), f"  Fix: get these files again; {_WAY_OUT}"])
                )
        left = {image_id: path for image_id, path in found.paths.items() if image_id not in damaged}
        located[benchmark_id] = dataclasses.replace(found, paths=left)
    done = {key: _attached(part, located[part.spec.id].paths) for key, part in parts.items()}
    return type(ds)(done) if isinstance(ds, dict) else done[""]


def _damaged(found: Located) -> dict[str, str]:
    """By image id what is wrong with its file, in the order asked."""
    look = functools.partial(damage, formats=image_card(found.spec).image_formats)
    return found.problems(done_in_parallel(look, found.paths.items(), workers=None))


def _damage_text(found: Located, damaged: Mapping[str, str]) -> list[str]:
    """How many files are damaged, and some of them."""
    if not damaged:
        return []
    head = f"{found.spec.id}: {len(damaged):,} of {len(found.paths):,} image files are damaged."
    return [head, *found.problem_lines(damaged)]


def _splits(ds: Any) -> dict[str, Any]:
    """The splits of a dataset by name; one without a name has ""."""
    import datasets

    found = ds if isinstance(ds, dict) else {"": ds}
    for split in found.values():
        if not isinstance(split, datasets.Dataset | datasets.IterableDataset):
            raise CallError(
                f"attach_images takes what load_dataset returns, not {type(split).__name__}. Fix: pass a "
                "datasets.Dataset, DatasetDict, IterableDataset or IterableDatasetDict."
            )
    return found


def _part(split: Any, benchmark: str | None) -> _SplitWithColumns:
    if split.column_names is None or split.features is None:
        raise CallError(
            "the columns of this stream are not known (it was mapped without features). Fix: attach the "
            "images before you map it, or give map its features=."
        )
    names = set(split.column_names)
    columns = tuple(column for column in _COLUMNS if column.source in names)
    if not columns:
        raise CallError(
            f"no column of image ids among {sorted(names)}. Fix: keep image_id, reference_image_id, "
            "target_image_id, turns or ground_truth_ids until the images are attached."
        )
    return _SplitWithColumns(split, _benchmark_of(split, benchmark), columns)


def _benchmark_of(split: Any, benchmark: str | None) -> BenchmarkSpec:
    """The benchmark of a split: the one named, else the one that `datasets` remembers."""
    if benchmark is not None:
        return registry.spec(benchmark)
    name, config = split.info.dataset_name, split.info.config_name
    try:
        return registry.spec(f"{name}/{(config or '').removesuffix(IMAGES_SUFFIX)}")
    except UnknownNameError:
        what = f"it says {name}/{config}" if name else "it does not say"
        raise CallError(
            f"which benchmark is this dataset of? ({what}.) Fix: pass benchmark=, such as 'cirr/val'."
        ) from None


def _relative_paths(
    parts: list[_SplitWithColumns],
    known: Mapping[str, str | None] | None,
    data_dir: str | Path | None,
    verification_mode: str | None,
) -> Mapping[str, str | None]:
    """The publisher's relative path by image id, where the layout asks for it."""
    spec = parts[0].spec
    if known is not None or not needs_relative_path(spec):
        return known or {}
    found: dict[str, str | None] = {}
    for part in parts:
        if not {"image_id", "relative_path"} <= set(part.dataset.column_names):
            break
        for batch in _batches(part.dataset, ["image_id", "relative_path"]):
            found.update(zip(batch["image_id"], batch["relative_path"], strict=True))
    else:
        return found
    try:
        prepared = ensure(spec.id, data_dir=data_dir, verification_mode=verification_mode)
    except SourceError as error:
        raise type(error)(
            f"{error}\n  Or pass manifest=, the rows of {spec.id}{IMAGES_SUFFIX}, if you have them."
        ) from error
    return dict(manifest_paths(prepared)) if prepared.images_file is not None else {}


def _ids(part: _SplitWithColumns) -> Iterator[str]:
    """Every image id of a split, as often as it occurs."""
    for batch in _batches(part.dataset, list(dict.fromkeys(column.source for column in part.columns))):
        for column in part.columns:
            for cell in batch[column.source]:
                yield from (image_id for image_id in column.ids(cell) if image_id is not None)


def _batches(dataset: Any, columns: list[str]) -> Iterator[Mapping[str, list[Any]]]:
    """Some columns of a split as plain Python values, a batch at a time."""
    import datasets

    selected = dataset.select_columns(columns)
    if isinstance(selected, datasets.Dataset):
        for batch in selected.with_format("arrow").iter(_BATCH_ROWS):
            yield batch.to_pydict()
    else:
        yield from selected.with_format(None).iter(_BATCH_ROWS)


def _attached(part: _SplitWithColumns, paths: Mapping[str, str]) -> Any:
    """The split with its image columns; columns of an earlier call are replaced."""
    import datasets

    names = [column.name for column in part.columns]
    old = [name for name in names if name in part.dataset.column_names]
    dataset = part.dataset.remove_columns(old) if old else part.dataset
    features = {
        column.name: datasets.List(datasets.Image()) if column.many else datasets.Image()
        for column in part.columns
    }
    if isinstance(dataset, datasets.IterableDataset):
        mapped = dataset.map(functools.partial(_with_paths, columns=part.columns, paths=paths), batched=True)
        # Given to `map`, features would be taken as done already and nothing would be decoded.
        return mapped.cast(datasets.Features({**dataset.features, **features}))
    for column in part.columns:
        dataset = _with_column(dataset, column, features[column.name], paths)
    return dataset


def _with_column(dataset: Any, column: _ImageColumn, feature: Any, paths: Mapping[str, str]) -> Any:
    import pyarrow as pa

    file = pa.struct({"bytes": pa.binary(), "path": pa.string()})
    cell_type = pa.list_(file) if column.many else file
    chunks = [
        pa.array([_files(column, cell, paths) for cell in batch[column.source]], type=cell_type)
        for batch in _batches(dataset, [column.source])
    ]
    return dataset.add_column(column.name, pa.chunked_array(chunks, type=cell_type), feature=feature)


def _with_paths(
    batch: Mapping[str, list[Any]], columns: tuple[_ImageColumn, ...], paths: Mapping[str, str]
) -> dict[str, list[Any]]:
    """The image columns of a batch of a stream."""
    return {column.name: [_files(column, cell, paths) for cell in batch[column.source]] for column in columns}


def _files(column: _ImageColumn, cell: Any, paths: Mapping[str, str]) -> Any:
    files = [
        {"bytes": None, "path": paths[image_id]} if image_id is not None and image_id in paths else None
        for image_id in column.ids(cell)
    ]
    return files if column.many else files[0]
