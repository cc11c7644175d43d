"""Fetches publishers' files: whole, checked, or not at all.

A file is written beside its place, checked against size and sha256, and moved there in one step, so that a
download cut short leaves nothing behind. GitHub files come from the raw endpoint at a pinned revision
(`CIR_GITHUB_ENDPOINT` names a mirror), Hub files through `huggingface_hub` (`HF_ENDPOINT`, `HF_HUB_OFFLINE`).
Only connection errors and 5xx answers are tried again, a few times and briefly; within `asking_once` a server
that could not be reached is not asked for another file. A server that sends more than
the card pins, or too slowly, is left as soon as that is known; what killed downloads have left is swept by
the next one.
"""

from __future__ import annotations

import json
import math
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote, urlsplit

from cir_datasets.common.addresses import endpoint as endpoint_of
from cir_datasets.common.atomic import staging_folder, write_whole
from cir_datasets.common.paths import cache_home, sha256_of
from cir_datasets.common.progress import step_progress
from cir_datasets.errors import HttpAnswerError, IntegrityError, SourceError, without_secret_cause
from cir_metrics.errors import CallError

if TYPE_CHECKING:
    import httpx
    from tenacity import Retrying

    from cir_datasets.registry.schema import PinnedFile, Source
    from cir_datasets.sources.client import BoundedClient, Deadline

GITHUB_ENDPOINT = "https://raw.githubusercontent.com"
ATTEMPTS = 3
TIMEOUT_SECONDS = 30.0
"""Longest wait for the next byte."""

DEADLINE_VARIABLE = "CIR_DOWNLOAD_TIMEOUT"
"""Environment variable: seconds that one file may take, all attempts together."""

DEADLINE_SECONDS = 1800.0
MOST_UNPINNED_BYTES = 2**28
"""Largest file that is taken where the card pins no size."""
_FIRST_WAIT_SECONDS = 0.2
_PREFIX = ".partial-"
_MOST_HEAD_BYTES = 2**20
_MISSING = ("EntryNotFound", "RepoNotFound", "RevisionNotFound")
"""What the Hub calls a file that is not there."""


Outcome = TypeVar("Outcome")


@dataclass(frozen=True)
class _LengthLimit:
    """How long a file may be, and who says so."""

    num_bytes: int
    why: str

    def error(self, url: str) -> IntegrityError:
        return IntegrityError(
            f"{url}: more than {self.num_bytes} bytes come, {self.why}: it is longer than it should be. The "
            "download was stopped and nothing was kept. Fix: try again; if it stays so, the publisher's file "
            "has changed."
        )


_unreachable: dict[str, str] | None = None
"""Within `asking_once`: the servers that could not be reached, and why."""


@contextmanager
def asking_once() -> Iterator[None]:
    """Until it ends, a server that could not be reached is not asked for the next file."""
    global _unreachable
    before, _unreachable = _unreachable, {}
    try:
        yield
    finally:
        _unreachable = before


def fetch(source: Source, file: str, pin: PinnedFile | None, target: Path, record: Path) -> None:
    """Download a publisher's file.

    Args:
        source: where its publisher is.
        file: path relative to the publisher's folder.
        pin: size and sha256, or None where they are not known.
        target: where it is kept; what lies there stays where the download fails.
        record: where it is noted from which address and revision it came.

    Raises:
        SourceError: no network, or the publisher has no such file.
        IntegrityError: what came is not the pinned file, or was cut short.
    """
    from cir_datasets.sources.client import Deadline

    seconds = _deadline_seconds()
    root, fix = cache_home() / "sources", "set CIR_CACHE_HOME to a folder of yours."
    staging = staging_folder(target.parent, _PREFIX, error=SourceError, fix=fix, sweep_below=root)
    with staging as folder, Deadline(seconds) as deadline:
        if source.publisher == "hub":
            partial, origin = _from_hub(source, file, pin, folder, deadline)
        else:
            partial, origin = _from_github(source, file, pin, folder, deadline)
        _check(partial, pin, origin["url"])
        write_whole(record, (json.dumps(origin) + "\n").encode())
        partial.replace(target)  # the one step that makes the file appear


def _deadline_seconds() -> float:
    written = os.environ.get(DEADLINE_VARIABLE) or str(DEADLINE_SECONDS)
    try:
        seconds = float(written)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= threading.TIMEOUT_MAX:
        raise CallError(
            f"{DEADLINE_VARIABLE}={written!r}: not a number of seconds above 0. Fix: leave it unset "
            f"({DEADLINE_SECONDS:,.0f} seconds) or write, for example, 600."
        )
    return seconds


