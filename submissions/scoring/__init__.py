"""`score`: from a rank file to the numbers of its board, each with its signature.

1. Read: the file becomes rankings (`submissions.formats`, which validation calls).
2. Check: all that is wrong with it is found and gathered once (`submissions.validation`); this report is
   carried to the end.
3. Code: the rankings become numbers against the ground truth (`coding`). That is read from the benchmark's
   prepared Parquet; the `datasets` library is never imported. Lists longer than the board uses are cut to
   what it uses, so that a metric without cutoff (`mean_rank`) sees the same depth from everybody.
4. Compute: the metrics of the board (`cir_metrics.evaluation`), and further ones (`further_metrics`).
5. Report: the numbers with their signatures and the values per query behind them (`score_report`). What
   `cir score` prints is made of that by `submissions.report.full_report`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from cir_datasets.registry import members_of
from cir_datasets.registry.schema import member_metric
from cir_metrics.catalogue import METRICS, Signature, reads_subset
from cir_metrics.evaluation import evaluate_coded, parse_wanted
from submissions.errors import WithheldError
from submissions.formats.content import MAX_BYTES
from submissions.rank_file.benchmarks import Benchmarks, board_depth
from submissions.rank_file.findings import Finding, RefusedError, ValidationReport, evident_gallery
from submissions.rank_file.model import CIRR_SERVER, RankBundle, RankFile
from submissions.rank_file.texts import is_oracle
from submissions.scoring.coding import Coding, code_queries, code_sessions
from submissions.scoring.score_report import Evidence, ScoreReport, main_value
from submissions.validation import validate_with

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from cir_metrics.evaluation import Results
    from cir_metrics.sums import FloatArray
    from submissions.rank_file.benchmarks import BenchmarkLike, FileLike
    from submissions.rank_file.model import Method
    from submissions.scoring.further_metrics import Further
    from submissions.scoring.rounds import Rounds

_FORGIVEN = frozenset({"missing-query", "missing-turn"})
INCOMPLETE = "complete"
"""The check that --allow-missing skips; in the signature it sets such a number apart."""
SKIPPED_IMAGES = "images"
"""The check that --skip-missing skips while a method ranks; likewise."""


def score(
    file: FileLike,
    benchmark: BenchmarkLike = None,
    *,
    allow_missing: bool = False,
    per_query: bool = False,
    metrics: Sequence[str] = (),
    max_bytes: int = MAX_BYTES,
    name: str | None = None,
) -> ScoreReport:
    """Validate a rank file or a bundle and compute the metrics of its board.

    One of the CIRR server's two files alone is scored for the metric that it names; the report then says
    which metrics are missing (`complete` is False), and no board takes it.

    Args:
        file: a path, the file's bytes, a `RankFile` or a `RankBundle`.
        benchmark: as in `validate`.
        allow_missing: count queries and turns without a ranking as misses instead of refusing the file; the
            report says how many, and no board takes it.
        per_query: whether to return one row a query as well.
        metrics: further metrics, `recall@20` or `pnr_map@10:released_code` (a variant); their values are the
            report's `extra`.
        max_bytes: bytes that are read at most.
        name: the file's name in messages, where `file` is bytes.

    Returns:
        The report; its numbers are fractions.

    Raises:
        RefusedError: validation found errors; its `report` holds them.
        CallError: `file` or `benchmark` is of none of these types; `metrics` is not a list of names, or one
            of them cannot be computed: the file holds no such rankings, or its cutoff lies beyond the depth
            that the board uses, its turn behind the longest session's last.
        WithheldError: the benchmark's ground truth is not public; the message names the way out.
        MissingFileError: no file has that name.
        UnknownNameError: `benchmark` is neither a benchmark nor a suite, or one of `metrics` is not a metric.
        SourceError: the benchmark's own data is not available.
    """
    further: tuple[Further, ...] = ()
    if metrics != ():
        from submissions.scoring.further_metrics import metric_names, parse_further

        further = parse_further(metric_names(metrics))
    benchmarks = Benchmarks(benchmark)
    checked = validate_with(file, benchmarks, part=True, max_bytes=max_bytes, name=name)
    return score_checked(checked, benchmarks, further, allow_missing=allow_missing, per_query=per_query)


def score_checked(
    checked: ValidationReport,
    benchmarks: Benchmarks,
    further: Sequence[Further] = (),
    *,
    allow_missing: bool = False,
    per_query: bool = False,
) -> ScoreReport:
    """`score` from its third step on, for a caller that has validated the file.

    Args:
        checked: what validation found, with what was read.
        benchmarks: the benchmarks that it was validated against.
        further: metrics beside the board's.
        allow_missing: as in `score`.
        per_query: as in `score`.

    Raises:
        RefusedError: validation found errors.
        CallError: one of the further metrics cannot be computed.
        WithheldError: the benchmark's ground truth is not public.
    """
    _refuse_withheld(checked, benchmarks)
    read = checked.rank_file
    blocking = [finding for finding in checked.errors if not (allow_missing and finding.code in _FORGIVEN)]
    if blocking or read is None:
        forgivable = all(finding.code in _FORGIVEN for finding in checked.errors)
        hint = " --allow-missing counts what is missing as misses." if forgivable else ""
        raise RefusedError(f"{checked.file} cannot be scored.{hint}", checked)
    if isinstance(read, RankBundle):
        return _score_bundle(read, benchmarks, checked, further, per_query=per_query)
    return _score_run(read, benchmarks.load(read.benchmark), checked, further, per_query=per_query)


def _score_run(
    rank_file: RankFile,
    benchmark: Benchmark,
    checked: ValidationReport,
    further: Sequence[Further],
    *,
    per_query: bool,
) -> ScoreReport:
    metrics, left_out = _computable(rank_file, benchmark)
    wanted = parse_wanted(metrics, "multi_turn" if benchmark.multi_turn else "single_turn")
    if further:
        from submissions.scoring.further_metrics import check_further

        further = check_further(further, benchmark, rank_file)
    coding = _coded(rank_file, benchmark, [name for name, _ in wanted], further)
    results = evaluate_coded(wanted, coding.coded)
    extra: dict[str, float] = {}
    if further:
        from submissions.scoring.further_metrics import further_values

        values, per_query_values = further_values(further, coding.coded)
        # A further metric may bring numbers that the board shows: with median_rank comes mean_rank.
        extra = {name: value for name, value in values.items() if name not in results.values}
        results = dataclasses.replace(results, per_query={**results.per_query, **per_query_values})
    return report_of(
        results,
        coding,
        benchmark,
        rank_file.method,
        checked,
        main_metric=benchmark.spec.main_metric,
        extra=extra,
        left_out=left_out,
        per_query=per_query,
    )


def report_of(
    results: Results,
    coding: Coding,
    benchmark: Benchmark,
    method: Method,
    checked: ValidationReport,
    *,
    main_metric: str,
    extra: Mapping[str, float] | None = None,
    left_out: tuple[str, ...] = (),
    per_query: bool = False,
    dialogue: str = "",
    sessions: tuple[str, ...] | None = None,
    rounds: Rounds | None = None,
) -> ScoreReport:
    """The score of rankings or of dialogues whose numbers are known.

    Args:
        results: the board's values, and those per query of the further metrics, too.
        coding: the rankings that they were computed from.
        benchmark: what was ranked.
        method: who ranked it.
        checked: what validation found.
        main_metric: the metric that ranks.
        extra: values of further metrics.
        left_out: the board's metrics that could not be computed.
        per_query: whether to keep one row a query as well.
        dialogue: of a transcript, how it was made, for the signatures.
        sessions: of a transcript, the ids of its sessions.
        rounds: of a transcript, what stands beside its ranks.
    """
    extra = extra or {}
    evidence = Evidence(
        benchmark=benchmark,
        values=results.per_query,
        ranks=results.ranks,
        list_lengths=results.list_lengths,
        num_turns=results.num_turns,
        subset_ranks=results.subset_ranks,
        sessions=sessions,
        rounds=rounds,
    )
    return ScoreReport(
        file=checked.file,
        method=method.name,
        benchmark=benchmark.id,
        benchmark_version=benchmark.version,
        main_metric=main_metric,
        main=main_value(main_metric, results.values),
        metrics=results.values,
        signatures=signatures(
            [*results.values, *extra],
            benchmark,
            method,
            n=results.n,
            missing=coding.missing,
            reference_held=coding.reference_held,
            dialogue=dialogue,
            ranked=evident_gallery(checked.warnings, benchmark.id),
        ),
        n=results.n,
        answered=coding.answered,
        missing=coding.missing,
        missing_metrics=left_out,
        warnings=tuple(f for f in checked.warnings if f.benchmark in (None, benchmark.id)),
        per_query=_rows(evidence.query_ids, results.per_query) if per_query else None,
        extra=extra,
        oracle=is_oracle(method.to_dict()),
        evidence=evidence,
    )


def _coded(
    rank_file: RankFile, benchmark: Benchmark, metrics: Sequence[str], further: Sequence[Further]
) -> Coding:
    depth = board_depth(benchmark).used
    if benchmark.multi_turn:
        return code_sessions(rank_file, benchmark, depth)
    names = {*metrics, *(each.module for each in further)}
    fields = {field for name in names for field in METRICS[name].fields}
    return code_queries(rank_file, benchmark, fields, depth)


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


def _score_bundle(
    bundle: RankBundle,
    benchmarks: Benchmarks,
    checked: ValidationReport,
    further: Sequence[Further],
    *,
    per_query: bool,
) -> ScoreReport:
    by_id = {run.benchmark: run for run in bundle.runs}
    runs = [
        _score_run(by_id[member], benchmarks.load(member), checked, further, per_query=per_query)
        for member in members_of(bundle.suite)
    ]
    return suite_report(bundle.suite, runs, file=checked.file, warnings=checked.warnings, per_query=per_query)


def suite_report(
    suite_id: str,
    runs: Sequence[ScoreReport],
    *,
    file: str,
    warnings: Sequence[Finding] = (),
    per_query: bool = False,
) -> ScoreReport:
    """The score over a suite from its members' scores.

    Args:
        suite_id: the suite's id.
        runs: the scores of one method, one a member, in the suite's order.
        file: the file's name in messages; several, where each member has a file of its own.
        warnings: findings of the whole file.
        per_query: whether to return one row a query as well.
    """
    from cir_datasets.registry.suites import suite
    from submissions.scoring.suite_signature import signature_over

    declared = suite(suite_id)
    sizes = [run.n for run in runs]
    metrics = declared.reduce([run.metrics for run in runs], sizes, metrics=declared.metrics)
    extra = declared.reduce([run.extra for run in runs], sizes)
    signatures = {
        name: signature_over(
            suite_id, name, [cast(Signature, run.signatures[member_metric(name)]) for run in runs]
        )
        for name in (*metrics, *extra)
    }
    rows = [{"benchmark": run.benchmark, **row} for run in runs for row in run.per_query or []]
    return ScoreReport(
        file=file,
        method=runs[0].method,
        benchmark=declared.id,
        benchmark_version=declared.version,
        main_metric=declared.main_metric,
        main=main_value(declared.main_metric, metrics),
        metrics=metrics,
        signatures=signatures,
        n=sum(sizes),
        answered=sum(run.answered for run in runs),
        missing=sum(run.missing for run in runs),
        warnings=tuple(warnings),
        per_query=rows if per_query else None,
        runs=tuple(runs),
        extra=extra,
        oracle=any(run.oracle for run in runs),
    )


def _computable(rank_file: RankFile, benchmark: Benchmark) -> tuple[list[str], tuple[str, ...]]:
    """The board's metrics that the file holds rankings for, and the others."""
    has_all = bool(rank_file.rankings) or rank_file.format != CIRR_SERVER
    has_subset = rank_file.subset_rankings is not None
    wanted = benchmark.spec.metrics
    possible = [metric for metric in wanted if (has_subset if reads_subset(metric) else has_all)]
    return possible, tuple(metric for metric in wanted if metric not in possible)


