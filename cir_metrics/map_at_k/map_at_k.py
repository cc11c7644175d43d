"""mAP@K: mean average precision, divided by min(positives, K).

An evaluate module: `evaluate.load("map_at_k")`. README.md beside this file is its metric card.
"""

from __future__ import annotations

from cir_metrics.module import RankingMetric  # From: cir-benchmarks


class MapAtK(RankingMetric):
    """mAP@K: mean average precision, divided by min(positives, K).

    Example:
        >>> metric = MapAtK()
        >>> references = [{"positives": ["a", "d"]}]
        >>> metric.compute(predictions=[["a", "b", "c", "d"]], references=references, ks=(4,))
        {'map@4': 0.75}
    """

    metric = "map_at_k"
