"""The REST API: upload a rank file, ask what became of it; `reading` has the boards.

Every error is JSON, `{"error": {"code", "message", "fix"}}`; bad input is 4xx. An upload is answered when it
is durable (202, or 200 where the same file is there already), with a signed receipt; what became of it is
asked afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import PurePath
from typing import Any

from fastapi import APIRouter, Request, Security
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import FileResponse, JSONResponse, Response
from fastapi.security import APIKeyHeader, HTTPBearer

from leaderboard.boards import Board
from leaderboard.errors import LostFileError, UploadRefusedError, refuse_unknown
from leaderboard.identity.receipts import Receipt, public_pem
from leaderboard.intake import (
    Cover,
    checked_line,
    checked_method,
    chunks_of,
    corrected_method,
    cover_of,
    known_board,
    method_from_form,
    yes_or_no,
)
from leaderboard.intake.destination import HEAD_BYTES, board_offered, with_end
from leaderboard.intake.life import Action, act
from leaderboard.server import Server
from leaderboard.server.callers import EDIT_KEY, Sender, as_whom, caller_of, changeable, readable, sender_of
from leaderboard.settings import Durability
from leaderboard.standings.views import already_here, submission_page, submission_view
from leaderboard.store.files import IncomingFile
from leaderboard.store.submission import Submission
from leaderboard.web import reading
from leaderboard.web.forms import FormIntoFile
from leaderboard.web.reading import VERSION
from leaderboard.web.schemas import (
    ActionBody,
    NoBody,
    SubmissionAnswer,
    SubmissionsAnswer,
    UploadAnswer,
    fields_of,
    upload_request,
)
from submissions.rank_file.content import suffix_of
from submissions.rank_file.texts import label_of

_FORM_OVERHEAD = 64 * 1024
"""Bytes that a multipart form may need besides the file."""


_FORM_FIELDS = tuple(
    upload_request()["requestBody"]["content"]["multipart/form-data"]["schema"]["properties"]
)

_PassingOn = Callable[[Server, Submission, str], tuple[Submission, bool]]
"""Sends what is there already, from an address: the new submission, and whether it is new."""
_TakenIn = tuple[Submission, Sender, bool]
_Answer = Callable[[Submission, Sender, bool, Durability], Response]

_MEDIA_TYPES = {
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".parquet": "application/vnd.apache.parquet",
    ".trec": "text/plain; charset=utf-8",
    ".gz": "application/gzip",
}
"""By the last suffix of a rank file's name."""


_BEARER = HTTPBearer(auto_error=False, scheme_name="token", description="a token of the organisers")
_EDIT_KEY = APIKeyHeader(
    name=EDIT_KEY,
    auto_error=False,
    scheme_name="edit key",
    description="of a private link, for its submission",
)


def routers(server: Server) -> list[APIRouter]:
    """The routes of the API."""
    found = [reading.root(server)]
    for prefix in (VERSION, reading.UNVERSIONED):
        found += [reading.router(server, prefix), _router(server, prefix)]
    return found


