"""What captions talk about, by patterns (`aspects.yaml`): the nine semantic aspects of CIRR's Table 1."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def aspect_table() -> Mapping[str, Mapping[str, Any]]:
    """The aspects in the order of the paper's rows: of each its name, its patterns, and the paper's coverage.

    Example:
        >>> list(aspect_table())[:2], aspect_table()["negation"]["published"]
        (['cardinality', 'addition'], {'cirr': 11.9, 'fashioniq': 4.0})
    """
    from cir_datasets.common.yaml import package_yaml

    loaded: Mapping[str, Mapping[str, Any]] = package_yaml("cir_datasets", "rows/aspects.yaml")
    return loaded


@functools.cache
def _patterns() -> Mapping[str, re.Pattern[str]]:
    entries = aspect_table().items()
    return {key: re.compile("|".join(f"(?:{one})" for one in entry["patterns"])) for key, entry in entries}


def caption_aspects(captions: Iterable[str]) -> list[str]:
    """The aspects of a query: those of all its captions together, in the table's order.

    Args:
        captions: as they were written; an empty one has none.

    Example:
        >>> caption_aspects(["Add two red boats and remove the sail."])[:3]
        ['cardinality', 'addition', 'negation']
        >>> caption_aspects(["is longer", ""])
        ['comparative_statement']
    """
    patterns, small = _patterns(), [caption.lower().replace("’", "'") for caption in captions]

    def has(key: str, unless: str | None) -> bool:
        return any(
            patterns[key].search(caption) and not (unless and patterns[unless].search(caption))
            for caption in small
        )

    return [key for key, entry in aspect_table().items() if has(key, entry.get("unless"))]


def query_aspects(row: Mapping[str, Any], names: Sequence[str] | Mapping[str, str]) -> list[str]:
    """The aspects that a row states, else those of its captions, where the card names these.

    A row's own are part of the data's hash; those of captions are read off when a report is made.

    Args:
        row: a query.
        names: the aspects that the card names.

    Example:
        >>> query_aspects({"aspects": [], "captions": ["no dog"]}, list(aspect_table()))
        ['negation', 'direct_addressing']
        >>> query_aspects({"aspects": [], "captions": ["no dog"]}, ["change", "negation"])
        []
    """
    stated = list(row.get("aspects") or ())
    if stated or list(names) != list(aspect_table()):
        return stated
    return caption_aspects(row.get("captions") or ())
