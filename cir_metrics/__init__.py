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
import warnings
from collections.abc import Sequence
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
    return sorted({*globals(), *__all__, *_MODULES})


class _Hooks(MetaPathFinder):
    """Stands first on `sys.meta_path`, and loads what hooks into a library when that library is imported."""

    def __init__(self) -> None:
        self._homes: dict[str, str] = {}

    def add(self, library: str, home: str) -> None:
        """Have `install()` of the module `home` called when `library` is imported; now, if it has been."""
        self._homes[library] = home
        if sys.modules.get(library) is not None:
            self._install(library)

    def _install(self, library: str) -> bool:
        home = self._homes.pop(library, None)
        if home is not None:
            importlib.import_module(home).install()
        return home is not None

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        # What `install` has put on the path finds the library, and sees to the rest.
        return importlib.util.find_spec(fullname) if self._install(fullname) else None


hooks = _Hooks()
"""Of the packages that libraries are to know by name."""
sys.meta_path.insert(0, hooks)
hooks.add("evaluate", "cir_metrics.hook")
