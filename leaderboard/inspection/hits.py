"""What counts as a hit on a board."""

from __future__ import annotations

from cir_datasets.registry.schema import member_metric
from cir_datasets.rows import right
from cir_metrics.catalogue import METRICS, parse_metric
from leaderboard.boards import Board

ANY, LAST = "any", "last"
"""Turns that decide, besides a number: a hit at any turn counts, or one at the last turn alone."""
SUBSET = "subset"
"""What decides in the place of the list of the gallery: the first of the subset's ranking."""
SUBSET_HIT = "a hit has the target first in its subset"


def main_cutoff(board: Board) -> int:
    """K of what ranks on a board, 10 where that has none.

    Example:
        >>> from leaderboard import boards
        >>> main_cutoff(boards.board("cirr/val")), main_cutoff(boards.board("shapes/dialogue_val"))
        (5, 10)
    """
    _, k = parse_metric(member_metric(board.primary_terms[0]).partition("@turn")[0])
    return 10 if k is None else k


def default_turn(board: Board) -> str:
    """The turn that decides, `any` or `last`, as what ranks says it.

    Args:
        board: the board.
    """
    metric, _ = parse_metric(member_metric(board.primary_terms[0]))
    return LAST if metric in ("final_recall", "turn_recall") else ANY


def turn_label(board: Board) -> str:
    """What the numbers by turn are called: `Hits@10`, or `Turn R@10` where turns have targets of their own.

    Args:
        board: the board.
    """
    metric, _ = parse_metric(member_metric(board.primary_terms[0]))
    return f"{METRICS['turn_recall' if metric == 'turn_recall' else 'hits_at_k'].short}@{main_cutoff(board)}"


def turn_word(board: Board) -> str:
    """What a step of a board's sessions is called: `round` in a dialogue, else `turn`.

    Args:
        board: the board.
    """
    return "turn" if board.dialogue is None else "round"


def ranks_by_subset(board: Board) -> bool:
    """Whether a metric that ranks reads the ranking of the query's subset, as on CIRR's boards.

    Args:
        board: the board.
    """
    names = (parse_metric(member_metric(term))[0] for term in board.primary_terms)
    return any(METRICS[name].reads_subset for name in names)


def counts_target(board: Board) -> bool:
    """Whether the target alone makes a hit of a single query.

    Args:
        board: the board.
    """
    return right.counts_target(board.right_by)


def answer_words(board: Board) -> str:
    """What counts as right on a board, as `right_answers` has it.

    Args:
        board: of single queries, sessions or dialogues.

    Example:
        >>> from leaderboard import boards
        >>> answer_words(boards.board("circo/val")), answer_words(boards.board("cirr/val"))
        ('a positive', 'the target')
    """
    if board.dialogue is not None:
        return "the target" if board.right_by else "a right picture"
    if board.spec.kind == "multi_turn":
        return "a target"
    return "the target" if counts_target(board) else "a positive"


def hit_words(board: Board, k: int, where: str = "") -> str:
    """What a hit is, in words.

    Args:
        board: the board.
        k: the cutoff.
        where: at which turn, in words.

    Example:
        >>> from leaderboard import boards
        >>> hit_words(boards.board("cirr/val"), 5)
        'a hit has the target among its first 5'
    """
    hit = f"a hit has {answer_words(board)} among its first {k}{where}"
    if board.dialogue is not None or board.spec.kind == "multi_turn":
        return hit
    if not counts_target(board):
        return f"{hit}; every positive counts as a target"
    # Where a query has one right picture, there is no other.
    several = any(map(right.counts_all_positives, board.spec.metrics))
    return f"{hit}; other right pictures do not count" if several else hit
