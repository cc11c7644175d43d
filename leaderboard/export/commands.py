"""`cir leaderboard export-hub` and `cir leaderboard export-html`."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from cir_datasets.common.terminal import echo
from cir_metrics.errors import CallError
from leaderboard.options import Home


def export_hub(
    board_ids: Annotated[list[str], typer.Argument(metavar="BOARD...", help="Board ids, of one dataset.")],
    dataset: Annotated[str, typer.Option(help="The dataset's repository on the Hub.", metavar="OWNER/NAME")],
    out: Annotated[Path, typer.Option(help="Where to write: a folder, new or empty.")],
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="Model repository of a method, by its name or its submission's id; default: the repository "
            "that its code links to. Repeatable.",
            metavar="NAME=OWNER/NAME",
        ),
    ] = None,
    revision: Annotated[
        str | None, typer.Option(help="Revision on the Hub: the dataset's commit, 40 hex digits.")
    ] = None,
    framework: Annotated[
        str | None,
        typer.Option(help="evaluation_framework of eval.yaml, a name that the Hub knows; default: left out."),
    ] = None,
    home: Home = None,
) -> None:
    """Write boards in the format of the Hub's own boards; nothing is sent.

    Below --out lie dataset/eval.yaml and models/OWNER/NAME/.eval_results/TASK.yaml.
    Baselines and entries without a rank are left out.

    \b
    Example:
        cir leaderboard export-hub shapes/val --dataset me/shapes --out hub --model "Mine=me/mine"
    """
    from cir_datasets.common.atomic import write_errors, write_whole
    from leaderboard import boards, settings
    from leaderboard.export.hub import Exporter, hub_files, select
    from leaderboard.server import Server

    chosen = settings.read(home)
    exporter = Exporter(dataset, chosen.name, chosen.url, revision, framework, _models(model or []))
    boards.use(chosen.home)
    wanted = list(dict.fromkeys(boards.board(board_id) for board_id in board_ids))
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise CallError(f"--out: {out} is not an empty folder. Fix: name a new one, or empty it.")
    with closing(Server.open(chosen)) as server:
        standings = [(board, server.entries(board)) for board in wanted]
    results, left_out = select(standings, exporter.models)
    for path, content in hub_files(wanted, results, exporter).items():
        with write_errors(out / path, CallError, "name another folder with --out."):
            (out / path).parent.mkdir(parents=True, exist_ok=True)
            write_whole(out / path, content)
        echo(str(out / path))
    for sentence in left_out:
        echo(f"left out: {sentence}", err=True)


def export_html(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Where to write: new, empty, or an earlier mirror.")
    ],
    queries: Annotated[
        int, typer.Option(min=0, help="Query pages of a board, at most.", metavar="NUMBER")
    ] = 300,
    home: Home = None,
) -> None:
    """Write the pages of a leaderboard as files: a mirror to read, without a server.

    The mirror works on any static file host (a static Space of the Hub, too), and opened from disk. It has
    what everybody may read. Submissions, searches and filters need the server. An earlier mirror is replaced.

    \b
    Example:
        cir leaderboard export-html mirror
    """
    from cir_datasets.common.progress import step_progress
    from cir_datasets.common.terminal import counted
    from leaderboard import settings
    from leaderboard.export.html import check_folder, write_mirror
    from leaderboard.server import Server

    check_folder(folder)
    with closing(Server.open(settings.read(home))) as server, step_progress("pages", None) as advance:
        made = write_mirror(server, folder, queries, datetime.now(UTC), advance)
    echo(str(folder / "index.html"))
    for board_id, number in made.left_out.items():
        echo(f"left out: {counted(number, 'query page')} of {board_id}; --queries says how many", err=True)
    size = f"{made.size / 1e6:.1f} MB"
    echo(f"{counted(made.pages, 'page')}, {counted(made.files, 'file')}, {size}.", err=True)


def _models(written: list[str]) -> dict[str, str]:
    models = {}
    for one in written:
        name, equals, repository = one.rpartition("=")
        if not equals or not name:
            raise CallError(f"--model: {one!r} has no name. Fix: write NAME=OWNER/NAME.")
        if name in models:
            raise CallError(f"--model: {name!r} stands there twice. Fix: leave one of them out.")
        models[name] = repository
    return models
