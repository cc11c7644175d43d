"""Recall_subset@K: share of queries whose target is among the first K of its subset's other members.

An evaluate module: `evaluate.load("recall_subset")`. README.md beside this file is its metric card.
"""

from __future__ import annotations

from typing import Any

from cir_metrics.module import Results, SubsetMetric, evaluate_single_turn  # From: cir-benchmarks


class RecallSubset(SubsetMetric):
    """Recall_subset@K: share of queries whose target is among the first K of its subset's other members.

    Example:
        >>> metric = RecallSubset()
        >>> reference = {"target": "b", "reference": "a", "subset": ["a", "b", "c", "d", "e", "f"]}
        >>> metric.compute(predictions=[["c", "b", "d"]], references=[reference], ks=(1, 2))
        {'recall_subset@1': 0.0, 'recall_subset@2': 1.0}
    """

    metric = "recall_subset"

    def score(self, predictions: list[Any], references: list[dict[str, Any]], **options: Any) -> Results:
        """Values at each cutoff of `ks`."""
        names = [f"recall_subset@{k}" for k in options["ks"]]
        return evaluate_single_turn(names, None, references, subset_rankings=predictions)
