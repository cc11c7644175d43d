"""Reading a JSON list piece by piece, and hashing row by row, give what reading and hashing whole give."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cir_datasets import registry
from cir_datasets.builders.reading import read_json, read_records, stream_items
from cir_datasets.errors import RecordError
from cir_datasets.prepared import tables
from cir_datasets.rows.benchmark import Benchmark
from cir_datasets.rows.hashing import DataHasher, data_hash

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("streaming") / "list.json"


@pytest.mark.slow
@given(
    items=st.lists(VALUES, max_size=6),
    chunk=st.integers(1, 40),
    ascii_only=st.booleans(),
    indent=st.sampled_from([None, 0, 3]),
)
def test_a_streamed_list_is_the_list(
    items: list[Any], chunk: int, ascii_only: bool, indent: int | None, file: Path
) -> None:
    text = json.dumps(items, ensure_ascii=ascii_only, indent=indent)
    file.write_bytes(b"\n " + text.encode("utf-8", "surrogatepass" if ascii_only else "strict") + b" \r\n")
    assert list(stream_items(file, json.JSONDecoder(), chunk_bytes=chunk)) == items


@given(
    items=st.lists(VALUES, min_size=1, max_size=4),
    place=st.integers(0, 400),
    wrong=st.sampled_from([b"", b"]", b"}", b"\x00", b"\xff", b'"', b",", b"NaN", b"tru", b"\n"]),
    chunk=st.sampled_from([1, 7, 1 << 20]),
)
def test_a_damaged_list_is_refused_as_when_it_is_read_whole(
    items: list[Any], place: int, wrong: bytes, chunk: int, file: Path
) -> None:
    content = json.dumps([{"item": item} for item in items], indent=1).encode()
    place = place % len(content)
    file.write_bytes(content[:place] + wrong + (b"" if wrong == b"" else content[place:]))
    try:
        whole: Any = read_json(file, list)
    except RecordError as error:
        whole = str(error)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cir_datasets.builders.reading.CHUNK_BYTES", chunk)
        try:
            streamed: Any = [record.fields for record in read_records(file)]
        except RecordError as error:
            streamed = str(error)
    if isinstance(whole, list) and not all(isinstance(item, dict) for item in whole):
        assert "must be an object" in streamed
    elif isinstance(whole, list):
        assert streamed == whole
    else:
        assert isinstance(streamed, str)
        assert streamed.startswith(str(file))
        if "column" in whole and "column" in streamed:
            assert streamed == whole


def rows(ids: list[str]) -> list[dict[str, Any]]:
    return [
        {
            "query_id": name,
            "reference_image_id": f"reference of {name}",
            "captions": [name, "and more"],
            "relative_caption": None,
            "target_image_id": None,
            "positive_image_ids": ["p", name],
            "negative_image_ids": [],
            "subset_image_ids": [],
            "aspects": [],
        }
        for name in ids
    ]


@given(ids=st.lists(st.text(min_size=1), max_size=20, unique=True))
def test_hashing_row_by_row_is_hashing_all(ids: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    made = rows(ids)
    with DataHasher(tmp_path_factory.getbasetemp()) as hasher:
        for row in made:
            hasher.add(row)
        found = hasher.hexdigest()
    items = [
        [r["query_id"], r["reference_image_id"], r["captions"], None, r["positive_image_ids"], [], [], []]
        for r in made
    ]
    definition = hashlib.sha256(orjson.dumps(sorted(items, key=lambda item: item[0]))).hexdigest()
    assert found == data_hash(made) == definition


@pytest.mark.parametrize("batch", [1, 2, 5, 4096])
def test_the_size_of_a_batch_changes_nothing(batch: int, tmp_path: Path, monkeypatch: Any) -> None:
    from cir_datasets import load
    from cir_datasets.builders import builder_class
    from cir_datasets.export.template import write_template

    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(tables, "BATCH_ROWS", batch)
    write_template("zerosight", tmp_path / "data")
    spec = registry.spec("zerosight/all")
    found = load("zerosight/all", data_dir=tmp_path / "data", verification_mode="no_checks")
    files = {name: tmp_path / "data" / name for name in (*spec.config.files, *spec.config.gallery_files)}
    builder = builder_class("zerosight")(spec, files)
    images = builder.images()
    whole = Benchmark.from_rows(spec, list(builder.rows()), [image["image_id"] for image in images])
    assert found.rows() == whole.rows()
    assert (found.data_hash, found.gallery_hash) == (whole.data_hash, whole.gallery_hash)
    assert found.gallery == whole.gallery
