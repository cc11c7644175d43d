"""The REST API: upload a rank file, ask what became of it, read the boards.

Every error is JSON, `{"error": {"code", "message", "fix"}}`; bad input is 4xx. An upload is answered when it
is durable (202, or 200 where the same file is there already), with a signed receipt; what became of it is
asked afterwards.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import FileResponse, JSONResponse, Response
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException

from cir_metrics.signature import package_version
from leaderboard import boards
from leaderboard.errors import FileStoreError, LostFileError, UploadRefusedError
from leaderboard.intake import CHUNK, Cover, known_board, method_from_form
from leaderboard.server import Server
from leaderboard.submission import Submission
from leaderboard.views import board_view, submission_view, table_view
from submissions.formats.containers import GZIP

log = logging.getLogger("leaderboard.api")

FORM_OVERHEAD = 64 * 1024
"""Bytes that a multipart form may need besides the file."""

FIELDS = 20
"""Fields that a form may hold."""

UPLOAD_PATH = "/api/submissions"


def add_routes(app: FastAPI, server: Server) -> None:
    """Put the API onto the application."""
    app.add_exception_handler(UploadRefusedError, _refused)
    app.add_exception_handler(FileStoreError, _no_files)
    app.add_exception_handler(LostFileError, _no_files)
    app.include_router(_router(server))


def _router(server: Server) -> APIRouter:
    router = APIRouter()

    @router.get("/health")
    def health() -> dict[str, Any]:
        """Whether the server lives and its store answers."""
        return {
            "status": "ok",
            "version": package_version(),
            "boards": len(boards.ids()),
            "waiting": len(server.store.unfinished()),
            "max_upload_bytes": server.settings.max_upload_bytes,
        }

    @router.get("/api/boards")
    def list_boards() -> dict[str, Any]:
        """All boards, without their rows."""
        counts = server.store.count_published()
        return {"boards": [board_view(board, counts.get(board.id, 0)) for board in boards.boards()]}

    @router.get("/api/boards/{board_id:path}")
    def one_board(board_id: str) -> dict[str, Any]:
        """A board and its rows, best first."""
        board = known_board(board_id)
        return table_view(board, server.entries(board))

    @router.post(UPLOAD_PATH)
    async def upload(request: Request) -> JSONResponse:
        """Take a rank file in: multipart with the field `file`, or the file alone as the request's body."""
        if request.headers.get("content-type", "").startswith("multipart/form-data"):
            submission, new = await _from_form(request, server)
        else:
            submission, new = await _from_body(request, server)
        server.worker.wake()
        status = 202 if new else 200
        headers = {"Location": f"{UPLOAD_PATH}/{submission.id}"}
        view = {**submission_view(submission), "new": new, "receipt": server.receipt(submission).model_dump()}
        return JSONResponse(view, status_code=status, headers=headers)

    @router.get("/api/key")
    def key() -> Response:
        """The Ed25519 public key that receipts are checked with, in PEM."""
        return Response(server.key.public_pem, media_type="application/x-pem-file")

    @router.get(UPLOAD_PATH + "/{submission_id}")
    def one_submission(submission_id: str) -> dict[str, Any]:
        """What became of a submission."""
        return submission_view(_known(server, submission_id))

    @router.get(UPLOAD_PATH + "/{submission_id}/file")
    def file(submission_id: str) -> FileResponse:
        """The rank file of an entry that stands on an open board, as it was sent."""
        submission = _known(server, submission_id)
        if submission.state != "published":
            raise UploadRefusedError(
                "not-published",
                f"submission {submission.id} stands on no board.",
                fix="ask for the file of an entry on a board",
                status=404,
            )
        path = server.files.local_copy(submission.sha256)
        with path.open("rb") as handle:
            packed = handle.read(len(GZIP)) == GZIP
        name = f"{submission.board.replace('/', '-')}.{submission.id}.json{'.gz' if packed else ''}"
        return FileResponse(path, media_type=f"application/{'gzip' if packed else 'json'}", filename=name)

    @router.api_route(
        "/api/{rest:path}", methods=["GET", "POST", "PUT", "PATCH", "DELETE"], include_in_schema=False
    )
    def nothing_here(rest: str) -> None:
        """Answer what is not a route in JSON too, instead of with a page."""
        raise HTTPException(404)

    return router


async def _from_form(request: Request, server: Server) -> tuple[Submission, bool]:
    async with request.form(max_files=1, max_fields=FIELDS) as form:
        texts = _texts(form)
        upload = form.get("file")
        if not isinstance(upload, UploadFile):
            raise UploadRefusedError(
                "missing-file",
                "the form holds no file.",
                fix="put the rank file into the field `file`",
                status=422,
            )
        board = await run_in_threadpool(
            server.intake.board, request.query_params.get("board") or texts.get("board")
        )
        incoming = server.intake.incoming()
        try:
            while chunk := await upload.read(CHUNK):
                incoming.write(chunk)
            cover = _cover(texts, upload.filename)
            return await run_in_threadpool(server.intake.accept, board, incoming, cover)
        finally:
            incoming.discard()


async def _from_body(request: Request, server: Server) -> tuple[Submission, bool]:
    query = request.query_params
    board = await run_in_threadpool(server.intake.board, query.get("board"))
    incoming = server.intake.incoming()
    try:
        async for chunk in request.stream():
            incoming.write(chunk)
        return await run_in_threadpool(
            server.intake.accept, board, incoming, _cover(query, query.get("file_name"))
        )
    finally:
        incoming.discard()


def _texts(form: FormData) -> dict[str, str]:
    return {key: value for key, value in form.multi_items() if isinstance(value, str)}


def _cover(texts: Mapping[str, str], file_name: str | None) -> Cover:
    return Cover(
        file_name=file_name or "upload.json",
        submitter=texts.get("submitter", ""),
        method=method_from_form(texts),
    )


def _known(server: Server, submission_id: str) -> Submission:
    submission = server.store.submission(submission_id)
    if submission is None:
        raise UploadRefusedError(
            "unknown-submission",
            f"no submission {submission_id[:40]!r} here.",
            fix="use the id that the upload was answered with",
            status=404,
        )
    return submission


def _refused(_request: Request, error: Exception) -> Response:
    if not isinstance(error, UploadRefusedError):
        raise error
    return JSONResponse({"error": error.to_dict()}, status_code=error.status)


def _no_files(_request: Request, error: Exception) -> Response:
    """Say that the files cannot be had; why is for the organisers, who find it in the log."""
    log.error("%s", error)
    body = {
        "code": "files-unavailable",
        "message": "the server cannot read or write rank files now.",
        "fix": "try again later; if it stays so, tell its organisers",
    }
    return JSONResponse({"error": body}, status_code=getattr(error, "status", 503))
