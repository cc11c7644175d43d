"""The page of one submission, whatever became of it; with its private link its owner's desk.

The key of a private link stands behind the # of the address, which a browser sends to no server, and so to no
log and in no `Referer`. The page's own script hands it over in the body of each request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import gradio as gr

from leaderboard import boards
from leaderboard.boards import Board
from leaderboard.callers import as_whom, caller_of, changeable, readable
from leaderboard.destination import board_offered
from leaderboard.errors import ConflictError, FileStoreError, LostFileError, UploadRefusedError
from leaderboard.intake import (
    Cover,
    checked_line,
    checked_method,
    chunks_of,
    method_from_form,
)
from leaderboard.life import RULES, Action, act
from leaderboard.pages.layout import GO_TO, HIDDEN, day, html_block, page_foot, page_head
from leaderboard.pages.markup import element, joined, text
from leaderboard.pages.outcome import outcome_html, refusal_html
from leaderboard.server import Server
from leaderboard.submission import By, Submission
from leaderboard.views import entry_page, submission_page, submission_view
from submissions.rank_file.words import OTHER
from submissions.rank_file.words import words_of as listed_words

_LOOK_SECONDS = 1.0
_AT_ONCE = 16
_FROM_ADDRESS = "(key, ...others) => [window.location.hash.slice(1), ...others]"
"""The key of the private link, in the place of the first input."""

_ZERO_SHOT: dict[str, bool | None] = {"not said": None, "yes": True, "no": False}
_LISTS = ("trained_on", "text_fields")
_ACTS: dict[Action, tuple[str, str]] = {
    "publish": ("Publish", "Published."),
    "correct": ("Save the words", "Saved."),
    "unpublish": ("Take it off the board", "Taken off the board; only you see it now."),
    "withdraw": ("Withdraw", "Withdrawn."),
}
_OFFERED: dict[str, tuple[Action, ...]] = {
    "private": ("publish", "correct", "withdraw"),
    "published": ("correct", "unpublish", "withdraw"),
}
"""The acts that the page offers in a state; programs have more."""

_BY: dict[By, str] = {"server": "", "owner": ", by its owner", "organiser": ", by the organisers"}

Updates = dict[Any, Any]


def build(demo: Any, server: Server) -> None:
    """Add the page to the pages' Blocks."""
    with demo.route("Submission", "/submission"):
        page_head("")
        shown = html_block(element("p", "Loading the submission…", "loading"), elem_id="outcome")
        with gr.Column(visible=False, elem_id="desk") as desk:
            html_block(_DESK)
            fields = _fields()
            said = html_block("", elem_id="said")
            with gr.Row(elem_id="acts"):
                buttons = {
                    action: gr.Button(
                        words,
                        variant="primary" if action == "publish" else "secondary",
                        elem_id=f"act-{action}",
                        min_width=140,
                    )
                    for action, (words, _) in _ACTS.items()
                }
        move = gr.Button("", visible=False, variant="primary", elem_id="move")
        clock = gr.Timer(_LOOK_SECONDS, active=False)
        key, where = gr.Textbox(visible=HIDDEN), gr.Textbox(visible=HIDDEN)
        page_foot()

        def look(request: gr.Request, edit_key: str) -> Updates:
            try:
                submission, by = _found(server, request, edit_key)
            except UploadRefusedError as error:
                return {shown: refusal_html(error), clock: gr.Timer(active=False)}
            updates = seen(submission, by, edit_key)
            if submission.finished:
                updates |= filled(submission)
            return updates

        def seen(submission: Submission, by: By | None, edit_key: str) -> Updates:
            offered = _OFFERED.get(submission.state, ()) if by is not None else ()
            movable = submission.state == "rejected" and submission.file_removed_at is None and by
            right = board_offered(submission.board, submission.findings) if movable else None
            return {
                shown: page_html(server, submission, is_owner=by is not None, edit_key=edit_key),
                desk: gr.Column(visible=bool(offered)),
                move: gr.Button(f"Check it on {right.title}" if right else "", visible=right is not None),
                clock: gr.Timer(active=not submission.finished),
                **{button: gr.Button(visible=action in offered) for action, button in buttons.items()},
            }

        def filled(submission: Submission) -> Updates:
            words = words_of(submission)
            return {field: words[name] for name, field in fields.items()}

        def doing(action: Action) -> Callable[..., Updates]:
            def do(request: gr.Request, edit_key: str, *written: str) -> Updates:
                words = dict(zip(fields, written, strict=True))
                try:
                    done = changed(server, request, edit_key, action, words)
                    submission, by = _found(server, request, edit_key)
                except (UploadRefusedError, ConflictError) as error:
                    return {said: refusal_html(_as_refusal(error))}
                message = element("p", text(_ACTS[action][1] if done else "Nothing has changed."), "said")
                return {said: message, **seen(submission, by, edit_key), **filled(submission)}

            return do

        def send_on(request: gr.Request, edit_key: str) -> Updates:
            try:
                sent = moved(server, request, edit_key)
            except (UploadRefusedError, FileStoreError, LostFileError) as error:
                return {shown: refusal_html(_as_refusal(error))}
            return {where: f".{submission_page(sent.id, edit_key)}"}

        quiet: dict[str, Any] = {
            "show_progress": "hidden",
            "api_visibility": "private",
            "concurrency_limit": _AT_ONCE,
            "js": _FROM_ADDRESS,
        }
        everything = [shown, desk, move, clock, *buttons.values(), *fields.values()]
        demo.load(look, inputs=[key], outputs=everything, **quiet)
        clock.tick(look, inputs=[key], outputs=everything, **quiet)
        for action, button in buttons.items():
            button.click(doing(action), inputs=[key, *fields.values()], outputs=[said, *everything], **quiet)
        move.click(send_on, inputs=[key], outputs=[shown, where], **quiet).then(None, inputs=where, js=GO_TO)


