"""The data as it is published: Parquet files in the Hub's layout, and their columns in words.

The files are `<config>/<split>-00000-of-00001.parquet`. Their bytes depend on the rows and on pyarrow's
version alone, so that publishing again changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from cir_datasets.common.paths import sha256_of
from cir_datasets.errors import CardError
from cir_datasets.publishing.card_text import CardText
from cir_datasets.registry import BenchmarkSpec


@dataclass(frozen=True)
class PublishedField:
    """A column, or a field inside one.

    Args:
        path: name, dotted where nested (`turns.turn`).
        type: Arrow type, the fields of a struct left out.
        repeated: whether it is a list.
        inside: the fields of its struct, empty where it has none.
        description: one sentence.
    """

    path: str
    type: pa.DataType
    repeated: bool
    inside: tuple[PublishedField, ...]
    description: str

    @property
    def type_words(self) -> str:
        """The type for people: `string`, `list of string`, `list of struct`."""
        words = "struct" if self.inside else str(self.type)
        return f"list of {words}" if self.repeated else words

    @property
    def croissant_type(self) -> str:
        """The type in Croissant's vocabulary."""
        if pa.types.is_integer(self.type):
            return "sc:Integer"
        if pa.types.is_floating(self.type):
            return "sc:Float"
        return "sc:Boolean" if pa.types.is_boolean(self.type) else "sc:Text"


def published_fields(name: str, kind: str, schema: pa.Schema, text: CardText) -> tuple[PublishedField, ...]:
    """The columns of a configuration with their descriptions.

    Args:
        name: the benchmark's name.
        kind: `query`, `session` or `image`.
        schema: Arrow schema of its rows.
        text: the benchmark's hand-written part, which describes its own fields.

    Raises:
        CardError: nobody has described a field.
    """
    from cir_datasets.common.yaml import package_yaml

    words = {**package_yaml("cir_datasets", "publishing/fields.yaml")[kind], **text.fields}
    return tuple(_field(name, field, "", words) for field in schema)


def flat(fields: tuple[PublishedField, ...]) -> Iterator[PublishedField]:
    """All fields, each followed by those inside it."""
    for field in fields:
        yield field
        yield from flat(field.inside)


def _field(name: str, field: pa.Field, above: str, words: Mapping[str, str]) -> PublishedField:
    path = f"{above}{field.name}"
    if path not in words:
        raise CardError(
            f"cards/{name}.md: the field {path!r} is not described. Fix: add it under `fields:` there."
        )
    repeated = pa.types.is_list(field.type) or pa.types.is_large_list(field.type)
    kind = field.type.value_type if repeated else field.type
    inside = tuple(kind) if pa.types.is_struct(kind) else ()
    return PublishedField(
        path=path,
        type=kind,
        repeated=repeated,
        inside=tuple(_field(name, child, f"{path}.", words) for child in inside),
        description=words[path],
    )


MAX_ROWS_A_FILE = 500_000
"""More rows than this are written to several files."""

_ROWS_A_GROUP = 10_000


@dataclass(frozen=True)
class PublishedFile:
    """A Parquet file: its path relative to the published folder, its sha256 (hex) and its size in bytes."""

    path: str
    sha256: str
    num_bytes: int


@dataclass(frozen=True)
class PublishedConfig:
    """A configuration as it was written: queries, sessions, or the images of a gallery."""

    name: str
    spec: BenchmarkSpec
    is_manifest: bool
    schema: pa.Schema
    rows: int
    num_bytes: int
    """Size of the rows in memory, in bytes."""
    files: tuple[PublishedFile, ...]

    @property
    def kind(self) -> str:
        """What a row is: `query`, `session` or `image`."""
        if self.is_manifest:
            return "image"
        return "session" if self.spec.kind == "multi_turn" else "query"

    @property
    def split(self) -> str:
        """The one split, by the Hub's name."""
        return str(self.spec.config.split)


def write_config(
    source: Path,
    folder: Path,
    name: str,
    spec: BenchmarkSpec,
    *,
    is_manifest: bool,
    max_rows: int = MAX_ROWS_A_FILE,
) -> PublishedConfig:
    """Write one configuration from prepared Parquet, a part at a time.

    Args:
        source: the prepared Parquet file.
        folder: the folder to publish to; `<name>/` is made in it.
        name: the configuration's name.
        spec: the benchmark that it belongs to.
        is_manifest: whether it is the gallery.
        max_rows: most rows in a file.
    """
    reader = pq.ParquetFile(source)
    rows, schema = reader.metadata.num_rows, reader.schema_arrow
    count = max(1, math.ceil(rows / max_rows))
    paths = [f"{name}/{spec.config.split}-{number:05d}-of-{count:05d}.parquet" for number in range(count)]
    (folder / name).mkdir(parents=True, exist_ok=True)
    num_bytes = 0
    batches = reader.iter_batches(min(_ROWS_A_GROUP, max_rows))
    waiting: pa.Table = schema.empty_table()
    for path in paths:
        with pq.ParquetWriter(folder / path, schema, compression="zstd", version="2.6") as writer:
            left = min(max_rows, rows)
            while left > 0:
                table = waiting if waiting.num_rows else pa.Table.from_batches([next(batches)])
                part, waiting = table.slice(0, left), table.slice(left)
                writer.write_table(part)
                num_bytes += part.nbytes
                left -= part.num_rows
                rows -= part.num_rows
    return PublishedConfig(
        name=name,
        spec=spec,
        is_manifest=is_manifest,
        schema=schema,
        rows=reader.metadata.num_rows,
        num_bytes=num_bytes,
        files=tuple(
            PublishedFile(path, sha256_of(folder / path), (folder / path).stat().st_size) for path in paths
        ),
    )
