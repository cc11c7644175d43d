"""What an overlay is: a filter list over one benchmark; `overlay_files` reads its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

LABEL_FIELD = "overlay_label"
"""The column that an overlay adds to the rows; null where a query has no label."""


@dataclass(frozen=True)
class Overlay:
    """A filter list over one benchmark.

    Args:
        name: its name, small letters, digits and `_`.
        benchmark: id of the benchmark that it is laid over.
        benchmark_version: version of that benchmark's card that it was made for.
        source: where the list comes from (a paper, an address), or "".
        labels: by query id the label, or None where the list gives none; in the list's order.
    """

    name: str
    benchmark: str
    benchmark_version: int
    source: str
    labels: Mapping[str, str | None] = field(hash=False)

    @property
    def id(self) -> str:
        """Id of the benchmark that it makes, `cirr/val+shortcut_free`."""
        return f"{self.benchmark}+{self.name}"

    def to_dict(self) -> dict[str, Any]:
        """The overlay as its JSON file holds it."""
        labelled = any(label is not None for label in self.labels.values())
        return {
            "overlay": self.name,
            "benchmark": self.benchmark,
            "benchmark_version": self.benchmark_version,
            "source": self.source,
            "queries": dict(self.labels) if labelled else list(self.labels),
        }
