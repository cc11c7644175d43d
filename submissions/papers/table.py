"""`paper_table`: methods side by side as a paper prints them, published rows below."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cir_datasets.common.tables import render_or_json
from cir_datasets.common.terminal import Cell, Table
from cir_datasets.registry import members_of
from cir_datasets.registry.published import Reported
from cir_metrics.errors import CallError
from cir_metrics.resampling import ALPHA, DRAWS, SEED, check_share
from cir_metrics.significance import holm
from cir_metrics.sums import exact_mean
from submissions.comparison.comparing import letter, pair_tests
from submissions.comparison.keys import samples_in_order, shared_text
from submissions.comparison.result import raised
from submissions.formats import parse_file
from submissions.papers.layout import ColumnGroup, TableLayout, layout, layout_names, layout_of
from submissions.papers.methods import scored_methods
from submissions.papers.published_rows import rows_below, slots_of, target_of
from submissions.rank_file.benchmarks import Benchmarks
from submissions.rank_file.content import MAX_BYTES
from submissions.report import full_report
from submissions.scoring.reference_use import block_notes, reference_blocks
from submissions.scoring.samples import is_better, resampled_metrics
from submissions.scoring.score_report import ScoreReport, main_value, shown_value

if TYPE_CHECKING:
    from submissions.rank_file.benchmarks import BenchmarkLike, FileLike

HERE = "computed here"
"""What the column `source` says of a number that was computed from a rank file."""

Place = tuple[str, str]
"""Benchmark or suite, and metric."""


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
    check_share(alpha, "alpha", "a level of significance", ALPHA)
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
    tests = Tests(draws, seed, alpha) if significance else None
    made = []
    used: list[Reported] = []
    for table in found.tables:
        if target not in table.answers:
            continue
        if table.each_member and target in found.suites:
            for place, member in enumerate(members_of(target)):
                runs = [method.runs[place] for method in methods]
                made.append(_Making(table, member, runs, [], tests, source).table())
            continue
        making = _Making(table, target, methods, rows, tests, source)
        if methods or making.reported:
            made.append(making.table())
        used += [row for row in making.reported if row not in used]
    return PaperTable(found.name, target, tuple(methods), tuple(used), tuple(made), tuple(further))


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
        if answered is not None:
            raise CallError(
                f"papers print no table of {answered}. "
                "Fix: cir compare --format latex shows methods side by side, cir score one of them."
            )
        names = " or ".join(layout_names())
        raise CallError(f"no file says what the table is for. Fix: name it, --for {names}.")
    return found


class _Making:
    """One table on its way."""

    def __init__(
        self,
        layout: TableLayout,
        target: str,
        methods: Sequence[ScoreReport],
        rows: Sequence[Reported],
        tests: Tests | None,
        source: bool,
    ) -> None:
        self.layout, self.target, self.methods = layout, target, methods
        self.tests, self.source = tests, source
        self.blocks = reference_blocks(methods)
        self.reported = [row for row in rows if slots_of(row, layout)]
        columns = columns_of(layout, target, methods, with_published=bool(rows))
        filled = {slot for row in self.reported for slot in self._printed(row)[1]}
        self.columns = [column for column in columns if methods or (column.of, column.metric) in filled]
        self.worse, self.count = (
            ({}, 0) if tests is None else significantly_worse(self.columns, self.blocks.values(), tests)
        )

    def table(self) -> Table:
        """The table."""
        with_source = bool(self.reported) and self.source
        heads = ["Method", *(column.name for column in self.columns), *(["Source"] if with_source else [])]
        spans = [("", 1)]
        for column in [*(column.span for column in self.columns), *([""] if with_source else [])]:
            if column and spans[-1][0] == column:
                spans[-1] = (column, spans[-1][1] + 1)
            else:
                spans.append((column, 1))
        rows = [(*row, Cell(HERE)) for row in self._own_rows()]
        rows += [self._reported_row(row) for row in self.reported]
        ends = list(accumulate(map(len, self.blocks.values())))
        of = f"{self.target}, as reported"
        if self.methods:
            of = f"{self.methods[0].benchmark}#{self.methods[0].benchmark_version}"
        return Table(
            title=f"{self.layout.title} ({of})",
            columns=tuple(heads),
            rows=tuple(row[: len(heads)] for row in rows),
            notes=tuple(self._notes()),
            spans=tuple(spans) if any(span for span, _ in spans) else (),
            rules=tuple(ends if self.reported else ends[:-1]),
            kept=self._kept(),
        )

    def _kept(self) -> tuple[int, ...]:
        """The name, and the columns of the whole where others are of its members; else the first."""
        whole = [place for place, column in enumerate(self.columns, start=1) if not column.of]
        return (0, *(whole if 0 < len(whole) < len(self.columns) else [1]))

    def _own_rows(self) -> list[tuple[Cell, ...]]:
        names = [
            Cell(method.method, superscript="" if self.tests is None else letter(place))
            for place, method in enumerate(self.methods)
        ]
        rows = list(zip(names, *map(self._cells, self.columns), strict=True))
        return [rows[place] for block in self.blocks.values() for place in block]

    def _cells(self, column: PaperColumn) -> list[Cell]:
        """The methods' numbers in a column with their marks; each block has marks of its own."""
        values = column.values()
        texts = [None if value is None else shown_value(column.metric, value).strip() for value in values]
        best: set[int] = set()
        second: set[int] = set()
        for block in self.blocks.values():
            own = [text if place in block else None for place, text in enumerate(texts)]
            of_block = standing_out(column.metric, own)
            best, second = best | of_block[0], second | of_block[1]
        worse = self.worse.get((column.benchmark, column.metric), {})
        cells = []
        for place, (value, text) in enumerate(zip(values, texts, strict=True)):
            mark = raised([letter(other) for other in worse.get(place, ())])
            cells.append(
                Cell(text or "-", value, superscript=mark, bold=place in best, underline=place in second)
            )
        return cells

    def _reported_row(self, row: Reported) -> tuple[Cell, ...]:
        target, values = self._printed(row)
        texts = [values.get((column.of, column.metric)) for column in self.columns]
        cells = [Cell("-") if text is None else Cell(text, float(Decimal(text) / 100)) for text in texts]
        where = "" if target == self.target else f" on {target}"
        return (Cell(row.label), *cells, Cell(f"as reported{where}: {row.where}"))

    def _printed(self, row: Reported) -> tuple[str, dict[tuple[str, str], str]]:
        """What a row's numbers in this table are of, and these: of the table's own target, else the most."""
        by_target = slots_of(row, self.layout)
        target = max(by_target, key=lambda target: (target == self.target, len(by_target[target])))
        return target, by_target[target]

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
        notes += block_notes(self.methods, [method.method for method in self.methods], self.blocks)
        if self.tests is not None:
            untested = ", ".join(column.name for column in self.columns if not is_tested(column))
            notes.append(
                "A raised letter names a method that is significantly worse: two-sided paired randomisation "
                f"test, Holm's correction over {self.count:,} tests, alpha {self.tests.alpha:g}."
                + (f" Not tested: {untested}." if untested else "")
            )
        if self.reported:
            notes.append(
                "Rows as reported were not computed here and take no part in the marks: their protocol is "
                "what their source says."
            )
            notes += self._sources()
        signatures = [line for column in self.columns for line in self._signatures(column)]
        return [*notes, *dict.fromkeys(signatures)]

    def _signatures(self, column: PaperColumn) -> list[str]:
        """What the numbers of a column depend on, a line a block; the metric's own part is in its head."""
        lines = []
        for block in self.blocks.values():
            scores = [column.scores[place] for place in block]
            printed = shared_text([score.signature_text(next(iter(score.signatures))) for score in scores])
            parts = (part for part in printed.split(" | ") if not part.startswith("metric:"))
            lines.append(f"signature: {' | '.join(parts)}")
        return lines

    def _sources(self) -> list[str]:
        """The protocols that the sources claim, a line a table, and what is odd about a row."""
        lines = []
        for row in self.reported:
            whose = "" if self.source else f"{row.label} as reported in "
            target, _ = self._printed(row)
            lines.append(f"{whose}{row.paper.cite}, {row.table.name} ({target}): {row.table.protocol}")
        odd = [f"{row.method} in {row.where}: {row.note}." for row in self.reported if row.note]
        return [*dict.fromkeys(lines), *odd]


