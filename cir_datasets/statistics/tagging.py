"""Parts of speech with HanTa, whose English model is in its wheel (no download), as coarse classes."""

from __future__ import annotations

import functools
import importlib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cir_datasets.common.progress import step_progress
from cir_datasets.errors import missing_extra
from cir_datasets.statistics.words import tokens, words

OTHER = "other"


@functools.cache
def classes() -> dict[str, str]:
    """The coarse class of each tag of the model (`tagset.yaml`).

    Example:
        >>> classes()["NN1"], classes()["AJC"]
        ('noun', 'adjective')
    """
    from cir_datasets.common.yaml import package_yaml

    tagset = package_yaml("cir_datasets", "statistics/tagset.yaml")
    return {tag: name for name, tags in tagset.items() for tag in tags}


def class_names() -> tuple[str, ...]:
    """The coarse classes, `other` last.

    Example:
        >>> class_names()[:4], class_names()[-1]
        (('noun', 'verb', 'adjective', 'adverb'), 'other')
    """
    return (*dict.fromkeys(classes().values()), OTHER)


def count_classes(captions: Mapping[str, int], label: str) -> Counter[str]:
    """How many words of each class captions hold; a caption is tagged once, however often it occurs.

    Args:
        captions: by caption how often it occurs.
        label: what is tagged, for the progress bar.

    Raises:
        MissingExtraError: HanTa is not installed.

    Example:
        >>> counts = count_classes({"replace the blue shirt with a black shirt": 2}, "one caption")
        >>> counts["noun"], counts["adjective"], counts["verb"]
        (4, 4, 2)
    """
    tagger, known = _tagger(), classes()
    found: Counter[str] = Counter()
    with step_progress(f"tagging {label}", len(captions)) as advance:
        for caption, times in captions.items():
            # Each word comes back as (word, lemma, tag).
            for _, _, tag in tagger.tag_sent(tokens(words(caption))):
                found[known.get(tag, OTHER)] += times
            advance(1)
    return found


@functools.cache
def _tagger() -> Any:
    try:
        module = importlib.import_module("HanTa.HanoverTagger")  # has no type hints
    except ImportError as error:
        raise missing_extra(
            "the tagging of parts of speech", "HanTa", "statistics", "leave them out with --no-tags"
        ) from error
    # By its whole path: a bare name would be looked for in the working directory first.
    return module.HanoverTagger(str(Path(str(module.__file__)).parent / "morphmodel_en.pgz"))
