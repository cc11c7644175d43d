"""Turn Recall@K: mean over sessions of the share of turns that have that turn's target in the top K.

An evaluate module: `evaluate.load("turn_recall")`. README.md beside this file is its metric card.
"""

from __future__ import annotations

from cir_metrics.module import RankingMetric  # From: cir-benchmarks


class TurnRecall(RankingMetric):
    """Turn Recall@K: mean over sessions of the share of turns that have that turn's target in the top K.

    Example:
        >>> metric = TurnRecall()
        >>> predictions, references = [[["b", "a"], ["a", "c"]]], [{"turn_targets": ["b", "c"]}]
        >>> metric.compute(predictions=predictions, references=references, ks=(1, 2))
        {'turn_recall@1': 0.5, 'turn_recall@2': 1.0}
    """

    metric = "turn_recall"
