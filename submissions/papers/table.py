"""`paper_table`: methods side by side as a paper prints them, published rows below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cir_datasets.common.tables import Cell, Table, render_or_json
from cir_datasets.registry.published import Reported
from cir_datasets.registry.suites import suite
from cir_metrics.errors import CallError
from cir_metrics.resampling import ALPHA, DRAWS, SEED, check_alpha
from submissions.comparison.comparing import letter
from submissions.comparison.keys import shared_text
from submissions.formats.budget import MAX_BYTES
from submissions.formats.reader import parse_file
from submissions.papers.columns import PaperColumn, columns_of, value_of
from submissions.papers.layout import Layout, TableLayout, layout, layout_names, layout_of
from submissions.papers.marks import significantly_worse, standing_out
from submissions.papers.methods import scored_methods
from submissions.papers.published_rows import rows_below, slots_of, target_of
from submissions.rank_file.benchmarks import Benchmarks
from submissions.scoring.reference_use import block_notes, reference_blocks
from submissions.scoring.score_report import ScoreReport, shown_value

if TYPE_CHECKING:
    from submissions.rank_file.benchmarks import BenchmarkLike, FileLike

HERE = "computed here"
"""What the column `source` says of a number that was computed from a rank file."""


@dataclass(frozen=True)
class PaperTable:
    """A paper's table, or several of one kind.

    Args:
        layout: what kind.
        benchmark: id of the benchmark or suite that it is of.
        methods: the methods' scores, in the order of the files.
        reported: the published rows that were chosen.
        made: the tables.
        further: sentences on published rows of the same names that were not asked for.
    """

    layout: str
    benchmark: str
    methods: tuple[ScoreReport, ...]
    reported: tuple[Reported, ...]
    made: tuple[Table, ...]
    further: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """What it is of, in one line."""
        return (
            f"<PaperTable for {self.layout}, {self.benchmark}: {len(self.methods)} methods, "
            f"{len(self.reported)} published rows>"
        )

    def _repr_html_(self) -> str:
        """The tables, for a notebook."""
        from cir_datasets.pages import object_html

        return object_html(f"{self.benchmark}, as papers print it", [], self.made)

    def tables(self) -> tuple[Table, ...]:
        """The tables."""
        return self.made

    def to_dict(self) -> dict[str, Any]:
        """The tables as JSON values: numbers of a row by column, in fractions; published ones in per cent."""
        return {
            "for": self.layout,
            "benchmark": self.benchmark,
            "tables": [
                {
                    "title": table.title,
                    "columns": list(table.columns),
                    "rows": [
                        {
                            head: (cell.text if cell.value is None else cell.value)
                            for head, cell in zip(table.columns, row, strict=True)
                        }
                        for row in table.rows
                    ],
                    "notes": list(table.notes),
                }
                for table in self.made
            ],
            "reported": [
                {
                    "method": row.method,
                    "source": row.where,
                    "protocol": row.table.protocol,
                    "values": [
                        {"benchmark": name, "metric": metric, "printed": text}
                        for (name, metric), text in row.values.items()
                    ],
                }
                for row in self.reported
            ],
        }

    def text(self, format: str = "table") -> str:
        """The tables in one of the formats of `cir_datasets.common.tables`.

        Raises:
            UnknownNameError: there is no such format.
        """
        return render_or_json(format, self.tables, self.to_dict)


def paper_table(
    files: Sequence[FileLike | ScoreReport],
    kind: str | None = None,
    *,
    benchmark: BenchmarkLike = None,
    names: Mapping[str, str] | None = None,
    published: Sequence[str] = (),
    source: bool = True,
    significance: bool = False,
    draws: int = DRAWS,
    seed: int = SEED,
    alpha: float = ALPHA,
    max_bytes: int = MAX_BYTES,
) -> PaperTable:
    """The table that papers print for a benchmark: a row a method, in per cent.

    The best number of a column is bold, the second-best underlined; numbers printed alike share their mark.
    Published rows stand below a rule, as they are printed in their source, and never take part in the marks:
    nothing says that they answer the same question.

    Args:
        files: rank files or bundles, or reports of `submissions.score`. Files of a suite's members are joined
            by the method's name.
        kind: `fashioniq`, `cirr`, `circo`, `circled`, `fisd`, `zerosight` or `shapes`; None: what the
            first file answers.
        benchmark: what the files answer, as in `score`.
        names: by file the method's name that is printed.
        published: which published rows stand below: `all`, sources such as `cirr`, methods such as `TIRG`,
            a source's method such as `cirr:TIRG`, ids of rows, or YAML files of one's own in the form of
            `cir_datasets/published_results`. A method has one row a table; `further` names its other rows.
        source: whether published rows have a column that says where they stand; else the notes say it.
        significance: whether raised letters name the methods that are significantly worse.
        draws: of tests that are not exact.
        seed: 0 or more.
        alpha: level of significance, above 0 and below 1.
        max_bytes: bytes that are read of each file at most.

    Returns:
        The tables; `text("latex")` is what a paper takes.

    Raises:
        CallError: there is neither a file nor a published row; a method lacks a member of the suite, or two
            methods have one name; a file is of another benchmark.
        ComparisonError: files are of different protocols, or their comparability keys differ.
        UnknownNameError: no table or published row is called so.
        RefusedError: validation found errors in a file.
        WithheldError: the benchmark's ground truth is not public.
        MissingFileError: no file has that name.
        SettingError: alpha is out of range.

    Example:
        >>> from submissions import make_rank_file
        >>> made = [make_rank_file("shapes/val", name) for name in ("image_text_sum_pixels", "random")]
        >>> paper_table(made, "shapes")
        <PaperTable for shapes, shapes/val: 2 methods, 0 published rows>
    """
    found = layout(_kind_of(files, benchmark) if kind is None else kind)
    if isinstance(files, str | bytes | Path) or (not files and not published):
        raise CallError("a table needs a list of rank files, or published rows. Fix: name the files.")
    if isinstance(published, str):
        raise CallError(f"published={published!r} is one word. Fix: pass a list, [{published!r}].")
    check_alpha(alpha)
    if significance and len(files) < 2:
        raise CallError("significance needs two methods or more. Fix: name another file, or leave it out.")
    methods: list[ScoreReport] = []
    if files:
        methods = scored_methods(
            files, found, benchmark, names or {}, with_published=bool(published), max_bytes=max_bytes
        )
    rows, further = rows_below(found, published) if published else ([], [])
    target = methods[0].benchmark if methods else target_of(rows[0], found)
    if significance and len(methods) < 2:
        raise CallError("significance needs two methods or more. Fix: add one's files, or leave it out.")
    tests = _Tests(draws, seed, alpha) if significance else None
    made = []
    used: list[Reported] = []
    for table in found.tables:
        if target not in table.answers:
            continue
        members = suite(target).benchmarks if table.each_member and target in found.suites else ()
        if members:
            for place, member in enumerate(members):
                runs = [method.runs[place] for method in methods]
                made.append(_Making(found, table, member, runs, [], tests, source).table())
            continue
        making = _Making(found, table, target, methods, rows, tests, source)
        if methods or making.reported:
            made.append(making.table())
        used += [row for row in making.reported if row not in used]
    return PaperTable(found.name, target, tuple(methods), tuple(used), tuple(made), tuple(further))


@dataclass(frozen=True)
class _Tests:
    """How the tests behind raised letters are made."""

    draws: int
    seed: int
    alpha: float


def _kind_of(files: Sequence[FileLike | ScoreReport], benchmark: BenchmarkLike) -> str:
    """The layout of the benchmark that is named, or that the first file answers.

    Raises:
        CallError: there is none.
    """
    if isinstance(benchmark, str):
        answered: str | None = benchmark
    else:
        first = files[0] if files else None
        if first is None or isinstance(first, ScoreReport):
            answered = None if first is None else first.benchmark
        else:
            answered = parse_file(first, Benchmarks(None)).benchmark
    found = None if answered is None else layout_of(answered)
    if found is None:
        said = "no file says what the table is for"
        said = said if answered is None else f"papers print no table of {answered}"
        raise CallError(f"{said}. Fix: name it, --for {' or '.join(layout_names())}.")
    return found


class _Making:
    """One table on its way."""

    def __init__(
        self,
        found: Layout,
        layout: TableLayout,
        target: str,
        methods: Sequence[ScoreReport],
        rows: Sequence[Reported],
        tests: _Tests | None,
        source: bool,
    ) -> None:
        self.source = source
        self.found, self.layout, self.target, self.methods = found, layout, target, methods
        self.blocks = reference_blocks(methods)
        self.reported = [row for row in rows if slots_of(row, layout)]
        columns = columns_of(layout, methods, with_published=bool(rows))
        filled = {slot for row in self.reported for slot in self._values_of(row)}
        self.columns = [each for each in columns if methods or (each.of, each.metric) in filled]
        self.tests = tests
        self.worse: dict[tuple[str, str], dict[int, list[int]]] = {}
        self.count = 0

    def table(self) -> Table:
        """The table."""
        if self.tests is not None:
            self._test()
        heads = ["Method", *(column.name for column in self.columns)]
        spans = [("", 1)]
        for column in self.columns:
            if column.span and spans[-1][0] == column.span:
                spans[-1] = (column.span, spans[-1][1] + 1)
            else:
                spans.append((column.span, 1))
        rows = self._own_rows()
        ends = list(accumulate(map(len, self.blocks.values())))
        rules = tuple(ends if self.reported else ends[:-1])
        rows = [(*row, Cell(HERE)) for row in rows] + [self._reported_row(row) for row in self.reported]
        if self.reported and self.source:
            heads.append("Source")
            spans.append(("", 1))
        else:
            rows = [row[:-1] for row in rows]
        return Table(
            title=f"{self.layout.title} ({self._asked()})",
            columns=tuple(heads),
            rows=tuple(rows),
            notes=tuple(self._notes()),
            spans=tuple(spans) if any(span for span, _ in spans) else (),
            rules=rules,
            kept=self._kept(),
        )

    def _asked(self) -> str:
        if not self.methods:
            return f"{self.target}, as reported"
        return f"{self.methods[0].benchmark}#{self.methods[0].benchmark_version}"

    def _kept(self) -> tuple[int, ...]:
        """The name, and the columns of the whole where others are of its members; else the first."""
        whole = [place for place, column in enumerate(self.columns, start=1) if not column.of]
        return (0, *(whole if 0 < len(whole) < len(self.columns) else [1]))

    def _of(self, column: PaperColumn) -> str:
        return self.layout.answers.get(self.target, {}).get(column.of, self.target)

    def _scores_of(self, name: str) -> list[ScoreReport]:
        if name == self.target:
            return list(self.methods)
        return [next(run for run in method.runs if run.benchmark == name) for method in self.methods]

    def _test(self) -> None:
        places = [(self._of(column), column.metric) for column in self.columns]
        of = {name: self._scores_of(name) for name in dict.fromkeys(name for name, _ in places)}
        tests = self.tests or _Tests(DRAWS, SEED, ALPHA)
        self.worse, self.count = significantly_worse(
            of, places, self.blocks.values(), draws=tests.draws, seed=tests.seed, alpha=tests.alpha
        )

    def _own_rows(self) -> list[tuple[Cell, ...]]:
        tested = self.tests is not None
        rows: list[list[Cell]] = [
            [Cell(method.method, superscript=letter(place) if tested else "")]
            for place, method in enumerate(self.methods)
        ]
        for column in self.columns:
            name = self._of(column)
            values = [value_of(score, column) for score in self._scores_of(name)]
            texts = [None if value is None else shown_value(column.metric, value).strip() for value in values]
            marks = []
            for block in self.blocks.values():
                own = [text if place in block else None for place, text in enumerate(texts)]
                marks.append(standing_out(column.metric, own))
            best, second = (set().union(*(mark[number] for mark in marks)) for number in range(2))
            worse = self.worse.get((name, column.metric), {})
            for place, (value, text) in enumerate(zip(values, texts, strict=True)):
                letters = [letter(other) for other in worse.get(place, ())]
                joined = ("" if all(len(each) == 1 for each in letters) else ",").join(letters)
                rows[place].append(
                    Cell(
                        text or "-",
                        value,
                        superscript=joined,
                        bold=place in best,
                        underline=place in second,
                    )
                )
        return [tuple(rows[place]) for block in self.blocks.values() for place in block]

    def _reported_row(self, row: Reported) -> tuple[Cell, ...]:
        target, values = self._target_of(row), self._values_of(row)
        cells = []
        for column in self.columns:
            text = values.get((column.of, column.metric))
            cells.append(Cell("-") if text is None else Cell(text, float(Decimal(text) / 100)))
        where = "" if target == self.target else f" on {target}"
        return (Cell(row.label), *cells, Cell(f"as reported{where}: {row.where}"))

    def _values_of(self, row: Reported) -> dict[tuple[str, str], str]:
        return slots_of(row, self.layout)[self._target_of(row)]

    def _target_of(self, row: Reported) -> str:
        by_target = slots_of(row, self.layout)
        return max(by_target, key=lambda target: (target == self.target, len(by_target[target])))

    def _notes(self) -> list[str]:
        notes = []
        if len(self.methods) > 1:
            notes.append("The best number of a column is bold, the second-best is underlined.")
        absent = {
            method.method: ", ".join(method.missing_metrics)
            for method in self.methods
            if method.missing_metrics
        }
        notes += [f"{name}: its file holds no rankings for {metrics}." for name, metrics in absent.items()]
        notes += block_notes(self.methods, [each.method for each in self.methods], self.blocks)
        if self.tests is not None:
            untested = [
                column.name for column in self.columns if not self._is_tested(self._of(column), column.metric)
            ]
            notes.append(
                "A raised letter names a method that is significantly worse: two-sided paired randomisation "
                f"test, Holm's correction over {self.count:,} tests, alpha {self.tests.alpha:g}."
                + (f" Not tested: {', '.join(untested)}." if untested else "")
            )
        if self.reported:
            notes.append(
                "Rows as reported were not computed here and take no part in the marks: their protocol is "
                "what their source says."
            )
            notes += self._sources()
        signatures = [line for column in self.columns for line in self._signatures(column)]
        return [*notes, *dict.fromkeys(signatures)]

    def _is_tested(self, name: str, metric: str) -> bool:
        from submissions.scoring.samples import resampled_metrics

        return all(metric in resampled_metrics(report) for report in self._scores_of(name))

    def _signatures(self, column: PaperColumn) -> list[str]:
        """What the numbers of a column depend on, a line a block; the metric's own part is in its head."""
        scores = self._scores_of(self._of(column))
        lines = []
        for block in self.blocks.values():
            chosen = [scores[place] for place in block]
            printed = shared_text([score.signature_text(next(iter(score.signatures))) for score in chosen])
            parts = (part for part in printed.split(" | ") if not part.startswith("metric:"))
            lines.append(f"signature: {' | '.join(parts)}")
        return lines

    def _sources(self) -> list[str]:
        """The protocols that the sources claim, a line a table, and what is odd about a row."""
        lines = []
        for row in self.reported:
            methods = [] if self.source else [f"{row.label} as reported in"]
            lines.append(
                " ".join(
                    [
                        *methods,
                        f"{row.paper.cite}, {row.table.name} ({self._target_of(row)}): {row.table.protocol}",
                    ]
                )
            )
        odd = [f"{row.method} in {row.where}: {row.note}." for row in self.reported if row.note]
        return [*dict.fromkeys(lines), *odd]
