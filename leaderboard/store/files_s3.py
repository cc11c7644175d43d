"""Rank files in a bucket that speaks S3, through fsspec's s3fs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cir_datasets.errors import missing_extra, without_secret_cause
from leaderboard.errors import FileStoreError

_SECONDS = {"connect_timeout": 10, "read_timeout": 60}
_ATTEMPTS = {"max_attempts": 4, "mode": "standard"}


class S3Files:
    """A bucket, or a part of one; see `Remote`.

    An upload is one request: S3 answers it when the object is durable, and no reader sees half of it. Failed
    requests (408, 429, 5xx, broken connections) are tried again by botocore, four times in all.

    Args:
        root: bucket and prefix, `bucket/boards`.

    Raises:
        MissingExtraError: s3fs is not installed.
        FileStoreError: the bucket cannot be reached, or refuses us.
    """

    def __init__(self, root: str) -> None:
        """Look whether the bucket is there."""
        try:
            import s3fs
        except ImportError as error:
            raise missing_extra("the keeping of rank files in S3", "s3fs", "server") from error
        self._root = root
        self._s3: Any = s3fs.S3FileSystem(
            config_kwargs={**_SECONDS, "retries": _ATTEMPTS},
            use_listings_cache=False,
            skip_instance_cache=True,
        )
        with self._in_words():
            self._s3.call_s3("head_bucket", Bucket=root.partition("/")[0])

    def put(self, name: str, path: Path) -> None:
        """See `Remote`."""
        with self._in_words():
            self._s3.pipe_file(f"{self._root}/{name}", path.read_bytes())

    def get(self, name: str, path: Path) -> bool:
        """See `Remote`."""
        with self._in_words():
            try:
                path.write_bytes(self._s3.cat_file(f"{self._root}/{name}"))
            except FileNotFoundError:
                return False
        return True

    def delete(self, name: str) -> None:
        """See `Remote`; S3 answers likewise where there is none."""
        with self._in_words():
            self._s3.rm_file(f"{self._root}/{name}")

    def names(self) -> Iterator[str]:
        """See `Remote`."""
        with self._in_words():
            found = self._s3.find(self._root)
        return (path.removeprefix(f"{self._root}/") for path in found)

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        """Say what went wrong, without the library's words: they may hold a key's id."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            yield
        except (OSError, BotoCoreError, ClientError) as error:
            refused = isinstance(error, PermissionError) or "Credential" in type(error).__name__
            fix = (
                "check the keys (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY) and what they may do"
                if refused
                else "check the bucket, AWS_ENDPOINT_URL and the network, and try again"
            )
            raise FileStoreError(
                f"s3://{self._root}: {type(error).__name__}. Fix: {fix}."
            ) from without_secret_cause(error)
