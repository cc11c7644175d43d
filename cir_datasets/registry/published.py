"""Results that papers and lists print, as data: `published_results/*.yaml`, a file a source.

Each number stands as it is printed, with its source, table and row, and the protocol that the source claims.
None of it was computed here: it never shares a comparability key with a score of ours.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from importlib import resources
from pathlib import Path

from pydantic import BaseModel, ConfigDict, model_validator

from cir_datasets.common.paths import regular
from cir_datasets.common.yaml import read_model
from cir_datasets.errors import CardError
from cir_datasets.registry.cards import benchmark_ids
from cir_datasets.registry.ids import base_spec
from cir_datasets.registry.schema import main_metric_terms
from cir_datasets.registry.suites import suite, suite_ids
from cir_metrics.errors import CallError, UnknownNameError, did_you_mean

ABSENT = "-"
"""What a row has where the source prints no number."""
_LISTED = 12
"""How many names a message lists."""
_NUMBER = re.compile(r"\d+(\.\d+)?")


class PublishedRow(BaseModel):
    """One row of a published table."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    method: str
    """As the source names it."""
    of: str = ""
    """The method that it is a version or another spelling of; brackets behind a name need none."""
    row: int | None = None
    """Its place in the source's table, from 1, where the source has a table with places."""
    year: int | None = None
    backbone: str = ""
    note: str = ""
    """What is odd about it, or where the source took it from."""
    values: str
    """The numbers as printed, in per cent (ranks: ranks), a blank apart; `-` where there is none."""


class PublishedTable(BaseModel):
    """One table of a source."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    table: str
    key: str = ""
    """The table in short, behind the source's key, such as `T3`; the whole name where it is left out."""
    protocol: str
    """What the source says, or leaves open, about split and gallery."""
    note: str = ""
    columns: dict[str, tuple[str, ...]]
    """By benchmark or suite the metrics, in the order of the numbers in a row."""
    rows: tuple[PublishedRow, ...]

    @model_validator(mode="after")
    def _rows_fit(self) -> PublishedTable:
        width = sum(map(len, self.columns.values()))
        for row in self.rows:
            values = row.values.split()
            if len(values) != width:
                raise ValueError(f"{row.method}: {len(values)} numbers for {width} columns")
            wrong = [each for each in values if each != ABSENT and not _NUMBER.fullmatch(each)]
            if wrong:
                raise ValueError(f"{row.method}: {wrong[0]!r} is not a number")
        return self