def _check(path: Path, pin: PinnedFile | None, url: str) -> None:
    if pin is None:
        _check_json(path, url)
        return
    size = path.stat().st_size
    if size != pin.bytes:
        what = "the download was cut short" if size < pin.bytes else "it is longer than it should be"
        raise IntegrityError(
            f"{url}: {size} bytes came, the card pins {pin.bytes}: {what}. Nothing was kept. "
            "Fix: try again; if it stays so, the publisher's file has changed."
        )
    got = sha256_of(path)
    if got != pin.sha256:
        raise IntegrityError(
            f"{url}: its sha256 is {got}, the card pins {pin.sha256}. Nothing was kept. "
            "Fix: check the network between here and the publisher; if it stays so, the publisher's file has "
            "changed."
        )


def _check_json(path: Path, url: str) -> None:
    """Refuse what is not JSON at all (an error page, half a file): without a pin it would stay."""
    import orjson

    try:
        orjson.loads(path.read_bytes())
    except orjson.JSONDecodeError as error:
        raise IntegrityError(
            f"{url}: what came is not JSON ({error}). Nothing was kept. Fix: try again; if it stays so, open "
            "the address in a browser to see what the server sends."
        ) from error


def _from_github(
    source: Source, file: str, pin: PinnedFile | None, folder: Path, deadline: Deadline
) -> tuple[Path, dict[str, str]]:
    endpoint, auth = endpoint_of("CIR_GITHUB_ENDPOINT", GITHUB_ENDPOINT)
    revision = source.revision or "HEAD"
    url = f"{endpoint}/{source.repository}/{revision}/{quote(file)}"
    partial = folder / "file"
    with _client({}, auth, deadline) as client:
        found = _tried(url, deadline, lambda: _get(client, url, partial, _limit(pin)))
    if not found:
        raise SourceError(f"{url}: 404, the publisher has no such file at that revision")
    return partial, {"url": url, "revision": revision}


def _from_hub(
    source: Source, file: str, pin: PinnedFile | None, folder: Path, deadline: Deadline
) -> tuple[Path, dict[str, str]]:
    # Read at each call, and first: huggingface_hub reads it when imported, and shows what it cannot read.
    endpoint, auth = endpoint_of("HF_ENDPOINT", "https://huggingface.co")
    from huggingface_hub import constants, hf_hub_url
    from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]

    url = hf_hub_url(
        source.repository, file, repo_type="dataset", revision=source.revision, endpoint=endpoint
    )
    if constants.is_offline_mode():
        raise SourceError(f"{url}: no network (OfflineModeIsEnabled: HF_HUB_OFFLINE is set)")
    partial = folder / "file"
    with _client(build_hf_headers(), auth, deadline) as client:
        commit, size = _tried(url, deadline, lambda: _hub_state(client, url))
        url = hf_hub_url(source.repository, file, repo_type="dataset", revision=commit, endpoint=endpoint)
        limit = _limit(pin)
        if pin is None and size is not None and size < limit.num_bytes:
            limit = _LengthLimit(size, f"the Hub announced {size}")
        found = _tried(url, deadline, lambda: _get(client, url, partial, limit))
    if not found:
        raise SourceError(f"{url}: 404, the publisher has no such file")
    if size is not None and partial.stat().st_size != size:
        raise IntegrityError(
            f"{url}: {partial.stat().st_size} bytes came, the Hub announced {size}. Nothing was kept. "
            "Fix: try again."
        )
    return partial, {"url": url, "revision": commit}


def _client(headers: Mapping[str, str], auth: httpx.BasicAuth | None, deadline: Deadline) -> BoundedClient:
    """A client whose requests all end with the deadline; the Hub sends on to its stores, which get no key."""
    from cir_datasets.sources.client import BoundedClient

    return BoundedClient(
        seconds=deadline.seconds,
        num_bytes=_MOST_HEAD_BYTES,
        sheds_key=True,
        deadline=deadline,
        headers={**headers, "Accept-Encoding": "identity"},
        auth=auth,
        timeout=min(TIMEOUT_SECONDS, deadline.seconds),
    )


def _limit(pin: PinnedFile | None) -> _LengthLimit:
    if pin is not None:
        return _LengthLimit(pin.bytes, f"the card pins {pin.bytes}")
    return _LengthLimit(MOST_UNPINNED_BYTES, "more than any file of a card that pins no size")