def _router(server: Server, prefix: str) -> APIRouter:
    # This changes no answer: the OpenAPI document names the headers that `caller_of` reads. Neither is needed
    # where one user has the server alone, nor to read what is public.
    logins: dict[str, Any] = {
        "dependencies": [Security(_BEARER), Security(_EDIT_KEY)],
        "openapi_extra": {"security": [{}]},
    }
    taking: dict[str, Any] = {
        "response_model": UploadAnswer,
        "responses": {202: {"model": UploadAnswer, "description": "taken in; it waits to be judged"}},
        "dependencies": logins["dependencies"],
        "openapi_extra": {**logins["openapi_extra"], **upload_request()},
    }
    passing_on = {**taking, "openapi_extra": logins["openapi_extra"]}
    router = reading.api_router(prefix)

    @router.post("/submissions", **taking, max_body_size=upload_bytes(server))
    async def upload(request: Request) -> Response:
        """Take a rank file in: multipart with the field `file`, or the file alone as the request's body."""
        return await taken_in(request, server, sender_of, partial(_taken, server))

    async def passed_on(submission_id: str, request: Request, send: _PassingOn) -> Response:
        def take() -> _TakenIn:
            before, _ = changeable(server, caller_of(request, server), submission_id)
            sender = Sender(before.owner, request.client.host if request.client else "")
            submission, new = send(server, before, sender.address)
            return submission, sender, new

        return await _answered(server, take, partial(_taken, server))

    @router.post("/submissions/{submission_id}/send-on", **passing_on)
    async def send_on(submission_id: str, request: Request, body: NoBody | None = None) -> Response:
        """Send a file that was refused to the board that it names; its private link opens the new one too."""
        return await passed_on(submission_id, request, _sent_on)

    @router.post("/submissions/{submission_id}/bundle", **passing_on)
    async def bundle(submission_id: str, request: Request, body: NoBody | None = None) -> Response:
        """Join the files of one method for all members of a suite to its bundle, and check that."""
        from leaderboard.server import suite_bundles

        return await passed_on(submission_id, request, suite_bundles.join)

    @router.get(
        "/key",
        response_class=Response,
        responses={200: {"content": {"application/x-pem-file": {"schema": {"type": "string"}}}}},
    )
    def key() -> Response:
        """The Ed25519 public key that receipts are checked with, in PEM."""
        return Response(public_pem(server.key.public_key()), media_type="application/x-pem-file")

    @router.get("/submissions/{submission_id}", response_model=SubmissionAnswer, **logins)
    def one_submission(submission_id: str, request: Request) -> dict[str, Any]:
        """What became of a submission."""
        caller = caller_of(request, server)
        submission = readable(server, caller, submission_id)
        by = as_whom(server, caller, submission)
        view = submission_view(submission, organiser=by == "organiser", owner=by == "owner")
        return {**view, "equals": server.equals(submission), "durability": server.durability(submission)}

    @router.post("/submissions/{submission_id}/{action}", response_model=SubmissionAnswer, **logins)
    def change(
        submission_id: str, action: Action, request: Request, body: ActionBody | None = None
    ) -> dict[str, Any]:
        """Publish, correct, withdraw, hide ... a submission; what needs no words needs no body."""
        wanted = body or ActionBody()
        if action != "correct":
            said = wanted.model_dump(exclude_none=True)
            refuse_unknown(said, fields_of(action), f"field of {action}")
        submission, by = changeable(server, caller_of(request, server), submission_id)
        if wanted.seen not in (None, len(submission.events)):
            raise UploadRefusedError.of("changed-since", submission=submission)
        method = wanted.method
        if method is not None:
            method = corrected_method(submission.method or {}, method)
        elif action == "correct" and "method" in wanted.model_fields_set:
            raise UploadRefusedError.of("bad-metadata/correction")
        named = "submitter" in wanted.model_fields_set
        submitter = checked_line(wanted.submitter or "", "submitter") if named else None
        reason = checked_line(wanted.reason or "", "reason")
        done = act(server.store, submission, action, by, reason=reason, method=method, submitter=submitter)
        view = submission_view(done, organiser=by == "organiser", owner=True)
        return {**view, "equals": server.equals(done), "durability": server.durability(done)}

    @router.get("/submissions/{submission_id}/receipt", response_model=Receipt, **logins)
    def receipt(submission_id: str, request: Request) -> Receipt:
        """The server's signed receipt for a file, for whoever sent it; it is the same each time."""
        submission, _ = changeable(server, caller_of(request, server), submission_id)
        return server.receipt(submission)

    @router.get("/submissions", response_model=SubmissionsAnswer, **logins)
    def list_submissions(request: Request, board: reading.BoardId) -> dict[str, Any]:
        """All submissions to a board with their scores, for organisers, also before results are shown."""
        if not caller_of(request, server).is_organiser:
            raise UploadRefusedError.of("not-allowed/list")
        sent = server.store.of_board(known_board(board).id)
        return {"submissions": [submission_view(one, organiser=True) for one in sent]}

    @router.get(
        "/submissions/{submission_id}/file",
        response_class=FileResponse,
        responses={200: {"content": {kind.partition(";")[0]: {} for kind in _MEDIA_TYPES.values()}}},
        **logins,
    )
    def file(submission_id: str, request: Request) -> FileResponse:
        """The rank file of an entry, as it was sent; on a sealed board for its owner and organisers."""
        caller = caller_of(request, server)
        submission = readable(server, caller, submission_id)
        board = known_board(submission.board)
        if board.sealed and as_whom(server, caller, submission) is None:
            raise UploadRefusedError.of("sealed", board=board)
        if submission.state not in ("published", "private"):
            raise UploadRefusedError.of("not-published", submission=submission)
        path = server.files.local_copy(submission.sha256)
        with path.open("rb") as handle:
            suffix = suffix_of(handle.read(HEAD_BYTES))
        name = f"{submission.board.replace('/', '-')}.{submission.id}{suffix}"
        return FileResponse(path, media_type=_MEDIA_TYPES[PurePath(name).suffix], filename=name)

    return router


async def _answered(server: Server, take: Callable[[], _TakenIn], answer: _Answer) -> Response:
    """Take a file in and answer, in one thread; in two where the answer waits for a commit: none does."""

    def taken() -> tuple[_TakenIn, int]:
        found = take()
        return found, 0 if log is None else log.mark()

    def at_once() -> Response:
        found = take()
        return answer(*found, server.durability(found[0]))

    log = server.awaited
    if log is None:
        return await run_in_threadpool(at_once)
    found, mark = await run_in_threadpool(taken)
    safe: Durability = "committed" if await log.reached(mark) else "journalled"
    return await run_in_threadpool(answer, *found, safe)


