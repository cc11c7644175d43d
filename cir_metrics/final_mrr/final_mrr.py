"""Final MRR@K: mean over sessions of the reciprocal rank of a target at their own last turn.

An evaluate module: `evaluate.load("final_mrr")`. README.md beside this file is its metric card.
"""

from __future__ import annotations

from cir_metrics.module import RankingMetric  # From: cir-benchmarks


class FinalMrr(RankingMetric):
    """Final MRR@K: mean over sessions of the reciprocal rank of a target at their own last turn.

    Example:
        >>> metric = FinalMrr()
        >>> predictions = [[["b", "a"], ["a", "b"]]]
        >>> metric.compute(predictions=predictions, references=[{"positives": ["b"]}], ks=(1, 2))
        {'final_mrr@1': 0.0, 'final_mrr@2': 0.5}
    """

    metric = "final_mrr"
