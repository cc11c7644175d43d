"""Lists of image ids that a user already has, as a rank file: references taken out, cut, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

from cir_datasets.common.terminal import counted
from cir_datasets.rows.benchmark import AskedRanking, first_ranking
from cir_metrics.ids import alike, as_list, order_fault, plain_id
from cir_metrics.pairing import answered_once, warn_of_padding
from submissions.errors import MethodError
from submissions.methods.turns import Candidates, Turn, removed_reference, turns_of
from submissions.rank_file.benchmarks import SUBSET_DEPTH, Spelling, image_family, well_formed
from submissions.rank_file.model import BUNDLE, RANK_FILE, turn_key
from submissions.running.answers import Answers
from submissions.running.by_lists import checked_ranking
from submissions.running.user_ids import (
    Joined,
    Names,
    RankSettings,
    by_member,
    check_keys,
    depth_of,
    described,
    given_ids,
    own_gallery,
    parts_of,
    ranked_parts,
    rows_and_turns,
)

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.rank_file.model import Method, RankBundle, RankFile


def rank_file_from_lists(
    benchmark: str | Benchmark,
    lists: Mapping[str, Any],
    subset_lists: Mapping[str, Any] | None = None,
    *,
    image_ids: Sequence[str] | None = None,
    method: str | Method,
    k: int | None = None,
) -> RankFile | RankBundle:
    """The rank file of rankings that are plain lists of image ids.

    The reference is taken out where the protocol removes it, and rankings are cut to what the board uses.

    Args:
        benchmark: an id or a benchmark; or a suite's id, and then lists are given by member, as in
            `{"dress": {...}, "shirt": {...}, "toptee": {...}}`.
        lists: by query id its images, best first, none twice. Of sessions by `SESSION#TURN`, turns from 1; or
            by session id a list of such lists, one a turn. A data frame's index holds the queries, its rows
            the images.
        subset_lists: by query id the images of its subset, best first (CIRR, shapes). Where it is not given,
            the order is that of `lists`, which then hold three images of each subset at least.
        image_ids: what was ranked, where the publisher's list of the gallery is not available (CIRCO without
            COCO's list); the signature of a score says so.
        method: its name, or a `Method` with what else is to be known.
        k: images a ranking, 1 to 1,000; default: what the board's metrics use.

    Returns:
        A rank file; of a suite a bundle of one a member.

    Raises:
        UnknownNameError: no benchmark has that id.
        MethodError: a query or an image is unknown, missing or given twice; a ranking is too short.
        SourceError: the benchmark's data is not available.

    Example:
        >>> import cir_datasets
        >>> shapes = cir_datasets.load("shapes/val")
        >>> made = rank_file_from_lists(
        ...     shapes, {query: shapes.gallery for query in shapes.query_ids}, method="As they stand")
        >>> len(made.rankings), len(made.rankings[shapes.query_ids[0]])
        (300, 50)
    """
    given = {"lists": lists, "subset_lists": subset_lists, "image_ids": image_ids}
    parts = parts_of(benchmark, given, Names(), by_member)
    return ranked_parts(benchmark, parts, ranked_by_lists, RankSettings(method, k))


def ranked_by_lists(
    benchmark: Benchmark, given: Mapping[str, Any], names: Names, settings: RankSettings
) -> RankFile:
    """What `rank_file_from_lists` does for one benchmark.

    Args:
        benchmark: what is ranked.
        given: `lists`, and `subset_lists` and `image_ids` where they were given.
        names: what messages call these.
        settings: how it is ranked.
    """
    rows, turns = rows_and_turns(benchmark)
    by_key = _by_key(given.get("lists"), benchmark, names)
    check_keys(list(by_key), list(turns), benchmark, names, "lists")
    own = given.get("image_ids")
    own = None if own is None else own_gallery(own, benchmark, names)
    images = benchmark.gallery if own is None else own
    # Without any list of the gallery what is ranked is all that is known of it.
    known = Candidates(benchmark, [] if images is None else images)
    method, depth = described(settings.method, benchmark, own), depth_of(benchmark, settings.k)
    task = Joined(benchmark, rows, turns, list(turns), known, method, depth, names)
    whole = {key: _ranking(by_key[key], key, "lists", task) for key in task.keys}
    second = _second_rankings(given.get("subset_lists"), whole, task) if settings.ranks_second else {}
    ranked = {
        key: _checked(found, turns[key], task, listed=images is not None) for key, found in whole.items()
    }
    return task.rank_file(Answers(benchmark, list(ranked), list(ranked.values()), second))


def _by_key(lists: Any, benchmark: Benchmark, names: Names) -> dict[str, Any]:
    """The lists by query id or `SESSION#TURN`."""
    called = names.of("lists")
    entries = _named_entries(lists)
    if entries is None:
        raise MethodError(
            f"{called}: of type {type(lists).__name__}. Fix: give {{query id: [image ids, best first]}}."
        )
    if not entries:
        raise MethodError(f"{called}: empty. Fix: give a list for each query.")
    if isinstance(lists, Mapping):
        _check_plain(lists, called, benchmark)
    named = _named(entries, called, benchmark)
    if not benchmark.multi_turn:
        return named
    sessions = {row["session_id"]: len(turns_of(row)) for row in benchmark.rows()}
    found: dict[str, Any] = {}
    for key, answer in named.items():
        if key not in sessions:
            found[key] = answer
            continue
        if fault := order_fault(answer):
            raise MethodError(f"{names.at('lists', key)}: {fault}. Fix: give a list of rankings, one a turn.")
        rankings = as_list(answer)
        _check_turns(rankings, sessions[key], names.at("lists", key))
        for number, ranking in enumerate(rankings, start=1):
            found[turn_key(key, number)] = ranking
    return found


def _check_plain(lists: Mapping[Any, Any], called: str, benchmark: Benchmark) -> None:
    """Refuse a whole rank file, or a part of one, whose lists stand one level further down."""
    if lists.get("format") in (RANK_FILE, BUNDLE):
        raise MethodError(
            f"{called}: it is a rank file already. Fix: use it as it is, for example with  cir score FILE"
        )
    if not isinstance(lists.get("rankings"), Mapping) or "rankings" in benchmark.query_ids:
        return
    raise MethodError(
        f'{called}: the lists stand below the key "rankings". Fix: give the object below it alone, '
        "{query id: [image ids, best first]}."
    )


def _check_turns(rankings: list[Any], turns: int, place: str) -> None:
    """Refuse a session's answer that is one list of images, or is not a list a turn."""
    if rankings and all(plain_id(each) is not None for each in rankings):
        raise MethodError(
            f"{place}: one list of {len(rankings)} image ids, for a session of {counted(turns, 'turn')}. "
            "Fix: give a list for each turn, [[ids of turn 1], [ids of turn 2], ...]."
        )
    if len(rankings) != turns:
        raise MethodError(
            f"{place}: {counted(len(rankings), 'list')}, for a session of {counted(turns, 'turn')}. "
            "Fix: give one list for each turn."
        )


