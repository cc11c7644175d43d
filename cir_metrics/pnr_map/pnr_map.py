"""PNR-mAP@K: mAP@K in which hard negatives ranked before a positive take weight from it.

An evaluate module: `evaluate.load("pnr_map")`. README.md beside this file is its metric card.
"""

from __future__ import annotations

from cir_metrics.module import RankingMetric  # From: cir-benchmarks


class PnrMap(RankingMetric):
    """PNR-mAP@K: mAP@K in which hard negatives ranked before a positive take weight from it.

    Example:
        >>> metric = PnrMap()
        >>> references = [{"positives": ["p"], "negatives": ["n"]}]
        >>> metric.compute(predictions=[["n", "p"]], references=references, ks=(5,))
        {'pnr_map@5': 0.25}
    """

    metric = "pnr_map"
    keywords = ("ks", "variant")
