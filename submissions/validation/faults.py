"""What is wrong with a file's rankings: every place is one finding of one cause, with its words and its fix.

Imported for a file that has something wrong, or a ranking that is longer than it needs to be.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Collection, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from cir_datasets.common.terminal import counted
from submissions.formats.native import UncheckedFile
from submissions.rank_file.benchmarks import MAX_DEPTH, SUBSET_DEPTH, Queries, image_family, well_formed
from submissions.rank_file.findings import MAX_EXAMPLES, Findings, ordinal, shown
from submissions.rank_file.model import LINES, LISTS, PARQUET, TREC
from submissions.rank_file.owners import (
    near_miss,
    other_protocol,
    owner_of,
    owners_of_images,
)

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec
    from cir_datasets.rows.benchmark import OwnLists

_LONGEST = 100
"""Characters of a query's id that may be meant for another."""
_SUBSETS = {
    TREC: "lines with the query id QUERY#subset",
    LINES: 'the field "subset_ranking" to each line',
    PARQUET: 'the column "subset_ranking"',
}
"""Where a file that is not JSON ranks the subsets."""
_SUBSET_FIX = "add {place}: three to five ids a query, best first, the reference left out"
_RANK_FIX = (
    "rank the subsets, too:  cir rank --benchmark {benchmark} --lists {file} --subset-lists FILE --method "
    "NAME --out FILE"
)
_OWNER_FIX = "name OWNER as its benchmark, or answer the queries of {benchmark}"
_KEPT_FIX = (
    "drop it, and add your next image to keep the length; rankings that keep the reference are handed in for "
    "OTHER"
)
_OWN_DEPTH_FIX = "rank at least {used} images a query, or its whole list where that is shorter"
_TOO_LONG_FIX = "keep the first of the two, and add nothing: rank each image of the query's own list once"
_JOIN_FIX = "join it with your other file:  cir convert {file} OTHER --benchmark {benchmark} --to native"


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


