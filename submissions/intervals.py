"""Confidence intervals of a score, by drawing its queries anew."""

from submissions.scoring.intervals import METHOD, Interval, Intervals, intervals

__all__ = ["METHOD", "Interval", "Intervals", "intervals"]
