"""`cir play`: one person's page, on this machine alone, with the guards of the leaderboard's pages.

The page is plain files. It gets words and ids only, as JSON, and its script writes them as text.
"""

from __future__ import annotations

import io
import threading
from importlib import resources
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.middleware import Middleware
from starlette.middleware.body_limit import RequestBodyLimitMiddleware

from cir_metrics.errors import CirError
from leaderboard.play.words import best_found, end_words, rank_words, summary_words
from leaderboard.web.failures import RAISED, ErrorAnswers
from leaderboard.web.options import JSON_BYTES, WebOptions
from leaderboard.web.origins import KnownHosts, SameOrigin, SecurityHeaders
from submissions.multiround.person import SHOWN, SKIPPED, PersonDialogue, WordsError
from submissions.rank_file.findings import ordinal

if TYPE_CHECKING:
    from submissions.multiround.person import Stage

_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
    )
)
_FILES = {
    "/": ("leaderboard.play", "page.html", "text/html; charset=utf-8"),
    "/page.css": ("leaderboard.play", "page.css", "text/css; charset=utf-8"),
    "/page.js": ("leaderboard.play", "page.js", "text/javascript; charset=utf-8"),
    "/icon.svg": ("leaderboard.pages", "icon.svg", "image/svg+xml"),
}
_SIDE = 800
"""Pixels of a picture's longer side at most: what the page shows."""
_DRAWN_SIDE = 256
"""Pictures up to this size are sent as PNG, without a loss."""

_HOST_FIX = "open the address that cir play has printed"


class Said(BaseModel):
    """What a person sends: words, or none to skip the session, and what they answer."""

    model_config = ConfigDict(extra="forbid")

    session: Annotated[str, Field(max_length=300)]
    round: int
    """That the words make."""
    words: Annotated[str, Field(max_length=20_000)] | None


def create_page(dialogue: PersonDialogue) -> FastAPI:
    """The page as an ASGI application.

    Args:
        dialogue: the sessions; one request at a time plays in it.
    """
    app = FastAPI(
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        middleware=[
            Middleware(SecurityHeaders, framed_by="'none'", policy=_POLICY),
            Middleware(ErrorAnswers),
            Middleware(RequestBodyLimitMiddleware, max_body_size=JSON_BYTES),
            Middleware(KnownHosts, names=WebOptions().hosts, fix=_HOST_FIX),
            Middleware(SameOrigin),
        ],
        exception_handlers=RAISED,
    )
    playing = threading.Lock()

    @app.exception_handler(CirError)
    def failed(request: Request, error: CirError) -> Response:
        """What the command would print: a damaged journal, or a method that fails."""
        return _answer(500, "failed", error)

    for path, (package, name, media_type) in _FILES.items():
        content = (resources.files(package) / name).read_bytes()
        app.add_api_route(path, _file(content, media_type), methods=["GET"])

    @app.get("/state")
    def state() -> dict[str, Any]:
        with playing:
            return _state(dialogue, dialogue.current())

    @app.post("/say", response_model=None)
    def say(said: Said) -> dict[str, Any] | Response:
        with playing:
            stage = dialogue.current()
            if stage is None or (stage.session, len(stage.rounds) + 1) != (said.session, said.round):
                words = "this round has been played already. Fix: go on where the page stands now"
                return _answer(409, "answered", words)
            try:
                return _state(dialogue, dialogue.say(SKIPPED if said.words is None else said.words))
            except WordsError as error:
                return _answer(422, "words", error)

    @app.get("/picture", response_model=None)
    def picture(image: Annotated[str, Query(max_length=300)]) -> Response:
        opened = dialogue.picture(image)
        if opened is None:
            return _answer(404, "not-found", "no such picture. Fix: use an id that the page shows")
        opened.thumbnail((_SIDE, _SIDE))
        kind = "PNG" if max(opened.size) <= _DRAWN_SIDE else "JPEG"
        content = io.BytesIO()
        opened.save(content, kind, quality=90)
        # Only this page shows them, and keeps none: they may be private.
        headers = {"Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store"}
        return Response(content.getvalue(), media_type=f"image/{kind.lower()}", headers=headers)

    return app


def _file(content: bytes, media_type: str) -> Any:
    def answer() -> Response:
        return Response(content, media_type=media_type, headers={"Cache-Control": "no-cache"})

    return answer


def _answer(status: int, code: str, error: CirError | str) -> Response:
    message, _, fix = str(error).partition(" Fix: ")
    return JSONResponse({"error": {"code": code, "message": message, "fix": fix}}, status)


def _state(dialogue: PersonDialogue, stage: Stage | None) -> dict[str, Any]:
    """Everything that the page shows."""
    total = {"sessions": len(dialogue), "left": dialogue.left, "file": str(dialogue.out)}
    if stage is None:
        return {**total, "done": summary_words(dialogue.transcript)}
    rounds, settings = stage.rounds, dialogue.settings
    last = rounds[-1] if rounds else None
    if stage.exchange is not None:
        target, found = stage.exchange.target, stage.exchange.candidate
    else:
        target, found = rounds[-1].target, best_found(rounds[-1])
    return {
        **total,
        "number": stage.number,
        "session": stage.session,
        "round": len(rounds) + (stage.exchange is not None),
        "rounds": settings.max_rounds,
        "k": settings.k,
        "target": target,
        "found": found,
        "rank": rank_words(rounds, len(dialogue.gallery.ids)),
        "better": len(rounds) > 1 and rounds[-1].rank < rounds[-2].rank,
        "worse": len(rounds) > 1 and rounds[-1].rank > rounds[-2].rank,
        "said": [
            {"words": each.caption, "reference": each.reference, "rank": ordinal(each.rank)}
            for each in rounds
        ],
        "top": [] if last is None else last.top[:SHOWN],
        "end": end_words(rounds, settings.k) if last is not None else "",
        "solved": last is not None and last.rank <= settings.k,
    }
