"""Sessions to compare with: single queries put together, with nothing that leads to the target.

Two ways: `concatenation`, queries that are drawn one after the other (the paper's Simple Concatenation; how
it draws them is not stated), and `chains`, in which a query's target is the next one's reference, as in
Multi-turn FashionIQ. In both the last query's targets are those of the session, and none of them is a
reference of it, as every benchmark's rows are checked.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from cir_datasets.errors import ConstructionError
from cir_datasets.rows.checks import session_fault
from cir_datasets.rows.records import session_row
from cir_datasets.shapes import Draws
from cir_metrics.errors import UnknownNameError, did_you_mean

Row = dict[str, Any]

WAYS = ("concatenation", "chains")
_CHAINS = ((2, 75), (3, 19), (4, 6))
"""Sessions of Multi-turn FashionIQ by number of turns, in per cent."""
_SHARES = ((2, 63), (3, 24), (4, 8), (5, 3), (6, 2))
"""Sessions of the paper's Table 4 by number of turns, in per cent."""
_FEWEST = 2
"""Turns of a session."""
_DRAWS = 1000
"""How often a session is drawn whose last query asks for an image that it has shown."""


def compared(
    queries: Sequence[Row], way: str, subset: str, *, seed: int = 0, limit: int | None = None
) -> list[Row]:
    """Sessions of single queries.

    Args:
        queries: of `queries_of`.
        way: one of `WAYS`.
        subset: the beginning of their ids.
        seed: of what is drawn.
        limit: sessions at most; None makes as many as there are queries, of chains all that there are.

    Raises:
        UnknownNameError: `way` is not one of `WAYS`.
        ConstructionError: no session can be made so.

    Example:
        >>> queries = [
        ...     {"query": "1", "reference": "a", "caption": "in red", "targets": ["b"], "annotated": "b"},
        ...     {"query": "2", "reference": "b", "caption": "larger", "targets": ["c"], "annotated": "c"},
        ... ]
        >>> (session,) = compared(queries, "chains", "two")
        >>> [turn["relative_caption"] for turn in session["turns"]], session["ground_truth_ids"]
        (['in red', 'larger'], ['c'])
    """
    if way not in WAYS:
        raise UnknownNameError(
            f"no way {way!r} to put queries together.{did_you_mean(way, WAYS)} "
            f"Fix: use one of {', '.join(WAYS)}."
        )
    able = [query for query in queries if query["caption"]]
    made = _concatenated(able, Draws("concatenation", seed), limit) if way == WAYS[0] else _chained(able)
    found = [
        _session(f"{subset}_{way}", number, parts)
        for number, parts in enumerate(made)
        if limit is None or number < limit
    ]
    if not found:
        raise ConstructionError(
            f"{subset}: no session by {way}: no query's target is another one's reference, or there are too "
            f"few queries. Fix: use {WAYS[0]}, or more queries."
        )
    return found


def shapes_chains(images: Sequence[str], count: int, *, seed: int = 0) -> list[Row]:
    """Chains of shapes: each turn asks for the next image, which is any; its queries themselves have none.

    Args:
        images: ids of shapes, of which each session draws its own.
        count: sessions.
        seed: of the draws.

    Example:
        >>> (session,) = shapes_chains([f"val-{number:06d}" for number in range(9)], 1)
        >>> len(session["turns"]) in (2, 3, 4), len(session["ground_truth_ids"])
        (True, 1)
    """
    from cir_datasets.shapes import difference, scene

    draws, found = Draws("chains", seed), []
    for number in range(count):
        turns = draws.weighted(_CHAINS)
        drawn = draws.shuffled(images)[: turns + 1]
        parts = [
            {
                "reference": first,
                "caption": difference(scene(first), scene(second), viewpoint=True),
                "targets": [second],
            }
            for first, second in itertools.pairwise(drawn)
        ]
        found.append(_session("shapes_chains", number, parts))
    return found


def _concatenated(queries: Sequence[Row], draws: Draws, limit: int | None) -> Iterator[list[Row]]:
    """Sessions of different queries, as long as the paper's; one that leads back is drawn again."""
    if len(queries) < _FEWEST:
        return
    for _ in range(len(queries) if limit is None else limit):
        turns = min(draws.weighted(_SHARES), len(queries))
        drawn = (_drawn(queries, draws, turns) for _ in range(_DRAWS))
        sound = next((parts for parts in drawn if _sound(parts)), None)
        if sound is None:
            raise ConstructionError(
                f"{_DRAWS:,} draws of {turns} queries ended each at an image that one of them begins with. "
                "Fix: use more queries."
            )
        yield sound


def _drawn(queries: Sequence[Row], draws: Draws, turns: int) -> list[Row]:
    parts: list[Row] = []
    while len(parts) < turns:
        one = queries[draws.below(len(queries))]
        if all(one["query"] != other["query"] for other in parts):
            parts.append(one)
    return parts


def _chained(queries: Sequence[Row], most: int = 4) -> Iterator[list[Row]]:
    """From each query along targets that are references, to four turns at most, as the original has."""
    following: dict[str, list[Row]] = {}
    for query in queries:
        following.setdefault(query["reference"], []).append(query)
    for query in queries:
        parts = [query]
        while len(parts) < most:
            further = following.get(parts[-1]["annotated"], ())
            longer = next(([*parts, one] for one in further if _sound([*parts, one])), None)
            if longer is None:
                break
            parts = longer
        if len(parts) >= _FEWEST:
            yield parts


def _sound(parts: Sequence[Row]) -> bool:
    """Whether queries make a session that the check of every benchmark's rows takes."""
    return session_fault(_session("", 0, parts)) is None


def _session(subset: str, number: int, parts: Sequence[Row]) -> Row:
    turns = ((part["reference"], part["caption"]) for part in parts)
    return session_row(f"{subset}_{number:04d}", subset, parts[-1]["targets"], turns)
