"""The submit page: a file is dropped and checked; what then becomes of it is on the submission's own page.

Gradio makes what is interactive: the drop zone, the choice of a board, the button. Around them stands the
layout of all pages.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import gradio as gr
from fastapi import Request

from leaderboard import boards
from leaderboard.boards import Board
from leaderboard.callers import Sender, sender_of
from leaderboard.destination import HEAD_BYTES, named_board
from leaderboard.errors import FileStoreError, UploadRefusedError
from leaderboard.identity.signed_in import Logins
from leaderboard.intake import Cover, checked_method, chunks_of
from leaderboard.pages.findings import FindingGroup, refusal
from leaderboard.pages.site import Page, environment
from leaderboard.server import Server
from leaderboard.views import submission_page
from submissions.formats import label_of

log = logging.getLogger("leaderboard.pages")

PATH = "submit"
_AS_NAMED = "as the file says"
_HIDDEN: Any = "hidden"
"""Of a component that only carries a value from one step to the next."""
_GO_ON = """(address) => {
  if (address) window.location.assign(address);
  else setTimeout(() => document.querySelector("#outcome .outcome")?.focus(), 50);
}"""
"""Opens the page of the submission; where there is none, the focus moves to what is said instead."""
NO_FILE = UploadRefusedError("missing-file", "no file is chosen.", fix="choose one, then send it again")
NO_FILES = UploadRefusedError(
    "files-unavailable",
    "the server cannot read or write rank files now.",
    fix="try again later; if it stays so, tell its organisers",
    status=503,
)
_CHOOSE = "choose its board in the list below, then check it"
_AT_ONCE = 8
"""Clicks that are answered at the same time."""


def build(demo: Any, server: Server) -> None:
    """Add the page to Gradio's Blocks."""
    with demo.route("Submit", f"/{PATH}"):
        gr.Navbar(visible=False)
        choices = [(_AS_NAMED, ""), *((f"{board.title} ({board.id})", board.id) for board in boards.boards())]
        file = gr.File(
            label="Rank file, bundle or transcript", type="filepath", elem_id="field-file", height=180
        )
        named = _html(elem_id="named")
        as_named = gr.Button("Take the board that the file names", visible=False, elem_id="as-named")
        board = gr.Dropdown(choices, value="", label="Board", elem_id="field-board")
        send = gr.Button("Check", variant="primary", elem_id="send")
        outcome = _html(elem_id="outcome")
        where = gr.Textbox(visible=_HIDDEN)

        def prepare(request: gr.Request) -> str:
            asked = str(request.query_params.get("board", ""))
            return asked if asked in boards.ids() else ""

        def look(request: gr.Request, board_id: str, path: str | None) -> tuple[str, Any]:
            said, is_other = named_html(server, request, board_id, path)
            return said, gr.Button(visible=is_other)

        def check(request: gr.Request, board_id: str, path: str | None) -> tuple[str, str]:
            return checked(server, request, board_id, path)

        quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
        demo.load(prepare, outputs=board, **quiet)
        chosen = [file.change, board.change]
        # The browser takes away what was said of another file or board: an answer of the server to this
        # may come after the one to "Check", and would take that away.
        gr.on(chosen, None, outputs=outcome, js="() => ''")
        gr.on(chosen, look, inputs=[board, file], outputs=[named, as_named], **quiet)
        as_named.click(lambda: "", outputs=board, **quiet)
        sent = send.click(
            check, inputs=[board, file], outputs=[outcome, where], concurrency_limit=_AT_ONCE, **quiet
        )
        sent.then(None, inputs=where, js=_GO_ON)


