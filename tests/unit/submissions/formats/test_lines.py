"""Rank files in JSON Lines: a header, then a line a query; every mistake is said with its line."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from says import says

import submissions
from submissions import RankFile
from submissions.rank_file.content import LIMITS

HEADER: dict[str, Any] = {
    "format": "cir-rank-file-lines",
    "format_version": 1,
    "benchmark": "cirr/val",
    "benchmark_version": 1,
    "method": {"name": "toy"},
}
A = {"query_id": "a", "ranking": ["x", "y"], "subset_ranking": ["x"]}
B = {"query_id": "b", "ranking": ["y"]}


def lines(*entries: Any) -> bytes:
    return b"\n".join(each if isinstance(each, bytes) else json.dumps(each).encode() for each in entries)


def read(*entries: Any) -> RankFile:
    found = submissions.read(lines(*entries))
    assert isinstance(found, RankFile)
    return found


def findings(*entries: Any) -> list[tuple[str, str, int]]:
    with pytest.raises(submissions.RefusedError) as caught:
        submissions.read(lines(*entries), name="run.jsonl")
    return [(found.code, found.message, found.count) for found in caught.value.report.findings]


def test_line_ends_blank_lines_and_escapes() -> None:
    odd = b'{"query_id": "\\u0061", "ranking": ["x\\\\", "\\"y\\":"]}\r'
    found = submissions.read(b"\n" + lines(HEADER) + b"\r\n\n" + odd + b"\n\n")
    assert dict(found.rankings) == {"a": ["x\\", '"y":']}


BROKEN: list[tuple[Any, str, str]] = [
    (b'{"query_id": "b", "ranking": ["y"]', "malformed", "line 3, column 35: "),
    (b'{"query_id": "b", "ranking": [NaN]}', "malformed", "line 3, column 31: "),
    (b'{"query_id": "b", "ranking": ["\xff"]}', "unreadable", "line 3: byte 32 "),
    (b'{"query_id": "b", "ranking": ["y"], "ranking": ["z"]}', "repeated-key", 'line 3: the key "ranking" '),
    (b'{"query_id": "b", "ranking": ["\\u0079"], "query_id": "c"}', "repeated-key", 'line 3: the key "q'),
    (b"7", "bad-type", "line 3: it holds a number; "),
    (b"null", "wrong-format", "line 3: the file holds null; "),
    ({"ranking": ["y"]}, "bad-type", 'line 3: the key "query_id" is missing.'),
    ({"query_id": 5.5, "ranking": ["y"]}, "bad-type", 'line 3: "query_id" is a number; '),
    ({"query_id": "b", "rankin": ["y"]}, "bad-metadata", "line 3: a query's line has no key"),
    ({"query_id": "b", "ranking": ["y"], "rankings": [["y"]]}, "bad-type", 'line 3: query "b" has both '),
    ({"query_id": "b"}, "bad-type", 'line 3: query "b" has neither '),
    ({**A, "ranking": ["y"]}, "repeated-key", 'line 3: query "a" is answered in line 2 already.'),
]


@pytest.mark.parametrize(("line", "code", "message"), BROKEN, ids=[message for *_, message in BROKEN])
def test_a_broken_line_is_named(line: Any, code: str, message: str) -> None:
    ((found, said, count),) = findings(HEADER, A, line)
    assert (found, said[: len(message)], count) == (code, message, 1)


def test_broken_lines_are_counted() -> None:
    found = findings(HEADER, A, *[b"{"] * 7, B)
    assert found == [("malformed", "line 3, column 2: unexpected end of data.", 7)]


@pytest.mark.parametrize(
    ("header", "code", "message"),
    [
        (A, "wrong-format", "line 1 is not a header"),
        ({**HEADER, "rankings": {}}, "bad-type", 'line 1: the header holds "rankings"; '),
        ({**HEADER, "format_version": 2}, "wrong-version", '"format_version" is 2; '),
        ({**HEADER, "scores": 1}, "bad-metadata", 'the top level has no key "scores".'),
        ({**HEADER, "method": 7}, "bad-metadata", '"method" is a number; '),
        ({key: HEADER[key] for key in HEADER if key != "method"}, "bad-metadata", 'the key "method" '),
    ],
)
def test_a_broken_header_has_one_finding(header: Any, code: str, message: str) -> None:
    ((found, said, count),) = findings(header, A)
    assert (found, said[: len(message)], count) == (code, message, 1)


def test_what_is_wrong_inside_a_ranking_names_the_query() -> None:
    assert findings(HEADER, {"query_id": "b", "ranking": ["x", 3.5]}) == [
        ("bad-type", "the 2nd image of the ranking is a number (3.5); an image id is a string.", 1)
    ]
    assert findings(HEADER, {"query_id": "b", "rankings": [["x"]]}) == [
        ("bad-type", "the ranking holds lists; a benchmark without turns wants a flat list of image ids.", 1)
    ]


def test_odd_lines_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    # Each costs a look of its own, whatever its length, and may hold no list that would be counted.
    monkeypatch.setitem(LIMITS, "odd_lines", replace(LIMITS["odd_lines"], least=3, per_byte=0))
    odd = [b'{"query_id": "%d", "ranking": "\\u0142"}' % number for number in range(3)]
    plain = [{"query_id": f"p{number}", "ranking": ["x"]} for number in range(9)]
    assert len(read(HEADER, *plain).rankings) == 9
    # A file with an odd line is read with care from its header on.
    assert {code for code, *_ in findings(HEADER, *odd[:2])} == {"bad-type"}
    ((code, message, _),) = findings(HEADER, *odd[:2], *plain)
    assert code == "too-large"
    says(message, "line 4", "more than 3 lines that have to be looked at one by one")
