"""What is read of JSON is what the file says, and odd JSON is named with its place."""

from __future__ import annotations

from typing import Any

import pytest

from submissions.formats.native import parse_json
from submissions.rank_file.findings import Findings


def parsed(content: bytes) -> tuple[Any, list[str]]:
    findings = Findings("run.json")
    value = parse_json(content, findings)
    return value, [finding.message for finding in findings.listed()]


def test_a_value_is_read_as_it_stands() -> None:
    assert parsed('{"a": ["é", 1, 1.5, true, null, {"b": []}]}'.encode()) == (
        {"a": ["é", 1, 1.5, True, None, {"b": []}]},
        [],
    )
    assert parsed(b"[" * 16 + b"]" * 16)[1] == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"a":1,"a":2}', 'the key "a" is there twice in the top level.'),
        (b'{"rankings":{"1":[],"2":[],"1":[]}}', 'the key "1" is there twice in "rankings".'),
        (b'{"x":[{"a":1,"a":1}]}', 'the key "a" is there twice in an inner object.'),
        (b'{"a":1,"\\u0061":2}', 'the key "a" is there twice in the top level.'),
        (b"[NaN]", "line 1, column 2: NaN and Infinity are not JSON."),
        (b'{\n "a": -Infinity}', "line 2, column 8: NaN and Infinity are not JSON."),
        (b"{'a': 1}", "line 1, column 2: "),
        (b"[" * 17 + b"]" * 17, "its lists or objects are nested more than 16 deep; "),
        (b"", "the file is empty."),
        (b"\x00\x01\xff", "byte 3 is not UTF-8 text."),
        (b"PK\x03\x04\xff", "this is a zip archive; take the JSON file out of it."),
        (b"\x89PNG\r\n\x1a\n", "this is a PNG picture."),
        (b"\n<!DOCTYPE html>\n<html>", "this is a page of HTML or XML."),
        (
            b"version https://git-lfs.github.com/spec/v1\n",
            "this is a pointer of Git LFS, without the file's content.",
        ),
    ],
)
def test_odd_json_is_named_by_what_is_wrong_and_where(content: bytes, message: str) -> None:
    messages = parsed(content)[1]
    assert len(messages) == 1
    assert messages[0].startswith(message)
