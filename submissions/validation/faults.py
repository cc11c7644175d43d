"""What is wrong with a file's rankings: every place is one finding of one cause, with its words and its fix.

Imported for a file that has something wrong, or a ranking that is longer than it needs to be.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from cir_datasets.common.terminal import counted
from submissions.rank_file.benchmarks import MAX_DEPTH, image_family, well_formed
from submissions.rank_file.findings import MAX_EXAMPLES, ordinal, shown
from submissions.rank_file.model import CIRR_SERVER, LINES, LISTS, PARQUET, TREC
from submissions.rank_file.owners import (
    near_miss,
    other_protocol,
    owner_of,
    owners_of_images,
)

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec
    from cir_datasets.rows.benchmark import OwnLists
    from submissions.formats.native import UncheckedFile
    from submissions.rank_file.benchmarks import AskedLists, Queries
    from submissions.rank_file.columns import Columns
    from submissions.rank_file.findings import Findings

_LONGEST = 100
"""Characters of a query's id that may be meant for another."""
_OWNER_FIX = "name OWNER as its benchmark, or answer the queries of {benchmark}"
_KEPT_FIX = (
    "drop it, and add your next image to keep the length; rankings that keep the reference are handed in for "
    "OTHER"
)
_OWN_DEPTH_FIX = "rank at least {used} images a query, or its whole list where that is shorter"
_TOO_LONG_FIX = "keep the first of the two, and add nothing: rank each image of the query's own list once"
_JOIN_FIX = "join it with your other file:  cir convert {file} OTHER --benchmark {benchmark} --to native"
_RANK_FIX = (
    "rank the subsets, too:  cir rank --benchmark {benchmark} --lists {file} --subset-lists FILE --method "
    "NAME --out FILE"
)
_SECOND_PLACES = {
    TREC: "lines with the query id QUERY#subset",
    LINES: 'the field "subset_ranking" to each line',
    PARQUET: 'the column "subset_ranking"',
}
"""Where a file that is not JSON holds the second rankings."""
_SECOND_FIX = "add {place}: three to five ids a query, best first, the reference left out"


@dataclass(frozen=True)
class _Phrases:
    """What findings say of one of the rankings that are asked.

    Args:
        noun: what it is called.
        cause: tells its findings from those of the other.
        missing: the code of a query without one.
        no_ranking: what is said of such a query, with how `many` there are.
        none: what is said of a file without any.
        other_file: what the CIRR server's file with it is called.
        not_listed: the code of an image that is not in the query's own list.
        where: what is said of such an image, with the list's `length`.
    """

    noun: str
    cause: str
    missing: str
    no_ranking: str
    none: str
    other_file: str
    not_listed: str
    where: str


_WORDS = {
    "rankings": _Phrases(
        noun="ranking",
        cause="",
        missing="missing-query",
        no_ranking="{many} no ranking.",
        none="the file ranks the subsets only; the board also needs rankings of the whole gallery.",
        other_file="RECALL",
        not_listed="not-in-gallery",
        where="is not among the {length:,} images that this query ranks",
    ),
    "subset_rankings": _Phrases(
        noun="subset ranking",
        cause="subset",
        missing="missing-subset",
        no_ranking="its subset is not ranked.",
        none="the file ranks for recall alone; the board also shows Recall_subset.",
        other_file="RECALL_SUBSET",
        not_listed="not-in-subset",
        where="is not one of the query's subset",
    ),
}


