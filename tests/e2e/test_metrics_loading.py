"""`evaluate.load` knows our names, as a user meets it: in processes of their own, away from the sources."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from metrics_processes import environment, python

import cir_metrics.hook as hook
from cir_metrics.catalogue import METRICS

ORDERS = ("import cir_metrics, evaluate", "import evaluate, cir_metrics")


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
def test_names_load_in_both_import_orders(order: str, tmp_path: Path) -> None:
    code = f"""
import importlib, json
{order}
values = {{}}
for name in cir_metrics.METRICS:
    values[name] = evaluate.load(name).name
for keep_in_memory in (True, False):
    module = evaluate.load("pnr_map", keep_in_memory=keep_in_memory)
    values[str(keep_in_memory)] = module.compute(**CASE)
hooked = evaluate.loading.evaluation_module_factory
importlib.reload(cir_metrics)
assert evaluate.loading.evaluation_module_factory is evaluate.inspect.evaluation_module_factory is hooked
print(json.dumps(values))
"""
    values = python(code, tmp_path, tmp_path / "home")
    assert values == {
        **{name: name for name in METRICS},
        "True": {"pnr_map@5": 0.25},
        "False": {"pnr_map@5": 0.25},
    }


@pytest.mark.slow
def test_other_names_and_folders_are_left_to_evaluate(tmp_path: Path) -> None:
    source = (hook.module_folder("recall_at_k") / "recall_at_k.py").read_text(encoding="utf-8")
    for name, class_name in (("my_metric", "MyMetric"), ("map_at_k", "RecallAtK")):
        (tmp_path / name).mkdir()
        script = source.replace("class RecallAtK", f"class {class_name}")
        (tmp_path / name / f"{name}.py").write_text(script, encoding="utf-8")
    code = """
import json
from cir_metrics.errors import InputError
from evaluate import load
# A folder of that name in the working directory comes first, as evaluate has it.
found = [load(name).name for name in ("./my_metric", "my_metric", "map_at_k", "pnr_map")]
found.append(load("pnr_map", module_type="metric").name)
for name, kind in (("no_such_metric", None), ("pnr_map", "comparison")):
    try:
        load(name, module_type=kind)
    except FileNotFoundError:
        found.append("not found")
print(json.dumps(found))
"""
    values = python(code, tmp_path, tmp_path / "home", HF_HUB_OFFLINE="1")
    assert values == ["my_metric", "my_metric", "recall_at_k", "pnr_map", "pnr_map", "not found", "not found"]


@pytest.mark.slow
def test_installed_names_and_published_folders_load_without_the_import(tmp_path: Path) -> None:
    home = tmp_path / "home"
    install = """
import json
from cir_datasets.commands.metrics import install
first, second = install(), install()
assert first == second
print(json.dumps({name: str(path) for name, path in first.items()}))
"""
    installed = python(install, tmp_path, home)
    assert set(installed) == set(METRICS)
    for name, path in installed.items():
        assert Path(path).is_relative_to(home)
        assert Path(path).read_bytes() == (hook.module_folder(name) / f"{name}.py").read_bytes()
        assert [each.name for each in Path(path).parent.glob(".*")] == []
    folder = hook.module_folder("pnr_map")
    load = f"""
import json, evaluate, sys
assert "cir_metrics" not in sys.modules
module = evaluate.load("pnr_map")
assert "evaluate-metric--pnr_map" in type(module).__module__
values = [module.compute(**CASE)]
# The script has imported the package, and with it the hook, which answers from now on.
names = {{each: evaluate.load(each).name for each in {list(METRICS)!r}}}
values += [evaluate.load(path).compute(**CASE) for path in ({str(folder)!r}, {str(folder / "pnr_map.py")!r})]
print(json.dumps([names, values]))
"""
    names, values = python(load, tmp_path, home, HF_HUB_OFFLINE="1")
    assert names == {name: name for name in METRICS}
    assert values == [{"pnr_map@5": 0.25}] * 3


def test_a_changed_evaluate_gives_a_warning_and_no_error(tmp_path: Path) -> None:
    package = tmp_path / "evaluate"
    package.mkdir()
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "loading.py").write_text("def load(name): return name\n", encoding="utf-8")
    code = """
import json, sys, warnings
sys.path.insert(0, ".")
import cir_metrics
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import evaluate.loading
print(json.dumps([evaluate.loading.load("x"), [str(each.message) for each in caught]]))
"""
    loaded, messages = python(code, tmp_path, tmp_path / "home")
    assert loaded == "x"
    assert len(messages) == 1
    assert "this version of evaluate has no evaluate.loading.evaluation_module_factory" in messages[0]
    assert "Fix: run  cir setup  or  cir metrics install," in messages[0]


def test_import_loads_no_other_library(tmp_path: Path) -> None:
    code = """
import json, sys
before = set(sys.modules)
import cir_metrics
bare = sorted({name.partition(".")[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names))
import cir_metrics.evaluation, cir_metrics.measures, cir_metrics.ranking, cir_metrics.signature
cir_metrics.references, cir_metrics.Signature, cir_metrics.METRICS
full = sorted({name.partition(".")[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names))
print(json.dumps([bare, full]))
"""
    command = [sys.executable, "-c", code]
    printed = subprocess.check_output(command, cwd=tmp_path, env=environment(tmp_path / "home"), text=True)
    bare, full = json.loads(printed)
    assert bare == ["cir_metrics", "lazy_loader"]
    assert full == ["cir_metrics", "lazy_loader", "numpy"]


def test_everything_in_all_is_there(tmp_path: Path) -> None:
    code = """
import json, cir_metrics
print(json.dumps([name for name in cir_metrics.__all__ if getattr(cir_metrics, name, None) is None]))
"""
    assert python(code, tmp_path, tmp_path / "home") == []
