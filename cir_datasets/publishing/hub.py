"""Pushing a published benchmark to the Hub: one commit holds everything, or nothing changes.

Large files are uploaded before the commit and belong to no revision until it is made: a push that breaks off
leaves the last revision as it was, and the next one goes on with what the Hub has already.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cir_datasets.common.addresses import address_and_login
from cir_datasets.errors import HttpAnswerError, PushError, without_secret_cause
from cir_datasets.publishing.publication import (
    CROISSANT,
    Earlier,
    Publication,
    check_earlier,
    documents,
    read_earlier,
)
from cir_datasets.registry import IMAGES_SUFFIX
from cir_metrics.errors import CallError, CirError

if TYPE_CHECKING:
    from huggingface_hub import HfApi

    from cir_datasets.prepared import Prepared
    from cir_datasets.registry.schema import Card

_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
_UNAUTHORIZED, _FORBIDDEN, _CONFLICTS = 401, 403, (409, 412)


def push(
    publication: Publication,
    prepared: Sequence[Prepared],
    repository: str,
    *,
    private: bool = False,
    remove_others: bool = False,
) -> Publication:
    """Upload a publication in one commit; the publication with the commit's address.

    The token is the one that huggingface_hub finds: `HF_TOKEN`, or `hf auth login`. Parquet of an
    earlier publication that is not written anew is deleted in the same commit; other files stay.

    Args:
        publication: what was published to a folder.
        prepared: what it was written from.
        repository: `ORG/NAME`.
        private: whether a repository that is made is private.
        remove_others: whether configurations that are there and not in `publication` may be deleted.

    Raises:
        PushError: the Hub refused or could not be reached; another benchmark is in the repository, or
            configurations would be deleted that the caller has not given up; the last revision is untouched.
    """
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    card = prepared[0].spec.card
    with hub_push(f"datasets/{repository}", PushError) as there:
        pages, _ = documents(publication.configs, prepared, repository, there.url)
        there.api.create_repo(repository, repo_type="dataset", private=private, exist_ok=True)
        there.step = "reading its last revision"
        state = there.api.dataset_info(repository)
        if card.private and state.private is not True:
            raise PushError(
                f"{there.url}: is public, and the card of {card.name} says private: true. Nothing was "
                "pushed.\n"
                "  Fix: name a repository that is private, or that is not there yet."
            )
        paths = [sibling.rfilename for sibling in state.siblings or ()]
        earlier = _earlier(there.api, repository, state.sha, there.url, card, paths)
        if earlier is not None:
            kept = {config.name for config in publication.configs}
            check_earlier(earlier, card.name, kept, remove_others=remove_others, error=PushError)
        written = (file.path for config in publication.configs for file in config.files)
        files: dict[str, Path | bytes] = {path: publication.folder / path for path in written}
        files |= pages
        operations: list[Any] = [
            CommitOperationAdd(path, content if isinstance(content, bytes) else str(content))
            for path, content in sorted(files.items())
        ]
        stale = earlier.files - set(files) if earlier is not None else ()
        operations += [CommitOperationDelete(path) for path in sorted(stale)]
        there.step = "uploading and committing"
        commit = there.api.create_commit(
            repository,
            operations,
            commit_message=f"{card.name}, version {card.version}, by cir-benchmarks",
            repo_type="dataset",
            parent_commit=state.sha,
        )
    return dataclasses.replace(publication, commit_url=str(commit.commit_url))


@dataclasses.dataclass
class HubPush:
    """A push while it lasts.

    Args:
        api: the Hub's.
        url: of the repository, without a password: it goes into what is published, too.
        step: what is being done, for messages.
    """

    api: HfApi
    url: str
    step: str = "making the repository"


def is_repository(text: str) -> bool:
    """Whether a text is the id of a repository on the Hub, so that it may stand in a path.

    Args:
        text: what a person, or a file, says.

    Example:
        >>> is_repository("me/my-model"), is_repository("me/.."), is_repository("my-model")
        (True, False, False)
    """
    return bool(_REPOSITORY.fullmatch(text)) and not any(bad in text for bad in ("--", ".."))


def check_repository(option: str, text: str) -> None:
    """Refuse what is not the id of a repository.

    Args:
        option: which names it, for the message.
        text: what was written.

    Raises:
        CallError: it is none.
    """
    if not is_repository(text):
        raise CallError(
            f"{option}: {text!r} is not the id of a repository. Fix: write OWNER/NAME, as in its address."
        )


@contextmanager
def hub_push(path: str, refused: Callable[[str], CirError]) -> Iterator[HubPush]:
    """Push to a repository of the Hub; what goes wrong is said in words, and no body leaves the Hub's host.

    Args:
        path: of the repository, behind the Hub's address.
        refused: makes the error of a message.

    Raises:
        CirError: of `refused`: the Hub refused or could not be reached.
    """
    from huggingface_hub import HfApi, errors, get_session
    from huggingface_hub.utils import httpx as hub_httpx  # type: ignore[attr-defined] # not always our httpx

    api = HfApi()
    address, _ = address_and_login(api.endpoint) or ("https://huggingface.co", None)
    push = HubPush(api, f"{address}/{path}")
    session = get_session()
    hooks = session.event_hooks
    session.event_hooks = {**hooks, "response": [*hooks["response"], _stay]}
    try:
        with _bars_for_people():
            yield push
    except HttpAnswerError as error:
        raise refused(f"{push.url}: the push failed while {push.step}: {error}") from error
    except CirError:
        raise
    except errors.OfflineModeIsEnabled as error:
        raise refused(
            f"{push.url}: HF_HUB_OFFLINE keeps huggingface_hub offline, so that nothing was pushed and "
            "nothing was changed there.\n  Fix: unset HF_HUB_OFFLINE and run the command again."
        ) from error
    except (
        errors.HfHubHTTPError,
        errors.LocalEntryNotFoundError,
        hub_httpx.HTTPError,
        errors.LocalTokenNotFoundError,
        RuntimeError,
    ) as error:
        raise refused(_push_words(push.url, push.step, error)) from without_secret_cause(error)
    except (errors.HFValidationError, ValueError) as error:
        raise refused(
            f"{push.url}: the Hub refused while {push.step}: {error}. Nothing was changed there.\n"
            "  Fix: give the repository another name."
        ) from without_secret_cause(error)
    finally:
        session.event_hooks = hooks


def _stay(response: Any) -> None:
    """Refuse a redirect that takes an upload to another host; what is read goes on without the key."""
    from cir_datasets.sources.client import check_leaving

    if response.has_redirect_location:
        asked = response.request
        check_leaving(asked, asked.url.join(response.headers["Location"]), sheds_key=True)


@contextmanager
def _bars_for_people() -> Iterator[None]:
    """Let huggingface_hub show its bars in a terminal only."""
    from huggingface_hub.utils import (  # type: ignore[attr-defined]
        are_progress_bars_disabled,
        disable_progress_bars,
        enable_progress_bars,
    )

    silence = not sys.stderr.isatty() and not are_progress_bars_disabled()
    if silence:
        disable_progress_bars()
    try:
        yield
    finally:
        if silence:
            enable_progress_bars()


def _earlier(
    api: HfApi, repository: str, revision: str | None, url: str, card: Card, there: Sequence[str]
) -> Earlier | None:
    """What a push has put there before, with those of its Parquet files that are still there."""
    if CROISSANT not in there:
        # Every push of ours writes the metadata too: such Parquet is somebody else's, or older than it.
        files = frozenset(_of_that_form(card, there))
        return Earlier(url, card.name, files) if files else None
    path = api.hf_hub_download(repository, CROISSANT, repo_type="dataset", revision=revision)
    earlier = read_earlier(Path(path).read_bytes(), url, PushError)
    return dataclasses.replace(earlier, files=earlier.files & set(there))


def _of_that_form(card: Card, paths: Iterable[str]) -> list[str]:
    """The files among `paths` that are named as this benchmark's Parquet is."""
    names = "|".join(re.escape(name) for name in card.configs)
    form = re.compile(rf"({names})({IMAGES_SUFFIX})?/(train|validation|test)-\d{{5}}-of-\d{{5}}\.parquet")
    return [path for path in paths if form.fullmatch(path)]


def _push_words(url: str, step: str, error: BaseException) -> str:
    """Why a push failed: what, where, how to fix; the Hub's own words without its advice.

    Args:
        url: of the repository, without a password.
        step: what was being done.
        error: as huggingface_hub raised it.
    """
    cause: BaseException | None = error
    while cause is not None and getattr(cause, "response", None) is None and cause.__cause__ is not None:
        cause = cause.__cause__
    response = getattr(cause, "response", None)
    status = None if response is None else response.status_code
    if status in (_UNAUTHORIZED, _FORBIDDEN):
        fix = "log in with `hf auth login`, or set HF_TOKEN to a token that may write there"
    elif status in _CONFLICTS:
        fix = "somebody else has pushed meanwhile; run the command again"
    else:
        fix = "run the command again; what the Hub has already is not sent twice"
    answer = f"the Hub answered {status}" if status is not None else f"{type(cause).__name__}: {cause}"
    what = f" ({error})" if error is not cause else ""
    return (
        f"{url}: the push failed while {step}: {answer}{what}. "
        f"The last revision there is untouched.\n  Fix: {fix}."
    )
