"""Values a query of metrics that the board does not show, where what is known of the ranks gives them."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from cir_datasets.rows.columns import list_lengths
from cir_metrics.catalogue import parse_metric
from cir_metrics.measures import map_subset, recall_at_k, recall_subset
from cir_metrics.sums import FloatArray
from submissions.rank_file.benchmarks import SUBSET_DEPTH, board_depth

if TYPE_CHECKING:
    from submissions.scoring.evidence import Evidence


def card_values(evidence: Evidence, shown: Collection[str]) -> tuple[dict[str, FloatArray], list[str]]:
    """Values a query of the further metrics that a benchmark's card names.

    Args:
        evidence: the values a query.
        shown: names of metrics that the score has anyway, which are left out.

    Returns:
        By name the values, shape (n,), and the names of those that the rank file does not give.
    """
    listed = () if evidence.num_turns is not None else evidence.benchmark.spec.card.report.metrics
    found = {name: query_values(evidence, name) for name in dict.fromkeys(listed) if name not in shown}
    known = {name: values for name, values in found.items() if values is not None}
    return known, [name for name in found if name not in known]


def query_values(evidence: Evidence, metric: str) -> FloatArray | None:
    """One value a query of a metric, shape (n,), or None where the rank file does not give.

    Beside what was computed already, ranks give recall@K and map@K where every query has one positive
    (AP@K is then 1/rank up to rank K), and recall_subset@K and map_subset@K from the subsets' ranks.

    Args:
        evidence: the values a query.
        metric: printed name.
    """
    if metric in evidence.values:
        return evidence.values[metric]
    name, k = parse_metric(metric)
    if k is None or evidence.num_turns is not None:
        return None
    if name in ("recall_subset", "map_subset"):
        if evidence.subset_ranks is None or k > SUBSET_DEPTH:
            return None
        measure = map_subset if name == "map_subset" else recall_subset
        return measure.per_query(evidence.subset_ranks, k)
    if name in ("recall_at_k", "map_at_k"):
        if evidence.ranks is None or k > board_depth(evidence.benchmark).used or not _one_positive(evidence):
            return None
        # map_subset is the mAP of one target, whatever was ranked.
        measure = map_subset if name == "map_at_k" else recall_at_k
        return measure.per_query(evidence.ranks, k)
    return None


def _one_positive(evidence: Evidence) -> bool:
    return bool((list_lengths(evidence.benchmark.ids("positive_image_ids")) == 1).all())
