"""Pushing a published benchmark to the Hub: one commit holds everything, or nothing changes.

Large files are uploaded before the commit and belong to no revision until it is made: a push that breaks off
leaves the last revision as it was, and the next one goes on with what the Hub has already.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cir_datasets.errors import PushError
from cir_datasets.publishing.publication import Publication, documents
from cir_datasets.registry import IMAGES_SUFFIX

if TYPE_CHECKING:
    from cir_datasets.card import Card
    from cir_datasets.prepared import Prepared

_UNAUTHORIZED, _FORBIDDEN, _CONFLICTS = 401, 403, (409, 412)


def push(
    publication: Publication, prepared: Sequence[Prepared], repository: str, *, private: bool = False
) -> Publication:
    """Upload a publication in one commit; the publication with the commit's address.

    The token is the one that huggingface_hub finds: `HF_TOKEN`, or `hf auth login`. Parquet of a
    configuration that is no longer there is deleted in the same commit; other files stay.

    Args:
        publication: what was published to a folder.
        prepared: what it was written from.
        repository: `ORG/NAME`.
        private: whether a repository that is made is private.

    Raises:
        PushError: the Hub refused or could not be reached; the last revision is untouched.
    """
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, errors
    from huggingface_hub.utils import httpx as hub_httpx  # type: ignore[attr-defined] # not always our httpx

    api = HfApi()
    url = f"{api.endpoint}/datasets/{repository}"
    pages, _ = documents(publication.configs, prepared, repository, url)
    card = prepared[0].spec.card
    step = "making the repository"
    try:
        api.create_repo(repository, repo_type="dataset", private=private, exist_ok=True)
        step = "reading its last revision"
        state = api.dataset_info(repository)
        there = [sibling.rfilename for sibling in state.siblings or ()]
        files: dict[str, Path | bytes] = {**_local(publication), **pages}
        operations: list[Any] = [
            CommitOperationAdd(path, content if isinstance(content, bytes) else str(content))
            for path, content in sorted(files.items())
        ]
        operations += [CommitOperationDelete(path) for path in _ours(card, there) if path not in files]
        step = "uploading and committing"
        with _bars_for_people():
            commit = api.create_commit(
                repository,
                operations,
                commit_message=f"{card.name}, version {card.version}, by cir-benchmarks",
                repo_type="dataset",
                parent_commit=state.sha,
            )
    except (
        errors.HfHubHTTPError,
        hub_httpx.HTTPError,
        errors.LocalTokenNotFoundError,
        RuntimeError,
    ) as error:
        raise PushError(_words(url, step, error)) from error
    except (errors.HFValidationError, ValueError) as error:
        raise PushError(
            f"{url}: the Hub refused while {step}: {error}. Nothing was changed there."
        ) from error
    return dataclasses.replace(publication, commit_url=str(commit.commit_url))


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


def _local(publication: Publication) -> dict[str, Path | bytes]:
    return {
        file.path: publication.folder / file.path for config in publication.configs for file in config.files
    }


def _ours(card: Card, paths: Iterable[str]) -> list[str]:
    """The files among `paths` that a push of this benchmark has written at some time."""
    names = "|".join(re.escape(name) for name in card.configs)
    form = re.compile(rf"({names})({IMAGES_SUFFIX})?/(train|validation|test)-\d{{5}}-of-\d{{5}}\.parquet")
    return [path for path in paths if form.fullmatch(path)]


def _words(url: str, step: str, error: BaseException) -> str:
    """What, where, how to fix; the Hub's own words without its advice."""
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
