"""The columns of a published configuration: names, types in words, descriptions, types in Croissant."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cir_datasets.errors import CardError
from cir_datasets.publishing.card_text import CardText


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
    words: Mapping[str, str] = {**_shared()[kind], **text.fields}
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


@functools.cache
def _shared() -> Mapping[str, Mapping[str, str]]:
    from cir_datasets.common.yaml import package_yaml

    loaded: dict[str, Any] = package_yaml("cir_datasets", "publishing/fields.yaml")
    return loaded
