"""Fetches publishers' files: whole, checked, or not at all.

A file is written beside its place, checked against size and sha256, and moved there in one step, so that a
download cut short leaves nothing behind. GitHub files come from the raw endpoint at a pinned revision
(`CIR_GITHUB_ENDPOINT` names a mirror), Hub files through `huggingface_hub` (`HF_ENDPOINT`, `HF_HUB_OFFLINE`).
Only connection errors and 5xx answers are tried again, a few times and briefly.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from cir_datasets.errors import IntegrityError, SourceError
from cir_datasets.paths import cache_home
from cir_datasets.progress import byte_progress

if TYPE_CHECKING:
    from tenacity import Retrying

    from cir_datasets.card import Source

GITHUB_ENDPOINT = "https://raw.githubusercontent.com"
ATTEMPTS = 3
TIMEOUT_SECONDS = 30.0
_FIRST_WAIT_SECONDS = 0.2
_ORIGIN_SUFFIX = ".origin.json"


@dataclass(frozen=True)
class Pin:
    """What a publisher's file must be."""

    sha256: str
    num_bytes: int


def fetch(name: str, source: Source, file: str, pin: Pin | None, *, refresh: bool = False) -> Path:
    """The path of a publisher's file, downloaded unless an intact copy was kept.

    Args:
        name: the benchmark's name.
        source: where its publisher is.
        file: path relative to the publisher's folder.
        pin: size and sha256, or None where they are not known.
        refresh: ask the publisher again for a file without pin; where that fails, the kept copy stays.

    Raises:
        SourceError: no network, or the publisher has no such file.
        IntegrityError: what came is not the pinned file, or was cut short.
    """
    kept = kept_copy(name, source, file, pin)
    if kept is not None and not (refresh and pin is None):
        return kept
    try:
        return _fetch(place(name, source, file), source, file, pin)
    except IntegrityError:
        raise
    except SourceError:
        if kept is not None:
            return kept
        raise


def _fetch(target: Path, source: Source, file: str, pin: Pin | None) -> Path:
    with _staging(target) as folder:
        if source.publisher == "hub":
            partial, origin = _from_hub(source, file, folder)
        else:
            partial, origin = _from_github(source, file, folder)
        _check(partial, pin, origin["url"])
        _record_origin(target, origin)
        os.replace(partial, target)  # noqa: PTH105 - the one step that makes the file appear
    return target


def kept_copy(name: str, source: Source, file: str, pin: Pin | None) -> Path | None:
    """An earlier download of the file, if it is there and still the pinned one."""
    target = place(name, source, file)
    if not target.is_file():
        return None
    return target if pin is None or _matches(target, pin) else None


def revision_of(path: Path) -> str | None:
    """The publisher's revision that a downloaded file was taken at, where it is known."""
    record = path.with_name(path.name + _ORIGIN_SUFFIX)
    if not record.is_file():
        return None
    revision = json.loads(record.read_text(encoding="utf-8")).get("revision")
    return None if revision is None else str(revision)


def place(name: str, source: Source, file: str) -> Path:
    """Where a downloaded file is kept."""
    return cache_home() / "sources" / name / (source.revision or "unpinned") / file


def _matches(path: Path, pin: Pin) -> bool:
    if path.stat().st_size != pin.num_bytes:
        return False
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest() == pin.sha256


