"""A private dataset repository of the Hugging Face Hub: read, and committed to in one attempt."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt

from cir_datasets.errors import without_secret_cause
from leaderboard.errors import FileStoreError

_ATTEMPTS = 5
_BURST = 10
_HOUR = 3600.0
_LONGEST_PAUSE_SECONDS = 30.0
_TIMEOUT_SECONDS = 60.0
_TOO_OFTEN = 429
_PASSING = (408, _TOO_OFTEN)
"""Statuses that may pass beside 5xx."""
_MOVED = (409, 412)
_REFUSED = (401, 403)

_Outcome = TypeVar("_Outcome")


class MovedError(FileStoreError):
    """Somebody else has committed since the revision that a commit was to follow."""


class HubRefusedError(FileStoreError):
    """The repository is not there for our token, or takes nothing from it: only people can mend that."""


class TooOftenError(FileStoreError):
    """The Hub takes no more commits for a while.

    Args:
        message: what, where, how to fix it.
        seconds: how long, as the Hub says; 0 where it does not.
    """

    def __init__(self, message: str, seconds: float) -> None:
        """Keep the time."""
        super().__init__(message)
        self.seconds = seconds


@dataclass
class Bucket:
    """When the next commit may be made: a few at once, and so many in any hour.

    Args:
        an_hour: most commits in an hour.
        level: how many may be made at once now.
        at: when that was, in seconds of the clock.
    """

    an_hour: int
    level: float
    at: float

    @property
    def _burst(self) -> float:
        return min(_BURST, self.an_hour / 2)

    def _rate(self) -> float:
        return (self.an_hour - self._burst) / _HOUR

    def _now(self, now: float) -> float:
        return min(self._burst, self.level + max(0.0, now - self.at) * self._rate())

    def wait(self, now: float) -> float:
        """Seconds until the next commit may be made.

        Example:
            >>> Bucket(100, 1.0, 0.0).wait(0.0), Bucket(100, 0.0, 0.0).wait(0.0)
            (0.0, 40.0)
        """
        self.at = min(self.at, now)  # or a clock that was ahead would keep it empty until that time has come
        return max(0.0, 1.0 - self._now(now)) / self._rate()

    def take(self, now: float) -> None:
        """Note a commit."""
        self.level, self.at = self._now(now) - 1.0, now


class Repository:
    """A private dataset repository. Each call may raise `FileStoreError`.

    Args:
        name: `OWNER/NAME`.
        endpoint: the Hub's address; None is that of `HF_ENDPOINT`.
        token: who commits; None is `HF_TOKEN`, or who has logged in.
        pause: seconds before the second attempt to read; each further one waits twice as long, or as the Hub
            says.
    """

    def __init__(
        self, name: str, *, endpoint: str | None = None, token: str | None = None, pause: float = 0.5
    ) -> None:
        """Nothing is asked yet."""
        from huggingface_hub import HfApi
        from huggingface_hub.utils import disable_progress_bars  # type: ignore[attr-defined]

        disable_progress_bars()  # of files of some hundred bytes
        self._api = HfApi(endpoint=endpoint, token=token)
        self._name = name
        self.shown = f"hf://datasets/{name}"
        self._there: dict[str, Any] = {"repo_id": name, "repo_type": "dataset"}
        self._pause = pause

    def open(self) -> None:
        """Make it where there is none.

        Raises:
            FileStoreError: it is public, cannot be reached, or refuses us.
        """
        self._tried(lambda: self._api.create_repo(**self._there, private=True, exist_ok=True))
        if self._tried(lambda: self._api.dataset_info(self._name)).private is not True:
            raise FileStoreError(
                f"{self.shown}: is public, and a leaderboard's log holds names, hashes of tokens and the key "
                "of its receipts. Fix: make the repository private in its settings, or name another."
            )

    def head(self) -> str:
        """The newest commit."""
        return str(self._tried(lambda: self._api.dataset_info(self._name, expand=["sha"])).sha)

    def names(self, revision: str | None = None) -> set[str]:
        """The paths of all files."""
        return set(self._tried(lambda: self._api.list_repo_files(**self._there, revision=revision)))

    def fetch(self, name: str, path: Path, revision: str | None = None) -> bool:
        """Write the file of that name to `path`; whether there is one."""
        from huggingface_hub.errors import RemoteEntryNotFoundError

        with tempfile.TemporaryDirectory(prefix=".get-", dir=path.parent) as folder:

            def download() -> bool:
                try:
                    got = self._api.hf_hub_download(
                        filename=name, local_dir=folder, revision=revision, **self._there
                    )
                except RemoteEntryNotFoundError:  # not its like, which says that the Hub cannot be reached
                    return False
                Path(got).replace(path)
                return True

            return self._tried(download)

    def fetch_all(self, names: Sequence[str], folder: Path, revision: str) -> None:
        """Write the files of these names to an empty folder, several at once."""
        self._tried(
            lambda: self._api.snapshot_download(
                **self._there, revision=revision, allow_patterns=list(names), local_dir=folder
            )
        )

    def read(self, name: str, revision: str | None = None) -> bytes | None:
        """The content of a file, or None where there is none."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "file"
            return path.read_bytes() if self.fetch(name, path, revision) else None

    def commit(
        self, message: str, parent: str, added: Mapping[str, bytes | Path], removed: Iterable[str] = ()
    ) -> str:
        """Commit files in one attempt; the new head.

        Raises:
            MovedError: the head is not `parent` any more.
            TooOftenError: the Hub takes none now.
            FileStoreError: it cannot be reached, or refuses us; the commit may have been made.
        """
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        operations: list[Any] = [
            *(
                CommitOperationAdd(name, content if isinstance(content, bytes) else str(content))
                for name, content in added.items()
            ),
            *(CommitOperationDelete(name) for name in removed),
        ]
        done = self._tried(
            lambda: self._api.create_commit(
                operations=operations, commit_message=message, parent_commit=parent, **self._there
            ),
            attempts=1,
        )
        return str(done.oid)

    def squash(self) -> None:
        """Make all commits one: what files held earlier is gone."""
        self._tried(lambda: self._api.super_squash_history(**self._there))

    def _tried(self, step: Callable[[], _Outcome], attempts: int = _ATTEMPTS) -> _Outcome:
        """Do something there, again where what went wrong may pass, and say it where it stays so."""
        from huggingface_hub import errors, get_session
        from huggingface_hub.utils import httpx as hub_httpx  # type: ignore[attr-defined] # not always our httpx

        def in_time() -> _Outcome:
            get_session().timeout = hub_httpx.Timeout(_TIMEOUT_SECONDS)  # by default it waits for ever
            return step()

        again = Retrying(
            retry=retry_if_exception(_may_pass),
            stop=stop_after_attempt(attempts),
            wait=self._wait,
            reraise=True,
        )
        try:
            return again(in_time)
        except (OSError, RuntimeError, ValueError, hub_httpx.HTTPError, errors.HfHubHTTPError) as error:
            status = _status_of(error)
            what = type(error).__name__ if status is None else f"the Hub answered {status}"
            refused = status in _REFUSED or isinstance(error, errors.RepositoryNotFoundError)
            fix = (
                "see that the repository's name is right, and set HF_TOKEN to a token that may write to it"
                if refused
                else "try again later"
            )
            said = f"{self.shown}: {what}. Fix: {fix}."
            cause = without_secret_cause(error)
            if refused:
                raise HubRefusedError(said) from cause
            if status == _TOO_OFTEN:
                raise TooOftenError(said, _retry_after(error)) from cause
            if status in _MOVED:
                raise MovedError(said) from cause
            raise FileStoreError(said) from cause

    def _wait(self, state: RetryCallState) -> float:
        named = 0.0 if state.outcome is None else _retry_after(state.outcome.exception())
        return min(_LONGEST_PAUSE_SECONDS, max(named, self._pause * 2.0 ** (state.attempt_number - 1)))


def _retry_after(error: BaseException | None) -> float:
    response = getattr(error, "response", None)
    said = "" if response is None else response.headers.get("Retry-After", "")
    return float(said) if said.isdecimal() else 0.0


def _status_of(error: BaseException) -> int | None:
    response = getattr(error, "response", None)
    return None if response is None else int(response.status_code)


def _may_pass(error: BaseException) -> bool:
    """Whether the same request may succeed a little later."""
    from huggingface_hub.utils import httpx as hub_httpx  # type: ignore[attr-defined]

    status = _status_of(error)
    if status is not None:
        return status in _PASSING or status >= 500
    return isinstance(error, hub_httpx.TransportError)
