"""From captions to words: what counts as a word, and which words are left out of the frequent terms."""

from __future__ import annotations

import functools
import re

_WORD = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*")
_CONTRACTED = re.compile(r"(?<=[a-z])(n't|'(?:s|re|ve|ll|d|m))$")


def words(caption: str) -> list[str]:
    """The words of a caption, in small letters; punctuation is none, `t-shirt` and `isn't` are one each.

    Example:
        >>> words("Is a T-shirt, and isn't blue.")
        ['is', 'a', 't-shirt', 'and', "isn't", 'blue']
    """
    return [found.replace("’", "'") for found in _WORD.findall(caption.lower())]


def tokens(caption_words: list[str]) -> list[str]:
    """Words as a tagger wants them: contractions in two.

    Example:
        >>> tokens(["isn't", "the", "dog's", "it"])
        ['is', "n't", 'the', 'dog', "'s", 'it']
    """
    found = []
    for word in caption_words:
        match = _CONTRACTED.search(word)
        found += [word[: match.start()], match.group()] if match else [word]
    return found


@functools.cache
def stop_words() -> frozenset[str]:
    """Words that are left out of the most frequent terms (`stop_words.yaml`).

    Example:
        >>> "the" in stop_words(), "longer" in stop_words()
        (True, False)
    """
    from cir_datasets.common.yaml import package_yaml

    groups = package_yaml("cir_datasets", "statistics/stop_words.yaml").values()
    return frozenset(word for group in groups for word in group)