class PublishedSource(BaseModel):
    """A paper or a list, with its tables."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    cite: str
    """How tables name it in short."""
    key: str = ""
    """Shorter still, where room is scarce, such as `QuRe 2025`; the words of `cite` where it is left out."""
    title: str
    url: str | None
    revision: str = ""
    year: int | None = None
    """When it appeared; None of a list that goes on."""
    tables: tuple[PublishedTable, ...]


@dataclass(frozen=True)
class Reported:
    """One method's row in one published table.

    Args:
        method: as the source names it.
        names: all that it is found by: that name, the same without words in brackets, and the row's `of`.
        backbone: as the source names it, or empty.
        source: the source's file name without its ending, such as `cirr`.
        cite: the source in short.
        table: its table.
        row: the place in that table, or None.
        protocol: what the source claims.
        note: what is odd about the row.
        values: by benchmark or suite and metric the number as printed.
        year: that the source gives the method, or when the source appeared, or None.
        title: of the source.
        url: where the source lies, or None.
        revision: of the source, where it changes.
        table_note: what is odd about the table.
        key: source and table in a few letters, such as `QuRe 2025, T2/3/5`.
        id: names the row among all of them: source, place of the table and of the row in its file.
    """

    method: str
    names: tuple[str, ...]
    backbone: str
    source: str
    cite: str
    table: str
    row: int | None
    protocol: str
    note: str
    values: Mapping[tuple[str, str], str]
    year: int | None = None
    title: str = ""
    url: str | None = None
    revision: str = ""
    table_note: str = ""
    key: str = ""
    id: str = ""

    @property
    def means(self) -> dict[tuple[str, str], Decimal]:
        """In per cent the main metrics that are a mean of the row's numbers, where its source prints none.

        Example:
            >>> row = next(row for row in published() if row.method == "SPRC (retrained)")
            >>> row.means["fashioniq/val", "mean(recall@10, recall@50)"]
            Decimal('62.135')
        """
        found = {}
        for name in dict.fromkeys(name for name, _ in self.values):
            metric = _main_metric(name)
            terms = [(name, term) for term in main_metric_terms(metric)] if metric else []
            if len(terms) > 1 and (name, metric) not in self.values and all(map(self.values.get, terms)):
                total = sum((Decimal(self.values[term]) for term in terms), Decimal())
                found[name, metric] = total / len(terms)
        return found

    @property
    def label(self) -> str:
        """Its name in tables, with the backbone."""
        return f"{self.method} ({self.backbone})" if self.backbone else self.method

    @property
    def where(self) -> str:
        """Source, table and row, such as `Liu et al., ICCV 2021, Table 4, row 7`."""
        return f"{self.cite}, {self.table}" + ("" if self.row is None else f", row {self.row}")


@functools.cache
def published() -> tuple[Reported, ...]:
    """Every row of every source, source by source.

    Example:
        >>> tirg = next(row for row in published() if row.method == "TIRG")
        >>> tirg.where, tirg.values["cirr/test1", "recall@1"]
        ('Liu et al., ICCV 2021, Table 3, row 8', '14.61')
    """
    return tuple(row for name, source in _packaged().items() for row in _rows(name, source))


def published_file(path: str | Path) -> tuple[Reported, ...]:
    """The rows of a file of one's own, in the form of `published_results/*.yaml`.

    Raises:
        CallError: there is no such file, or it cannot be read.
        CardError: it is not of that form; the message names the line or the field.
    """
    path = Path(path)
    try:
        text = regular(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise CallError(f"{path}: {reason}. Fix: name a YAML file of published rows.") from error
    return tuple(_rows(path.stem, read_model(PublishedSource, text, str(path), CardError)))


def chosen(wanted: Sequence[str], among: Sequence[Reported], see_all: str = "") -> list[Reported]:
    """The rows that words choose: `all`, a source such as `cirr`, a method such as `TIRG`, `cirr:TIRG`; ids.

    A method is found in every spelling: `SPRC` chooses `SPRC (retrained)` too, and that alone chooses itself.

    Args:
        wanted: words; letters are taken without case.
        among: rows to choose from.
        see_all: the command that shows them all; an error's long list ends with it.

    Returns:
        The rows in the order of `among`, each once.

    Raises:
        UnknownNameError: a word chooses nothing; the message names the nearest.
    """
    picked: set[int] = set()
    for word in wanted:
        same = {place for place, row in enumerate(among) if _is_chosen(row, word)}
        if not same:
            raise UnknownNameError(_nothing(word, among, see_all))
        picked |= same
    return [among[place] for place in sorted(picked)]


def _is_chosen(row: Reported, word: str) -> bool:
    if word.casefold() in ("all", row.source.casefold(), row.id.casefold()):
        return True
    source, _, method = word.partition(":")
    return _is_named(row, word) or (source.casefold() == row.source.casefold() and _is_named(row, method))


def _is_named(row: Reported, method: str) -> bool:
    return method.casefold() in map(str.casefold, (*row.names, row.label))


def _nothing(word: str, among: Sequence[Reported], see_all: str) -> str:
    elsewhere = [row for row in published() if _is_chosen(row, word)]
    if elsewhere:
        there = ", ".join(dict.fromkeys(name for row in elsewhere for name, _ in row.values))
        return (
            f"the published numbers of {word!r} are of {there}, not of this table's benchmarks and metrics. "
            "Fix: leave it out, or name another row."
        )
    source, _, method = word.partition(":")
    others = dict.fromkeys(row.source for row in among if _is_named(row, method))
    if others:
        there = ", ".join(f"{each}:{method}" for each in others)
        return f"no published row {word!r}: {source!r} has none of that method. Fix: write {there}."
    of_source = [row for row in among if method and row.source.casefold() == source.casefold()]
    if of_source:
        names = list(dict.fromkeys(f"{row.source}:{name}" for row in of_source for name in row.names))
    else:
        known = (name for row in among for name in row.names)
        names = list(dict.fromkeys([*(row.source for row in among), *known]))
    listed = ", ".join(names[:_LISTED]) or "none for this table"
    if len(names) > _LISTED:
        listed += f" and {len(names) - _LISTED} more" + (f"; {see_all} shows all" if see_all else "")
    return f"no published row {word!r}.{did_you_mean(word, names)} There are: {listed}."


def _rows(name: str, source: PublishedSource) -> Iterator[Reported]:
    for place, table in enumerate(source.tables, 1):
        keys = [(benchmark, metric) for benchmark, metrics in table.columns.items() for metric in metrics]
        for line, row in enumerate(table.rows, 1):
            pairs: Iterable[tuple[tuple[str, str], str]] = zip(keys, row.values.split(), strict=True)
            yield Reported(
                method=row.method,
                names=_names(row),
                backbone=row.backbone,
                source=name,
                cite=source.cite,
                table=table.table,
                row=row.row,
                protocol=table.protocol.strip(),
                note=row.note,
                values={key: value for key, value in pairs if value != ABSENT},
                year=row.year or source.year,
                title=source.title,
                url=source.url,
                revision=source.revision,
                table_note=table.note.strip(),
                key=f"{source.key or source.cite}, {table.key or table.table}",
                id=f"{name}-{place}-{line}",
            )


def _names(row: PublishedRow) -> tuple[str, ...]:
    plain = row.method.partition(" (")[0]
    return tuple(dict.fromkeys(filter(None, (row.method, plain, row.of))))


@functools.cache
def _main_metric(name: str) -> str:
    """Of a benchmark or suite; empty of what is neither."""
    if name in suite_ids():
        return suite(name).main_metric
    return base_spec(name).main_metric if name in benchmark_ids() else ""


@functools.cache
def _packaged() -> dict[str, PublishedSource]:
    folder = resources.files("cir_datasets") / "published_results"
    return {
        entry.name.removesuffix(".yaml"): read_model(
            PublishedSource, entry.read_text(encoding="utf-8"), f"published_results/{entry.name}", CardError
        )
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(".yaml")
    }
