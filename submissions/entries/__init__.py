"""Entries: rank files on the embedded benchmark, of all baselines and more, with the commands that made them.

They lie here so that boards show them where no torch is installed. `entries.yaml` is written with them by
`python -m submissions.entries.make`.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from pathlib import Path

BENCHMARKS = ("shapes/val", "shapes/multiturn_val")
"""What the entries answer."""

LIST = "entries.yaml"


@dataclass(frozen=True)
class BaselineEntry:
    """A rank file of this package.

    Args:
        file: its name, in .json.gz.
        benchmark: what it answers.
        method: the method's name in it.
        command: what makes it.
        sha256: hex, of the JSON inside: what gzip makes of it differs between builds of zlib.
    """

    file: str
    benchmark: str
    method: str
    command: str
    sha256: str

    @property
    def path(self) -> Path:
        """Where it lies."""
        return folder() / self.file


def entries(benchmark: str | None = None) -> list[BaselineEntry]:
    """The entries, in the order of tables.

    Args:
        benchmark: those that answer this benchmark; None is all.

    Example:
        >>> entries("shapes/val")[0].method
        'Random'
    """
    from cir_datasets.common.yaml import package_yaml

    listed = package_yaml("submissions", f"entries/{LIST}")
    return [BaselineEntry(**each) for each in listed if benchmark in (None, each["benchmark"])]


def folder() -> Path:
    """The folder that holds them."""
    return Path(str(resources.files("submissions") / "entries"))
