"""`cir datasets prepare`."""

from __future__ import annotations

from typing import Annotated

import typer

from cir_datasets.commands import Benchmarks, DataDir, JsonBenchmarks, NoChecks, mode_of
from cir_datasets.common.terminal import echo


def prepare_benchmarks(
    benchmarks: Benchmarks,
    data_dir: DataDir = None,
    no_checks: NoChecks = False,
    no_hub_cache: Annotated[
        bool, typer.Option("--no-hub-cache", help="Do not fill the Hugging Face cache for load_dataset.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Prepare again, and fetch files that the card does not pin again.")
    ] = False,
    as_json: JsonBenchmarks = False,
) -> None:
    """Read, check and write benchmarks once, so that they load at once, and without a network.

    The Hugging Face cache is filled too: load_dataset("cirr", "val") then works without importing
    cir_datasets (set HF_HUB_OFFLINE=1 where the Hub cannot be reached).

    \b
    Example:
        cir datasets prepare shapes
        cir datasets prepare cirr/val --data-dir ~/data/cirr
    """
    from cir_datasets.huggingface.prepare_all import prepare_all

    mode = mode_of(no_checks)
    done = []
    try:
        for outcome in prepare_all(
            benchmarks, data_dir, mode, force=force, hub_cache=not no_hub_cache, say=_say
        ):
            done.append(outcome.to_dict())
            if not as_json:
                echo(outcome.text())
    finally:
        if as_json:
            import json

            echo(json.dumps(done, indent=2))


def _say(words: str) -> None:
    echo(words, err=True)
