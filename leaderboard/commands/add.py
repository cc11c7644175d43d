"""`cir leaderboard add` and `rebuild`: rank files put onto the boards of a home, without a server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cir_datasets.commands import DataDirAnywhere, NoChecksAnywhere
from cir_datasets.common.terminal import echo, echo_json
from cir_metrics.errors import CallError, CirError
from leaderboard.commands import opened_server
from leaderboard.commands.submit import benchmark_of
from leaderboard.options import Home

if TYPE_CHECKING:
    from leaderboard.boards import Board
    from leaderboard.client import Outcome
    from leaderboard.server import Server
    from leaderboard.store.submission import Submission


def add(
    files: Annotated[list[Path], typer.Argument(help="Rank files.")],
    board: Annotated[
        str | None, typer.Option(help="Board id; default: the board of the benchmark that a file names.")
    ] = None,
    baseline: Annotated[bool, typer.Option("--baseline", help="Mark the entries as baselines.")] = False,
    home: Home = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON: the outcome of every file, refused ones too.")
    ] = False,
    data_dir: DataDirAnywhere = None,
    no_checks: NoChecksAnywhere = False,
) -> None:
    """Put rank files onto the boards of a home, without a server; the same file twice is one entry.

    A baseline takes the place of an earlier baseline with the same method name on that board.

    \b
    Example:
        cir leaderboard add --baseline run.json
    """
    with opened_server(home) as server:
        put = _added if len(files) == 1 else _tried
        outcomes = [put(server, path, board, baseline, quiet=as_json) for path in files]
    if as_json:
        echo_json(outcomes)
    refused = [path for path, one in zip(files, outcomes, strict=True) if one["state"] != "published"]
    if refused:
        raise CirError(
            f"{len(refused)} of {len(files)} files are not on a board: {', '.join(map(str, refused))}"
        )


def rebuild(home: Home = None) -> None:
    """Make a lost database anew from the rank files; the server judges them when it runs.

    A file names its benchmark and its method. What stands in no file is lost: who sent it, what a form said,
    and what was private, withdrawn or hidden. So nothing comes onto a board: organisers publish what belongs
    there with  cir leaderboard change ID publish. A backup has all that: see  cir leaderboard backup.

    \b
    Example:
        cir leaderboard rebuild
    """
    from leaderboard import boards, settings
    from leaderboard.store import Store
    from leaderboard.store.files import files_of

    chosen = settings.read(home)
    boards.use(chosen.home)
    files = files_of(chosen)
    store = Store(chosen.database_url)
    try:
        if not store.is_empty():
            raise CallError(f"{chosen.home}: the database holds submissions. Fix: move it away first.")
        taken = skipped = 0
        for sha256 in files.names():
            try:
                path = files.local_copy(sha256)
                board = _board_of(path)
            except CirError as error:
                skipped += 1
                echo(f"{sha256}: left out: {str(error).splitlines()[0]}", err=True)
                continue
            size = path.stat().st_size
            name = f"{sha256[:12]}.json"
            store.receive(board=board.id, sha256=sha256, size=size, file_name=name, publish=False)
            taken += 1
    finally:
        store.close()
    echo(f"{taken} rank files wait to be judged; {skipped} are left out.")
    echo("All stay private: publish what belongs onto a board with  cir leaderboard change ID publish")


def _board_of(file: Path) -> Board:
    """The board of the benchmark, or suite, that a file names."""
    from leaderboard import boards
    from leaderboard.intake.destination import board_of_benchmark
    from submissions.formats import is_transcript

    benchmark = benchmark_of(file, lambda: f": {', '.join(boards.ids())}")
    return board_of_benchmark(benchmark, dialogue=is_transcript(str(file)))


def _tried(server: Server, path: Path, board_id: str | None, baseline: bool, *, quiet: bool) -> Outcome:
    """As `_added`; a file that is refused before it is judged does not keep the others away."""
    from cir_metrics.errors import UnknownNameError
    from leaderboard.errors import UploadRefusedError
    from submissions.rank_file.findings import RefusedError

    try:
        return _added(server, path, board_id, baseline, quiet=quiet)
    except (RefusedError, UnknownNameError, UploadRefusedError) as error:
        echo(f"{path}: {error}", err=True)
        return {"path": str(path), "new": False, "state": "refused", "message": str(error)}


def _added(server: Server, path: Path, board_id: str | None, baseline: bool, *, quiet: bool) -> Outcome:
    """Put one file onto a board, and what became of it."""
    from leaderboard.intake import Cover, chunks_of
    from leaderboard.standings.views import submission_view

    if not path.is_file():
        raise CallError(f"{path}: no such file. Fix: name rank files that exist.")
    board = server.intake.board(board_id) if board_id else _board_of(path)
    server.worker.load(board)
    cover = Cover(file_name=path.name, baseline=baseline)
    submission, new = server.intake.take(board.id, chunks_of(path), cover)
    submission = server.worker.process(submission)
    same = submission_view(submission)["same_as"]
    if same is not None:
        # Its rankings stand on the board already: this file, written otherwise, is not an entry of its own.
        submission, new = server.store.submission(same) or submission, False
    if baseline and submission.state == "published":
        server.supersede_baselines(submission)
    if submission.state != "published":
        echo(_reason(submission), err=True)
    elif not quiet:
        echo(_line(board, submission, "added" if new else "already there"))
    return {**submission_view(submission), "path": str(path), "new": new}


def _line(board: Board, submission: Submission, word: str) -> str:
    metrics = (submission.scores or {})["metrics"]
    value = board.primary_value(metrics)
    shown = f"{100 * value:.2f}" if board.primary_unit == "percent" else f"{value:.1f}"
    return f"{board.id}\t{(submission.method or {}).get('name', '')}\t{board.primary}\t{shown}\t{word}"


def _reason(submission: Submission) -> str:
    from leaderboard.standings.views import submission_view

    view = submission_view(submission)
    return str(view["message"] or view["findings_text"] or f"{submission.file_name}: {submission.state}")
