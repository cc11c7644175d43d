"""The other side of the API: hand a rank file to a leaderboard and wait for its outcome."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from cir_datasets.sources.addresses import address_and_login, check_proxies
from leaderboard.errors import RemoteError, UploadRefusedError

_TIMEOUT = httpx.Timeout(60.0, connect=10.0)
_POLL_SECONDS = 0.5

Outcome = dict[str, Any]
"""A submission as the API describes it."""


class Client:
    """A leaderboard somewhere.

    Args:
        url: its address, `http://127.0.0.1:7860`; a user and a password in it (`https://me:secret@host`) are
            sent with each request and shown nowhere.
        token: of that leaderboard's organisers, where it has accounts.

    Raises:
        RemoteError: this is not an http address.
    """

    def __init__(self, url: str, token: str = "") -> None:
        """Open the connection lazily."""
        found = address_and_login(url)
        if found is None:
            shown = "" if "@" in url else f" {url}"
            raise RemoteError(
                f"--to{shown}: not an address. Fix: write http:// or https:// and the host, without a query; "
                "in a password write %2F for /, %23 for # and %3F for ?."
            )
        check_proxies()
        self.url, login = found
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = httpx.Client(
            base_url=self.url, auth=login, headers=headers, timeout=_TIMEOUT, follow_redirects=True
        )

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def max_upload_bytes(self) -> int:
        """The server's limit of a file, and the proof that it is one of ours.

        Raises:
            RemoteError: it cannot be reached, or is something else.
        """
        found = self._json(self._call("GET", "/health")).get("max_upload_bytes")
        if not isinstance(found, int):
            raise RemoteError(self._stranger())
        return found

    def submit(self, path: Path, board: str, fields: Mapping[str, str]) -> Outcome:
        """Upload a file; the answer comes when it is durable there.

        Args:
            path: the rank file.
            board: the board's id.
            fields: texts of the form (`name`, `paper`, `submitter`, ...).

        Raises:
            UploadRefusedError: the server refuses the upload.
            RemoteError: it cannot be reached, or fails.
        """
        with path.open("rb") as handle:
            files = {"file": (path.name, handle, "application/json")}
            query = {"board": board, "publish": "yes"}
            return self._json(
                self._call("POST", "/api/submissions", params=query, data=dict(fields), files=files)
            )

    def wait(self, submission_id: str, seconds: float, step: Callable[[Outcome], None]) -> Outcome:
        """Ask until the submission is finished.

        Args:
            submission_id: as `submit` answered.
            seconds: patience.
            step: called with what the server says each time.

        Raises:
            RemoteError: it is not finished by then, or the server cannot be reached.
        """
        until = time.monotonic() + seconds
        while True:
            found = self._json(self._call("GET", f"/api/submissions/{quote(submission_id, safe='')}"))
            step(found)
            if found["finished"]:
                return found
            if time.monotonic() > until:
                raise RemoteError(
                    f"{self.url}: submission {submission_id} is {found['state']} after {seconds:.0f} s. "
                    "It is stored there and not lost. "
                    f"Fix: look later at {self.url}/api/submissions/{submission_id}"
                )
            time.sleep(_POLL_SECONDS)

    def page(self, outcome: Outcome) -> str:
        """Address of the board's page with the submission marked."""
        return f"{self.url}{outcome['page']}"

    def _call(self, verb: str, path: str, **options: Any) -> httpx.Response:
        try:
            response = self._http.request(verb, path, **options)
        except httpx.ConnectError as error:
            raise RemoteError(
                f"{self.url}: no leaderboard answers there ({error}). Fix: check the address; on your own "
                "machine start one with  cir leaderboard serve"
            ) from error
        except httpx.HTTPError as error:
            raise RemoteError(
                f"{self.url}: {type(error).__name__}: {error}. Fix: try again later."
            ) from error
        if response.status_code >= 500:
            raise RemoteError(
                f"{self.url}: the server failed ({response.status_code}). Fix: try again later."
            )
        if response.status_code >= 400:
            said = self._json(response).get("error")
            if not isinstance(said, dict) or not {"code", "message", "fix"} <= said.keys():
                raise RemoteError(self._stranger())
            raise UploadRefusedError(
                said["code"], said["message"], fix=said["fix"], status=response.status_code
            )
        return response

    def _json(self, response: httpx.Response) -> dict[str, Any]:
        try:
            found = response.json()
        except ValueError as error:
            raise RemoteError(self._stranger()) from error
        if not isinstance(found, dict):
            raise RemoteError(self._stranger())
        return found

    def _stranger(self) -> str:
        return f"{self.url}: something answers, but no leaderboard of ours. Fix: check the address."