_DESK = element("h2", "About the method") + element(
    "p",
    "These words come from the file, and the board shows them. Correct them, then publish; both can be "
    "done again later. A withdrawn file comes back only when it is sent again.",
    "note",
)


def _fields() -> dict[str, Any]:
    """The form, by the names of the method's fields, and `submitter`."""

    def line(label: str, hint: str = "", longest: int = 300) -> Any:
        return gr.Textbox(label=label, placeholder=hint, max_length=longest, min_width=220)

    def listed(field: str, label: str) -> Any:
        choices = [("not said", ""), *((word, word) for word in listed_words(field) if word != OTHER)]
        return gr.Dropdown(
            choices, label=label, info="choose, or write your own", allow_custom_value=True, min_width=220
        )

    fields: dict[str, Any] = {}
    with gr.Row():
        fields["name"] = line("Method name", longest=80)
        fields["submitter"] = line("Submitted by", "optional, shown", 80)
        fields["backbone"] = listed("backbone", "Backbone")
    with gr.Row():
        fields["paper"] = line("Paper", "https://")
        fields["code"] = line("Code", "https://")
        fields["zero_shot"] = gr.Dropdown(list(_ZERO_SHOT), label="Zero-shot", min_width=220)
    with gr.Accordion("More about the method", open=False, elem_id="more"):
        with gr.Row():
            fields["oracle"] = listed("oracle", "Oracle: what it knows that no user's query holds")
            fields["caption_rule"] = listed("caption_rule", "Caption rule: several captions become one text")
        with gr.Row():
            fields["text_fields"] = line("Text fields", "columns that are read: relative_caption", 2000)
        with gr.Row():
            fields["aggregation"] = line("Aggregation", "a session's turns become one ranking: latest")
            fields["trained_on"] = line("Trained on", "data sets, separated by commas", 2000)
        fields["notes"] = gr.Textbox(
            label="Notes", lines=2, placeholder="what a reader needs to know", max_length=2000
        )
    return fields


