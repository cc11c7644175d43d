"""What validation may know of a benchmark: queries, references, subsets, gallery; never the ground truth."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from submissions.rank_file.depth import Depth, board_depth, needs_subset

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark


@dataclass(frozen=True)
class Questions:
    """A benchmark as a validator sees it.

    Args:
        benchmark: the benchmark's id.
        title: name of the dataset in messages.
        num_turns: by query or session id the number of rankings that it wants; 1 for a query.
        multi_turn: whether answers are lists of rankings.
        removed: by query id the reference of each turn, which the protocol removes; empty where it is kept.
        subsets: by query id the members of the subset, reference left out; empty where there are none.
        references: by query id the reference that a subset holds; empty where there are no subsets.
        gallery_ids: all image ids, or None where they are not at hand.
        depth: lengths of the rankings.
        subset_wanted: whether the board needs rankings of the subsets.
    """

    benchmark: str
    title: str
    num_turns: dict[str, int]
    multi_turn: bool
    removed: dict[str, list[str | None]]
    subsets: dict[str, frozenset[str]]
    references: dict[str, str]
    gallery_ids: Sequence[str] | None
    depth: Depth
    subset_wanted: bool

    @functools.cached_property
    def gallery(self) -> frozenset[str] | None:
        """The gallery as a set; what is only screened never needs it."""
        return None if self.gallery_ids is None else frozenset(self.gallery_ids)


def questions(benchmark: Benchmark) -> Questions:
    """Pick out of a benchmark what validation may know."""
    ids = benchmark.query_ids
    removed: dict[str, list[str | None]] = {}
    subsets: dict[str, frozenset[str]] = {}
    references: dict[str, str] = {}
    if benchmark.multi_turn:
        num_turns = dict(zip(ids, benchmark.column("num_turns"), strict=True))
        if benchmark.excludes_reference:
            turns = benchmark.column("turns")
            removed = {
                i: [turn["reference_image_id"] for turn in session]
                for i, session in zip(ids, turns, strict=True)
            }
    else:
        num_turns = dict.fromkeys(ids, 1)
        own = dict(zip(ids, benchmark.column("reference_image_id"), strict=True))
        if benchmark.excludes_reference:
            removed = {query: [reference] for query, reference in own.items()}
        if benchmark.spec.config.subset is not None:
            members = zip(ids, benchmark.column("subset_image_ids"), strict=True)
            subsets = {query: frozenset(subset) - {own[query]} for query, subset in members}
            references = own
    return Questions(
        benchmark=benchmark.id,
        title=benchmark.spec.card.short_title,
        num_turns=num_turns,
        multi_turn=benchmark.multi_turn,
        removed=removed,
        subsets=subsets,
        references=references,
        gallery_ids=benchmark.gallery,
        depth=board_depth(benchmark),
        subset_wanted=needs_subset(benchmark),
    )
