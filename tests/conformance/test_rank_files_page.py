"""The examples of docs/rank_files.md are read as the page says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import submissions
from submissions.rank_file.model import FORMATS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "rank_files.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)
RANKED = ["dev-9001-0-img0", "dev-9002-0-img1"]


def block(language: str, holding: str) -> str:
    (found,) = [text for kind, text in BLOCKS if kind == language and holding in text]
    return found


def test_the_native_example_and_the_lines_are_one_rank_file() -> None:
    native = json.loads(block("json", '"rankings": {"90001"'))
    lines = submissions.read(block("json", "cir-rank-file-lines").encode())
    assert isinstance(lines, submissions.RankFile)
    assert dict(lines.rankings) == native["rankings"] == {"90001": RANKED}
    assert lines.subset_rankings is not None
    assert dict(lines.subset_rankings) == native["subset_rankings"]
    assert submissions.read(json.dumps(native).encode()).method.name == lines.method.name  # type: ignore[union-attr]


def test_the_python_example_writes_parquet_that_is_read(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", block("python", "pq.write_table")], cwd=tmp_path, check=True)
    found = submissions.read(tmp_path / "run.parquet")
    assert isinstance(found, submissions.RankFile)
    assert dict(found.rankings) == {"90001": RANKED}


def test_the_trec_example_is_read() -> None:
    lines = block("text", " Q0 ").splitlines(keepends=True)
    single = submissions.read("".join(lines[:3]).encode(), benchmark="cirr/val")
    assert isinstance(single, submissions.RankFile)
    assert dict(single.rankings) == {"90001": RANKED}
    assert dict(single.subset_rankings or {}) == {"90001": ["dev-9003-0-img0"]}
    session = submissions.read(lines[3].encode(), benchmark="circled/cirr_val")
    assert isinstance(session, submissions.RankFile)
    assert dict(session.rankings) == {"cirr_val_0000": [[], ["dev-9001-0-img0"]]}


def test_every_format_is_on_the_page() -> None:
    assert [name for name in FORMATS if f"`{name}`" not in PAGE] == []