def note_unknown_queries(
    answers: Collection[str], queries: Queries, spec: BenchmarkSpec, findings: Findings, *, cause: str = ""
) -> bool:
    """Add a finding for each query that the benchmark does not have; whether they are another one's.

    Args:
        answers: query or session ids.
        queries: the benchmark, without its ground truth.
        spec: its card.
        findings: collects what is wrong.
        cause: distinguishes the subsets from the gallery.
    """
    kind = "session" if queries.multi_turn else "query"
    unknown = [query for query in answers if query not in queries.num_turns]
    owner = owner_of(unknown, spec) if unknown else None
    fix = None if owner is None else _OWNER_FIX.replace("OWNER", owner[0])
    for query in unknown[:MAX_EXAMPLES]:
        near = near_miss(query, queries.num_turns) or (query[:_LONGEST].lstrip("0") or "0")
        hint = f" Did you mean {shown(near)}?" if near in queries.num_turns else ""
        message = f"{queries.benchmark} has no such {kind}.{hint if owner is None else f' {owner[1]}'}"
        findings.add("unknown-query", message, query=query, cause=cause, value=query, fix=fix)
    if len(unknown) > MAX_EXAMPLES:
        findings.add("unknown-query", "", cause=cause, count=len(unknown) - MAX_EXAMPLES)
    return owner is not None


def note_faults(
    unchecked: UncheckedFile,
    queries: Queries,
    findings: Findings,
    suspects: Mapping[str, Collection[str]],
    *,
    part: bool,
) -> None:
    """Note what is wrong with the rankings that are asked.

    Args:
        unchecked: the file, its structure checked.
        queries: the benchmark, without its ground truth.
        findings: collects what is wrong.
        suspects: by the file's field the queries or sessions whose answers are looked at.
        part: whether one of two rankings will do.
    """
    for asked in queries.asked:
        faults = _Faults(unchecked, queries, asked, findings)
        answers: Columns | None = getattr(unchecked, asked.field)
        if answers is None:
            if asked.needed and not part:
                faults.note_none()
        elif faults.note_answers(answers, suspects[asked.field]):
            return
    if unchecked.subset_rankings is not None and len(queries.asked) == 1:
        message = f"{queries.benchmark} has no subsets, so that there is nothing for subset_rankings to rank."
        findings.add("not-in-subset", message, fix='drop "subset_rankings" from the file')


