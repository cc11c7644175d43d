"""Transcripts with a few bytes or values changed: findings of known codes, never a traceback."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from benchmark_world import dialogues as world
from transcript_mutations import lines

from submissions.formats import is_transcript
from submissions.rank_file.findings import codes
from submissions.transcripts.checking import check_transcript

STRANGE: list[Any] = [
    None, True, 0, -1, 1.5, 10**30, "", "\x1b[31m", "<b>", "x" * 5000, [], ["a"], {}, {"a": {"b": 1}},
]  # fmt: skip


def found(content: bytes) -> set[str]:
    report = check_transcript(content, world.small_benchmark(), name="talk.jsonl").report
    text = report.text()
    assert "\x1b" not in text
    assert "Traceback" not in text
    json.dumps(report.to_dict(), allow_nan=False).encode()
    return {finding.code for finding in report.findings}


def written(rows: list[Any]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


@pytest.mark.parametrize("seed", range(150))
def test_strange_values_give_findings(seed: int) -> None:
    chance = random.Random(seed)
    rows: list[Any] = lines()
    for _ in range(chance.choice((1, 2))):
        row = chance.choice(rows)
        if isinstance(row, dict):
            inside = row["settings"] if "settings" in row and chance.random() < 0.6 else row
            inside[chance.choice([*inside, "more"])] = chance.choice(STRANGE)
    if chance.random() < 0.1:
        rows[chance.randrange(len(rows))] = chance.choice(STRANGE)
    assert found(written(rows)) <= codes().keys()


@pytest.mark.parametrize("seed", range(100))
def test_changed_bytes_give_findings(seed: int) -> None:
    chance = random.Random(seed)
    content = bytearray(written(lines()))
    for _ in range(chance.choice((1, 3, 20))):
        place = chance.randrange(len(content))
        if chance.random() < 0.5:
            content[place] = chance.randrange(256)
        else:
            del content[place : place + chance.choice((1, 50))]
    is_transcript(bytes(content))
    assert found(bytes(content)) <= codes().keys()


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "malformed"),
        (b"\n\n", "malformed"),
        (b"PAR1" + b"\0" * 50, "unreadable"),
        (b"\x1f\x8b" + b"\0" * 50, "unreadable"),
        (b'{"format": "cir-transcript"}\n', "bad-type"),
        (b'{"format": "cir-transcript", "format": "cir-transcript"}\n', "repeated-key"),
        (b'{"format": "cir-transcript"}\n' + b"[" * 100_000, "malformed"),
        (b'{"format": "cir-transcript"}\n' + b"{}\n" * 5_000, "too-large"),
    ],
)
def test_what_is_no_transcript_is_refused(content: bytes, code: str) -> None:
    assert code in found(content)


def test_a_header_may_have_its_keys_in_any_order() -> None:
    header, *rounds = lines()
    turned = dict(reversed(header.items()))
    assert is_transcript(b"\xef\xbb\xbf" + written([turned, *rounds]))
    assert found(b"\xef\xbb\xbf" + written([turned, *rounds])) == set()
    assert not is_transcript(b'{"format": "cir-rank-file"}')
