"""Makes the names of the metrics known to `evaluate.load`, as soon as `evaluate` is imported.

`evaluate.load("pnr_map")` asks one function, `evaluation_module_factory`, for the module of that name. This
wraps it: our own names are answered from this package, without a look at the Hub; every other name, a path,
and a folder of that name in the working directory (which evaluate itself puts first) go to evaluate as
before.

`on_import` does so in whichever order the two are imported. It puts one finder at the front of
`sys.meta_path`, which lets the ordinary finders find the module, has the module's loader call the functions
when the module's code has run, and takes itself off the path again when nothing is waited for.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

Callback = Callable[[ModuleType], None]

_FUNCTION = "evaluation_module_factory"
_MARK = "_knows_cir_metrics"
_FOLDER = Path(__file__).resolve().parent

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
            spec = importlib.util.find_spec(fullname)
        finally:
            names.discard(fullname)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            _call_afterwards(spec.loader)
        return spec


def _call_afterwards(loader: Any) -> None:
    """Have a module's own loader run the callbacks when it has run the module."""
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        loader.exec_module = execute
        execute(module)
        _run_callbacks(sys.modules.get(module.__name__, module), module.__name__)

    loader.exec_module = exec_module


_finder = _Finder()


def install() -> None:
    """Wrap evaluate's look-up now, or when `evaluate` is imported; a second call changes nothing."""
    on_import("evaluate", _wrap)


def module_names() -> tuple[str, ...]:
    """Names that `evaluate.load` learns: the folders here that hold a script of their own name.

    Example:
        >>> "pnr_map" in module_names()
        True
    """
    return tuple(
        sorted(folder.name for folder in _FOLDER.iterdir() if (folder / f"{folder.name}.py").is_file())
    )


def module_folder(name: str) -> Path:
    """The folder of an evaluate module, which `evaluate.load` also takes as a path."""
    return _FOLDER / name


def _wrap(_evaluate: ModuleType) -> None:
    try:
        loading = importlib.import_module("evaluate.loading")
        original, module = getattr(loading, _FUNCTION), loading.ImportableModule
    except (ImportError, AttributeError) as error:
        warnings.warn(
            f"this version of evaluate has no evaluate.loading.{_FUNCTION} ({error}), so evaluate.load does "
            "not know the metrics of cir_metrics by name. Fix: run  cir setup  or  cir metrics install,  or "
            f"load them by path: evaluate.load({str(module_folder('pnr_map'))!r}).",
            RuntimeWarning,
            stacklevel=2,
        )
        return
    if getattr(original, _MARK, False):
        return
    wrapped = _knowing(original, frozenset(module_names()), module)
    setattr(loading, _FUNCTION, wrapped)
    inspect = importlib.import_module("evaluate.inspect")
    if getattr(inspect, _FUNCTION, None) is original:
        setattr(inspect, _FUNCTION, wrapped)


def _knowing(
    original: Callable[..., Any], names: frozenset[str], module: Callable[[str, str], Any]
) -> Callable[..., Any]:
    @functools.wraps(original)
    def factory(path: Any, module_type: str | None = None, *args: Any, **kwargs: Any) -> Any:
        ours = isinstance(path, str) and path in names and module_type in (None, "metric")
        if ours and not (Path(path) / f"{path}.py").is_file():
            # As it lies here: a copy in evaluate's cache needs the right to write there, and processes that
            # do not know that cache could not unpickle the metric.
            return module(f"{__package__}.{path}.{path}", path)
        return original(path, module_type, *args, **kwargs)

    setattr(factory, _MARK, True)
    return factory
