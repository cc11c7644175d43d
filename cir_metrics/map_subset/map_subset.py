"""mAP_subset@K: mAP@K over the other members of the query's subset.

An evaluate module: `evaluate.load("map_subset")`. README.md beside this file is its metric card.
"""

from __future__ import annotations

from cir_metrics.module import RankingMetric  # From: cir-benchmarks


class MapSubset(RankingMetric):
    """mAP_subset@K: mAP@K over the other members of the query's subset.

    Example:
        >>> metric = MapSubset()
        >>> reference = {"target": "b", "reference": "a", "subset": ["a", "b", "c", "d", "e", "f"]}
        >>> metric.compute(predictions=[["c", "b", "d"]], references=[reference], ks=(1, 2))
        {'map_subset@1': 0.0, 'map_subset@2': 0.5}
    """

    metric = "map_subset"
