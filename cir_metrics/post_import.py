"""Run a function right after another library has been imported, without importing it.

`import cir_metrics` makes its names known to `evaluate.load` in whichever order the two are imported; this is
how. `on_import` puts one finder at the front of `sys.meta_path`. The finder lets the ordinary finders find
the module, lends it a loader that calls the functions when the module's code has run, and takes itself off
the path again when nothing is waited for. A module keeps its own loader and spec.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

Callback = Callable[[ModuleType], None]

_lock = threading.RLock()
_waiting: dict[str, list[Callback]] = {}
_searching = threading.local()


def on_import(module_name: str, callback: Callback) -> None:
    """Call `callback(module)` once, after the named module has been executed.

    The call comes at once where the module is imported already. Where another thread is importing it, this
    waits for that thread. A failed import keeps the callback for the next attempt.

    Args:
        module_name: absolute name, such as `evaluate`.
        callback: takes the module; what it raises goes to whoever imports the module.

    Example:
        >>> on_import("json", lambda module: print(module.__name__))
        json
    """
    with _lock:
        _waiting.setdefault(module_name, []).append(callback)
        if _finder not in sys.meta_path:
            sys.meta_path.insert(0, _finder)
    if sys.modules.get(module_name) is not None:
        _run_callbacks(importlib.import_module(module_name), module_name)


def _run_callbacks(module: ModuleType, module_name: str) -> None:
    """Call what waits for the module; the lock makes sure that each callback is taken once."""
    with _lock:
        callbacks = _waiting.pop(module_name, [])
        if not _waiting and _finder in sys.meta_path:
            sys.meta_path.remove(_finder)
    for callback in callbacks:
        callback(module)


class _Finder(MetaPathFinder):
    """Finds what the other finders find, for the modules that are waited for."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        names: set[str] = _searching.__dict__.setdefault("names", set())
        if fullname not in _waiting or fullname in names:
            return None
        names.add(fullname)
        try:
            spec = _find_elsewhere(fullname, path, target)
        finally:
            names.discard(fullname)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _Loader(spec.loader)
        return spec


def _find_elsewhere(
    fullname: str, path: Sequence[str] | None, target: ModuleType | None
) -> ModuleSpec | None:
    for finder in list(sys.meta_path):
        if finder is not _finder and hasattr(finder, "find_spec"):
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                return spec
    return None


class _Loader(Loader):
    """A module's own loader, followed by the callbacks."""

    def __init__(self, own: Any) -> None:
        self._own = own

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._own.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._own
        module.__loader__ = self._own
        self._own.exec_module(module)
        _run_callbacks(sys.modules.get(module.__name__, module), module.__name__)


_finder = _Finder()
