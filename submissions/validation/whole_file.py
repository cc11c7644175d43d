"""What is odd about a file as a whole: the data it answers, what it declares, the gallery that it ranked.

Imported for a file that has such a thing.

Which gallery was ranked is evident where rankings never leave a smaller known list. The rule. A ranking may
hold its reference and its targets, which a smaller list has by its making and a good method finds first.
So many places (`excused`) say nothing, and of the distinct images those of the fewest
places are taken to be all of these; `free` others remain. Were the whole gallery ranked, of g images of which
the smaller list has s, and were an image outside it ten times less likely than one inside, then `free` images
inside and none outside would have a probability of at most

    (s / (s + (g - s) / 10)) ** free

The smaller list was ranked where at least 1,000 places are not excused and this is below 1e-12. So constant
scores, popular images, and each query's own target infer nothing; nor do lists of targets alone, of whichever
queries: no known list was ranked then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from cir_datasets.common.terminal import counted
from submissions.rank_file.findings import OTHER_GALLERY, REPAIRED
from submissions.rank_file.model import SECTIONS
from submissions.rank_file.owners import image_ids, other_galleries, over_gallery

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.formats.native import UncheckedFile
    from submissions.rank_file.columns import Columns
    from submissions.rank_file.findings import Findings

_OWN_FIX = 'rank the whole gallery; a list of your own is declared as "own_gallery" in the "method" block'
"""Where no benchmark asks the same queries of the list that was ranked."""


def note_data(benchmark: Benchmark, findings: Findings) -> None:
    """Say which of the benchmark's own data are not there, or not known to be the right ones."""
    if benchmark.gallery is None:
        findings.add(
            "gallery-unavailable",
            f"the gallery list of {benchmark.id} is not available; image ids were not checked.",
        )
    if not benchmark.pinned:
        findings.add(
            "unpinned-data",
            f"the files of {benchmark.id} are not, or not known to be, the ones that its card pins; "
            f"data hash {benchmark.data_hash[:7]}.",
        )


def leave_out(unchecked: UncheckedFile, benchmark: Benchmark, findings: Findings) -> None:
    """Drop the answers to queries of the base that the overlay leaves out, and say how many there were."""
    outside: set[str] = set()
    for section in SECTIONS:
        answers: Columns | None = getattr(unchecked, section)
        if answers is not None and (dropped := benchmark.left_out.intersection(answers)):
            outside |= dropped
            setattr(unchecked, section, answers.without(dropped))
    if outside:
        findings.add(
            "outside-overlay",
            f"queries that {benchmark.id} leaves out are answered, too; those answers are not counted.",
            count=len(outside),
        )


def note_reference(in_file: str, in_form: str, benchmark: Benchmark, findings: Findings) -> None:
    """Refuse what is declared of the reference and contradicts the form beside the file, or the protocol.

    Args:
        in_file: what the file's method block declares; empty where nothing.
        in_form: what the form declares; empty where nothing.
        benchmark: what was ranked.
        findings: collects `reference-contradiction`.
    """
    if in_file and in_form and in_file != in_form:
        findings.add(
            "reference-contradiction",
            f'"reference" in the method block is "{in_file}", and the form beside the file says "{in_form}".',
            cause="form",
            value=in_form,
            fix='leave one of them out: "reference" of the form (--reference of  cir submit), or the one in '
            "the method block",
        )
    if (in_file or in_form) == "kept" and benchmark.reference_use == "removed":
        findings.add(
            "reference-contradiction",
            f'"reference" in the method block is "kept"; {benchmark.id} ranks the gallery without it.',
            value="kept",
            fix='write "reference": "removed" if it was left out, else rank the gallery without it',
        )


def note_repaired(repairs: Mapping[Any, int], findings: Findings) -> None:
    """Refuse lists that `repair` shortened: the method that is named did not rank them so."""
    counts = ", ".join(counted(count, kind[:-1]) for kind, count in repairs.items())
    findings.add(REPAIRED, f"{counts} taken out of its lists by  cir repair  , which moves scores.")


def note_other_gallery(
    columns: Columns, benchmark: Benchmark, is_evident: Callable[[int], bool], findings: Findings
) -> None:
    """Warn of rankings that were made over another known list, where there is one that has all of them.

    Args:
        columns: the rankings.
        benchmark: what they answer.
        is_evident: whether rankings that stay within so many images of the gallery say so.
        findings: collects the warning, whose value is the benchmark of that list.
    """
    gallery = benchmark.gallery_set or frozenset()
    ranked = {columns.image_ids[code] for code in np.unique(columns.codes).tolist()}
    others = other_galleries(benchmark.spec)
    smaller = [each for each in others if len(ranked) <= (each.config.gallery or 0) < len(gallery)]
    if not smaller or ranked <= set(chain.from_iterable(benchmark.positives)):
        return
    for other in sorted(smaller, key=lambda each: each.config.gallery or 0):
        known = image_ids(other)
        if ranked <= known < gallery and is_evident(len(known)):
            taker = over_gallery(benchmark.spec, other)
            findings.add(
                OTHER_GALLERY,
                f"its {len(columns.codes):,} places hold {len(ranked):,} images, none of them outside the "
                f"{len(known):,} of {other.id}, where the gallery has {len(gallery):,}. That list was "
                "ranked, and the score does not compare with those of the whole gallery.",
                value=other.id,
                fix=_OWN_FIX if taker is None else None,
                ranked=taker,
            )
            return
