"""Rank files in a dataset repository of the Hugging Face Hub: each is a commit that the Hub has answered."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt

from cir_datasets.errors import without_secret_cause
from leaderboard.errors import FileStoreError

_ATTEMPTS = 5
_LONGEST_PAUSE_SECONDS = 30.0
_TIMEOUT_SECONDS = 60.0
_PASSING = (408, 409, 412, 429)
"""Statuses that may pass beside 5xx: a commit of somebody else came between, or we ask too often."""
_REFUSED = (401, 403)

_Outcome = TypeVar("_Outcome")


class HubFiles:
    """A dataset repository; see `Remote`.

    Files lie in 256 folders, so that none comes near the Hub's limit of 10,000 before there are two million.
    Each file is a commit, of which the Hub bears some thousands well. The same file again makes no commit.

    Args:
        repository: `OWNER/NAME`.
        endpoint: the Hub's address; None is that of `HF_ENDPOINT`.
        token: who commits; None is `HF_TOKEN`, or who has logged in.
        pause: seconds before the second attempt; each further one waits twice as long, or as the Hub says.

    Raises:
        FileStoreError: the repository cannot be reached, or refuses us.
    """

    def __init__(
        self, repository: str, *, endpoint: str | None = None, token: str | None = None, pause: float = 0.5
    ) -> None:
        """Look whether the repository is there."""
        from huggingface_hub import HfApi

        self._api = HfApi(endpoint=endpoint, token=token)
        self._repository = repository
        self._there: dict[str, Any] = {"repo_id": repository, "repo_type": "dataset"}
        self._pause = pause
        self._tried(lambda: self._api.repo_info(**self._there))

    def put(self, name: str, path: Path) -> None:
        """See `Remote`."""
        from huggingface_hub import CommitOperationAdd

        # A new operation at each attempt: a commit changes it.
        self._tried(lambda: self._commit(f"Add {name}", CommitOperationAdd(name, str(path))))

    def get(self, name: str, path: Path) -> bool:
        """See `Remote`."""
        from huggingface_hub.errors import EntryNotFoundError

        with tempfile.TemporaryDirectory(dir=path.parent) as folder:

            def download() -> bool:
                try:
                    got = self._api.hf_hub_download(filename=name, local_dir=folder, **self._there)
                except EntryNotFoundError:
                    return False
                Path(got).replace(path)
                return True

            return self._tried(download)

    def delete(self, name: str) -> None:
        """See `Remote`; the repository's history keeps the file until it is squashed."""
        from huggingface_hub import CommitOperationDelete

        if self._tried(lambda: self._api.get_paths_info(paths=[name], **self._there)):
            self._tried(lambda: self._commit(f"Remove {name}", CommitOperationDelete(name)))

    def names(self) -> Iterator[str]:
        """See `Remote`."""
        found = self._tried(lambda: list(self._api.list_repo_tree(recursive=True, **self._there)))
        return (entry.path for entry in found)

    def _commit(self, message: str, operation: Any) -> None:
        self._api.create_commit(operations=[operation], commit_message=message, **self._there)

    def _tried(self, step: Callable[[], _Outcome]) -> _Outcome:
        """Do something there, again where what went wrong may pass, and say it where it stays so."""
        from huggingface_hub import errors, get_session
        from huggingface_hub.utils import httpx as hub_httpx  # type: ignore[attr-defined] # not always our httpx

        def in_time() -> _Outcome:
            get_session().timeout = hub_httpx.Timeout(_TIMEOUT_SECONDS)  # by default it waits for ever
            return step()

        again = Retrying(
            retry=retry_if_exception(_may_pass),
            stop=stop_after_attempt(_ATTEMPTS),
            wait=self._wait,
            reraise=True,
        )
        try:
            return again(in_time)
        except (OSError, RuntimeError, ValueError, hub_httpx.HTTPError, errors.HfHubHTTPError) as error:
            status = _status_of(error)
            what = type(error).__name__ if status is None else f"the Hub answered {status}"
            fix = "try again later"
            if status in _REFUSED or isinstance(error, errors.RepositoryNotFoundError):
                fix = "make the repository, and set HF_TOKEN to a token that may write there"
            raise FileStoreError(
                f"hf://datasets/{self._repository}: {what}. Fix: {fix}."
            ) from without_secret_cause(error)

    def _wait(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome is not None else None
        response = getattr(error, "response", None)
        said = "" if response is None else response.headers.get("Retry-After", "")
        named = float(said) if said.isdecimal() else 0.0
        return min(_LONGEST_PAUSE_SECONDS, max(named, self._pause * 2.0 ** (state.attempt_number - 1)))


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
