"""`cir metrics list` and `cir metrics install`."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated

import typer

from cir_datasets.common.atomic import write_whole
from cir_datasets.common.terminal import echo, echo_json, fitted
from cir_metrics.catalogue import METRICS
from cir_metrics.hook import module_folder


def metrics_commands() -> typer.Typer:
    """The group `cir metrics`."""
    metrics = typer.Typer(
        help="Metrics: which exist, and making their names known to evaluate.", no_args_is_help=True
    )
    metrics.command("list")(list_metrics)
    metrics.command("install")(install_metrics)
    return metrics


def list_metrics(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: one object a metric.")] = False,
) -> None:
    """List the metrics: name for evaluate.load, printed name, version, variants, protocol and source.

    \b
    Example:
        cir metrics list
    """
    from dataclasses import asdict

    if as_json:
        echo_json([asdict(entry) for entry in METRICS.values()])
        return
    rows = [("NAME", "PRINTED", "VERSION", "VARIANTS", "PROTOCOL", "SOURCE")]
    for entry in METRICS.values():
        printed = entry.printed + ("@K" if entry.has_cutoff else "")
        columns = (", ".join(entry.variants), ", ".join(entry.protocols), entry.source)
        rows.append((entry.name, printed, str(entry.version), *columns))
    echo(fitted(rows))


def install_metrics(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: name -> path of the script.")] = False,
) -> None:
    """Put the metrics into evaluate's cache, so that evaluate.load knows them without importing cir_metrics.

    Without a reachable Hub, set HF_HUB_OFFLINE=1 when loading: evaluate then goes to its cache at once.

    \b
    Example:
        cir metrics install
        cir setup cirr/val
    """
    echo("Installing the metrics into evaluate's cache ...", err=True)

    installed = install()
    if as_json:
        echo_json({name: str(path) for name, path in installed.items()})
        return
    for name, path in installed.items():
        echo(f"{name}  {path}")


def install() -> dict[str, Path]:
    """Copy the metrics' scripts into evaluate's module cache; a script that is there already stays.

    Returns:
        Module name -> path of its installed script.

    Raises:
        ImportError: evaluate cannot be imported.
        OSError: the cache cannot be written to.
    """
    from evaluate.loading import init_dynamic_modules

    metrics = Path(init_dynamic_modules()) / "metrics"
    return {name: _install_one(metrics, name) for name in sorted(METRICS)}


def _install_one(metrics: Path, name: str) -> Path:
    script = (module_folder(name) / f"{name}.py").read_bytes()
    package = metrics / f"evaluate-metric--{name}"
    folder = package / hashlib.sha256(script).hexdigest()
    folder.mkdir(parents=True, exist_ok=True)
    for each in (metrics, package, folder):
        if not (each / "__init__.py").is_file():
            (each / "__init__.py").touch()
    target = folder / f"{name}.py"
    if not target.is_file() or target.read_bytes() != script:
        write_whole(target, script)
    return target
