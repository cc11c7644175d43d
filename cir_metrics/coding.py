"""Rankings as numbers: which places hold which images, and at what rank a target stands.

Lists of ids are coded by `mark_ids`, rankings that are numbers already by `mark`; both give masks, and masks
give ranks. Conventions: ranks are 1-based; column j-1 of a mask is rank j; a mask may be narrower than K (a
list that ends early holds nothing further down); numpy alone. These functions trust their input.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

UNLISTED = int(np.iinfo(np.int64).max)
"""Rank of a target that a ranking does not list: beyond every cutoff."""

_TABLE = 2**22
"""Entries of the table that `mark` writes into at most, unless one query alone needs more."""


def mark_ids(
    rankings: Sequence[Sequence[str]], groups: Sequence[Sequence[Collection[str]]], depth: int
) -> list[BoolArray]:
    """Which of the first `depth` places of each ranking hold an image of each group.

    Args:
        rankings: image ids, best first, one list a query; may be shorter than `depth`.
        groups: by group the ids of each query, aligned with `rankings`; eight groups at most.
        depth: number of places, 0 or more.

    Returns:
        One mask a group, shape (n_queries, depth); places that a ranking does not fill are False.

    Example:
        >>> positive, negative = mark_ids([["a", "b", "c"]], [[["b"]], [["c", "x"]]], depth=3)
        >>> positive.tolist(), negative.tolist()
        ([[False, True, False]], [[False, False, True]])
    """
    lengths = np.fromiter((min(len(ranking), depth) for ranking in rankings), np.int64, len(rankings))
    nothing = itertools.repeat(0)
    # A byte a place and a bit a group, made by C code all the way: a generator over the places would take
    # five times as long.
    flags = b"".join(
        bytes(map(_bits(own).get, ranking[:depth], nothing))
        for ranking, own in zip(rankings, zip(*groups, strict=True), strict=True)
    )
    coded = np.zeros((len(rankings), depth), dtype=np.uint8)
    coded[np.arange(depth) < lengths[:, None]] = np.frombuffer(flags, dtype=np.uint8)
    return [(coded & (1 << bit)) > 0 for bit in range(len(groups))]


def _bits(groups: Sequence[Collection[str]]) -> dict[str, int]:
    """By image id the groups that it belongs to, a bit each."""
    found: dict[str, int] = dict.fromkeys(groups[0], 1)
    for bit, ids in enumerate(groups[1:], start=1):
        own = dict.fromkeys(ids, 1 << bit)
        shared = own.keys() & found.keys()
        for image_id in shared:
            own[image_id] |= found[image_id]
        found.update(own)
    return found


def mark(
    codes: NDArray[np.int32], groups: Sequence[tuple[IntArray, NDArray[np.int32]]], n_images: int
) -> list[BoolArray]:
    """`mark_ids` for rankings that are numbers of images already, all queries at once.

    Args:
        codes: rankings as numbers of images, -1 where a place is empty, shape (n_queries, depth).
        groups: by group where each query's images start (shape (n_queries + 1,)) and the numbers of the
            images (-1 for one that no ranking holds); eight groups at most.
        n_images: how many images are numbered.

    Returns:
        One mask a group, shape (n_queries, depth).

    Example:
        >>> codes = np.array([[0, 1], [2, -1]], dtype=np.int32)
        >>> positives = np.array([0, 1, 3]), np.array([1, 0, 2], dtype=np.int32)
        >>> mark(codes, [positives], n_images=3)[0].tolist()
        [[False, True], [True, False]]
    """
    # A table of queries by images, a block of queries at a time, is written, read and wiped: quicker than
    # searching, as what a query needs lies together. Entry 0 of a row is for places that hold nothing, and a
    # group is a bit.
    width = n_images + 1
    rows = min(max(1, _TABLE // width), max(1, len(codes)))
    table = np.zeros(rows * width, dtype=np.uint8)
    bases = np.arange(rows, dtype=np.int64) * width + 1
    found = np.zeros(codes.shape, dtype=np.uint8)
    for start in range(0, len(codes), rows):
        stop = min(start + rows, len(codes))
        written = []
        for bit, (offsets, members) in enumerate(groups):
            own = members[offsets[start] : offsets[stop]]
            entries = own + np.repeat(bases[: stop - start], np.diff(offsets[start : stop + 1]))
            table[entries] |= (own >= 0).astype(np.uint8) << bit
            written.append(entries)
        found[start:stop] = table[codes[start:stop] + bases[: stop - start, None]]
        for entries in written:
            table[entries] = 0
    return [(found & (1 << bit)) > 0 for bit in range(len(groups))]


def first_ranks(relevant: BoolArray) -> IntArray:
    """Rank of the first relevant image of each row, `UNLISTED` where there is none.

    Args:
        relevant: shape (n_queries, depth), from `mark_ids` or `mark`.

    Returns:
        1-based ranks, shape (n_queries,).

    Example:
        >>> first_ranks(np.array([[False, True], [False, False]])) == [2, UNLISTED]
        array([ True,  True])
    """
    if relevant.shape[1] == 0:
        return np.full(relevant.shape[0], UNLISTED, dtype=np.int64)
    ranks = np.argmax(relevant, axis=1).astype(np.int64) + 1
    return np.where(relevant.any(axis=1), ranks, UNLISTED)


def final_ranks(ranks: IntArray, num_turns: IntArray) -> IntArray:
    """Each session's rank at its own last turn.

    Args:
        ranks: rank at each turn, shape (n_sessions, max_turns).
        num_turns: turns of each session, shape (n_sessions,).

    Example:
        >>> final_ranks(np.array([[12, 3, 40], [5, 0, 0]]), np.array([3, 1]))
        array([40,  5])
    """
    last: IntArray = np.take_along_axis(ranks, num_turns[:, None] - 1, axis=1)[:, 0]
    return last


def censor(ranks: IntArray, list_lengths: IntArray) -> tuple[IntArray, BoolArray]:
    """Ranks with every unlisted target put right behind its list, and which ones those are.

    Args:
        ranks: from `first_ranks`, shape (n_queries,).
        list_lengths: images in each ranking, shape (n_queries,).

    Returns:
        Ranks and a mask of the unlisted, both of shape (n_queries,).

    Example:
        >>> censor(np.array([2, UNLISTED]), np.array([50, 50]))
        (array([ 2, 51]), array([False,  True]))
    """
    unlisted = ranks == UNLISTED
    return np.where(unlisted, list_lengths + 1, ranks), unlisted
