"""The embedding store: every gallery's vectors, in a folder a gallery and encoder."""

from __future__ import annotations

import builtins
import hashlib
import os
import re
import shutil
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cir_datasets.common.atomic import write_errors, write_whole
from cir_datasets.common.paths import cache_home
from cir_datasets.common.shared_stages import Shard
from cir_datasets.common.stages import CALLED
from cir_metrics.errors import CallError, CirError, did_you_mean
from submissions.embeddings.folder import (
    FORMAT,
    SHARD_SIZE,
    STAGES,
    EmbeddingFolder,
    Embeddings,
    as_json,
    key_of,
)
from submissions.embeddings.pictures import Pictures, pictures_of
from submissions.encoders.protocol import Identity, is_shapes_encoder
from submissions.errors import StoreError

__all__ = [
    "MISSING_CHECK",
    "SHARD_SIZE",
    "EmbeddingFolder",
    "EmbeddingStore",
    "Embeddings",
    "Stored",
    "store_of",
]

MISSING_CHECK = "images"
"""Name of the check that was skipped where `Embeddings.missing` is not empty."""

_KEY = re.compile(r"[0-9a-f]{24}")
_OF_THE_HUB = re.compile(r"[0-9a-f]{40} [0-9a-f]{64}")
"""Revision and preprocessing of a model of the Hub."""


@dataclass(frozen=True)
class Stored:
    """One entry of the store.

    Args:
        key: names it (`cir embeddings rm KEY`).
        pictures: whose pictures, a benchmark's id; "" where the entry cannot be read.
        identity: of the encoder, or None where the entry cannot be read.
        images: number of images.
        done: number of images that are encoded.
        missing: number of images left out; 0 until all are encoded.
        num_bytes: size on disk.
    """

    key: str
    pictures: str
    identity: Identity | None
    images: int
    done: int
    missing: int
    num_bytes: int


class EmbeddingStore:
    """All embeddings below one folder.

    Args:
        root: the folder; None is `embeddings` in the cache (`CIR_CACHE_HOME`).

    Example:
        >>> import tempfile
        >>> EmbeddingStore(Path(tempfile.mkdtemp())).list()
        []
    """

    def __init__(self, root: str | Path | None = None) -> None:
        """See the class."""
        self.root = cache_home() / "embeddings" if root is None else Path(root).expanduser().absolute()

    def folder(
        self, identity: Identity, pictures: Pictures, *, shard_size: int = SHARD_SIZE
    ) -> EmbeddingFolder:
        """The folder of a gallery's vectors by an encoder; made where it is not there.

        Args:
            identity: of the encoder.
            pictures: the gallery.
            shard_size: images a shard, 1 or more; part of the key.

        Raises:
            CallError: `shard_size` is below 1, or there are no images.
            StoreError: the folder cannot be made.
        """
        path, about = self._place(identity, pictures, shard_size)
        with write_errors(path, StoreError, EmbeddingFolder.room):
            _ensure(path / "ids.json", as_json(list(pictures.ids)))
        if not EmbeddingFolder.begun(path):
            settings = {**about, "identity": identity.to_dict(), CALLED: pictures.name}
            EmbeddingFolder.begin(path, "embeddings", STAGES, settings)
        entry = EmbeddingFolder.existing(path)
        entry.identity = identity  # the entry may be by a model of the same weights and another name
        return entry

    def holds(self, identity: Identity, pictures: Pictures, *, shard_size: int = SHARD_SIZE) -> bool:
        """Whether a gallery's vectors by an encoder are there, done or under way; as in `folder`."""
        return self._place(identity, pictures, shard_size)[0].is_dir()

    def list(self) -> builtins.list[Stored]:
        """What the store holds, by key."""
        if not self.root.is_dir():
            return []
        return [_stored(path) for path in sorted(self.root.iterdir()) if _KEY.fullmatch(path.name)]

    def damage(self, key: str) -> builtins.list[str]:
        """What is wrong with an entry and how to mend it, part by part; [] where it is as it was written.

        Args:
            key: of the entry; all that it holds is read.

        Raises:
            StoreError: no entry has that key.
        """
        path = self._entry(key)
        try:
            folder = EmbeddingFolder.existing(path)
            ids = folder.ids
        except StoreError as error:
            return [str(error)]
        damaged = _joined(folder.damaged())
        fix = _fix(folder) if damaged else ""
        return [
            f"rows {start:,} to {stop - 1:,} of {len(ids):,} ({ids[start]!r} to {ids[stop - 1]!r}) are "
            f"damaged. {fix}"
            for start, stop in damaged
        ]

    def remove(self, key: str) -> int:
        """Remove an entry and return the bytes that were freed.

        Arrays that are open stay good until they are closed.

        Raises:
            StoreError: no entry has that key, a process is writing to it, or it cannot be removed.
        """
        path = self._entry(key)
        if EmbeddingFolder.in_use(path):
            raise StoreError(
                f"embeddings {key}: a process is writing to them. Fix: wait until it ends, or stop it."
            )
        freed = _size(path)
        aside = path.with_name(f".removed-{key}-{os.getpid()}")
        try:
            path.rename(aside)
        except OSError as error:
            raise StoreError(
                f"{path}: cannot be removed: {error.strerror}. Fix: remove it as the user that it belongs to."
            ) from error
        shutil.rmtree(aside, ignore_errors=True)
        return freed

    def _entry(self, key: str) -> Path:
        """The folder of an entry that is there."""
        path = self.root / key
        if not _KEY.fullmatch(key) or not path.is_dir():
            raise StoreError(
                f"no embeddings {key!r} in {self.root}.{did_you_mean(key, [one.key for one in self.list()])} "
                "Fix: `cir embeddings list` shows the keys."
            )
        return path

    def _place(self, identity: Identity, pictures: Pictures, shard_size: int) -> tuple[Path, dict[str, Any]]:
        """Folder of an entry, and what its key is a hash of."""
        if shard_size < 1:
            raise CallError(f"shard_size={shard_size}; it is 1 or more. Fix: choose another one.")
        if not len(pictures.ids):
            raise CallError(f"{pictures.name}: no images. Fix: pass pictures with ids.")
        about = {
            "format": FORMAT,
            "identity": identity.key(),
            "digest": pictures.digest,
            "ids": hashlib.sha256(as_json(list(pictures.ids))).hexdigest(),
            "images": len(pictures.ids),
            "shard_size": shard_size,
        }
        return self.root / key_of(about), about


