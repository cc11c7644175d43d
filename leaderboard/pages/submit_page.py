"""The submit page: a rank file is checked; what then becomes of it is on the submission's own page."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import gradio as gr

from leaderboard import boards
from leaderboard.callers import sender_of
from leaderboard.errors import FileStoreError, UploadRefusedError
from leaderboard.identity.signed_in import name_signed_in, session_of
from leaderboard.intake import Cover, checked_method, chunks_of
from leaderboard.pages.layout import GO_TO, HIDDEN, html_block, page_foot, page_head
from leaderboard.pages.markup import element, text
from leaderboard.pages.outcome import progress_html, refusal_html
from leaderboard.server import Server
from leaderboard.views import submission_page
from submissions.formats.containers import label_of

log = logging.getLogger("leaderboard.pages")

_AS_NAMED = "the one that the file names"
_NO_FILE = UploadRefusedError("missing-file", "no file is chosen.", fix="choose one above")
_NO_FILES = UploadRefusedError(
    "files-unavailable",
    "the server cannot read or write rank files now.",
    fix="try again later; if it stays so, tell its organisers",
)
_AT_ONCE = 8
"""Clicks that are answered at the same time."""


def build(demo: Any, server: Server) -> None:
    """Add the page to the pages' Blocks."""
    with demo.route("Submit", "/submit"):
        page_head("Submit")
        html_block(_INTRO)
        who = html_block("", elem_id="who")
        choices = [(_AS_NAMED, ""), *((f"{board.title} ({board.id})", board.id) for board in boards.boards())]
        file = gr.File(
            label="Rank file, bundle or transcript", type="filepath", elem_id="field-file", height=180
        )
        board = gr.Dropdown(choices, value="", label="Board", elem_id="field-board")
        send = gr.Button("Check", variant="primary", elem_id="send")
        outcome = html_block("", elem_id="outcome")
        where = gr.Textbox(visible=HIDDEN)
        page_foot()

        def prepare(request: gr.Request) -> str:
            asked = str(request.query_params.get("board", ""))
            return asked if asked in boards.ids() else ""

        def check(request: gr.Request, board_id: str, path: str | None) -> tuple[str, str]:
            return checked(server, request, board_id, path)

        if server.settings.accounts == "oauth":
            demo.load(who_html, outputs=who, show_progress="hidden", api_visibility="private")
        demo.load(prepare, outputs=board, show_progress="hidden", api_visibility="private")
        sent = send.click(
            check,
            inputs=[board, file],
            outputs=[outcome, where],
            show_progress="hidden",
            api_visibility="private",
            concurrency_limit=_AT_ONCE,
        )
        sent.then(None, inputs=where, js=GO_TO)


_INTRO = element("div", element("h1", "Submit a rank file, a bundle or a transcript"), "title") + element(
    "p",
    "A bundle holds one rank file for each member of a suite, and goes to the suite's board. "
    "First the file is checked: you see what is wrong with it, as cir validate shows it, and its scores, "
    "which nobody else sees. Then you complete the words about the method, and publish it if you want.",
    "lead",
)


def who_html(request: gr.Request) -> str:
    """As whom the browser has signed in, or the way to sign in. A new tab, since a Space's page is framed."""
    name = name_signed_in(session_of(request))
    if not name:
        words, address = "Sign in with Hugging Face", "./login/huggingface?_target_url=/submit"
        return element("p", element("a", words, "button", href=address, target="_blank", rel="noopener"))
    out = element("a", "sign out", href="./logout?_target_url=/submit")
    return element("p", f"Signed in as {text(name)} · {out}")


def checked(server: Server, request: gr.Request, board_id: str, path: str | None) -> tuple[str, str]:
    """Take a file in, to be judged and not to be published.

    Args:
        server: the leaderboard.
        request: who sends it.
        board_id: the board chosen; empty goes by the file.
        path: the uploaded file, or None where none was chosen.

    Returns:
        What the page shows, and the address of the submission's own page, or nothing.
    """
    if path is None or not Path(path).is_file():
        return refusal_html(_NO_FILE), ""
    try:
        sender = sender_of(request, server)
        cover = Cover(
            owner=sender.owner,
            edit_hash=sender.edit_hash,
            address=sender.address,
            file_name=Path(path).name,
            method=_named_after(path),
            publish=False,
        )
        submission, new = server.intake.take(board_id, chunks_of(Path(path)), cover)
    except UploadRefusedError as error:
        return refusal_html(error), ""
    except FileStoreError as error:
        # Where the files lie is for the organisers.
        log.error("%s", error)
        return refusal_html(_NO_FILES), ""
    Path(path).unlink(missing_ok=True)
    address = submission_page(submission.id, sender.edit_key if new else "")
    return progress_html("Received and stored. Opening its page…"), f".{address}"


def _named_after(path: str) -> dict[str, Any]:
    """A name for a method whose file gives it none, until its owner says another."""
    try:
        return checked_method({"name": label_of(Path(path).name)})
    except UploadRefusedError:
        return {}
