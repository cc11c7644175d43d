"""One builder a benchmark: `builders/<name>.py` with a class of the benchmark's name in CamelCase.

A builder takes the publisher's files and gives rows. It is plain Python, so that scoring can prepare a
benchmark without importing `datasets`; `cir_datasets.huggingface.builder` makes a Hugging Face dataset of
what was prepared. No function in a builder may rank.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    import pyarrow as pa

    from cir_datasets.registry import BenchmarkSpec
    from cir_datasets.rows.records import Row


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


class BenchmarkBuilder(ABC):
    """Reads one configuration of a benchmark.

    Args:
        spec: the benchmark, card and configuration.
        files: absolute paths of the publisher's files by the relative name that the card lists; a file of an
            optional gallery may be absent. Where the gallery is another benchmark's, its files are here too.
    """

    captions_field: ClassVar[str] = "relative_caption"
    """The field of a row, or of a session's turn, that holds its text; `captions` where there are several."""

    def __init__(self, spec: BenchmarkSpec, files: Mapping[str, Path]) -> None:
        """Keep both; nothing is read before `rows` or `images` is called."""
        self.spec = spec
        self.files = files

    @property
    def rows_file(self) -> Path:
        """The publisher's file of the rows, of one file alone."""
        return self.files[self.spec.config.files[0]]

    @property
    def gallery_file(self) -> Path:
        """The publisher's list of the gallery."""
        return self.files[self.spec.config.gallery_files[0]]

    @property
    def gallery_source(self) -> BenchmarkSpec | None:
        """The benchmark whose gallery this one ranks, or None where it has its own."""
        from cir_datasets import registry

        source = self.spec.config.gallery_from
        return None if source is None else registry.spec(source)

    @abstractmethod
    def schema(self) -> pa.Schema:
        """Arrow schema of the rows (see `cir_datasets.rows.records`)."""

    @abstractmethod
    def rows(self) -> Iterator[Row]:
        """Queries or sessions in the publisher's order.

        Raises:
            RecordError: a record breaks the format; the message names file and record.
        """

    def row_origin(self, number: int) -> str:
        """File and record that the row of a number (from 1) comes from, as messages print them."""
        names = self.spec.config.files
        return f"{self.files[names[0]] if names else self.spec.id}: record {number}"

    @abstractmethod
    def images(self) -> Iterator[Row] | None:
        """Rows of the gallery manifest in the publisher's order, or None where its list is not available."""
