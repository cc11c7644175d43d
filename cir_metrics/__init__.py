"""Metrics of composed image retrieval: rankings in, numbers out.

`import cir_metrics` makes the metrics' names known to `evaluate.load` (in whichever order the two are
imported) and loads nothing else; what is named below is imported when first used, and costs numpy alone.

- `references(rows)`: the references that the metrics take, from a benchmark's rows
- `evaluate_single_turn`, `evaluate_multi_turn`: several metrics at once, one value per query -> `Results`
- `target_ranks`, `best_target_ranks`, `top_k`: from scores to ranks and rankings; `Gallery`: from embeddings
- `METRICS`, `parse_metric`: the catalogue; `Signature`, `differences`: what a number may be compared with
- `cir_metrics.measures`: the metrics as functions on arrays, each with its equation (they bear the names of
  the evaluate modules' folders, so they are imported from there)
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from cir_metrics.errors import CirError, InputError, MetricError, UnknownNameError

# Not lazy_loader, as in the other packages: this one imports numpy and nothing else.
_HOMES = {
    "METRICS": "catalogue",
    "UNLISTED": "sums",
    "Found": "gallery",
    "Gallery": "gallery",
    "Results": "evaluation",
    "Signature": "signature",
    "best_target_ranks": "ranking",
    "differences": "signature",
    "evaluate_multi_turn": "lists",
    "evaluate_single_turn": "lists",
    "parse_metric": "catalogue",
    "references": "inputs",
    "target_ranks": "ranking",
    "top_k": "ranking",
}
_MODULES = ("catalogue", "evaluation", "gallery", "measures", "ranking", "signature", "ties")

__all__ = ["CirError", "InputError", "MetricError", "UnknownNameError", *_HOMES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(f"cir_metrics.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    if name == "coding":
        warnings.warn("cir_metrics.coding is cir_metrics.evaluation", DeprecationWarning, stacklevel=2)
        name = "evaluation"
    if name in _MODULES:
        return importlib.import_module(f"cir_metrics.{name}")
    raise AttributeError(f"module 'cir_metrics' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES})


class Hooks(MetaPathFinder):
    """Runs functions right after another library is imported, in whichever order, without importing it.

    It stands at the front of `sys.meta_path`, lets the ordinary finders find the module, has the module's
    loader call the functions when the module's code has run, and takes itself off the path when nothing is
    waited for.
    """

    def __init__(self) -> None:
        """Wait for nothing yet."""
        self._lock = threading.RLock()
        self._waiting: dict[str, list[Callable[[ModuleType], None]]] = {}
        self._searching = threading.local()

    def on_import(self, module_name: str, callback: Callable[[ModuleType], None]) -> None:
        """Call `callback(module)` once, after the named module has been executed.

        The call comes at once where the module is imported already. Where another thread is importing it,
        this waits for that thread. A failed import keeps the callback for the next attempt.

        Args:
            module_name: absolute name, such as `evaluate`.
            callback: takes the module; what it raises goes to whoever imports the module.

        Example:
            >>> hooks.on_import("json", lambda module: print(module.__name__))
            json
        """
        with self._lock:
            self._waiting.setdefault(module_name, []).append(callback)
            if self not in sys.meta_path:
                sys.meta_path.insert(0, self)
        if sys.modules.get(module_name) is not None:
            self._call(importlib.import_module(module_name), module_name)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find what the other finders find, for the modules that are waited for."""
        names: set[str] = self._searching.__dict__.setdefault("names", set())
        if fullname not in self._waiting or fullname in names:
            return None
        names.add(fullname)
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            names.discard(fullname)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            self._call_after(spec.loader)
        return spec

    def _call_after(self, loader: Any) -> None:
        """Have a module's own loader run the callbacks when it has run the module."""
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            loader.exec_module = execute
            execute(module)
            self._call(sys.modules.get(module.__name__, module), module.__name__)

        loader.exec_module = exec_module

    def _call(self, module: ModuleType, module_name: str) -> None:
        """Call what waits for the module; the lock makes sure that each callback is taken once."""
        with self._lock:
            callbacks = self._waiting.pop(module_name, [])
            if not self._waiting and self in sys.meta_path:
                sys.meta_path.remove(self)
        for callback in callbacks:
            callback(module)


hooks = Hooks()
hooks.on_import("evaluate", lambda evaluate: importlib.import_module("cir_metrics.hook").wrap(evaluate))
