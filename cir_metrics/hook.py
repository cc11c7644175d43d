"""Makes the names of the metrics known to `evaluate.load`; loaded when `evaluate` is imported.

`evaluate.load("pnr_map")` asks one function, `evaluation_module_factory`, for the module of that name. This
wraps it: our own names are answered from this package, without a look at the Hub; every other name, a path,
and a folder of that name in the working directory (which evaluate itself puts first) go to evaluate as
before.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from cir_metrics.catalogue import METRICS

_FUNCTION = "evaluation_module_factory"
_MARK = "_knows_cir_metrics"


def module_folder(name: str) -> Path:
    """The folder of an evaluate module, which `evaluate.load` also takes as a path."""
    return Path(__file__).resolve().parent / name


def wrap(_evaluate: ModuleType) -> None:
    """Wrap evaluate's look-up; a second call changes nothing."""
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
    wrapped = _knowing(original, frozenset(METRICS), module)
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
