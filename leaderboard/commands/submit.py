"""`cir submit` and `cir leaderboard pull`: what others than its host do with a leaderboard."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cir_datasets.commands import LoadsBenchmarks, argument, command, option
from cir_datasets.common.terminal import echo, echo_json, visible
from cir_metrics.errors import CallError, CirError

if TYPE_CHECKING:
    from collections.abc import Callable

    from leaderboard.client import Client, Outcome


def pull(
    url: Annotated[str, typer.Argument(metavar="URL", help="Address of the leaderboard.")],
    to: Annotated[Path, typer.Option("--to", help="Where to: a folder.", metavar="FOLDER")],
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

    file: Path = argument(..., "Rank file, bundle or transcript.")
    to: str = option(..., "Where to: the leaderboard's address.", metavar="URL")
    board: str | None = option(None, "Board id; default: the board of the benchmark that the file names.")
    publish: bool | None = option(
        None,
        "Put it onto the board when it is scored, or keep it for its owner and the organisers; "
        "default: --private.",
        "--publish/--private",
    )
    reference: Literal["kept", "removed"] | None = option(
        None, "What became of the reference image in the ranking, where the file does not say it."
    )
    submitter: str = option("", "Who submits, shown with the entry.")
    timeout: float = option(600.0, "Seconds to wait for an answer, and for the outcome.", min=1.0)
    as_json: bool = option(False, "Print JSON: the submission.", "--json")
    receipt: Path | None = option(None, "Write the server's signed receipt here, as soon as it has the file.")


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
    from leaderboard.intake.destination import HEAD_BYTES, benchmark_of_head
    from submissions.formats import is_transcript

    file, board = options.file, options.board
    if not file.is_file():
        raise CallError(f"{file}: no such file. Fix: name the rank file or bundle to submit.")
    dialogue = is_transcript(str(file))
    with file.open("rb") as handle:
        named = benchmark_of_head(handle.read(HEAD_BYTES))
    client = Client(options.to, os.environ.get("CIR_LEADERBOARD_TOKEN", ""), seconds=options.timeout)
    try:
        # The server alone says which boards there are: those of this machine are another leaderboard's.
        boards_there = f"; {visible(client.url)}/api/v1/boards lists them"
        benchmark = board or named or benchmark_of(file, lambda: boards_there)
        limit = client.max_upload_bytes()
        if file.stat().st_size > limit:
            raise CirError(
                f"too-large: {file}: more than the {limit:,} bytes that {options.to} takes. "
                "Fix: write compact JSON."
            )
        if board and dialogue:
            _refuse_dialogues(client, file, board)
        # What names its benchmark in its head is put onto its board by the server.
        board_id = board or ("" if named else _board_there(client, file, benchmark, dialogue=dialogue))
        _validate_here(file, benchmark, dialogue=dialogue)
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


def _board_there(client: Client, file: Path, benchmark: str, *, dialogue: bool) -> str:
    """The board of a leaderboard elsewhere for a file.

    Raises:
        CallError: no board there ranks what the file names.
    """
    there = client.boards()
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


def benchmark_of(file: Path, boards_there: Callable[[], str]) -> str:
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


def _validate_here(file: Path, benchmark: str, *, dialogue: bool) -> None:
    """Refuse a broken file before it travels, where this machine knows the benchmark and has its data."""
    import submissions
    from cir_datasets import registry
    from cir_datasets.errors import SourceError
    from cir_datasets.registry.challenges import is_challenge
    from cir_metrics.errors import UnknownNameError
    from leaderboard.boards import data
    from submissions.rank_file.findings import RefusedError
    from submissions.transcripts.checking import check_transcript
    from submissions.transcripts.reading import read_transcript

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

    from leaderboard.standings.views import submission_page

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
    page = client.entry_page(outcome) if is_private else client.page(outcome)
    if as_json:
        echo_json({**outcome, "url": page})
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
        # A browser does not send the token, so that it cannot open the page of what is private.
        opens = not (is_private and client.has_account)
        words = "It is private now." if is_private else "Its row:"
        echo(f"{words}{' Its page:' * is_private} {visible(page)}" if opens else words)
        echo(f"Durability: {visible(str(outcome.get('durability', 'not said')))}", err=True)
    if is_private:
        was = "" if publish is False else " Earlier versions published what was sent without --private."
        ways = ["press Publish on its page"] * (not client.has_account)
        ways += ["send the file again with --publish"] * (not client.edit_key)
        echo(f"To publish it, {', or '.join(ways)}.{was}", err=True)


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
