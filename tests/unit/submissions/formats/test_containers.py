"""What a file is, its bytes say and never its name; and gzip is taken off without trusting it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import benchmark_world as worlds
import pytest
from says import says

import submissions
from submissions.rank_file.content import kind_of
from submissions.rank_file.texts import label_of

CIRR = worlds.cirr()
DOCUMENT = worlds.cirr_document(CIRR)
NATIVE = json.dumps(DOCUMENT).encode()
KINDS = ("native", "lines", "parquet", "trec")


def packed(kind: str) -> bytes:
    (made,) = submissions.convert([NATIVE], kind, benchmark=CIRR)
    return made.content


FILES = {kind: packed(kind) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("name", ["run.json", "run.json.gz", "run.parquet", "run.trec", "run.csv", "run"])
def test_the_name_of_a_file_says_nothing(kind: str, compress: bool, name: str, tmp_path: Path) -> None:
    content = gzip.compress(FILES[kind]) if compress else FILES[kind]
    (tmp_path / name).write_bytes(content)
    report = submissions.validate(tmp_path / name, CIRR)
    assert report.ok
    assert json.loads(report.rank_file.to_json())["rankings"] == DOCUMENT["rankings"]
    ours, theirs = submissions.score(NATIVE, CIRR), submissions.score(tmp_path / name, CIRR)
    assert ours.metrics == theirs.metrics


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b'{"format": "cir-rank-file"}', "json"),
        (b'{"format":"cir-rank-file-lines"}\n{}', "lines"),
        (b'\n {"format_version": 1, "format" : "cir-rank-file-lines"}', "lines"),
        (b'{"query_id": "1", "ranking": []}\n', "lines"),
        (
            b'{"format": "cir-rank-file", "method": {"notes": "\\"format\\": \\"cir-rank-file-lines\\""}}',
            "json",
        ),
        (b'{"format": "cir-rank-file",\n "method": {"format": "cir-rank-file-lines"}}', "json"),
        (b'[{"candidate": "a"}]', "json"),
        (b"PAR1", "parquet"),
        (b"1 Q0 a 1 0.5 toy\n", "trec"),
        (b"\n\n1\tQ0\ta\t1\t0.5\ttoy", "trec"),
        (b"1 0 a 1 -1.5e3 toy\n", "trec"),
        (b"1 Q0 a 1\n", "trec"),
        (b"qid iter docid rank score tag\n1 Q0 a 1 2 toy\n", "trec"),
        (b"[1 Q0 a 1 0.5 toy\n", "trec"),
        (b"one word", "json"),
        (b"1 0 a 1\n", "json"),
        (b"", "json"),
        (b"\xff\xfe{", "json"),
    ],
)
def test_content_is_told_apart(content: bytes, kind: str) -> None:
    assert kind_of(content) == kind


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("a/b/sum.json", "sum"),
        ("sum.test1.json.gz", "sum.test1"),
        ("sum.trec", "sum"),
        ("sum.trec.GZ", "sum"),
        ("sum", "sum"),
    ],
)
def test_a_label_is_the_file_name_without_folder_and_endings(name: str, label: str) -> None:
    assert label_of(name) == label


def messages(content: bytes, *, max_bytes: int = 10_000) -> list[tuple[str, str]]:
    report = submissions.validate(content, CIRR, max_bytes=max_bytes, name="run.json.gz")
    return [(finding.code, finding.message) for finding in report.findings]


WHOLE = gzip.compress(NATIVE)


def test_what_is_wrong_with_gzip_is_said() -> None:
    cut = ("unreadable", "the gzip data ends too early; the file was cut.")
    damaged = ("unreadable", "the gzip data is damaged.")
    assert messages(WHOLE) == []
    assert messages(WHOLE[:-5]) == [cut]
    assert messages(WHOLE[: len(WHOLE) // 2]) == [cut]
    assert messages(WHOLE[:5]) == [cut]
    flipped = bytearray(WHOLE)
    flipped[-8] ^= 1  # the checksum
    assert messages(bytes(flipped)) == [damaged]
    assert messages(WHOLE + b"behind it") == [damaged]
    assert messages(b"\x1f\x8b\x09" + WHOLE[3:]) == [damaged]
    assert messages(gzip.compress(WHOLE)) == [("unreadable", "it is compressed with gzip twice.")]
    assert messages(gzip.compress(b"")) == [("malformed", "the file is empty.")]


def test_decompression_stops_at_the_limit() -> None:
    size = len(NATIVE)
    assert messages(WHOLE, max_bytes=size) == []
    assert messages(WHOLE, max_bytes=size - 1) == [
        ("too-large", f"it holds more than {size - 1:,} bytes once decompressed; no more are read.")
    ]
    assert messages(gzip.compress(b" " * 10_001))[0][0] == "too-large"


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("as_file", [False, True])
def test_a_trec_run_may_have_twice_the_bytes(packed: bool, as_file: bool, tmp_path: Path) -> None:
    run = FILES["trec"]
    content = gzip.compress(run) if packed else run
    (tmp_path / "run").write_bytes(content)
    file = tmp_path / "run" if as_file else content

    def codes(max_bytes: int) -> list[str]:
        found = submissions.validate(file, CIRR, max_bytes=max_bytes).findings
        return [finding.code for finding in found]

    enough = (len(run) + 1) // 2
    assert "too-large" not in codes(enough)
    assert codes(enough - 1) == ["too-large"]
    (finding,) = submissions.validate(file, CIRR, max_bytes=enough - 1, name="run").findings
    limit = 2 * (enough - 1)
    assert finding.message == (
        f"it holds more than {limit:,} bytes once decompressed; no more are read."
        if packed
        else f"the file has {len(run):,} bytes; at most {limit:,} are read."
    )
    says(finding.fix, "rank no more images than the board uses, 50 a query", "Parquet")


def test_several_gzip_members_are_one_file() -> None:
    half = len(NATIVE) // 2
    content = gzip.compress(NATIVE[:half]) + gzip.compress(b"") + gzip.compress(NATIVE[half:])
    assert messages(content) == []
    # The limit is of all of them together.
    assert messages(content, max_bytes=half + 10)[0][0] == "too-large"


def test_a_bundle_may_be_compressed() -> None:
    benchmarks = [worlds.fashioniq(category) for category in ("dress", "shirt", "toptee")]
    content = gzip.compress(json.dumps(worlds.fashioniq_bundle(benchmarks)).encode())
    report = submissions.validate(content, {each.id: each for each in benchmarks})
    assert report.ok
    assert report.queries == 12


@pytest.mark.parametrize(
    ("content", "title"),
    [
        (b"mine Q0 a 1 0.5 toy\n", "a TREC run"),
        (b'[{"candidate": "a", "captions": [], "ranking": ["b"]}]', "a FashionIQ starter kit file"),
    ],
)
def test_formats_of_others_need_the_benchmark(content: bytes, title: str) -> None:
    (finding,) = submissions.validate(content, name="run.txt").findings
    assert (finding.code, finding.message) == ("wrong-benchmark", f"{title} does not name its benchmark.")
    assert finding.fix.startswith("say which it answers, for example  --benchmark ")
