"""A benchmark's ground truth as other programs take it: qrels of TREC, queries of ZeroSight's evaluator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import orjson

from cir_datasets.errors import DatasetError
from cir_metrics.errors import CallError

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark

POSITIVE, NEGATIVE = 1, 0
"""Grades of positives and of hard negatives."""


def trec_qrels(benchmark: Benchmark, *, subset: bool = False) -> bytes:
    """The lines `qid 0 docid grade`, in the benchmark's order of queries.

    A session has one block a turn, `SESSION#1`, `SESSION#2` and so on, all with the same positives. With
    `subset` the ids are `QUERY#subset`, for the rankings of CIRR's subsets: those have a file of their own,
    because trec_eval averages over all that a file judges.

    Args:
        benchmark: queries or sessions with public ground truth.
        subset: judge the rankings of the queries' subsets instead of those of the gallery.

    Raises:
        CallError: the ground truth is withheld, or `subset` is asked of a benchmark without subsets.
        DatasetError: an id holds a blank, which would end a column.

    Example:
        >>> from cir_datasets import load
        >>> trec_qrels(load("shapes/multiturn_val")).decode().splitlines()[0].split()[1::2]
        ['0', '1']
    """
    if benchmark.ground_truth_withheld:
        raise CallError(
            f"the ground truth of {benchmark.id} is withheld by its publisher, so that there is nothing to "
            "judge by. Fix: name a benchmark with public ground truth; `cir datasets list` shows which."
        )
    if subset and benchmark.spec.config.subset is None:
        raise CallError(f"{benchmark.id} has no subsets. Fix: drop --subset.")
    lines: list[str] = []
    for qid, positives, negatives in _judged(benchmark, subset=subset):
        _add(lines, qid, positives, POSITIVE)
        _add(lines, qid, [image for image in negatives if image not in positives], NEGATIVE)
    return "".join(lines).encode()


def _judged(benchmark: Benchmark, *, subset: bool) -> Iterator[tuple[str, list[str], list[str]]]:
    """Each qid with its positives and its hard negatives."""
    if benchmark.multi_turn:
        counts = benchmark.column("num_turns")
        targets = None if benchmark.turn_targets is None else iter(benchmark.turn_targets.to_pylist())
        for session, positives, turns in zip(benchmark.query_ids, benchmark.positives, counts, strict=True):
            for turn in range(1, turns + 1):
                yield f"{session}#{turn}", positives if targets is None else [next(targets)], []
    elif subset:
        targets = benchmark.column("target_image_id")
        for query, target in zip(benchmark.query_ids, targets, strict=True):
            yield f"{query}#subset", [target], []
    else:
        negatives = benchmark.column("negative_image_ids")
        yield from zip(benchmark.query_ids, benchmark.positives, negatives, strict=True)


def _add(lines: list[str], qid: str, images: Iterable[str], grade: int) -> None:
    for image in images:
        line = f"{qid} 0 {image} {grade}"
        if len(line.split()) != 4:
            raise DatasetError(
                f"query {qid!r}, image {image!r}: an id holds a blank, which ends a column of TREC's files. "
                "Fix: use `cir score`, which reads the benchmark itself."
            )
        lines.append(f"{line}\n")


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
            for query, positives, negatives in _judged(benchmark, subset=False)
        ]
    )
