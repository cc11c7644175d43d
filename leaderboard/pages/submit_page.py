"""The submit page: one form, with or without scripts; what becomes of a file is on its submission's page."""

from __future__ import annotations

from dataclasses import replace

from fastapi import Request

from leaderboard import boards
from leaderboard.boards import Board
from leaderboard.errors import UploadRefusedError
from leaderboard.identity.signed_in import Logins
from leaderboard.intake.destination import named_board
from leaderboard.pages.findings import refusal
from leaderboard.pages.site import SUBMIT_PATH, Page, environment
from leaderboard.server import Server
from leaderboard.server.callers import Sender, sender_of

_CHOOSE = "choose its board in the list below, then check it"


def page(server: Server, request: Request) -> Page:
    """The form.

    Args:
        server: the leaderboard.
        request: who asks: signed in or not, and for which board.
    """
    oauth = server.settings.accounts == "oauth"
    login = Logins(server.store).of(request) if oauth else None
    who = "" if login is None else login.name
    values = {
        "oauth": oauth,
        "who": who,
        "boards": boards.boards(),
        "asked": request.query_params.get("board", ""),
        "plain": server.settings.accounts == "local" or bool(who),
        "url": server.settings.url or str(request.base_url).rstrip("/"),
        "most": server.settings.max_upload_bytes,
        "size": f"{server.settings.max_upload_bytes / 2**20:.0f} MB",
    }
    return Page(
        "submit.html",
        "Submit",
        "Send a rank file, a bundle or a transcript: it is checked, scored, and published when you say so.",
        values,
        section=SUBMIT_PATH,
    )


def sender_without_scripts(request: Request, server: Server) -> Sender:
    """As whom a browser without scripts sends a file: who runs the server alone, or who has signed in.

    Args:
        request: of the plain form.
        server: the leaderboard.

    Raises:
        UploadRefusedError: the sender would get a private link, whose page opens by a script alone; or this
            server takes files from accounts, and there is none.
    """
    sender = sender_of(request, server)
    if sender.edit_key:
        raise UploadRefusedError.of("needs-script")
    return sender


def refused_page(error: UploadRefusedError) -> Page:
    """The answer to the form where the file is not taken in.

    Args:
        error: why.
    """
    words = f"The file was not taken in: {error.message}"[:160]
    values = {"groups": [replace(group, fixes=(_fix(error),)) for group in refusal(error)]}
    return Page("submit_refused.html", "Not accepted", words, values, error.status, section=SUBMIT_PATH)


def named_html(server: Server, request: Request, board_id: str, head: bytes, name: str) -> str:
    """Where a file would be checked, before it is sent: said as soon as it is chosen.

    Args:
        server: the leaderboard.
        request: who has chosen it.
        board_id: the board chosen; empty goes by the file.
        head: the file's first bytes.
        name: what its sender calls it.
    """
    error = None
    board: Board | None
    try:
        board = server.intake.board(board_id, head, name)
        if server.settings.accounts != "local":
            server.quotas.check(sender_of(request, server).owner, board)
    except UploadRefusedError as refused:
        board, error = None, refused
    named = named_board(head)
    is_other = named is not None and bool(board_id) and named.id != board_id
    template = environment().get_template("named.html")
    return template.render(
        board=board,
        named=named,
        is_other=is_other,
        message="" if error is None else error.message,
        fix="" if error is None else _fix(error),
    )


def _fix(error: UploadRefusedError) -> str:
    """What to do about a refusal on this page, which has a list of all boards."""
    return _CHOOSE if error.code in ("missing-board", "unknown-board") else error.fix
