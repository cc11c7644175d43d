"""Rows of several processes together: real processes, joined by torch's gloo."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import forked
import pytest

BEGIN = """
import json, sys
import torch
torch.set_num_threads(1)
place, count, me = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
torch.distributed.init_process_group("gloo", init_method=f"file://{place}", world_size=count, rank=me)
"""
END = """
print(json.dumps(said))
torch.distributed.destroy_process_group()
"""


def on_each(tmp_path: Path, count: int, code: str) -> list[Any]:
    """What each of some processes says, all of which run the same code."""
    command = [sys.executable, "-c", BEGIN + code + END, tmp_path / f"met_{count}", str(count)]
    # The network's name of this machine may lead nowhere.
    env = {**os.environ, "GLOO_SOCKET_IFNAME": "lo"}
    options: dict[str, Any] = {"stdout": -1, "stderr": -1, "text": True, "env": env}
    running = [forked.Process([*command, str(me)], **options) for me in range(count)]
    said = []
    for process in running:
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
        said.append(json.loads(out))
    return said


GATHER = """
from submissions.errors import MethodError
from submissions.evaluator.processes import gathered, of_each
said = []
for kind in (torch.float16, torch.bfloat16, torch.float64):
    own = torch.full((2 * me, 3), me + 0.5, dtype=kind)
    ids, rows = gathered([f"{me}-{n}" for n in range(2 * me)], own)
    said.append([ids, rows.tolist(), str(rows.dtype)])
ids, rows = gathered(["a"], torch.ones(1, 2).numpy())
said.append([ids, rows.tolist(), type(rows).__name__])
ids, rows = gathered(["a"] * me, [["x", "y"]] * me)
said.append([ids, rows])
said.append(gathered(None, None))
ids, rows = gathered(None, torch.ones(2, 2) if me == 1 else None)
said.append([ids, len(rows)])
for ids, rows in ((None, torch.ones(2, 2)), (["a"], torch.ones(1, me + 1))):
    try:
        gathered(ids, rows, "queries")
    except MethodError as error:
        said.append(str(error).partition(". Fix: ")[0])
said.append(of_each(me))
"""


def test_rows_of_all_processes_are_joined_in_any_type_and_number(tmp_path: Path) -> None:
    each = on_each(tmp_path, 3, GATHER)
    assert each[0] == each[1] == each[2]
    *floats, array, lists, nothing, alone, unnamed, shapes, ranks = each[0]
    rows = [[1.5] * 3] * 2 + [[2.5] * 3] * 4
    ids = ["1-0", "1-1", "2-0", "2-1", "2-2", "2-3"]
    assert floats == [[ids, rows, f"torch.{kind}"] for kind in ("float16", "bfloat16", "float64")]
    assert array == [["a"] * 3, [[1.0, 1.0]] * 3, "ndarray"]
    assert lists == [["a"] * 3, [["x", "y"]] * 3]
    assert (nothing, alone, ranks) == ([None, None], [None, 2], [0, 1, 2])
    assert unnamed.startswith("queries came without ids from several processes")
    assert shapes == "queries: rows of different shapes by process: (1,), (2,), (3,)"


EVALUATE = """
import warnings
import cir_datasets, submissions
shapes = cir_datasets.load("shapes/val")
torch.manual_seed(0)
kinds = {"queries": shapes.query_ids, "images": shapes.gallery}
NAMED = {"queries": "query_ids", "images": "image_ids"}
vectors = {name: torch.randn(len(ids), 8) for name, ids in kinds.items()}

def give(evaluator, name, drop_last=False):
    # As DistributedSampler deals them out; what it repeats is computed again.
    ids, own = list(kinds[name]), vectors[name]
    each = (len(ids) - 1) // count if drop_last else -(-len(ids) // count)
    rows = [(me + count * n) % len(ids) for n in range(each)]
    for start in range(0, each, 700):
        part = rows[start : start + 700]
        again = torch.tensor([[me + count * n >= len(ids)] for n in range(start, start + len(part))])
        batch = torch.where(again, own[part] * (1 + 1e-6), own[part])
        evaluator.update(**{name: batch, NAMED[name]: [ids[n] for n in part]})

def error(evaluator):
    try:
        evaluator.compute()
    except submissions.SubmissionError as error:
        return str(error)
    except ValueError as error:
        return str(error)

evaluator = submissions.Evaluator(shapes)
said = [error(evaluator)]
give(evaluator, "queries")
if me == count - 1:
    evaluator.update(images=vectors["images"], image_ids=shapes.gallery)
said.append(evaluator.compute())
if me == 0:
    evaluator.update(images=vectors["images"][:1], image_ids=shapes.gallery[:1])
said.append(evaluator.compute() == said[1])
for partial in (False, True):
    evaluator = submissions.Evaluator(shapes, partial=partial)
    give(evaluator, "queries", drop_last=True)
    give(evaluator, "images")
    if partial:
        warnings.simplefilter("ignore")
        said.append([evaluator.compute(), evaluator.notes])
    else:
        said.append(error(evaluator))
"""


@pytest.mark.slow
def test_an_evaluator_says_the_same_on_one_two_and_three_processes(tmp_path: Path) -> None:
    (alone,) = on_each(tmp_path, 1, EVALUATE)
    assert "nothing was given" in alone[0]
    assert len(alone[1]) > 10
    for count, gone in ((2, 2), (3, 3)):
        each = on_each(tmp_path, count, EVALUATE)
        assert all(said == each[0] for said in each)
        *same, refused, (partly, notes) = each[0]
        assert same == alone[:3]
        missing = f"queries: {gone} of 300 of shapes/val are missing, 'shapes_val_00{300 - gone}'"
        assert refused.startswith(missing)
        assert "drop_last=False" in refused
        assert notes[0].startswith(missing)
        assert partly.keys() == alone[1].keys()
