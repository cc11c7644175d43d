"""What the commands of this room share: words of options, JSON as it is printed, where a method is found."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cir_datasets.common.terminal import echo

if TYPE_CHECKING:
    from submissions.language.protocol import Language

FILE_HELP = (
    "A rank file or bundle (JSON, JSON Lines, Parquet, plain or gzip), a TREC run, a file of the CIRR or "
    "CIRCO server, ZeroSight results, or FashionIQ starter kit items."
)


def as_text(value: object) -> str:
    """A JSON value, indented, as commands print it."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def find_modules_here(method: str) -> None:
    """Have `module:Class` of the working directory found, as `python -m` does it; other names need nothing.

    Args:
        method: what a person named.
    """
    if ":" in method:
        sys.path.insert(0, str(Path.cwd()))


def report_usage(language: str | Language | None) -> None:
    """Say what was asked of a language backend, and what it cost; nothing of one that does not count."""
    if language is None or isinstance(language, str):
        return
    from submissions.language.usage import usage_text

    words = usage_text(language)
    if words:
        echo(words, err=True)
