"""The results file of ZeroSight's released evaluator: `{"<id>": [50 image paths], ...}`.

It looks like a file of the CIRCO server; the benchmark that the caller names tells them apart. The evaluator
averages over the queries that it finds and misses none: here every query must be there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from submissions.formats.unchecked import ReaderContext
from submissions.rank_file.model import ZEROSIGHT

if TYPE_CHECKING:
    from submissions.formats.unchecked import UncheckedFile
    from submissions.rank_file.model import RankFile

NAME = ZEROSIGHT
BENCHMARKS = ("zerosight",)
DEPTH = 50
"""Paths a query."""


def parse(document: Mapping[str, Any], context: ReaderContext) -> UncheckedFile | None:
    """Read the evaluator's results file.

    Args:
        document: the JSON object.
        context: findings, benchmarks, and what was asked for.
    """
    from submissions.formats.foreign import parse_rankings

    return parse_rankings(
        document,
        context,
        format_title="a ZeroSight results file",
        datasets=BENCHMARKS,
        example="zerosight/test",
        name=NAME,
    )


def dump(rank_file: RankFile) -> dict[str, bytes]:
    """The results file, under the part name "" since there is only one.

    Args:
        rank_file: rankings of ZeroSight, checked.

    Raises:
        ConversionError: a list is too short.
    """
    from submissions.formats.foreign import cut_rankings
    from submissions.rank_file.model import compact

    return {"": compact(cut_rankings(rank_file, DEPTH, "the ZeroSight evaluator"))}
