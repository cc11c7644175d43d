"""Rank files in Parquet: any writer's layout is read; what is not a rank file, or damaged, is a finding."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable
from typing import Any

import benchmark_world as worlds
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from says import says

import submissions
from submissions import Method, RankFile, SubmissionError
from submissions.formats import parquet

CIRR = worlds.cirr()
HEADER: dict[str, Any] = {
    "format": "cir-rank-file",
    "format_version": 1,
    "benchmark": "cirr/val",
    "benchmark_version": 1,
    "method": {"name": "toy"},
}
ONE, TWO = pa.list_(pa.string()), pa.list_(pa.list_(pa.string()))
QUERIES = pa.array(["a", "b", "c"])
RANKINGS = [["x", "y"], ["y"], ["x", "z", "y"]]


def written(columns: dict[str, Any], header: Any = HEADER, **options: Any) -> bytes:
    table = pa.table(columns)
    if header is not None:
        raw = header if isinstance(header, bytes) else json.dumps(header).encode()
        table = table.replace_schema_metadata({"cir-rank-file": raw})
    content = io.BytesIO()
    pq.write_table(table, content, **options)
    return content.getvalue()


def read(content: bytes) -> RankFile:
    found = submissions.read(content)
    assert isinstance(found, RankFile)
    return found


def refused(content: bytes, **options: Any) -> list[tuple[str, str]]:
    with pytest.raises(submissions.RefusedError) as caught:
        submissions.read(content, name="run.parquet", **options)
    return [(found.code, found.message) for found in caught.value.report.findings]


LAYOUTS: list[dict[str, Any]] = [
    {},
    {"compression": "none"},
    {"compression": "snappy", "use_dictionary": False},
    {"compression": "gzip", "data_page_version": "2.0"},
    {"compression": "brotli", "row_group_size": 1},
    {"compression": "lz4", "row_group_size": 2},
    {"column_encoding": "DELTA_LENGTH_BYTE_ARRAY", "use_dictionary": False},
    {"write_page_index": True, "write_page_checksum": True, "write_statistics": False},
]
ID_TYPES = [
    pa.string(),
    pa.large_string(),
    pa.dictionary(pa.int32(), pa.string()),
    pa.dictionary(pa.int8(), pa.large_string()),
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=[str(layout) for layout in LAYOUTS])
@pytest.mark.parametrize("ids", ID_TYPES, ids=str)
@pytest.mark.parametrize("lists", [pa.list_, pa.large_list])
def test_every_writers_layout_is_read(
    layout: dict[str, Any], ids: pa.DataType, lists: Callable[[pa.DataType], pa.DataType]
) -> None:
    found = read(written({"query_id": QUERIES, "ranking": pa.array(RANKINGS, lists(ids))}, **layout))
    assert dict(found.rankings) == {"a": ["x", "y"], "b": ["y"], "c": ["x", "z", "y"]}
    turns = pa.array([RANKINGS[:2], [[], *RANKINGS[2:]], [RANKINGS[1]]], lists(lists(ids)))
    header = {**HEADER, "benchmark": "circled/cirr_val"}
    found = read(written({"query_id": QUERIES, "rankings": turns}, header, **layout))
    assert dict(found.rankings) == {"a": [["x", "y"], ["y"]], "b": [[], ["x", "z", "y"]], "c": [["y"]]}


def test_the_header_of_a_writer_that_knows_no_arrow_schema() -> None:
    table, content = pa.table(GOOD), io.BytesIO()
    with pq.ParquetWriter(content, table.schema, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"cir-rank-file": json.dumps(HEADER)})
    assert dict(read(content.getvalue()).rankings) == {"a": ["x", "y"], "b": ["y"], "c": ["x", "z", "y"]}


def test_a_column_whose_dictionary_was_given_up_is_read_as_texts_within_limits() -> None:
    many = [[f"image-{row:03d}-{place:02d}-with-a-long-name" for place in range(50)] for row in range(600)]
    columns = {"query_id": [str(row) for row in range(600)], "ranking": pa.array(many, ONE)}
    content = written(columns, dictionary_pagesize_limit=4096, write_batch_size=100)
    assert dict(read(content).rankings) == dict(zip(columns["query_id"], many, strict=True))
    many[0][0] = "x" * 5_000
    columns["ranking"] = pa.array(many, ONE)
    content = written(columns, dictionary_pagesize_limit=30_000, write_batch_size=100)
    assert dict(read(content).rankings)["0"] == many[0]


def test_a_query_whose_subset_alone_is_ranked() -> None:
    columns = {
        "query_id": QUERIES,
        "ranking": pa.array([["x"], None, []], ONE),
        "subset_ranking": pa.array([None, ["y"], ["z"]], ONE),
    }
    found = read(written(columns))
    assert dict(found.rankings) == {"a": ["x"], "c": []}
    assert dict(found.subset_rankings) == {"b": ["y"], "c": ["z"]}


GOOD = {"query_id": QUERIES, "ranking": pa.array(RANKINGS, ONE)}
TURNS = pa.array([[each] for each in RANKINGS], TWO)


def rows(*rankings: list[str | None] | None) -> dict[str, Any]:
    """Columns of some queries and their rankings."""
    return {"query_id": QUERIES[: len(rankings)], "ranking": pa.array(rankings, ONE)}


COLUMNS: list[tuple[dict[str, Any], str, str]] = [
    ({**GOOD, "query_id": ["a", None, "c"]}, "bad-type", 'row 2: "query_id" is null; '),
    (rows(["x"], None), "bad-type", "the ranking is null; "),
    (rows(["x", None]), "bad-type", "the 2nd image of the ranking is null; "),
    (rows(["x", ""]), "bad-type", "the 2nd image id of the ranking is an empty"),
    ({**GOOD, "query_id": ["a", "b", "a"]}, "repeated-key", 'row 3: query "a" is answered in row 1 already.'),
    ({"query_id": QUERIES, "rankings": TURNS}, "bad-type", "the ranking holds lists; "),
    ({"ranking": GOOD["ranking"]}, "wrong-format", 'the Parquet file has no column "query_id".'),
    ({"query_id": QUERIES}, "wrong-format", 'the Parquet file has no column "ranking".'),
    ({**GOOD, "rankings": TURNS}, "wrong-format", 'the Parquet file has both "ranking" and "rankings".'),
    ({**GOOD, "score": [1.0, 2.0, 3.0]}, "bad-metadata", 'the Parquet file has a column "score", '),
    ({**GOOD, "query_id": [1.5, 2.5, 3.5]}, "bad-type", 'the column "query_id" is of type double; '),
    ({**GOOD, "ranking": ["x", "y", "z"]}, "bad-type", 'the column "ranking" is of type string; '),
    ({**GOOD, "ranking": pa.array([[1], [2], [3]])}, "bad-type", 'the column "ranking" is of type list<'),
    ({**GOOD, "ranking": pa.array([{"x": "y"}] * 3)}, "bad-type", 'the column "ranking" is of type struct<'),
]


@pytest.mark.parametrize(("columns", "code", "message"), COLUMNS, ids=[message for *_, message in COLUMNS])
def test_wrong_columns_and_values_are_named(columns: dict[str, Any], code: str, message: str) -> None:
    ((found, said),) = refused(written(columns))
    assert (found, said[: len(message)]) == (code, message)


@pytest.mark.parametrize(
    ("header", "code", "message"),
    [
        (None, "wrong-format", 'the Parquet schema has no metadata "cir-rank-file"'),
        (b"{", "malformed", "the header: line 1, column 2: "),
        (b'{"a": 1, "a": 2}', "repeated-key", 'the header: the key "a" is there twice '),
        (b"[]", "wrong-format", "the header says a list; "),
        ({**HEADER, "format": "cir-rank-file-lines"}, "wrong-format", 'the header says "cir-rank-file-l'),
        ({**HEADER, "rankings": {}}, "bad-type", 'the header holds "rankings"; '),
        ({**HEADER, "format_version": 2}, "wrong-version", '"format_version" is 2; '),
    ],
)
def test_a_broken_header_is_named(header: Any, code: str, message: str) -> None:
    ((found, said),) = refused(written(GOOD, header))
    assert (found, said[: len(message)]) == (code, message)


def test_no_rows_answer_nothing() -> None:
    content = written({"query_id": pa.array([], pa.string()), "ranking": pa.array([], ONE)})
    codes = {finding.code for finding in submissions.validate(content, CIRR).findings}
    assert codes == {"missing-query", "missing-subset"}


def damaged(content: bytes) -> str:
    ((code, message),) = refused(content)
    assert code == "unreadable"
    assert message.startswith("the Parquet file is damaged: ")
    return message


def test_a_damaged_file_is_unreadable() -> None:
    content = written(GOOD)
    damaged(content[:4])
    cut = "the Parquet file has no footer; it was cut."
    assert refused(content[:-1]) == refused(content[: len(content) // 2]) == [("unreadable", cut)]
    damaged(content[:4] + content[40:])
    damaged(content[:-8] + b"\x00" * 4 + b"PAR1")
    damaged(content[:4] + b"\x00" * 60 + content[64:])
    huge = content[:-8] + struct.pack("<i", 2**31 - 1) + b"PAR1"
    ((code, message),) = refused(huge)
    assert (code, message) == ("too-large", "its footer has 2,147,483,647 bytes; at most 524,288 are read.")


def test_text_that_a_few_bytes_repeat_is_not_decoded() -> None:
    content = written(GOOD, use_dictionary=False, column_encoding="DELTA_BYTE_ARRAY")
    with pytest.raises(submissions.RefusedError) as caught:
        submissions.read(content)
    (finding,) = caught.value.report.findings
    assert (finding.code, finding.message) == (
        "unreadable",
        "a page of the Parquet file is in DELTA_BYTE_ARRAY, which is not read.",
    )
    # What the fix says is what helps.
    says(finding.fix, "let the writer choose dictionaries or PLAIN", "pyarrow", "column_encoding")
    assert submissions.read(written(GOOD, use_dictionary=False)) == submissions.read(written(GOOD))


def test_what_it_unfolds_to_is_bounded_before_it_is_decoded() -> None:
    columns = {"query_id": ["a"], "ranking": pa.array([["x"] * 200_000], ONE)}
    content = written(columns)
    assert len(content) < 2_000
    ((code, message),) = refused(content, max_bytes=400_000)
    assert code == "too-large"
    # How many bytes the pages have is the writer's choice.
    assert message.startswith("it unfolds to 200,001 values and ")
    assert message.endswith(" bytes at most 100,000 values and 400,000 bytes are read.")
    long = written({"query_id": ["a"], "ranking": pa.array([["x" * 300_000]], ONE)}, compression="zstd")
    assert len(long) < 2_000 + 600
    ((code, message),) = refused(long, max_bytes=200_000)
    assert code == "too-large"
    assert "and 200,000 bytes are read." in message


def varint(value: int) -> bytes:
    """Thrift's zigzag number."""
    return plain_varint(value << 1)


