"""What the pages of a board call its metrics, and how they write their values."""

from __future__ import annotations

from leaderboard.boards import Board
from leaderboard.pages.figures import number
from leaderboard.pages.published_tables import column_of
from submissions.scoring.score_report import shown_value


def metric_value(board: Board, metric: str, value: float | None) -> str:
    """A metric's value as the pages of a board show it.

    Args:
        board: the board.
        metric: its printed name.
        value: a fraction or a rank; None where it is not known.
    """
    units = board.units
    if metric not in units:
        return shown_value(metric, value).strip()
    return number(value, units[metric], board.step_of(metric))


def metric_label(board: Board, metric: str) -> str:
    """What a metric is called on the pages of a board.

    Args:
        board: the board.
        metric: its printed name.

    Example:
        >>> from leaderboard import boards
        >>> metric_label(boards.board("cirr/val"), "recall@2")
        'R@2'
    """
    labels = board.labels
    if metric in labels:
        return labels[metric]
    head = column_of(metric).head
    return head if board.dialogue is not None else head.replace(", round ", ", turn ")


def ranked_by(board: Board) -> str:
    """What ranks, as columns call it.

    Args:
        board: the board.

    Example:
        >>> from leaderboard import boards
        >>> ranked_by(boards.board("cirr/val"))
        'mean of R@5 and Rs@1'
    """
    terms = board.primary_terms
    if len(terms) < 2:
        return board.primary_label
    named = " and ".join(board.labels.get(term, term) for term in terms)
    return f"mean of {named}"


def ranked_by_heading(board: Board) -> str:
    """The same where a heading or a sentence begins with it.

    Args:
        board: the board.

    Example:
        >>> from leaderboard import boards
        >>> ranked_by_heading(boards.board("cirr/val")), ranked_by_heading(boards.board("circo/val"))
        ('Mean of R@5 and Rs@1', 'mAP@5')
    """
    words = ranked_by(board)
    return f"M{words[1:]}" if len(board.primary_terms) > 1 else words
