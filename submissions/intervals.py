"""Confidence intervals under their public name; a file of its own, because docs/comparing.md names it."""

from submissions.scoring.intervals import METHOD, Interval, Intervals, intervals

__all__ = ["METHOD", "Interval", "Intervals", "intervals"]
