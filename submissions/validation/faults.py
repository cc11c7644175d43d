"""What is wrong with a file's rankings: every place is one finding of one cause, with its words and its fix;
and what is odd about the file as a whole: the data it answers, what it declares, the gallery that it ranked.

Imported for a file that has something wrong or odd, or a ranking that is longer than it needs to be.

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

import functools
import itertools
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from cir_datasets.common.terminal import counted
from submissions.rank_file.benchmarks import MAX_DEPTH, image_family, well_formed
from submissions.rank_file.findings import MAX_EXAMPLES, OTHER_GALLERY, REPAIRED, ordinal, shown
from submissions.rank_file.model import CIRR_SERVER, JSON_RUN, LINES, LISTS, PARQUET, SECTIONS, TREC
from submissions.rank_file.owners import (
    image_ids,
    near_miss,
    other_galleries,
    other_protocol,
    over_gallery,
    owner_of,
    owners_of_images,
)

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec
    from cir_datasets.rows.benchmark import Benchmark
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
    JSON_RUN: 'a key "QUERY#subset" for each query',
    LINES: 'the field "subset_ranking" to each line',
    PARQUET: 'the column "subset_ranking"',
}
"""Where a file that is not JSON holds the second rankings."""
_SECOND_FIX = "add {place}: three to five ids a query, best first, the reference left out"

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
        suspects: by section of the file the queries or sessions whose answers are looked at.
        part: whether one of two rankings will do.
    """
    for asked, kind in zip(queries.asked, (_Faults, _SecondFaults), strict=False):
        faults = kind(unchecked, queries, asked, findings)
        answers: Columns | None = getattr(unchecked, asked.section)
        if answers is None:
            if asked.needed and not part:
                faults.note_none()
        elif faults.note_answers(answers, suspects[asked.section]):
            return
    if unchecked.subset_rankings is not None and len(queries.asked) == 1:
        message = f"{queries.benchmark} has no subsets, so that there is nothing for subset_rankings to rank."
        findings.add("not-in-subset", message, fix='drop "subset_rankings" from the file')


