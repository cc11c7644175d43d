"""Final Recall@K: share of sessions that have a target in the top K at their own last turn.

An evaluate module: `evaluate.load("final_recall")`. README.md beside this file is its metric card.
"""

from __future__ import annotations

from typing import Any

from cir_metrics.module import MultiTurnMetric, Results, evaluate_multi_turn  # From: cir-benchmarks


class FinalRecall(MultiTurnMetric):
    """Final Recall@K: share of sessions that have a target in the top K at their own last turn.

    Example:
        >>> metric = FinalRecall()
        >>> predictions = [[["b", "a"], ["a", "b"]]]
        >>> metric.compute(predictions=predictions, references=[{"positives": ["b"]}], ks=(1, 2))
        {'final_recall@1': 0.0, 'final_recall@2': 1.0}
    """

    metric = "final_recall"

    def score(self, predictions: list[Any], references: list[dict[str, Any]], **options: Any) -> Results:
        """Values at each cutoff of `ks`."""
        return evaluate_multi_turn([f"final_recall@{k}" for k in options["ks"]], predictions, references)
