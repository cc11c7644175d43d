"""What people decided comes back whole, and what does not fit is refused line by line."""

from __future__ import annotations

import csv
import json
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


def written(folder: Path, reviewed: list[dict[str, Any]] | None = None) -> Path:
    assert write_review(folder, QUERIES, reviewed or ()) is False
    return folder / "review.csv"


def save(path: Path, rows: list[dict[str, str]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_a_table_that_nobody_touched_changes_nothing(tmp_path: Path) -> None:
    table = written(tmp_path)
    rows = list(reviewed_rows(QUERIES, read_review(table, QUERIES)))
    for row, query in zip(rows, QUERIES, strict=True):
        assert {key: row[key] for key in query} == query
        assert row["verdict"] == ""
        assert not {"before", "failed"} & set(row)
    assert list(reviewed_rows(QUERIES, {})) == rows


def test_corrections_are_taken_and_nothing_is_lost(tmp_path: Path) -> None:
    table = written(tmp_path)
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
    assert rows[2] == QUERIES[2] | {"verdict": "", "note": ""}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"query": "v/9"}, "there is no such query"),
        ({"query": "v/1"}, "it is there twice"),
        ({"verdict": "yes"}, "verdict 'yes' is not known"),
        ({"caption": " "}, "caption is empty"),
        ({"category": "colour"}, "category 'colour' is not known"),
        ({"positives": ""}, "positives names fewer than 1"),
        ({"positives": "v/1a.jpg"}, "v/1a.jpg is not one of its targets"),
        ({"negatives": "v/0a.jpg"}, "an image is named twice"),
        ({"caption": "with a blue star"}, "it is changed, and has no verdict"),
        ({"verdict": "keep", "caption": "with a\0star"}, "caption holds U.0000"),
    ],
)
def test_a_line_that_does_not_fit_is_named(tmp_path: Path, change: dict[str, str], said: str) -> None:
    table = written(tmp_path)
    given = lines(table)
    given[0] |= change
    with pytest.raises(ConstructionError, match=f"query .*{said}"):
        read_review(save(tmp_path / "done.csv", given), QUERIES)


def test_what_the_page_saves_as_json_is_read(tmp_path: Path) -> None:
    answers = [
        {"query": "v/0", "verdict": "drop", "note": "blurred", "caption": "with a star"},
        {**QUERIES[1], "verdict": "keep", "positives": "v/1b.jpg", "negatives": ["v/1a.jpg"]},
    ]
    file = tmp_path / "answers-1.json"
    file.write_text(json.dumps({"form": "zerosight", "annotator": "Ann", "answers": answers}))
    rows = list(reviewed_rows(QUERIES, read_review(file, QUERIES)))
    assert rows[0]["failed"] == "review: blurred"
    assert (rows[1]["positives"], rows[1]["negatives"]) == (["v/1b.jpg"], ["v/1a.jpg"])
    assert [row["verdict"] for row in rows] == ["drop", "keep", "", ""]


def test_another_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ConstructionError, match="line 1 does not name the columns query, verdict"):
        read_review(tmp_path / "other.csv", QUERIES)


def test_tables_of_spreadsheets_are_read_and_faults_have_the_line_of_the_file(tmp_path: Path) -> None:
    given = lines(written(tmp_path))
    given[0] |= {"verdict": "Keep"}
    given[1] |= {"verdict": "DROP"}
    path = tmp_path / "done.csv"
    save(path, given)
    with path.open(newline="") as file:
        rows = list(csv.reader(file))
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        csv.writer(file, delimiter=";").writerows(rows)
    assert [one["verdict"] for one in read_review(path, QUERIES).values()] == ["keep", "drop", "", ""]
    given[2] |= {"verdict": "yes"}
    # Each caption has two lines.
    with pytest.raises(ConstructionError, match="line 6, query 'v/2'"):
        read_review(save(path, given), QUERIES)


@pytest.mark.parametrize("more", ["x" * 140_000, ""])
def test_a_quotation_mark_that_is_not_closed_is_named(tmp_path: Path, more: str) -> None:
    path = written(tmp_path)
    path.write_text(path.read_text() + '"v/9,' + more)
    with pytest.raises(ConstructionError, match="line 10: it is not CSV"):
        read_review(path, QUERIES)