class _Faults:
    """Notes what is wrong with the rankings that are asked; here stand the words for the first of two."""

    noun = "ranking"
    cause = ""
    missing, not_listed = "missing-query", "not-in-gallery"
    is_first = True

    def __init__(
        self, unchecked: UncheckedFile, queries: Queries, asked: AskedLists, findings: Findings
    ) -> None:
        self.unchecked, self.queries, self.asked, self.findings = unchecked, queries, asked, findings
        self.family = image_family(unchecked.spec)

    def note_none(self) -> None:
        """Note that the file has none at all."""
        message, fix = self._words_of_none()
        self.findings.add(self.missing, message, count=len(self.queries.num_turns), fix=fix)

    def _words_of_none(self) -> tuple[str, str | None]:
        message = "the file ranks the subsets only; the board also needs rankings of the whole gallery."
        return message, _JOIN_FIX.replace("OTHER", "RECALL")

    def note_answers(self, answers: Columns, suspects: Collection[str]) -> bool:
        """Note what is wrong with answers; whether they are another benchmark's, which hides all else.

        One finding says so then, and no other would have a fix that works.
        """
        num_turns, spec = self.queries.num_turns, self.unchecked.spec
        others = note_unknown_queries(answers, self.queries, spec, self.findings, cause=self.cause)
        gone = {query: turns for query, turns in num_turns.items() if query not in answers}
        if self.is_first and others and len(gone) == len(num_turns):
            return True
        in_order = gone | num_turns if self.is_first else num_turns
        for query, turns in in_order.items():
            if query in gone:
                self._missing(query, len(gone))
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

    def _missing(self, query: str, count: int) -> None:
        many = f"{count:,} of {len(self.queries.num_turns):,} have" if count > 1 else "it has"
        self._add(self.missing, f"{many} no ranking.", query)

    def _ranking(self, query: str, turn: int | None, ids: list[str]) -> None:
        """Note what is wrong with one ranking."""
        asked, gallery, present = self.asked, self.asked.gallery, set(ids)
        required = asked.required(query, present, turn)
        if not ids and turn is not None and self.unchecked.format in (TREC, JSON_RUN):
            # A run hardly says that a ranking is empty: a turn without a score is one that is left out.
            self._add("missing-turn", "the run has no score for this turn.", query, turn=turn)
            return
        details: dict[str, Any] = {"turn": turn, "cause": self.cause, "depth": required}
        if not ids:
            self._add("empty-ranking", f"the {self.noun} is empty.", query, **details)
            return
        if len(present) < len(ids):
            self._duplicates(query, turn, ids)
        if gallery is not None:
            strange = present - gallery
            self._images(
                "unknown-image", query, turn, ids, strange, lambda image: self._unknown(image, gallery)
            )
        elif asked.own is None:
            strange = {image for image in present if not well_formed(self.family, image)}
            why = "is not a COCO id (12 digits)."
            self._images("unknown-image", query, turn, ids, strange, lambda _: why, cause="form")
        reference = asked.references.of(query, turn or 1) if asked.removes else None
        if reference is not None and reference in present:
            place = ids.index(reference) + 1
            self._reference(query, turn, reference, place)
        if asked.own is not None:
            # A removed reference was said, and so were images of no query.
            strange = asked.own.lacking(query, ids) - {reference}
            strange = strange if gallery is None else strange & gallery
            why = self._not_listed(asked.own.length(query))
            self._images(self.not_listed, query, None, ids, strange, lambda _: why)
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

    def _not_listed(self, length: int) -> str:
        return f"is not among the {length:,} images that this query ranks."

    def _reference(self, query: str, turn: int | None, reference: str, place: int) -> None:
        """Note a reference that stands in a ranking without it."""
        code, fix = "reference-contradiction", None
        why = 'The method block says "reference": "removed".'
        if self.unchecked.spec.config.reference == "removed":
            keeps = self._keeps
            code, fix = "reference-ranked", None if keeps is None else _KEPT_FIX.replace("OTHER", keeps)
            name = self.queries.title if keeps is None else self.queries.benchmark
            why = f"{name} ranks the gallery without it."
        message = f"the reference image {shown(reference)} is ranked {ordinal(place)}. {why}"
        details: dict[str, Any] = {"value": reference, "position": place, "fix": fix}
        self._add(code, message, query, turn=turn, cause="ranked", **details)

    @functools.cached_property
    def _keeps(self) -> str | None:
        """The benchmark whose protocol keeps the reference, and which is else this one; or None."""
        return other_protocol(self.unchecked.spec)

    def _duplicates(self, query: str, turn: int | None, ids: list[str]) -> None:
        held = len(ids) if self.asked.own is None else self.asked.own.length(query)
        too_long, fix, cause = "", None, self.noun
        if len(ids) > held:  # there is no next image that could be added
            too_long = f" It holds {len(ids):,} images, where the query has {held:,} to rank."
            fix, cause = _TOO_LONG_FIX, f"{self.noun}, longer than its list"
        first: dict[str, int] = {}
        numbered = enumerate(ids, start=1)
        again = ((place, image) for place, image in numbered if first.setdefault(image, place) != place)

        def message(place: int, image: str) -> str:
            places = f"{ordinal(first[image])} and {ordinal(place)}"
            return f"{shown(image)} is ranked {places} in the {self.noun}.{too_long}"

        self._at_places("duplicate-image", query, turn, again, message, cause=cause, fix=fix)

    def _unknown(self, image: str, gallery: frozenset[str]) -> str:
        near = near_miss(image, gallery)
        hint = self._strangers(gallery) if near is None else f" Did you mean {shown(near)}?"
        return f"is not in the gallery.{hint}"

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

    def _images(
        self,
        code: str,
        query: str,
        turn: int | None,
        ids: list[str],
        strange: Collection[str],
        why: Callable[[str], str],
        *,
        cause: str = "",
    ) -> None:
        """Note the images of a ranking that may not stand in it."""
        places = ((place, image) for place, image in enumerate(ids, start=1) if image in strange)

        def message(place: int, image: str) -> str:
            return f"the {ordinal(place)} image {shown(image)} {why(image)}"

        self._at_places(code, query, turn, places, message, cause=cause)

    def _at_places(
        self,
        code: str,
        query: str,
        turn: int | None,
        places: Iterator[tuple[int, str]],
        message: Callable[[int, str], str],
        **details: Any,
    ) -> None:
        """Note every place of a ranking, and explain those that are shown: a hostile list has millions."""
        for place, image in islice(places, MAX_EXAMPLES):
            explained = functools.partial(message, place, image)
            self._add(code, explained, query, turn=turn, value=image, position=place, **details)
        more = sum(1 for _ in places)
        if more:
            self.findings.add(code, "", cause=details["cause"], count=more)

    def _add(self, code: str, message: str | Callable[[], str], query: str, **details: Any) -> None:
        self.findings.add(code, message, query=query, **{"depth": self.asked.depth.required, **details})


class _SecondFaults(_Faults):
    """Notes what is wrong with the second rankings: those of the query's subset."""

    noun = "subset ranking"
    cause = "subset"
    missing, not_listed = "missing-subset", "not-in-subset"
    is_first = False

    def _words_of_none(self) -> tuple[str, str | None]:
        others = {CIRR_SERVER: _JOIN_FIX.replace("OTHER", "RECALL_SUBSET"), LISTS: _RANK_FIX}
        if self.unchecked.format in others:
            message = "the file ranks for recall alone; the board also shows Recall_subset."
            return message, others[self.unchecked.format]
        return "the board shows Recall_subset, and no subset is ranked.", self._fix()

    def _fix(self) -> str | None:
        place = _SECOND_PLACES.get(self.unchecked.kind)
        return None if place is None else _SECOND_FIX.replace("{place}", place)

    def _missing(self, query: str, count: int) -> None:
        first = self.unchecked.rankings
        if first is None or query in first:  # Else the first rankings say it.
            self._add(self.missing, "its subset is not ranked.", query, cause="some", fix=self._fix())

    def _not_listed(self, length: int) -> str:
        return "is not one of the query's subset."

    def _reference(self, query: str, turn: int | None, reference: str, place: int) -> None:
        where = f"the reference image {shown(reference)} is ranked {ordinal(place)}"
        fix = "drop it, add your next member to keep three, then run  cir validate {file}"
        details: dict[str, Any] = {"cause": self.cause, "value": reference, "position": place, "fix": fix}
        self._add(
            "reference-ranked", f"{where} in the subset; the other members are ranked.", query, **details
        )
