"""Overlays and their files: a filter list (query ids, each with a label or without) laid over a benchmark.

`cirr/val+shortcut_free` is `cirr/val` with only the queries that the overlay `shortcut_free` lists: gallery
and protocol are the base's, the rows keep the base's order, counts and data hash are those of the rows that
are left, and the id (hence every signature) names the overlay.

An overlay is known by name once its file lies at `<folder>/<name>/<config>/<overlay>.json`, where the folder
is `CIR_OVERLAYS` or `overlays` in the cache; `cir datasets overlay add FILE` puts it there.
"""

from __future__ import annotations

import reprlib
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from cir_datasets.common.paths import NAME_RULE, is_name, overlay_home, regular
from cir_datasets.common.strict_json import StrictJsonError, strict_json
from cir_datasets.errors import OverlayError

if TYPE_CHECKING:
    import pyarrow as pa


_KEYS = ("overlay", "benchmark", "benchmark_version", "source", "queries")
_SHOWN = 5
_MAX_BYTES = 2**26
"""Bytes of an overlay's file, and of the texts that a Parquet file unfolds to."""
_MAX_QUERIES = 1_000_000
_DIGITS = 9
"""Digits of the longest version that Parquet's metadata may name."""

_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = 120
_shown = _REPR.repr
"""A value as messages show it: a file may hold one that is long or deeply nested."""

LABEL_FIELD = "overlay_label"
"""The column that an overlay adds to the rows; null where a query has no label."""


@dataclass(frozen=True)
class Overlay:
    """A filter list over one benchmark.

    Args:
        name: its name, small letters, digits and `_`.
        benchmark: id of the benchmark that it is laid over.
        benchmark_version: version of that benchmark's card that it was made for.
        source: where the list comes from (a paper, an address), or "".
        labels: by query id the label, or None where the list gives none; in the list's order.
    """

    name: str
    benchmark: str
    benchmark_version: int
    source: str
    labels: Mapping[str, str | None] = field(hash=False)

    @property
    def id(self) -> str:
        """Id of the benchmark that it makes, `cirr/val+shortcut_free`."""
        return f"{self.benchmark}+{self.name}"

    def to_dict(self) -> dict[str, Any]:
        """The overlay as its JSON file holds it."""
        labelled = any(label is not None for label in self.labels.values())
        return {
            "overlay": self.name,
            "benchmark": self.benchmark,
            "benchmark_version": self.benchmark_version,
            "source": self.source,
            "queries": dict(self.labels) if labelled else list(self.labels),
        }


def overlay_of(
    path: str | Path,
    version_of: Callable[[str], int],
    *,
    benchmark: str | None = None,
    name: str | None = None,
) -> Overlay:
    """`registry.read_overlay`, given what says a benchmark's version by its id."""
    path = Path(path).expanduser()
    fields = _from_parquet(path) if path.suffix == ".parquet" else _from_json(path)
    base = fields.get("benchmark", benchmark)
    if not isinstance(base, str):
        overlay_fault(path, "it does not say which benchmark it is laid over", 'add "benchmark": "cirr/val"')
    if benchmark is not None and base != benchmark:
        overlay_fault(path, f"it is laid over {_shown(base)}, not {benchmark!r}", f"use it with {base!r}")
    if "+" in base:
        overlay_fault(
            path, f"{base!r} is an overlay itself", "lay it over the benchmark, with both filters in one list"
        )
    version = version_of(base)
    found = fields.get("benchmark_version", version if path.suffix == ".parquet" else None)
    if type(found) is not int or found != version:
        said = (
            "it does not say a benchmark_version"
            if found is None
            else f"it was made for version {_shown(found)}"
        )
        fix = f'compare the changes of the benchmark, then write "benchmark_version": {version}'
        overlay_fault(path, f"{said}; {base} is at version {version}", fix)
    called = fields.get("overlay", name if name is not None else path.stem)
    if not isinstance(called, str) or not is_name(called) or called.endswith("_images"):
        overlay_fault(
            path, f"its name is {_shown(called)}", f"name it with {NAME_RULE}, and no _images at its end"
        )
    source = fields.get("source", "")
    if not isinstance(source, str):
        overlay_fault(path, f"its source is {_shown(source)}", "write where the list comes from, as a string")
    if _unprintable(source):
        overlay_fault(path, f"its source {_shown(source)} holds a control character", "write it on one line")
    return Overlay(called, base, version, source, _labels(path, fields.get("queries")))


def overlay_paths() -> dict[str, Path]:
    """By id the files of registered overlays, sorted; they are not read."""
    home = overlay_home()
    paths = home.glob("*/*/*.json") if home.is_dir() else ()
    found = {f"{p.parent.parent.name}/{p.parent.name}+{p.stem}": p for p in paths if is_name(p.stem)}
    return dict(sorted(found.items()))


def overlay_ids() -> tuple[str, ...]:
    """Ids of the benchmarks that registered overlays make, sorted; their files are not read."""
    return tuple(overlay_paths())


def registered(benchmark: str, version: int, name: str) -> Overlay | None:
    """The overlay of that name over a benchmark of a version, or None where none is registered.

    Raises:
        OverlayError: its file is malformed, or was made for another version.
    """
    if not is_name(name):  # before it becomes part of a path: names come from uploaded files, too
        return None
    place = overlay_file(benchmark, name)
    if not place.is_file():
        return None
    found = overlay_of(place, lambda _: version, benchmark=benchmark)
    if found.name != name:
        overlay_fault(place, f"it calls itself {found.name!r}", "name the file after the overlay")
    return found


