"""What the commands of this room share: the words of common options, and JSON as it is printed."""

from __future__ import annotations

import json

FILE_HELP = "A rank file, a bundle, a file of the CIRR or CIRCO server, or ZeroSight results."
BENCHMARK_HELP = (
    "Id of the benchmark or suite that the file answers; servers' files do not say it themselves."
)


def as_text(value: object) -> str:
    """A JSON value, indented, as commands print it."""
    return json.dumps(value, ensure_ascii=False, indent=2)
