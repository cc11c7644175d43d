"""The Space's pages: Gradio asks for boards, queries, entries and files; everything shown is `shown`'s."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import gradio as gr
from starlette.requests import Request

from leaderboard import boards
from leaderboard.boards import Board
from leaderboard.errors import ChildCrashedError, FileStoreError, PassingError, UploadRefusedError
from leaderboard.identity import Tokens
from leaderboard.identity.signed_in import Logins
from leaderboard.intake import Cover, checked_method, chunks_of
from leaderboard.intake.destination import HEAD_BYTES
from leaderboard.pages.site import Site
from leaderboard.queue.child import judge
from leaderboard.server import Server
from leaderboard.server.callers import caller_of, sender_of
from leaderboard.space import shown
from submissions.rank_file.texts import label_of

_AT_ONCE = 2
"""Files that are checked at the same time."""
_SECONDS = 900
"""How long a page watches a file that it has sent."""
_TOKEN = {"type": "password", "label": "Token", "info": "From the organisers; stays in this page."}


class Pages:
    """The Blocks of one server.

    Args:
        server: the leaderboard.
    """

    def __init__(self, server: Server) -> None:
        """Build them."""
        self._server, self._site = server, Site(server)
        self._oauth = server.settings.accounts == "oauth"
        with gr.Blocks(title=server.settings.name, fill_width=True, delete_cache=(300, 1200)) as self.demo:
            self._build()
        self.demo.queue(max_size=64, api_open=False)

    def _build(self) -> None:
        quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
        named = [(f"{one.title} ({one.id})", one.id) for one in boards.boards()]
        head, timer = _html(elem_id="head"), gr.Timer(3, active=False)
        board = gr.Dropdown(
            [("All boards", ""), *named], value="", container=False, label="Board", elem_id="board"
        )
        with gr.Tabs() as tabs:
            with gr.Tab("Boards", id="boards"):
                table = _html(shown.said("Loading…"), elem_id="table")
            with gr.Tab("Queries", id="queries"):
                with gr.Row():
                    query = gr.Textbox(label="Query", elem_id="query", submit_btn=True)
                    first = gr.Dropdown([], label="Method", elem_id="of")
                with gr.Row():
                    before = gr.Button("Previous", scale=0, min_width=120, size="sm")
                    behind = gr.Button("Next", scale=0, min_width=120, size="sm", elem_id="next")
                answer = _html(shown.said("Loading…"), elem_id="answer")
                previous, following = gr.State(""), gr.State("")
            with gr.Tab("Compare", id="compare"):
                with gr.Row():
                    one = gr.Dropdown([], label="First entry", elem_id="one")
                    other = gr.Dropdown([], label="Second entry", elem_id="other")
                compared = _html(elem_id="compared")
            with gr.Tab("Submit", id="submit"):
                file = gr.File(label="Rank file, bundle or transcript", height=130, elem_id="file")
                with gr.Row():
                    says = [("The one that the file names", ""), *named]
                    to = gr.Dropdown(says, value="", label="Board of the file", elem_id="to")
                    name = gr.Textbox(label="Method, where the file names none", elem_id="method")
                token = gr.Textbox(visible=not self._oauth, elem_id="token", **_TOKEN)
                found = _html(elem_id="found")
                publish = gr.Checkbox(label="Publish it as soon as it is scored", elem_id="publish")
                send = gr.Button("Send", variant="primary", interactive=False, elem_id="send")
                outcome = _html(elem_id="outcome")
            with gr.Tab("Your entries", id="yours"):
                own = gr.Textbox(visible=not self._oauth, elem_id="own-token", **_TOKEN)
                look = gr.Button("Look", size="sm", elem_id="look")
                mine = _html(elem_id="mine")
            with gr.Tab("About", id="about"):
                _html(shown.about())

        query_of, pair_of = partial(shown.query, self._site), partial(shown.comparison, self._site)
        of_board = [table, timer, query, first, one, other]
        of_query = {"inputs": [board, query, first], "outputs": [answer, previous, following], **quiet}
        asked = self.demo.load(self._opened, outputs=[head, tabs, board, *of_board], **quiet)
        chosen = board.input(self._of_board, board, of_board, **quiet)
        for button, place in ((before, previous), (behind, following)):
            went = button.click(lambda found, now: found or now, [place, query], query, **quiet)
            went.then(query_of, **of_query)
        of_two: dict[str, Any] = {"inputs": [board, one, other], "outputs": compared, **quiet}
        for event in (asked, chosen):
            event.then(query_of, **of_query)
            event.then(pair_of, **of_two)
        gr.on([query.submit, first.input], query_of, **of_query)
        timer.tick(self._again, board, [head, table, timer], **quiet)
        # Not `change`: a tab that nobody has opened yet may tell of it in any order, or never.
        gr.on([one.input, other.input], pair_of, **of_two)
        watched: dict[str, Any] = {"concurrency_limit": _AT_ONCE, "concurrency_id": "files", **quiet}
        gr.on(
            [file.change, to.change, token.submit],
            self._looked,
            [file, to, token],
            [found, send, outcome],
            **watched,
        )
        send.click(self._sent, [file, to, name, token, publish], [outcome, send], **watched)
        look.click(self._mine, own, mine, **quiet)

    def _opened(self, request: gr.Request) -> list[Any]:
        """The page as its address asks for it."""
        view = str(request.query_params.get("view", "boards"))
        board_id = str(request.query_params.get("board", ""))
        board_id = board_id if board_id in boards.ids() else ""
        return [self._head(request), gr.Tabs(selected=view), board_id, *self._of_board(board_id)]

    def _head(self, request: gr.Request) -> str:
        login = Logins(self._server.store).of(request) if self._oauth else None
        return shown.head(self._server, "" if login is None else login.name)

    def _again(self, board_id: str, request: gr.Request) -> list[Any]:
        """What changes while somebody waits."""
        return [self._head(request), *self._table(board_id)]

    def _table(self, board_id: str) -> list[Any]:
        """The table, and whether it is asked for again by itself: data or groups are being made."""
        site, waits = self._site, bool(shown.unready(self._server))
        html, grouping = shown.board(site, boards.board(board_id)) if board_id else (shown.home(site), False)
        return [html, gr.Timer(active=waits or grouping)]

    def _of_board(self, board_id: str) -> list[Any]:
        """All that depends on the board that is chosen."""
        chosen = boards.board(board_id) if board_id else None
        listed = shown.choices(self._server, chosen) if chosen else []
        ids = [*(entry for _, entry in listed), None, None]
        first, second = (gr.Dropdown(choices=listed, value=entry) for entry in ids[:2])
        query = shown.first_query(self._site, chosen) if chosen else ""
        return [*self._table(board_id), query, first, first, second]

    def _looked(
        self, path: str | None, to: str, token: str | None, request: gr.Request
    ) -> Iterator[list[Any]]:
        """What is found in a file before it is sent: a process of its own judges it, nothing is kept."""
        off = gr.Button(interactive=False)
        if path is None:
            yield ["", off, ""]
            return
        try:
            sender_of(_with_token(request, token), self._server)
            with Path(path).open("rb") as opened:
                start = opened.read(HEAD_BYTES)
            board = self._server.intake.board(to, start, Path(path).name)
            self._server.intake.check_size(Path(path).stat().st_size, board)
        except UploadRefusedError as error:
            yield [shown.refused(error), off, ""]
            return
        if board.sealed:
            words = f"For {board.title}, which is sealed: it is checked when it has been sent."
            yield [shown.said(words, "good"), gr.Button(interactive=True), ""]
            return
        yield [shown.said(f"For {board.title}. Checking every ranking…"), off, ""]
        yield [*self._found(Path(path), board), ""]

    def _found(self, path: Path, board: Board) -> tuple[str, Any]:
        try:
            judged = judge(path, board.benchmark, file_name=path.name, form={}, dialogue=board.dialogue)
        except (PassingError, ChildCrashedError):
            words = f"For {board.title}. It is checked when it has been sent."
            return shown.said(words), gr.Button(interactive=True)
        good = judged.outcome == "scored"
        words = f"For {board.title}: {'no errors.' if good else 'errors, so that it cannot be scored.'}"
        return shown.findings(judged.findings, words, good=good), gr.Button(interactive=good)

    def _sent(
        self, path: str | None, to: str, name: str, token: str | None, publish: bool, request: gr.Request
    ) -> Iterator[tuple[str, Any]]:
        """Send a file, and say how far it is until it is judged."""
        off = gr.Button(interactive=False)
        try:
            sender = sender_of(_with_token(request, token), self._server)
            if path is None:
                raise UploadRefusedError.of("missing-file/page")
            method = checked_method({"name": name.strip() or label_of(Path(path).name)})
            cover = Cover(
                owner=sender.owner,
                edit_hash=sender.edit_hash,
                address=sender.address,
                file_name=Path(path).name,
                method=method,
                publish=publish,
            )
            one, new = self._server.intake.take(to, chunks_of(Path(path)), cover)
            self._server.durability(one)  # which is committed soon
        except UploadRefusedError as error:
            yield shown.refused(error), gr.Button(interactive=True)
            return
        except FileStoreError:
            yield shown.said("The server cannot write files now: try again later.", "bad"), off
            return
        if (log := self._server.awaited) is not None:
            mark = log.mark()
            yield shown.said("Storing the file…"), off
            asyncio.run(log.reached(mark))
        sender = sender if new else replace(sender, edit_key="")
        for _ in range(_SECONDS):
            yield shown.became(self._site, one, sender), off
            if one.finished:
                break
            one = self._server.wait(one, 1)

    def _mine(self, token: str | None, request: gr.Request) -> str:
        """The submissions of whoever asks."""
        try:
            caller = caller_of(_with_token(request, token), self._server)
        except UploadRefusedError as error:
            return shown.refused(error)
        if not caller.owner:
            words = "Sign in above." if self._oauth else "Give your token; a private link opens its own page."
            return shown.said(words)
        teams = (*Tokens(self._server.store).teams_of(caller.owner), *caller.teams)
        return shown.mine(self._server.store.of_owners([caller.owner, *teams]))


def _html(value: str = "", **options: Any) -> Any:
    """A place for finished HTML."""
    return gr.HTML(value, apply_default_css=False, js_on_load=None, elem_classes="shown", **options)


def _with_token(request: gr.Request, token: str | None) -> Request:
    """The browser's request, as a program sends it that has the token; a field that is not there has None."""
    whole: Any = request.request
    scope = dict(whole.scope)
    if token and token.strip():
        others = [(name, value) for name, value in scope["headers"] if name != b"authorization"]
        scope["headers"] = [*others, (b"authorization", f"Bearer {token.strip()}".encode("utf-8", "replace"))]
    return Request(scope)
