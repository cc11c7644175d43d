"""How pages write numbers and call metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from leaderboard.boards import Board
from leaderboard.pages.published_tables import column_of
from submissions.scoring.score_report import shown_value

Unit = Literal["percent", "rank"]
_SMALLEST = 0.00005
"""Fractions below round to 0.00 %."""


def number(value: float | None, unit: Unit) -> str:
    """A metric's value in a table: per cent with two decimals, ranks with one.

    Args:
        value: a fraction or a rank; None where it is not known.
        unit: which of the two.

    Example:
        >>> number(0.49833, "percent"), number(12.34, "rank"), number(None, "percent")
        ('49.83', '12.3', '–')
    """
    if value is None:
        return "–"
    return f"{100 * value:.2f}" if unit == "percent" else f"{value:,.1f}"


def chance(value: float | None, unit: Unit) -> str:
    """As `number`, for chance levels: one that is not 0 is not written so.

    Args:
        value: a fraction or a rank; None where it is not known.
        unit: which of the two.

    Example:
        >>> chance(0.00002, "percent"), chance(0.01, "percent")
        ('<0.01', '1.00')
    """
    small = unit == "percent" and value is not None and 0 < value < _SMALLEST
    return "<0.01" if small else number(value, unit)


def with_interval(value: float, interval: Sequence[float] | None, unit: Unit) -> str:
    """A value with its 95 % interval, where it has one.

    Args:
        value: a fraction or a rank.
        interval: low and high end, or None.
        unit: of all three.

    Example:
        >>> with_interval(0.5, (0.45, 0.55), "percent"), with_interval(0.5, None, "percent")
        ('50.00 [45.00, 55.00]', '50.00')
    """
    if interval is None:
        return number(value, unit)
    low, high = (number(end, unit) for end in interval)
    return f"{number(value, unit)} [{low}, {high}]"


def metric_value(board: Board, metric: str, value: float | None) -> str:
    """A metric's value as the pages of a board show it.

    Args:
        board: the board.
        metric: its printed name.
        value: a fraction or a rank; None where it is not known.
    """
    units = board.units
    return number(value, units[metric]) if metric in units else shown_value(metric, value).strip()


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
