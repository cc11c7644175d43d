"""A query or session as every page shows it: the question, what is right, and what methods rank first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cir_datasets.rows.right import right_answers

if TYPE_CHECKING:
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
