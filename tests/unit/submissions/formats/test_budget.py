"""The budget of one file: what it refuses, what it lets through, and that what is read fast is read alike."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import benchmark_world as worlds
import orjson
import pytest

import submissions
from submissions.formats.native import parse_json
from submissions.rank_file.columns import Columns
from submissions.rank_file.content import LIMITS, MAX_BYTES, Budget, OverBudgetError
from submissions.rank_file.findings import Findings

CIRR = worlds.cirr()
ROOT = Path(__file__).resolve().parents[4]
MIB = 2**20


def test_a_limit_grows_with_the_file() -> None:
    assert Budget(1_000).limit("values") == LIMITS["values"].least
    assert Budget(100 * MIB).limit("values") == 400 * MIB
    assert Budget(100 * MIB).unpacked() == MAX_BYTES
    assert Budget(1_000, max_bytes=5_000).unpacked() == 5_000


def test_what_is_spent_adds_up() -> None:
    budget = Budget(1_000)
    budget.spend("broken", 999)
    budget.spend("broken")
    with pytest.raises(OverBudgetError, match=r"^line 7: it holds more than 1,000 lines or scores that "):
        budget.spend("broken", where="line 7: ")


def large(document: Any) -> bytes:
    """JSON of more than a mebibyte, so that it is worth to be read fast."""
    return json.dumps(document, indent=1 if isinstance(document, list) else None).encode() + b" " * MIB


RANKINGS: dict[str, Any] = {f"q{number}": [f"im{number}", "im:b", "a,[{b"] for number in range(1_500)}
TURNS: dict[str, Any] = {f"s{number}": [["a"], [f"b{number}", "c"]] for number in range(1_500)}
HEADER = {"format": "cir-rank-file", "method": {"name": "a:b"}}
DOCUMENTS: dict[str, tuple[Any, bool]] = {
    "rankings": ({**HEADER, "rankings": RANKINGS}, True),
    "rankings and subsets": ({**HEADER, "rankings": RANKINGS, "subset_rankings": RANKINGS}, True),
    "turns": ({**HEADER, "rankings": TURNS}, True),
    "rankings alone": (RANKINGS, True),
    "an empty ranking": ({**HEADER, "rankings": {**RANKINGS, "x": []}}, True),
    "no rankings": ({**HEADER, "rankings": {}}, True),
    "an empty id": ({**HEADER, "rankings": {**RANKINGS, "x": [""]}}, False),
    "a number": ({**HEADER, "rankings": {**RANKINGS, "x": [1]}}, False),
    "a turn among rankings": ({**HEADER, "rankings": {**RANKINGS, "x": [["a"]]}}, False),
    "rankings are null": ({**HEADER, "rankings": None}, False),
    "a letter of another script": ({**HEADER, "rankings": {**RANKINGS, "x": ["\u0142"]}}, False),
    "an escape": ({**HEADER, "rankings": {**RANKINGS, 'x"': ["a"]}}, False),
    "a list": ([RANKINGS], False),
    "version and metric": ({"version": "rc2", "metric": "recall", **RANKINGS}, False),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_what_is_plain_is_read_as_columns_and_alike(name: str) -> None:
    document, fast = DOCUMENTS[name]
    content = large(document)
    findings = Findings("run.json")
    found = parse_json(content, findings, Budget(len(content)))
    assert found == parse_json(content, Findings("run.json")) == document
    assert not findings.listed()
    held = found.get("rankings", found) if isinstance(found, dict) else found
    assert isinstance(held, Columns) is fast


@pytest.mark.parametrize(
    "text",
    [
        b'{"rankings": {"a": ["x"], "a": ["y"]}}',
        b'{"rankings": {"a": ["x"]}, "rankings": {"b": ["y"]}}',
        b'{"method": {"name": "a", "name": "b"}, "rankings": {"a": ["x"]}}',
        b'{"method": 1, "method": 2, "rankings": {"a": ["x:y"]}}',
        b'{"a": ["x"], "a": ["x"]}',
        b'{"rankings": {"a:": ["x"], "a:": ["x"]}}',
    ],
)
def test_a_repeated_key_is_found_in_a_large_file_too(text: bytes) -> None:
    for content in (text, text + b" " * 2 * MIB):
        findings = Findings("run.json")
        parse_json(content, findings, Budget(len(content)))
        assert [finding.code for finding in findings.listed()] == ["repeated-key"]


@pytest.mark.parametrize("kind", ["json", "lines", "trec", "gzip"])
def test_a_byte_order_mark_is_read(kind: str) -> None:
    plain = json.dumps(worlds.cirr_document(CIRR)).encode()
    content = plain
    if kind in ("lines", "trec"):
        (made,) = submissions.convert([plain], kind, benchmark=CIRR)
        content = made.content
    marked = b"\xef\xbb\xbf" + content
    found = submissions.validate(gzip.compress(marked) if kind == "gzip" else marked, CIRR)
    assert found.ok, found.text()
    read = submissions.read(plain, benchmark=CIRR)
    assert dict(found.rank_file.rankings) == dict(read.rankings)


def test_what_would_be_too_large_is_not_written(tmp_path: Path) -> None:
    long = {"format": "cir-rank-file", "format_version": 1, "benchmark": "cirr/val", "benchmark_version": 1}
    content = orjson.dumps({**long, "method": {"name": "toy"}, "rankings": {"q": ["x" * 900_000]}})
    (small,) = submissions.convert([content], "parquet")
    assert small.content
    many = orjson.dumps(
        {**long, "method": {"name": "toy"}, "rankings": {"q" * 900_000: ["x", "y", "z"] * 100}}
    )
    with pytest.raises(submissions.ConversionError, match=r"the trec file would have 270,00\d,\d{3} bytes"):
        submissions.convert([many], "trec")
