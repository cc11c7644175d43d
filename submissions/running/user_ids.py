"""The ids of what a user already has, joined to a benchmark's: what its rows and columns are."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from cir_datasets.registry.suites import find_suite
from cir_datasets.rows.benchmark import AskedRanking, second_on_board
from cir_datasets.rows.hashing import gallery_hash
from cir_metrics.errors import InputError, did_you_mean
from cir_metrics.ids import check_ids, is_frame, plain_id
from cir_metrics.pairing import answered_once, warn_of_padding
from submissions.errors import MethodError
from submissions.methods.turns import Candidates, Turn, turns_of
from submissions.rank_file.benchmarks import MAX_DEPTH, Spelling, board_depth, image_family, well_formed
from submissions.rank_file.model import Method, RankBundle, RankFile, answer_of, checked_method
from submissions.rank_file.owners import owner_of, owners_of_images
from submissions.running.answers import Answers, declaring_reference
from submissions.running.make import loaded_benchmark

if TYPE_CHECKING:
    from cir_datasets.registry.suites import Suite
    from cir_datasets.rows.benchmark import Benchmark

_SHOWN = 100
"""Characters of an id that a near one is looked for."""


@dataclass(frozen=True)
class Names:
    """What messages call what was given: arguments of Python, or options and files of a command.

    Args:
        files: by argument the file that it was read from.
        options: by argument how it is given at the command line.
        member: the suite's member that it is of, or empty.
        lines: arguments whose file has an id a line.

    Example:
        >>> Names().at("query_ids", 5), Names().giving("query_ids")
        ('query_ids[5]', 'pass query_ids=')
        >>> option = {"query_ids": "--queries FILE"}
        >>> asked = Names({"query_ids": "Q.txt"}, option, lines=frozenset(option))
        >>> asked.at("query_ids", 5), asked.giving("query_ids")
        ('Q.txt, line 6,', 'add --queries FILE')
    """

    files: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    member: str = ""
    lines: frozenset[str] = frozenset()

    def of(self, argument: str) -> str:
        """What an argument is called."""
        called = self.options.get(argument, argument).partition(" ")[0]
        called = self.files.get(argument, called)
        return called if not self.member or argument in self.files else f"{called}[{self.member!r}]"

    def at(self, argument: str, place: int | str) -> str:
        """A place in it, from 0."""
        if argument in self.lines and isinstance(place, int):
            return f"{self.of(argument)}, line {place + 1},"
        return f"{self.of(argument)}[{place!r}]"

    def giving(self, argument: str) -> str:
        """How to give it."""
        option = self.options.get(argument)
        return f"pass {argument}=" if option is None else f"add {option}"


@dataclass(frozen=True)
class RankSettings:
    """How what a user has is ranked.

    Args:
        method: its name, or a `Method`.
        k: images a ranking; None: what the board's metrics use.
        by_position: whether ids that are not given are the benchmark's own, in its order.
        normalise: whether embeddings are brought to length 1 first.
        ranks_second: whether a second ranking is wanted where the benchmark asks for one.
    """

    method: str | Method
    k: int | None = None
    by_position: bool = False
    normalise: bool = True
    ranks_second: bool = True


@dataclass(frozen=True, eq=False)
class Joined:
    """A benchmark, and what a user's rows and columns are in it.

    Args:
        benchmark: what is ranked.
        rows: its queries or sessions.
        turns: its turns by key, which is a query's id or `SESSION#TURN`.
        keys: key of each of the user's rows.
        gallery: image of each of the user's columns.
        method: who answers; it names a gallery that is the user's own.
        depth: images a ranking.
        names: what messages call the arguments.
    """

    benchmark: Benchmark
    rows: list[dict[str, Any]]
    turns: Mapping[str, Turn]
    keys: list[str]
    gallery: Candidates
    method: Method
    depth: int
    names: Names

    @functools.cached_property
    def by_query(self) -> dict[str, dict[str, Any]]:
        """The rows of queries by their ids, of sessions none."""
        return {} if self.benchmark.multi_turn else {row["query_id"]: row for row in self.rows}

    @functools.cached_property
    def second(self) -> AskedRanking | None:
        """The second ranking that is asked of each query, or None."""
        return second_on_board(self.benchmark.spec)

    def asked(self, keys: Sequence[str]) -> tuple[list[Turn], list[dict[str, Any]]]:
        """The turns of some keys, and their queries; none of sessions."""
        rows = [] if self.benchmark.multi_turn else [self.by_query[key] for key in keys]
        return [self.turns[key] for key in keys], rows

    def rank_file(self, answers: Answers) -> RankFile:
        """The rank file of the answers to the user's rows; equal ones of one key count once.

        Raises:
            MethodError: two rows of one key have different rankings.
        """
        kept, other = answered_once(answers.keys, answers.lists)
        if other is not None:
            raise MethodError(
                f"{self.names.at('query_ids', other)} is {self.keys[other]!r}, which a row before it "
                "is, with other values. Fix: give each query one row."
            )
        if len(kept) < len(answers.keys):
            warn_of_padding(self.names.of("query_ids"), self.keys, kept)
        return answers.rank_file(self.method)


def joined(benchmark: Benchmark, given: Mapping[str, Any], names: Names, settings: RankSettings) -> Joined:
    """Rows and columns joined to a benchmark by their ids.

    Args:
        benchmark: what is ranked.
        given: `query_ids`, the id of each row, of a session's turn `SESSION#TURN`; `image_ids`, the id of
            each column.
        names: what messages call the arguments.
        settings: how it is ranked.

    Raises:
        MethodError: ids are missing, unknown, or given twice; k is out of range.
    """
    rows, turns = rows_and_turns(benchmark)
    by_position = settings.by_position
    keys = _query_keys(given.get("query_ids"), list(turns), benchmark, names, by_position=by_position)
    images = _columns(given.get("image_ids"), benchmark, names, by_position=by_position)
    method = declaring_reference(described(settings.method, benchmark, images), benchmark)
    gallery, depth = Candidates(benchmark, images), depth_of(benchmark, settings.k)
    return Joined(benchmark, rows, turns, keys, gallery, method, depth, names)


def unframed(
    given: Mapping[str, Any], argument: str, axes: Mapping[str, str], names: Names
) -> Mapping[str, Any]:
    """What was given, a data frame as its array and the ids that its index and columns hold.

    Args:
        given: by argument what was given.
        argument: which may be a data frame.
        axes: by argument of ids the axis that holds them. What pandas has numbered itself holds none.
        names: what messages call the arguments.

    Raises:
        MethodError: ids are given, too, and are others.
    """
    frame: Any = given.get(argument)
    if not is_frame(frame):
        return given
    found = {**given, argument: frame.to_numpy()}
    for ids, axis in axes.items():
        labels = getattr(frame, axis)
        if type(labels).__name__ == "RangeIndex":
            continue
        if given.get(ids) is not None and list(map(plain_id, given[ids])) != list(map(plain_id, labels)):
            raise MethodError(
                f"{names.of(argument)}: its {axis} and {names.of(ids)} differ. Fix: leave {ids} out."
            )
        found[ids] = labels.tolist()
    return found


def rows_and_turns(benchmark: Benchmark) -> tuple[list[dict[str, Any]], dict[str, Turn]]:
    """A benchmark's rows, and its turns by key, in its order."""
    rows = benchmark.rows()
    return rows, {turn.key: turn for row in rows for turn in turns_of(row)}


