"""A file that names no method, in every form of its own, with a form that names one."""

from __future__ import annotations

import gzip
import io
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pyarrow.parquet as pq
import pytest

import cir_datasets
import submissions
from leaderboard.completing import with_method
from leaderboard.judging import Rejected, Validated, judge_file
from leaderboard.submission import Submission
from submissions.formats.parquet import KEY
from submissions.methods import make_rank_file

FORM = {"name": "Ours", "paper": "https://example.org/paper"}


def nameless(form: str) -> bytes:
    whole = orjson.dumps(make_rank_file("shapes/val", "random").to_dict())
    [made] = submissions.convert([whole], "native" if form.startswith("json") else form)
    content = made.content
    if form == "parquet":
        table = pq.read_table(io.BytesIO(content))
        header = orjson.loads(table.schema.metadata[KEY])
        header["method"] = {"zero_shot": True}
        written = io.BytesIO()
        pq.write_table(table.replace_schema_metadata({KEY: orjson.dumps(header)}), written)
        return written.getvalue()
    first, newline, rest = content.partition(b"\n") if form == "lines" else (content, b"", b"")
    header = {**orjson.loads(first), "method": {"zero_shot": True}}
    whole = orjson.dumps(header) + newline + rest
    return gzip.compress(whole) if form == "json.gz" else whole


def judged(content: bytes, folder: Path, form: dict[str, str]) -> Rejected | Validated:
    path = folder / "stored"
    path.write_bytes(content)
    submission = Submission(
        id="s",
        board="shapes/val",
        sha256="0" * 64,
        attempt=1,
        size=len(content),
        file_name="run",
        received_at=datetime(2026, 11, 1, tzinfo=UTC),
        submitter="",
        form=form,
        method=None,
        baseline=False,
        events=(),
    )
    return judge_file(path, cir_datasets.load("shapes/val"), submission)


@pytest.mark.parametrize("form", ["json", "json.gz", "lines", "parquet"])
def test_the_form_completes_the_file(form: str, tmp_path: Path) -> None:
    content = nameless(form)
    completed = judged(content, tmp_path, FORM)
    assert isinstance(completed, Validated), completed.payload["text"]
    assert completed.method == {"zero_shot": True, **FORM}
    assert completed.rank_file.rankings == make_rank_file("shapes/val", "random").rankings
    refused = judged(content, tmp_path, {})
    assert isinstance(refused, Rejected)
    assert [finding["code"] for finding in refused.payload["findings"]] == ["bad-metadata"]


@pytest.mark.parametrize(
    "content",
    [
        b'{"method": {"name": "Theirs"}}',
        b'{"method": 3}',
        b"[1]",
        b"{",
        b"",
        b"\x1f\x8b broken",
        b"PAR1 broken PAR1",
        b"q Q0 a 1 0.5 theirs\n",
        b'{"format": "cir-rank-file-lines", "method": {"name": "Theirs"}}\n',
    ],
)
def test_what_names_a_method_or_cannot_be_read_is_left(content: bytes) -> None:
    assert with_method(content, FORM) is None


def test_what_unpacks_to_more_than_is_read_is_left() -> None:
    packed = gzip.compress(b'{"method": {}, "x": "' + b"a" * 1000 + b'"}')
    assert with_method(packed, FORM, max_bytes=100) is None
    assert with_method(packed, FORM) is not None
