"""The files of `cir rank`: arrays, lists of ids, and rankings by query id."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from pickle import UnpicklingError
from typing import Any
from zipfile import ZipFile, is_zipfile

import numpy as np

from cir_datasets.errors import missing_extra
from submissions.errors import MethodError, MissingFileError

_ARRAYS = (".npy", ".npz", ".pt", ".pth", ".safetensors")
_IDS = (".txt", ".json")
_LISTS = (".json", ".json.gz")
ENDINGS = {
    "scores": _ARRAYS,
    "query_embeddings": _ARRAYS,
    "image_embeddings": _ARRAYS,
    "lists": _LISTS,
    "subset_lists": _LISTS,
    "query_ids": _IDS,
    "image_ids": _IDS,
}
"""By argument how the names of its files end."""

_MOST_UNPACKED = 2**30
_MOST_TEXT = 2**28


def read_array(path: Path, option: str) -> Any:
    """The array of a file: of .npy a memory map, of .pt a tensor.

    Args:
        path: the file.
        option: which names it.

    Raises:
        MissingFileError: the file does not exist.
        MethodError: it cannot be read, or does not hold exactly one array.
        MissingExtraError: torch or safetensors is needed and not installed.
    """
    _check_file(path, option)
    ending = path.suffix.lower()
    readers = {
        ".npy": _npy,
        ".npz": _npy,
        ".pt": _torch,
        ".pth": _torch,
        ".safetensors": _safetensors,
    }
    if ending not in readers:
        raise MethodError(
            f"{option} {path}: a file in {ending or 'no ending'!r} is not read. "
            f"Fix: write it as one of {', '.join(_ARRAYS)}, for example with np.save."
        )
    try:
        _check_unpacked(path, option)
        found = readers[ending](path)
        return _only(found, option, path) if isinstance(found, Mapping) else found
    except ImportError as error:
        raise missing_extra(
            f"{option} {path}: reading it", str(error.name), "retrieval", "write it with np.save as .npy"
        ) from error
    except MethodError:
        raise
    except Exception as error:  # of damaged files each reader raises what it meets
        # What torch says of other objects is how to run them.
        said = "it holds more than numbers" if isinstance(error, UnpicklingError) else str(error)
        reason = said.partition("\n")[0].rstrip(".") or type(error).__name__
        raise MethodError(
            f"{option} {path}: cannot be read as {ending}: {reason}. "
            "Fix: write it anew, with np.save as .npy."
        ) from error


def _check_unpacked(path: Path, option: str) -> None:
    """Refuse a zip file, as .npz and .pt are, that is far larger than it looks, by its own directory."""
    if not is_zipfile(path):
        return
    with ZipFile(path) as packed:
        unpacked = sum(member.file_size for member in packed.infolist())
    if unpacked > max(_MOST_UNPACKED, path.stat().st_size):
        raise MethodError(
            f"{option} {path}: unpacked it has {unpacked:,} bytes, more than the {_MOST_UNPACKED:,} that are "
            "taken into memory. Fix: write it with np.save as .npy, which is read where it lies."
        )


def _only(arrays: Mapping[Any, Any], option: str, path: Path) -> Any:
    if len(arrays) != 1:
        raise MethodError(
            f"{option} {path}: it holds {len(arrays)} arrays ({', '.join(map(str, list(arrays)[:5]))}). "
            "Fix: write a file with the one that is meant."
        )
    return next(iter(arrays.values()))


def _npy(path: Path) -> Any:
    return np.load(path, mmap_mode="r", allow_pickle=False)


def _torch(path: Path) -> Any:
    import torch

    return torch.load(path, map_location="cpu", weights_only=True)


def _safetensors(path: Path) -> Any:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return load_file(path)
    except SafetensorError as error:
        raise ValueError(str(error)) from error


def read_ids(path: Path, option: str) -> tuple[list[Any], bool]:
    """Ids, and whether each has a line of its own.

    Args:
        path: a text with an id a line, or a JSON list.
        option: which names it.

    Raises:
        MissingFileError: the file does not exist.
        MethodError: it cannot be read, is something else, or holds an empty line.
    """
    text = _text(path, option)
    if text.lstrip().startswith(("[", "{")):
        found = _json(text, path, option)
        if not isinstance(found, list):
            raise MethodError(f'{option} {path}: it is not a list. Fix: write ["id", ...], or an id a line.')
        return found, False
    lines = text.rstrip().splitlines()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            raise MethodError(f"{option} {path}: line {number} is empty. Fix: write an id a line.")
    return [line.strip() for line in lines], True


def read_lists(path: Path, option: str) -> Any:
    """A JSON file of rankings by query id.

    Raises:
        MissingFileError: the file does not exist.
        MethodError: it is not JSON, or names a query twice.
    """
    return _json(_text(path, option), path, option)


def _check_file(path: Path, option: str) -> None:
    if path.is_dir():
        raise MethodError(f"{option} {path} is a folder. Fix: name a file; only a suite takes folders.")
    if not path.is_file():
        raise MissingFileError(f"{option} {path}: no such file. Fix: correct the name.")


def _text(path: Path, option: str) -> str:
    _check_file(path, option)
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
            most = max(_MOST_TEXT, path.stat().st_size)
            content = file.read(most + 1)
        if len(content) > most:
            raise MethodError(
                f"{option} {path}: unpacked it has more than {most:,} bytes. Fix: cut the rankings to "
                "what the board uses."
            )
        return content.decode("utf-8-sig")
    except (UnicodeDecodeError, EOFError, OSError, zlib.error) as error:
        raise MethodError(f"{option} {path}: it is not a text in UTF-8. Fix: write it as one.") from error


def _json(text: str, path: Path, option: str) -> Any:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise MethodError(f"{option} {path}: the key {key!r:.100} stands twice. Fix: write it once.")
            found[key] = value
        return found

    try:
        return json.loads(text, object_pairs_hook=once)
    except (json.JSONDecodeError, RecursionError) as error:
        said = "its lists or objects are nested too deeply"
        if isinstance(error, json.JSONDecodeError):
            said = f"line {error.lineno}, column {error.colno}: this is not JSON"
        raise MethodError(f"{option} {path}: {said}. Fix: write it with json.dump.") from error