class _Faults:
    """Notes what is wrong with one of the rankings that are asked."""

    def __init__(
        self, unchecked: UncheckedFile, queries: Queries, asked: AskedLists, findings: Findings
    ) -> None:
        self.unchecked, self.queries, self.findings = unchecked, queries, findings
        self.asked, self.words = asked, _WORDS[asked.field]
        self.is_first = asked.field == "rankings"
        self.family = image_family(unchecked.spec)

    def note_none(self) -> None:
        """Note that the file has none at all."""
        message, fix = self.words.none, self._fix_of_missing()
        if self.is_first or self.unchecked.format == CIRR_SERVER:
            fix = _JOIN_FIX.replace("OTHER", self.words.other_file)
        elif self.unchecked.format == LISTS:
            fix = _RANK_FIX
        else:
            message = "the board shows Recall_subset, and no subset is ranked."
        self.findings.add(self.words.missing, message, count=len(self.queries.num_turns), fix=fix)

    def _fix_of_missing(self) -> str | None:
        place = None if self.is_first else _SECOND_PLACES.get(self.unchecked.kind)
        return None if place is None else _SECOND_FIX.replace("{place}", place)

    def note_answers(self, answers: Columns, suspects: Collection[str]) -> bool:
        """Note what is wrong with answers; whether they are another benchmark's, which hides all else.

        One finding says so then, and no other would have a fix that works.
        """
        words, num_turns, spec = self.words, self.queries.num_turns, self.unchecked.spec
        others = note_unknown_queries(answers, self.queries, spec, self.findings, cause=words.cause)
        # Who does not answer a query at all need not be told of its second ranking.
        due: Collection[str] = num_turns
        if not self.is_first and self.unchecked.rankings is not None:
            due = self.unchecked.rankings
        gone = [query for query in num_turns if query not in answers and query in due]
        if self.is_first and others and len(gone) == len(num_turns):
            return True
        many = f"{len(gone):,} of {len(num_turns):,} have" if len(gone) > 1 else "it has"
        for query in gone:
            message, cause = words.no_ranking.format(many=many), "" if self.is_first else "some"
            self._add(words.missing, message, query, cause=cause, fix=self._fix_of_missing())
        for query, turns in num_turns.items():
            if query not in suspects:
                continue
            if not self.queries.multi_turn:
                self._ranking(query, None, answers[query])
                continue
            answer = answers[query]
            if len(answer) != turns:
                code = "missing-turn" if len(answer) < turns else "extra-turn"
                message = f"the session has {turns} turns, its answer {len(answer)} rankings."
                self._add(code, message, query)
            for turn, ranking in enumerate(answer[:turns], start=1):
                self._ranking(query, turn, ranking)
        return False

    def _ranking(self, query: str, turn: int | None, ids: list[str]) -> None:
        """Note what is wrong with one ranking."""
        asked, words, present = self.asked, self.words, set(ids)
        required = asked.required(query, present, turn)
        if not ids and turn is not None and self.unchecked.format == TREC:
            # A run cannot say that a ranking is empty: a turn without a line is one that is left out.
            self._add("missing-turn", "the TREC run has no line for this turn.", query, turn=turn)
            return
        details: dict[str, Any] = {"turn": turn, "cause": words.cause, "depth": required}
        if not ids:
            self._add("empty-ranking", f"the {words.noun} is empty.", query, **details)
            return
        if len(present) < len(ids):
            self._duplicates(query, turn, ids)
        if asked.gallery is not None:
            if not present <= asked.gallery:
                self._unknown_images(query, turn, ids, asked.gallery)
        elif asked.own is None and not all(well_formed(self.family, image) for image in ids):
            self._malformed_images(query, turn, ids)
        removed = asked.removed.get(query)
        reference = None if removed is None else removed[(turn or 1) - 1]
        if reference is not None and reference in present:
            self._reference(query, turn, reference, ids.index(reference) + 1)
        if asked.own is not None:
            self._outside_own(query, ids, asked.own)
        if len(ids) < required:
            message = f"{counted(len(ids), 'image')}{asked.readers} {required}."
            fix = None if asked.own is None or asked.whole else _OWN_DEPTH_FIX.format(used=asked.depth.used)
            self._add("short-ranking", message, query, fix=fix, **details)
        elif asked.whole:
            return
        elif len(ids) > MAX_DEPTH:
            message = f"{len(ids):,} images; at most {MAX_DEPTH:,} are accepted."
            self._add("long-ranking", message, query, turn=turn)
        elif len(ids) > asked.depth.used:
            message = f"{len(ids):,} images; the board uses the first {asked.depth.used}."
            self._add("deep-ranking", message, query, turn=turn)

    def _reference(self, query: str, turn: int | None, reference: str, place: int) -> None:
        """Note a reference that stands in a ranking without it."""
        code, cause, fix = "reference-ranked", "ranked", None
        where = f"the reference image {shown(reference)} is ranked {ordinal(place)}"
        if not self.is_first:
            message, cause = f"{where} in the subset; the other members are ranked.", "subset"
            fix = "drop it, add your next member to keep three, then run  cir validate {file}"
        elif self.unchecked.spec.config.reference == "removed":
            keeps = self._keeps
            title = self.queries.title if keeps is None else self.queries.benchmark
            message = f"{where}. {title} ranks the gallery without it."
            fix = None if keeps is None else _KEPT_FIX.replace("OTHER", keeps)
        else:
            code = "reference-contradiction"
            message = f'{where}. The method block says "reference": "removed".'
        details: dict[str, Any] = {"value": reference, "position": place, "fix": fix}
        self._add(code, message, query, turn=turn, cause=cause, **details)

    @functools.cached_property
    def _keeps(self) -> str | None:
        """The benchmark whose protocol keeps the reference, and which is else this one; or None."""
        return other_protocol(self.unchecked.spec)

    def _outside_own(self, query: str, ids: list[str], own: OwnLists) -> None:
        """Images of the benchmark that the query does not rank; a removed reference is said elsewhere."""
        strange = own.lacking(query, ids) - set(self.asked.removed.get(query, ()))
        if self.asked.gallery is not None:
            strange &= self.asked.gallery
        where = self.words.where.format(length=own.length(query))

        def message(place: int, image: str) -> str:
            return f"the {ordinal(place)} image {shown(image)} {where}."

        strangers = ((place, image) for place, image in enumerate(ids, start=1) if image in strange)
        self._at_places(self.words.not_listed, "", query, None, strangers, message)

    def _duplicates(self, query: str, turn: int | None, ids: list[str]) -> None:
        noun = self.words.noun
        own = self.asked.own
        held = len(ids) if own is None else own.length(query)
        too_long, fix, cause = "", None, noun
        if len(ids) > held:  # there is no next image that could be added
            too_long = f" It holds {len(ids):,} images, where the query has {held:,} to rank."
            fix, cause = _TOO_LONG_FIX, f"{noun}, longer than its list"
        first: dict[str, int] = {}
        again = (
            (place, image)
            for place, image in enumerate(ids, start=1)
            if first.setdefault(image, place) != place
        )

        def message(place: int, image: str) -> str:
            places = f"{ordinal(first[image])} and {ordinal(place)}"
            return f"{shown(image)} is ranked {places} in the {noun}.{too_long}"

        self._at_places("duplicate-image", cause, query, turn, again, message, fix=fix)

    def _unknown_images(self, query: str, turn: int | None, ids: list[str], gallery: frozenset[str]) -> None:
        def message(place: int, image: str) -> str:
            near = near_miss(image, gallery)
            hint = f" Did you mean {shown(near)}?" if near is not None else self._strangers(gallery)
            return f"the {ordinal(place)} image {shown(image)} is not in the gallery.{hint}"

        wrong = ((place, image) for place, image in enumerate(ids, start=1) if image not in gallery)
        self._at_places("unknown-image", "", query, turn, wrong, message)

    def _strangers(self, gallery: frozenset[str]) -> str:
        """How many images from outside the gallery there are, how often they stand first, whose they are."""
        columns = self.unchecked.rankings
        if columns is None or columns.unreadable:  # Lists that are not there cannot be counted.
            return ""
        strange = np.array([image not in gallery for image in columns.image_ids], dtype=np.bool_)
        count, filled = int(strange.sum()), columns.lengths > 0
        first = int(strange[columns.codes[columns.offsets[:-1][filled]]].sum())
        outside = itertools.compress(columns.image_ids, strange.tolist())
        return (
            f" In all {counted(count, 'image')} from outside, first in {first:,} of "
            f"{counted(len(filled), 'list')}. {owners_of_images(list(outside), self.unchecked.spec)}"
        ).rstrip()

    def _malformed_images(self, query: str, turn: int | None, ids: list[str]) -> None:
        def message(place: int, image: str) -> str:
            return f"the {ordinal(place)} image {shown(image)} is not a COCO id (12 digits)."

        ranked = enumerate(ids, start=1)
        wrong = ((place, image) for place, image in ranked if not well_formed(self.family, image))
        self._at_places("unknown-image", "form", query, turn, wrong, message)

    def _at_places(
        self,
        code: str,
        cause: str,
        query: str,
        turn: int | None,
        places: Iterator[tuple[int, str]],
        message: Callable[[int, str], str],
        fix: str | None = None,
    ) -> None:
        """Note every place of a ranking, and explain those that are shown: a hostile list has millions."""
        details: dict[str, Any] = {"turn": turn, "cause": cause, "fix": fix}
        for place, image in islice(places, MAX_EXAMPLES):
            explained = functools.partial(message, place, image)
            self._add(code, explained, query, value=image, position=place, **details)
        more = sum(1 for _ in places)
        if more:
            self.findings.add(code, "", cause=cause, count=more)

    def _add(
        self,
        code: str,
        message: str | Callable[[], str],
        query: str,
        *,
        depth: int | None = None,
        **details: Any,
    ) -> None:
        depth = self.asked.depth.required if depth is None else depth
        self.findings.add(code, message, query=query, depth=depth, **details)
