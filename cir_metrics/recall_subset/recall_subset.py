"""Recall_subset@K: share of queries whose target is among the first K of its subset's other members.

An evaluate module: `evaluate.load("recall_subset")`. README.md beside this file is its metric card.
"""

from __future__ import annotations

from typing import Any

from cir_metrics.module import (  # From: cir-benchmarks
    Results,
    SingleTurnMetric,
    check_subset_ranking,
    evaluate_single_turn,
)


class RecallSubset(SingleTurnMetric):
    """Recall_subset@K: share of queries whose target is among the first K of its subset's other members.

    Example:
        >>> metric = RecallSubset()
        >>> reference = {"target": "b", "reference": "a", "subset": ["a", "b", "c", "d", "e", "f"]}
        >>> metric.compute(predictions=[["c", "b", "d"]], references=[reference], ks=(1, 2))
        {'recall_subset@1': 0.0, 'recall_subset@2': 1.0}
    """

    metric = "recall_subset"
    prediction_text = (
        "one ranking a query of the subset's members without the reference image: ids, best first"
    )

    def check_prediction(self, value: object, where: str, reference: dict[str, Any]) -> list[str]:
        """A ranking of the subset's members other than the reference image."""
        ranking = super().check_prediction(value, where, reference)
        check_subset_ranking(ranking, reference, where)
        return ranking

    def score(self, predictions: list[Any], references: list[dict[str, Any]], **options: Any) -> Results:
        """Values at each cutoff of `ks`."""
        names = [f"recall_subset@{k}" for k in options["ks"]]
        return evaluate_single_turn(names, None, references, subset_rankings=predictions)
