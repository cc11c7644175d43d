"""Results that papers and lists print, as data: `published_results/*.yaml`, a file a source.

Each number stands as it is printed, with its source, table and row, and the protocol that the source claims.
None of it was computed here: it never shares a comparability key with a score of ours.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from importlib import resources
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, model_validator

from cir_datasets.common.paths import regular
from cir_datasets.common.yaml import read_model
from cir_datasets.errors import CardError
from cir_datasets.registry import base_spec, benchmark_ids
from cir_datasets.registry.schema import main_metric_terms
from cir_datasets.registry.suites import find_suite
from cir_metrics.errors import CallError

ABSENT = "-"
"""What a row has where the source prints no number."""
_NUMBER = re.compile(r"\d+(\.\d+)?")
_SHOWN = Decimal("0.001")
_MEAN_ERROR = Decimal("0.01")
"""How far a printed mean and the mean of printed numbers may be apart by rounding alone, in points."""


class _Published(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)


class PublishedRow(_Published):
    """One row of a published table."""

    method: str
    """As the source names it."""
    of: str = ""
    """The method that it is a version or another spelling of; brackets behind a name need none."""
    row: int | None = None
    """Its place in the source's table, from 1, where the source has a table with places."""
    year: int | None = None
    """That the source gives the method; of `Reported` else that of the source."""
    backbone: str = ""
    note: str = ""
    """What is odd about it, or where the source took it from."""
    printed: str = Field(alias="values")
    """The numbers as printed, in per cent (ranks: ranks), a blank apart; `-` where there is none."""


class PublishedTable(_Published):
    """One table of a source."""

    name: str = Field(alias="table")
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
        width = len(self.slots)
        for row in self.rows:
            values = row.printed.split()
            if len(values) != width:
                raise ValueError(f"{row.method}: {len(values)} numbers for {width} columns")
            wrong = [value for value in values if value != ABSENT and not _NUMBER.fullmatch(value)]
            if wrong:
                raise ValueError(f"{row.method}: {wrong[0]!r} is not a number")
        return self

    @property
    def slots(self) -> list[tuple[str, str]]:
        """Benchmark or suite, and metric, of each number in a row."""
        return [(benchmark, metric) for benchmark, metrics in self.columns.items() for metric in metrics]


class PublishedSource(_Published):
    """A paper or a list, with its tables."""

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
class Number:
    """A number of one published row.

    Args:
        value: in per cent, of ranks the rank.
        text: as it is printed; the mean of printed numbers as `mean_text` writes it.
        is_derived: whether it is the mean of numbers that the source prints, and is not printed itself.
    """

    value: Decimal
    text: str
    is_derived: bool

    @classmethod
    def mean_of(cls, numbers: Sequence[Decimal]) -> Number:
        """The mean of printed numbers, in per cent, where a source prints none."""
        value = sum(numbers, Decimal()) / len(numbers)
        return cls(value, mean_text(value), True)

    def may_be(self, other: Number) -> bool:
        """Whether two numbers may be one that was rounded: by half a unit of the last digit, or as a mean."""
        errors = (
            _MEAN_ERROR if one.is_derived else Decimal(1).scaleb(int(one.value.as_tuple().exponent)) / 2
            for one in (self, other)
        )
        return abs(self.value - other.value) <= max(errors)


class Reported(PublishedRow):
    """One method's row, with what prints it."""

    source: str
    """The source's file name without its ending, such as `cirr`."""
    paper: PublishedSource
    table: PublishedTable
    id: str
    """Names the row among all of them: source, place of the table and of the row in its file."""

    @property
    def names(self) -> tuple[str, ...]:
        """All that the method is found by: its name, the same without words in brackets, and `of`."""
        plain = self.method.partition(" (")[0]
        return tuple(dict.fromkeys(filter(None, (self.method, plain, self.of))))

    @functools.cached_property
    def values(self) -> dict[tuple[str, str], str]:
        """By benchmark or suite and metric the numbers as they are printed."""
        printed = zip(self.table.slots, self.printed.split(), strict=True)
        return {slot: text for slot, text in printed if text != ABSENT}

    @functools.cached_property
    def numbers(self) -> dict[tuple[str, str], Number]:
        """The printed numbers, and the main metrics that are a mean of them, where the source prints none.

        Example:
            >>> row = next(row for row in published() if row.method == "SPRC (retrained)")
            >>> row.numbers["fashioniq/val", "mean(recall@10, recall@50)"].text
            '62.135'
        """
        numbers = {slot: Number(Decimal(text), text, False) for slot, text in self.values.items()}
        for name in dict.fromkeys(name for name, _ in self.values):
            metric = _main_metric(name)
            terms = [self.values.get((name, term)) for term in main_metric_terms(metric)] if metric else []
            if len(terms) > 1 and all(terms) and (name, metric) not in numbers:
                numbers[name, metric] = Number.mean_of([Decimal(term) for term in terms if term])
        return numbers

    @property
    def label(self) -> str:
        """Its name in tables, with the backbone."""
        return f"{self.method} ({self.backbone})" if self.backbone else self.method

    @property
    def where(self) -> str:
        """Source, table and row, such as `Liu et al., ICCV 2021, Table 4, row 7`."""
        return f"{self.paper.cite}, {self.table.name}" + ("" if self.row is None else f", row {self.row}")

    @property
    def key(self) -> str:
        """Source and table in a few letters, such as `QuRe 2025, T2/3/5`."""
        return f"{self.paper.key or self.paper.cite}, {self.table.key or self.table.name}"


@functools.cache
def published() -> tuple[Reported, ...]:
    """Every row of every source, source by source.

    Example:
        >>> tirg = next(row for row in published() if row.method == "TIRG")
        >>> tirg.where, tirg.values["cirr/test1", "recall@1"]
        ('Liu et al., ICCV 2021, Table 3, row 8', '14.61')
    """
    folder = resources.files("cir_datasets") / "published_results"
    files = sorted((file.name, file) for file in folder.iterdir() if file.name.endswith(".yaml"))
    return tuple(
        row
        for name, file in files
        for row in _rows(name, f"published_results/{name}", file.read_text(encoding="utf-8"))
    )


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
    return tuple(_rows(path.name, str(path), text))


def _rows(file: str, where: str, text: str) -> Iterator[Reported]:
    source, paper = Path(file).stem, read_model(PublishedSource, text, where, CardError)
    for place, table in enumerate(paper.tables, 1):
        for line, row in enumerate(table.rows, 1):
            values = {**dict(row), "year": row.year or paper.year}
            id_ = f"{source}-{place}-{line}"
            yield Reported.model_construct(**values, source=source, paper=paper, table=table, id=id_)


@functools.cache
def _main_metric(name: str) -> str:
    """Of a benchmark or suite; empty of what is neither."""
    suite = find_suite(name)
    if suite is not None:
        return suite.main_metric
    return base_spec(name).main_metric if name in benchmark_ids() else ""


def mean_text(value: Decimal) -> str:
    """A mean that no source prints, in per cent, with three digits where two do not hold it.

    So the mean of two printed numbers is exact; a longer one is rounded, halves away from zero.

    Example:
        >>> [mean_text(Decimal(text)) for text in ("62.135", "59.66", "37.5325", "30")]
        ['62.135', '59.66', '37.533', '30.00']
    """
    return str(value.quantize(_SHOWN, ROUND_HALF_UP)).removesuffix("0")