def words_of(submission: Submission) -> dict[str, str]:
    """A submission's words, as the form's fields hold them."""
    method: Mapping[str, Any] = submission.method or {}
    words = {name: str(method.get(name, "")) for name in _FORM if name not in _LISTS}
    words |= {name: ", ".join(method.get(name, ())) for name in _LISTS}
    said = next(word for word, value in _ZERO_SHOT.items() if value is method.get("zero_shot"))
    return {**words, "zero_shot": said, "submitter": submission.submitter}


_FORM = (
    "name",
    "oracle",
    "backbone",
    "paper",
    "code",
    "zero_shot",
    "caption_rule",
    "aggregation",
    "notes",
    *_LISTS,
)
"""The fields of the method that the form has; what a file says beside them stays."""


def changed(
    server: Server, request: gr.Request, edit_key: str, action: Action, words: Mapping[str, str]
) -> bool:
    """Do what a button says; publishing and saving take the form's words along.

    Returns:
        Whether anything is other than before.

    Raises:
        UploadRefusedError: the caller may not do that, or a word is refused.
        ConflictError: something else happened to it at the same moment.
    """
    submission, by = changeable(server, caller_of(request, server, edit_key), _id(request))
    done = submission
    if action in ("publish", "correct"):
        said = _ZERO_SHOT.get(words["zero_shot"])
        form = {name: words[name] or "" for name in _FORM}
        form["zero_shot"] = "" if said is None else words["zero_shot"]
        method = method_from_form(form)
        if "name" not in method:
            raise UploadRefusedError(
                "bad-metadata", "the method has no name.", fix="give it one of 80 characters at most"
            )
        kept = {key: value for key, value in (submission.method or {}).items() if key not in _FORM}
        submitter = checked_line(words["submitter"] or "", "submitter")
        method = checked_method({**kept, **method})
        done = act(server.store, done, "correct", by, method=method, submitter=submitter)
    if action != "correct":
        done = act(server.store, done, action, by)
    return len(done.events) > len(submission.events)


def moved(server: Server, request: gr.Request, edit_key: str) -> Submission:
    """Send a file that was refused on a wrong board to the one that it names, for the same owner.

    Raises:
        UploadRefusedError: it names no other board, or that one does not take it.
        FileStoreError: the file cannot be read or written now.
        LostFileError: the file is kept no longer.
    """
    refused, _ = changeable(server, caller_of(request, server, edit_key), _id(request))
    right = board_offered(refused.board, refused.findings)
    cover = Cover(
        file_name=refused.file_name,
        submitter=refused.submitter,
        method=refused.form,
        owner=refused.owner,
        publish=False,
        edit_hash=refused.edit_hash,
        address=request.client.host if request.client else "",
    )
    path = server.files.local_copy(refused.sha256)
    try:
        sent, _ = server.intake.take(right.id if right else None, chunks_of(path), cover)
    except FileNotFoundError as error:
        raise LostFileError(f"{path}: was removed at this moment. Fix: send the file again.") from error
    return sent


def page_html(server: Server, submission: Submission, *, is_owner: bool, edit_key: str) -> str:
    """What the page shows.

    Args:
        server: the leaderboard.
        submission: one that the caller may read.
        is_owner: whether the caller may change it.
        edit_key: of the private link that is open, or empty.
    """
    board = boards.board(submission.board) if submission.board in boards.ids() else None
    title = element("div", element("h1", f"Submission {text(submission.id)}"), "title")
    place = text(submission.board) if board is None else _board_link(board)
    facts = [
        text(submission.file_name),
        f"for {place}",
        f"{submission.size:,} bytes, sha256 {text(submission.sha256[:12])}",
        f"received {day(submission.received_at)}",
    ]
    file = submission_view(submission)["file"]
    if file:
        facts.append(element("a", "rank file", href=f".{file}", download=""))
    if submission.file_removed_at is not None:
        facts.append(f"its file was refused, and is not kept since {day(submission.file_removed_at)}")
    if submission.verified:
        facts.append("verified by the organisers")
    listed = element("ul", joined(element("li", fact) for fact in facts), "facts")
    link = _link_notice(submission, edit_key) if is_owner and edit_key else ""
    if board is None:
        outcome = element("p", f"Its board was removed; it is {text(submission.state)}.", "notice")
    else:
        outcome = outcome_html(submission, board)
    receipt = _receipt(server, submission) if is_owner else ""
    return (
        title
        + listed
        + link
        + outcome
        + _remarks(server, submission)
        + _history(submission, is_owner=is_owner)
        + receipt
    )


