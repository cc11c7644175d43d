"""Texts that are longer than an encoder reads: reported once a run, with the total."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from submissions.errors import TruncationWarning

_Counted = dict[tuple[str, int], tuple[set[str], set[str]]]
"""By model and number of tokens: the texts that were cut off, and all that were read."""

_run: _Counted | None = None
"""What the run that is going on has counted so far; None outside of runs."""


@contextmanager
def one_truncation_warning() -> Iterator[None]:
    """While this lasts, texts that are cut off are counted, each once; a warning at the end has the total.

    Within another such block, the outer one warns.

    Warns:
        TruncationWarning: texts were cut off; one warning a model.

    Example:
        >>> with warnings.catch_warnings(record=True) as caught, one_truncation_warning():
        ...     report_cuts(["a b c"], ["a b c", "a"], limit=2, model="tiny")
        ...     report_cuts(["a b c"], ["a b c", "b"], limit=2, model="tiny")
        >>> [str(each.message) for each in caught]
        ['1 of 3 texts are longer than the 2 tokens that tiny reads, and were cut off there.']
    """
    global _run
    if _run is not None:
        yield
        return
    counted: _Counted = {}
    _run = counted
    try:
        yield
    finally:
        _run = None
    for (model, limit), (cut, texts) in counted.items():
        _warn(len(cut), len(texts), limit, model, stacklevel=5)


def report_cuts(cut: Iterable[str], texts: Iterable[str], *, limit: int, model: str) -> None:
    """Say that texts are longer than a model reads, where some are: at once, or at the end of the run.

    Args:
        cut: those that are.
        texts: all of them.
        limit: tokens that the model reads.
        model: its name.

    Warns:
        TruncationWarning: some are, outside of `one_truncation_warning`; the message counts them.
    """
    if _run is None:
        _warn(len(list(cut)), len(list(texts)), limit, model, stacklevel=4)
        return
    known_cut, known = _run.setdefault((model, limit), (set(), set()))
    known_cut.update(cut)
    known.update(texts)


def _warn(cut: int, texts: int, limit: int, model: str, stacklevel: int) -> None:
    if cut:
        warnings.warn(
            f"{cut:,} of {texts:,} texts are longer than the {limit} tokens that {model} reads, and were cut "
            "off there.",
            TruncationWarning,
            stacklevel=stacklevel,
        )