def _hub_state(client: httpx.Client, url: str) -> tuple[str, int | None]:
    """The commit that the Hub serves a file from, and its size.

    Not by `get_hf_file_metadata`, which knows no deadline; nor by `hf_hub_download`, which without a network
    tries for 23 seconds, and keeps what it has half fetched in its cache.
    """
    import httpx

    # A moved repository is followed; what lies elsewhere is announced by the Hub's own answer.
    response = client.head(url)
    if response.status_code == httpx.codes.NOT_FOUND or response.headers.get("X-Error-Code") in _MISSING:
        raise SourceError(f"{url}: 404, the publisher has no such file")
    _check_status(response)
    commit = response.headers.get("X-Repo-Commit")
    if not commit:
        raise SourceError(f"{url}: the server is not a Hugging Face Hub, its answer names no commit")
    length = response.headers.get("X-Linked-Size") or (
        "" if response.is_redirect else response.headers.get("Content-Length", "")
    )
    return commit, int(length) if length.isdecimal() else None


def _tried(url: str, deadline: Deadline, work: Callable[[], Outcome]) -> Outcome:
    """What comes of requests for `url`, tried a few times; what goes wrong in the suite's own errors."""
    import httpx

    server = urlsplit(url).netloc
    if _unreachable and server in _unreachable:
        raise SourceError(f"{url}: no network ({_unreachable[server]}; the server is not asked again)")
    try:
        outcome: Outcome = _retrying(deadline)(work)
    except (httpx.HTTPError, httpx.InvalidURL, HttpAnswerError) as error:
        if _unreachable is not None and isinstance(error, httpx.NetworkError | httpx.ConnectTimeout):
            _unreachable[server] = f"{type(error).__name__}: {error}"
        raise _in_words(url, deadline, error) from without_secret_cause(error)
    if deadline.passed:  # a body whose length nobody announced ends, cut off, like a whole one
        raise _too_slow(url, deadline)
    return outcome


def _in_words(url: str, deadline: Deadline, error: Exception) -> SourceError:
    import httpx

    if deadline.passed:
        return _too_slow(url, deadline)
    if isinstance(error, httpx.RemoteProtocolError):
        return IntegrityError(
            f"{url}: the connection closed before the whole file had come ({error}). Nothing was kept. "
            "Fix: try again."
        )
    if isinstance(error, httpx.HTTPStatusError):
        return SourceError(f"{url}: the server answered {error.response.status_code}")
    if isinstance(error, HttpAnswerError):
        return SourceError(f"{url}: {error}")
    return SourceError(f"{url}: no network ({type(error).__name__}: {error})")


def _too_slow(url: str, deadline: Deadline) -> SourceError:
    return SourceError(
        f"{url}: the whole file had not come after {deadline.seconds:,g} seconds. The download was stopped "
        f"and nothing was kept. Fix: try again; on a slow line set {DEADLINE_VARIABLE} to more seconds."
    )


def _get(client: httpx.Client, url: str, partial: Path, limit: _LengthLimit) -> bool:
    """Write the body of `url` to `partial`; False where the server has no such file."""
    import httpx

    from cir_datasets.sources.client import pieces

    with client.stream("GET", url) as response:
        if response.status_code == httpx.codes.NOT_FOUND:
            return False
        _check_status(response)
        length = response.headers.get("Content-Length", "")
        total = int(length) if length.isdecimal() else None
        name = url.rsplit("/", 1)[-1]
        with partial.open("wb") as out, step_progress(name, total, "bytes") as advance:
            try:
                for chunk in pieces(response, limit.num_bytes):
                    out.write(chunk)
                    advance(len(chunk))
            except HttpAnswerError as error:
                raise limit.error(url) from error
    return True


def _check_status(response: httpx.Response) -> None:
    """Raise what the status says, without the address: where the server sent us to, it may hold a key."""
    import httpx

    if response.status_code >= httpx.codes.BAD_REQUEST:
        raise httpx.HTTPStatusError(
            f"answered {response.status_code}", request=response.request, response=response
        )


def _retrying(deadline: Deadline) -> Retrying:
    from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

    return Retrying(
        retry=retry_if_exception(lambda error: not deadline.passed and _is_passing(error)),
        stop=stop_after_attempt(ATTEMPTS),
        wait=wait_exponential(_FIRST_WAIT_SECONDS),
        reraise=True,
    )


def _is_passing(error: BaseException) -> bool:
    """Whether an error may be gone the next time: a broken connection or a 5xx answer."""
    import httpx

    if isinstance(error, httpx.HTTPStatusError):
        return error.response.status_code >= httpx.codes.INTERNAL_SERVER_ERROR
    return isinstance(error, httpx.TransportError)