def _remarks(server: Server, submission: Submission) -> str:
    """What the organisers warn of, and whose rankings are the same."""
    said = ""
    if submission.flag:
        said = element("p", text(f"The organisers warn: {submission.flag}"), "notice")
    same = [element("a", text(each), href=f".{submission_page(each)}") for each in server.equals(submission)]
    if same:
        said += element("p", f"It ranks the same as {', '.join(same)} on that board.", "notice")
    return said


def _board_link(board: Board) -> str:
    return element("a", text(board.title), href=f".{entry_page(board.id)}")


def _link_notice(submission: Submission, edit_key: str) -> str:
    link = element("a", "private link", href=f".{submission_page(submission.id, edit_key)}")
    words = f"This page's address is the {link} to your submission: bookmark it. It is not shown again. "
    send = element("a", "Send", href="./submit")
    acts = [name for name, rule in RULES.items() if rule.by == "owner" and submission.state in rule.states]
    if not submission.finished:
        words += "Whoever has it can correct, publish and withdraw the submission once it is scored."
    elif acts:
        words += (
            f"Whoever has it can {', '.join(acts[:-1])}{' and ' * (len(acts) > 1)}{acts[-1]} the submission."
        )
    elif submission.state == "rejected":
        words += (
            f"A refused file cannot be corrected or published here. {send} a corrected file: it becomes a "
        )
        words += "submission of its own, with a link of its own."
    else:
        words += "Nothing of it can be changed any more."
    return element("p", words, "notice")


def _history(submission: Submission, *, is_owner: bool) -> str:
    """What happened to it; of a correction, for its owner, each field before and after."""
    lines = []
    for event, seen in zip(
        submission.events, submission_view(submission, owner=is_owner)["events"], strict=True
    ):
        when = f" {event.at:%Y-%m-%d %H:%M:%S} UTC{_BY[event.by]}"
        changes = seen["changes"] or ({"name": seen["name"]} if seen["name"] else {})
        named = [name for name in seen["fields"] or () if name not in changes]
        said = [
            f"{name}: {_word(change['old'])} → {_word(change['new'])}" for name, change in changes.items()
        ]
        words = joined(element("div", text(each), "change") for each in [*said, *named])
        lines.append(element("li", element("span", text(event.kind), "kind") + when + words))
    return element(
        "details", element("summary", "What happened to it") + element("ol", joined(lines)), "history"
    )


def _word(value: Any) -> str:
    """A field's value in a history."""
    if value in (None, "", []):
        return "nothing"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _receipt(server: Server, submission: Submission) -> str:
    """The server's signed receipt, to be kept; it is the same each time."""
    words = element("p", "Keep it as a file; cir receipt verify FILE checks it without this server.")
    written = element("pre", text(server.receipt(submission).to_bytes().decode()))
    return element("details", element("summary", "Signed receipt") + words + written, "history")


def _found(server: Server, request: gr.Request, edit_key: str) -> tuple[Submission, By | None]:
    caller = caller_of(request, server, edit_key)
    submission = readable(server, caller, _id(request))
    return submission, as_whom(server, caller, submission)


def _id(request: gr.Request) -> str:
    return str(request.query_params.get("id", ""))


def _as_refusal(error: Exception) -> UploadRefusedError:
    if isinstance(error, UploadRefusedError):
        return error
    if isinstance(error, ConflictError):
        words = "something else happened to the submission at the same moment."
        return UploadRefusedError("conflict", words, fix="load the page again, then repeat it")
    return UploadRefusedError("files-unavailable", "the file cannot be read here now.", fix="send it again")
