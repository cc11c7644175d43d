"""The submit page: a rank file and who answers; validated before it is scored."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr

from leaderboard import boards
from leaderboard.callers import EDIT_KEY, Sender, sender_of
from leaderboard.errors import UploadRefusedError
from leaderboard.intake import Cover, chunks_of, method_from_form
from leaderboard.pages.layout import html_block, page_foot, page_head
from leaderboard.pages.markup import element, text
from leaderboard.pages.outcome import outcome_html, progress_html, refusal_html
from leaderboard.server import Server
from leaderboard.submission import Submission
from leaderboard.views import entry_page

_STEP_SECONDS = 0.5
_PATIENCE_STEPS = 600
"""After so many steps the page stops waiting; the submission goes on."""

_ZERO_SHOT = {"not said": "", "yes": "yes", "no": "no"}


def build(demo: Any, server: Server) -> None:
    """Add the page to the pages' Blocks."""
    with demo.route("Submit", "/submit"):
        page_head("Submit")
        html_block(_INTRO)
        choices = [(f"{board.title} ({board.id})", board.id) for board in boards.boards()]
        with gr.Row(equal_height=False):
            with gr.Column(scale=1, min_width=300):
                board = gr.Dropdown(choices, value=choices[0][1], label="Board", elem_id="field-board")
                file = gr.File(label="Rank file", type="filepath", elem_id="field-file", height=200)
            with gr.Column(scale=1, min_width=300):
                with gr.Row():
                    name = gr.Textbox(
                        label="Method name", placeholder="if the file has none", max_length=80, min_width=130
                    )
                    submitter = gr.Textbox(
                        label="Submitted by", placeholder="optional, shown", max_length=80, min_width=130
                    )
                with gr.Row():
                    backbone = gr.Textbox(label="Backbone", placeholder="ViT-B/32", min_width=130)
                    zero_shot = gr.Dropdown(
                        list(_ZERO_SHOT), value="not said", label="Zero-shot", min_width=130
                    )
                with gr.Row():
                    paper = gr.Textbox(label="Paper", placeholder="https://", min_width=130)
                    code = gr.Textbox(label="Code", placeholder="https://", min_width=130)
        more = _more_fields()
        texts = {"name": name, "backbone": backbone, "zero_shot": zero_shot, "paper": paper, "code": code}
        texts |= {**more, "submitter": submitter}
        send = gr.Button("Validate and submit", variant="primary", elem_id="send")
        outcome = html_block("", elem_id="outcome")
        page_foot()

        def prepare(request: gr.Request) -> Any:
            asked = request.query_params.get("board", "")
            return asked if asked in boards.ids() else choices[0][1]

        def submit(request: gr.Request, board_id: str, path: str | None, *fields: str) -> Iterator[str]:
            yield from steps(server, request, board_id, path, dict(zip(texts, fields, strict=True)))

        demo.load(prepare, outputs=board, show_progress="hidden", api_visibility="private")
        send.click(
            submit,
            inputs=[board, file, *texts.values()],
            outputs=outcome,
            show_progress="hidden",
            api_visibility="private",
            concurrency_limit=8,
        )


def _more_fields() -> dict[str, Any]:
    """What few fill in, folded away, by the names of the method's fields."""
    with gr.Accordion("More about the method", open=False, elem_id="more"):
        with gr.Row():
            caption_rule = gr.Textbox(
                label="Caption rule",
                placeholder='several captions become one text: joined by " and "',
                max_length=300,
                min_width=240,
            )
            text_fields = gr.Textbox(
                label="Text fields", placeholder="columns that are read: relative_caption", min_width=240
            )
        with gr.Row():
            aggregation = gr.Textbox(
                label="Aggregation",
                placeholder="a session's turns become one ranking: latest",
                max_length=300,
                min_width=240,
            )
            trained_on = gr.Textbox(
                label="Trained on", placeholder="data sets, separated by commas", min_width=240
            )
        notes = gr.Textbox(label="Notes", lines=2, placeholder="what a reader needs to know", max_length=2000)
    return {
        "caption_rule": caption_rule,
        "text_fields": text_fields,
        "aggregation": aggregation,
        "trained_on": trained_on,
        "notes": notes,
    }


_INTRO = element("div", element("h1", "Submit a rank file"), "title") + element(
    "p",
    "The file is validated first; what is wrong with it is shown here, as cir validate shows it. A valid "
    "file is scored and stands on the board with its signature. The form fills in what the file's own method "
    "block leaves out.",
    "lead",
)


def _private_link(submission: Submission, sender: Sender) -> str:
    """The key with which a sender without an account may change the submission; shown this once."""
    if not sender.edit_key:
        return ""
    words = element("p", "Keep this key; it is shown once. It lets you correct and withdraw the entry.")
    key = element("code", text(f"{EDIT_KEY}: {sender.edit_key}"), "edit-key")
    return element("div", words + element("p", f"{text(submission.id)} · {key}"), "notice", role="status")


def steps(
    server: Server, request: gr.Request, board_id: str, path: str | None, form: dict[str, str]
) -> Iterator[str]:
    """What the page shows while a file is received, validated and scored, one HTML text a step.

    Args:
        server: the leaderboard.
        request: who sends it.
        board_id: the board chosen.
        path: the uploaded file, or None where none was chosen.
        form: the form's texts by name.
    """
    if path is None:
        yield refusal_html(
            UploadRefusedError("missing-file", "no file is chosen.", fix="choose a rank file above")
        )
        return
    yield progress_html("Storing the file…")
    try:
        chosen = _ZERO_SHOT.get(form.get("zero_shot", ""), "")
        sender = sender_of(request, server)
        cover = Cover(
            owner=sender.owner,
            edit_hash=sender.edit_hash,
            address=sender.address,
            file_name=Path(path).name,
            submitter=form.get("submitter", "") or "",
            method=method_from_form(
                {**{key: value or "" for key, value in form.items()}, "zero_shot": chosen}
            ),
        )
        submission, new = server.intake.take(board_id, chunks_of(Path(path)), cover)
    except UploadRefusedError as error:
        yield refusal_html(error)
        return
    board = boards.board(submission.board)
    link = _private_link(submission, sender) if new else ""
    state = ""
    for _ in range(_PATIENCE_STEPS):
        if submission.state != state:
            state = submission.state
            yield link + outcome_html(submission, board)
        if submission.finished:
            return
        submission = server.wait(submission, _STEP_SECONDS)
    later = element("a", "the board's page", href=f".{entry_page(board.id, submission.id)}")
    yield element(
        "div", element("p", f"{text(submission.id)} is still waiting; its outcome will be on {later}.")
    )
