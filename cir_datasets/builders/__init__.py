"""One builder a benchmark: `builders/<name>.py` with a class of the benchmark's name in CamelCase."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cir_datasets.builders.base import BenchmarkBuilder


def builder_class(name: str) -> type[BenchmarkBuilder]:
    """The builder of a registered benchmark, found by its name; challenges have one, and so have folders.

    Example:
        >>> builder_class("cirr").__name__
        'Cirr'
    """
    from cir_datasets import registry

    publisher = registry.card(name).source.publisher
    name = {"challenge": "challenge", "folder": "user_folder"}.get(publisher, name)
    module = importlib.import_module(f"{__name__}.{name}")
    found: type[BenchmarkBuilder] = getattr(module, name.title().replace("_", ""))
    return found