def page(server: Server, request: Any, head: str, application: str) -> Page:
    """The page around Gradio's part.

    Args:
        server: the leaderboard.
        request: who asks: signed in or not.
        head: what Gradio needs in the page's head, HTML.
        application: the element in which it draws, HTML.
    """
    oauth = server.settings.accounts == "oauth"
    login = Logins(server.store).of(request) if oauth else None
    who = "" if login is None else login.name
    values = {
        "gradio_head": head,
        "gradio_app": application,
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
        section=PATH,
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
        raise UploadRefusedError(
            "needs-script",
            "on this server a private link opens your submission, and that takes JavaScript.",
            fix="switch JavaScript on, or send the file from a terminal with `cir submit`",
            status=403,
        )
    return sender


def refused_page(error: UploadRefusedError) -> Page:
    """The answer to the plain form where the file is not taken in.

    Args:
        error: why.
    """
    words = f"The file was not taken in: {error.message}"[:160]
    values = {"groups": _refusal_groups(error)}
    return Page("submit_refused.html", "Not accepted", words, values, error.status, section=PATH)


def theme() -> Any:
    """A plain theme that loads no font from anywhere; `style.css` gives it the colours of all pages."""
    sans = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "Helvetica Neue", "Arial", "sans-serif")
    mono = ("ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "DejaVu Sans Mono", "monospace")
    fonts = {
        "font": [gr.themes.Font(name) for name in sans],
        "font_mono": [gr.themes.Font(name) for name in mono],
    }
    return gr.themes.Base(radius_size="sm", spacing_size="md", text_size="md", **fonts)


def css() -> str:
    """The style sheet of Gradio's part."""
    return (resources.files("leaderboard.pages") / "style.css").read_text(encoding="utf-8")


def named_html(server: Server, request: gr.Request, board_id: str, path: str | None) -> tuple[str, bool]:
    """Where a file would be checked, before it is sent: said as soon as it is chosen.

    Args:
        server: the leaderboard.
        request: who has chosen it.
        board_id: the board chosen; empty goes by the file.
        path: the uploaded file, or None where none is chosen.

    Returns:
        What the page says, and whether another board is chosen than the one that the file names.
    """
    if path is None or not Path(path).is_file():
        return "", False
    with Path(path).open("rb") as handle:
        head = handle.read(HEAD_BYTES)
    named, said = named_board(head), {"message": "", "fix": ""}
    board: Board | None
    try:
        board = server.intake.board(board_id, head, Path(path).name)
        if server.settings.accounts != "local":
            server.quotas.check(sender_of(request, server).owner, board.id)
    except UploadRefusedError as error:
        board, said = None, {"message": error.message, "fix": _fix(error)}
    is_other = named is not None and bool(board_id) and named.id != board_id
    return _filled("named.html", board=board, named=named, **said), is_other


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
        return _refused(NO_FILE), ""
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
        return _refused(error), ""
    except FileStoreError as error:
        # Where the files lie is for the organisers.
        log.error("%s", error)
        return _refused(NO_FILES), ""
    Path(path).unlink(missing_ok=True)
    address = submission_page(submission.id, sender.edit_key if new else "")
    return _filled("taken.html"), f".{address}"


def _html(**options: Any) -> Any:
    """A place for finished HTML."""
    return gr.HTML("", apply_default_css=False, js_on_load=None, **options)


def _refused(error: UploadRefusedError) -> str:
    return _filled("refusal.html", groups=_refusal_groups(error))


def _refusal_groups(error: UploadRefusedError) -> list[FindingGroup]:
    return [replace(group, fixes=(_fix(error),)) for group in refusal(error)]


def _fix(error: UploadRefusedError) -> str:
    """What to do about a refusal on this page, which has a list of all boards."""
    return _CHOOSE if error.code in ("missing-board", "unknown-board") else error.fix


def _filled(template: str, **values: Any) -> str:
    return environment().get_template(template).render(**values)


def _named_after(path: str) -> dict[str, Any]:
    """A name for a method whose file gives it none, until its owner says another."""
    try:
        return checked_method({"name": label_of(Path(path).name)})
    except UploadRefusedError:
        return {}