@contextmanager
def _staging(target: Path) -> Iterator[Path]:
    """A folder on the same disk as `target`, gone afterwards whatever happens."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=".partial-", dir=target.parent))
    except OSError as error:
        raise SourceError(
            f"{target.parent}: cannot be written: {error.strerror}. Fix: set CIR_CACHE_HOME "
            "to a folder of yours."
        ) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _record_origin(target: Path, origin: dict[str, str]) -> None:
    record = target.with_name(target.name + _ORIGIN_SUFFIX)
    record.write_text(json.dumps(origin) + "\n", encoding="utf-8")


def _check(path: Path, pin: Pin | None, url: str) -> None:
    if pin is None:
        _check_json(path, url)
        return
    size = path.stat().st_size
    if size != pin.num_bytes:
        what = "the download was cut short" if size < pin.num_bytes else "it is longer than it should be"
        raise IntegrityError(
            f"{url}: {size} bytes came, the card pins {pin.num_bytes}: {what}. Nothing was kept. "
            "Fix: try again; if it stays so, the publisher's file has changed."
        )
    if not _matches(path, pin):
        with path.open("rb") as handle:
            got = hashlib.file_digest(handle, "sha256").hexdigest()
        raise IntegrityError(
            f"{url}: its sha256 is {got}, the card pins {pin.sha256}. Nothing was kept. "
            "Fix: check the network between here and the publisher; if it stays so, the publisher's file has "
            "changed."
        )


def _check_json(path: Path, url: str) -> None:
    """Refuse what is no JSON at all (an error page, half a file): without a pin it would be kept for good."""
    import orjson

    try:
        orjson.loads(path.read_bytes())
    except orjson.JSONDecodeError as error:
        raise IntegrityError(
            f"{url}: what came is not JSON ({error}). Nothing was kept. Fix: try again; if it stays so, open "
            "the address in a browser to see what the server sends."
        ) from error


def _from_github(source: Source, file: str, folder: Path) -> tuple[Path, dict[str, str]]:
    endpoint = os.environ.get("CIR_GITHUB_ENDPOINT", GITHUB_ENDPOINT).rstrip("/")
    revision = source.revision or "HEAD"
    url = f"{endpoint}/{source.repository}/{revision}/{quote(file)}"
    partial = folder / "file"
    if not _get(url, partial, {}):
        raise SourceError(f"{url}: 404, the publisher has no such file at that revision")
    return partial, {"url": url, "revision": revision}


def _from_hub(source: Source, file: str, folder: Path) -> tuple[Path, dict[str, str]]:
    from huggingface_hub import hf_hub_url
    from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]

    # Read at each call: huggingface_hub reads it once, when it is imported.
    endpoint = os.environ.get("HF_ENDPOINT") or None
    url = hf_hub_url(
        source.repository, file, repo_type="dataset", revision=source.revision, endpoint=endpoint
    )
    commit, size = _hub_state(url)
    url = hf_hub_url(source.repository, file, repo_type="dataset", revision=commit, endpoint=endpoint)
    partial = folder / "file"
    if not _get(url, partial, build_hf_headers()):
        raise SourceError(f"{url}: 404, the publisher has no such file")
    if size is not None and partial.stat().st_size != size:
        raise IntegrityError(
            f"{url}: {partial.stat().st_size} bytes came, the Hub announced {size}. Nothing was kept. "
            "Fix: try again."
        )
    return partial, {"url": url, "revision": commit}


def _hub_state(url: str) -> tuple[str, int | None]:
    """The commit that the Hub serves a file from, and its size.

    `hf_hub_download` is not used because without a network it tries for 23 seconds, and because what it has
    half fetched stays in its cache.
    """
    from huggingface_hub import errors, get_hf_file_metadata
    from huggingface_hub.utils import httpx as hub_httpx  # type: ignore[attr-defined] # not always our httpx

    try:
        metadata = _retrying()(get_hf_file_metadata, url, timeout=TIMEOUT_SECONDS)
    except (errors.EntryNotFoundError, errors.RepositoryNotFoundError, errors.RevisionNotFoundError) as error:
        raise SourceError(f"{url}: 404, the publisher has no such file ({type(error).__name__})") from error
    except errors.HfHubHTTPError as error:
        raise SourceError(f"{url}: the server answered {error.response.status_code}") from error
    except (errors.OfflineModeIsEnabled, hub_httpx.HTTPError) as error:
        raise SourceError(f"{url}: no network ({type(error).__name__}: {error})") from error
    if not metadata.commit_hash:
        raise SourceError(f"{url}: the server is no Hugging Face Hub, its answer names no commit")
    return metadata.commit_hash, metadata.size


def _get(url: str, partial: Path, headers: Mapping[str, str]) -> bool:
    """Write the body of `url` to `partial`; False where the server has no such file."""
    import httpx

    try:
        return bool(_retrying()(_get_once, url, partial, headers))
    except httpx.RemoteProtocolError as error:
        raise IntegrityError(
            f"{url}: the connection closed before the whole file had come ({error}). Nothing was kept. "
            "Fix: try again."
        ) from error
    except httpx.HTTPStatusError as error:
        raise SourceError(f"{url}: the server answered {error.response.status_code}") from error
    except httpx.HTTPError as error:
        raise SourceError(f"{url}: no network ({type(error).__name__}: {error})") from error


def _get_once(url: str, partial: Path, headers: Mapping[str, str]) -> bool:
    import httpx

    plain = {**headers, "Accept-Encoding": "identity"}
    with httpx.stream("GET", url, headers=plain, follow_redirects=True, timeout=TIMEOUT_SECONDS) as response:
        if response.status_code == httpx.codes.NOT_FOUND:
            return False
        response.raise_for_status()
        length = response.headers.get("Content-Length", "")
        total = int(length) if length.isdigit() else None
        with partial.open("wb") as out, byte_progress(url.rsplit("/", 1)[-1], total) as advance:
            for chunk in response.iter_bytes():
                out.write(chunk)
                advance(len(chunk))
    return True


def _retrying() -> Retrying:
    from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

    return Retrying(
        retry=retry_if_exception(_is_passing),
        stop=stop_after_attempt(ATTEMPTS),
        wait=wait_exponential(_FIRST_WAIT_SECONDS),
        reraise=True,
    )


def _is_passing(error: BaseException) -> bool:
    """Whether an error may be gone the next time: a broken connection or a 5xx answer."""
    import httpx
    from huggingface_hub.utils import httpx as hub_httpx  # type: ignore[attr-defined] # not always our httpx

    response = getattr(error, "response", None)
    if response is not None:
        return bool(response.status_code >= httpx.codes.INTERNAL_SERVER_ERROR)
    return isinstance(error, httpx.TransportError | hub_httpx.TransportError)
