"""An error as middlewares and connections answer it, in the form of the API."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import JSONResponse


def error_answer(
    status: int, code: str, message: str, fix: str, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """The answer `{"error": {"code", "message", "fix"}}`.

    Args:
        status: HTTP status, 400 or more.
        code: a word that programs may rely on.
        message: what is wrong.
        fix: what the client can do.
        headers: further ones.

    Example:
        >>> error_answer(404, "not-found", "Not Found", "see /api/boards").body
        b'{"error":{"code":"not-found","message":"Not Found","fix":"see /api/boards"}}'
    """
    return JSONResponse({"error": {"code": code, "message": message, "fix": fix}}, status, headers)