def _named(entries: Sequence[tuple[Any, Any]], called: str, benchmark: Benchmark) -> dict[str, Any]:
    """The lists by query ids as strings; equal ones of one id, as of 5 and "5", count once."""
    keys = [plain_id(key) for key, _ in entries]
    if None in keys:
        strange = entries[keys.index(None)][0]
        raise MethodError(f"{called}: the key {strange!r} is not an id. Fix: give query ids as strings.")
    answers: list[Any] = keys
    if len(set(keys)) < len(keys):
        known = frozenset(benchmark.gallery or ())
        answers = [_comparable(answer, known) for _, answer in entries]
    kept, other = answered_once(keys, answers)
    if other is not None:
        raise MethodError(
            f"{called}: {entries[other][0]!r} is query {keys[other]!r}, which has another list already. "
            "Fix: give each query one."
        )
    if len(kept) < len(keys):
        warn_of_padding(called, keys, kept)
    return {str(keys[place]): entries[place][1] for place in kept}


def _comparable(answer: Any, known: Set[str]) -> Any:
    """An answer as it is compared with another to the same query; as it is printed, where it is none."""
    listed = [] if order_fault(answer) else as_list(answer)
    ids = [plain_id(image) for image in listed]
    if ids and all(ids):
        return alike(ids, known)
    turns = [[] if order_fault(turn) else [plain_id(image) for image in as_list(turn)] for turn in listed]
    return alike(turns, known) if turns and all(ids and all(ids) for ids in turns) else repr(answer)


