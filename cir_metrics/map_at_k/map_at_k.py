"""mAP@K: mean average precision, divided by min(positives, K).

An evaluate module: `evaluate.load("map_at_k")`. README.md beside this file is its metric card.
"""

from __future__ import annotations

from typing import Any

from cir_metrics.module import Results, SingleTurnMetric, evaluate_single_turn  # From: cir-benchmarks


class MapAtK(SingleTurnMetric):
    """mAP@K: mean average precision, divided by min(positives, K).

    Example:
        >>> metric = MapAtK()
        >>> references = [{"positives": ["a", "d"]}]
        >>> metric.compute(predictions=[["a", "b", "c", "d"]], references=references, ks=(4,))
        {'map@4': 0.75}
    """

    metric = "map_at_k"

    def score(self, predictions: list[Any], references: list[dict[str, Any]], **options: Any) -> Results:
        """Values at each cutoff of `ks`."""
        return evaluate_single_turn([f"map@{k}" for k in options["ks"]], predictions, references)
