"""A library is wrapped when it has been imported, whoever imports it first."""

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
HOME = """
calls = []

def wrap(module):
    calls.append((module.__name__, module.value))
"""


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
    yield Made(tmp_path)
    for name in [name for name in sys.modules if name.startswith("post_import_example_")]:
        del sys.modules[name]


@pytest.fixture
def home(make: Made) -> ModuleType:
    """A module whose `wrap` notes what it is called with."""
    return importlib.import_module(make(HOME))


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> Hooks:
    """In which nobody else waits."""
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    return Hooks()


def test_wraps_after_the_module_has_been_executed(make: Made, hooks: Hooks, home: ModuleType) -> None:
    name = make()
    hooks.wrap_after_import(name, home.__name__)
    assert home.calls == []
    module = importlib.import_module(name)
    assert home.calls == [(name, 1)]
    assert importlib.import_module(name) is module is sys.modules[name]
    assert home.calls == [(name, 1)]


def test_wraps_at_once_where_the_module_is_there(make: Made, hooks: Hooks, home: ModuleType) -> None:
    name = make()
    importlib.import_module(name)
    hooks.wrap_after_import(name, home.__name__)
    assert home.calls == [(name, 1)]


def test_a_wrapped_module_has_its_own_loader(make: Made, hooks: Hooks, home: ModuleType) -> None:
    name = make()
    hooks.wrap_after_import(name, home.__name__)
    module, other = importlib.import_module(name), importlib.import_module(make())
    assert type(module.__loader__) is type(other.__loader__)
    assert module.__spec__.loader is module.__loader__
    assert Path(str(module.__file__)).name == f"{name}.py"


def test_finding_a_module_is_not_importing_it(make: Made, hooks: Hooks, home: ModuleType) -> None:
    name = make()
    hooks.wrap_after_import(name, home.__name__)
    spec = importlib.util.find_spec(name)
    assert spec.loader.get_source(name) == "value = 1\n"  # type: ignore[attr-defined]
    assert home.calls == []
    importlib.import_module(name)
    assert len(home.calls) == 1


def test_a_failed_import_is_followed_by_the_next_attempt(
    make: Made, hooks: Hooks, home: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = make("import os\nif 'POST_IMPORT_FAIL' in os.environ: raise RuntimeError('not yet')\nvalue = 1\n")
    hooks.wrap_after_import(name, home.__name__)
    monkeypatch.setenv("POST_IMPORT_FAIL", "1")
    with pytest.raises(RuntimeError, match="not yet"):
        importlib.import_module(name)
    assert home.calls == []
    monkeypatch.delenv("POST_IMPORT_FAIL")
    importlib.import_module(name)
    assert len(home.calls) == 1


def test_a_module_that_does_not_exist_stays_missing(hooks: Hooks, home: ModuleType) -> None:
    name = "post_import_example_that_is_nowhere"
    hooks.wrap_after_import(name, home.__name__)
    with pytest.raises(ModuleNotFoundError, match=name):
        importlib.import_module(name)
    assert home.calls == []


def test_a_module_that_is_barred_is_left_alone(
    hooks: Hooks, home: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "post_import_example_that_is_barred"
    monkeypatch.setitem(sys.modules, name, None)
    hooks.wrap_after_import(name, home.__name__)
    assert home.calls == []


@pytest.mark.parametrize("ours_first", [True, False])
def test_hooks_of_another_library_run_as_well(
    make: Made, hooks: Hooks, home: ModuleType, ours_first: bool
) -> None:
    wrapt = pytest.importorskip("wrapt")
    importer = importlib.import_module("wrapt.importer")
    name, seen = make(), []
    wrapt.register_post_import_hook(seen.append, name)
    hooks.wrap_after_import(name, home.__name__)
    sys.meta_path.insert(1 if ours_first else 0, importer.ImportHookFinder())
    module = importlib.import_module(name)
    assert seen == [module]
    assert set(home.calls) == {(name, 1)}


def test_threads_that_import_it_all_find_it_wrapped(make: Made, hooks: Hooks, home: ModuleType) -> None:
    name = make("import time\ntime.sleep(0.05)\nvalue = 1\n")
    wrapped: list[bool] = []
    start = threading.Barrier(16)

    def work(number: int) -> None:
        start.wait()
        if number % 2:
            importlib.import_module(name)
        hooks.wrap_after_import(name, home.__name__)
        importlib.import_module(name)
        wrapped.append((name, 1) in home.calls)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrapped == [True] * 16
