"""What people decided comes back whole, and what does not fit is refused line by line."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from cir_datasets.construction.zerosight.review import read_review, reviewed_rows, write_review
from cir_datasets.errors import ConstructionError

QUERIES: list[dict[str, Any]] = [
    {
        "query": f"v/{number}",
        "reference": f"v/{number}.jpg",
        "caption": 'with a "red", small\nstar',
        "category": "attribute",
        "positives": [f"v/{number}a.jpg", f"v/{number}b.jpg"],
        "negatives": [f"v/{number}c.jpg"],
    }
    for number in range(4)
]


def lines(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def save(path: Path, rows: list[dict[str, str]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_a_table_that_nobody_touched_changes_nothing(tmp_path: Path) -> None:
    _, table = write_review(tmp_path, QUERIES)
    rows = list(reviewed_rows(QUERIES, read_review(table, QUERIES)))
    for row, query in zip(rows, QUERIES, strict=True):
        assert {key: row[key] for key in query} == query
        assert row["verdict"] == ""
        assert not {"before", "failed"} & set(row)
    assert [row | {"note": ""} for row in reviewed_rows(QUERIES, {})] == rows


def test_corrections_are_taken_and_nothing_is_lost(tmp_path: Path) -> None:
    _, table = write_review(tmp_path, QUERIES)
    given = lines(table)
    given[0] |= {
        "verdict": "keep",
        "caption": "with a blue star",
        "positives": "v/0b.jpg",
        "negatives": "v/0a.jpg v/0c.jpg",
    }
    given[1] |= {"verdict": "drop", "note": "blurred"}
    del given[2]
    rows = list(reviewed_rows(QUERIES, read_review(save(tmp_path / "done.csv", given), QUERIES)))
    assert [row["query"] for row in rows] == [query["query"] for query in QUERIES]
    assert (rows[0]["caption"], rows[0]["positives"]) == ("with a blue star", ["v/0b.jpg"])
    assert rows[0]["before"]["positives"] == QUERIES[0]["positives"]
    assert rows[1]["failed"] == "review: blurred"
    assert rows[2] == QUERIES[2] | {"verdict": ""}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"query": "v/9"}, "there is no such query"),
        ({"query": "v/1"}, "the query stands there twice"),
        ({"verdict": "yes"}, "the verdict is 'yes'"),
        ({"caption": " "}, "the caption is empty"),
        ({"category": "colour"}, "the category is 'colour'"),
        ({"positives": ""}, "it has no positive"),
        ({"positives": "v/1a.jpg"}, "v/1a.jpg is not one of its targets"),
        ({"negatives": "v/0a.jpg"}, "an image is named twice"),
    ],
)
def test_a_line_that_does_not_fit_is_named(tmp_path: Path, change: dict[str, str], said: str) -> None:
    _, table = write_review(tmp_path, QUERIES)
    given = lines(table)
    given[0] |= change
    with pytest.raises(ConstructionError, match=f"query .*{said}"):
        read_review(save(tmp_path / "done.csv", given), QUERIES)


def test_another_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ConstructionError, match="it has no column query, verdict"):
        read_review(tmp_path / "other.csv", QUERIES)