def _rows(query_ids: list[str], per_query: Mapping[str, FloatArray]) -> list[dict[str, Any]]:
    columns = {metric: values.tolist() for metric, values in per_query.items()}
    return [
        {"query_id": query, **{metric: values[place] for metric, values in columns.items()}}
        for place, query in enumerate(query_ids)
    ]


def _refuse_withheld(checked: ValidationReport, benchmarks: Benchmarks) -> None:
    # A bundle that could not be read names its suite: its findings are shown, and a suite is never withheld.
    is_one = isinstance(checked.rank_file, RankFile)
    if checked.benchmark is None or not (is_one or members_of(checked.benchmark) == (checked.benchmark,)):
        return
    spec = benchmarks.spec(checked.benchmark)
    if spec.config.ground_truth != "withheld":
        return
    if spec.card.source.publisher == "challenge":
        raise WithheldError(
            f"{checked.file}: {spec.id} is a challenge: its ground truth is sealed. "
            f"Fix: cir submit {checked.file} --to URL"
        )
    from submissions.formats.servers import server_format

    server = server_format(spec.card.name)
    if server is not None:
        way_out = (
            f"The {spec.card.short_title} server scores it. "
            f"Fix: cir convert {checked.file} --to {server} --benchmark {spec.id}"
        )
    else:
        public = [f"{spec.card.name}/{n}" for n, c in spec.card.configs.items() if c.ground_truth == "public"]
        near = [i for i in public if i.endswith("_val")] or public
        way_out = f"No server scores it any more. Fix: rank one with public ground truth, such as {near[0]}."
    raise WithheldError(
        f"{checked.file}: the ground truth of {spec.id} is withheld by its publisher. {way_out}"
    )
