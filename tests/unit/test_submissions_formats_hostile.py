"""Small files that claim to be huge: each is answered, in a process of its own, within bounded memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

_BUILD = """
import gzip, io, json, sys
from pathlib import Path
import numpy as np, pyarrow as pa, pyarrow.parquet as pq

MB = 2**20
FIELDS = {"format_version": 1, "benchmark": "cirr/val", "benchmark_version": 1, "method": {"name": "toy"}}
HEADER = json.dumps({"format": "cir-rank-file", **FIELDS})
LINES = json.dumps({"format": "cir-rank-file-lines", **FIELDS}).encode()


def parquet(columns, **options):
    table = pa.table(columns).replace_schema_metadata({"cir-rank-file": HEADER})
    content = io.BytesIO()
    pq.write_table(table, content, **options)
    return content.getvalue()


def ids(values):
    return pa.array(values, pa.list_(pa.dictionary(pa.int32(), pa.string())))


def many(count, text="x"):
    values = pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, dtype=np.int32)), [text])
    return pa.ListArray.from_arrays(pa.array([0, count], pa.int32()), values)


content = {hostile}
assert len(content) <= 8 * MB, len(content)
Path(sys.argv[1]).write_bytes(content)
"""

_PROBE = """
import re, sys
from pathlib import Path
sys.path.insert(0, "tests/fixtures")
import submissions
import submissions_worlds as worlds

report = submissions.validate(sys.argv[1], worlds.cirr(), max_bytes=8 * 2**20)
# Not getrusage: its peak is carried over from the process that started this one.
peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
print(",".join(sorted({finding.code for finding in report.errors})), int(peak[1]) // 1024)
"""

UNKNOWN = "missing-query,missing-subset,unknown-query"
HOSTILE = {
    "a gzip of two gigabytes": ('gzip.compress(b" " * (64 * MB)) * 32', "too-large"),
    "gzip members without content": ("gzip.compress(b'') * 200_000", "malformed"),
    "a gzip of many empty lists": ('gzip.compress(b"[" + b"[]," * (2 * MB) + b"[]]")', "wrong-format"),
    "lines that are all broken": ('LINES + b"\\n{" * (3 * MB)', "malformed"),
    "lines of many queries": (
        """LINES + "".join(f'\\n{{"query_id":"q{n}","ranking":[]}}' for n in range(200_000)).encode()""",
        UNKNOWN,
    ),
    "one line of many keys": (
        """LINES + b'\\n{"query_id": "100"' + b', "a": 0' * (MB // 2) + b'}'""",
        "bad-metadata,repeated-key",
    ),
    "a TREC run of one query": (
        'b"q Q0 x 1 1 t\\n" * 600_000',
        "duplicate-image,missing-query,missing-subset,unknown-query",
    ),
    "a TREC run of many queries": (
        '"".join(f"q{n} Q0 x 1 1 t\\n" for n in range(400_000)).encode()',
        UNKNOWN,
    ),
    "a TREC run of broken lines": ('b"q Q0\\n" * 1_000_000', "malformed"),
    "Parquet with a hundred million values": (
        'parquet({"query_id": ["a"], "ranking": many(100_000_000)})',
        "too-large",
    ),
    "Parquet with a long text at many places": (
        'parquet({"query_id": ["100"], "ranking": many(2_000_000, "x" * 1_000_000)})',
        "duplicate-image,long-ranking,missing-query,missing-subset,unknown-image",
    ),
    "Parquet with pages that unfold": (
        'parquet({"query_id": ["a"], "ranking": ids([["x" * (100 * MB)]])}, compression="zstd")',
        "too-large",
    ),
    "Parquet with a long query id in every row": (
        'parquet({"query_id": ["q" * MB] * 1000, "ranking": ids([["x"]] * 1000)}, compression="zstd")',
        "repeated-key",
    ),
    "Parquet with many row groups": (
        'parquet({"query_id": ["q"] * 20_000, "ranking": ids([["x"]] * 20_000)}, row_group_size=2)',
        "too-large",
    ),
}


@pytest.mark.slow
@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="a process's own peak memory is read from /proc"
)
@pytest.mark.parametrize(("hostile", "codes"), HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_file_is_answered_in_bounded_memory(hostile: str, codes: str, tmp_path: Path) -> None:
    def run(script: str) -> str:
        command = [sys.executable, "-c", script, str(tmp_path / "run.json")]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout.strip()

    run(_BUILD.replace("{hostile}", hostile))
    found, megabytes = run(_PROBE).split(" ")
    assert found == codes
    assert int(megabytes) < 512
