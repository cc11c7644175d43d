"""Which reader reads a file: of JSON by its keys, never by its name.

What is gzip, JSON Lines, Parquet or a TREC run was found before, by `containers.kind_of`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from submissions.formats.context import ReaderContext
from submissions.rank_file.columns import Columns
from submissions.rank_file.findings import json_type, shown
from submissions.rank_file.names import BUNDLE, LINES, PARQUET, TREC

if TYPE_CHECKING:
    from submissions.formats.unchecked import UncheckedFile


def server_format(dataset: str) -> str | None:
    """The format of the server that holds a dataset's withheld ground truth, or None where there is none.

    Example:
        >>> server_format("cirr"), server_format("fashioniq")
        ('cirr-server', None)
    """
    from submissions.formats import circo_server, cirr_server

    servers = (cirr_server, circo_server)
    return next((server.NAME for server in servers if dataset in server.BENCHMARKS), None)


def is_bundle(document: Any) -> bool:
    """Whether a JSON value is a bundle of rank files."""
    return isinstance(document, dict) and document.get("format") == BUNDLE


def parse_packed(kind: str, content: bytes, context: ReaderContext) -> UncheckedFile | None:
    """Read one rank file that is not one JSON value.

    Args:
        kind: `lines`, `parquet` or `trec`.
        content: the file's bytes.
        context: findings, benchmarks, and what was asked for.

    Returns:
        What could be read, or None where the finding leaves nothing to check further.
    """
    from submissions.formats import lines, parquet, trec

    readers = {PARQUET: parquet.parse, LINES: lines.parse, TREC: trec.parse}
    unchecked = readers[kind](content, context)
    return None if unchecked is None else replace(unchecked, kind=kind)


def parse(document: Any, context: ReaderContext) -> UncheckedFile | None:
    """Read one rank file that is a JSON value.

    Args:
        document: the JSON value.
        context: findings, benchmarks, and what was asked for.

    Returns:
        What could be read, or None where the finding leaves nothing to check further.
    """
    from submissions.formats import circo_server, cirr_server, fashioniq, native, zerosight

    dataset = "" if context.expected is None else context.expected.partition("/")[0]
    if fashioniq.is_starter_kit(document, asked=dataset in fashioniq.BENCHMARKS):
        return fashioniq.parse(document, context)
    if not isinstance(document, Mapping):
        context.findings.add(
            "wrong-format", f"the file holds {json_type(document)}; a rank file is an object."
        )
        return None
    if "format" in document:
        return native.parse(document, context)
    if "version" in document and "metric" in document:
        return cirr_server.parse(document, context)
    if dataset in zerosight.BENCHMARKS:
        return zerosight.parse(document, context)
    if _is_numbered(document) and dataset:
        return circo_server.parse(document, context)
    if _is_numbered(document):
        context.findings.add("wrong-benchmark", _NAMELESS_LISTS, fix=_SAY_WHICH)
    elif "rankings" in document:
        context.findings.add(
            "wrong-format", 'the key "format" is missing, so that the file does not say how it is to be read.'
        )
    elif _holds_lists(document) and not dataset:
        context.findings.add("wrong-benchmark", _NAMELESS_LISTS, fix=_SAY_WHICH)
    else:
        keys = ", ".join(shown(key) for key in list(document)[:3])
        holds = f"an object with the keys {keys}" if keys else "an empty object"
        context.findings.add(
            "wrong-format",
            f"the file holds {holds}, which is neither a rank file, nor a file of the CIRR or CIRCO "
            "server, nor ZeroSight results.",
        )
    return None


_NAMELESS_LISTS = (
    "the file holds lists by query id and does not name its benchmark: files of the CIRCO server and "
    "ZeroSight results look like that."
)


_SAY_WHICH = "say which it answers, for example  --benchmark circo/test  or  --benchmark zerosight/test"


def _is_numbered(document: Mapping[str, Any]) -> bool:
    numbers = sum(key.isascii() and key.isdigit() for key in document)
    return numbers > 0 and 2 * numbers >= len(document)


def _holds_lists(document: Mapping[str, Any]) -> bool:
    """Whether nearly everything is a list, as in results that are nothing but rankings."""
    if isinstance(document, Columns):
        return len(document) > 0
    lists = sum(isinstance(value, list) for value in document.values())
    return lists > 0 and 2 * lists >= len(document)