def depth_of(benchmark: Benchmark, k: int | None) -> int:
    """Images a ranking.

    Raises:
        MethodError: k is not a whole number from 1 to 1,000.
    """
    if k is None:
        return board_depth(benchmark).used
    try:
        depth = 0 if isinstance(k, bool) else operator.index(k)
    except TypeError:
        depth = 0
    if not 1 <= depth <= MAX_DEPTH:
        raise MethodError(f"k={k!r}; it is 1 to {MAX_DEPTH:,}. Fix: leave it out for what the board uses.")
    return depth


def described(method: str | Method, benchmark: Benchmark, images: Sequence[str] | None) -> Method:
    """The method block; a gallery that the user named stands in it.

    Args:
        method: its name, or a `Method`.
        benchmark: what is ranked.
        images: what was ranked; None where nobody says it.

    Raises:
        MethodError: the name is refused, or `method` is something else.
    """
    given = method if isinstance(method, Method) else {"name": method}
    found = checked_method(given, MethodError, "pass a name of 1 to 80 characters")
    if benchmark.gallery is not None or images is None:
        return found
    return found.model_copy(update={"own_gallery": f"{len(images)}:{gallery_hash(images)}"})


def _query_keys(
    given: Sequence[str] | None, known: list[str], benchmark: Benchmark, names: Names, *, by_position: bool
) -> list[str]:
    """The query or turn of each row."""
    if given is None and by_position:
        return known
    keys = _ids(given, "query_ids", "row", names)
    if len(keys) <= len(known):
        _check_once(keys, "query_ids", "row", names)  # What samplers pad is more than there is.
    check_keys(keys, known, benchmark, names, "query_ids")
    return keys


