"""The other side of the API: read boards, hand a rank file to a leaderboard and wait for its outcome.

client = Client("http://127.0.0.1:7860")
for row in client.board("shapes/val")["rows"]:
    print(row["rank"], row["method"]["name"], row["main"])
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeGuard
from urllib.parse import quote

import httpx

from cir_datasets.common.addresses import address_and_login
from cir_datasets.common.atomic import write_whole
from cir_datasets.errors import HttpAnswerError
from cir_datasets.sources.client import BoundedClient, json_object
from cir_metrics.errors import CirError
from leaderboard.errors import RemoteError, UploadRefusedError
from submissions.rank_file.content import suffix_of

_SECONDS = 600.0
_MOST_BYTES = 2**25
"""Of a board, or of a page of entries."""

_MOST_FILE_BYTES = 2**27
_POLL_SECONDS = 0.5
_API = "/api/v1"
_BOARD = re.compile(r"[a-z0-9_]+(/[a-z0-9_+]+)?")
_SUBMISSION = re.compile(r"[0-9A-Za-z_-]{1,64}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_EDIT_KEY = re.compile(r"[!-~]{1,256}")

Outcome = dict[str, Any]
"""A submission as the API describes it."""


class Client:
    """A leaderboard somewhere.

    Args:
        url: its address, `http://127.0.0.1:7860`; a user and a password in it (`https://me:secret@host`) are
            sent with each request and shown nowhere.
        token: of that leaderboard's organisers, where it has accounts.
        option: what gave the address, for messages.
        seconds: that an answer may take, from connecting to its last byte.

    Raises:
        RemoteError: this is not an http address.
    """

    def __init__(self, url: str, token: str = "", option: str = "--to", seconds: float = _SECONDS) -> None:
        """Open the connection lazily."""
        found = address_and_login(url)
        if found is None:
            shown = "" if "@" in url else f" {url}"
            raise RemoteError(
                f"{option}{shown}: not an address. Fix: write http:// or https:// and the host, without a "
                "query; in a password write %2F for /, %23 for # and %3F for ?."
            )
        self.url, login = found
        # People copy the address of the page.
        self.url = self.url.removesuffix("/submit")
        self.has_account = bool(token)
        self.edit_key = ""
        """Of the private link of what was submitted, where its sender has no account."""
        self._http = BoundedClient(
            seconds=seconds,
            num_bytes=_MOST_BYTES,
            headers={"Authorization": f"Bearer {token}"} if token else {},
            base_url=self.url,
            auth=login,
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
        if not _is_whole(found):
            raise RemoteError(self._stranger())
        return found

    def boards(self) -> list[dict[str, Any]]:
        """All boards, without their rows.

        Raises:
            RemoteError: the server cannot be reached, or is something else.
        """
        found = self._json(self._call("GET", f"{_API}/boards")).get("boards")
        if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
            raise RemoteError(self._stranger())
        return found

    def board(self, board: str) -> dict[str, Any]:
        """A board and its `rows`, best first.

        Args:
            board: the board's id.

        Raises:
            UploadRefusedError: there is no such board.
            RemoteError: the server cannot be reached, or is something else.
        """
        found = self._json(self._call("GET", f"{_API}/boards/{quote(board, safe='/')}"))
        if not isinstance(found.get("rows"), list):
            raise RemoteError(self._stranger())
        return found

    def board_csv(self, board: str) -> bytes:
        """A board's table as CSV; it raises as `board` does."""
        where = f"{_API}/boards/{quote(board, safe='/')}"
        return self._call("GET", where, params={"format": "csv"}).content

    def entries(self, board: str, *, after: int = 0, limit: int = 500) -> Iterator[dict[str, Any]]:
        """A board's entries in the order in which they came onto it, also those that come meanwhile.

        Args:
            board: the board's id.
            after: `number` of the last entry that is known already.
            limit: entries in one request, 1,000 at most.

        Raises:
            UploadRefusedError: there is no such board.
            RemoteError: the server cannot be reached, or is something else.
        """
        following: int | None = after
        while following is not None:
            query = {"board": board, "after": following, "limit": limit}
            page = self._json(self._call("GET", f"{_API}/entries", params=query))
            last, following = following, page.get("next")
            goes_on = following is None or (_is_whole(following) and following > last)
            if not isinstance(page.get("entries"), list) or not goes_on:
                raise RemoteError(self._stranger())
            yield from page["entries"]

    def file(self, submission_id: str) -> bytes:
        """The rank file of an entry on a board, as it was sent.

        Raises:
            UploadRefusedError: it stands on no board.
            RemoteError: the server cannot be reached, or fails.
        """
        where = f"{_API}/submissions/{quote(submission_id, safe='')}/file"
        return self._call("GET", where, extensions={"num_bytes": _MOST_FILE_BYTES}).content

    def pull(self, to: Path, boards: Sequence[str] = (), *, files: bool = False) -> list[Path]:
        """Write boards into a folder: of each `table.json` and `table.csv`, and its rank files if wanted.

        A rank file is `files/SUBMISSION.json`, or `.jsonl`, `.parquet` or `.trec` by its content, with `.gz`
        where it was sent packed.

        Args:
            to: the folder; made where it is missing.
            boards: ids; default: all boards that have entries.
            files: whether to fetch the rank files too; those that are there already are not fetched again.

        Returns:
            What was written.

        Raises:
            UploadRefusedError: there is no such board.
            RemoteError: the server cannot be reached, or sends what a leaderboard of ours does not.
        """
        written: list[Path] = []
        for name in boards or [str(board.get("id")) for board in self.boards() if board.get("entries")]:
            table = self.board(name)
            if table.get("id") != name or not _BOARD.fullmatch(name):
                raise RemoteError(self._stranger())
            folder = to / name
            content = json.dumps(table, indent=2, ensure_ascii=False).encode() + b"\n"
            for path, what in (
                (folder / "table.json", content),
                (folder / "table.csv", self.board_csv(name)),
            ):
                write_whole(path, what)
                written.append(path)
            # The rank files of a sealed board are given to nobody but their owners.
            for row in table["rows"] if files and table.get("track") != "sealed" else ():
                pulled = self._pull_file(folder / "files", row)
                written += [] if pulled is None else [pulled]
        return written

    def _pull_file(self, folder: Path, row: dict[str, Any]) -> Path | None:
        """Fetch the rank file of a row.

        Returns:
            Its path, or None where it is there already, or was taken off the board meanwhile.
        """
        submission, sha256 = str(row.get("submission")), str(row.get("sha256"))
        # They become names of files here.
        if not _SUBMISSION.fullmatch(submission) or not _SHA256.fullmatch(sha256):
            raise RemoteError(self._stranger())
        if any(_sha256(path.read_bytes()) == sha256 for path in folder.glob(f"{submission}.*")):
            return None
        try:
            content = self.file(submission)
        except UploadRefusedError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise
        if _sha256(content) != sha256:
            raise RemoteError(
                f"{self.url}: the file of {submission} does not have the hash that its row names. "
                "Fix: try again later."
            )
        path = folder / f"{submission}{suffix_of(content)}"
        write_whole(path, content)
        return path

    def submit(self, path: Path, board: str = "", fields: Mapping[str, str] | None = None) -> Outcome:
        """Upload a file; the answer comes when it is durable there.

        Args:
            path: the rank file.
            board: the board's id; empty goes to the board that the file names.
            fields: texts of the form (`name`, `paper`, `submitter`, ...), or None. With `publish` as `yes` it
                goes onto the board when it is scored; else its owner publishes it afterwards.

        Raises:
            UploadRefusedError: the server refuses the upload.
            RemoteError: it cannot be reached, fails, or gives a malformed edit key.
        """
        with path.open("rb") as handle:
            files = {"file": (path.name, handle, "application/json")}
            query = {"board": board} if board else {}
            outcome = self._json(
                self._call("POST", "/api/submissions", params=query, data=dict(fields or {}), files=files)
            )
        key = outcome.get("edit_key")
        if key is not None:
            # It is printed, and becomes a header.
            if not isinstance(key, str) or not _EDIT_KEY.fullmatch(key):
                raise RemoteError(self._stranger())
            # Without an account, this is what the sender is known by from now on.
            self.edit_key = self._http.headers["X-Edit-Key"] = key
        return outcome

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

    def entry_page(self, outcome: Outcome) -> str:
        """Address of the submission's own page; with the key of its private link, where it has one."""
        return f"{self.url}{outcome['outcome_page']}{'#' * bool(self.edit_key)}{self.edit_key}"

    @contextmanager
    def understood(self) -> Iterator[None]:
        """Take an answer that lacks what a leaderboard's has for a stranger's, while it is looked at.

        Raises:
            RemoteError: it lacks something.
        """
        try:
            yield
        except CirError:
            raise
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            raise RemoteError(self._stranger()) from error

    def _call(self, verb: str, path: str, **options: Any) -> httpx.Response:
        try:
            response = self._http.request(verb, path, **options)
        except httpx.ConnectError as error:
            raise RemoteError(
                f"{self.url}: no leaderboard answers there ({error}). Fix: check the address; on your own "
                "machine start one with  cir leaderboard serve"
            ) from error
        except HttpAnswerError as error:
            raise RemoteError(str(error)) from error
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
            return json_object(response)
        except HttpAnswerError as error:
            raise RemoteError(self._stranger()) from error

    def _stranger(self) -> str:
        return f"{self.url}: something answers, but no leaderboard of ours. Fix: check the address."


def _is_whole(value: object) -> TypeGuard[int]:
    """Whether a JSON value is a whole number above 0, which `true` is not."""
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
