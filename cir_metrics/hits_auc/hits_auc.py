"""AUC over Hits@K: area under the curve of Hits@K over turns.

An evaluate module: `evaluate.load("hits_auc")`. README.md beside this file is its metric card.
"""

from __future__ import annotations

from cir_metrics.module import RankingMetric  # From: cir-benchmarks


class HitsAuc(RankingMetric):
    """AUC over Hits@K: area under the curve of Hits@K over turns.

    Example:
        >>> metric = HitsAuc()
        >>> metric.compute(predictions=[[["a", "b"], ["b", "a"]]], references=[{"positives": ["b"]}], ks=(1,))
        {'hits_auc@1': 0.5}
    """

    metric = "hits_auc"
