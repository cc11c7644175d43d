"""The data hash holds whatever a number depends on: where a number moves, so does every key."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import benchmark_world as worlds
import pytest

import submissions
from cir_datasets.rows.benchmark import Benchmark
from cir_datasets.rows.hashing import data_hash, galleries_hash
from submissions.comparison.keys import check_comparable
from submissions.errors import ComparisonError
from submissions.report import full_report

Row = dict[str, Any]


def changed(benchmark: Benchmark, change: Callable[[int, Row], Row]) -> Benchmark:
    rows = [row | change(number, row) for number, row in enumerate(benchmark.rows())]
    return Benchmark.from_rows(benchmark.spec, rows, benchmark.gallery)


def score(document: Any, benchmark: Benchmark) -> submissions.ScoreReport:
    content = json.dumps(document).encode()
    return submissions.score(content, benchmark, metrics=["recall@1"], name="run.json")


def test_circo_with_other_single_targets_gets_other_keys() -> None:
    one = worlds.circo()
    other = changed(one, lambda number, row: {"target_image_id": row["positive_image_ids"][2]})
    document = worlds.circo_document(one)
    first, second = score(document, one), score(document, other)
    assert first.extra["recall@1"] == 1.0
    assert second.extra["recall@1"] == 0.0
    assert first.metrics["map@5"] == second.metrics["map@5"]
    for name in first.signatures:
        assert first.signature_key(name) != second.signature_key(name)
        assert first.signature_text(name) != second.signature_text(name)
    with pytest.raises(ComparisonError, match=r"the keys of map@5 differ\.\n  data: "):
        check_comparable([first, second])


def with_everything() -> Benchmark:
    """Queries with two positives, a hard negative, a subset of six and aspects, on CIRCO's card."""
    rows = []
    for number in range(4):
        own = [worlds.coco(each) for each in range(number, number + 6)]
        rows.append(
            worlds.query(
                str(number),
                own[0],
                own[1],
                positive_image_ids=[own[1], own[2]],
                negative_image_ids=[own[3]],
                subset_image_ids=own,
                aspects=[("addition", "negation")[number % 2]],
            )
        )
    return Benchmark.from_rows(worlds.spec("circo/val"), rows, [worlds.coco(n) for n in range(60)])


def changes_of(row: Row) -> Iterator[tuple[str, Any]]:
    """Another value for every field of a row; ids stay, since they name the row."""
    for field, value in row.items():
        if field in ("query_id", "session_id"):
            continue
        if field == "turns":
            yield field, value[:-1]
            for name in ("reference_image_id", "relative_caption"):
                yield field, [value[0] | {name: "another"}, *value[1:]]
        elif field == "num_turns":
            yield field, value - 1
        elif isinstance(value, str):
            yield field, worlds.coco(40) if field.endswith("_id") else "another"
        elif isinstance(value, list):
            yield field, [*value[:-1], worlds.coco(41)] if field.endswith("_ids") else [*value, "background"]
            if value:
                yield field, value[:-1]


NOT_JUDGED_BY = {"relative_caption", "subset"}
"""The captions say it again; the name of CIRCLED's subset is the configuration's."""


@pytest.mark.parametrize("world", [with_everything, worlds.circled], ids=["queries", "sessions"])
def test_every_field_that_moves_a_report_is_in_the_hash(world: Callable[[], Benchmark]) -> None:
    benchmark = world()
    before = benchmark.rows()
    found = data_hash(before)
    moved = set()
    for field, value in changes_of(before[0]):
        if data_hash([before[0] | {field: value}, *before[1:]]) != found:
            moved.add(field)
    assert moved == before[0].keys() - {"query_id", "session_id"} - NOT_JUDGED_BY


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("target_image_id", worlds.coco(2)),
        ("positive_image_ids", [worlds.coco(1)]),
        ("aspects", ["background"]),
    ],
)
def test_a_report_that_moves_has_another_data_hash(field: str, value: Any) -> None:
    one = with_everything()
    other = changed(one, lambda number, row: {} if number else {field: value})
    document = worlds.circo_document(one)
    reports = [full_report(score(document, each)) for each in (one, other)]
    shown = [{**report.to_dict(), "signatures": None} for report in reports]
    assert shown[0] != shown[1]
    assert one.data_hash != other.data_hash
    keys = [{each.key for each in report.signatures.values()} for report in reports]
    assert keys[0].isdisjoint(keys[1])


def test_withheld_ground_truth_and_fields_that_are_not_there_hash_alike() -> None:
    row = worlds.query("1", "a", "b", aspects=None) | {"target_image_id": None, "positive_image_ids": []}
    lean = {name: value for name, value in row.items() if name not in ("target_image_id", "aspects")}
    assert data_hash([row]) == data_hash([lean])


def test_one_reference_hashes_as_a_text_several_by_their_order_and_none_as_null() -> None:
    row = worlds.query("1", "a", "b")
    session = {"session_id": "1", "turns": [{"reference_image_id": "a", "relative_caption": "red"}]}
    session["ground_truth_ids"] = ["b"]
    for item, change in (
        (row, lambda value: row | {"reference_image_id": value}),
        (session, lambda value: session | {"turns": [session["turns"][0] | {"reference_image_id": value}]}),
    ):
        assert data_hash([change(["a"])]) == data_hash([item])
        assert data_hash([change([])]) == data_hash([change(None)])
        several = [["a", "c"], ["c", "a"], ["a"], None]
        assert len({data_hash([change(value)]) for value in several}) == 4


def test_galleries_per_query_hash_by_query_and_not_by_order() -> None:
    galleries = {"q2": ["b", "a"], "q1": ["c"]}
    assert galleries_hash(galleries) == galleries_hash({"q1": ["c"], "q2": ["a", "b"]})
    assert galleries_hash(galleries) != galleries_hash({"q1": ["a", "b"], "q2": ["c"]})
    # One gallery with all of them is another thing.
    assert galleries_hash(galleries) != galleries_hash({"q1": ["a", "b", "c"]})
