"""Headers that keep a page to this server, in a file of its own: the policy is read alone."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from leaderboard.pages.site import COCO_POLICY, FRAMED_POLICY, PAGE_POLICY


class SecurityHeaders:
    """Adds them, and replaces what the application says itself.

    Args:
        app: what handles the request.
        framed_by: who may show the pages in a frame, as the policy writes it.
        policy: what is said where an answer says none of these policies.
    """

    def __init__(self, app: ASGIApp, framed_by: str = "'self'", policy: str = PAGE_POLICY) -> None:
        """Put them together once."""
        self._app = app
        page_policies = (policy, PAGE_POLICY, COCO_POLICY)
        self._policies = {own: f"{own}; frame-ancestors {framed_by}" for own in page_policies}
        self._policies[FRAMED_POLICY] = f"{FRAMED_POLICY}; frame-ancestors *"
        self._policy = policy
        self._headers = {
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "same-origin",
            "Cross-Origin-Opener-Policy": "same-origin",
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Add the headers to every HTTP answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                said = headers.get("content-security-policy", "")
                headers.update(self._headers)
                # An answer may say a stricter policy of these, and nothing else.
                headers["Content-Security-Policy"] = self._policies.get(said, self._policies[self._policy])
            await send(message)

        await self._app(scope, receive, with_headers)
