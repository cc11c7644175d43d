"""A benchmark's ground truth as the queries file of ZeroSight's released evaluator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from cir_metrics.errors import CallError

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark


def evaluator_queries(benchmark: Benchmark) -> bytes:
    """The JSON list `[{"id", "groundtruths", "negativeInstances"}, ...]` that the evaluator reads.

    Any single-turn benchmark whose ground truth is public can be written; the results that go with it are
    written by `cir convert --to zerosight`.

    Args:
        benchmark: queries with positives and hard negatives.

    Raises:
        CallError: the benchmark has sessions, or its ground truth is withheld.

    Example:
        >>> from cir_datasets import load
        >>> orjson.loads(evaluator_queries(load("shapes/val")))[0]["groundtruths"] != []
        True
    """
    if benchmark.multi_turn or benchmark.ground_truth_withheld:
        what = "asks for sessions" if benchmark.multi_turn else "keeps its ground truth withheld"
        raise CallError(
            f"{benchmark.id} {what}; the evaluator's file holds single queries with their positives. "
            "Fix: name a single-turn benchmark with public ground truth, such as zerosight/test."
        )
    return orjson.dumps(
        [
            {"id": query, "groundtruths": positives, "negativeInstances": negatives}
            for query, positives, negatives in zip(
                benchmark.query_ids,
                benchmark.positives,
                benchmark.column("negative_image_ids"),
                strict=True,
            )
        ]
    )
