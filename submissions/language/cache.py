"""Answers on disk, by what was asked: a question whose answer is there is never asked again.

One small JSON file an answer, below `CIR_CACHE_HOME/language`, under the sha256 of everything that the answer
depends on. A file appears whole or not at all, so that a run that was killed goes on where it was, and runs
beside each other do not disturb one another.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from cir_datasets.common.atomic import write_whole
from cir_datasets.common.paths import cache_home
from submissions.errors import LanguageError
from submissions.language.answers import Answer

if TYPE_CHECKING:
    from PIL.Image import Image

_log = logging.getLogger(__name__)
_FORMAT = 1


class AnswerCache:
    """Answers by key.

    Args:
        root: the folder; None is `language` in the cache (`CIR_CACHE_HOME`).
    """

    def __init__(self, root: str | Path | None = None) -> None:
        """See the class."""
        self.root = cache_home() / "language" if root is None else Path(root).expanduser().absolute()

    def path(self, key: str) -> Path:
        """Where the answer of a key lies."""
        return self.root / key[:2] / f"{key}.json"

    def get(self, key: str) -> Answer | None:
        """The answer of a key; a file that is not an answer counts as none and is replaced later."""
        path = self.path(key)
        try:
            found = orjson.loads(path.read_bytes())
            return Answer(str(found["answer"]), int(found["prompt_tokens"]), int(found["completion_tokens"]))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise LanguageError(
                f"{path}: cannot be read: {error.strerror or error}. "
                "Fix: set CIR_CACHE_HOME to a folder of yours."
            ) from error
        except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
            _log.warning("%s: no answer in it, so that it is asked again.", path)
            return None

    def put(self, key: str, answer: Answer, asked: Mapping[str, Any]) -> None:
        """Keep an answer.

        Args:
            key: of `cache_key`.
            answer: what came.
            asked: what the key was made of, for a reader of the file.

        Raises:
            LanguageError: the system refuses to write there.
        """
        document = {
            "answer": answer.text,
            "prompt_tokens": answer.prompt_tokens,
            "completion_tokens": answer.completion_tokens,
            "asked": dict(asked),
        }
        try:
            write_whole(self.path(key), orjson.dumps(document, option=orjson.OPT_INDENT_2))
        except OSError as error:
            raise LanguageError(
                f"{self.path(key)}: cannot be written: {error.strerror or error}. "
                "Fix: make room, or set CIR_CACHE_HOME to a folder of yours."
            ) from error


def answer_cache(where: str | Path | bool | None) -> AnswerCache | None:
    """The cache that an option means: None and True the usual folder, False no cache, else that folder."""
    if where is False:
        return None
    return AnswerCache(None if where is None or where is True else where)


def cache_key(asked: Mapping[str, Any]) -> str:
    """sha256 (hex) of what an answer depends on.

    Args:
        asked: JSON values; the order of keys does not matter.

    Example:
        >>> cache_key({"model": "a", "prompt": "b"}) == cache_key({"prompt": "b", "model": "a"})
        True
    """
    canonical = json.dumps({"format": _FORMAT, **asked}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def picture_digest(image: Image) -> str:
    """sha256 (hex) of a picture's size and RGB pixels, so that its file's name and format do not matter."""
    pixels = image.convert("RGB")
    return hashlib.sha256(f"{pixels.width}x{pixels.height}:".encode() + pixels.tobytes()).hexdigest()
