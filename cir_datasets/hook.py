"""Makes the benchmarks' names known to `datasets.load_dataset`; loaded when `datasets` is imported.

`datasets` has no plug-in hook: what turns a name into a builder is `dataset_module_factory`, which is wrapped
here for our own names only. Where a later version has moved that function, a warning says what still works.
"""

from __future__ import annotations

import functools
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

from cir_datasets.errors import upgrade_lines

_FACTORY = "dataset_module_factory"
_MARK = "_cir_datasets_wraps"
_BUILDER_MODULE = "cir_datasets.huggingface.builder"


def first_lines(name: str, config: str, split: str) -> tuple[str, ...]:
    """The lines of Python that load a benchmark by its name, as every card shows them.

    Args:
        name: of the benchmark's card, `cirr`.
        config: of the configuration, `val`.
        split: of the configuration, `validation`.

    Example:
        >>> print(*first_lines("cirr", "val", "validation"), sep=chr(10))
        import cir_datasets  # makes the names known; not needed after  cir setup cirr
        from datasets import load_dataset
        rows = load_dataset("cirr", "val", split="validation")
    """
    return (
        f"import cir_datasets  # makes the names known; not needed after  cir setup {name}",
        "from datasets import load_dataset",
        f'rows = load_dataset("{name}", "{config}", split="{split}")',
    )


def wrap(datasets: ModuleType) -> None:
    """Wrap the factory where it is defined and where `datasets.inspect` has copied it to."""
    homes = [getattr(datasets, name, None) for name in ("load", "inspect")]
    if not all(callable(getattr(home, _FACTORY, None)) for home in homes):
        warnings.warn(
            f"datasets {getattr(datasets, '__version__', '?')} has no load.{_FACTORY}; load_dataset does "
            "not know the names of cir_datasets by itself. `cir_datasets.load` works, and so does "
            f"load_dataset after `cir setup NAME`. Fix: {upgrade_lines()}.",
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

        if path in registry.names() and not _is_dataset(Path(path)):
            return _module(path)
        return factory(path, *args, **kwargs)

    setattr(dataset_module_factory, _MARK, factory)
    return dataset_module_factory


def _is_dataset(folder: Path) -> bool:
    """Whether a folder of the working directory has a dataset card of the Hub, and is meant by its name.

    The publisher's own folder of that name has none: it lies there because its files were downloaded.
    """
    try:
        with (folder / "README.md").open("rb") as file:
            return file.read(4) == b"---\n"
    except OSError:
        return False


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
