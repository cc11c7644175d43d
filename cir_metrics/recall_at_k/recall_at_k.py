"""Recall@K: share of queries whose single target is among the first K images.

An evaluate module: `evaluate.load("recall_at_k")`. README.md beside this file is its metric card.
"""

from __future__ import annotations

from typing import Any

from cir_metrics.module import Results, SingleTurnMetric, evaluate_single_turn  # From: cir-benchmarks


class RecallAtK(SingleTurnMetric):
    """Recall@K: share of queries whose single target is among the first K images.

    Example:
        >>> metric = RecallAtK()
        >>> references = [{"target": "b"}, {"target": "c"}]
        >>> metric.compute(predictions=[["a", "b"], ["c", "d"]], references=references, ks=(1, 2))
        {'recall@1': 0.5, 'recall@2': 1.0}
    """

    metric = "recall_at_k"

    def score(self, predictions: list[Any], references: list[dict[str, Any]], **options: Any) -> Results:
        """Values at each cutoff of `ks`."""
        return evaluate_single_turn([f"recall@{k}" for k in options["ks"]], predictions, references)
