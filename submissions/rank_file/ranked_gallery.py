"""Which gallery was ranked, where that is evident: rankings that never leave a smaller known list.

The rule. A ranking may hold its reference and its targets, which a smaller list has by its making and a good
method finds first. So many places (`excused`) say nothing, and of the distinct images those of the fewest
places are taken to be all of these; `free` others remain. Were the whole gallery ranked, of g images of which
the smaller list has s, and were an image outside it ten times less likely than one inside, then `free` images
inside and none outside would have a probability of at most

    (s / (s + (g - s) / 10)) ** free

The smaller list was ranked where at least 1,000 places are not excused and this is below 1e-12. So constant
scores, popular images, and each query's own target infer nothing; nor do lists of targets alone, of whichever
queries: what was ranked then is no known list.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import chain, repeat
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from submissions.rank_file.findings import OTHER_GALLERY
from submissions.rank_file.owners import image_ids, other_galleries, over_gallery

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.rank_file.findings import Findings
    from submissions.rank_file.model import Method

_PLACES = 1_000
"""Places that are not excused, at least."""
_LESS_LIKELY = 10
"""How many times less likely an image outside the smaller list may be."""
_BOUND = 1e-12
"""Chance, at most, that a ranking of the whole gallery leaves out all that the smaller list lacks."""
_OWN_FIX = 'rank the whole gallery; a list of your own is declared as "own_gallery" in the "method" block'
"""Where no benchmark asks the same queries of the list that was ranked."""


def note_ranked_gallery(
    images: Sequence[str],
    counts: NDArray[np.int64],
    lists: int,
    benchmark: Benchmark,
    method: Method | None,
    findings: Findings,
) -> None:
    """Warn of rankings that were evidently made over another known list than the benchmark's gallery.

    Args:
        images: ids that occur in the lists, distinct.
        counts: in how many places each occurs, shape (n_images,).
        lists: how many lists there are.
        benchmark: what they answer.
        method: who ranked; a gallery of its own, or images left out, that it declares are believed.
        findings: collects the warning, whose value is the benchmark of that list.
    """
    size, places, used = len(benchmark.gallery or ()), int(counts.sum()), int((counts > 0).sum())
    if used >= size or places < _PLACES or _declared(method, benchmark):
        return
    smaller = [each for each in other_galleries(benchmark.spec) if used <= (each.config.gallery or 0) < size]
    if not smaller:
        return
    turns = benchmark.column("num_turns") if benchmark.multi_turn else repeat(1)
    excused = lists + max(lists, sum(map(operator.mul, map(len, benchmark.positives), turns)))
    free = used - int(np.searchsorted(np.cumsum(np.sort(counts[counts > 0])), excused, side="right"))
    ranked = {image for image, count in zip(images, counts.tolist(), strict=True) if count}
    if places - excused < _PLACES or ranked <= set(chain.from_iterable(benchmark.positives)):
        return
    for other in sorted(smaller, key=lambda each: each.config.gallery or 0):
        known = image_ids(other)
        fits = ranked <= known < (benchmark.gallery_set or frozenset())
        if fits and (1 + (size - len(known)) / (_LESS_LIKELY * len(known))) ** -free < _BOUND:
            taker = over_gallery(benchmark.spec, other)
            findings.add(
                OTHER_GALLERY,
                f"its {places:,} places hold {used:,} images, none of them outside the {len(known):,} of "
                f"{other.id}, where the gallery has {size:,}. That list was ranked, and the score does not "
                "compare with those of the whole gallery.",
                value=other.id,
                fix=_OWN_FIX if taker is None else None,
                ranked=taker,
            )
            return


def _declared(method: Method | None, benchmark: Benchmark) -> bool:
    """Whether the file says itself that it ranked something else."""
    if method is None:
        return False
    own = method.own_gallery.partition(":")[2]
    return bool(method.skipped_images) or own not in ("", benchmark.gallery_hash)
