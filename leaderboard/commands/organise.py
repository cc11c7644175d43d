"""`cir leaderboard rescore`, `change` and `pause`: what organisers do to entries and boards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from cir_datasets.commands import DataDirAnywhere, NoChecksAnywhere
from cir_datasets.common.terminal import echo, echo_json, fitted
from cir_metrics.errors import CallError
from leaderboard.commands import opened_server, opened_store
from leaderboard.commands.show import shown_value
from leaderboard.options import Home

if TYPE_CHECKING:
    from leaderboard.boards import Board
    from leaderboard.intake.life import Action
    from leaderboard.server.rescoring import Rescored


def rescore(
    board: Annotated[str, typer.Argument(help="Board id.")],
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
    with opened_server(home) as server:
        from cir_datasets.common.progress import step_progress
        from leaderboard import boards
        from leaderboard.server import rescoring

        found = boards.board(board)
        results = []
        with step_progress(f"{found.id}: scoring again", None) as advance:
            for result in rescoring.rescore(server, found):
                results.append(result)
                advance(1)
        changed = rescoring.switch(server, found, results) if switch else 0
    rows = [_rescored(found, result) for result in results]
    if as_json:
        echo_json(rows)
        return
    if not rows:
        echo(f"No submission to {found.id} has a score.", err=True)
        return
    lines = [["submission", "method", "old", "new", ""]]
    for row in rows:
        values = (shown_value(row[name], found.primary_unit) for name in ("old", "new"))
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
    submission_id: Annotated[str, typer.Argument(metavar="SUBMISSION", help="Its id.")],
    action: Annotated[
        str,
        typer.Argument(
            help="publish, unpublish, withdraw, hide, restore, verify, unverify, flag, unflag, rerun "
            "or erase."
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
    from leaderboard.intake import checked_line
    from leaderboard.intake.life import RULES, act

    known = [name for name in RULES if name != "correct"]
    if action not in known:
        raise CallError(f"{action!r} cannot be done to a submission. Fix: use one of {', '.join(known)}.")
    with opened_store(home) as store:
        submission = store.submission(submission_id)
        if submission is None:
            raise CallError(f"no submission {submission_id!r} in this home. Fix: use the id of its page.")
        done = act(
            store, submission, cast("Action", action), "organiser", reason=checked_line(reason, "reason")
        )
    echo(f"{done.id}: {done.state}")


def pause(
    board: Annotated[str, typer.Argument(help="Board id.")],
    reason: Annotated[str, typer.Option(help="Why, shown to those who submit.")] = "",
    resume: Annotated[bool, typer.Option("--resume", help="Take submissions again.")] = False,
    home: Home = None,
) -> None:
    """Let a board take no submissions for a while; what stands on it stays there.

    \b
    Example:
        cir leaderboard pause cirr/val --reason "new data on Monday"
    """
    from leaderboard import boards
    from leaderboard.intake import checked_line

    if not resume and not reason:
        raise CallError("a pause needs a reason. Fix: add --reason, or --resume to end a pause.")
    with opened_store(home) as store:
        match = boards.board(board)
        store.pause(match.id, None if resume else checked_line(reason, "reason"))
    echo(f"{match.id}: {'takes submissions again' if resume else 'takes no submissions'}")
