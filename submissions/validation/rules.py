"""Checks of a file's content against a benchmark's queries: which answers may break a rule.

Nearly every answer of nearly every file has nothing wrong with it. So all of them are screened at once,
which finds who may have (`suspects`); what is wrong with these, one place after the other, says `faults`.

Which gallery was ranked is evident where rankings never leave a smaller known list. The rule. A ranking may
hold its reference and its targets, which a smaller list has by its making and a good method finds first.
So many places (`excused`) say nothing, and of the distinct images those of the fewest
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
from collections.abc import Iterator
from itertools import chain, repeat
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cir_datasets.rows import id_array
from submissions.formats.native import UncheckedFile
from submissions.rank_file.benchmarks import MAX_DEPTH, SUBSET_DEPTH, Queries, image_family, well_formed
from submissions.rank_file.columns import Columns
from submissions.rank_file.findings import OTHER_GALLERY, Findings

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark, OwnLists
    from submissions.rank_file.model import Method

_BLOCK = 2**20
"""Places that are sorted at a time."""
_PLACES = 1_000
"""Places that are not excused, at least, where another gallery is evident."""
_LESS_LIKELY = 10
"""How many times less likely an image outside the smaller list may be."""
_BOUND = 1e-12
"""Chance, at most, that a ranking of the whole gallery leaves out all that the smaller list lacks."""

_OWN_FIX = 'rank the whole gallery; a list of your own is declared as "own_gallery" in the "method" block'
"""Where no benchmark asks the same queries of the list that was ranked."""


def check_content(unchecked: UncheckedFile, queries: Queries, findings: Findings, *, part: bool) -> None:
    """Check a file against its benchmark, without ground truth.

    Args:
        unchecked: structure checked already; entries of a wrong type are None and are skipped.
        queries: the benchmark, without its ground truth.
        findings: collects what is wrong.
        part: whether one of the CIRR server's two files alone will do.
    """
    first, second = unchecked.rankings, unchecked.subset_rankings
    near: set[str] = set()
    near_second: set[str] = set()
    if first is not None:
        near = suspects(first, queries, image_family(unchecked.spec)) - first.unreadable
    if second is not None and queries.subsets is not None:
        near_second = subset_suspects(second, queries.subsets) - second.unreadable
    if near or near_second or not _answers_all(first, second, queries):
        from submissions.validation.faults import Faults  # a file without fault needs no words

        faults = Faults(unchecked, queries, findings)
        faults.note_rankings(near, part=part)
        faults.note_subsets(near_second, part=part)


def _answers_all(first: Columns | None, second: Columns | None, queries: Queries) -> bool:
    """Whether exactly the benchmark's queries are answered, in all the rankings that its board asks for."""
    asked = queries.num_turns.keys()
    if first is None or first.position.keys() != asked:
        return False
    if second is None:
        return not queries.subset_wanted
    return queries.subsets is not None and second.position.keys() == queries.subsets.position.keys() == asked


def note_ranked_gallery(
    columns: Columns, benchmark: Benchmark, method: Method | None, findings: Findings
) -> None:
    """Warn of rankings that were evidently made over another known list than the benchmark's gallery.

    Args:
        columns: the rankings.
        benchmark: what they answer.
        method: who ranked; a gallery of its own, or images left out, that it declares are believed.
        findings: collects the warning, whose value is the benchmark of that list.
    """
    counts = np.bincount(columns.codes, minlength=len(columns.images))
    size, places, used = len(benchmark.gallery or ()), len(columns.codes), int((counts > 0).sum())
    if benchmark.per_query or used >= size or places < _PLACES or _declared(method, benchmark):
        return
    lists = len(columns.lengths)
    turns = benchmark.column("num_turns") if benchmark.multi_turn else repeat(1)
    excused = lists + max(lists, sum(map(operator.mul, map(len, benchmark.positives), turns)))
    free = used - int(np.searchsorted(np.cumsum(np.sort(counts[counts > 0])), excused, side="right"))
    # Any list that holds what was ranked leaves out less: where even this much says nothing, no card is read.
    if places - excused < _PLACES or _chance(size, used, free) >= _BOUND:
        return
    from submissions.rank_file.owners import image_ids, other_galleries, over_gallery

    ranked = {columns.image_ids[code] for code in np.unique(columns.codes).tolist()}
    smaller = [each for each in other_galleries(benchmark.spec) if used <= (each.config.gallery or 0) < size]
    if not smaller or ranked <= set(chain.from_iterable(benchmark.positives)):
        return
    for other in sorted(smaller, key=lambda each: each.config.gallery or 0):
        known = image_ids(other)
        fits = ranked <= known < (benchmark.gallery_set or frozenset())
        if fits and _chance(size, len(known), free) < _BOUND:
            taker = over_gallery(benchmark.spec, other)
            findings.add(
                OTHER_GALLERY,
                f"its {places:,} places hold {used:,} images, none of them outside the "
                f"{len(known):,} of {other.id}, where the gallery has {size:,}. That list was ranked, and "
                "the score does not compare with those of the whole gallery.",
                value=other.id,
                fix=_OWN_FIX if taker is None else None,
                ranked=taker,
            )
            return


def _chance(size: int, known: int, free: int) -> float:
    """That rankings of a gallery of some size leave out, in so many free places, all but `known` images."""
    chance: float = (1 + (size - known) / (_LESS_LIKELY * known)) ** -free
    return chance


