"""Makes the benchmarks' names known to `datasets.load_dataset`, without importing `datasets`.

`datasets` has no plug-in hook: what turns a name into a builder is `dataset_module_factory`, which is wrapped
here for our own names only. Where a later version has moved that function, a warning says what still works.
"""

from __future__ import annotations

import functools
import warnings
from types import ModuleType
from typing import Any

from cir_metrics.post_import import on_import

_FACTORY = "dataset_module_factory"
_MARK = "_cir_datasets_wraps"
_BUILDER_MODULE = "cir_datasets.huggingface.builder"


def install() -> None:
    """Wrap the factory as soon as `datasets` has been imported (now, if it has been)."""
    on_import("datasets", _wrap)


def _wrap(datasets: ModuleType) -> None:
    """Wrap the factory where it is defined and where `datasets.inspect` has copied it to."""
    homes = [getattr(datasets, name, None) for name in ("load", "inspect")]
    if not all(callable(getattr(home, _FACTORY, None)) for home in homes):
        warnings.warn(
            f"datasets {getattr(datasets, '__version__', '?')} has no load.{_FACTORY}; load_dataset does "
            "not know the names of cir_datasets by itself. `cir_datasets.load` works, and so does "
            "load_dataset after `cir datasets prepare NAME`. Fix: update cir-benchmarks.",
            RuntimeWarning,
            stacklevel=2,
        )
        return
    for home in homes:
        factory = getattr(home, _FACTORY)
        if not hasattr(factory, _MARK):
            setattr(home, _FACTORY, _wrapped(factory))


def _wrapped(factory: Any) -> Any:
    @functools.wraps(factory)
    def dataset_module_factory(path: str, *args: Any, **kwargs: Any) -> Any:
        from cir_datasets import registry  # pydantic is imported where a benchmark is loaded

        if path in registry.names():
            return _module(path)
        return factory(path, *args, **kwargs)

    setattr(dataset_module_factory, _MARK, factory)
    return dataset_module_factory


def _module(name: str) -> Any:
    """What `datasets` needs to build one of our benchmarks."""
    from datasets.load import BuilderConfigsParameters, DatasetModule

    from cir_datasets.huggingface import builder as hub

    return DatasetModule(
        module_path=_BUILDER_MODULE,
        hash=hub.UNPREPARED,
        builder_kwargs={"dataset_name": name},
        builder_configs_parameters=BuilderConfigsParameters(builder_configs=hub.builder_configs(name)),
    )
