"""`cir datasets verify`."""

from __future__ import annotations

from typing import Annotated

import typer

from cir_datasets.commands.options import Benchmarks, DataDir
from cir_metrics.terminal import echo


def verify_benchmarks(
    benchmarks: Benchmarks,
    data_dir: DataDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: one object a benchmark.")] = False,
) -> None:
    """Check hashes, counts, ids and galleries anew; report known differences from the papers, and leaks.

    The exit code is 1 where there is a fault. Known differences from the papers, images that splits share and
    repeated queries are notes.

    \b
    Example:
        cir datasets verify cirr/val
        cir datasets verify fashioniq --json
    """
    from cir_datasets.audit.verification import Result, faults, verify
    from cir_datasets.common.progress import step_progress
    from cir_datasets.errors import SourceError
    from cir_datasets.huggingface.prepare_all import ids_of

    wanted = list(dict.fromkeys(found for name in benchmarks for found in ids_of(name)))
    found, printed, absent = [], list[Result](), 0
    with step_progress("verifying", len(wanted)) as advance:
        for benchmark_id in wanted:
            try:
                found.append(verify(benchmark_id, data_dir=data_dir))
            except SourceError as error:
                if len(wanted) == 1:
                    raise
                absent += 1
                echo(f"cir: {error}", err=True)
            else:
                if not as_json:
                    echo(found[-1].text(printed))
                    printed += found[-1].of_the_dataset
            advance(1)
    if as_json:
        import json

        echo(json.dumps([one.to_dict() for one in found], indent=2, ensure_ascii=False))
    if faults(found):
        raise typer.Exit(1)
    if absent:
        echo(f"cir: {absent} of {len(wanted)} benchmarks are not available, see above.", err=True)
        raise typer.Exit(2)
