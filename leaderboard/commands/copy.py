"""The commands `cir leaderboard export`, `import`, `backup`, `verify`, `take-over` and `squash`."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cir_datasets.common.terminal import counted, echo
from cir_metrics.errors import CallError
from leaderboard.options import Home

if TYPE_CHECKING:
    from leaderboard.settings import Settings
    from leaderboard.store import Store
    from leaderboard.store.files import FileStore

_STAMP = "%Y-%m-%dT%H%M%S.%fZ"


def export(
    folder: Annotated[Path, typer.Argument(help="Folder to make; it must not exist.")], home: Home = None
) -> None:
    """Write everything that a leaderboard holds as open files; its server may run meanwhile.

    \b
    Example:
        cir leaderboard export everything
    """
    echo(_exported(folder, home))


def import_(
    folder: Annotated[Path, typer.Argument(help="Folder that export wrote.")], home: Home = None
) -> None:
    """Fill a new leaderboard with an export; no server of that leaderboard runs meanwhile.

    \b
    Example:
        cir leaderboard import everything --home new
    """
    from leaderboard import settings
    from leaderboard.store import Store
    from leaderboard.store.files import files_of
    from leaderboard.store.transfer import import_store

    chosen = settings.read(home)
    chosen.home.mkdir(parents=True, exist_ok=True)
    with closing(Store(chosen.database_url)) as store:
        counts = import_store(folder, store, files_of(chosen))
    echo(f"{chosen.home}: {_counted(counts)}")


def backup(
    to: Annotated[Path, typer.Option("--to", help="Where to: a folder of backups.")],
    keep: Annotated[int, typer.Option(help="Backups to keep; older ones are removed.", min=1)] = 7,
    home: Home = None,
) -> None:
    """Export into a new folder named after the time, and remove the oldest beyond a number.

    A backup comes back with  cir leaderboard import.

    \b
    Example:
        cir leaderboard backup --to backups --keep 14
    """
    folder = to / datetime.now(UTC).strftime(_STAMP)
    echo(_exported(folder, home))
    for old in sorted(_backups(to))[:-keep]:
        shutil.rmtree(to / old)
        echo(f"{to / old}: removed, {keep} newer ones are kept.")


def verify(home: Home = None) -> None:
    """Read every rank file that a submission names, and name those that are missing or damaged.

    Its server may run meanwhile; the database is checked as well. Exit code 1 where a file is lost.

    \b
    Example:
        cir leaderboard verify
    """
    from leaderboard.errors import LostFileError
    from leaderboard.store.sweeping import kept_files

    with _opened(home) as (store, files):
        with store.database.read() as connection:
            wanted = kept_files(connection)
        for sha256 in wanted:
            try:
                files.local_copy(sha256)
            except LostFileError as error:
                named = ", ".join(f"{one.id} on {one.board}" for one in store.of_file(sha256))
                echo(f"{error}\n  Submissions: {named}.")
    echo(f"{counted(len(wanted), 'rank file')}: {len(files.lost) or 'none'} missing or damaged.", err=True)
    if files.lost:
        raise typer.Exit(1)


def take_over(
    database: Annotated[
        str, typer.Option(help="What CIR_LEADERBOARD_DATABASE named so far: the address of a database.")
    ],
    rank_files: Annotated[
        str,
        typer.Option(
            "--rank-files",
            help="What CIR_LEADERBOARD_FILES named: a folder or a bucket. Without it the rank files are "
            "in the repository of the log already, as hf://datasets/OWNER/NAME.",
        ),
    ] = "",
    home: Home = None,
) -> None:
    """Bring a leaderboard on a database elsewhere into the log that CIR_LEADERBOARD_LOG names.

    No server of that leaderboard runs meanwhile. The database and the files stay as they are.

    \b
    Example:
        cir leaderboard take-over --database postgresql+psycopg://me@host/board --home new
    """
    import asyncio
    import tempfile

    from leaderboard.errors import FileStoreError
    from leaderboard.store import Store
    from leaderboard.store.files import files_of, open_files
    from leaderboard.store.hub_log import HubLog
    from leaderboard.store.transfer import export_store, import_store

    chosen = _with_log(home)
    path = database.removeprefix("sqlite:///")
    if path != database and not Path(path).is_file():
        raise CallError(f"{path}: there is no such database. Fix: name the one that the leaderboard had.")
    chosen.home.mkdir(parents=True, exist_ok=True)
    kept = files_of(chosen)
    with tempfile.TemporaryDirectory(dir=chosen.home) as folder, closing(Store(database)) as source:
        export_store(
            source, open_files(rank_files, chosen.home) if rank_files else kept, Path(folder) / "all"
        )
        with closing(Store.of(chosen, fills=True)) as store:
            hub_log = HubLog.of(chosen, store)
            hub_log.open()
            store.refuse_if_read_only()
            counts = import_store(Path(folder) / "all", store, kept)
            hub_log.start()
            while not asyncio.run(hub_log.reached(hub_log.mark(), 1)) and not hub_log.fails:
                pass
            hub_log.stop()
            if hub_log.fails:
                raise FileStoreError(
                    f"hf://datasets/{chosen.log}: takes no commits; why is said above. Fix: mend that, and "
                    f"start the server: {chosen.home} has everything, which it commits."
                )
    echo(f"{chosen.home}, hf://datasets/{chosen.log}: {_counted(counts)}")
    if not (chosen.home / "signing_key.pem").exists():
        echo(
            "The key that signs receipts is in no database: put signing_key.pem of the earlier home there "
            "before the server starts, or receipts given so far cannot be checked with its key.",
            err=True,
        )


def squash(home: Home = None) -> None:
    """Make one commit of all that the log's repository has: what was erased or removed is in no earlier one.

    The server may run meanwhile.

    \b
    Example:
        cir leaderboard squash
    """
    from leaderboard.store.hub_repository import Repository

    chosen = _with_log(home)
    Repository(chosen.log).squash()
    echo(f"hf://datasets/{chosen.log}: one commit.")


def _with_log(home: Path | None) -> Settings:
    from leaderboard import settings

    chosen = settings.read(home)
    if not chosen.log:
        raise CallError(
            "CIR_LEADERBOARD_LOG is not set. Fix: name the log's repository, hf://datasets/OWNER/NAME."
        )
    return chosen


def _backups(folder: Path) -> list[str]:
    """Names of the backups in a folder; whatever else lies there is left alone."""
    found = []
    for path in folder.iterdir():
        try:
            datetime.strptime(path.name, _STAMP)
        except ValueError:
            continue
        if (path / "export.json").is_file():
            found.append(path.name)
    return found


def _exported(folder: Path, home: Path | None) -> str:
    from leaderboard.store.transfer import export_store

    with _opened(home) as (store, files):
        return f"{folder}: {_counted(export_store(store, files, folder))}"


@contextmanager
def _opened(home: Path | None) -> Iterator[tuple[Store, FileStore]]:
    from leaderboard import settings
    from leaderboard.store import Store
    from leaderboard.store.files import files_of

    chosen = settings.read(home)
    if not chosen.home.is_dir():
        raise CallError(f"{chosen.home}: is not a leaderboard's home. Fix: name another with --home.")
    with closing(Store.of(chosen)) as store:
        yield store, files_of(chosen)


def _counted(counts: dict[str, int]) -> str:
    kinds = {"submissions": "submission", "events": "event", "files": "rank file"}
    return ", ".join(counted(counts[key], one) for key, one in kinds.items())
