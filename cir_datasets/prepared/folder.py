"""A prepared folder: where it lies, what it holds, and whether that is what was written.

`cache_home()/prepared/<name>/<config>/<version>/<key>/` holds `rows.parquet`, `images.parquet` and
`places.parquet` (where the gallery is available) and `meta.json`, which holds the sha256 of every file and of
itself. They are computed anew whenever a benchmark is loaded: a bit that changed on the disk is an error,
never another score. A folder that is not whole, or of another layout, is left aside and made anew.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from cir_datasets.common.paths import cache_home
from cir_datasets.errors import DamagedError, DatasetError
from cir_datasets.sources import sha256_of

if TYPE_CHECKING:
    from cir_datasets.registry.cards import BenchmarkSpec

FORMAT = 4
"""+1 whenever the layout of a prepared folder changes; part of the key."""
META_FILE = "meta.json"


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


def read_table(path: Path, columns: list[str] | None = None) -> pa.Table:
    """A Parquet file of a prepared folder.

    Raises:
        DatasetError: the file is damaged.
    """
    try:
        return pq.ParquetFile(path).read(columns=columns)  # `pq.read_table` would import pandas
    except (pa.ArrowInvalid, OSError) as error:
        raise DatasetError(
            f"{path}: cannot be read ({error}). Fix: remove {path.parent}, which is made anew when it is "
            "needed."
        ) from error


def read_meta(folder: Path) -> dict[str, Any] | None:
    """What `meta.json` holds, or None where it cannot be read."""
    try:
        meta = orjson.loads((folder / META_FILE).read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return None
    return meta if isinstance(meta, dict) else None
