"""Whose ids those are that a benchmark does not have: another split's queries, another gallery's images.

Only what is on this machine is looked at: nothing is downloaded for a hint, and where nothing is known,
nothing is said. All doors ask here, so that one mistake has the same name everywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Set
from typing import TYPE_CHECKING

from cir_datasets import registry
from cir_datasets.prepared import last_prepared
from cir_datasets.rows import read_table
from cir_metrics.errors import CirError
from cir_metrics.ids import spellings
from submissions.rank_file.model import TURN

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec

_MANY = 30_000
"""Queries of a benchmark that are not read for a hint: it would cost more than the file itself."""


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
    chosen = datasets if lacking is None else (lacking.card.name,)
    asked, held = len(sessions_of(ids)), held_by(ids, lacking, datasets=chosen)
    owner = next(iter(held), "")
    if 2 * held.get(owner, 0) <= asked:
        return None
    count = f"All {asked:,}" if held[owner] == asked else f"{held[owner]:,} of {asked:,}"
    return owner, f"{count} such ids are of {owner}."


def held_by(
    ids: Collection[str],
    lacking: BenchmarkSpec | None = None,
    *,
    datasets: Collection[str] | None = None,
) -> dict[str, int]:
    """By benchmark how many of some query ids it has, those that have most first, of these the smallest.

    Args:
        ids: of queries or sessions, or of turns (`SESSION#TURN`).
        lacking: a benchmark that is left out; None: none is.
        datasets: names of the data sets that are looked at; None: all.
    """
    asked, found = sessions_of(ids), {}
    for spec in _others(lacking):
        if asked and (datasets is None or spec.card.name in datasets):
            known = _query_ids(spec)
            if held := len(asked & known):
                found[spec.id] = held, -len(known)
    ordered = sorted(found, key=lambda name: found[name], reverse=True)
    return {name: found[name][0] for name in ordered}


def sessions_of(ids: Iterable[str]) -> set[str]:
    """Ids of queries or sessions, those of turns without the turn."""
    return {each.rpartition(TURN)[0] or each for each in ids}


def near_miss(given: str, known: Iterable[str]) -> str | None:
    """The known id that was probably meant: the same in another case, or with blanks around it.

    Example:
        >>> near_miss(" DEV-0-0-img0.jpg", frozenset(["dev-0-0-img0"]))
        'dev-0-0-img0'
    """
    pool = known if isinstance(known, Set) else frozenset(known)
    text = given.strip()
    for written in (text, text.upper(), text.lower()):
        if written in pool:
            return written
        if found := spellings([written], pool):
            return found[written]
    return None


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


def galleries_of_queries(spec: BenchmarkSpec) -> list[BenchmarkSpec]:
    """The benchmark and those that ask its queries of other lists of images, each list once."""
    found = {_gallery(each): each for each in reversed([spec, *_of_same_queries(spec)])}
    return [*reversed(found.values())]


def same_queries(spec: BenchmarkSpec) -> list[str]:
    """Ids of the benchmark and of those that ask the same queries by another protocol."""
    return [spec.id, *(each.id for each in _of_same_queries(spec))]


def known_list(ids: Collection[str], spec: BenchmarkSpec) -> tuple[str, int]:
    """The smallest known list of the benchmark's pictures that has some images, and its size.

    Returns:
        The id of the benchmark whose list it is, the given one first of those that share it; empty, and 0,
        where no list has them all.
    """
    wanted = frozenset(ids)
    known = {each.id: image_ids(each) for each in (spec, *other_galleries(spec))}
    sizes = {name: len(listed) for name, listed in known.items() if wanted and wanted <= listed}
    smallest = min(sizes, key=sizes.__getitem__, default="")
    return smallest, sizes.get(smallest, 0)


def image_ids(spec: BenchmarkSpec) -> frozenset[str]:
    """The gallery of a benchmark that is on this machine; empty where it is not, or cannot be read."""
    from cir_datasets.images.locate import gallery_paths  # a file without fault needs no hint

    try:
        return frozenset(image for image, _ in gallery_paths(spec))
    except (CirError, OSError):
        return frozenset()


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
