"""Final Recall@K: share of sessions that have a target in the top K at their own last turn.

An evaluate module: `evaluate.load("final_recall")`. README.md beside this file is its metric card.
"""

from __future__ import annotations

from cir_metrics.module import RankingMetric  # From: cir-benchmarks


class FinalRecall(RankingMetric):
    """Final Recall@K: share of sessions that have a target in the top K at their own last turn.

    Example:
        >>> metric = FinalRecall()
        >>> predictions = [[["b", "a"], ["a", "b"]]]
        >>> metric.compute(predictions=predictions, references=[{"positives": ["b"]}], ks=(1, 2))
        {'final_recall@1': 0.0, 'final_recall@2': 1.0}
    """

    metric = "final_recall"
