"""What the commands of this room share: the words of common options, and JSON as it is printed."""

from __future__ import annotations

import json

FILE_HELP = (
    "A rank file or bundle (JSON, JSON Lines, Parquet, plain or gzip), a TREC run, a file of the CIRR or "
    "CIRCO server, ZeroSight results, or FashionIQ starter kit items."
)
BENCHMARK_HELP = (
    "Id of the benchmark or suite that the file answers; formats of others do not say it themselves."
)


def as_text(value: object) -> str:
    """A JSON value, indented, as commands print it."""
    return json.dumps(value, ensure_ascii=False, indent=2)