@dataclass(frozen=True)
class PaperColumn:
    """One column.

    Args:
        span: the head above its head, or empty.
        head: its own head.
        of: name of the suite's member that it is of, or empty.
        metric: a metric, a mean of several, or `<metric> of <aspect>`.
        benchmark: id of what it is of.
        scores: the methods' scores on that.
    """

    span: str
    head: str
    of: str
    metric: str
    benchmark: str
    scores: tuple[ScoreReport, ...]

    @property
    def name(self) -> str:
        """Both heads."""
        return f"{self.span} {self.head}".strip()

    def values(self) -> list[float | None]:
        """The methods' numbers, fractions; None where a file holds no rankings for it."""
        metric, _, aspect = self.metric.partition(" of ")
        if aspect:
            return [_of_aspect(score, metric, aspect) for score in self.scores]
        return [main_value(metric, {**score.metrics, **score.extra}) for score in self.scores]


def columns_of(
    table: TableLayout, target: str, methods: Sequence[ScoreReport], *, with_published: bool
) -> list[PaperColumn]:
    """A table's columns.

    Args:
        table: its layout.
        target: the benchmark or suite that it is of.
        methods: scores on that; they say how many turns there are.
        with_published: whether the columns that go with published rows are wanted.
    """
    columns = []
    for group in table.columns:
        benchmark = table.benchmark_of(target, group.of)
        scores = tuple(
            next(score for score in (method, *method.runs) if score.benchmark == benchmark)
            for method in methods
        )
        if with_published or not group.only_with_published:
            heads = _turns(group, methods) if group.by_turn else group.by_metric
            columns += [
                PaperColumn(group.span, head, group.of, metric, benchmark, scores)
                for metric, head in heads.items()
            ]
    return columns


