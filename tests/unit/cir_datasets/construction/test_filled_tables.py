"""CSV as people hand it in: what is taken, and the line of what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from cir_datasets.construction.filled_tables import read_filled
from cir_datasets.construction.review.answers import read_answers
from cir_datasets.construction.review.form import load_form
from cir_datasets.errors import ConstructionError, RecordError


def test_records_have_the_line_that_they_begin_in(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'\xef\xbb\xbfid;text\r\na;"one\r\ntwo"\r\n;\r\n\r\nb; three ;;\r\nc\r\n')
    assert read_filled(path, ["id"], ConstructionError, fix="") == [
        (2, {"id": "a", "text": "one\r\ntwo"}),
        (6, {"id": "b", "text": "three"}),
        (7, {"id": "c", "text": ""}),
    ]


@pytest.mark.parametrize(
    "content",
    [
        b'sep=;\r\nid;text\r\na;"red, small"\r\n',
        'sep=\t\nid\ttext\na\t"red, small"\n'.encode("utf-16"),
        'id\ttext\r\na\t"red, small"\r\n'.encode("utf-16"),
        b"\xfe\xff" + "id;text\na;red, small\n".encode("utf-16-be"),
        b"id\ttext\na\tred, small\n",
    ],
)
def test_what_excel_saves_is_read(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    ((_, row),) = read_filled(path, ["id"], ConstructionError, fix="")
    assert row == {"id": "a", "text": "red, small"}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "line 1 does not name the columns id. Fix: add it."),
        (b"id,x,id\n", "line 1 names id twice"),
        (b"id,x\na,b\nc,d,e\n", "line 3: 3 fields, and line 1 names 2 columns"),
        (b'id,x\na,b\nc,"d\n' + b"e\n" * 70_000, "line 3: it is not CSV"),
        (b'id,x\na,"b', "line 2: it is not CSV"),
        (b"sep=;\nx;y\n1;2\n", "line 2 does not name the columns id. Fix: add it."),
        (b"sep=;\nid;y\n1;2;3\n", "line 3: 3 fields, and line 2 names 2 columns"),
        (b"id\n\xff\n", "byte 3 is not UTF-8"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    with pytest.raises(ConstructionError) as caught:
        read_filled(path, ["id"], ConstructionError, fix="add it.")
    assert said in str(caught.value)


def test_answers_of_annotators_are_read_by_the_same_rule(tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    path.write_text("task;caption;seconds\nt1;two dogs, not one;4\n")
    assert read_answers(load_form("cirr"), path)[0]["caption"] == "two dogs, not one"
    path.write_text('task,caption,seconds\nt1,"two\ndogs",4\nt2,a cat,soon\n')
    with pytest.raises(RecordError, match="line 4: seconds is not a number"):
        read_answers(load_form("cirr"), path)
    path.write_text('task,caption\nt1,"two dogs\n')
    with pytest.raises(RecordError, match="line 2: it is not CSV"):
        read_answers(load_form("cirr"), path)
