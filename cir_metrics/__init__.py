"""Metrics of composed image retrieval: rankings in, numbers out.

`import cir_metrics` makes the metrics' names known to `evaluate.load` (in whichever order the two are
imported) and loads lazy_loader alone; what is named below is imported when first used, and costs numpy.

- `references(rows)`: the references that the metrics take, from a benchmark's rows
- `evaluate_single_turn`, `evaluate_multi_turn`: several metrics at once, one value per query -> `Results`
- `target_ranks`, `best_target_ranks`, `top_k`: from scores to ranks and rankings; `Gallery`: from embeddings
- `METRICS`, `parse_metric`: the catalogue; `Signature`, `differences`: what a number may be compared with
- `cir_metrics.measures`: the metrics as functions on arrays, each with its equation (they bear the names of
  the evaluate modules' folders, so they are imported from there)
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import lazy_loader

# The names, and the modules that hold them, stand in __init__.pyi.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


class Hooks(MetaPathFinder):
    """Has libraries wrapped right after their import, in whichever order, without importing them.

    It stands at the front of `sys.meta_path`, lets the other finders find a library, and has the library's
    loader call the wrapping function when the library's code has run.
    """

    def __init__(self) -> None:
        """Wait for nothing yet."""
        self._homes: dict[str, str] = {}

    def wrap_after_import(self, library: str, home: str) -> None:
        """Call `home`'s `wrap(library)` after each import of a library, at once where it is imported already.

        Where another thread is importing it, this waits for that thread. A failed import calls nothing, the
        next attempt does.

        Args:
            library: absolute name of a module, such as `evaluate`.
            home: the module that holds `wrap`, imported with the library; a second call of `wrap` on the same
                library must change nothing. What it raises goes to whoever imports the library.
        """
        self._homes[library] = home
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)
        if sys.modules.get(library) is not None:
            importlib.import_module(home).wrap(importlib.import_module(library))

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find what the other finders find, for the libraries that are waited for."""
        if fullname not in self._homes:
            return None
        specs = (each.find_spec(fullname, path, target) for each in sys.meta_path if each is not self)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _Wrapping(spec.loader, self._homes[fullname])
        return spec


class _Wrapping(Loader):
    """A library's own loader, and the call that follows; other hooks may have put theirs around it."""

    def __init__(self, loader: Any, home: str) -> None:
        self._loader, self._home = loader, home

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        importlib.import_module(self._home).wrap(sys.modules.get(module.__name__, module))


hooks = Hooks()
hooks.wrap_after_import("evaluate", "cir_metrics.hook")
