"""Hits@K by turn: share of sessions that had a target in the top K at this turn or before.

An evaluate module: `evaluate.load("hits_at_k")`. README.md beside this file is its metric card.
"""

from __future__ import annotations

from typing import Any

from cir_metrics.module import MultiTurnMetric, Results, evaluate_multi_turn  # From: cir-benchmarks


class HitsAtK(MultiTurnMetric):
    """Hits@K by turn: share of sessions that had a target in the top K at this turn or before.

    Example:
        >>> metric = HitsAtK()
        >>> metric.compute(predictions=[[["a", "b"], ["b", "a"]]], references=[{"positives": ["b"]}], ks=(1,))
        {'hits@1@turn1': 0.0, 'hits@1@turn2': 1.0}
    """

    metric = "hits_at_k"

    def score(self, predictions: list[Any], references: list[dict[str, Any]], **options: Any) -> Results:
        """Values at each cutoff of `ks`."""
        return evaluate_multi_turn([f"hits@{k}" for k in options["ks"]], predictions, references)
