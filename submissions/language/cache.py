"""Answers on disk, by what was asked: a question whose answer is there is never asked again.

In `answers.sqlite`, below `CIR_CACHE_HOME/language`, a small JSON document an answer, under the sha256 of
everything that the answer depends on. A run that was killed goes on where it was, and runs beside each other
do not disturb one another. Up to version 0.1 an answer was a file of its own, which is still read.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from cir_datasets.common.key_values import KeyValues
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
        self._answers = KeyValues(self.root / "answers.sqlite", LanguageError)

    def get(self, key: str) -> Answer | None:
        """The answer of a key; what is not an answer counts as none and is replaced later.

        Raises:
            LanguageError: the cache cannot be read.
        """
        content = self._answers.get(key) or self._before(key)
        if content is None:
            return None
        try:
            found = orjson.loads(content)
            return Answer(str(found["answer"]), int(found["prompt_tokens"]), int(found["completion_tokens"]))
        except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
            _log.warning("%s, %s: no answer in it, so that it is asked again.", self._answers.file, key)
            return None

    def put(self, answers: Mapping[str, tuple[Answer, Mapping[str, Any]]]) -> None:
        """Keep answers.

        Args:
            answers: by key, as `cache_key` makes it: what came, and what the key was made of, for a reader.

        Raises:
            LanguageError: the system refuses to write there.
        """
        documents = {
            key: {
                "answer": answer.text,
                "prompt_tokens": answer.prompt_tokens,
                "completion_tokens": answer.completion_tokens,
                "asked": dict(asked),
            }
            for key, (answer, asked) in answers.items()
        }
        self._answers.put({key: orjson.dumps(document) for key, document in documents.items()})

    def _before(self, key: str) -> bytes | None:
        """The answer as versions up to 0.1 kept it."""
        try:
            return (self.root / key[:2] / f"{key}.json").read_bytes()
        except OSError:
            return None


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
