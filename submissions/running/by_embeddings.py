"""One method on embeddings over a whole benchmark: compose, aggregate turns, search, describe."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cir_datasets.common.progress import step_progress
from cir_datasets.rows.benchmark import first_ranking, second_on_board
from submissions.methods.composing import Composer, Context, Vectors, unit
from submissions.methods.sc4cir import Firsts
from submissions.methods.turns import Candidates, Turn, excluded_columns
from submissions.methods.user_methods import composed
from submissions.rank_file.benchmarks import SUBSET_DEPTH
from submissions.running.aggregation import (
    Aggregation,
    aggregate,
    aggregate_feedback,
    feedback_weights,
)
from submissions.running.answers import Answers
from submissions.running.describing import describe
from submissions.running.search import Ranked, Searcher

if TYPE_CHECKING:
    from submissions.rank_file.model import Method


def rank_by_embeddings(
    name: str,
    method: Composer,
    context: Context,
    gallery: Candidates,
    turns: Sequence[Turn],
    how: Aggregation,
    k: int,
    search: str,
    firsts: Firsts | None = None,
) -> tuple[Method, Answers]:
    """The rankings of a benchmark by a method on embeddings, and what its rank file says of it.

    Args:
        name: the method's, for messages.
        method: who composes.
        context: with what.
        gallery: what is ranked.
        turns: all turns of the benchmark, row after row; a query is its only turn.
        how: how a session's turns become one vector.
        k: images a ranking.
        search: one of `submissions.running.search.SEARCHES`.
        firsts: what keeps the rankings for a re-ranker.

    Raises:
        MethodError: what the method composes is not a query vector a turn.
    """
    benchmark = context.benchmark
    work = _Work(name, method, context, gallery, turns, how)
    searcher = Searcher(context.ranked, gallery.ids, search, missing=context.gallery.missing)
    queries = work.queries(searcher)
    answers, rows = Answers(benchmark), benchmark.rows()
    with step_progress(f"{name}: ranking {benchmark.id}", len(queries)) as advance:
        found = best_by_vectors(searcher, queries, gallery, rows, turns, k, advance)
    answers.add(rows, found.rankings)
    asked, ranked = list(turns), found.rankings
    second = second_on_board(benchmark.spec)
    if second is not None:
        for row, turn, query in zip(rows, turns, queries, strict=True):
            members = second.images(row)
            best = searcher.order(query, members, SUBSET_DEPTH if firsts is None else len(members), turn.key)
            answers.second[row["query_id"]] = best
            asked.append(turn)
            ranked.append(best)
    if firsts is not None:
        for turn, ranking, query in zip(asked, ranked, itertools.cycle(queries), strict=False):
            firsts.add(turn, ranking, functools.partial(searcher.scores, query))
    return _with_skipped(describe(method, context, turns, how, found.note(k)), context), answers


def best_by_vectors(
    searcher: Searcher,
    queries: Vectors,
    gallery: Candidates,
    rows: Sequence[dict[str, Any]],
    turns: Sequence[Turn],
    k: int,
    advance: Callable[[int], object],
) -> Ranked:
    """The first ranking of each turn: over the common gallery, or over the query's own list.

    Args:
        searcher: the vectors of the gallery.
        queries: a vector a turn.
        gallery: what is ranked.
        rows: the queries or sessions of the turns.
        turns: who asks.
        k: images at most.
        advance: called with the number of turns that were ranked, as it goes.
    """
    first, keys = first_ranking(gallery.benchmark.spec), [turn.key for turn in turns]
    if first.column:
        lists = [first.images(row) for row in rows]
        return searcher.order_lists(queries, lists, k, query_ids=keys, advance=advance)
    excluded = excluded_columns(turns, gallery)
    return searcher.search(queries, k, query_ids=keys, excluded=excluded, advance=advance)


@dataclass(frozen=True)
class _Work:
    """One method on embeddings, ready to compose."""

    name: str
    method: Composer
    context: Context
    gallery: Candidates
    turns: Sequence[Turn]
    how: Aggregation

    def queries(self, searcher: Searcher) -> Vectors:
        """A query vector a turn: of a session for the turns so far."""
        composed = self.composed()
        if not self.context.benchmark.multi_turn:
            return composed
        lengths = [len(each) for each in self.context.benchmark.column("turns")]
        if self.how.name != "feedback":
            return aggregate(self.how, composed, lengths)
        shown, keys = feedback_weights().shown, [turn.key for turn in self.turns]
        return aggregate_feedback(
            composed,
            lengths,
            self.context.projected(self.context.image_vectors([turn.reference for turn in self.turns])),
            np.array(
                [self.gallery.place.get(turn.reference or "", -1) for turn in self.turns], dtype=np.int64
            ),
            self.context.ranked,
            lambda queries, left_out, rows: searcher.best_rows(
                queries, shown, left_out, query_ids=[keys[row] for row in rows]
            ),
            removed=self.context.benchmark.excludes_reference,
        )

    def composed(self) -> Vectors:
        """What the method composes, brought to length 1."""
        return unit(composed(self.name, self.method, self.turns, self.context))


def _with_skipped(described: Method, context: Context) -> Method:
    """A method block that counts the references outside the gallery that were skipped, too."""
    missing = sorted(context.missing_outside)
    if not missing:
        return described
    named = ", ".join(missing[:3]) + (", ..." if len(missing) > 3 else "")
    words = f"{len(missing):,} references outside the gallery were missing or unreadable: {named}."
    change = {
        "skipped_images": (described.skipped_images or 0) + len(missing),
        "notes": f"{described.notes} {words}".strip(),
    }
    return type(described).model_validate(described.to_dict() | change)
