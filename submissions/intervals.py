"""Deprecated, and gone with 0.2: use `submissions.scoring.intervals`."""

import warnings

from submissions.scoring.intervals import METHOD, Interval, Intervals, intervals

__all__ = ["METHOD", "Interval", "Intervals", "intervals"]

warnings.warn(
    "submissions.intervals is deprecated and goes with 0.2. Fix: import from submissions.scoring.intervals.",
    DeprecationWarning,
    stacklevel=2,
)
