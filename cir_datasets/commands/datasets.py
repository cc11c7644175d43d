"""`cir datasets ...`: the group of its commands."""

from __future__ import annotations

import typer

from cir_datasets.commands import CommandOfOptions
from cir_datasets.commands.data import prepare_benchmarks, show_statistics, verify_benchmarks
from cir_datasets.commands.exports import export_queries, publish_benchmarks, template_folder, write_qrels
from cir_datasets.commands.images import cover_images, hash_benchmark_images
from cir_datasets.commands.listing import browse_benchmark, list_benchmarks, show_benchmark
from cir_datasets.commands.overlays import overlay_commands
from cir_datasets.commands.user_folder import check_benchmark, new_benchmark


def datasets_commands() -> typer.Typer:
    """The group `cir datasets`."""
    datasets = typer.Typer(
        help="Benchmarks: which exist, what they ask, and preparing them for use.", no_args_is_help=True
    )
    datasets.command("list", cls=CommandOfOptions)(list_benchmarks)
    datasets.command("show", cls=CommandOfOptions)(show_benchmark)
    datasets.command("browse", cls=CommandOfOptions)(browse_benchmark)
    datasets.command("prepare", cls=CommandOfOptions)(prepare_benchmarks)
    datasets.command("images", cls=CommandOfOptions)(cover_images)
    datasets.command("hash", cls=CommandOfOptions)(hash_benchmark_images)
    datasets.command("new", cls=CommandOfOptions)(new_benchmark)
    datasets.command("check", cls=CommandOfOptions)(check_benchmark)
    datasets.command("template", cls=CommandOfOptions)(template_folder)
    datasets.command("export", cls=CommandOfOptions)(export_queries)
    datasets.command("qrels", cls=CommandOfOptions)(write_qrels)
    datasets.command("publish", cls=CommandOfOptions)(publish_benchmarks)
    datasets.command("stats", cls=CommandOfOptions)(show_statistics)
    datasets.command("verify", cls=CommandOfOptions)(verify_benchmarks)
    datasets.add_typer(overlay_commands(), name="overlay")
    return datasets
