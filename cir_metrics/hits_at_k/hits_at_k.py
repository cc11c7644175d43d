"""Hits@K by turn: share of sessions that had a target in the top K at this turn or before.

An evaluate module: `evaluate.load("hits_at_k")`. README.md beside this file is its metric card.
"""

from __future__ import annotations

from cir_metrics.module import RankingMetric  # From: cir-benchmarks


class HitsAtK(RankingMetric):
    """Hits@K by turn: share of sessions that had a target in the top K at this turn or before.

    Example:
        >>> metric = HitsAtK()
        >>> metric.compute(predictions=[[["a", "b"], ["b", "a"]]], references=[{"positives": ["b"]}], ks=(1,))
        {'hits@1@turn1': 0.0, 'hits@1@turn2': 1.0}
    """

    metric = "hits_at_k"
