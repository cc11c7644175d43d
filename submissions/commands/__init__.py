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
ENCODER_HELP = "Encoder: a name on the Hub, a folder, or shapes (the shipped one, the default on shapes)"
LANGUAGE_HELP = (
    "Language backend: oracle (shapes), openai:MODEL, transformers:FOLDER_OR_NAME, SEES+WRITES; options "
    "behind it, as in openai:MODEL,concurrency=8"
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
Encoder = Annotated[str | None, typer.Option("--encoder", "-e", help=f"{ENCODER_HELP}.")]
CaptionRule = Annotated[
    str | None,
    typer.Option(
        "--caption-rule",
        help="How several captions of a query become text; default: strip_capitalize_and.",
    ),
]
Checkpoint = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        help="The method's own trained weights, file or folder; shapes: those that come with the package for "
        "cirplant and tirg.",
    ),
]
Prompts = Annotated[
    Path | None,
    typer.Option("--prompts", help="Folder of prompts that replace ours; default: CIR_PROMPTS."),
]
Revision = Annotated[
    str | None,
    typer.Option("--revision", help="Revision on the Hub: the encoder's commit, branch or tag."),
]
Device = Annotated[str, typer.Option("--device", help="Where the model runs: auto, cpu, cuda, cuda:1, mps.")]
Dtype = Annotated[
    str,
    typer.Option(
        "--dtype", help="The model's numbers: float32, float16, bfloat16, or auto (float16 on cuda)."
    ),
]
BatchSize = Annotated[
    int, typer.Option("--batch-size", help="Batch: images or texts that are encoded at once.")
]
Engine = Annotated[
    str,
    typer.Option("--engine", help="Where it runs: local (this machine), or ray (workers of a Ray cluster)."),
]
Address = Annotated[
    str | None,
    typer.Option(
        "--address", help="Ray cluster: auto or host:port; default: one on this machine for this call."
    ),
]
Seed = Annotated[int, typer.Option("--seed", help="Seed, a whole number from 0, of all that is drawn.")]
KeptImages = Annotated[
    int | None,
    typer.Option(
        "--k",
        help="First images of a ranking, 1 to 1,000, that are kept; default: what the board uses.",
    ),
]


class MakesBenchmark(Options):
    """What every construction pipeline takes."""

    out: Path = option(..., "Where to write: the folder of the run; a stopped run goes on in it.", "-o")
    name: str | None = option(None, "Name of what is made: the benchmark's; default: made from --out.")
    prompts: Prompts = None
    device: Device = "auto"
    engine: Engine = "local"
    address: Address = None
    dry_run: bool = option(False, "Print an estimate of calls, tokens and hours, and make nothing.")


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


def speaker_of(language: str, prompts: Path | None) -> Language:
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
