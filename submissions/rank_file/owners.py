"""Whose ids those are that a benchmark does not have: another split's queries, another gallery's images.

Only what is on this machine is looked at: nothing is downloaded for a hint, and where nothing is known,
nothing is said. All doors ask here, so that one mistake has the same name everywhere.

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
from collections.abc import Collection, Sequence
from itertools import chain, repeat
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cir_datasets import registry
from cir_datasets.prepared import last_prepared
from cir_datasets.rows import read_table
from cir_metrics.errors import CirError
from submissions.rank_file.findings import OTHER_GALLERY
from submissions.rank_file.model import turn_key

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.rank_file.findings import Findings
    from submissions.rank_file.model import Method

_MARK = turn_key("", 0)[:-1]
"""Between a session and the number of its turn."""
_MANY = 30_000
"""Queries of a benchmark that are not read for a hint: it would cost more than the file itself."""
_PLACES = 1_000
"""Places that are not excused, at least."""
_LESS_LIKELY = 10
"""How many times less likely an image outside the smaller list may be."""
_BOUND = 1e-12
"""Chance, at most, that a ranking of the whole gallery leaves out all that the smaller list lacks."""
_OWN_FIX = 'rank the whole gallery; a list of your own is declared as "own_gallery" in the "method" block'
"""Where no benchmark asks the same queries of the list that was ranked."""


def owner_of(
    ids: Collection[str],
    lacking: BenchmarkSpec | None = None,
    *,
    datasets: Collection[str] | None = None,
) -> tuple[str, str] | None:
    """The benchmark that has more than half of some query ids, and more of them than others.

    Args:
        ids: of queries or sessions, or of turns (`SESSION#TURN`).
        lacking: the benchmark that does not have them, whose data set is looked at; or None.
        datasets: names of the data sets that are looked at instead; None: all.

    Returns:
        The benchmark's id, and what is said of the ids; None where no benchmark has so many.
    """
    asked = {each.rpartition(_MARK)[0] or each for each in ids}
    chosen = datasets if lacking is None else (lacking.card.name,)
    most, owner = 0, ""
    for spec in _others(lacking):
        if asked and (chosen is None or spec.card.name in chosen):
            held = len(asked & _query_ids(spec))
            if 2 * held > len(asked) and held > most:
                most, owner = held, spec.id
    count = f"All {most:,}" if most == len(asked) else f"{most:,} of {len(asked):,}"
    return (owner, f"{count} such ids are of {owner}.") if owner else None


def owners_of_images(ids: Collection[str], spec: BenchmarkSpec) -> str:
    """What is said of images that a gallery lacks: which known lists have them, or that none has.

    Args:
        ids: the images.
        spec: the benchmark whose gallery lacks them.

    Returns:
        A sentence; empty where no other list of the same pictures is on this machine.
    """
    left, owners = set(ids), []
    known = {other.id: listed for other in other_galleries(spec) if (listed := image_ids(other))}
    while known and (most := max(known, key=lambda name: len(known[name] & left))) and known[most] & left:
        owners.append(most)
        left -= known[most]
    if owners:
        whole = ", as where the whole image folder is ranked" if len(owners) > 1 else ""
        return f"{len(ids) - len(left):,} of {len(ids):,} are of {' and '.join(owners)}{whole}."
    if not known:
        return ""
    return (
        f"No other list that is known here ({', '.join(known)}) has one: was the whole image folder ranked?"
    )


def other_galleries(spec: BenchmarkSpec) -> list[BenchmarkSpec]:
    """The other lists of the same pictures, each once, those of the most similar protocol first."""
    seen, found = {_gallery(spec)}, []
    for other in _others(spec):
        own = other.config.gallery_from is None
        if own and _folder(other) == _folder(spec) and _gallery(other) not in seen:
            seen.add(_gallery(other))
            found.append(other)
    return found


def other_protocol(spec: BenchmarkSpec) -> str | None:
    """The benchmark that differs only in whether the reference stays in the ranking, or None."""
    for other in _of_same_queries(spec):
        if _gallery(other) == _gallery(spec) and other.config.reference != spec.config.reference:
            return other.id
    return None


def over_gallery(spec: BenchmarkSpec, ranked: BenchmarkSpec) -> str | None:
    """The benchmark that asks the same queries of another benchmark's gallery, or None.

    Args:
        spec: whose queries they are; those of an overlay are some of a benchmark's, and of no other.
        ranked: whose gallery it is.
    """
    found = (other.id for other in _of_same_queries(spec) if _gallery(other) == _gallery(ranked))
    return None if spec.overlay is not None else next(found, None)


def image_ids(spec: BenchmarkSpec) -> frozenset[str]:
    """The gallery of a benchmark that is on this machine; empty where it is not, or cannot be read."""
    from cir_datasets.images.locate import gallery_paths  # a file without fault needs no hint

    try:
        return frozenset(image for image, _ in gallery_paths(spec))
    except (CirError, OSError):
        return frozenset()


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
    if benchmark.per_query or used >= size or places < _PLACES or _declared(method, benchmark):
        return
    turns = benchmark.column("num_turns") if benchmark.multi_turn else repeat(1)
    excused = lists + max(lists, sum(map(operator.mul, map(len, benchmark.positives), turns)))
    free = used - int(np.searchsorted(np.cumsum(np.sort(counts[counts > 0])), excused, side="right"))
    # Any list that holds what was ranked leaves out less: where even this much says nothing, no card is read.
    if places - excused < _PLACES or _chance(size, used, free) >= _BOUND:
        return
    smaller = [each for each in other_galleries(benchmark.spec) if used <= (each.config.gallery or 0) < size]
    ranked = {image for image, count in zip(images, counts.tolist(), strict=True) if count}
    if not smaller or ranked <= set(chain.from_iterable(benchmark.positives)):
        return
    for other in sorted(smaller, key=lambda each: each.config.gallery or 0):
        known = image_ids(other)
        fits = ranked <= known < (benchmark.gallery_set or frozenset())
        if fits and _chance(size, len(known), free) < _BOUND:
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


def _chance(size: int, known: int, free: int) -> float:
    """That rankings of a gallery of some size leave out, in so many free places, all but `known` images."""
    return (1 + (size - known) / (_LESS_LIKELY * known)) ** -free


def _query_ids(spec: BenchmarkSpec) -> frozenset[str]:
    from cir_datasets.builders import builder_class
    from cir_datasets.sources import local_files

    name = "session_id" if spec.kind == "multi_turn" else "query_id"
    try:
        prepared = last_prepared(spec)
        if prepared is not None:
            return frozenset(read_table(prepared.rows_file, [name]).column(name).to_pylist())
        files = local_files(spec)
        if files is None or (spec.config.queries or 0) > _MANY:
            return frozenset()
        return frozenset(row[name] for row in builder_class(spec.card.name)(spec, files).rows())
    except (CirError, OSError):
        return frozenset()


def _others(spec: BenchmarkSpec | None) -> list[BenchmarkSpec]:
    """All benchmarks but this one, those of the most similar protocol first.

    Those that would have to be drawn first are left out: it takes longer than a hint is worth.
    """
    found = [registry.spec(name) for name in registry.benchmark_ids()]
    found = [each for each in found if each.card.source.publisher != "embedded" or last_prepared(each)]
    if spec is None:
        return found
    rule, listed = spec.config.reference, bool(spec.config.gallery_files)
    return sorted(
        (other for other in found if other.id != spec.base.id),
        key=lambda other: (other.config.reference != rule, bool(other.config.gallery_files) != listed),
    )


def _of_same_queries(spec: BenchmarkSpec) -> list[BenchmarkSpec]:
    """The other benchmarks of the same kind that have the same queries."""
    own = spec.card.name, spec.kind, spec.config.files
    return [other for other in _others(spec) if (other.card.name, other.kind, other.config.files) == own]


def _gallery(spec: BenchmarkSpec) -> tuple[object, ...]:
    """What tells one list of images from another."""
    lender = _lender(spec)
    return lender.card.name, lender.config.gallery_files or lender.config.files or lender.config_name


def _folder(spec: BenchmarkSpec) -> str:
    """The folder of the pictures."""
    card = _lender(spec).card
    return card.name if card.in_folder or card.image_folder is None else card.image_folder


def _lender(spec: BenchmarkSpec) -> BenchmarkSpec:
    """The benchmark whose list of images is ranked."""
    return spec if spec.config.gallery_from is None else registry.spec(spec.config.gallery_from)


def _declared(method: Method | None, benchmark: Benchmark) -> bool:
    """Whether the file says itself that it ranked something else."""
    if method is None:
        return False
    own = method.own_gallery.partition(":")[2]
    return bool(method.skipped_images) or own not in ("", benchmark.gallery_hash)
