"""The evaluate modules in several processes at once, from published folders, installed, and combined."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from metrics_processes import python, together

import cir_metrics.hook as hook
from cir_metrics.catalogue import METRICS

PROCESSES = 3


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """A folder that holds each metric's folder as it would lie on the Hub: script and card, nothing else."""
    folder = tmp_path / "published"
    for name in METRICS:
        skipped = shutil.ignore_patterns("__pycache__")
        shutil.copytree(hook.module_folder(name), folder / name, ignore=skipped)
    return folder


@pytest.mark.slow
def test_processes_at_once_never_read_each_others_input(tmp_path: Path) -> None:
    """With the default id of an experiment, one that all share, one of each process, and with no file."""
    code = """
import json, os, cir_metrics, evaluate
part = int(os.environ["PART"])
found = []
for options in [{}, {"experiment_id": "ours"}, {"experiment_id": f"part{part}"}, {"keep_in_memory": True}]:
    for _ in range(4):
        pnr_map = evaluate.load("pnr_map", **options)
        recall = evaluate.load("recall_at_k", **options)
        for _ in range(part):
            recall.add(prediction=["a"], reference={"target": "a"})
        recall.add_batch(predictions=[["b"]], references=[{"target": "a"}])
        found.append([pnr_map.compute(**CASE), recall.compute(ks=(1,))])
print(json.dumps(found))
"""
    answers = together(code, PROCESSES, tmp_path, tmp_path / "home")
    for part, answer in enumerate(answers):
        # `part` hits and one miss.
        assert answer == [[{"pnr_map@5": 0.25}, {"recall@1": part / (part + 1)}]] * 16


@pytest.mark.slow
def test_an_evaluation_spread_over_processes_scores_all_that_they_added(tmp_path: Path) -> None:
    code = f"""
import json, os, cir_metrics, evaluate
part = int(os.environ["PART"])
values = []
for turn in range(3):
    spread = dict(num_process={PROCESSES}, process_id=part, experiment_id=f"spread{{turn}}")
    recall = evaluate.load("recall_at_k", **spread)
    for _ in range(part + 1):
        recall.add(prediction=["a", "b"], reference={{"target": "ab"[part % 2]}})
    hits = evaluate.load("hits_at_k", **spread)
    sessions = [[["a", "b"], ["b", "a"]], [["b"]]][: 1 + part % 2]
    hits.add_batch(predictions=sessions, references=[{{"positives": ["b"]}}] * len(sessions))
    values.append([recall.compute(ks=(1,)), hits.compute(ks=(1,))])
print(json.dumps(values))
"""
    first, *others = together(code, PROCESSES, tmp_path, tmp_path / "home")
    # Hits of parts 0 and 2 (1 + 3 of 6 queries); one of four sessions ends at its first turn, with a hit.
    assert first == [[{"recall@1": 4 / 6}, {"hits@1@turn1": 1 / 4, "hits@1@turn2": 1.0}]] * 3
    assert others == [[[None, None]] * 3] * (PROCESSES - 1)


@pytest.mark.slow
def test_every_published_folder_loads_with_nothing_of_ours_imported(published: Path, tmp_path: Path) -> None:
    code = f"""
import json, sys, evaluate
assert not [name for name in sys.modules if name.startswith("cir_")]
names = {{}}
for name in {list(METRICS)!r}:
    module = evaluate.load("published/" + name)
    assert type(module).__module__.startswith("evaluate_modules."), type(module).__module__
    names[name] = module.name
print(json.dumps([names, evaluate.load({str(published / "pnr_map")!r}).compute(**CASE)]))
"""
    names, value = python(code, tmp_path, tmp_path / "home", HF_HUB_OFFLINE="1")
    assert names == {name: name for name in METRICS}
    assert value == {"pnr_map@5": 0.25}


@pytest.mark.slow
def test_a_published_folder_in_several_processes_that_start_with_an_empty_cache(
    published: Path, tmp_path: Path
) -> None:
    code = """
import json, evaluate
print(json.dumps([evaluate.load("published/pnr_map").compute(**CASE) for _ in range(3)]))
"""
    assert published.is_dir()
    answers = together(code, PROCESSES, tmp_path, tmp_path / "home", HF_HUB_OFFLINE="1")
    assert answers == [[{"pnr_map@5": 0.25}] * 3] * PROCESSES


@pytest.mark.slow
def test_a_published_folder_names_the_package_that_it_lacks(published: Path, tmp_path: Path) -> None:
    code = """
import json, sys
class Without:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "cir_metrics":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Without())
import evaluate
try:
    evaluate.load("published/pnr_map")
except ImportError as error:
    print(json.dumps(str(error)))
"""
    assert published.is_dir()
    assert "pip install cir-benchmarks" in python(code, tmp_path, tmp_path / "home", HF_HUB_OFFLINE="1")


@pytest.mark.slow
def test_combined_metrics_take_one_call_batches_and_single_queries(tmp_path: Path) -> None:
    code = """
import json, cir_metrics, evaluate
rankings = [["n", "p"], ["p", "n"]]
rows = [{"positives": ["p"], "negatives": ["n"], "target": "p"}] * 2
combined = evaluate.combine(["pnr_map", "map_at_k", "recall_at_k"])
values = [combined.compute(predictions=rankings, references=rows, ks=(1, 2))]
combined.add_batch(predictions=rankings, references=rows)
values.append(combined.compute(ks=(1, 2)))
for ranking, row in zip(rankings, rows):
    combined.add(prediction=ranking, reference=row)
values.append(combined.compute(ks=(1, 2)))
named = evaluate.combine({"ours": "recall_at_k", "theirs": evaluate.load("recall_at_k")}, force_prefix=True)
values.append(named.compute(predictions=rankings, references=rows, ks=(1,)))
print(json.dumps(values))
"""
    expected = {"pnr_map@1": 0.5, "pnr_map@2": 0.625, "map@1": 0.5, "map@2": 0.75}
    expected |= {"recall@1": 0.5, "recall@2": 1.0}
    values = python(code, tmp_path, tmp_path / "home", HF_HUB_OFFLINE="1")
    assert values == [expected] * 3 + [{"ours_recall@1": 0.5, "theirs_recall@1": 0.5}]
