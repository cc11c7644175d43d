"""What a paper's table looks like: `layouts/*.yaml`, a file a kind of table."""

from __future__ import annotations

import functools
from importlib import resources

from pydantic import BaseModel, ConfigDict, model_validator

from cir_datasets.common.yaml import read_model
from cir_datasets.registry import members_of
from cir_datasets.registry.suites import find_suite
from cir_metrics.errors import UnknownNameError
from submissions.errors import LayoutError


class ColumnGroup(BaseModel):
    """Columns below one head."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    span: str = ""
    """The head above their heads; empty where there is none."""
    of: str = ""
    """The suite's member that the numbers are of, as `Suite.member` finds it; empty: benchmark or suite."""
    heads: dict[str, str] = {}
    """By metric, or with `by_aspect` by aspect, the head."""
    by_turn: str = ""
    """A metric such as hits@10, of which there is a column a turn."""
    head: str = ""
    """The word before the number of the turn."""
    by_aspect: str = ""
    """The metric that is taken over the queries of each aspect in `heads`."""
    only_with_published: bool = False
    """Whether the columns are left out of tables without published rows."""

    @property
    def by_metric(self) -> dict[str, str]:
        """The heads by metric, `<metric> of <aspect>` with `by_aspect`; those by turn are not known here."""
        if self.by_aspect:
            return {f"{self.by_aspect} of {aspect}": head for aspect, head in self.heads.items()}
        return dict(self.heads)

    @model_validator(mode="after")
    def _one_kind(self) -> ColumnGroup:
        if bool(self.by_turn) == bool(self.heads):
            raise ValueError("columns have either `heads` or `by_turn`")
        return self


class TableLayout(BaseModel):
    """One table."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str
    made_of: tuple[str, ...]
    """The benchmarks and suites that it is of."""
    each_member: bool = False
    """Whether a suite has such a table for each of its members."""
    columns: tuple[ColumnGroup, ...]

    @model_validator(mode="after")
    def _members_exist(self) -> TableLayout:
        for name in self.made_of:
            for group in self.columns:
                self.benchmark_of(name, group.of)
        return self

    @property
    def answers(self) -> tuple[str, ...]:
        """Benchmarks and suites that a file for such a table may answer."""
        members = (member for name in self.made_of if self.each_member for member in members_of(name))
        return tuple(dict.fromkeys([*self.made_of, *members]))

    def benchmark_of(self, name: str, member: str) -> str:
        """What a column of a table of `name` is of.

        Raises:
            ValueError: the suite has no such member.
        """
        suite = find_suite(name) if member else None
        found = name if not member else None if suite is None else suite.member(member)
        if found is None:
            raise ValueError(f"{name}: no member {member!r}")
        return found


class Layout(BaseModel):
    """The tables of one kind."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    """What `--for` calls it."""
    printed_in: str
    """Where the headings stand so."""
    tables: tuple[TableLayout, ...]

    @property
    def answers(self) -> tuple[str, ...]:
        """Benchmarks and suites that its tables are made of."""
        return tuple(dict.fromkeys(name for table in self.tables for name in table.answers))

    def takes(self, benchmark: str) -> bool:
        """Whether a file for this benchmark or suite belongs into such a table."""
        return any(benchmark == name or benchmark in members_of(name) for name in self.answers)

    @property
    def suites(self) -> tuple[str, ...]:
        """Those of them that are suites."""
        return tuple(name for name in self.answers if find_suite(name) is not None)


def layout_names() -> tuple[str, ...]:
    """What there are tables for.

    Example:
        >>> layout_names()
        ('circled', 'circo', 'cirr', 'fashioniq', 'fisd', 'shapes', 'zerosight')
    """
    return tuple(_layouts())


def layout(name: str) -> Layout:
    """The layout of that name.

    Raises:
        UnknownNameError: no table has that name; the message names the nearest.
    """
    if name not in _layouts():
        raise UnknownNameError.of("table for", name, layout_names())
    return _layouts()[name]


def layout_of(benchmark: str) -> str | None:
    """The layout that a benchmark's or suite's files belong into, or None."""
    return next((name for name, each in _layouts().items() if each.takes(benchmark)), None)


@functools.cache
def _layouts() -> dict[str, Layout]:
    found = {}
    folder = resources.files("submissions") / "papers" / "layouts"
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".yaml"):
            name = entry.name.removesuffix(".yaml")
            text = entry.read_text(encoding="utf-8")
            found[name] = read_model(Layout, text, f"layouts/{entry.name}", LayoutError, name=name)
    return found
