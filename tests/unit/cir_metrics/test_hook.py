"""Functions that run when another module has been imported."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from cir_metrics import Hooks

_numbers = itertools.count()


class Made:
    """A module of its own name in a folder on sys.path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, code: str = "value = 1\n") -> str:
        name = f"post_import_example_{next(_numbers)}"
        (self.folder / f"{name}.py").write_text(code, encoding="utf-8")
        importlib.invalidate_caches()
        return name


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Made]:
    monkeypatch.syspath_prepend(tmp_path)
    before = list(sys.meta_path)
    yield Made(tmp_path)
    assert sys.meta_path == before
    for name in [name for name in sys.modules if name.startswith("post_import_example_")]:
        del sys.modules[name]


@pytest.fixture
def hooks() -> Hooks:
    """In which nobody else waits."""
    return Hooks()


def test_runs_after_the_module_has_been_executed(make: Made, hooks: Hooks) -> None:
    name, seen = make(), []
    hooks.on_import(name, lambda module: seen.append(module.value))
    assert seen == []
    module = importlib.import_module(name)
    assert seen == [1]
    importlib.import_module(name)
    assert seen == [1]
    assert module is sys.modules[name]


def test_runs_at_once_where_the_module_is_there(make: Made, hooks: Hooks) -> None:
    name, seen = make(), []
    module = importlib.import_module(name)
    hooks.on_import(name, seen.append)
    assert seen == [module]


def test_a_hook_leaves_no_trace_after_the_import(make: Made, hooks: Hooks) -> None:
    name = make()
    path_before = list(sys.meta_path)
    hooks.on_import(name, lambda module: None)
    assert sys.meta_path != path_before
    hooked = importlib.import_module(name)
    assert sys.meta_path == path_before
    other = importlib.import_module(make())
    assert type(hooked.__loader__) is type(other.__loader__)
    assert hooked.__spec__ is not None
    assert hooked.__spec__.loader is hooked.__loader__
    assert Path(str(hooked.__file__)).name == f"{name}.py"


def test_runs_several_in_the_order_given(make: Made, hooks: Hooks) -> None:
    name, seen = make(), []
    for number in range(3):
        hooks.on_import(name, lambda module, number=number: seen.append(number))
    importlib.import_module(name)
    assert seen == [0, 1, 2]


def test_finding_a_module_is_not_importing_it(make: Made, hooks: Hooks) -> None:
    name, seen = make(), []
    hooks.on_import(name, seen.append)
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.loader is not None
    assert spec.loader.get_source(name) == "value = 1\n"  # type: ignore[attr-defined]
    assert seen == []
    importlib.import_module(name)
    assert len(seen) == 1


def test_a_failed_import_keeps_the_callback(make: Made, hooks: Hooks) -> None:
    name = make("import os\nif 'POST_IMPORT_FAIL' in os.environ: raise RuntimeError('not yet')\n")
    seen: list[ModuleType] = []
    hooks.on_import(name, seen.append)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POST_IMPORT_FAIL", "1")
        with pytest.raises(RuntimeError, match="not yet"):
            importlib.import_module(name)
    assert seen == []
    importlib.import_module(name)
    assert len(seen) == 1


def test_a_module_that_does_not_exist_stays_missing(hooks: Hooks) -> None:
    name = "post_import_example_that_is_nowhere"
    hooks.on_import(name, lambda module: None)
    try:
        with pytest.raises(ModuleNotFoundError, match=name):
            importlib.import_module(name)
        assert name in hooks._waiting
    finally:
        sys.meta_path.remove(hooks)


def test_a_module_that_is_barred_is_left_alone(hooks: Hooks, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "post_import_example_that_is_barred"
    monkeypatch.setitem(sys.modules, name, None)
    hooks.on_import(name, lambda module: None)
    sys.meta_path.remove(hooks)


def test_many_threads_run_each_callback_once(make: Made, hooks: Hooks) -> None:
    name = make("import time\ntime.sleep(0.05)\nvalue = 1\n")
    seen: list[tuple[int, int]] = []
    start = threading.Barrier(16)

    def work(number: int) -> None:
        start.wait()
        if number % 2:
            importlib.import_module(name)
        hooks.on_import(name, lambda module: seen.append((number, module.value)))
        importlib.import_module(name)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == [(number, 1) for number in range(16)]
