"""The FashionIQ starter kit's items: each is the query at its place, or is named."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import benchmark_world as worlds
import pytest

import cir_datasets
import submissions
from cir_datasets.registry import spec
from cir_datasets.rows.benchmark import Benchmark
from submissions import ConversionError, RankFile, RefusedError
from submissions.formats import servers
from submissions.rank_file.benchmarks import Benchmarks

DRESS = worlds.fashioniq("dress")
GALLERY = list(DRESS.gallery or ())


def items() -> list[dict[str, Any]]:
    return [
        {
            "target": row["target_image_id"],
            "candidate": row["reference_image_id"],
            "captions": row["captions"],
            "ranking": GALLERY[number : number + 50],
        }
        for number, row in enumerate(DRESS.rows())
    ]


def findings(document: Any, benchmark: Any = DRESS) -> list[tuple[str, str, int]]:
    report = submissions.validate(json.dumps(document).encode(), benchmark)
    return [(found.code, found.message, found.count) for found in report.findings]


def test_items_become_queries_by_their_place() -> None:
    found = submissions.read(json.dumps(items()).encode(), benchmark=DRESS, name="tirg.json")
    assert list(found.rankings) == [f"dress_val_{number:05d}" for number in range(4)]
    assert found.rankings["dress_val_00002"] == GALLERY[2:52]
    assert (found.format, found.benchmark, found.method.name) == ("fashioniq", "fashioniq/dress_val", "tirg")
    assert findings(items()) == []


def change(number: int, **fields: Any) -> list[Any]:
    document = items()
    document[number] = {
        key: value for key, value in {**document[number], **fields}.items() if value is not ...
    }
    return document


MISMATCHES: list[tuple[list[Any], str, int]] = [
    (change(1, candidate="D009"), 'item 2: "candidate" is "D009"; the query\'s is "D001".', 1),
    (change(1, candidate=...), 'item 2: "candidate" is missing; the query\'s is "D001".', 1),
    (change(2, captions=["made", "up"]), 'item 3: "captions" is not what the query\'s captions are.', 1),
    (change(0, target="D009"), 'item 1: "target" is "D009", which is not the query\'s target.', 1),
    (items()[::-1], 'item 1: "candidate" is "D003"; the query\'s is "D000".', 4),
    ([*items()[:3], 7], "item 4: it is a number; an item is an object.", 1),
    (["D000", *items()[1:]], "item 1: it is a string; an item is an object.", 1),
    ([7, 7, 7, 7], "item 1: it is a number; an item is an object.", 4),
    (items()[:3], "the file has 3 items; fashioniq/dress_val has 4 queries.", 1),
    (items() * 2, "the file has 8 items; fashioniq/dress_val has 4 queries.", 1),
]


@pytest.mark.parametrize(
    ("document", "message", "count"), MISMATCHES, ids=[message for _, message, _ in MISMATCHES]
)
def test_an_item_that_is_another_query_is_named(document: list[Any], message: str, count: int) -> None:
    assert findings(document) == [("item-mismatch", message, count)]


def test_the_target_may_be_left_out_and_is_not_asked_where_it_is_withheld() -> None:
    assert findings(change(0, target=...)) == []
    rows = [{**row, "target_image_id": None, "positive_image_ids": []} for row in DRESS.rows()]
    rows = [{**row, "query_id": row["query_id"].replace("val", "test")} for row in rows]
    hidden = Benchmark.from_rows(spec("fashioniq/dress_test"), rows, GALLERY)
    assert findings(items(), hidden) == []
    (written,) = submissions.convert([json.dumps(items()).encode()], "fashioniq", benchmark=hidden)
    assert [list(item) for item in json.loads(written.content)] == [["candidate", "captions", "ranking"]] * 4


def test_items_without_a_list_of_ranked_images_are_found() -> None:
    assert findings(change(3, ranking=...)) == [("missing-query", "it has no ranking.", 1)]
    bare = [{key: value for key, value in item.items() if key != "ranking"} for item in items()]
    assert findings(bare) == [("wrong-format", 'no item holds a "ranking".', 1)]
    assert findings(change(1, ranking="D001")) == [
        ("bad-type", "the ranking is a string; it must be a list of image ids, best first.", 1),
    ]


def test_lists_of_something_else_stay_what_they_were() -> None:
    cirr = worlds.cirr()
    assert (
        findings([], cirr)
        == findings([{"a": 1}], cirr)
        == [("wrong-format", "the file holds a list; a rank file is an object.", 1)]
    )
    # Where FashionIQ is asked for, a list is its items.
    assert findings([]) == [("item-mismatch", "the file has 0 items; fashioniq/dress_val has 4 queries.", 1)]


def test_other_datasets_have_no_such_items() -> None:
    with pytest.raises(RefusedError, match=r"a FashionIQ starter kit file cannot answer cirr/val\."):
        submissions.read(json.dumps(items()).encode(), benchmark=worlds.cirr())


def test_a_query_without_ranking_is_not_written() -> None:
    found = submissions.read(json.dumps(items()).encode(), benchmark=DRESS)
    assert isinstance(found, RankFile)
    partial = replace(found, rankings={"dress_val_00000": GALLERY[:50]})
    with pytest.raises(ConversionError, match='query "dress_val_00001" has no ranking; the starter kit'):
        servers.dump(partial, "fashioniq", Benchmarks(DRESS))
    (native,) = submissions.convert([json.dumps(items()).encode()], "native", benchmark=DRESS)
    document = json.loads(native.content)
    del document["rankings"]["dress_val_00001"]
    with pytest.raises(RefusedError, match="would be refused by whoever reads that format"):
        submissions.convert([json.dumps(document).encode()], "fashioniq", benchmark=DRESS)


@pytest.mark.real_data
def test_the_publishers_own_items_are_the_queries(data_home: Path) -> None:
    document = json.loads((data_home / "fashion-iq" / "captions" / "cap.dress.val.json").read_bytes())
    benchmark = cir_datasets.load("fashioniq/dress_val", data_dir=data_home)
    assert len(document) == len(benchmark) == 2017
    gallery = list(benchmark.gallery or ())
    ranked = [{**item, "ranking": gallery[:50]} for item in document]
    assert submissions.validate(json.dumps(ranked).encode(), benchmark).ok
    (written,) = submissions.convert([json.dumps(ranked).encode()], "fashioniq", benchmark=benchmark)
    assert json.loads(written.content) == ranked
    ranked[0], ranked[1] = ranked[1], ranked[0]
    (finding,) = submissions.validate(json.dumps(ranked).encode(), benchmark).findings
    assert (finding.code, finding.count) == ("item-mismatch", 2)
