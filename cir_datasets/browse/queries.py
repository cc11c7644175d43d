"""The queries that somebody looks through: what filters let through, and each as every page shows it."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cir_datasets.rows.caption_aspects import query_aspects
from cir_datasets.rows.right import right_answers

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec
    from cir_datasets.rows.records import Row

_NEGATIVES = 10
"""Hard negatives of a query that are shown beside its targets."""
_FEW = 5
"""Targets and other positives of a query that is shown in short."""


@dataclass(frozen=True)
class ShownRanking:
    """The beginning of one ranking.

    Args:
        top: image ids, best first.
        rank: rank of the best target, from 1; None where none is listed, or targets are not public.
        listed: how many images the ranking has.
        known: whether the targets are public.
        others: images that are shown behind, without a rank: of a subset those that are not ranked.
    """

    top: tuple[str, ...]
    rank: int | None
    listed: int
    known: bool = True
    others: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """Where the target stands."""
        if not self.known:
            return "the ground truth is not public"
        return (
            f"target not among its {self.listed:,}" if self.rank is None else f"target at rank {self.rank:,}"
        )


@dataclass(frozen=True)
class ShownTurn:
    """A turn of a session, a round of a dialogue, or the only one of a query.

    Args:
        reference: the image that it starts from, or None.
        caption: its words, of several captions a line each.
        rankings: one a heading of the page.
    """

    reference: str | None
    caption: str
    rankings: Sequence[ShownRanking] = ()


@dataclass(frozen=True)
class QueryView:
    """A query or session as templates take it.

    Args:
        id: of the query or session.
        aspects: what it asks for.
        targets: the right answers.
        positives: other images that are right, and do not count.
        negatives: hard negatives that are shown beside them.
        turns: at least one.
        kinds: `good`, `right` or `bad` of the images that are a target, another positive, a hard negative.
        more: targets and positives that are left out.
    """

    id: str
    aspects: Sequence[str]
    targets: Sequence[str]
    positives: Sequence[str]
    negatives: Sequence[str]
    turns: Sequence[ShownTurn]
    kinds: Mapping[str, str]
    more: int = 0

    @classmethod
    def of(
        cls, row: Row, metrics: Sequence[str], rankings: Sequence[Sequence[ShownRanking]] = ()
    ) -> QueryView:
        """The view of a row.

        Args:
            row: the query or session.
            metrics: as for `right_answers`.
            rankings: of each turn, one a heading; hard negatives are not shown apart from them.
        """
        session = "turns" in row
        targets = right_answers(row, metrics)
        positives = [] if session else [image for image in row["positive_image_ids"] if image not in targets]
        negatives = list(row.get("negative_image_ids") or ())
        turns = [
            ShownTurn(
                turn["reference_image_id"],
                "\n".join(turn.get("captions") or filter(None, [turn["relative_caption"]])),
                rankings[place] if rankings else (),
            )
            for place, turn in enumerate(row["turns"] if session else [row])
        ]
        kinds = dict.fromkeys(negatives, "bad") | dict.fromkeys(positives, "right")
        return cls(
            row["session_id" if session else "query_id"],
            list(row.get("aspects") or ()),
            targets,
            positives,
            [] if rankings else negatives[:_NEGATIVES],
            turns,
            kinds | dict.fromkeys(targets, "good"),
        )

    @property
    def in_short(self) -> QueryView:
        """Without hard negatives, and with as many right answers as fit."""
        targets = self.targets[:_FEW]
        positives = self.positives[: max(0, _FEW - len(targets))]
        more = len(self.targets) + len(self.positives) - len(targets) - len(positives)
        return replace(self, targets=targets, positives=positives, negatives=(), more=more)

    @property
    def references(self) -> Sequence[str]:
        """The images that its turns start from."""
        return [turn.reference for turn in self.turns if turn.reference is not None]

    def images(self) -> Iterator[str]:
        """All that are shown; some come several times."""
        yield from (*self._marked(), *self.references)

    def marks(self) -> set[str]:
        """The kinds that are shown."""
        return {self.kinds[image] for image in self._marked() if image in self.kinds}

    def _marked(self) -> Iterator[str]:
        for images in (self.targets, self.positives, self.negatives):
            yield from images
        for turn in self.turns:
            for ranking in turn.rankings:
                yield from (*ranking.top, *ranking.others)


OUTCOMES = {
    (True,): "hit",
    (False,): "miss",
    (True, False): "won",
    (False, True): "lost",
    (True, True): "both hit",
    (False, False): "both miss",
}
"""What is said of a query by the hits of one method, or of two; filters show them in this order."""


@dataclass(frozen=True)
class Choice:
    """A filter of a page of queries.

    Args:
        name: in the address.
        label: what the page calls it.
        options: by value what it is called; that of all is empty.
        chosen: one of them.
    """

    name: str
    label: str
    options: Mapping[str, str]
    chosen: str = ""


@dataclass(frozen=True)
class QueryRows:
    """The queries or sessions of a benchmark by id, in its order.

    Args:
        spec: the benchmark.
        rows: by id.
    """

    spec: BenchmarkSpec
    rows: Mapping[str, Row]

    @functools.cached_property
    def aspects(self) -> Mapping[str, NDArray[np.bool_]]:
        """By aspect which queries have it, the most frequent first."""
        names = self.spec.card.report.aspect_names
        named = [set(query_aspects(row, names)) for row in self.rows.values()]
        known = sorted(set().union(*named))
        having = {aspect: np.array([aspect in each for each in named]) for aspect in known}
        return dict(sorted(having.items(), key=lambda item: -int(item[1].sum())))

    @functools.cached_property
    def places(self) -> Mapping[str, int]:
        """The place of each id."""
        return {name: place for place, name in enumerate(self.rows)}

    @functools.cached_property
    def longest(self) -> int:
        """Turns of the longest session; 1 where there are none."""
        return int(self.turns.max(initial=1))

    @functools.cached_property
    def texts(self) -> Sequence[tuple[str, ...]]:
        """What is searched of each: its id, and the caption of each turn."""
        return [
            (name, *(caption_of(turn) for turn in row.get("turns") or [row]))
            for name, row in self.rows.items()
        ]

    @functools.cached_property
    def turns(self) -> NDArray[np.int64]:
        """How many turns each has, shape (queries,)."""
        return np.array([len(row.get("turns") or (1,)) for row in self.rows.values()], dtype=np.int64)

    def choices(self, hits: Sequence[NDArray[np.bool_]] = ()) -> list[Choice]:
        """What the queries may be filtered by: aspect, number of turns, and how they come out.

        Args:
            hits: of one or two methods, which queries each hits.
        """
        counts = {"aspect": {name: int(each.sum()) for name, each in self.aspects.items()}}
        if self.longest > 1:
            counts["turns"] = Counter(map(str, sorted(self.turns.tolist())))
        if hits:
            came_out = Counter(self.outcomes(hits))
            counts["outcome"] = {
                name: came_out[name] for of, name in OUTCOMES.items() if len(of) == len(hits)
            }
        return [
            Choice(name, name.capitalize(), {"": "all"} | {one: f"{one} ({n:,})" for one, n in each.items()})
            for name, each in counts.items()
            if each
        ]

    def outcomes(self, hits: Sequence[NDArray[np.bool_]]) -> list[str]:
        """How each query comes out, as one of `OUTCOMES`."""
        return [OUTCOMES[tuple(each)] for each in np.stack(hits, axis=1).tolist()]

    def fitting(
        self, text: str, chosen: Mapping[str, str], hits: Sequence[NDArray[np.bool_]] = ()
    ) -> NDArray[np.bool_]:
        """Which queries filters let through.

        Args:
            text: in the id or in a caption of any turn, in capitals or not; empty for all.
            chosen: by the name of a choice one of its options; empty for all.
            hits: of each method, which queries it hits.
        """
        fits = np.ones(len(self.rows), dtype=np.bool_)
        if text:
            fits &= [any(text.casefold() in each.casefold() for each in texts) for texts in self.texts]
        if chosen.get("aspect"):
            fits &= self.aspects[chosen["aspect"]]
        if chosen.get("turns"):
            fits &= self.turns == int(chosen["turns"])
        if chosen.get("outcome"):
            fits &= np.array(self.outcomes(hits)) == chosen["outcome"]
        return fits


def caption_of(turn: Mapping[str, Any]) -> str:
    """What a turn, or a query of one turn, says; empty where it has no words.

    Args:
        turn: a row of single queries, or one of the turns of a session.

    Example:
        >>> caption_of({"captions": ["is red", "has dots"], "relative_caption": "is red"})
        'is red, and has dots'
    """
    return ", and ".join(turn.get("captions") or filter(None, [turn["relative_caption"]]))
