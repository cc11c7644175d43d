"""What `score` returns: the board's numbers with their signatures, and the values per query behind them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from cir_datasets.registry.schema import is_micro, main_metric_terms
from cir_metrics.catalogue import INCOMPLETE, NO_MEANS, SKIPPED_IMAGES, Signature
from cir_metrics.errors import CallError, did_you_mean
from cir_metrics.sums import exact_mean
from submissions.rank_file.findings import Finding

if TYPE_CHECKING:
    import pandas as pd

    from cir_datasets.common.terminal import Cell, Table
    from cir_datasets.registry.suites import SuiteSignature
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.rank_file.model import Method
    from submissions.scoring.evidence import Evidence, Rounds


@dataclass(frozen=True)
class ScoreReport:
    """Scores of one rank file, or of a bundle over its suite; a notebook shows them as a table.

    Args:
        file: the file's name.
        method: the method's name.
        benchmark: id of the benchmark or suite.
        benchmark_version: version of its card.
        main_metric: the metric that ranks, or `mean(a, b)`.
        main: its value, a fraction; None where a part of it could not be computed.
        metrics: by printed name the values: fractions (`mean_rank`, `median_rank`: ranks; `censored`: count).
        signatures: by printed name; a suite's name the signatures of their members.
        n: number of queries or sessions.
        answered: how many of them have all their rankings in the file.
        missing: how many rankings were not in the file and were counted as misses.
        missing_metrics: the board's metrics that the file holds no rankings for.
        warnings: findings that do not refuse the file.
        per_query: one row a query, `query_id` and its values, where that was asked for.
        runs: a suite's members.
        extra: by name the values of the further metrics that were asked for, such as
            `pnr_map@10:released_code`; their signatures are among `signatures`.
        oracle: whether the method says that it knows what no user's query holds.
        aggregation: what the file says of it: how a session's turns became one query.
        evidence: the values per query behind the numbers; None for a suite, whose members have theirs.

    Example:
        >>> from importlib import resources
        >>> import submissions
        >>> submissions.score(resources.files("submissions.entries") / "image_only-shapes.shapes-val.json.gz")
        <ScoreReport shapes/val#2: Image only (shapes encoder), recall@10 = 31.33, 300 answered>
    """

    file: str
    method: str
    benchmark: str
    benchmark_version: int
    main_metric: str
    main: float | None
    metrics: dict[str, float]
    signatures: Mapping[str, Signature | SuiteSignature]
    n: int
    answered: int
    missing: int = 0
    missing_metrics: tuple[str, ...] = ()
    warnings: tuple[Finding, ...] = ()
    per_query: list[dict[str, Any]] | None = None
    runs: tuple[ScoreReport, ...] = ()
    extra: Mapping[str, float] = field(default_factory=dict)
    oracle: bool = False
    aggregation: str = ""
    evidence: Evidence | None = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        """Method, benchmark and the number that ranks, in one line."""
        return f"<ScoreReport {self._title()}, {self._main()}, {self._answered()}>"

    def _repr_html_(self) -> str:
        """The numbers as a table, in per cent, with their signatures, for a notebook."""
        from cir_datasets.pages import object_html

        return object_html(self._title(), [f"main: {self._main()}", self._answered()], self._tables())

    def text(self) -> str:
        """What a notebook shows, as a terminal does; `full_report` says more."""
        from cir_datasets.common.terminal import tables_text

        head = f"{self.method} on {self.benchmark}#{self.benchmark_version}, {self._answered()}"
        lines = [head, tables_text(self._tables())]
        if any(map(is_micro, self.metrics)):
            lines.append("@micro: every query weighs the same, else every benchmark does")
        return "\n".join([*lines, f"main: {self._main()}"])

    def _tables(self) -> list[Table]:
        """The numbers of a suite's members, and its own; the main metric's stand out."""
        from cir_datasets.common.terminal import Cell, Table

        tables = []
        for each in (*self.runs, self):
            values = {**each.metrics, **each.extra}
            signatures = {name: each.signature_text(name) for name in values}
            shared = set(signatures.values()) if len(set(signatures.values())) == 1 else set()
            rows = []
            for name, value in values.items():
                is_main = name == each.main_metric
                shown = shown_value(name, value).strip()
                cells = [Cell(name, bold=is_main), Cell(shown, value, bold=is_main)]
                rows.append((*cells, *(() if shared else (Cell(signatures[name]),))))
            tables.append(
                Table(
                    (f"{each.benchmark}#{each.benchmark_version}" if self.runs else "")
                    + (f": mean of {len(each.runs)} benchmarks" if each.runs else ""),
                    ("metric", "value", *(() if shared else ("signature",))),
                    tuple(rows),
                    (*each.notes(), *(f"signature: {one}" for one in shared)),
                )
            )
        return tables

    def _main(self) -> str:
        return f"{self.main_metric} = {shown_value(self.main_metric, self.main).strip()}"

    def _title(self) -> str:
        return f"{self.benchmark}#{self.benchmark_version}: {self.method}"

    def _answered(self) -> str:
        answered = f"{self.n:,}" if self.answered == self.n else f"{self.answered:,} of {self.n:,}"
        return f"{answered} answered"

    def to_pandas(self, *, per_query: bool = False) -> pd.DataFrame:
        """The numbers as a data frame: a row a metric, of a suite's members first.

        Args:
            per_query: instead a row a query or session, with its values, as `per_query=True` of `score`
                keeps them; of a suite with the column `benchmark`.

        Returns:
            Columns benchmark, method, metric, value (a fraction; ranks and counts as they are), main
            (whether it ranks), n, answered, signature.

        Raises:
            CallError: the values per query are asked for, and `score` did not keep them.

        Example:
            >>> from importlib import resources
            >>> import submissions
            >>> file = resources.files("submissions.entries") / "random.shapes-val.json.gz"
            >>> frame = submissions.score(file).to_pandas()
            >>> frame.loc[frame.main, ["metric", "n"]].values.tolist()
            [['recall@10', 300]]
        """
        import pandas as pd

        if per_query:
            rows = []
            for each in self.parts:
                if each.per_query is None:
                    raise CallError(
                        f"{self.file}: the values per query were not kept. "
                        "Fix: call score(..., per_query=True)."
                    )
                rows += [{"benchmark": each.benchmark, **row} if self.runs else row for row in each.per_query]
            return pd.DataFrame(rows)
        return pd.DataFrame(
            [
                {
                    "benchmark": each.benchmark,
                    "method": each.method,
                    "metric": name,
                    "value": value,
                    "main": name in main_metric_terms(each.main_metric),
                    "n": each.n,
                    "answered": each.answered,
                    "signature": each.signature_text(name),
                }
                for each in (*self.runs, self)
                for name, value in {**each.metrics, **each.extra}.items()
            ]
        )

    @property
    def parts(self) -> tuple[ScoreReport, ...]:
        """The scores on one benchmark each that it is made of: those of a suite's members, else itself."""
        return self.runs or (self,)

    @property
    def report(self) -> ScoreReport:
        """The score itself, under the name that a transcript's score had."""
        warnings.warn(
            "a transcript's score is its report. Fix: leave .report out.", DeprecationWarning, stacklevel=2
        )
        return self

    @property
    def signature(self) -> Signature:
        """That of any number on one benchmark: all say the same of data, protocol and reference."""
        return cast("Signature", next(iter(self.signatures.values())))

    @property
    def reference_held(self) -> tuple[int, int] | None:
        """How many lists hold their reference, of how many; None of a suite, whose members have theirs."""
        return None if self.runs else self.signature.reference_held

    @property
    def complete(self) -> bool:
        """Whether every metric of the board was computed."""
        return not self.missing_metrics

    @property
    def submittable(self) -> bool:
        """Whether a board takes this score: nothing was left out, and nothing repaired."""
        return self.complete and self.missing == 0 and not self.repaired

    @property
    def repaired(self) -> tuple[str, ...]:
        """What `repair` took out of the lists that were scored; of a suite's members in their order."""
        return tuple(name for each in self.parts for name in each.signature.repaired)

    def signature_key(self, metric: str) -> str:
        """The comparability key of a metric; for a suite with the members' keys, joined."""
        return self.signatures[metric].key

    def signature_text(self, metric: str) -> str:
        """The signature as it is printed beside a number."""
        return str(self.signatures[metric])

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values; the rows of `per_query` are left out."""
        document: dict[str, Any] = {
            "file": self.file,
            "method": self.method,
            "benchmark": self.benchmark,
            "benchmark_version": self.benchmark_version,
            "main_metric": self.main_metric,
            "main": self.main,
            "metrics": dict(self.metrics),
            "extra": dict(self.extra),
            "n": self.n,
            "answered": self.answered,
            "missing": self.missing,
            "missing_metrics": list(self.missing_metrics),
            "complete": self.complete,
            "submittable": self.submittable,
            "warnings": [finding.to_dict() for finding in self.warnings],
            "signatures": {
                metric: {**signature.to_dict(), "text": str(signature)}
                for metric, signature in self.signatures.items()
            },
        }
        if self.runs:
            document["runs"] = [run.to_dict() for run in self.runs]
        return document

    def notes(self) -> list[str]:
        """What a reader of the numbers must know, a sentence each."""
        notes = [finding.text(self.file) for finding in self.warnings]
        if self.missing and self.evidence is not None and self.evidence.sessions is not None:
            notes.append(
                f"missing sessions, which are left out: {self.missing:,}; this score cannot be submitted."
            )
        elif self.missing:
            notes.append(
                f"missing rankings, which count as misses: {self.missing:,}; this score cannot be submitted."
            )
        if self.repaired:
            lost = ", ".join(self.missing_metrics)
            cut = f"; beyond its lists, so not scored: {lost}" if lost else ""
            notes.append(
                f"repaired, {', '.join(dict.fromkeys(self.repaired))} taken out{cut}; this score cannot be "
                "submitted. Fix: rank again without them, as deep as the board asks."
            )
        elif self.missing_metrics:
            names = ", ".join(self.missing_metrics)
            notes.append(
                f"not in the file, so not scored: {names}; this score cannot be submitted. "
                "Fix: join the CIRR server's two files with \"cir convert RECALL SUBSET --benchmark "
                f'{self.benchmark} --to native", plain lists with "cir rank --lists --subset-lists".'
            )
        return notes


def renamed(reports: Sequence[ScoreReport], names: Mapping[str, str]) -> list[ScoreReport]:
    """The reports under the methods' names that a caller has given.

    Args:
        reports: scores.
        names: by file the method's name.

    Raises:
        CallError: a file is not among them, or a name is empty.
    """
    by_file = {os.fspath(file): name for file, name in names.items()}
    files = [report.file for report in reports]
    for file, name in by_file.items():
        if file not in files:
            raise CallError(
                f"a name is given for {file}, which is not among the files.{did_you_mean(file, files)} "
                "Fix: write the file as it stands in the call."
            )
        if not name.strip():
            raise CallError(f"the name given for {file} is empty. Fix: write a name.")
    return [replace(report, method=by_file.get(report.file, report.method).strip()) for report in reports]


def rounds_of(score: ScoreReport) -> Rounds:
    """What stands beside the ranks of a dialogue.

    Raises:
        CallError: the score is of rankings.
    """
    if score.evidence is None or score.evidence.rounds is None:
        raise CallError(f"{score.file}: rankings have no rounds. Fix: hand in the score of a transcript.")
    return score.evidence.rounds


def shown_value(metric: str, value: float | None) -> str:
    """A value as tables show it: per cent with two decimals, ranks with two, counts whole if they are.

    Example:
        >>> shown_value("recall@5", 0.4983), shown_value("censored", 12.0), shown_value("recall@5", None)
        (' 49.83', '    12', '     -')
        >>> shown_value("censored", 12.75)
        ' 12.75'
    """
    if value is None:
        return f"{'-':>6}"
    if metric == "censored" and value == int(value):
        return f"{int(value):>6}"
    return f"{value if is_rank(metric) else 100 * value:>6.2f}"


def value_cells(metric: str, values: Iterable[float | None]) -> list[Cell]:
    """Values of a metric as cells of a table, which keep them in full precision."""
    from cir_datasets.common.terminal import Cell

    return [Cell(shown_value(metric, value).strip(), value) for value in values]


def signature_notes(signatures: Mapping[str, object]) -> list[str]:
    """Signatures by metric, as they are printed, as notes of a table; metrics with the same one share a note.

    Example:
        >>> signature_notes({"recall@1": "a", "recall@5": "a", "map@5": "b"})
        ['signature of recall@1, recall@5: a', 'signature of map@5: b']
    """
    together: dict[str, list[str]] = {}
    for metric, signature in signatures.items():
        together.setdefault(str(signature), []).append(metric)
    if len(together) == 1:
        return [f"signature: {text}" for text in together]
    return [f"signature of {', '.join(metrics)}: {text}" for text, metrics in together.items()]


def is_rank(printed: str) -> bool:
    """Whether a metric is a rank or a count, and not a fraction that is shown in per cent.

    Example:
        >>> is_rank("mean_rank"), is_rank("median_rank"), is_rank("recall@5")
        (True, True, False)
    """
    return printed.partition("@")[0] in ("mean_rank", *NO_MEANS)


def signed(metric: str, value: float) -> str:
    """A difference as tables and pictures show it: with its sign, but where it is shown as zero.

    Example:
        >>> signed("recall@5", 0.0123), signed("recall@5", -0.00001), signed("mean_rank", -1.5)
        ('+1.23', '0.00', '-1.50')
    """
    text = shown_value(metric, value).strip()
    if float(text) == 0:
        return text.removeprefix("-")
    return text if text.startswith("-") else f"+{text}"


def main_value(expression: str, values: Mapping[str, float | None]) -> float | None:
    """The value of a main-metric expression, None where a term of it has no value.

    Example:
        >>> main_value("mean(recall@10, recall@50)", {"recall@10": 0.25, "recall@50": 0.5})
        0.375
    """
    terms = [values.get(term) for term in main_metric_terms(expression)]
    found = [value for value in terms if value is not None]
    return exact_mean(found) if len(found) == len(terms) else None


def signatures(
    names: Iterable[str],
    benchmark: Benchmark,
    method: Method,
    *,
    n: int,
    missing: int,
    reference_held: tuple[int, int] | None,
    dialogue: str = "",
    ranked: str = "",
) -> dict[str, Signature]:
    """What each number depends on.

    Args:
        names: of the numbers, with a variant behind a colon.
        benchmark: what was ranked.
        method: who ranked it.
        n: queries or sessions behind a number.
        missing: how many of them were left out.
        reference_held: how many lists hold their reference, and how many were looked at.
        dialogue: of a transcript, how it was made; empty for rankings.
        ranked: the known gallery that was evidently ranked in place of the benchmark's; else empty.
    """
    skipped = (
        *benchmark.checks_skipped,
        *((INCOMPLETE,) if missing else ()),
        *((SKIPPED_IMAGES,) if method.skipped_images else ()),
    )
    size, hashed = _ranked_gallery(benchmark, method)
    use = benchmark.reference_use
    if use == "kept" and method.reference == "removed":
        use = "removed"
    return {
        name: Signature.of(
            name.partition(":")[0],
            variant=name.partition(":")[2] or None,
            benchmark=benchmark.id,
            benchmark_version=benchmark.version,
            data_hash=benchmark.data_hash,
            gallery_hash=hashed,
            gallery_size=size,
            gallery_kind="per-query" if benchmark.per_query else "shared",
            reference=use,
            checks_skipped=skipped,
            n=n,
            ties="listed",
            search=method.search,
            reranking=method.reranking,
            dialogue=dialogue,
            ranked=ranked,
            repaired=tuple(method.repaired or ()),
            missing_aspects=benchmark.missing_aspects,
            reference_held=reference_held,
            reference_declared=method.reference,
        )
        for name in names
    }


def _ranked_gallery(benchmark: Benchmark, method: Method) -> tuple[int | None, str | None]:
    """Size and hash of the gallery that was ranked: the user's own where the file names one."""
    size, _, hashed = method.own_gallery.partition(":")
    if hashed:
        return int(size), hashed
    return (None if benchmark.gallery is None else len(benchmark.gallery)), benchmark.gallery_hash
