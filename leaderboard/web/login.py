"""Signing in with Hugging Face and out again: three routes, and the cookie that has the key of a login.

The provider's token is not in the cookie, and signing out ends the login here. Authlib speaks OpenID Connect.
"""

from __future__ import annotations

import hashlib
import logging
import os
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.middleware.sessions import SessionMiddleware

from cir_datasets.errors import missing_extra
from leaderboard.identity.signed_in import KEY, Login, Logins
from leaderboard.pages.site import SUBMIT_PATH, Links, Site, missing_page
from leaderboard.server import Server
from leaderboard.settings import check_place

log = logging.getLogger("leaderboard.web")

_SECONDS = 15
"""How long the provider may take for an answer."""
_AGAIN = "Go to Submit, and sign in once more."
_CANCELLED = "Nobody was signed in: that was not allowed at Hugging Face."
_MIXED_UP = (
    "Nobody was signed in: this answer does not belong to a sign-in that this browser began in the last hour."
)
_DOWN = "Nobody was signed in: Hugging Face did not answer as it should. The boards can be read meanwhile."


def add_login(app: FastAPI, server: Server) -> None:
    """Add the routes, and the session of a browser to API and pages alike.

    Raises:
        CallError: this is not a Space.
        MissingExtraError: authlib is not installed.
    """
    check_place()
    try:
        from authlib.integrations.starlette_client import OAuth, OAuthError
    except ImportError as error:
        raise missing_extra("signing in with Hugging Face", "authlib", "leaderboard") from error
    provider = OAuth().register(
        "huggingface",
        client_id=os.environ["OAUTH_CLIENT_ID"],
        client_secret=os.environ["OAUTH_CLIENT_SECRET"],
        client_kwargs={"scope": os.environ["OAUTH_SCOPES"], "timeout": _SECONDS},
        server_metadata_url=f"{os.environ['OPENID_PROVIDER_URL']}/.well-known/openid-configuration",
    )
    site, logins = Site(server), Logins(server.store)
    routes = APIRouter(include_in_schema=False)

    def instead(words: str, status: int) -> Response:
        page = missing_page("Not signed in", words, _AGAIN, status=status)
        html = site.written(page, Links("login/callback"))
        headers = {"Content-Security-Policy": page.policy, "Cache-Control": "private, no-store"}
        return HTMLResponse(html, status, headers)

    @routes.get("/login/huggingface")
    async def login(request: Request) -> Response:
        """On to Hugging Face."""
        # A Space stands behind proxies; Hugging Face knows it by the first of its names.
        host = os.environ.get("SPACE_HOST", "").partition(",")[0].strip()
        back = f"https://{host}/login/callback" if host else str(request.url_for("login_callback"))
        try:
            answer: Response = await provider.authorize_redirect(request, back)
        except Exception:
            # Whatever the provider says or does not say, the visitor gets a page.
            log.exception("signing in cannot begin")
            return instead(_DOWN, 503)
        return answer

    @routes.get("/login/callback")
    async def login_callback(request: Request) -> Response:
        """Back from Hugging Face."""
        try:
            found = Login.read(await provider.authorize_access_token(request))
        except OAuthError as error:
            if error.error == "access_denied":
                return instead(_CANCELLED, 403)
            return instead(_MIXED_UP, 400)
        except Exception:
            log.exception("signing in cannot end")
            return instead(_DOWN, 503)
        if before := request.session.pop(KEY, ""):
            await run_in_threadpool(logins.end, before)
        request.session[KEY] = await run_in_threadpool(logins.begin, found)
        return RedirectResponse(f"../{SUBMIT_PATH}", 303)

    @routes.post("/logout")
    async def logout(request: Request) -> Response:
        """End the login; a page of another site cannot send this."""
        key = request.session.pop(KEY, "")
        await run_in_threadpool(logins.end, key)
        return RedirectResponse(SUBMIT_PATH, 303)

    app.include_router(routes)
    app.add_middleware(SessionMiddleware, **session_options())


def session_options() -> dict[str, Any]:
    """How the cookie is signed and sent, for every application of a server that reads it."""
    secret = hashlib.sha256(f"{os.environ['OAUTH_CLIENT_SECRET']}-logins".encode()).hexdigest()
    # In a Space the pages stand in a frame of huggingface.co: hence same_site.
    return {"secret_key": secret, "same_site": "none", "https_only": True}
