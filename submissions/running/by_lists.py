"""From the lists of a method that ranks by itself (`Ranker`) to rankings, and what is checked of them."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cir_datasets.common.progress import step_progress
from cir_datasets.rows.benchmark import AskedRanking, first_ranking, second_on_board
from submissions.errors import MethodError
from submissions.methods.protocols import Ranker
from submissions.methods.sc4cir import Firsts, by_rank
from submissions.methods.turns import Candidates, Turn, removed_reference, turns_of
from submissions.methods.user_methods import listed
from submissions.rank_file.benchmarks import SUBSET_DEPTH
from submissions.rank_file.owners import near_miss
from submissions.running.answers import Answers

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark

_ROWS = 256
"""Queries or sessions that are ranked at once."""


def rank_by_lists(
    name: str, ranker: Ranker, gallery: Candidates, k: int, firsts: Firsts | None = None
) -> Answers:
    """The rankings of a benchmark by a method that ranks by itself.

    Args:
        name: what the method is called in messages.
        ranker: the method.
        gallery: the images to rank, and whose they are.
        k: images a ranking.
        firsts: what keeps the rankings for a re-ranker, with scores by rank.

    Raises:
        MethodError: the method gives too few lists, too short ones, an image twice or an unknown one.
    """
    benchmark = gallery.benchmark
    answers = Answers(benchmark)
    rows, first, second = benchmark.rows(), first_ranking(benchmark.spec), second_on_board(benchmark.spec)
    with step_progress(f"{name}: ranking {benchmark.id}", len(rows)) as advance:
        for start in range(0, len(rows), _ROWS):
            block = rows[start : start + _ROWS]
            turns = [turn for row in block for turn in turns_of(row)]
            if first.column:
                ranked = [_own_list(name, ranker, row, first, benchmark, k) for row in block]
            else:
                ranked = checked_lists(name, ranker, turns, gallery, k)
            answers.add(block, ranked)
            if second is not None:
                for row in block:
                    depth = SUBSET_DEPTH if firsts is None else len(second.images(row))
                    best = _own_list(name, ranker, row, second, benchmark, depth)
                    answers.second[row["query_id"]] = best
                    turns += turns_of(row)
                    ranked.append(best)
            if firsts is not None:
                for turn, ranking in zip(turns, ranked, strict=True):
                    firsts.add(turn, ranking, functools.partial(by_rank, firsts.top))
            advance(len(block))
    return answers


def _own_list(
    name: str, ranker: Ranker, row: dict[str, Any], asked: AskedRanking, benchmark: Benchmark, k: int
) -> list[str]:
    """What a method ranks of a query's own list."""
    few = Candidates(benchmark, asked.images(row))
    (best,) = checked_lists(name, ranker, turns_of(row), few, k)
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
