"""Which images of a query make a hit: the target alone, or every positive."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def counts_all_positives(metric: str) -> bool:
    """Whether a metric of single queries counts every positive.

    Args:
        metric: its printed name.

    Example:
        >>> counts_all_positives("map@5"), counts_all_positives("recall@10")
        (True, False)
    """
    return metric.startswith(("map@", "pnr_map@"))


def counts_target(metrics: Iterable[str]) -> bool:
    """Whether the target alone makes a hit of a single query: one of the metrics is recall.

    Args:
        metrics: their printed names, from `right_by`.
    """
    return any(metric.startswith("recall@") for metric in metrics)


def right_by(ranked: Sequence[str], metrics: Sequence[str]) -> tuple[str, ...]:
    """The metrics that `right_answers` goes by: those that rank if they count all positives, else all.

    Args:
        ranked: printed names of the metrics that rank.
        metrics: printed names of all metrics.

    Example:
        >>> right_by(["map@5"], ["map@5", "recall@10"]), right_by(["recall@10"], ["map@5", "recall@10"])
        (('map@5',), ('map@5', 'recall@10'))
    """
    return tuple(ranked if all(map(counts_all_positives, ranked)) else metrics)


def right_answers(row: Mapping[str, Any], metrics: Sequence[str], turn: int = -1) -> list[str]:
    """The images that make a hit: the target where recall is scored, else every positive.

    Args:
        row: a query or session.
        metrics: printed names of metrics, from `right_by`.
        turn: place of a session's turn, counted from 0, which may have a target of its own; -1 for the last.

    Example:
        >>> row = {"target_image_id": "a", "positive_image_ids": ["a", "b"]}
        >>> right_answers(row, ["recall@10"]), right_answers(row, ["map@5"])
        (['a'], ['a', 'b'])
    """
    if "turns" in row:
        target = row["turns"][turn].get("target_image_id")
        return list(row["ground_truth_ids"]) if target is None else [target]
    target = row["target_image_id"]
    if target is not None and counts_target(metrics):
        return [target]
    return list(row["positive_image_ids"])