def _declared(method: Method | None, benchmark: Benchmark) -> bool:
    """Whether the file says itself that it ranked something else."""
    if method is None:
        return False
    own = method.own_gallery.partition(":")[2]
    return bool(method.skipped_images) or own not in ("", benchmark.gallery_hash)


def suspects(columns: Columns, queries: Queries, family: str) -> set[str]:
    """The queries or sessions of the benchmark whose answers may break a rule.

    Args:
        columns: the answers.
        queries: the benchmark, without its ground truth.
        family: the image family (`benchmarks.image_family`).
    """
    wanted = np.array([queries.num_turns.get(name, 0) for name in columns.names], dtype=np.int64)
    known = wanted > 0
    if columns.turn_offsets is None:
        owners = np.arange(len(columns.names))
        suspect = np.zeros(len(columns.names), dtype=np.bool_)
    else:
        given = np.diff(columns.turn_offsets)
        owners = np.repeat(np.arange(len(columns.names)), given)
        suspect = given != wanted
    wrong = (
        _odd_lengths(columns, queries)
        | _with_duplicates(columns)
        | _with_strangers(columns, queries, family)
        | _outside_own_lists(columns, queries.own)
        | _with_references(columns, queries, owners)
    )
    suspect[owners[wrong]] = True
    return {columns.names[place] for place in np.flatnonzero(suspect & known).tolist()}


def subset_suspects(columns: Columns, lists: OwnLists) -> set[str]:
    """The queries whose second ranking may break a rule.

    Args:
        columns: the second rankings.
        lists: the images that each query ranks there.
    """
    places = lists.places(columns.names)
    held, lengths = lists.lengths[places], columns.lengths
    wrong = (lengths == 0) | (lengths < np.minimum(SUBSET_DEPTH, held)) | (lengths > held)
    wrong |= _with_duplicates(columns) | _outside_own_lists(columns, lists)
    return {columns.names[place] for place in np.flatnonzero(wrong & (places >= 0)).tolist()}


def _odd_lengths(columns: Columns, queries: Queries) -> NDArray[np.bool_]:
    lengths, depth = columns.lengths, queries.depth
    required: int | NDArray[np.int64] = depth.required
    if queries.own is not None:
        required = np.minimum(depth.used, queries.own.lengths[queries.own.places(columns.names)])
    odd: NDArray[np.bool_] = (lengths == 0) | (lengths < required) | (lengths > depth.used)
    return odd | (lengths > MAX_DEPTH)


def _with_duplicates(columns: Columns) -> NDArray[np.bool_]:
    """Rankings that name an image twice: sorted, two neighbours are equal."""
    found = np.zeros(len(columns.lengths), dtype=np.bool_)
    for rankings in _blocks(columns):
        width = int(columns.lengths[rankings].max())
        ordered = np.sort(columns.places(rankings, width), axis=1)
        found[rankings] = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1)
    return found


def _blocks(columns: Columns) -> Iterator[NDArray[np.int64]]:
    """The rankings, those of like length together, in blocks of bounded size; the longest are left out.

    A ranking of more than `MAX_DEPTH` images is a suspect for its length alone.
    """
    by_length = np.argsort(columns.lengths, kind="stable")
    by_length = by_length[columns.lengths[by_length] <= MAX_DEPTH]
    while len(by_length):
        # The rows get longer: a block as wide as its last row is a little too wide for its first.
        rows = max(1, _BLOCK // max(1, int(columns.lengths[by_length[0]])))
        block = by_length[:rows]
        rows = max(1, _BLOCK // max(1, int(columns.lengths[block[-1]])))
        yield block[:rows]
        by_length = by_length[rows:]


def _with_strangers(columns: Columns, queries: Queries, family: str) -> NDArray[np.bool_]:
    """Rankings with an image from outside the gallery."""
    if queries.gallery_ids is not None:
        strange = columns.in_gallery(id_array(queries.gallery_ids)) < 0
    else:
        strange = np.array([not well_formed(family, image) for image in columns.image_ids], dtype=np.bool_)
    if not strange.any():
        return np.zeros(len(columns.lengths), dtype=np.bool_)
    return _with_any(columns, strange[columns.codes])


def _with_any(columns: Columns, places: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Rankings of which at least one place is marked."""
    before = np.concatenate([[0], np.cumsum(places)])
    found: NDArray[np.bool_] = before[columns.offsets[1:]] > before[columns.offsets[:-1]]
    return found


def _outside_own_lists(columns: Columns, lists: OwnLists | None) -> NDArray[np.bool_]:
    """Rankings with an image that their query does not rank."""
    if lists is None:
        return np.zeros(len(columns.lengths), dtype=np.bool_)
    asking = np.repeat(lists.places(columns.names), columns.lengths)
    images = columns.in_gallery(lists.images)[columns.codes]
    return _with_any(columns, ~lists.holds(asking, images))


def _with_references(columns: Columns, queries: Queries, owners: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Rankings that hold the reference of their turn, where it is to be removed."""
    count = len(columns.lengths)
    if not queries.removed:
        return np.zeros(count, dtype=np.bool_)
    starts = np.zeros(len(columns.names), dtype=np.int64)
    if columns.turn_offsets is not None:
        starts = columns.turn_offsets[:-1]
    # An id is never empty, so that the empty text is found nowhere.
    wanted = [""] * count
    for ranking, owner in enumerate(owners.tolist()):
        turns = queries.removed.get(columns.names[owner], ())
        turn = ranking - int(starts[owner]) if columns.turn_offsets is not None else 0
        wanted[ranking] = (turns[turn] or "") if turn < len(turns) else ""
    return columns.holding(columns.codes_of(id_array(wanted)))