def check_keys(
    keys: Sequence[str], known: Sequence[str], benchmark: Benchmark, names: Names, argument: str
) -> None:
    """Refuse queries or turns that the benchmark does not have, and those that are left out.

    Args:
        keys: those that are answered, distinct.
        known: the benchmark's.
        benchmark: whose they are.
        names: what messages call the arguments.
        argument: which holds the keys.

    Raises:
        MethodError: one is unknown or missing.
    """
    shape = "SESSION#TURN" if benchmark.multi_turn else "query id"
    said = f"{benchmark.id} has no such {shape}"
    _check_known(keys, known, argument, said, names, benchmark)
    held = set(keys)
    gone = [key for key in known if key not in held]
    if gone:
        raise MethodError(
            f"{names.of(argument)}: {len(gone):,} of {len(known):,} of {benchmark.id} are missing, "
            f"{gone[0]!r} first. Fix: answer every "
            f"{'turn of every session' if benchmark.multi_turn else 'query'}."
        )


def _columns(
    given: Sequence[str] | None, benchmark: Benchmark, names: Names, *, by_position: bool
) -> list[str]:
    """The image of each column."""
    gallery = benchmark.gallery
    if given is None and by_position:
        if gallery is None:
            raise MethodError(
                f"the gallery list of {benchmark.id} is not available, so that columns have no names. "
                f"Fix: {names.giving('image_ids')}, the images that you ranked."
            )
        return list(gallery)
    return own_gallery(given, benchmark, names)


def own_gallery(given: Sequence[str] | None, benchmark: Benchmark, names: Names) -> list[str]:
    """The images that were ranked: the benchmark's gallery in any order, or a list of the user's own.

    Raises:
        MethodError: an image is unknown, missing, named twice or of a wrong form; or a list of the user's own
            lacks what the benchmark's queries need.
    """
    gallery = benchmark.gallery
    spelling = Spelling(image_family(benchmark.spec), gallery or ())
    images = _ids(given, "image_ids", "column", names, spelling.all)
    if gallery is None:
        _check_form(images, benchmark, names)
        return images
    said = f"the gallery of {benchmark.id} has no such image"
    _check_known(images, gallery, "image_ids", said, names, benchmark)
    if len(images) < len(gallery):
        held = set(images)
        first = next(image for image in gallery if image not in held)
        raise MethodError(
            f"{names.of('image_ids')}: {len(gallery) - len(images):,} of {len(gallery):,} images of "
            f"{benchmark.id} are missing, {first!r} first. Fix: rank the whole gallery; a score of -inf puts "
            "an image last."
        )
    return images