def test_what_people_wrote_into_the_table_is_not_written_over(tmp_path: Path) -> None:
    table = written(tmp_path)
    given = lines(table)
    given[0] |= {"verdict": "drop"}
    content = save(table, given).read_bytes()
    assert write_review(tmp_path, QUERIES) is True
    assert write_review(tmp_path, QUERIES) is True
    # Taken in, it is left as it is, too.
    now = list(reviewed_rows(QUERIES, read_review(table, QUERIES)))
    assert write_review(tmp_path, QUERIES, now) is False
    assert table.read_bytes() == content
    other = [row | {"caption": "other"} for row in QUERIES]
    assert write_review(tmp_path, other) is True
    assert table.read_bytes() == content


def shown_items(folder: Path) -> list[dict[str, Any]]:
    """What the page shows, as its script reads it."""
    page = (folder / "review.html").read_text()
    data = page.partition('<script id="data" type="application/json">')[2].partition("</script>")[0]
    return json.loads(data)["items"]


def test_a_second_round_keeps_the_first(tmp_path: Path) -> None:
    given = lines(written(tmp_path))
    given[0] |= {"verdict": "drop", "note": "blurred"}
    given[1] |= {"verdict": "keep", "positives": "v/1a.jpg", "negatives": ""}
    first = list(reviewed_rows(QUERIES, read_review(save(tmp_path / "1.csv", given), QUERIES)))
    table = written(tmp_path, first)
    assert [line["verdict"] for line in lines(table)] == ["drop", "keep", "", ""]
    assert lines(table)[0]["note"] == "blurred"
    items = shown_items(tmp_path)
    assert [item["brings"]["verdict"] for item in items] == ["drop", "keep", "", ""]
    assert [one["name"] for one in items[1]["pictures"]["targets"]] == ["v/1a.jpg", "v/1b.jpg", "v/1c.jpg"]
    again = lines(table)
    again[2] |= {"verdict": "drop"}
    for rows in (again, again[2:3]):
        decisions = read_review(save(tmp_path / "2.csv", rows), QUERIES, first)
        second = list(reviewed_rows(QUERIES, decisions, first))
        assert second[:2] == first[:2]
        assert [row["verdict"] for row in second] == ["drop", "keep", "drop", ""]
    assert [line["verdict"] for line in lines(written(tmp_path, second))] == ["drop", "keep", "drop", ""]
    # Made anew, queries have no decisions: those of the table stay in it.
    content = table.read_bytes()
    assert write_review(tmp_path, QUERIES) is True
    assert table.read_bytes() == content


def test_the_browser_remembers_answers_to_these_queries_alone(tmp_path: Path) -> None:
    def memory() -> list[str]:
        return [item["version"] for item in shown_items(tmp_path)]

    written(tmp_path)
    before = memory()
    write_review(tmp_path, QUERIES, [row | {"verdict": "keep", "note": ""} for row in QUERIES])
    assert memory() == before
    write_review(tmp_path, [row | {"caption": "other"} for row in QUERIES])
    assert memory() != before


@pytest.mark.parametrize("text", ["=1+1", "+a star", "-1", "@star", "'=1"])
def test_what_a_spreadsheet_would_compute_is_harmless_and_comes_back(tmp_path: Path, text: str) -> None:
    queries = [row | {"caption": text} for row in QUERIES]
    write_review(tmp_path, queries)
    assert {line["caption"] for line in lines(tmp_path / "review.csv")} == {f"'{text}"}
    decisions = read_review(tmp_path / "review.csv", queries)
    assert [row["caption"] for row in reviewed_rows(queries, decisions)] == [text] * len(queries)
    assert not any("before" in row for row in reviewed_rows(queries, decisions))


def test_the_table_that_is_taken_in_is_not_touched_even_where_it_is_ours(tmp_path: Path) -> None:
    table = written(tmp_path)
    content = table.read_bytes()
    now = [row | {"verdict": "keep", "note": ""} for row in QUERIES]
    write_review(tmp_path, QUERIES, now, taken_in=table)
    assert table.read_bytes() == content
    write_review(tmp_path, QUERIES, now)
    assert table.read_bytes() != content
