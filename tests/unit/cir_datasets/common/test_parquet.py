"""Parquet of strangers: what it unfolds to is bounded by what it says, and by the process that decodes it."""

from __future__ import annotations

import io
import signal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cir_datasets.common import parquet
from cir_datasets.common.parquet import ParquetError, ParquetLimits, parquet_schema, read_parquet

MANY = ParquetLimits(size=1_000, values=10**7, pages=10**8)


def written(columns: dict[str, Any], **options: Any) -> bytes:
    content = io.BytesIO()
    pq.write_table(pa.table(columns), content, **options)
    return content.getvalue()


def read(content: bytes, limits: ParquetLimits = MANY) -> pa.Table:
    return read_parquet(content, limits, parquet_schema(content).names)


def kind_of(content: bytes, limits: ParquetLimits = MANY) -> str:
    with pytest.raises(ParquetError) as caught:
        read(content, limits)
    return caught.value.kind


def test_a_table_is_read_with_texts_as_dictionaries_and_metadata() -> None:
    table = pa.table({"q": ["a", "b", "a"], "n": [1, 2, None], "l": [["x"], None, []]})
    table = table.replace_schema_metadata({"mine": "yes"})
    content = io.BytesIO()
    pq.write_table(table, content, row_group_size=2)
    found = read(content.getvalue())
    assert found.to_pydict() == table.to_pydict()
    assert parquet_schema(content.getvalue()).metadata[b"mine"] == b"yes"
    assert [str(kind) for kind in found.schema.types] == [
        "dictionary<values=string, indices=int32, ordered=0>",
        "int64",
        "list<item: dictionary<values=string, indices=int32, ordered=0>>",
    ]
    assert read_parquet(content.getvalue(), MANY, ["n"]).to_pydict() == {"n": [1, 2, None]}


def test_what_a_sound_file_says_is_bounded_before_it_is_decoded() -> None:
    content = written({"q": ["a"] * 1_000})
    assert kind_of(content, ParquetLimits(1_000, values=999, pages=10**6)) == "large"
    assert kind_of(content, ParquetLimits(1_000, values=1_000, pages=10)) == "large"
    assert kind_of(content, ParquetLimits(1_000, values=1_000, pages=10**6, rows=999)) == "rows"
    assert (
        kind_of(written({"q": ["a"]}, use_dictionary=False, column_encoding="DELTA_BYTE_ARRAY")) == "encoding"
    )


def test_what_cannot_be_decoded_is_damaged() -> None:
    content = written({"q": ["a", "b"]}, compression="none")
    assert kind_of(content[:-1]) == "cut"
    assert kind_of(content[:4] + bytes(20) + content[24:]) == "damaged"
    assert kind_of(content[:-8] + b"\xff\xff\xff\x7fPAR1") == "footer"


@pytest.mark.skipif(not hasattr(signal, "SIGXCPU"), reason="only there has a process limits")
def test_what_takes_more_memory_than_it_may_ends_its_process_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    content = written({"q": [f"image {number}" for number in range(300_000)]}, use_dictionary=False)
    assert len(read(content)) == 300_000
    monkeypatch.setattr(parquet, "_MEMORY", 2**20)
    monkeypatch.setattr(parquet, "_MEMORY_PER_BYTE", 0)
    assert kind_of(content) == "memory"
