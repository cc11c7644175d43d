"""`cir run`, `cir validate`, `cir score` and the others: one module a command, each free of heavy imports.

Here stands what they share: options that several have in the same words, JSON as it is printed, where a
method is found.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cir_datasets.commands import Options, benchmark_values, option
from cir_datasets.common.terminal import echo

if TYPE_CHECKING:
    from submissions.language.protocol import Language

FILE_HELP = (
    "A rank file or bundle (JSON, JSON Lines, Parquet, plain or gzip), a TREC run, a run of pytrec_eval, "
    "ranx or MTEB, a file of the CIRR or CIRCO server, ZeroSight results, or FashionIQ starter kit items."
)


def method_values(incomplete: str) -> list[str]:
    """Names of methods that begin so.

    Args:
        incomplete: what was typed.

    Example:
        >>> method_values("cirp")
        ['cirplant']
    """
    from submissions.methods.registry import method_names

    return [name for name in method_names() if name.startswith(incomplete)]


class Resamples(Options):
    """Of commands that draw queries anew."""

    draws: int = option(10_000, "Draws: of the bootstrap and of tests that are not exact.")
    seed: int = option(2026, "Seed, a whole number from 0, of the draws.")


class TestsDifferences(Resamples):
    """Of commands that say which differences are significant."""

    alpha: float = option(0.05, "Level of significance, a share; intervals hold 1 - alpha.")


Benchmark = Annotated[
    str | None,
    typer.Option(
        "--benchmark",
        "-b",
        autocompletion=benchmark_values,
        help="Id of the benchmark, or suite, that the file answers; formats of others do not say it "
        "themselves.",
    ),
]
"""Of a file that is judged."""
SingleQueries = Annotated[
    str,
    typer.Option(
        "--benchmark",
        "-b",
        autocompletion=benchmark_values,
        help="Id of the benchmark, of single queries with public targets.",
    ),
]
MethodName = Annotated[
    str,
    typer.Option(
        "--method",
        "-m",
        autocompletion=method_values,
        help="Name of the method, of cir methods list, or module:Class of your own.",
    ),
]


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


def speaker_of(language: str, prompts: str | Path | None) -> Language:
    """A language backend by its name.

    Args:
        language: as of --language.
        prompts: folder of prompts that replace ours; None: none does.
    """
    from submissions.language import load_language

    return load_language(language, **({} if prompts is None else {"prompts": prompts}))


def report_usage(language: str | Language | None) -> None:
    """Say what was asked of a language backend, and what it cost; nothing of one that does not count."""
    if language is None or isinstance(language, str):
        return
    from submissions.language.usage import usage_text

    words = usage_text(language)
    if words:
        echo(words, err=True)