def plain_varint(value: int) -> bytes:
    made = b""
    while value > 127:
        made += bytes([value & 127 | 128])
        value >>= 7
    return made + bytes([value])


def test_a_lying_row_count_is_found() -> None:
    content = written(GOOD, compression="none", store_schema=False)
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    # FileMetaData's field 3 (num_rows) follows the schema: i64 is type 6 of the compact protocol.
    footer = content[start:-8]
    assert footer.count(b"\x16" + varint(3)) >= 2
    lying = footer.replace(b"\x16" + varint(3), b"\x16" + varint(60), 2)
    damaged(content[:start] + lying + content[-8:])


def test_ids_that_are_not_strings_are_not_written() -> None:
    with pytest.raises(SubmissionError, match=r"cannot be written as Parquet: .* Fix: use strings as ids\."):
        parquet.dump(RankFile("cirr/val", 1, Method(name="toy"), {"q": [1]}))


def encoded_ids(content: bytes) -> list[Any]:
    table = pq.read_table(pa.BufferReader(content), read_dictionary=["ranking.list.element"])
    return table.column("ranking").chunks


def test_what_is_written_has_one_dictionary_of_ids() -> None:
    many = {str(row): [f"image-{row * 50 + place:06d}" for place in range(50)] for row in range(3000)}
    content = parquet.dump(RankFile("cirr/val", 1, Method(name="toy"), many))
    (ids,) = (chunk.values for chunk in encoded_ids(content))
    assert len(ids.dictionary) == 150_000
    assert dict(read(content).rankings) == many


