"""The method block's checks, the native writer, and reading back what was written."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

import submissions
from submissions import Method, RankFile, RefusedError, SubmissionError

RANK_FILE = RankFile(
    benchmark="cirr/val",
    benchmark_version=1,
    method=Method(name="Toy", zero_shot=False, trained_on=["FashionIQ"], text_fields=["relative_caption"]),
    rankings={"12063": ["dev-1", "dev-2"]},
    subset_rankings={"12063": ["dev-1"]},
)


def test_the_native_form_is_compact_and_ends_with_a_newline() -> None:
    assert RANK_FILE.to_json() == (
        b'{"format":"cir-rank-file","format_version":1,"benchmark":"cirr/val","benchmark_version":1,'
        b'"method":{"name":"Toy","zero_shot":false,"trained_on":["FashionIQ"],"text_fields":["relative_caption"]},'
        b'"rankings":{"12063":["dev-1","dev-2"]},"subset_rankings":{"12063":["dev-1"]}}\n'
    )


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    path = submissions.write(RANK_FILE, tmp_path / "deep" / "run.json")
    assert submissions.read(path) == RANK_FILE
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert [entry.name for entry in path.parent.iterdir()] == ["run.json"]


def test_a_folder_in_the_way_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "run.json").mkdir()
    with pytest.raises(SubmissionError, match=r"run\.json: cannot be written: "):
        submissions.write(RANK_FILE, tmp_path / "run.json")
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.json"]


def test_what_json_cannot_hold_is_not_written(tmp_path: Path) -> None:
    broken = RankFile("cirr/val", 1, Method(name="Toy"), {"1": ["\ud800"]})
    with pytest.raises(SubmissionError, match=r"cannot be written as JSON: .* Fix: use strings as ids"):
        submissions.write(broken, tmp_path / "run.json")


def test_text_is_brought_to_nfc() -> None:
    assert Method(name="Zu\u0308rich").name == "Zürich"


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("name", "", "it is empty"),
        ("name", "   ", "it is empty"),
        ("name", "x" * 81, "it has 81 characters; at most 80 are accepted"),
        ("name", "--", "it needs a letter or a number"),
        ("name", "<b>bold</b>", "the character '<' is refused"),
        ("name", "a|b", "the character '|' is refused"),
        ("name", "a\u202eb", "the character U+202E is refused"),
        ("name", 7, "it is a number; it must be a string"),
        ("name", None, "it is null; it must be a string"),
        ("paper", "http://example.org", "a link starts with https://"),
        ("code", "https://" + "a" * 300, "it has 308 characters; at most 300 are accepted"),
        ("backbone", "x" * 301, "it has 301 characters; at most 300 are accepted"),
        ("backbone", ["ViT-L/14"], "it is a list; it must be a string"),
        ("zero_shot", "yes", "it is a string; it must be true, false or null"),
        ("zero_shot", 1, "it is a number; it must be true, false or null"),
        ("trained_on", "CIRR", "it is a string; it must be a list of strings"),
        ("trained_on", [None], "it is null; it must be a string"),
        ("text_fields", ["relative caption"], "a text field is a column's name"),
        ("aggregation", {}, "it is an object; it must be a string"),
        ("venue", "ICCV", "there is no such field"),
        ("zeroshot", True, "there is no such field. Did you mean 'zero_shot'?"),
    ],
)
def test_malformed_metadata_is_refused(field: str, value: Any, reason: str) -> None:
    method = {"name": "Toy", field: value}
    with pytest.raises(ValidationError):
        Method.model_validate(method)
    document = {**RANK_FILE.to_dict(), "method": method}
    with pytest.raises(RefusedError) as caught:
        submissions.read(json.dumps(document).encode(), name="run.json")
    (finding,) = caught.value.report.findings
    assert finding.code == "bad-metadata"
    assert finding.message.startswith(f"method.{field}")
    assert reason in finding.message


def test_lines_of_notes_become_one() -> None:
    assert Method(name="Toy", notes="two\r\n\tlines ").notes == "two lines"


def test_null_says_the_same_as_nothing() -> None:
    empty = dict.fromkeys(Method.model_fields.keys() - {"name", "skipped_images"})
    assert Method.model_validate({"name": "Toy", **empty}) == Method(name="Toy")


def test_a_broken_method_does_not_hide_the_rest() -> None:
    document = {**RANK_FILE.to_dict(), "method": {"name": 3, "paper": 4}}
    with pytest.raises(RefusedError, match=r"method\.name: it is a number") as caught:
        submissions.read(json.dumps(document).encode())
    assert len(caught.value.report.findings) == 2


@pytest.mark.parametrize("name", ["Z\u0301\u0323\u0301\u0301algo", "e\u20dd\u20dd\u20dd"])
def test_towers_of_combining_marks_are_refused(name: str) -> None:
    for field in ({"name": name}, {"name": "Toy", "notes": name}):
        with pytest.raises(ValidationError, match="it stacks more than 2 combining marks"):
            Method.model_validate(field)
