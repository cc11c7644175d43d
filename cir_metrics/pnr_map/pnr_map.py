"""PNR-mAP@K: mAP@K in which hard negatives ranked before a positive take weight from it.

An evaluate module: `evaluate.load("pnr_map")`. README.md beside this file is its metric card.
"""

from __future__ import annotations

from typing import Any

from cir_metrics.module import Results, SingleTurnMetric, evaluate_single_turn  # From: cir-benchmarks


class PnrMap(SingleTurnMetric):
    """PNR-mAP@K: mAP@K in which hard negatives ranked before a positive take weight from it.

    Example:
        >>> metric = PnrMap()
        >>> references = [{"positives": ["p"], "negatives": ["n"]}]
        >>> metric.compute(predictions=[["n", "p"]], references=references, ks=(5,))
        {'pnr_map@5': 0.25}
    """

    metric = "pnr_map"
    keywords = ("ks", "variant")

    def score(self, predictions: list[Any], references: list[dict[str, Any]], **options: Any) -> Results:
        """Values at each cutoff of `ks`, computed by `variant`."""
        names = [f"pnr_map@{k}" for k in options["ks"]]
        return evaluate_single_turn(
            names, predictions, references, variants={self.metric: options["variant"]}
        )
