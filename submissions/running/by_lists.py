"""From the lists of a method that ranks by itself (`Ranker`) to rankings, and what is checked of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cir_datasets.common.progress import step_progress
from cir_datasets.rows.benchmark import AskedRanking, first_ranking, second_on_board
from submissions.errors import MethodError
from submissions.methods.protocols import Ranker
from submissions.methods.sc4cir import by_rank
from submissions.methods.turns import Candidates, Turn, removed_reference, turns_of, with_references
from submissions.methods.user_methods import describe_method, listed
from submissions.rank_file.benchmarks import SUBSET_DEPTH
from submissions.rank_file.owners import near_miss
from submissions.running.answers import Answers

if TYPE_CHECKING:
    from submissions.encoders.protocol import Encoder
    from submissions.methods.reverse_processes import Ways
    from submissions.rank_file.model import RankFile
    from submissions.running.options import RunOptions

_ROWS = 256
"""Queries or sessions that are ranked at once."""


class ByLists:
    """A method that ranks by itself.

    Args:
        name: what the method is called in messages.
        method: who ranks.
        gallery: the images to rank, and whose they are.
        options: of the run.
    """

    encoder: Encoder | None = None
    missing: frozenset[str] = frozenset()

    def __init__(self, name: str, method: Ranker, gallery: Candidates, options: RunOptions) -> None:
        """See the class."""
        self._name, self._method, self._gallery = name, method, gallery
        self._top = options.rerank_top

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
        first, second = first_ranking(benchmark.spec), second_on_board(benchmark.spec)
        with step_progress(f"{self._name}: ranking {benchmark.id}", len(rows)) as advance:
            for start in range(0, len(rows), _ROWS):
                block = rows[start : start + _ROWS]
                if first.column:
                    ranked = [self._own_list(row, first, k) for row in block]
                else:
                    turns = [turn for row in block for turn in turns_of(row)]
                    ranked = checked_lists(self._name, self._method, turns, self._gallery, k)
                answers.add(block, ranked)
                if second is not None:
                    for row in block:
                        depth = len(second.images(row)) if whole else SUBSET_DEPTH
                        answers.second[row["query_id"]] = self._own_list(row, second, depth)
                advance(len(block))
        return answers.rank_file(described)

    def similarities(self, asked: Sequence[tuple[Turn, Sequence[str]]]) -> list[list[float]]:
        """S1 by rank."""
        return [by_rank(self._top, images) for _, images in asked]

    @property
    def ways(self) -> Ways:
        """S2: `by_rank` of the reference in its list for (c, T'); 0 behind N."""
        from submissions.methods.reverse_processes import Ways

        return Ways(self._back, self._back)

    def _back(self, turns: Sequence[Turn], references: Sequence[str]) -> list[float]:
        found = [0.0] * len(turns)
        for wider, places in with_references(self._gallery, references):
            some = [turns[place] for place in places]
            lists = checked_lists(self._name, self._method, some, wider, self._top)
            for place, ranking in zip(places, lists, strict=True):
                own = dict(zip(ranking, by_rank(self._top, ranking), strict=True))
                found[place] = own.get(references[place], 0.0)
        return found

    def _own_list(self, row: dict[str, Any], asked: AskedRanking, k: int) -> list[str]:
        """What the method ranks of a query's own list."""
        few = Candidates(self._gallery.benchmark, asked.images(row))
        (best,) = checked_lists(self._name, self._method, turns_of(row), few, k)
        return best


def checked_lists(
    name: str, ranker: Ranker, turns: Sequence[Turn], gallery: Candidates, k: int
) -> list[list[str]]:
    """What a method ranks, without removed references, checked: it may be a stranger's."""
    lists = listed(name, ranker, turns, gallery, k + gallery.benchmark.excludes_reference)
    ranked = []
    for turn, given in zip(turns, lists, strict=True):
        left_out = removed_reference(turn, gallery)
        wanted = min(k, len(gallery.ids) - (left_out in gallery.place))
        ranked.append(checked_ranking(f"{name}, turn {turn.key}", given, turn, gallery, wanted))
    return ranked


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