def overlay_file(benchmark: str, name: str) -> Path:
    """Where a registered overlay lies."""
    return overlay_home().joinpath(*benchmark.split("/"), f"{name}.json")


def _from_json(path: Path) -> dict[str, Any]:
    try:
        value = strict_json(_content(path).decode("utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        overlay_fault(path, f"cannot be read: {reason}", "check the path")
    except StrictJsonError as error:
        overlay_fault(path, str(error), f"an overlay is one JSON object with the keys {', '.join(_KEYS)}")
    if not isinstance(value, dict):
        overlay_fault(path, "it holds no JSON object", f"write an object with the keys {', '.join(_KEYS)}")
    strange = [key for key in value if key not in _KEYS]
    if strange:
        overlay_fault(
            path, f"{_shown(strange[0])} is not a key of an overlay", f"use the keys {', '.join(_KEYS)}"
        )
    return value


def _content(path: Path) -> bytes:
    """The file's bytes.

    Raises:
        OSError: the system refuses to read it.
        OverlayError: it has more bytes than are read.
    """
    with regular(path).open("rb") as handle:
        content = handle.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        overlay_fault(path, f"it has more than {_MAX_BYTES:,} bytes", "list query ids and labels only")
    return content


def _from_parquet(path: Path) -> dict[str, Any]:
    from cir_datasets.common.parquet import (
        ParquetError,
        ParquetLimits,
        bytes_of_copies,
        parquet_schema,
        read_parquet,
    )

    try:
        content = _content(path)
        schema = parquet_schema(content)
        if schema.names.count("query_id") != 1 or schema.names.count("label") > 1:
            names = ", ".join(schema.names)
            overlay_fault(path, f"its columns are {names}", "name the column of ids query_id")
        wanted = [name for name in ("query_id", "label") if name in schema.names]
        limits = ParquetLimits(len(content), 4 * _MAX_QUERIES, _MAX_BYTES, rows=_MAX_QUERIES)
        table = read_parquet(content, limits, wanted)
    except OSError as error:
        overlay_fault(path, f"cannot be read as Parquet: {error}", "check the path")
    except ParquetError as error:
        what = _UNFOLDS if error.kind in ("large", "memory") else str(error)
        overlay_fault(path, what, _FIXES.get(error.kind, _ONCE))
    if sum(bytes_of_copies(table.column(name)) for name in wanted) > _MAX_BYTES:
        overlay_fault(path, _UNFOLDS, _ONCE)
    fields: dict[str, Any] = {}
    for key in _KEYS[:-1]:
        value = (schema.metadata or {}).get(key.encode())
        if value is None:
            continue
        try:
            fields[key] = value.decode()
        except UnicodeDecodeError:
            overlay_fault(path, f"the {key} in its metadata is not UTF-8 text", "write the metadata as UTF-8")
    version = fields.get("benchmark_version", "")
    if version.isascii() and version.isdecimal() and len(version) <= _DIGITS:
        fields["benchmark_version"] = int(version)
    fields["queries"] = list(zip(_column(table, "query_id"), _column(table, "label"), strict=True))
    return fields


_ONCE = "list every query once, with a short label"
_UNFOLDS = f"its ids and labels unfold to more than {_MAX_BYTES:,} bytes"
_AGAIN = "write it again, or as JSON"
_FIXES = {
    "cut": _AGAIN,
    "damaged": _AGAIN,
    "encoding": "write its columns without an encoding, or JSON",
    "footer": "write one row group, without statistics",
    "rows": "list every query once",
}
"""By kind of a `ParquetError`."""


def _column(table: pa.Table, name: str) -> list[Any]:
    """The values of a column; nulls where the table lacks it."""
    if name not in table.schema.names:
        return [None] * table.num_rows
    values: list[Any] = table.column(name).to_pylist()
    return values


def _labels(path: Path, queries: Any) -> dict[str, str | None]:
    """Query ids with their labels; ids may be whole numbers, as audits of CIRR and CIRCO write them."""
    if isinstance(queries, dict):
        pairs = list(queries.items())
    elif isinstance(queries, list):
        pairs = [entry if isinstance(entry, tuple) else (entry, None) for entry in queries]
    else:
        overlay_fault(
            path, 'it lists no "queries"', "write a list of query ids, or an object of labels by query id"
        )
    labels: dict[str, str | None] = {}
    for number, (query, label) in enumerate(pairs, start=1):
        if type(query) is int:
            query = str(query)
        if not isinstance(query, str) or not query or _unprintable(query):
            fix = "write ids as strings without control characters"
            overlay_fault(path, f"entry {number}: {_shown(query)} is not a query id", fix)
        where = f"entry {number} (query {_shown(query)})"
        if label is not None and not isinstance(label, str):
            overlay_fault(path, f"{where}: its label is {_shown(label)}", "write labels as strings")
        if label is not None and _unprintable(label):
            overlay_fault(
                path, f"{where}: its label {_shown(label)} holds a control character", "leave it out"
            )
        if query in labels:
            overlay_fault(
                path, f"entry {number}: query {_shown(query)} is listed twice", "list every query once"
            )
        labels[query] = label
    if not labels:
        overlay_fault(path, "it lists no queries", "list at least one query id")
    return labels


def _unprintable(text: str) -> bool:
    """Whether a text holds a control character, a line break or half of a surrogate pair."""
    return not text.isprintable() and any(unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"} for c in text)


def overlay_fault(path: Path, what: str, fix: str) -> NoReturn:
    """Refuse an overlay's file.

    Raises:
        OverlayError: always.
    """
    raise OverlayError(f"{path}: {what}. Fix: {fix}.")
