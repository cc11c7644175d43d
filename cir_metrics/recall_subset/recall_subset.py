"""Recall_subset@K: share of queries whose target is among the first K of its subset's other members.

An evaluate module: `evaluate.load("recall_subset")`. README.md beside this file is its metric card.
"""

from __future__ import annotations

from cir_metrics.module import RankingMetric  # From: cir-benchmarks


class RecallSubset(RankingMetric):
    """Recall_subset@K: share of queries whose target is among the first K of its subset's other members.

    Example:
        >>> metric = RecallSubset()
        >>> reference = {"target": "b", "reference": "a", "subset": ["a", "b", "c", "d", "e", "f"]}
        >>> metric.compute(predictions=[["c", "b", "d"]], references=[reference], ks=(1, 2))
        {'recall_subset@1': 0.0, 'recall_subset@2': 1.0}
    """

    metric = "recall_subset"