def _check_form(images: list[str], benchmark: Benchmark, names: Names) -> None:
    """A list of the user's own holds ids of the right form, and what queries need of it."""
    family, whole = image_family(benchmark.spec), "Fix: rank the whole gallery."
    for place, image in enumerate(images):
        if not well_formed(family, image):
            raise MethodError(f"{names.at('image_ids', place)} is {image!r}. Fix: write COCO ids, 12 digits.")
    held = set(images)
    for query, positives in zip(benchmark.query_ids, benchmark.positives, strict=True):
        # Which image it is would tell the answer.
        if not held.issuperset(positives):
            raise MethodError(
                f"{names.of('image_ids')}: a right answer of query {query!r} is not in it. {whole}"
            )
    if len(images) < board_depth(benchmark).used:
        raise MethodError(f"{names.of('image_ids')} has {len(images)} images. {whole}")


def not_given(argument: str, of: str, names: Names) -> MethodError:
    """The error where the ids of rows or columns are neither given nor the benchmark's own."""
    either = names.options.get("by_position", "by_position=True")
    return MethodError(
        f"{names.of(argument)} is not given. Fix: {names.giving(argument)}, an id a {of}; or {either} where "
        f"the {of}s stand in the benchmark's order."
    )


def _ids(
    given: Sequence[str] | None,
    argument: str,
    of: str,
    names: Names,
    spelled: Callable[[list[str]], list[str]] | None = None,
) -> list[str]:
    called = names.of(argument)
    if given is None:
        raise not_given(argument, of, names)
    named = "a query" if argument == "query_ids" else "an image"
    ids = given_ids(given, called, f"{of} index", named, functools.partial(names.at, argument))
    if not ids:
        raise MethodError(f"{called} is empty. Fix: name each {of}.")
    if spelled is None:
        return ids  # Rows may be there twice, where samplers pad (`answers`).
    ids = spelled(ids)
    _check_once(ids, argument, of, names)
    return ids


def given_ids(
    given: Any, called: str, what: str, of: str = "an image", at: Callable[[int], str] | None = None
) -> list[str]:
    """Ids as the metrics check them, some of which may be there twice: see `cir_metrics.ids.check_ids`.

    Raises:
        MethodError: they are no ordered list, or one is no id.
    """
    try:
        ids = check_ids(given, called, what=what, of=of, allow_empty=True, distinct=False, at=at)
    except InputError as error:
        raise MethodError(str(error)) from error
    return list(map(str, ids))  # numpy's texts are texts.


def _check_once(ids: Sequence[str], argument: str, of: str, names: Names) -> None:
    _, again = answered_once(ids, range(len(ids)))
    if again is not None:
        raise MethodError(
            f"{names.at(argument, ids.index(ids[again]))} and {names.at(argument, again)} are both "
            f"{ids[again]!r}. Fix: name each {of} once."
        )


def _check_known(
    ids: Sequence[str], known: Sequence[str], argument: str, said: str, names: Names, benchmark: Benchmark
) -> None:
    there = set(known)
    place = next((place for place, each in enumerate(ids) if each not in there), None)
    if place is None:
        return
    each = ids[place]
    if argument in ("query_ids", "image_ids"):
        where = f"{names.at(argument, place)} is {each!r:.{_SHOWN}}"
    else:
        where = names.at(argument, each[:_SHOWN])
    elsewhere = _elsewhere([each for each in ids if each not in there], len(ids), argument, names, benchmark)
    if elsewhere:
        raise MethodError(f"{where}: {said}. {elsewhere}")
    near = did_you_mean(each, there) if len(each) < _SHOWN else ""
    raise MethodError(f"{where}: {said}.{near} Fix: correct it, or leave it out with what it names.")