def store_of(where: EmbeddingStore | str | Path | None) -> EmbeddingStore:
    """A store, of a folder's path or as it is; of None that in the cache.

    Raises:
        CallError: neither a store nor a path.
    """
    if isinstance(where, EmbeddingStore):
        return where
    if where is None or isinstance(where, str | Path):
        return EmbeddingStore(where)
    raise CallError(f"store={where!r}; it is an EmbeddingStore, the path of a folder, or None.")


def _fix(folder: EmbeddingFolder) -> str:
    """What encodes the damaged rows of an entry again, as a person types it.

    A command where it is known that it finds this entry: of a benchmark's gallery, by an encoder that has a
    name. FOLDER stands in it for what no entry knows: where pictures and encoders lie on this machine.
    """
    import cir_datasets

    remove = f"Fix: `cir embeddings rm {folder.key}`; the images are encoded again when they are needed."
    identity = folder.identity
    in_folder = "model" not in identity.key()
    if not (in_folder or _OF_THE_HUB.fullmatch(f"{identity.revision} {identity.preprocessing}")):
        return remove  # an encoder of one's own
    try:
        benchmark = cir_datasets.load(folder.name)
    except CirError:
        return remove
    if list(benchmark.gallery or ()) != folder.ids:
        return remove
    options = {"benchmark": folder.name, "encoder": identity.model}
    unknown = []
    if in_folder and not is_shapes_encoder(identity):
        options["encoder"] = "FOLDER"
        unknown.append(f"the folder of the encoder {identity.model!r}")
    elif not in_folder:
        options["revision"] = identity.revision
    try:
        known = pictures_of(benchmark).digest == folder.settings["digest"]
    except CirError:
        known = False
    if not known:
        options["images"] = "FOLDER"
        unknown.append("that of the images")
    if identity.dtype != "float32":
        options["dtype"] = identity.dtype
    if folder.part_rows != SHARD_SIZE:
        options["shard-size"] = str(folder.part_rows)
    command = " ".join(["cir embed", *(f"--{name} {value}" for name, value in options.items())])
    if folder.counts()[1]:
        command += " --skip-missing"
    where = f" (FOLDER: {', '.join(unknown)})" if unknown else ""
    return f"Fix: `{command}`{where} encodes them again, and no others."


def _joined(shards: Iterable[Shard]) -> list[tuple[int, int]]:
    """Starts and stops of what shards cover, neighbours as one.

    Example:
        >>> _joined([Shard(0, 0, 5), Shard(1, 5, 10), Shard(3, 15, 20)])
        [(0, 10), (15, 20)]
    """
    found: list[tuple[int, int]] = []
    for _, start, stop in shards:
        joins = bool(found) and found[-1][1] == start
        found.append((found.pop()[0] if joins else start, stop))
    return found


def _ensure(path: Path, content: bytes) -> None:
    """See that a file holds this, and touch it only where it does not."""
    with suppress(OSError):
        if path.read_bytes() == content:
            return
    write_whole(path, content, durable=True)


def _stored(path: Path) -> Stored:
    try:
        folder = EmbeddingFolder.existing(path)
    except StoreError:
        return Stored(path.name, "", None, 0, 0, 0, _size(path))
    done, missing = folder.counts()
    return Stored(path.name, folder.name, folder.identity, folder.shape[0], done, missing, _size(path))


def _size(path: Path) -> int:
    """Bytes of the files in a folder; one that another process takes away meanwhile counts nothing."""
    total = 0
    for parent, _, names in os.walk(path):
        for name in names:
            try:
                total += (Path(parent) / name).lstat().st_size
            except FileNotFoundError:
                continue
    return total