def _turns(group: ColumnGroup, methods: Sequence[ScoreReport]) -> dict[str, str]:
    prefix = f"{group.by_turn}@turn"
    turns = [name for name in (methods[0].metrics if methods else ()) if name.startswith(prefix)]
    return {name: f"{group.head} {name.removeprefix(prefix)}".strip() for name in turns}


def _of_aspect(score: ScoreReport, metric: str, aspect: str) -> float | None:
    grouping = full_report(score).groupings.get("by_aspect")
    groups = () if grouping is None else grouping.groups
    return next((group.values.get(metric) for group in groups if group.key == aspect), None)


@dataclass(frozen=True)
class Tests:
    """How the tests behind raised letters are made.

    Args:
        draws: as in `compare`, like the following.
        seed: of the draws.
        alpha: level of significance.
    """

    draws: int
    seed: int
    alpha: float


def standing_out(metric: str, texts: Sequence[str | None]) -> tuple[set[int], set[int]]:
    """Places of the best and of the second-best numbers of a column.

    Numbers that are printed alike are equal, and share their mark; the second-best are those of the next
    printed number. Where all are equal none stands out.

    Args:
        metric: which numbers are better.
        texts: numbers as printed, None where there is none.

    Example:
        >>> standing_out("recall@1", ["48.33", "50.10", "48.33", None])
        ({1}, {0, 2})
        >>> standing_out("median_rank", ["4.00", "2.00"])
        ({1}, {0})
    """
    known = {place: float(text) for place, text in enumerate(texts) if text is not None}
    order = sorted(set(known.values()), reverse=is_better(metric, 1, 0))
    if len(order) < 2:
        return set(), set()
    best, second = order[:2]
    return (
        {place for place, value in known.items() if value == best},
        {place for place, value in known.items() if value == second},
    )


def is_tested(column: PaperColumn) -> bool:
    """Whether a column's numbers are means over queries, which a test is of."""
    return all(column.metric in resampled_metrics(score) for score in column.scores)


def significantly_worse(
    columns: Sequence[PaperColumn], blocks: Collection[Sequence[int]], tests: Tests
) -> tuple[dict[Place, dict[int, list[int]]], int]:
    """By column and method the methods that are significantly worse, and the number of tests.

    The tests are those of `submissions.compare`, two-sided paired randomisation tests; Holm's correction
    covers all columns and pairs of the table as one family.

    Args:
        columns: what is tested; those that are not means over queries are left out.
        blocks: places of the methods that may be tested against each other.
        tests: how they are made.
    """
    found: list[tuple[Place, int, int, float]] = []
    tested: dict[str, list[PaperColumn]] = {}
    for column in columns:
        if is_tested(column):
            tested.setdefault(column.benchmark, []).append(column)
    samples = {name: samples_in_order(own[0].scores) for name, own in tested.items()}
    for name, own in tested.items():
        metrics = list(dict.fromkeys(column.metric for column in own))
        for block in (block for block in blocks if len(block) > 1):
            beside = [samples[name][place] for place in block]
            tested_pairs = pair_tests(beside, metrics, draws=tests.draws, seed=tests.seed)
            found += [
                ((name, metric), block[one], block[other], test.p)
                for ((one, other), metric), test in tested_pairs.items()
            ]
    worse: dict[Place, dict[int, list[int]]] = {}
    adjusted = holm([p for *_, p in found]).tolist() if found else []
    for (key, one, other, _), p in zip(found, adjusted, strict=True):
        if p <= tests.alpha:
            means = [exact_mean(samples[key[0]][place].joined(key[1])) for place in (one, other)]
            winner, loser = (one, other) if is_better(key[1], *means) else (other, one)
            worse.setdefault(key, {}).setdefault(winner, []).append(loser)
    return worse, len(found)