def _ranking(given: Any, key: str, argument: str, task: Joined) -> list[str]:
    """A list of ids, in the benchmark's spelling."""
    ids = given_ids(given, task.names.at(argument, key), "ranking")
    return Spelling(image_family(task.benchmark.spec), task.gallery.place.keys()).all(ids)


def _checked(images: list[str], turn: Turn, task: Joined, *, listed: bool) -> list[str]:
    """A ranking without its removed reference, cut, and checked."""
    place, gallery = task.names.at("lists", turn.key), task.gallery
    left_out, wanted = removed_reference(turn, gallery), task.depth
    first = first_ranking(task.benchmark.spec)
    if first.column:
        few = Candidates(task.benchmark, first.images(task.by_query[turn.key]))
        return checked_ranking(place, images, turn, few, min(wanted, len(few.ids)), "the query's own gallery")
    if listed:
        wanted = min(wanted, len(gallery.ids) - (left_out in gallery.place))
    else:
        family = image_family(task.benchmark.spec)
        wrong = next((image for image in images if not well_formed(family, image)), None)
        if wrong is not None:
            raise MethodError(
                f"{place}: {wrong!r:.100} is not an image's id. Fix: write COCO ids, 12 digits."
            )
        gallery = Candidates(task.benchmark, images)
    return checked_ranking(place, images, turn, gallery, wanted)


def _second_rankings(given: Any, whole: Mapping[str, list[str]], task: Joined) -> dict[str, list[str]]:
    """The second rankings by query id: what was given, or else the order of the lists."""
    names, second = task.names, task.second
    called = names.of("subset_lists")
    if given is None:
        if second is None:
            return {}
        return {key: _implied(row, second, whole[key], task) for key, row in task.by_query.items()}
    if second is None:
        raise MethodError(f"{called}: {task.benchmark.id} ranks no subsets. Fix: leave it out.")
    entries = _named_entries(given)
    if entries is None:
        raise MethodError(
            f"{called}: of type {type(given).__name__}. Fix: give {{query id: [images of its subset]}}."
        )
    given = _named(entries, called, task.benchmark)
    check_keys(list(given), list(task.by_query), task.benchmark, names, "subset_lists")
    found = {}
    for key, row in task.by_query.items():
        few = Candidates(task.benchmark, second.images(row))
        images = [
            image
            for image in _ranking(given[key], key, "subset_lists", task)
            if image != row["reference_image_id"]
        ]
        place = names.at("subset_lists", key)
        found[key] = checked_ranking(place, images, task.turns[key], few, SUBSET_DEPTH, "the query's subset")
    return found


def _implied(row: dict[str, Any], second: AskedRanking, images: list[str], task: Joined) -> list[str]:
    """The best of a query's second list in the order of its first: what is not listed stands behind."""
    members = set(second.images(row))
    best = list(dict.fromkeys(image for image in images if image in members))
    if len(best) < SUBSET_DEPTH:
        raise MethodError(
            f"{task.names.of('subset_lists')} is not given, and {task.names.at('lists', row['query_id'])} "
            f"holds {len(best)} of the {len(members)} images of the query's subset, where {SUBSET_DEPTH} are "
            "wanted. "
            f"Fix: {task.names.giving('subset_lists')}, the images of each subset, best first; or list the "
            "whole gallery. For Recall@K alone write the lists as JSON and run  "
            f"cir score FILE --benchmark {task.benchmark.id}"
        )
    return best[:SUBSET_DEPTH]


def _named_entries(value: Any) -> list[tuple[Any, Any]] | None:
    """Entries with their names: of a mapping, or of a data frame or series by its index; else None."""
    if isinstance(value, Mapping):
        return list(value.items())
    return list(zip(value.index.tolist(), as_list(value), strict=True)) if hasattr(value, "iloc") else None
