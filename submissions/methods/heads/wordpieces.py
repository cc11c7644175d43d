"""The tokens of CIRPLANT and TIRG: BERT's word pieces of a checkpoint, or a vocabulary made of captions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from submissions.encoders.pretrained import NO_FOREIGN_CODE, quiet
from submissions.errors import CheckpointError

POSITIONS = 40
"""Tokens of a caption, first and last included; a longer one is cut."""

TOKENIZER = ("tokenizer.json", "tokenizer_config.json")
"""The files of a tokenizer as transformers saves it."""

_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_LEAST = 2
"""Times that a word is said at least; rarer words train the token of unknown ones."""


def vocabulary(captions: Sequence[str]) -> dict[str, int]:
    """The words of captions, split as BERT splits them, by number; the same whatever the captions' order.

    Args:
        captions: all that are trained on, each as often as it is said.

    Example:
        >>> [*vocabulary(["a red star", "A red moon"])][5:]
        ['a', 'red']
    """
    from transformers import BertTokenizer

    bare: Any = BertTokenizer(vocab={token: number for number, token in enumerate(_SPECIAL)})
    splitter = bare.backend_tokenizer
    said: Counter[str] = Counter()
    for caption, times in Counter(captions).items():
        plain = splitter.normalizer.normalize_str(caption)
        for word, _ in splitter.pre_tokenizer.pre_tokenize_str(plain):
            said[word] += times
    words = sorted(word for word, times in said.items() if times >= _LEAST)
    return {token: number for number, token in enumerate((*_SPECIAL, *words))}


def tokenizer_of(words: dict[str, int]) -> Any:
    """A tokenizer of transformers' BERT with these words."""
    from transformers import BertTokenizer

    return BertTokenizer(vocab=words, model_max_length=POSITIONS)


def load_tokenizer(folder: Path) -> Any:
    """The tokenizer of a checkpoint's folder.

    Raises:
        CheckpointError: its files are missing or cannot be read.
    """
    import transformers

    if not any((folder / name).is_file() for name in ("tokenizer.json", "vocab.txt")):
        raise CheckpointError(
            f"{folder}: no tokenizer is in it (tokenizer.json or vocab.txt). "
            "Fix: put the files of the BERT that the weights are of beside them."
        )
    try:
        with quiet(transformers):
            return transformers.BertTokenizer.from_pretrained(folder, **NO_FOREIGN_CODE)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"{folder}: its tokenizer cannot be read ({error}). Fix: get the folder again."
        ) from error


def read_captions(tokenizer: Any, captions: Sequence[str]) -> NDArray[np.int64]:
    """Tokens of captions, shape (captions, POSITIONS), padded with the padding token."""
    if not len(captions):
        return np.zeros((0, POSITIONS), dtype=np.int64)
    made = tokenizer(
        list(captions), padding="max_length", truncation=True, max_length=POSITIONS, return_tensors="np"
    )
    return np.asarray(made["input_ids"], dtype=np.int64)
