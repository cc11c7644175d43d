"""Mean and median rank of the best target, and how many rankings list none.

An evaluate module: `evaluate.load("mean_rank")`. README.md beside this file is its metric card.
"""

from __future__ import annotations

from typing import Any

from cir_metrics.module import InputError, RankingMetric, check_session  # From: cir-benchmarks


class MeanRank(RankingMetric):
    """Mean and median rank of the best target, and how many rankings list none.

    Example:
        >>> metric = MeanRank()
        >>> references = [{"positives": ["b"]}, {"positives": ["x"]}]
        >>> metric.compute(predictions=[["a", "b"], ["c", "d"]], references=references)
        {'mean_rank': 2.5, 'median_rank': 2.5, 'censored': 1}
    """

    metric = "mean_rank"
    keywords = ("gallery_size",)
    prediction_text = "one ranking a query, or one ranking a turn of each session (the last turn counts)"

    def check_prediction(self, value: object, where: str, reference: dict[str, Any]) -> list[Any]:
        """A ranking, or the ranking of a session's last turn."""
        if isinstance(value, (list, tuple)) and value and not isinstance(value[0], (str, type(None))):
            return check_session(value, where, reference, allow_empty=False)[-1]
        if "num_turns" in reference:
            raise InputError(
                f"{where} is one ranking, its reference a session. Fix: give one ranking a turn."
            )
        return super().check_prediction(value, where, reference)
