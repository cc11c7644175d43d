"""A file that names no method, in every form of its own, with a form that names one."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import orjson
import pyarrow.parquet as pq
import pytest

import cir_datasets
import submissions
from leaderboard.queue.judging import Rejected, Validated, judge_file, score_file
from submissions import make_rank_file
from submissions.formats.parquet import KEY

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
    return judge_file(path, cir_datasets.load("shapes/val"), file_name="run", form=form)


@pytest.mark.parametrize("form", ["json", "json.gz", "lines", "parquet"])
def test_the_form_completes_the_file(form: str, tmp_path: Path) -> None:
    content = nameless(form)
    completed = judged(content, tmp_path, FORM)
    assert isinstance(completed, Validated), completed.payload["text"]
    assert completed.method == {"zero_shot": True, **FORM}
    assert completed.checked.rank_file.rankings == make_rank_file("shapes/val", "random").rankings
    refused = judged(content, tmp_path, {})
    assert isinstance(refused, Rejected)
    assert [finding["code"] for finding in refused.payload["findings"]] == ["bad-metadata"]


def test_a_method_of_the_file_goes_before_the_form(tmp_path: Path) -> None:
    content = orjson.dumps(make_rank_file("shapes/val", "random").to_dict())
    found = judged(content, tmp_path, FORM)
    assert isinstance(found, Validated)
    assert found.method["name"] == "Random"
    assert found.method["paper"] == FORM["paper"]


@pytest.mark.parametrize(
    ("method", "form"),
    [
        (3, FORM),
        ({"name": 7}, FORM),
        ({"zero_shot": True}, {"paper": "https://example.org/paper"}),
        ({"zero_shot": "perhaps"}, FORM),
    ],
    ids=["no object", "a number as name", "no name in the form either", "another mistake"],
)
def test_what_a_form_cannot_mend_is_refused(method: object, form: dict[str, str], tmp_path: Path) -> None:
    document = make_rank_file("shapes/val", "random").to_dict() | {"method": method}
    found = judged(orjson.dumps(document), tmp_path, form)
    assert isinstance(found, Rejected)
    assert {finding["code"] for finding in found.payload["findings"]} == {"bad-metadata"}


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"[1]", "wrong-format"),
        (b"{", "malformed"),
        (b"\x1f\x8b broken", "unreadable"),
        (b"PAR1 broken", "unreadable"),
        (gzip.compress(b'{"method": {}, "x": [' + b"[]," * 300_000 + b"[]]}", mtime=0), "too-large"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_form_as_without(
    content: bytes, code: str, tmp_path: Path
) -> None:
    found = judged(content, tmp_path, FORM)
    assert isinstance(found, Rejected)
    assert [finding["code"] for finding in found.payload["findings"]] == [code]


def test_the_score_carries_every_warning_of_the_validation(tmp_path: Path) -> None:
    [run] = submissions.convert([make_rank_file("shapes/val", "random", k=50).to_json()], "trec")
    # The first image has the rank 1 and a score below all others: only the reader of the file can see that.
    content = run.content.replace(b" 1 50 Random", b" 1 0 Random", 1)
    found = judged(content, tmp_path, FORM)
    assert isinstance(found, Validated), found.payload["text"]
    report = score_file(found, cir_datasets.load("shapes/val")).to_dict()
    assert [warning["code"] for warning in report["warnings"]] == ["rank-score-disagree"]
    assert report["warnings"] == found.payload["findings"]


@pytest.mark.parametrize(("own", "beside"), [("kept", "removed"), ("removed", "kept")])
def test_a_form_that_contradicts_the_file_on_the_reference_is_refused_with_both(
    own: str, beside: str, tmp_path: Path
) -> None:
    path, benchmark = tmp_path / "stored", cir_datasets.load("shapes/multiturn_val")
    document = make_rank_file(benchmark, "random").to_dict()
    document["method"] = {"name": "Ours", "reference": own}
    path.write_bytes(orjson.dumps(document))
    found = judge_file(path, benchmark, file_name="run", form={"reference": beside})
    assert isinstance(found, Rejected)
    (both,) = (one for one in found.payload["findings"] if "form" in one["message"])
    assert both["code"] == "reference-contradiction"
    assert f'is "{own}"' in both["message"]
    assert f'says "{beside}"' in both["message"]
    assert "leave one of them out" in both["fix"]


def test_what_the_form_declares_of_the_reference_is_held_against_the_lists(tmp_path: Path) -> None:
    path, benchmark = tmp_path / "stored", cir_datasets.load("shapes/multiturn_val")
    document = make_rank_file(benchmark, "random").to_dict()
    document["method"] = {"name": "Ours"}
    first, reference = benchmark.query_ids[0], benchmark.references[0].as_py()
    listed = document["rankings"][first][0]
    document["rankings"][first][0] = [reference, *(image for image in listed if image != reference)][
        : len(listed)
    ]
    path.write_bytes(orjson.dumps(document))
    for word, refused in (("removed", True), ("kept", False)):
        found = judge_file(path, benchmark, file_name="run", form={"reference": word})
        codes = {finding["code"] for finding in found.payload["findings"]}
        assert ("reference-contradiction" in codes, isinstance(found, Rejected)) == (refused, refused)
