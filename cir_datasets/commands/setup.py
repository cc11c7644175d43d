"""`cir setup`: benchmarks and metrics made ready in one go."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from cir_datasets.commands import DataDirForAll, NoChecks, benchmark_values
from cir_datasets.common.terminal import echo, echo_json

_SECONDS = 3.0
"""How long the Hub may take to answer."""

_OFFLINE = (
    "The Hub cannot be reached from here. Set HF_HUB_OFFLINE=1 where you load without importing "
    "cir_datasets: load_dataset and evaluate.load then read the cache at once, and do not try the "
    "Hub six times first."
)


def setup_command(
    benchmarks: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID]...",
            autocompletion=benchmark_values,
            help="Benchmark ids, names (all configurations) or suites; default: all whose files are here.",
        ),
    ] = None,
    data_dir: DataDirForAll = None,
    no_checks: NoChecks = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON: benchmarks, what failed, and metrics.")
    ] = False,
) -> None:
    """Make benchmarks and metrics ready: cir datasets prepare and cir metrics install in one go.

    load_dataset("cirr", "val") and evaluate.load("pnr_map") then work without importing cir_datasets and
    cir_metrics. A benchmark that fails does not stop the others. What is there already is checked and stays.

    \b
    Example:
        cir setup shapes
        cir setup cirr/val fashioniq/val --data-dir ~/data
    """
    from cir_datasets.commands.metrics import install
    from cir_datasets.errors import DatasetError
    from cir_datasets.huggingface.prepare_all import prepare_all
    from cir_datasets.registry import ids_of

    wanted = list(ids_of(*(benchmarks or ())))
    given = data_dir if wanted else None  # else it is CIR_DATA_HOME of this call already
    wanted = wanted or benchmarks_here()
    echo(f"Preparing {', '.join(wanted)}; then the metrics ...", err=True)
    done, failure, mode = [], None, "no_checks" if no_checks else None
    try:
        for outcome in prepare_all(wanted, given, mode, force=False, hub_cache=True, say=_say):
            done.append(outcome)
            if not as_json:
                echo(outcome.text() + ("\n  was there already" if outcome.there_before else ""))
    except DatasetError as error:
        failure = error
    metrics = install()
    ready = [outcome.prepared.spec.id for outcome in done]
    failed = [benchmark for benchmark in wanted if benchmark not in ready]
    if as_json:
        found = {
            "benchmarks": [outcome.to_dict() for outcome in done],
            "failed": failed,
            "metrics": {name: str(path) for name, path in metrics.items()},
        }
        echo_json(found)
    else:
        echo(f"metrics: {', '.join(metrics)}")
    _say(_summary(ready, sum(outcome.there_before for outcome in done), failed, metrics))
    if ready and not _hub_answers():
        _say(_OFFLINE)
    if failure is not None:
        raise failure


def _say(words: str) -> None:
    echo(words, err=True)


def benchmarks_here() -> list[str]:
    """The benchmarks whose publishers' files are on this machine; the embedded ones always are."""
    from cir_datasets import registry, sources

    every = (f"{name}/{config}" for name in registry.names() for config in registry.card(name).configs)
    return [found for found in every if sources.local_files(registry.spec(found)) is not None]


def _summary(ready: Sequence[str], there: int, failed: Sequence[str], metrics: dict[str, Path]) -> str:
    """How many are ready, what failed, and the first lines that work now."""
    from cir_datasets.common.terminal import counted

    before = f" ({there:,} there already)" if there else ""
    lines = [f"Ready: {counted(len(ready), 'benchmark')}{before} and {counted(len(metrics), 'metric')}."]
    if failed:
        lines.append(f"Failed: {', '.join(failed)}.")
    if ready:
        name, _, config = ready[0].partition("/")
        lines.append(
            f'Without an import of ours: load_dataset("{name}", "{config}") and evaluate.load("pnr_map").'
        )
        here = sorted({each.partition("/")[0] for each in ready if Path(each.partition("/")[0]).is_dir()})
        if here:
            lines.append(
                f"Not from this folder: load_dataset takes {', '.join(here)} here for the data set. "
                "Fix: call it in another folder, or import cir_datasets (CIR_BENCHMARKS names your own)."
            )
    return "\n".join(lines)


def _hub_answers() -> bool:
    """Whether the Hub can be reached: asked once, and not at all where HF_HUB_OFFLINE says no."""
    from cir_datasets.common.addresses import endpoint

    address, login = endpoint("HF_ENDPOINT", "https://huggingface.co")
    import httpx
    from huggingface_hub import constants

    from cir_datasets.errors import HttpAnswerError
    from cir_datasets.sources.client import BoundedClient

    if constants.is_offline_mode():
        return True  # whoever has set it knows, and the libraries do not ask
    try:
        with BoundedClient(seconds=_SECONDS, num_bytes=0, auth=login) as client:
            client.head(address)
    except (httpx.HTTPError, HttpAnswerError):
        return False
    return True
