"""The commands of the leaderboard room: `cir leaderboard serve|add|show`, `cir submit` and `cir receipt`."""

from __future__ import annotations

import json
import os
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from cir_datasets.commands import (
    DataDirAnywhere,
    LoadsBenchmarks,
    NoChecksAnywhere,
    argument,
    command,
    option,
)
from cir_datasets.common.terminal import echo, fitted, visible
from cir_datasets.errors import missing_extra
from cir_metrics.errors import CallError, CirError
from leaderboard.copying import backup, export, import_, verify
from leaderboard.export.commands import export_html, export_hub
from leaderboard.identity.commands import token_commands
from leaderboard.options import Home
from leaderboard.space.commands import space

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from leaderboard.boards import Board
    from leaderboard.client import Client, Outcome
    from leaderboard.life import Action
    from leaderboard.rescoring import Rescored
    from leaderboard.server import Server
    from leaderboard.standings import Entry
    from leaderboard.submission import Submission

_SERVER_MODULES = ("cryptography", "fastapi", "gradio", "multipart", "sqlalchemy", "uvicorn")


def leaderboard_commands() -> typer.Typer:
    """The group `cir leaderboard`."""
    group = typer.Typer(no_args_is_help=True, help="Run a leaderboard, or put entries onto its boards.")
    group.command("serve")(serve)
    group.command("work")(work)
    group.command("add")(add)
    group.command("show")(show)
    group.command("submissions")(submissions)
    group.command("export-hub")(export_hub)
    group.command("export-html")(export_html)
    group.command("space")(space)
    group.command("export")(export)
    group.command("import")(import_)
    group.command("backup")(backup)
    group.command("verify")(verify)
    group.command("rebuild")(rebuild)
    group.command("rescore")(rescore)
    group.command("change")(change)
    group.command("pause")(pause)
    group.add_typer(token_commands(), name="token")
    group.command("pull")(pull)
    return group


def receipt_commands() -> typer.Typer:
    """The group `cir receipt`."""
    group = typer.Typer(
        no_args_is_help=True, help="Receipts of leaderboards: the proof that a file was sent."
    )
    group.callback()(lambda: None)  # or its only command would take the group's place
    group.command("verify")(verify_receipt)
    return group


def serve(
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 lets others reach it.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="TCP port; 0 takes any that is free.", min=0, max=65535)] = 7860,
    home: Home = None,
    allowed_hosts: Annotated[
        list[str] | None,
        typer.Option(
            "--allowed-host",
            help="Host name that the server answers to, besides its address and this machine's; repeatable.",
            show_default=False,
        ),
    ] = None,
    behind_proxy: Annotated[
        list[str] | None,
        typer.Option(
            "--behind-proxy",
            metavar="ADDRESS",
            help="Address or network of a proxy in front (127.0.0.1, 172.16.0.0/12); repeatable. It alone is "
            "believed: its X-Forwarded-For ends with the sender's address, X-Forwarded-Proto is the scheme.",
            show_default=False,
        ),
    ] = None,
    workers: Annotated[
        int,
        typer.Option(help="Workers: processes to keep running; 0 where  cir leaderboard work  runs.", min=0),
    ] = 1,
) -> None:
    """Serve the leaderboard: pages and API, until Ctrl-C.

    \b
    Example:
        cir leaderboard serve --port 7860
    """
    _need_server("cir leaderboard serve")
    from leaderboard import settings
    from leaderboard.web import options
    from leaderboard.web.app import create_app
    from leaderboard.web.serving import serve as run

    chosen = settings.read(home)
    web = options.read([*(allowed_hosts or []), f"[{host}]" if ":" in host else host], behind_proxy or [])
    options.check_place(host, chosen.accounts, web.proxies)

    def ready(address: str) -> None:
        echo(f"Leaderboard on {address} (Ctrl-C stops it). State: {chosen.home}", err=True)

    run(lambda: create_app(chosen=chosen, options=web, workers=workers), host, port, ready, web)
    echo("Stopped.", err=True)


