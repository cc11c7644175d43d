"""`cir run`, `cir validate`, `cir score` and the others: one module a command, each free of heavy imports.

Here stands what they share: options that several have in the same words, JSON as it is printed, where a
method is found.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cir_datasets.commands import Options, PrintsTables, benchmark_values, option
from cir_datasets.common.terminal import counted, echo

if TYPE_CHECKING:
    from cir_datasets.common.estimates import Work
    from submissions.language.protocol import Language
    from submissions.running.options import RunOptions

_CALL_SECONDS = 2.0
"""About what an answer takes; most questions of a re-ranker show two pictures."""
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


def method_names_of(given: Sequence[str]) -> dict[str, str]:
    """By file the method's name that stands behind it in `FILE=NAME`.

    Raises:
        CallError: a text is not of that form.

    Example:
        >>> method_names_of(["ours.json=Ours"])
        {'ours.json': 'Ours'}
    """
    from cir_metrics.errors import CallError

    names = {}
    for each in given:
        file, equals, name = each.rpartition("=")
        if not equals or not file:
            raise CallError(f"--name {each!r} is not FILE=NAME. Fix: write --name ours.json=Ours.")
        names[file] = name
    return names


class Resamples(Options):
    """Of commands that draw queries anew."""

    draws: int = option(10_000, "Draws: of the bootstrap and of tests that are not exact.")
    seed: int = option(2026, "Seed, a whole number from 0, of the draws.")


class TestsDifferences(Resamples):
    """Of commands that say which differences are significant."""

    alpha: float = option(0.05, "Level of significance, a share; intervals hold 1 - alpha.")


class DrawsPlots(PrintsTables):
    """Of commands that also draw a picture, by an option `--plot` of their own."""

    def __post_init__(self) -> None:
        """Refuse formats as `PrintsTables` does, and before any work a plot that cannot be drawn."""
        super().__post_init__()
        if (plot := getattr(self, "plot", None)) is not None:
            from submissions.report.plots import plot_path

            plot_path(plot, "--plot")


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


class EstimatesReranking(Options):
    """Of commands that say before the work what a re-ranker would ask."""

    dry_run: bool = option(
        False, "Print an estimate of calls, tokens and hours of the re-ranker, and rank nothing."
    )
    picture_tokens: int | None = option(None, "Of --dry-run: tokens of a picture.", min=1, in_file=True)
    call_seconds: float | None = option(
        None, f"Of --dry-run: seconds of a call ({_CALL_SECONDS:g}).", min=0.001, in_file=True
    )

    @property
    def tokens(self) -> int:
        """Tokens of a picture."""
        from cir_datasets.common.estimates import PICTURE_TOKENS

        return self.picture_tokens or PICTURE_TOKENS

    def check_dry_run(self, out: Path | None) -> None:
        """Refuse what an estimate, or a run, would ignore.

        Raises:
            CallError: `--out` beside `--dry-run`, or one of its figures without it.
        """
        from cir_metrics.errors import CallError

        figures = self.by_option("picture_tokens", "call_seconds")
        if self.dry_run and out is not None:
            raise CallError("--dry-run writes no file. Fix: leave --out or --dry-run out.")
        if figures and not self.dry_run:
            raise CallError(
                f"{', '.join(figures)}: only beside --dry-run. Fix: leave it out, or add --dry-run."
            )

    def print_estimate(
        self, found: Mapping[str, Sequence[Work]], settings: RunOptions, *, as_json: bool
    ) -> None:
        """Print estimates by benchmark: a table each, or one list of JSON."""
        from cir_datasets.common.tables import render
        from submissions.running.rerank_estimate import estimate_of

        seconds = self.call_seconds or _CALL_SECONDS
        estimates = {name: estimate_of(name, work, settings, seconds) for name, work in found.items()}
        if as_json:
            rows = [{"benchmark": name, **row} for name, of in estimates.items() for row in of.values()]
            echo(as_text(rows))
            return
        for estimate in estimates.values():
            echo(render([estimate.table()], "table"))


def as_text(value: object) -> str:
    """A JSON value, indented, as commands print it."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def write_rows(rows: Sequence[Mapping[str, object]], path: Path) -> None:
    """Write a JSON object a line, and say where and how many."""
    from submissions.rank_file.model import write_bytes

    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    echo(f"{write_bytes(''.join(lines).encode(), path)}: {counted(len(lines), 'line')}", err=True)


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


def echo_use(folder: Path) -> None:
    """Say by which id a benchmark that was made is used, and what makes it known."""
    from cir_datasets.registry.folder_card import configs_of
    from cir_datasets.registry.folders import read_folder_card

    card = read_folder_card(folder)
    known = f"CIR_BENCHMARKS={shlex.quote(str(folder))}"
    for config in configs_of(card, folder):
        echo(f"Use it: {known} cir datasets show {card.name}/{config}", err=True)