class Faults:
    """Notes what is wrong with the rankings of one file.

    Args:
        unchecked: the file, its structure checked.
        queries: the benchmark, without its ground truth.
        findings: collects what is wrong.
    """

    def __init__(self, unchecked: UncheckedFile, queries: Queries, findings: Findings) -> None:
        """See the class."""
        self.unchecked, self.queries, self.findings = unchecked, queries, findings
        self.family = image_family(unchecked.spec)
        self.elsewhere = False

    @functools.cached_property
    def _keeps(self) -> str | None:
        """The benchmark whose protocol keeps the reference, and which is else this one; or None."""
        return other_protocol(self.unchecked.spec)

    def note_rankings(self, near: Collection[str], *, part: bool) -> None:
        """Note what is wrong with the first rankings.

        Args:
            near: queries or sessions whose answers are looked at.
            part: whether the second rankings alone will do.
        """
        answers = self.unchecked.rankings
        if answers is None:
            if not part:
                self.findings.add(
                    "missing-query",
                    "the file ranks the subsets only; the board also needs rankings of the whole gallery.",
                    count=len(self.queries.num_turns),
                    fix=_JOIN_FIX.replace("OTHER", "RECALL"),
                )
            return
        others = note_unknown_queries(answers, self.queries, self.unchecked.spec, self.findings)
        gone = [query for query in self.queries.num_turns if query not in answers]
        self.elsewhere = others and len(gone) == len(self.queries.num_turns)
        if self.elsewhere:  # one finding says so, and no other has a fix that works
            return
        for query in gone:
            self._add("missing-query", f"{self._of_all(len(gone))} no ranking.", query)
        for query, wanted in self.queries.num_turns.items():
            if query not in near:
                continue
            answer = answers[query]
            if not self.queries.multi_turn:
                self._ranking(query, None, answer)
                continue
            if len(answer) != wanted:
                code = "missing-turn" if len(answer) < wanted else "extra-turn"
                self._add(code, f"the session has {wanted} turns, its answer {len(answer)} rankings.", query)
            for turn, ranking in enumerate(answer[:wanted], start=1):
                self._ranking(query, turn, ranking)

    def note_subsets(self, near: Collection[str], *, part: bool) -> None:
        """Note what is wrong with the second rankings.

        Args:
            near: queries whose answers are looked at.
            part: whether the first rankings alone will do.
        """
        if self.elsewhere:
            return
        answers, queries = self.unchecked.subset_rankings, self.queries
        if answers is None:
            if queries.subset_wanted and not part:
                self._missing_subsets()
            return
        if queries.subsets is None:
            message = (
                f"{queries.benchmark} has no subsets, so that there is nothing for subset_rankings to rank."
            )
            self.findings.add("not-in-subset", message, fix='drop "subset_rankings" from the file')
            return
        note_unknown_queries(answers, queries, self.unchecked.spec, self.findings, cause="subset")
        ranked = queries.num_turns if self.unchecked.rankings is None else self.unchecked.rankings
        for query in queries.subsets.position:
            if query in near:
                self._subset_ranking(query, answers[query], queries.subsets[query])
            elif query in ranked and query not in answers:
                self._add(
                    "missing-subset", "its subset is not ranked.", query, cause="some", fix=self._subset_fix()
                )

    def _missing_subsets(self) -> None:
        message = "the board shows Recall_subset, and no subset is ranked."
        fix = self._subset_fix()
        if self.unchecked.format == "cirr-server":
            message = "the file ranks for recall alone; the board also shows Recall_subset."
            fix = _JOIN_FIX.replace("OTHER", "RECALL_SUBSET")
        elif self.unchecked.format == LISTS:
            message = "the file ranks for recall alone; the board also shows Recall_subset."
            fix = _RANK_FIX
        self.findings.add("missing-subset", message, count=len(self.queries.num_turns), fix=fix)

    def _subset_fix(self) -> str | None:
        place = _SUBSETS.get(self.unchecked.kind)
        return None if place is None else _SUBSET_FIX.replace("{place}", place)

    def _ranking(self, query: str, turn: int | None, ids: list[Any]) -> None:
        queries, depth, present = self.queries, self.queries.depth, set(ids)
        required = queries.required(query, present, turn)
        if not ids:
            if turn is not None and self.unchecked.format == TREC:
                # A run cannot say that a ranking is empty: a turn without a line is one that is left out.
                self._add("missing-turn", "the TREC run has no line for this turn.", query, turn=turn)
            else:
                self._add("empty-ranking", "the ranking is empty.", query, turn=turn, depth=required)
            return
        if len(present) < len(ids):
            self._duplicates(query, turn, ids, "ranking", queries.own)
        if queries.gallery is not None:
            if not present <= queries.gallery:
                self._unknown_images(query, turn, ids, queries.gallery)
        elif not all(well_formed(self.family, image) for image in ids):
            self._malformed_images(query, turn, ids)
        if queries.own is not None:
            self._outside_own(query, ids, queries.own)
        removed = queries.removed.get(query)
        if removed is not None:
            reference = removed[(turn or 1) - 1]
            if reference is not None and reference in present:
                place = ids.index(reference) + 1
                message, fix = f"the reference image {shown(reference)} is ranked {ordinal(place)}. ", None
                if self.unchecked.spec.config.reference == "removed":
                    keeps = self._keeps
                    title = queries.title if keeps is None else queries.benchmark
                    code, why = "reference-ranked", f"{title} ranks the gallery without it."
                    fix = None if keeps is None else _KEPT_FIX.replace("OTHER", keeps)
                else:
                    code, why = "reference-contradiction", 'The method block says "reference": "removed".'
                details = {"turn": turn, "value": reference, "position": place, "fix": fix}
                self._add(code, message + why, query, cause="ranked", **details)
        if len(ids) < required:
            message = f"{counted(len(ids), 'image')}; {queries.readers} {required}."
            fix = None if queries.own is None else _OWN_DEPTH_FIX.format(used=depth.used)
            self._add("short-ranking", message, query, turn=turn, depth=required, fix=fix)
        elif len(ids) > MAX_DEPTH:
            message = f"{len(ids):,} images; at most {MAX_DEPTH:,} are accepted."
            self._add("long-ranking", message, query, turn=turn)
        elif len(ids) > depth.used:
            message = f"{len(ids):,} images; the board uses the first {depth.used}."
            self._add("deep-ranking", message, query, turn=turn)

    def _subset_ranking(self, query: str, ids: list[Any], members: frozenset[str]) -> None:
        needed = min(SUBSET_DEPTH, len(members))
        if not ids:
            message = "the subset ranking is empty."
            self._add("empty-ranking", message, query, cause="subset", depth=needed)
            return
        if len(set(ids)) < len(ids):
            self._duplicates(query, None, ids, "subset ranking", self.queries.subsets)
        reference = self.queries.references.get(query)
        if reference in ids:
            place = ids.index(reference) + 1
            message = (
                f"the reference image {shown(reference)} is ranked {ordinal(place)} in the subset; "
                "the other members are ranked."
            )
            fix = "drop it, add your next member to keep three, then run  cir validate {file}"
            details = {"value": reference, "position": place, "fix": fix}
            self._add("reference-ranked", message, query, cause="subset", **details)
        strange = set(ids) - members - {reference}
        self._not_listed("not-in-subset", query, ids, strange, "is not one of the query's subset")
        if len(ids) < needed:
            many = counted(len(ids), "image")
            message = f"{many} in the subset ranking; Recall_subset uses {needed}."
            self._add("short-ranking", message, query, cause="subset", depth=needed)

    def _outside_own(self, query: str, ids: list[Any], own: OwnLists) -> None:
        """Images of the benchmark that the query does not rank; a removed reference is said elsewhere."""
        strange = own.lacking(query, ids) - set(self.queries.removed.get(query, ()))
        if self.queries.gallery is not None:
            strange &= self.queries.gallery
        where = f"is not among the {own.length(query):,} images that this query ranks"
        self._not_listed("not-in-gallery", query, ids, strange, where)

    def _not_listed(
        self, code: str, query: str, ids: list[Any], strange: Collection[str], where: str
    ) -> None:
        """Note the images of a ranking that are not in the query's own list."""

        def message(place: int, image: str) -> str:
            return f"the {ordinal(place)} image {shown(image)} {where}."

        strangers = ((place, image) for place, image in enumerate(ids, start=1) if image in strange)
        self._at_places(code, "", query, None, strangers, message)

    def _duplicates(
        self, query: str, turn: int | None, ids: list[Any], part: str, lists: OwnLists | None
    ) -> None:
        held = len(ids) if lists is None else lists.length(query)
        too_long, fix, cause = "", None, part
        if len(ids) > held:  # there is no next image that could be added
            too_long = f" It holds {len(ids):,} images, where the query has {held:,} to rank."
            fix, cause = _TOO_LONG_FIX, f"{part}, longer than its list"
        first: dict[str, int] = {}
        again = (
            (place, image)
            for place, image in enumerate(ids, start=1)
            if first.setdefault(image, place) != place
        )
        self._at_places(
            "duplicate-image",
            cause,
            query,
            turn,
            again,
            lambda place, image: (
                f"{shown(image)} is ranked {ordinal(first[image])} and {ordinal(place)} in the {part}."
                f"{too_long}"
            ),
            fix=fix,
        )

    def _unknown_images(self, query: str, turn: int | None, ids: list[Any], gallery: frozenset[str]) -> None:
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

    def _malformed_images(self, query: str, turn: int | None, ids: list[Any]) -> None:
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
        for place, image in islice(places, MAX_EXAMPLES):
            said = functools.partial(message, place, image)
            self._add(code, said, query, turn=turn, cause=cause, value=image, position=place, fix=fix)
        more = sum(1 for _ in places)
        if more:
            self.findings.add(code, "", cause=cause, count=more)

    def _of_all(self, count: int) -> str:
        return f"{count:,} of {len(self.queries.num_turns):,} have" if count > 1 else "it has"

    def _add(
        self, code: str, message: str | Callable[[], str], query: str, *, cause: str = "", **details: Any
    ) -> None:
        depth = details.pop("depth", self.queries.depth.required)
        self.findings.add(code, message, query=query, cause=cause, depth=depth, **details)
