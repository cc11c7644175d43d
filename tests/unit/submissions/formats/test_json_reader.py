"""Hostile files cost little memory, and what is read is what the file says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from submissions.formats.native import parse_json
from submissions.rank_file.findings import Findings

ROOT = Path(__file__).resolve().parents[4]

_PROBE = """
import re
from pathlib import Path
import submissions
from importlib.util import module_from_spec, spec_from_file_location
spec = spec_from_file_location("worlds", "tests/fixtures/submissions_worlds.py")
worlds = module_from_spec(spec)
spec.loader.exec_module(worlds)
size = 8_000_000
hostile = {hostile}
assert len(hostile) <= size + 100
report = submissions.validate(hostile, worlds.cirr())
# Not getrusage: its peak is carried over from the process that started this one.
peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
print(report.ok, int(peak[1]) // 1024)
"""

_SERVER = '{"version":"rc2","metric":"recall",'
HOSTILE = {
    "empty lists": 'b"[" + b"[]," * (size // 3) + b"[]]"',
    "empty objects": 'b"[" + b"{}," * (size // 3) + b"{}]"',
    "many keys": """("{" + ",".join(f'"{n:x}":0' for n in range(size // 12)) + "}").encode()""",
    "one key many times": """b"{" + b'"a":0,' * (size // 6) + b'"a":0}'""",
    "many queries": f"""({_SERVER!r} + ",".join(f'"{{n:x}}":[]' for n in range(size//13)) + "}}").encode()""",
    "one long ranking": f"""{_SERVER.encode()!r} + b'"100":[' + b'"x",' * (size // 4) + b'"x"]}}'""",
    "one long string": """b'{"format":"' + b"x" * size + b'"}'""",
    "brackets": 'b"[" * size',
}


@pytest.mark.slow
@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="a process's own peak memory is read from /proc"
)
@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_file_of_eight_megabytes_needs_less_than_512(hostile: str) -> None:
    code = _PROBE.replace("{hostile}", hostile)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    ok, megabytes = done.stdout.split()
    assert ok == "False"
    assert int(megabytes) < 512


def parsed(content: bytes) -> tuple[Any, list[str]]:
    findings = Findings("run.json")
    value = parse_json(content, findings)
    return value, [finding.message for finding in findings.listed()]


def test_a_value_is_read_as_it_stands() -> None:
    assert parsed('{"a": ["é", 1, 1.5, true, null, {"b": []}]}'.encode()) == (
        {"a": ["é", 1, 1.5, True, None, {"b": []}]},
        [],
    )
    assert parsed(b"[" * 16 + b"]" * 16)[1] == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"a":1,"a":2}', 'the key "a" is there twice in the top level.'),
        (b'{"rankings":{"1":[],"2":[],"1":[]}}', 'the key "1" is there twice in "rankings".'),
        (b'{"x":[{"a":1,"a":1}]}', 'the key "a" is there twice in an inner object.'),
        (b'{"a":1,"\\u0061":2}', 'the key "a" is there twice in the top level.'),
        (b"[NaN]", "line 1, column 2: NaN and Infinity are not JSON."),
        (b'{\n "a": -Infinity}', "line 2, column 8: NaN and Infinity are not JSON."),
        (b"{'a': 1}", "line 1, column 2: "),
        (b"[" * 17 + b"]" * 17, "its lists or objects are nested more than 16 deep; "),
        (b"", "the file is empty."),
        (b"\x00\x01\xff", "byte 3 is not UTF-8 text."),
        (b"PK\x03\x04\xff", "this is a zip archive; take the JSON file out of it."),
        (b"\x89PNG\r\n\x1a\n", "this is a PNG picture."),
    ],
)
def test_odd_json_is_named_by_what_is_wrong_and_where(content: bytes, message: str) -> None:
    messages = parsed(content)[1]
    assert len(messages) == 1
    assert messages[0].startswith(message)


def test_every_repeated_key_is_counted() -> None:
    findings = Findings("run.json")
    parse_json(b'{"rankings":{"1":1,"1":2},"method":{"name":1,"name":2}}', findings)
    (finding,) = findings.listed()
    assert finding.count == 2
    assert [example["value"] for example in finding.examples] == ["1", "name"]
