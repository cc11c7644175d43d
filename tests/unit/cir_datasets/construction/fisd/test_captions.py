"""Files of source captions: what is read, and how broken ones explain themselves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cir_datasets.construction.fisd.captions import read_captions
from cir_datasets.errors import ConstructionError


def written(folder: Path, name: str, text: str | bytes) -> Path:
    file = folder / name
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


COCO = json.dumps(
    {
        "images": [{"id": 7}],
        "annotations": [
            {"image_id": 7, "id": 1, "caption": "A dog runs. "},
            {"image_id": 7, "id": 2, "caption": "A dog is running."},
            {"image_id": 8, "id": 3, "caption": "Two cats\n sleep."},
        ],
    }
)


@pytest.mark.parametrize(
    ("name", "text", "captions", "at"),
    [
        ("a.txt", "A dog runs.\n\n Two cats  sleep. \n", ["A dog runs.", "Two cats sleep."], "a.txt, line 3"),
        (
            "a.csv",
            'id,caption\n1,"A dog, running"\n2,Two cats\n',
            ["A dog, running", "Two cats"],
            "a.csv, line 3",
        ),
        ("a.tsv", "A dog\thttp://a\nIt's \"two\n", ["A dog", "It's \"two"], "a.tsv, line 2"),
        ("a.tsv", "number\tcaption\n1\tA dog\n2\tA cat\n", ["A dog", "A cat"], "a.tsv, line 3"),
        ("a.jsonl", '{"caption": "A dog"}\n"A cat"\n', ["A dog", "A cat"], "a.jsonl, line 2"),
        ("a.json", '["A dog", {"caption": "A cat"}]', ["A dog", "A cat"], "a.json, record 2"),
        ("a.json", COCO, ["A dog runs.", "Two cats sleep."], "a.json, record 3"),
        ("a.txt", b"\xef\xbb\xbfA dog\r\nA cat\r\n", ["A dog", "A cat"], "a.txt, line 2"),
    ],
)
def test_each_kind_of_file_is_read(
    tmp_path: Path, name: str, text: str, captions: list[str], at: str
) -> None:
    found = read_captions(written(tmp_path, name, text))
    assert [source.caption for source in found.sources] == captions
    assert found.sources[-1].at == at
    assert found.name == name


def test_a_file_may_bring_edits_of_its_own(tmp_path: Path) -> None:
    text = '{"caption": "A dog", "relative_caption": "make it a cat", "target_caption": "A cat"}\n'
    (source,) = read_captions(written(tmp_path, "hq.jsonl", text)).sources
    assert (source.relative_caption, source.target_caption) == ("make it a cat", "A cat")


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("a.txt", "\n \n", "it holds no caption. Fix: write one a line"),
        ("a.txt", b"A dog\n\xff\n", "byte 6 is not UTF-8. Fix: save it as UTF-8"),
        ("a.doc", "A dog", "captions are read from .txt, .csv, .tsv, .jsonl or .json"),
        ("a.csv", "id,text\n1,A dog\n", "line 1 names the columns id, text, and none is 'caption'"),
        ("a.csv", "id,caption\n1,A dog\n2,\n", "line 3: it has no caption. Fix: write one, or leave it out"),
        ("a.jsonl", '{"caption": "A dog"}\n{"caption": \n', "line 2 is not JSON"),
        ("a.jsonl", '{"caption": 7}\n', "line 1: caption is not text"),
        ("a.jsonl", "7\n", "line 1 is neither text nor an object with a 'caption'"),
        ("a.json", '{"captions": []}', "it holds neither a list nor an object with 'annotations'"),
        ("a.json", "[", "it is not JSON"),
        (
            "a.jsonl",
            '{"caption": "A dog", "target_caption": "A cat"}\n',
            "line 1: it has one of relative_caption and target_caption. Fix: write both or neither",
        ),
    ],
)
def test_a_broken_file_says_where_and_how_to_mend_it(tmp_path: Path, name: str, text: str, why: str) -> None:
    file = written(tmp_path, name, text)
    with pytest.raises(ConstructionError) as caught:
        read_captions(file)
    assert str(file) in str(caught.value)
    assert why in str(caught.value)
    assert "Fix: " in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConstructionError, match=r"none\.txt: cannot be read: No such file"):
        read_captions(tmp_path / "none.txt")


@given(st.lists(st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1), min_size=1))
def test_every_caption_of_json_lines_comes_back(
    tmp_path_factory: pytest.TempPathFactory, captions: list[str]
) -> None:
    text = "".join(json.dumps({"caption": caption}) + "\n" for caption in captions)
    file = written(tmp_path_factory.mktemp("captions"), "a.jsonl", text)
    assert [source.caption for source in read_captions(file).sources] == captions