def work(
    home: Home = None,
    parent: Annotated[int | None, typer.Option(hidden=True, help="Process whose end ends this one.")] = None,
) -> None:
    """Judge what was submitted, until Ctrl-C; several workers may share a leaderboard.

    `cir leaderboard serve` starts one by itself. Where web process and worker run on machines of their own,
    both are given the same CIR_LEADERBOARD_DATABASE and CIR_LEADERBOARD_FILES.

    \b
    Example:
        cir leaderboard work
    """
    _need_server("cir leaderboard work")
    import signal

    from leaderboard import settings
    from leaderboard.queue.processes import live_no_longer_than
    from leaderboard.server import Server
    from leaderboard.web import logs, options

    server = Server.open(settings.read(home))
    logs.configure(options.read().logs, "worker.log")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, server.worker.stopped_by_signal)
    if parent is not None:
        live_no_longer_than(parent)
    else:
        echo(f"Judging what is submitted to {server.settings.home} (Ctrl-C stops it).", err=True)
    server.worker.run()
    server.close()
    if parent is None:
        echo("Stopped.", err=True)


def add(
    files: Annotated[list[Path], typer.Argument(help="Rank files.", show_default=False)],
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
    _need_server("cir leaderboard add")
    from leaderboard import settings
    from leaderboard.server import Server

    with closing(Server.open(settings.read(home))) as server:
        put = _added if len(files) == 1 else _tried
        outcomes = [put(server, path, board, baseline, quiet=as_json) for path in files]
    if as_json:
        echo(json.dumps(outcomes, indent=2))
    refused = [path for path, one in zip(files, outcomes, strict=True) if one["state"] != "published"]
    if refused:
        raise CirError(
            f"{len(refused)} of {len(files)} files are not on a board: {', '.join(map(str, refused))}"
        )


def rescore(
    board: Annotated[str, typer.Argument(help="Board id.", show_default=False)],
    switch: Annotated[bool, typer.Option("--switch", help="Let the new results count.")] = False,
    home: Home = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: with fractions.")] = False,
    data_dir: DataDirAnywhere = None,
    no_checks: NoChecksAnywhere = False,
) -> None:
    """Score a board's files again and show old and new side by side; nothing changes without --switch.

    For after an update that changed a metric or a ground truth. Old results stay in each submission's log.

    \b
    Example:
        cir leaderboard rescore shapes/val
    """
    _need_server("cir leaderboard rescore")
    from cir_datasets.common.progress import step_progress
    from leaderboard import boards, rescoring, settings
    from leaderboard.server import Server

    with closing(Server.open(settings.read(home))) as server:
        found = boards.board(board)
        results = []
        with step_progress(f"{found.id}: scoring again", None) as advance:
            for result in rescoring.rescore(server, found):
                results.append(result)
                advance(1)
        changed = rescoring.switch(server, found, results) if switch else 0
    rows = [_rescored(found, result) for result in results]
    if as_json:
        echo(json.dumps(rows, indent=2))
        return
    if not rows:
        echo(f"No submission to {found.id} has a score.", err=True)
        return
    lines = [["submission", "method", "old", "new", ""]]
    for row in rows:
        values = (_shown(row[name], found.primary_unit) for name in ("old", "new"))
        lines.append([row["submission"], row["method"], *values, row["note"]])
    echo(fitted(lines, right={2, 3}, keep=(0, 1, 3)))
    differ = sum(result.changed(found) for result in results)
    words = f"{changed} of {len(rows)} changed." if switch else f"{differ} of {len(rows)} would change."
    echo(words if switch or not differ else f"{words} Let them count with --switch.", err=True)


def _rescored(board: Board, result: Rescored) -> dict[str, Any]:
    new = result.new(board)
    codes = {finding["code"] for finding in result.judged.findings if finding["severity"] == "error"}
    note = "changes" if result.changed(board) else ""
    return {
        "submission": result.submission.id,
        "method": str((result.submission.method or {}).get("name", "")),
        "old": result.old(board),
        "new": new,
        "note": f"refused now: {', '.join(sorted(codes))}" if new is None else note,
    }


def change(
    submission_id: Annotated[str, typer.Argument(metavar="SUBMISSION", help="Its id.", show_default=False)],
    action: Annotated[
        str,
        typer.Argument(
            help="publish, unpublish, withdraw, hide, restore, verify, unverify, flag, unflag, rerun "
            "or erase.",
            show_default=False,
        ),
    ],
    reason: Annotated[str, typer.Option(help="Why; needed to hide and to flag; its owner reads it.")] = "",
    home: Home = None,
) -> None:
    """Hide, restore, verify, flag ... a submission, as its organiser; the log keeps what happened.

    erase takes away who sent it: the names, the file's name, the private link.

    \b
    Example:
        cir leaderboard change 289f32ba7118 hide --reason "under review"
    """
    _need_server("cir leaderboard change")
    from leaderboard import settings
    from leaderboard.intake import checked_line
    from leaderboard.life import RULES, act
    from leaderboard.store import Store

    known = [name for name in RULES if name != "correct"]
    if action not in known:
        raise CallError(f"{action!r} cannot be done to a submission. Fix: use one of {', '.join(known)}.")
    store = Store(settings.read(home).database_url)
    try:
        submission = store.submission(submission_id)
        if submission is None:
            raise CallError(f"no submission {submission_id!r} in this home. Fix: use the id of its page.")
        done = act(
            store, submission, cast("Action", action), "organiser", reason=checked_line(reason, "reason")
        )
    finally:
        store.close()
    echo(f"{done.id}: {done.state}")


def pause(
    board: Annotated[str, typer.Argument(help="Board id.", show_default=False)],
    reason: Annotated[str, typer.Option(help="Why, shown to those who submit.")] = "",
    resume: Annotated[bool, typer.Option("--resume", help="Take submissions again.")] = False,
    home: Home = None,
) -> None:
    """Let a board take no submissions for a while; what stands on it stays there.

    \b
    Example:
        cir leaderboard pause cirr/val --reason "new data on Monday"
    """
    _need_server("cir leaderboard pause")
    from leaderboard import boards, settings
    from leaderboard.intake import checked_line
    from leaderboard.store import Store

    chosen = settings.read(home)
    boards.use(chosen.home)
    found = boards.board(board)
    if not resume and not reason:
        raise CallError("a pause needs a reason. Fix: add --reason, or --resume to end a pause.")
    store = Store(chosen.database_url)
    try:
        store.pause(found.id, None if resume else checked_line(reason, "reason"))
    finally:
        store.close()
    echo(f"{found.id}: {'takes submissions again' if resume else 'takes no submissions'}")


def rebuild(home: Home = None) -> None:
    """Make a lost database anew from the rank files; the server judges them when it runs.

    A file names its benchmark and its method. What stands in no file is lost: who sent it, what a form said,
    and what was private, withdrawn or hidden. So nothing comes onto a board: organisers publish what belongs
    there with  cir leaderboard change ID publish. A backup has all that: see  cir leaderboard backup.

    \b
    Example:
        cir leaderboard rebuild
    """
    _need_server("cir leaderboard rebuild")
    from leaderboard import boards, settings
    from leaderboard.store import Store
    from leaderboard.store.files import open_files

    chosen = settings.read(home)
    boards.use(chosen.home)
    files = open_files(chosen.files_at or chosen.files, chosen.home)
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


def show(
    board_ids: Annotated[
        list[str] | None, typer.Argument(metavar="[BOARD]...", help="Board ids; default: those with entries.")
    ] = None,
    home: Home = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: with fractions.")] = False,
) -> None:
    """Print the boards of a home as tables, without a server.

    \b
    Example:
        cir leaderboard show shapes/val
    """
    _need_server("cir leaderboard show")
    from leaderboard import boards, settings
    from leaderboard.server import Server
    from leaderboard.views import groups_of, held_back_words, intervals_of

    with closing(Server.open(settings.read(home))) as server:
        wanted = [boards.board(board_id) for board_id in board_ids or boards.ids()]
        tables = [(board, server.tables.refresh(board).view, server.entries(board)) for board in wanted]
    shown = [found for found in tables if board_ids or found[1]["entries"]]
    if as_json:
        echo(json.dumps([view for _, view, _ in shown], indent=2))
        return
    if not shown:
        echo("No board has an entry yet. Put one there: cir leaderboard add run.json", err=True)
        return
    echo(
        "\n\n".join(
            board_text(board, entries, groups_of(view), held_back_words(view), intervals_of(view))
            for board, view, entries in shown
        )
    )


def submissions(
    board: Annotated[str, typer.Argument(help="Board id.", show_default=False)],
    home: Home = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: with fractions.")] = False,
) -> None:
    """List all submissions to a board with their scores, refused ones too, for its organisers.

    Also before results are shown; the owner is whoever holds the token of that name.

    \b
    Example:
        cir leaderboard submissions shapes/val
    """
    _need_server("cir leaderboard submissions")
    from leaderboard import boards, settings
    from leaderboard.server import Server
    from leaderboard.views import submission_view

    with closing(Server.open(settings.read(home))) as server:
        found = boards.board(board)
        sent = server.store.of_board(found.id)
    if as_json:
        views = [{**submission_view(one, organiser=True), "owner": one.owner} for one in sent]
        echo(json.dumps(views, indent=2))
        return
    lines = [["submission", "received", "owner", "method", "state", found.primary_label]]
    for one in sent:
        value = None if one.scores is None else found.primary_value(one.scores["metrics"])
        name = str((one.method or {}).get("name", ""))
        when = f"{one.received_at:%Y-%m-%d %H:%M}"
        lines.append([one.id, when, one.owner, name, one.state, _shown(value, found.primary_unit)])
    echo(fitted(lines, right={5}, keep=(0, 3, 5)))


def pull(
    url: Annotated[
        str, typer.Argument(metavar="URL", help="Address of the leaderboard.", show_default=False)
    ],
    to: Annotated[
        Path, typer.Option("--to", help="Where to: a folder.", metavar="FOLDER", show_default=False)
    ],
    boards: Annotated[
        list[str] | None, typer.Argument(metavar="[BOARD]...", help="Board ids; default: those with entries.")
    ] = None,
    files: Annotated[bool, typer.Option("--files", help="Fetch the entries' rank files too.")] = False,
) -> None:
    """Write the boards of a leaderboard into a folder, as JSON and CSV, with --files their rank files too.

    Run it again to bring the folder up to date: rank files that are there are not fetched again.

    \b
    Example:
        cir leaderboard pull http://127.0.0.1:7860 shapes/val --to boards
    """
    from leaderboard.client import Client

    client = Client(url, option="URL")
    try:
        written = client.pull(to, boards or (), files=files)
    finally:
        client.close()
    for path in written:
        echo(str(path))


class SubmitOptions(LoadsBenchmarks):
    """What `cir submit` takes."""

    file: Path = argument(..., "Rank file, bundle or transcript.", show_default=False)
    to: str = option(..., "Where to: the leaderboard's address.", metavar="URL", show_default=False)
    board: str | None = option(None, "Board id; default: the board of the benchmark that the file names.")
    publish: bool | None = option(
        None,
        "Put it onto the board when it is scored, or keep it for its owner and the organisers; "
        "default: --private.",
        "--publish/--private",
        show_default=False,
    )
    reference: Literal["kept", "removed"] | None = option(
        None, "What became of the reference image in the ranking, where the file does not say it."
    )
    submitter: str = option("", "Who submits, shown with the entry.")
    timeout: float = option(600.0, "Seconds to wait for an answer, and for the outcome.", min=1.0)
    as_json: bool = option(False, "Print JSON: the submission.", "--json")
    receipt: Path | None = option(
        None, "Write the server's signed receipt here, as soon as it has the file.", show_default=False
    )


@command
def submit(options: SubmitOptions) -> None:
    """Hand a rank file, bundle or transcript to a leaderboard and wait; it is validated here where possible.

    It stays private until it is published, with --publish or on its page. A bundle goes to the board of its
    suite, such as fashioniq/val.

    \b
    Example:
        cir submit run.json --to http://127.0.0.1:7860 --receipt receipt.json
        cir submit run.json --to http://127.0.0.1:7860 --publish
    """
    from leaderboard.client import Client

    file, board = options.file, options.board
    if not file.is_file():
        raise CallError(f"{file}: no such file. Fix: name the rank file or bundle to submit.")
    client = Client(options.to, os.environ.get("CIR_LEADERBOARD_TOKEN", ""), seconds=options.timeout)
    try:
        # The server alone says which boards there are: those of this machine are another leaderboard's.
        benchmark = board or _benchmark_sent(file, client.url)
        limit = client.max_upload_bytes()
        if file.stat().st_size > limit:
            raise CirError(
                f"too-large: {file}: more than the {limit:,} bytes that {options.to} takes. "
                "Fix: write compact JSON."
            )
        board_id = board or _board_there(client, file, benchmark)
        if board:
            _refuse_dialogues(client, file, board)
        _validate_here(file, benchmark)
        written = {
            "submitter": options.submitter,
            "reference": options.reference or "",
            "publish": "yes" if options.publish else "",
        }
        fields = {name: text for name, text in written.items() if text}
        with client.understood():
            outcome = _handed_in(client, file, board_id, fields, options.receipt, options.timeout)
            _show(client, outcome, options.as_json, options.publish)
    finally:
        client.close()


def verify_receipt(
    receipt: Annotated[Path, typer.Argument(help="The receipt, as JSON.", show_default=False)],
    file: Annotated[
        Path | None, typer.Argument(help="The rank file that it is for.", show_default=False)
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(help="The server's public key in PEM, as it answers at /api/key.", show_default=False),
    ] = None,
) -> None:
    """Check a receipt's signature, and that a file is the one that was sent; nothing is asked of any server.

    Without --key it is checked with the key inside the receipt: nobody has changed it since it was signed,
    but anybody may have signed it.

    \b
    Example:
        cir receipt verify receipt.json run.json --key key.pem
    """
    if find_spec("cryptography") is None:
        raise missing_extra("cir receipt verify", "cryptography", "leaderboard")
    from leaderboard.receipts import verify

    for path in filter(None, (receipt, file, key)):
        if not path.is_file():
            raise CallError(f"{path}: no such file. Fix: name a file that exists.")
    found = verify(receipt.read_bytes(), str(receipt), file, key)
    echo(f"receipt {found.id}: {found.server!r} took a file for {found.board} on {found.received_at}")
    echo(f"key {found.key_id}: its signature fits" + ("" if key is None else f", and it is the key in {key}"))
    echo(f"file: {found.size} bytes, sha256 {found.sha256}" + ("" if file is None else f", as {file} is"))
    if key is None:
        echo("Anybody may have signed it. Fix: give its server's key, from /api/key, with --key.", err=True)


def _need_server(command: str) -> None:
    missing = [name for name in _SERVER_MODULES if find_spec(name) is None]
    if missing:
        raise missing_extra(command, ", ".join(missing), "leaderboard")


def _board_of(file: Path) -> Board:
    """The board of the benchmark, or suite, that a file names."""
    from leaderboard import boards
    from leaderboard.destination import board_of_benchmark
    from submissions.formats import is_transcript

    benchmark = _benchmark_of(file, lambda: f": {', '.join(boards.ids())}")
    return board_of_benchmark(benchmark, dialogue=is_transcript(str(file)))


def _benchmark_sent(file: Path, url: str) -> str:
    """The benchmark or suite that a file names to a leaderboard, which may have others than this machine."""
    from cir_datasets import registry
    from cir_metrics.errors import UnknownNameError
    from leaderboard.destination import HEAD_BYTES, benchmark_of_head

    with file.open("rb") as handle:
        named = benchmark_of_head(handle.read(HEAD_BYTES))
    if named is not None:
        try:
            registry.spec(named)
        except UnknownNameError:
            return named
    return _benchmark_of(file, lambda: f"; {visible(url)}/api/v1/boards lists them")


def _board_there(client: Client, file: Path, benchmark: str) -> str:
    """The board of a leaderboard elsewhere for a file; empty where the server reads it from the file's head.

    Raises:
        CallError: no board there ranks what the file names.
    """
    from leaderboard.destination import HEAD_BYTES, benchmark_of_head
    from submissions.formats import is_transcript

    with file.open("rb") as handle:
        if benchmark_of_head(handle.read(HEAD_BYTES)) is not None:
            return ""
    there = client.boards()
    dialogue = is_transcript(str(file))
    found = [
        str(one.get("id"))
        for one in there
        if one.get("benchmark") == benchmark and (one.get("dialogue") is not None) == dialogue
    ]
    if not found:
        known = ", ".join(visible(str(one.get("id"))) for one in there)
        raise CallError(
            f"{file}: no board of {visible(client.url)} ranks {'dialogues of ' * dialogue}{benchmark}. "
            f"Fix: choose one with --board: {known}."
        )
    return found[0]


def _refuse_dialogues(client: Client, file: Path, board_id: str) -> None:
    """Refuse a transcript before it travels to a board of rank files; the server says the rest.

    Raises:
        CallError: the board takes rank files.
    """
    from submissions.formats import is_transcript

    if not is_transcript(str(file)):
        return
    there = client.boards()
    asked = next((one for one in there if one.get("id") == board_id), None)
    if asked is None or asked.get("dialogue") is not None:
        return
    talking = [visible(str(one.get("id"))) for one in there if one.get("dialogue") is not None]
    where = (
        f"choose one of dialogues with --board: {', '.join(talking)}" if talking else "none there takes it"
    )
    raise CallError(
        f"{file} is a transcript of dialogues, and the board {board_id} of {visible(client.url)} ranks rank "
        f"files. Fix: {where}; or score it here with  cir score {file}  ."
    )


def _benchmark_of(file: Path, boards_there: Callable[[], str]) -> str:
    """The benchmark or suite that a file names; for a message, `boards_there` says which boards there are."""
    import submissions
    from submissions.formats import is_transcript
    from submissions.rank_file.findings import RefusedError
    from submissions.transcripts.reading import read_transcript

    if is_transcript(str(file)):
        return read_transcript(file).benchmark
    try:
        found = submissions.read(file)
    except RefusedError as error:
        if any(finding.code != "wrong-benchmark" for finding in error.report.errors):
            raise
        said = error.report.errors[0].message
        raise CallError(
            f"{file}: its board is not clear: {said} Fix: choose one with --board{boards_there()}."
        ) from error
    return found.suite if isinstance(found, submissions.RankBundle) else found.benchmark


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
    from leaderboard.views import submission_view

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
    from leaderboard.views import submission_view

    view = submission_view(submission)
    return str(view["message"] or view["findings_text"] or f"{submission.file_name}: {submission.state}")


def _validate_here(file: Path, benchmark: str) -> None:
    """Refuse a broken file before it travels, where this machine knows the benchmark and has its data."""
    import submissions
    from cir_datasets import registry
    from cir_datasets.errors import SourceError
    from cir_datasets.registry.challenges import is_challenge
    from cir_metrics.errors import UnknownNameError
    from leaderboard import data
    from submissions.formats import is_transcript
    from submissions.rank_file.findings import RefusedError
    from submissions.transcripts.checking import check_transcript
    from submissions.transcripts.reading import read_transcript

    dialogue = is_transcript(str(file))
    if dialogue:
        # A board of dialogues has an id of its own.
        benchmark = read_transcript(file).benchmark
    try:
        specs = [registry.spec(member) for member in registry.members_of(benchmark)]
    except UnknownNameError:
        return
    if not is_challenge(benchmark) and any(data.missing_file(spec) is not None for spec in specs):
        echo(f"{benchmark} is not on this machine: the server alone validates.", err=True)
        return
    try:
        if dialogue:
            report = check_transcript(str(file), benchmark).report
        else:
            report = submissions.validate(file, benchmark, part=False)
    except SourceError as error:
        echo(f"Not validated here, only on the server: {error}", err=True)
        return
    if not report.ok:
        raise RefusedError(f"{file} is not sent.", report)


def _handed_in(
    client: Client, file: Path, board_id: str, fields: dict[str, str], receipt: Path | None, timeout: float
) -> Outcome:
    """Upload, keep the receipt, and wait, saying on stderr what happens."""
    from rich.console import Console
    from rich.text import Text

    from leaderboard.views import submission_page

    words = {"received": "waiting to be validated", "validated": "valid; being scored", "scored": "scored"}
    with Console(stderr=True).status(
        Text(f"uploading {file.stat().st_size / 1e6:.1f} MB to {visible(client.url)}")
    ) as status:
        outcome = client.submit(file, board_id, fields)
        given = outcome.get("receipt")
        if receipt is not None:
            _keep_receipt(client, given, file, receipt)
        if not outcome.get("new", True):
            echo(visible(str(outcome.get("unchanged"))), err=True)
        if outcome.get("edit_key"):
            echo(
                f"Keep this key; it is shown once, and lets you correct and withdraw {outcome['id']}:\n"
                f"  X-Edit-Key: {visible(str(outcome['edit_key']))}\n"
                "The same in a browser, as a private link:\n"
                f"  {client.url}{visible(submission_page(outcome['id'], str(outcome['edit_key'])))}",
                err=True,
            )

        def step(found: Outcome) -> None:
            status.update(Text(words.get(found["state"], visible(str(found["state"])))))

        return {**client.wait(outcome["id"], timeout, step), "receipt": given}


def _keep_receipt(client: Client, given: object, file: Path, target: Path) -> None:
    """Write the receipt of an upload, once it is seen to be for this file."""
    from hashlib import file_digest

    from cir_datasets.common.atomic import write_whole
    from leaderboard.errors import RemoteError

    with file.open("rb") as handle:
        sha256 = file_digest(handle, "sha256").hexdigest()
    if not isinstance(given, dict) or given.get("sha256") != sha256:
        raise RemoteError(f"{client.url}: gave no receipt for {file}. Fix: ask its organisers for it.")
    write_whole(target, json.dumps(given).encode(), durable=True)
    echo(f"Receipt: {target} (check it with  cir receipt verify {target} {file})", err=True)


def _show(client: Client, outcome: Outcome, as_json: bool, publish: bool | None) -> None:
    from leaderboard.errors import LeaderboardError, RemoteError

    is_private = outcome["state"] == "private"
    page = client.own_page(outcome) if is_private else client.page(outcome)
    if as_json:
        echo(json.dumps({**outcome, "url": page}, indent=2))
    if outcome["state"] == "failed":
        raise RemoteError(f"{client.url}: submission {outcome['id']}: {outcome['message']}")
    if outcome["state"] == "rejected":
        if not as_json:
            echo(outcome["findings_text"])
        raise LeaderboardError(
            f"{outcome['file_name']} is refused by {client.url}; nothing stands on the board."
        )
    if not as_json and outcome["scores"] is not None:
        for line in _score_lines(outcome):
            echo(line)
    elif not as_json:
        echo(str(outcome["message"]))
    if outcome["state"] != "published" and not (is_private and not publish):
        raise LeaderboardError(f"{client.url}: submission {outcome['id']}: {outcome['message']}")
    if not as_json:
        echo(f"{'It is private now. Its page' if is_private else 'Its row'}: {visible(page)}")
    if is_private:
        was = "" if publish is False else " Earlier versions published what was sent without --private."
        again = "" if client.edit_key else ", or send the file again with --publish"
        echo(f"To publish it, press Publish on its page{again}.{was}", err=True)


def _score_lines(outcome: Outcome) -> list[str]:
    from submissions.scoring.score_report import shown_value

    scores: dict[str, Any] = outcome["scores"]
    width = max(map(len, scores["metrics"]))
    texts = {name: f"  {each['text']}" for name, each in scores["signatures"].items()}
    below = []
    if "dialogue" in next(iter(scores["signatures"].values())) and len(set(texts.values())) == 1:
        # There are fifty of them, with one long signature.
        below = [f"signature:{next(iter(texts.values()))}"]
        texts = dict.fromkeys(texts, "")
    values = scores["metrics"].items()
    lines = [f"{name:<{width}}  {shown_value(name, value)}{texts[name]}" for name, value in values]
    lines += below
    main = scores["main_metric"]
    for run in scores.get("runs", ()):
        shown = {name: shown_value(name, value).strip() for name, value in run["metrics"].items()}
        lines.append(f"{run['benchmark']}: {', '.join(f'{name} {value}' for name, value in shown.items())}")
    return [*lines, f"main: {main} = {shown_value(main, scores['main']).strip()}"]


_ORACLE = "oracle: knows what no user's query holds; it has no rank."


def board_text(
    board: Board,
    entries: Sequence[Entry],
    groups: Mapping[str, int] | None = None,
    held_back: str = "",
    intervals: Mapping[str, Sequence[float]] | None = None,
) -> str:
    """A board's title and its entries as an aligned table, fractions in per cent.

    Args:
        board: says which columns are shown.
        entries: from `standings`, best first.
        groups: the rank group by submission; shown where more than one has a group.
        held_back: a sentence on entries that are not shown yet.
        intervals: low and high end of the main value's interval by submission; shown where one has any.
    """
    from leaderboard.standings import checked_gallery
    from leaderboard.standings.blocks import UNVERIFIED, block_words

    checked = checked_gallery(board, entries)
    gallery = ("not checked" if checked is None else f"{checked:,}") + board.spec.gallery_note
    benchmark = f"{board.benchmark}#{board.version}"
    head = f"{board.title} ({benchmark}, gallery {gallery}, reference {board.spec.config.reference})"
    if not entries:
        return f"{head}\n{held_back or 'Nothing stands on this board yet.'}"
    labels = ["#", "Kind", "Method", board.primary_label, *(column.label for column in board.columns)]
    rows = [labels, *(_cells(board, entry) for entry in entries)]
    if intervals:
        place = labels.index(board.primary_label, 3) + 1
        ends = [_shown_interval(intervals.get(entry.submission.id), board.primary_unit) for entry in entries]
        rows = [[*row[:place], end, *row[place:]] for row, end in zip(rows, ["95 %", *ends], strict=True)]
    if groups and len(groups) > 1:
        found = [str(groups.get(entry.submission.id, "-")) for entry in entries]
        rows = [[row[0], group, *row[1:]] for row, group in zip(rows, ["Group", *found], strict=True)]
    heads = rows[0]
    names = {heads.index("Kind"), heads.index("Method")}
    method = heads.index("Method")
    keep = (*range(method + 1), heads.index(board.primary_label, method + 1))
    lines = fitted(rows, right={*range(len(heads))} - names, keep=keep).split("\n")
    rule = "-" * max(map(len, lines[: len(rows)]))
    body: list[str] = []
    block = "current"
    for entry, line in zip(entries, lines[1:], strict=False):
        body += [block_words(board, entry.block)] if entry.block != block else []
        body.append(line)
        block = entry.block
    note = lines[len(rows) :]
    note += [_ORACLE] if any(entry.oracle for entry in entries) else []
    note += [UNVERIFIED] if any(entry.reference.unverified for entry in entries) else []
    note += [held_back] if held_back else []
    return "\n".join([head, lines[0], rule, *body, *note])


def _cells(board: Board, entry: Entry) -> list[str]:
    # In a column of its own, before the name: no name can imitate it.
    kind = "oracle" if entry.oracle else "baseline" if entry.submission.baseline else ""
    kind = ", ".join(filter(None, [kind, "reference unverified" if entry.reference.unverified else ""]))
    values = [_shown(entry.value, board.primary_unit)]
    values += [_shown(entry.metrics.get(column.metric), column.unit) for column in board.columns]
    return ["-" if entry.rank is None else str(entry.rank), kind, entry.name, *values]


def _shown_interval(interval: Sequence[float] | None, unit: str) -> str:
    return "-" if interval is None else f"[{', '.join(_shown(end, unit) for end in interval)}]"


def _shown(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    return f"{100 * value:.2f}" if unit == "percent" else f"{value:.2f}"