HOW = ": three to five ids a query, best first, the reference left out"


@pytest.mark.parametrize(
    ("to", "place"),
    [
        ("native", '"subset_rankings"'),
        ("lines", 'the field "subset_ranking" to each line'),
        ("parquet", 'the column "subset_ranking"'),
        ("trec", "lines with the query id QUERY#subset"),
    ],
)
def test_the_fix_of_a_missing_subset_is_one_of_the_format(to: str, place: str) -> None:
    alone = written({"query_id": QUERIES, "ranking": RANKINGS})
    (made,) = submissions.convert([alone], to)
    report = submissions.validate(made.content, CIRR)
    assert [found.fix for found in report.findings if found.code == "missing-subset"] == [f"add {place}{HOW}"]


def test_an_id_that_is_long_and_often_there_is_written_once() -> None:
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 1_000_000, pa.int32()), ["x" * 900_000])
    ranking = pa.ListArray.from_arrays(pa.array([0, 999_999, 1_000_000], pa.int32()), texts)
    content = written({"query_id": ["a", "b"], "ranking": ranking}, compression="zstd")
    (made,) = submissions.convert([content], "parquet")
    assert len(made.content) < 10_000
    (chunk,) = encoded_ids(made.content)
    assert chunk.offsets.to_pylist() == [0, 999_999, 1_000_000]
    assert chunk.values.dictionary.to_pylist() == ["x" * 900_000]
    with pytest.raises(submissions.ConversionError, match="choose --to parquet"):
        submissions.convert([content], "native")
