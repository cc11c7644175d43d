"""A hostile file gets a short answer: findings are grouped and counted, names shortened, bundles bounded."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import benchmark_world as worlds
import pytest

import submissions
from cir_metrics.errors import CallError
from submissions.formats import Parsed, is_transcript
from submissions.rank_file.findings import MAX_FINDINGS, Findings
from submissions.transcripts.checking import check_transcript
from submissions.validation import report_of

CIRR = worlds.cirr()
MEMBERS = [worlds.fashioniq("dress"), worlds.fashioniq("shirt"), worlds.fashioniq("toptee")]
FASHIONIQ = {member.id: member for member in MEMBERS}
MANY = 20_000


def validate(document: Any, benchmark: Any = CIRR) -> submissions.ValidationReport:
    return submissions.validate(json.dumps(document).encode(), benchmark, name="run.json")


def size(report: submissions.ValidationReport) -> int:
    return len(json.dumps(report.to_dict())) + len(report.text())


def with_method(method: Any) -> dict[str, Any]:
    return {**worlds.cirr_document(CIRR), "method": method}


TOY: dict[str, Any] = {"name": "toy"}


@pytest.mark.parametrize(
    ("document", "count"),
    [
        (with_method({**TOY, **{f"zzz{n}": n for n in range(MANY)}}), MANY),
        ({**with_method(TOY), **{f"key{n}": n for n in range(MANY)}}, MANY),
        (with_method({**TOY, "trained_on": [0] * 9}), 9),
    ],
    ids=["unknown fields", "unknown keys", "wrong items"],
)
def test_what_is_wrong_in_one_way_is_one_finding(document: dict[str, Any], count: int) -> None:
    report = validate(document)
    (finding,) = report.findings
    assert (finding.code, finding.count, len(finding.examples) <= 5) == ("bad-metadata", count, True)
    assert size(report) < 2000


def test_every_wrong_field_keeps_its_own_finding() -> None:
    report = validate(with_method({"name": "", "paper": "http://a", "zeroshot": True}))
    places = {finding.message.partition(":")[0] for finding in report.findings}
    assert places == {"method.name", "method.paper", "method.zeroshot"}


@pytest.mark.parametrize("place", ["rankings", "subset_rankings"])
def test_long_names_are_shortened_wherever_they_stand(place: str) -> None:
    document = worlds.cirr_document(CIRR)
    long = "q" * 1_000_000
    document[place][long] = ["im1"] * 3
    document["method"][long] = 1
    report = validate(document)
    assert {finding.code for finding in report.findings} == {"unknown-query", "bad-metadata"}
    assert size(report) < 4000


def test_many_repeated_keys_are_one_finding_and_take_no_quadratic_time() -> None:
    inner = ",".join(f'"q{n}": {{"a": 1, "a": 2}}' for n in range(30_000))
    content = f'{{"format": "cir-rank-file", {inner}}}'.encode()
    report = submissions.validate(content, CIRR, name="run.json")
    repeated = [finding for finding in report.findings if finding.code == "repeated-key"]
    assert [(finding.count, len(finding.examples)) for finding in repeated] == [(30_000, 5)]


def test_a_report_lists_a_hundred_findings_and_counts_the_others() -> None:
    findings = Findings("run.json")
    findings.add("unpinned-data", "a warning.")
    for number in range(MAX_FINDINGS + 20):
        findings.add("bad-type", f"cause {number}.", cause=str(number))
    report = report_of(Parsed(findings))
    assert len(report.findings) == MAX_FINDINGS
    assert report.left_out == report.to_dict()["findings_left_out"] == 21
    assert report.errors == report.findings
    assert "... and 21 findings more." in report.text()


def test_a_bundle_made_in_memory_is_one_methods_answer() -> None:
    document = worlds.fashioniq_bundle(MEMBERS)
    document["runs"][1]["method"] = {"name": "another"}
    built = submissions.RankBundle(
        "fashioniq/val", tuple(submissions.read(json.dumps(run).encode()) for run in document["runs"])
    )
    assert [finding.code for finding in submissions.validate(built, FASHIONIQ).findings] == ["bad-metadata"]


@pytest.mark.parametrize("call", [submissions.validate, submissions.score, submissions.read])
@pytest.mark.parametrize("file", [5, None, ["run.json"], bytearray(b"{}")])
def test_what_is_not_a_file_is_a_wrong_call(call: Any, file: Any) -> None:
    with pytest.raises(CallError, match=f"file is of type {type(file).__name__}. Fix: pass a path"):
        call(file)


def test_what_is_not_a_benchmark_is_a_wrong_call() -> None:
    with pytest.raises(CallError, match=r"benchmark is of type int\. Fix: pass an id such as 'cirr/val'"):
        submissions.validate(b"{}", 5)


def test_what_is_no_regular_file_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for file in (tmp_path / "pipe", Path("/dev/zero")):
        for read in (submissions.validate, check_transcript):
            report: Any = read(file, CIRR)
            (finding,) = getattr(report, "report", report).findings
            assert finding.code == "unreadable"
            assert "no regular file" in finding.message
        assert not is_transcript(file)


def test_unpinned_data_is_told_so_that_it_is_true_of_a_changed_file_too() -> None:
    content = json.dumps(worlds.cirr_document(CIRR)).encode()
    (finding,) = submissions.validate(content, worlds.cirr(pinned=False)).findings
    assert "are not, or not known to be, the ones that its card pins" in finding.message
