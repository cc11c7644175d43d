"""Whatever bytes or JSON come in, validation answers with findings and never raises."""

from __future__ import annotations

import gzip
import json
from typing import Any

import benchmark_world as worlds
import pytest
from hypothesis import given
from hypothesis import strategies as st

import submissions
from submissions.rank_file.findings import codes

CIRR = worlds.cirr()
CIRCLED = worlds.circled()
CIRCO = worlds.circo(gallery=None)
FASHIONIQ = {b.id: b for b in (worlds.fashioniq(category) for category in ("dress", "shirt", "toptee"))}
WORLDS = [
    (CIRR, worlds.cirr_document(CIRR)),
    (CIRCLED, worlds.circled_document(CIRCLED)),
    (CIRCO, worlds.circo_document(CIRCO)),
    (FASHIONIQ, worlds.fashioniq_bundle(list(FASHIONIQ.values()))),
    (CIRR, {"version": "rc2", "metric": "recall", **worlds.cirr_document(CIRR)["rankings"]}),
    (CIRCO, {query_id: list(range(1, 51)) for query_id in CIRCO.query_ids}),
]

KEYS = st.sampled_from(
    [
        "format",
        "format_version",
        "benchmark",
        "benchmark_version",
        "method",
        "rankings",
        "subset_rankings",
        "suite",
        "runs",
        "version",
        "metric",
        "100",
        "s0",
        "0",
        "name",
        "im1",
    ]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(
        ["cir-rank-file", "cir-rank-bundle", "cirr/val", "fashioniq/val", "rc2", "recall", "im1", "im0"]
    )
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(KEYS | st.text(max_size=5), inner, max_size=5)
    ),
    max_leaves=12,
)


def check(content: bytes, benchmark: Any) -> None:
    report = submissions.validate(content, benchmark, name="run.json")
    known = codes()
    for finding in report.findings:
        assert finding.severity == known[finding.code].severity
        assert finding.count >= 1
        assert len(finding.examples) <= 5
        assert finding.message
        assert finding.fix
        assert "Fix: " not in finding.message
    assert report.ok is not any(finding.severity == "error" for finding in report.findings)
    text = report.text()
    assert all(character.isprintable() or character == "\n" for character in text)
    json.dumps(report.to_dict(), allow_nan=False).encode()
    if report.ok:
        assert report.rank_file is not None
        assert 0.0 <= (submissions.score(content, benchmark).main or 0.0) <= 1.0


@given(VALUES, st.sampled_from([CIRR, CIRCLED, CIRCO, FASHIONIQ, None]))
def test_any_json_value_is_answered(value: Any, benchmark: Any) -> None:
    content = json.dumps(value).encode()
    if benchmark is None and b"/val" in content:
        benchmark = CIRR  # a real benchmark's data may not be available here
    check(content, benchmark)


def _places(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths into a document, a few of each list."""
    found = [path] if path else []
    children = document.items() if isinstance(document, dict) else []
    if isinstance(document, list):
        children = list(enumerate(document))[:3]
    for key, value in children:
        found += _places(value, (*path, key))
    return found


@pytest.mark.parametrize("world", range(len(WORLDS)))
@given(data=st.data())
def test_a_valid_file_with_one_value_replaced_or_removed_is_answered(world: int, data: st.DataObject) -> None:
    benchmark, original = WORLDS[world]
    document = json.loads(json.dumps(original))
    path = data.draw(st.sampled_from(_places(document)))
    parent: Any = document
    for key in path[:-1]:
        parent = parent[key]
    if data.draw(st.booleans()):
        parent[path[-1]] = data.draw(VALUES)
    else:
        del parent[path[-1]]
    check(json.dumps(document).encode(), benchmark)


def packed(kind: str) -> bytes:
    (made,) = submissions.convert([json.dumps(worlds.cirr_document(CIRR)).encode()], kind, benchmark=CIRR)
    return made.content


VALID = {f"world {number}": (each, json.dumps(whole).encode()) for number, (each, whole) in enumerate(WORLDS)}
VALID |= {kind: (CIRR, packed(kind)) for kind in ("lines", "parquet", "trec", "json-run")}
VALID["gzip"] = (CIRR, gzip.compress(packed("lines"), mtime=0))


@pytest.mark.parametrize("name", VALID)
@given(data=st.data())
def test_a_valid_file_with_bytes_cut_or_changed_is_answered(name: str, data: st.DataObject) -> None:
    benchmark, original = VALID[name]
    content = bytearray(original)
    for _ in range(data.draw(st.integers(0, 3))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    check(bytes(content), benchmark)


@given(st.permutations(range(6)), st.permutations(range(50)))
def test_relabelling_and_order_of_queries_never_change_a_score(queries: list[int], places: list[int]) -> None:
    document = worlds.cirr_document(CIRR)
    shuffled = {query_id: [ids[place] for place in places] for query_id, ids in document["rankings"].items()}
    ids = list(shuffled)
    reordered = {ids[number]: shuffled[ids[number]] for number in queries}
    one = submissions.score(json.dumps({**document, "rankings": shuffled}).encode(), CIRR)
    other = submissions.score(json.dumps({**document, "rankings": reordered}).encode(), CIRR)
    assert one.metrics == other.metrics
    assert one.metrics["recall@1"] <= one.metrics["recall@5"] <= one.metrics["recall@50"]
