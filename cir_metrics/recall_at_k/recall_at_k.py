"""Recall@K: share of queries whose single target is among the first K images.

An evaluate module: `evaluate.load("recall_at_k")`. README.md beside this file is its metric card.
"""

from __future__ import annotations

from cir_metrics.module import RankingMetric  # From: cir-benchmarks


class RecallAtK(RankingMetric):
    """Recall@K: share of queries whose single target is among the first K images.

    Example:
        >>> metric = RecallAtK()
        >>> references = [{"target": "b"}, {"target": "c"}]
        >>> metric.compute(predictions=[["a", "b"], ["c", "d"]], references=references, ks=(1, 2))
        {'recall@1': 0.5, 'recall@2': 1.0}
    """

    metric = "recall_at_k"
