"""From the lists of a method that ranks by itself (`Ranker`) to rankings, and what is checked of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cir_datasets.common.progress import step_progress
from submissions.errors import MethodError
from submissions.methods.protocols import Ranker
from submissions.methods.sc4cir import by_rank
from submissions.methods.turns import Candidates, Turn, removed_reference, turns_of, with_references
from submissions.methods.user_methods import describe_method, listed
from submissions.rank_file.owners import near_miss
from submissions.running.answers import Answers, ByRank

if TYPE_CHECKING:
    from submissions.methods.reverse_processes import Ways
    from submissions.rank_file.model import RankFile
    from submissions.running.options import RunOptions

_ROWS = 256
"""Queries or sessions that are ranked at once."""


class ByLists(ByRank):
    """A method that ranks by itself.

    Args:
        name: what the method is called in messages.
        method: who ranks.
        gallery: the images to rank, and whose they are.
        options: of the run.
    """

    def __init__(self, name: str, method: Ranker, gallery: Candidates, options: RunOptions) -> None:
        """See the class."""
        super().__init__(options.rerank_top)
        self._name, self._method, self._gallery = name, method, gallery

    def rank(self, k: int, *, whole: bool) -> RankFile:
        """The rank file of its rankings.

        Args:
            k: images a ranking.
            whole: whether second rankings hold all that they rank, instead of what a board asks for.

        Raises:
            MethodError: the method gives too few lists, too short ones, an image twice or an unknown one.
        """
        benchmark = self._gallery.benchmark
        described = describe_method(self._name, self._method)
        answers, rows = Answers(benchmark), benchmark.rows()
        with step_progress(f"{self._name}: ranking {benchmark.id}", len(rows)) as advance:
            for start in range(0, len(rows), _ROWS):
                block = rows[start : start + _ROWS]
                turns = [turn for row in block for turn in turns_of(row)]
                answers.take(ListOrder(turns, self._name, self._method, self._gallery), block, k, whole=whole)
                advance(len(block))
        return answers.rank_file(described)

    @property
    def ways(self) -> Ways:
        """S2: `by_rank` of the reference in its list for (c, T'); 0 behind N."""
        from submissions.methods.reverse_processes import Ways

        return Ways(self._back, self._back)

    def _back(self, turns: Sequence[Turn], references: Sequence[str]) -> list[float]:
        found = [0.0] * len(turns)
        for wider, places in with_references(self._gallery, references):
            some = ListOrder([turns[place] for place in places], self._name, self._method, wider)
            for place, ranking in zip(places, some.best(self._top), strict=True):
                own = dict(zip(ranking, by_rank(self._top, ranking), strict=True))
                found[place] = own.get(references[place], 0.0)
        return found


@dataclass(frozen=True)
class ListOrder:
    """Images in the order in which a method ranks them, checked: it may be a stranger's.

    Args:
        turns: who asks.
        name: what the method is called in messages.
        ranker: the method.
        gallery: what is ranked.
    """

    turns: Sequence[Turn]
    name: str
    ranker: Ranker
    gallery: Candidates

    def best(self, k: int) -> list[list[str]]:
        """The k best images of the gallery for each turn, without removed references."""
        most = k + self.gallery.benchmark.excludes_reference
        lists = listed(self.name, self.ranker, self.turns, self.gallery, most)
        ranked = []
        for turn, ranking in zip(self.turns, lists, strict=True):
            left_out = removed_reference(turn, self.gallery)
            needed = min(k, len(self.gallery.ids) - (left_out in self.gallery.place))
            place = f"{self.name}, turn {turn.key}"
            ranked.append(checked_ranking(place, ranking, turn, self.gallery, needed))
        return ranked

    def few(self, place: int, images: Sequence[str], k: int) -> list[str]:
        """The k best of a few images for the turn at that place."""
        few = Candidates(self.gallery.benchmark, images)
        return ListOrder([self.turns[place]], self.name, self.ranker, few).best(k)[0]


def checked_ranking(
    place: str,
    images: Sequence[str],
    turn: Turn,
    gallery: Candidates,
    wanted: int,
    of: str = "the gallery",
) -> list[str]:
    """One ranking without its removed reference, cut and checked.

    Args:
        place: where messages find it.
        images: ids, best first.
        turn: what it answers.
        gallery: the images that may stand in it.
        wanted: images that are kept.
        of: what messages call the gallery.

    Raises:
        MethodError: an image is unknown or listed twice, or there are too few.
    """
    left_out = removed_reference(turn, gallery)
    kept = [image for image in images if image != left_out]
    unknown = next((image for image in kept if image not in gallery.place), None)
    if unknown is not None:
        near = near_miss(unknown, gallery.place)
        hint = "" if near is None else f" Did you mean {near!r}?"
        raise MethodError(f"{place}: {unknown!r:.100} is not in {of}.{hint} Fix: rank images of {of}.")
    if len(set(kept)) < len(kept):
        twice = next(image for image, count in Counter(kept).items() if count > 1)
        raise MethodError(f"{place}: an image is listed twice, {twice!r}. Fix: list it once.")
    if len(kept) < wanted:
        behind = " beside the reference" if len(kept) < len(images) else ""
        raise MethodError(
            f"{place}: {len(kept)} images{behind}, and {wanted} are wanted. "
            f"Fix: list {wanted} of them, or all of {of} where these are fewer."
        )
    return kept[:wanted]