def _elsewhere(ids: Sequence[str], asked: int, argument: str, names: Names, benchmark: Benchmark) -> str:
    """What unknown ids are: images for queries, queries for images, another split's; empty where unknown."""
    of_images = argument == "image_ids"
    turns = rows_and_turns(benchmark)[1]
    others = set(turns) if of_images else set(benchmark.gallery or ())
    if others.issuperset(ids):
        kind, right = ("queries", "query_ids") if of_images else ("images", "image_ids")
        return f"All are ids of its {kind}. Fix: give them as {names.of(right)}."
    owner = None if of_images else owner_of(ids, benchmark.spec)
    said = owners_of_images(ids, benchmark.spec) if of_images else owner[1] if owner else ""
    if said:
        return f"{said} Fix: name that benchmark, or give the ids of {benchmark.id}."
    if len(ids) < asked:
        return ""
    known = next(iter(benchmark.gallery or () if of_images else turns), None)
    example = "" if known is None else f", such as {known!r}"
    return f"None of the {len(ids):,} ids is of {benchmark.id}. Fix: give its ids{example}."


Part = tuple["str | Benchmark", Mapping[str, Any], Names]
"""A benchmark, by argument what was given of it, and what messages call these."""


def parts_of(
    benchmark: str | Benchmark,
    given: Mapping[str, Any],
    names: Names,
    split: Callable[[Suite, str, Any, Names], dict[str, Any]],
) -> list[Part]:
    """What a user has by benchmark: of a suite a part a member.

    Args:
        benchmark: an id or a benchmark, or a suite's id.
        given: by argument what was given, None where nothing was.
        names: what messages call the arguments.
        split: of a suite what was given of each member, by the member's id.

    Raises:
        MethodError: as `split` does.
    """
    given = {argument: value for argument, value in given.items() if value is not None}
    suite = find_suite(benchmark) if isinstance(benchmark, str) else None
    if suite is None:
        return [(benchmark, given, names)]
    parts = {argument: split(suite, argument, value, names) for argument, value in given.items()}
    return [
        (member, {argument: part[member] for argument, part in parts.items()}, replace(names, member=member))
        for member in suite.benchmarks
    ]


def ranked_parts(
    benchmark: str | Benchmark,
    parts: Sequence[Part],
    make: Callable[[Benchmark, Mapping[str, Any], Names, RankSettings], RankFile],
    settings: RankSettings,
) -> RankFile | RankBundle:
    """The rank file of what a user has; of a suite a bundle.

    Args:
        benchmark: an id or a benchmark, or a suite's id.
        parts: as `parts_of` gives them.
        make: makes one rank file, by scores, embeddings or lists.
        settings: how all are ranked.

    Raises:
        CirError: a benchmark is not known or its data is not available, and as `make` does.
    """
    runs = [make(loaded_benchmark(asked), given, names, settings) for asked, given, names in parts]
    return answer_of(benchmark if isinstance(benchmark, str) else runs[0].benchmark, runs)


def by_member(suite: Suite, argument: str, value: Any, names: Names) -> dict[str, Any]:
    """What was given of each member, by the member's id."""
    called = names.of(argument)
    short = [member.partition("/")[2] for member in suite.benchmarks]
    if not isinstance(value, Mapping):
        raise MethodError(
            f"{called} is of type {type(value).__name__}; {suite.id} is a suite. "
            f"Fix: give one for each member: {', '.join(short)}."
        )
    named = {name: suite.member(name) for name in value}
    for misfit in suite.fit(list(named.values())):
        if misfit.cause == "nameless":
            raise MethodError(
                f"{called}[{list(named)[misfit.number]!r:.100}]: {suite.id} has no such member. "
                f"Fix: name its members: {', '.join(short)}."
            )
        if misfit.cause == "twice":
            raise MethodError(f"{called}: {misfit.name} is named twice. Fix: name each member once.")
        raise MethodError(
            f"{called}: {misfit.name} is missing. Fix: give one for each member: {', '.join(short)}."
        )
    return {member: value[name] for name, member in named.items() if member is not None}
