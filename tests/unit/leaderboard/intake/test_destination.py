"""The board that a file names in its first bytes."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

import submissions
from leaderboard.errors import UploadRefusedError
from leaderboard.intake import destination
from leaderboard.intake.destination import (
    HEAD_BYTES,
    benchmark_of_head,
    board_of_head,
    refuse_other_kinds,
    with_end,
)
from submissions.formats.parquet import dump

HEADER = {"format": "cir-rank-file", "format_version": 1, "benchmark": "shapes/val"}


@pytest.mark.parametrize(
    "head",
    [
        json.dumps(HEADER).encode(),
        json.dumps(HEADER, indent=4).encode("utf-8-sig"),
        json.dumps({"method": {"name": 'a [ " { b'}, **HEADER}).encode(),
        json.dumps({**HEADER, "rankings": {"q": ["a"] * 10**6}}).encode()[:HEAD_BYTES],
        gzip.compress(json.dumps({**HEADER, "rankings": {"q": ["a"] * 10**6}}).encode(), mtime=0)[:500],
        b'{"format": "cir-rank-file-lines", "benchmark": "shapes/val"}\n{"query_id": "1", "images": []}',
    ],
)
def test_a_header_names_the_board(head: bytes) -> None:
    assert board_of_head(head).id == "shapes/val"


@pytest.mark.parametrize(
    "head",
    [
        b"{",
        b"[" * HEAD_BYTES,
        b'{"a":' * 10_000,
        b'{"version": "rc2", "metric": "recall", "1": ["a"]}',
        b'{"rankings": {"benchmark": "shapes/val"}',
        b'{"benchmark": ["shapes/val"]}',
        b'{"n": ' + b"9" * 50_000 + b', "benchmark": "shapes/val"}',
        json.dumps({"notes": "x" * HEAD_BYTES, **HEADER}).encode(),
        gzip.compress(b" " * 10**8 + json.dumps(HEADER).encode(), mtime=0),
        b"\x1f\x8b\x08 damaged",
        b"PAR1" + bytes(100),
        b"1 Q0 a 1 0.5 run",
    ],
)
def test_what_names_no_benchmark_is_told_the_boards(head: bytes) -> None:
    with pytest.raises(UploadRefusedError) as caught:
        board_of_head(head)
    assert caught.value.code == "missing-board"
    assert "shapes/val, " in caught.value.fix


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n" + bytes(20), "a PNG picture"),
        (gzip.compress(b"\xff\xd8\xff\xe0 JFIF", mtime=0), "a JPEG picture"),
        (b"PK\x03\x04" + bytes(20), "a zip archive; take the JSON file out of it"),
        (b"\x80\x04\x95" + bytes(20), "a pickle of Python"),
        (b"\n <!DOCTYPE html><title>x</title>", "a page of HTML or XML"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS, without the file's content"),
    ],
    ids=["png", "jpeg.gz", "zip", "pickle", "html", "lfs"],
)
def test_what_is_no_container_of_rankings_is_refused_by_what_it_is(head: bytes, kind: str) -> None:
    with pytest.raises(UploadRefusedError) as caught:
        refuse_other_kinds(head, "photo.png")
    assert (
        caught.value.message
        == f"the file 'photo.png' is not a rank file, bundle or transcript: it is {kind}."
    )


def test_what_may_be_rankings_is_not_refused_by_its_kind() -> None:
    for head in (
        json.dumps(HEADER).encode(),
        b"PAR1" + bytes(9),
        b"1 Q0 a 1 0.5 run",
        b"",
        b"\x1f\x8b damaged",
    ):
        refuse_other_kinds(head, "run")


def test_a_text_without_rankings_is_told_what_is_taken() -> None:
    with pytest.raises(
        UploadRefusedError, match="neither JSON, JSON Lines, Parquet nor a TREC run"
    ) as caught:
        board_of_head(b"hello, this is a letter")
    assert caught.value.code == "missing-board"


def test_an_empty_file_is_malformed_and_names_nothing() -> None:
    with pytest.raises(UploadRefusedError) as caught:
        board_of_head(b"")
    assert caught.value.code == "malformed"
    assert "empty" in str(caught.value)


def test_a_benchmark_without_a_board_is_told_the_boards() -> None:
    with pytest.raises(UploadRefusedError, match=r"no board here ranks 'cirr/test1'") as caught:
        board_of_head(b'{"benchmark": "cirr/test1"}')
    assert (caught.value.code, caught.value.status) == ("unknown-board", 404)
    assert "shapes/val, " in caught.value.fix


@pytest.mark.parametrize("suite_id", ["fashioniq/val", "circled"])
def test_a_bundle_belongs_to_the_board_of_its_suite(suite_id: str) -> None:
    head = json.dumps({"format": "cir-rank-bundle", "suite": suite_id, "runs": [{"benchmark": "cirr/val"}]})
    assert board_of_head(head.encode()).benchmark == suite_id
    assert benchmark_of_head(head.encode()) == suite_id


@pytest.mark.parametrize(
    ("suite_id", "fix"),
    [
        ("fisd", "score it at home:  cir score FILE --benchmark fisd"),
        ("fashioniq/no", "choose the board (in the API: add ?board=), one of shapes/val, "),
    ],
)
def test_a_bundle_of_a_suite_without_a_board_is_told_what_to_do(suite_id: str, fix: str) -> None:
    with pytest.raises(UploadRefusedError, match=f"no board here ranks.* '{suite_id}'") as refused:
        board_of_head(json.dumps({"format": "cir-rank-bundle", "suite": suite_id}).encode())
    assert (refused.value.code, refused.value.status) == ("unknown-board", 404)
    assert refused.value.fix.startswith(fix)


def test_parquet_and_a_trec_run_go_to_the_board_that_they_answer_without_naming_it() -> None:
    run = submissions.make_rank_file("shapes/val", "random")
    queries = list(run.rankings)
    wide = {
        query: [sha256(f"{query} {number}".encode()).hexdigest() for number in range(9)] for query in queries
    }
    short = {query: list(run.rankings[query])[:1] for query in queries}
    for name, rankings in (("small", short), ("large", wide)):
        content = dump(replace(run, rankings=rankings, subset_rankings=None))
        assert (len(content) > HEAD_BYTES) is (name == "large")
        looked_at = with_end(content[:HEAD_BYTES], lambda size, content=content: content[-size:])
        assert len(looked_at) <= HEAD_BYTES
        assert board_of_head(looked_at).id == "shapes/val"
    lines = b"".join(b"%s Q0 a %d 0.5 run\n" % (query.encode(), 1) for query in queries)
    assert board_of_head(lines + b"cut").id == "shapes/val"
    assert board_of_head(gzip.compress(lines)).id == "shapes/val"
    with pytest.raises(UploadRefusedError) as caught:
        board_of_head(lines + b"another Q0 a 1 0.5 run\n")
    assert caught.value.code == "missing-board"


def test_the_board_of_a_trec_run_is_found_where_nothing_was_judged_yet(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    queries = submissions.make_rank_file("shapes/val", "random").rankings
    run = b"".join(b"%s Q0 a 1 0.5 run\n" % query.encode() for query in queries)
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("CIR_DATA_HOME", raising=False)
    assert board_of_head(run).id == "shapes/val"


def test_a_trec_run_of_several_boards_queries_is_told_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        destination, "_queries", lambda of: frozenset("q") if of.card.name == "fashioniq" else frozenset()
    )
    with pytest.raises(UploadRefusedError, match="of fashioniq/dress_val, fashioniq/shirt_val") as caught:
        board_of_head(b"q Q0 a 1 0.5 run\n")
    assert caught.value.code == "missing-board"
