"""The FashionIQ starter kit's answers: its caption items, each with a `"ranking"` of image ids.

The items name no query: they stand in the order of the publisher's caption file, as this suite's query ids
do. Candidate, captions and, where it is public, target of each item must be those of the benchmark's query at
that place; a message never names the benchmark's target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from submissions.errors import ConversionError
from submissions.formats.unchecked import ReaderContext, UncheckedFile, read_rankings
from submissions.rank_file.findings import json_type, shown
from submissions.rank_file.model import FASHIONIQ

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from cir_datasets.rows.records import Row
    from submissions.rank_file.benchmarks import Benchmarks
    from submissions.rank_file.model import RankFile

NAME = FASHIONIQ
BENCHMARKS = ("fashioniq",)
_TITLE = "a FashionIQ starter kit file"
_REFERENCE, _CAPTIONS, _TARGET, _RANKING = "candidate", "captions", "target", "ranking"


def is_starter_kit(document: Any, *, asked: bool = False) -> bool:
    """Whether a JSON value is a list of FashionIQ's caption items, or is meant to be.

    Args:
        document: the JSON value.
        asked: whether a FashionIQ benchmark was named: no other of its formats is a list.

    Example:
        >>> is_starter_kit([7, {"candidate": "B005X4PL1G", "captions": [], "ranking": []}])
        True
    """
    return isinstance(document, list) and (asked or any(map(_is_item, document)))


def _is_item(value: Any) -> bool:
    return isinstance(value, dict) and (_REFERENCE in value or _RANKING in value)


def parse(document: list[Any], context: ReaderContext) -> UncheckedFile | None:
    """Read the starter kit's file.

    Args:
        document: the JSON list.
        context: findings, benchmarks, and what was asked for.

    Returns:
        What could be read, or None where an item is not the benchmark's query at its place.

    Raises:
        SourceError: the benchmark's own data is not available.
    """
    from submissions.formats.foreign import asked_benchmark, nameless_method

    findings = context.findings
    spec = asked_benchmark(context, format_title=_TITLE, datasets=BENCHMARKS, example="fashioniq/dress_val")
    if spec is None:
        return None
    benchmark = whole_benchmark(spec.id, context.benchmarks)
    if len(document) != len(benchmark):
        findings.add(
            "item-mismatch",
            f"the file has {len(document):,} items; {benchmark.id} has {len(benchmark):,} queries.",
            cause="count",
        )
        return None
    rankings: dict[str, Any] = {}
    agree = True
    for number, (item, row) in enumerate(zip(document, benchmark.rows(), strict=True), start=1):
        what = _mismatch(item, row, withheld=benchmark.ground_truth_withheld)
        if what is not None:
            message = f"item {number:,}: {what}"
            findings.add(
                "item-mismatch", message, query=row["query_id"], cause="items", value=f"item {number:,}"
            )
            agree = False
        elif _RANKING in item:
            rankings[row["query_id"]] = item[_RANKING]
    if not agree:
        return None
    if not rankings:
        findings.add("wrong-format", f'no item holds a "{_RANKING}".', fix=_ADD_RANKING)
        return None
    answers = read_rankings(rankings, spec, context, budget=context.budget)
    return UncheckedFile(spec, spec.card.version, nameless_method(context.label), answers, None, NAME)


def dump(rank_file: RankFile, benchmark: Benchmark) -> bytes:
    """The starter kit's items, in the publisher's order, each with its ranking.

    Args:
        rank_file: rankings of FashionIQ, checked.
        benchmark: the rows that it answers, from `whole_benchmark`.

    Raises:
        ConversionError: a query has no ranking.
    """
    items = []
    for row in benchmark.rows():
        query = row["query_id"]
        if query not in rank_file.rankings:
            raise ConversionError(
                f"query {shown(query)} has no ranking; the starter kit's file ranks every item. "
                f"Fix: rank all queries of {benchmark.id}."
            )
        item = {_REFERENCE: row["reference_image_id"], _CAPTIONS: row["captions"]}
        if row["target_image_id"] is not None:
            item = {_TARGET: row["target_image_id"], **item}
        items.append({**item, _RANKING: rank_file.rankings[query]})
    return orjson.dumps(items, option=orjson.OPT_APPEND_NEWLINE)


def whole_benchmark(benchmark_id: str, benchmarks: Benchmarks) -> Benchmark:
    """The benchmark whose file order the items have: an overlay leaves queries out, its base does not.

    Args:
        benchmark_id: a FashionIQ benchmark or an overlay of one.
        benchmarks: resolves benchmark ids.
    """
    spec = benchmarks.spec(benchmark_id)
    return benchmarks.load(benchmark_id if spec.overlay is None else spec.base.id)


def _mismatch(item: Any, row: Row, *, withheld: bool) -> str | None:
    """Why an item is not the query, or None."""
    if not isinstance(item, dict):
        return f"it is {json_type(item)}; an item is an object."
    if item.get(_REFERENCE) != row["reference_image_id"]:
        wanted = shown(row["reference_image_id"])
        return f'"{_REFERENCE}" is {_said(item, _REFERENCE)}; the query\'s is {wanted}.'
    if item.get(_CAPTIONS) != row["captions"]:
        return f'"{_CAPTIONS}" is not what the query\'s captions are.'
    if not withheld and item.get(_TARGET) not in (None, row["target_image_id"]):
        return f'"{_TARGET}" is {_said(item, _TARGET)}, which is not the query\'s target.'
    return None


def _said(item: dict[str, Any], key: str) -> str:
    return shown(item[key]) if key in item else "missing"


_ADD_RANKING = f'add to each item "{_RANKING}": image ids, best first'