def _taken(
    server: Server, submission: Submission, sender: Sender, new: bool, safe: Durability
) -> JSONResponse:
    """The answer to a file that was taken in."""
    view = {
        **submission_view(submission, owner=True),
        "new": new,
        "unchanged": None if new else already_here(submission),
        "receipt": server.receipt(submission).model_dump(),
        "durability": safe,
        "edit_key": (sender.edit_key or None) if new else None,
        "edit_link": _edit_link(server, submission, sender.edit_key) if new else None,
        "quota": server.quotas.of(sender.owner, known_board(submission.board)).to_dict(),
    }
    headers = {"Location": f"{reading.UNVERSIONED}/submissions/{submission.id}"}
    return JSONResponse(view, status_code=202 if new else 200, headers=headers)


def _sent_on(server: Server, refused: Submission, address: str) -> tuple[Submission, bool]:
    """Send a file that was refused on a wrong board to the one that it names, for the same owner.

    Raises:
        UploadRefusedError: it names no other board, or that one does not take it.
        FileStoreError: the file cannot be read or written now.
        LostFileError: the file is kept no longer.
    """
    right = board_offered(refused.board, refused.findings) if refused.state == "rejected" else None
    if right is None:
        raise UploadRefusedError.of("wrong-state/send-on", submission=refused)
    path = server.files.local_copy(refused.sha256)
    try:
        return server.intake.take(right.id, chunks_of(path), cover_of(refused, refused.file_name, address))
    except FileNotFoundError as error:
        raise LostFileError(f"{path}: was removed at this moment. Fix: send the file again.") from error


def upload_bytes(server: Server) -> int:
    """Bytes that the body of an upload may have."""
    return server.settings.max_upload_bytes + _FORM_OVERHEAD


def is_form(request: Request) -> bool:
    """Whether a request's body is a form that may hold a file."""
    return request.headers.get("content-type", "").lower().startswith("multipart/form-data")


async def taken_in(
    request: Request,
    server: Server,
    as_sender: Callable[[Request, Server], Sender],
    answer: _Answer,
    *,
    name_after_file: bool = False,
) -> Response:
    """Take in the file of a request while it comes: of a form, or the body itself.

    A thread is asked twice: before the file is kept, and when it is whole, for all the rest.

    Args:
        request: whose body it is.
        server: the leaderboard.
        as_sender: says who sends it.
        answer: makes the answer from the submission, who sent it, whether it is new, and how safe it is.
        name_after_file: whether a method that has no name is called as its file until its owner says another.

    Raises:
        UploadRefusedError: the form is malformed, holds no file or other fields, or the file is not taken in.
        FileStoreError: files cannot be written now.
    """
    query, head = request.query_params, bytearray()
    named, in_form = query.get("board"), is_form(request)
    stream = request.stream()
    if not in_form:
        async for chunk in stream:
            head += chunk
            if len(head) >= HEAD_BYTES:
                break

    def begun() -> tuple[Sender, Board | None, IncomingFile]:
        sender, looked_at = as_sender(request, server), bytes(head[:HEAD_BYTES])
        if in_form:
            board = known_board(named) if named else None
        else:
            at_its_end = not named and with_end(looked_at, bytes) != looked_at
            board = None if at_its_end else server.intake.board(named, looked_at)
        return sender, board, server.intake.incoming(board)

    sender, board, incoming = await run_in_threadpool(begun)

    def take(piece: bytes) -> None:
        head.extend(piece[: max(0, HEAD_BYTES - len(head))])
        incoming.write(piece)

    def whole(texts: Mapping[str, str], file_name: str | None) -> _TakenIn:
        found = board
        if in_form or found is None:
            looked_at = with_end(bytes(head[:HEAD_BYTES]), incoming.end)
            found = server.intake.board(named or texts.get("board"), looked_at, file_name or "")
            server.intake.check_size(incoming.size, found)
        if name_after_file:
            texts = {**_named_after(file_name or ""), **texts}
        submission, new = server.intake.accept(found, incoming, _cover(texts, file_name, sender))
        return submission, sender, new

    try:
        if in_form:
            form = FormIntoFile(request, take)
            texts = await form.read()
            refuse_unknown(texts, _FORM_FIELDS, "form field")
            if form.file_name is None:
                raise UploadRefusedError.of("missing-file/form")
            take_it = partial(whole, {**query, **texts}, form.file_name)
            return await _answered(server, take_it, answer)
        incoming.write(bytes(head))
        async for chunk in stream:
            incoming.write(chunk)
        return await _answered(server, partial(whole, query, query.get("file_name")), answer)
    finally:
        incoming.discard()


def _cover(texts: Mapping[str, str], file_name: str | None, sender: Sender) -> Cover:
    return Cover(
        file_name=file_name or "upload.json",
        submitter=texts.get("submitter", ""),
        method=method_from_form(texts),
        owner=sender.owner,
        edit_hash=sender.edit_hash,
        address=sender.address,
        publish=bool(yes_or_no(texts.get("publish", ""), "publish")),
    )


def _named_after(file_name: str) -> dict[str, Any]:
    with suppress(UploadRefusedError):
        return checked_method({"name": label_of(file_name)})
    return {}


def _edit_link(server: Server, submission: Submission, edit_key: str) -> str | None:
    """The private link of a submission without an account: an address, where the server knows its own."""
    return f"{server.settings.url}{submission_page(submission.id, edit_key)}" if edit_key else None
