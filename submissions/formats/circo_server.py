"""The CIRCO test server's file: `{"0": [50 ids], ..., "799": [...]}` with ids as integers.

The server does not check the length of the lists, so that a short one costs points
silently: it is checked here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from submissions.errors import ConversionError
from submissions.formats.unchecked import ReaderContext
from submissions.rank_file.findings import shown
from submissions.rank_file.model import CIRCO_SERVER

if TYPE_CHECKING:
    from submissions.formats.unchecked import UncheckedFile
    from submissions.rank_file.model import RankFile

NAME = CIRCO_SERVER
BENCHMARKS = ("circo",)
DEPTH = 50
"""Ids a query."""


def parse(document: Mapping[str, Any], context: ReaderContext) -> UncheckedFile | None:
    """Read the server's file; ids may be integers, short or padded strings, with or without ".jpg".

    Args:
        document: the JSON object.
        context: findings, benchmarks, and what was asked for.
    """
    from submissions.formats.foreign import parse_rankings

    return parse_rankings(
        document,
        context,
        format_title="a CIRCO server file",
        datasets=BENCHMARKS,
        example="circo/test",
        name=NAME,
    )


def dump(rank_file: RankFile) -> dict[str, bytes]:
    """The server's file, under the part name "" since there is only one.

    Args:
        rank_file: rankings of CIRCO, checked.

    Raises:
        ConversionError: a list is too short, or an id is not a number.
    """
    from submissions.formats.foreign import cut_rankings
    from submissions.rank_file.model import compact

    document: dict[str, list[int]] = {}
    for query, ids in cut_rankings(rank_file, DEPTH, "the CIRCO server").items():
        wrong = next((image for image in ids if not (image.isascii() and image.isdigit())), None)
        if wrong is not None:
            raise ConversionError(
                f"query {shown(query)}: {shown(wrong)} is not a COCO id. Fix: use CIRCO's 12 digits."
            )
        document[query] = [int(image) for image in ids]
    return {"": compact(document)}
