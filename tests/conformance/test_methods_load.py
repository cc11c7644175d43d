"""What a run of each method loads: the table in `docs/running.md`, measured in fresh processes."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from count_files import PACKAGES, ROOT
from programs import run_program
from test_methods import CHECKPOINTS, clip

import cir_datasets
from cir_datasets.common.paths import cache_home
from submissions.methods import method_names
from submissions.methods.card import method_card

__all__ = ["clip"]

ROWS = [*method_names(), "random --rerank sc4cir"]

LIBRARIES = ("torch", "transformers", "faiss")
COUNTED = f"""
ours = [name for name in sys.modules if name.partition(".")[0] in {PACKAGES!r}]
print(json.dumps([len(ours), [name for name in {LIBRARIES!r} if name in sys.modules]]))
"""
COMMAND = f"""
import json, sys
from leaderboard.cli import main
sys.argv = ["cir", "run", "--benchmark", "shapes/val", "--method", "random", "--out", {{out!r}}]
try:
    main()
except SystemExit as done:
    if done.code:
        raise
{COUNTED}"""
CALL = f"""
import json, sys
import cir_datasets, submissions
from cir_datasets.rows.benchmark import Benchmark
whole = cir_datasets.load("shapes/val")
rows = whole.rows()[:2]
shown = {{{{row["reference_image_id"] for row in rows}}}}
shown.update(image for row in rows for image in (*row["positive_image_ids"], *row["subset_image_ids"]))
gallery = [image for image in whole.gallery if image in shown]
small = Benchmark.from_rows(whole.spec, rows, gallery)
submissions.make_rank_file(small, {{method!r}}, k=3, **{{options!r}})
{COUNTED}"""


def table() -> dict[str, tuple[int, list[str]]]:
    """By method the modules of ours, at most, and the libraries, as the page has them."""
    text = (ROOT / "docs" / "running.md").read_text(encoding="utf-8")
    begin = text.index("| a call of `make_rank_file` | modules of ours, at most |")
    rows = [line.strip("| ").split(" | ") for line in text[begin:].split("\n\n")[0].splitlines()[2:]]
    found = {}
    for names, most, libraries in rows:
        loaded = [] if libraries == "none" else libraries.split(", ")
        found |= {name.strip("`"): (int(most), loaded) for name in names.split(", ")}
    return found


def test_every_method_stands_in_the_table() -> None:
    assert sorted(table()) == sorted(ROWS)


def counted(code: str, folder: Path) -> tuple[int, list[str]]:
    """What a process has loaded at its end; the last line that it prints says it."""
    surroundings = {**os.environ, "PYTHONPATH": str(ROOT), "CIR_CACHE_HOME": str(folder)}
    done = run_program([sys.executable, "-c", code], env=surroundings)
    number, libraries = json.loads(done.stdout.splitlines()[-1])
    return number, libraries


def test_drawing_random_numbers_loads_no_encoder_and_no_language(tmp_path: Path) -> None:
    cir_datasets.load("shapes/val")
    number, libraries = counted(COMMAND.format(out=str(tmp_path / "run.json")), cache_home())
    assert (number <= 50, libraries) == (True, []), number


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS)
def test_a_method_loads_what_the_table_says(row: str, clip: Path, tmp_path: Path) -> None:
    name, _, reranked = row.partition(" --rerank ")
    needs, options = method_card(name).needs, {"device": "cpu"}
    if method_card(name).encoders == ("none",):
        options = {"rerank": reranked, "rerank_processes": "s1+s2", "language": "oracle"} if reranked else {}
    elif name != "magiclens":
        options["encoder"] = str(clip)
    if "checkpoint" in needs:
        options["checkpoint"] = str(CHECKPOINTS[name](clip, tmp_path / name))
    if "language" in needs:
        options["language"] = "oracle"
    number, libraries = counted(CALL.format(method=name, options=options), cache_home())
    assert libraries == table()[row][1]
    assert number <= table()[row][0]
