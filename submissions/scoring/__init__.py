"""`score`: from a checked rank file to the numbers of its board, each with its signature.

1. Read: the file becomes rankings (`submissions.formats`, which validation calls).
2. Check: all that is wrong with it is found and gathered once (`submissions.validation`); this report is
   carried to the end.
3. Code: the rankings become numbers against the ground truth. Nothing is looked at one by one: the ground
   truth's ids become the rank file's codes in one look-up, and the places that hold them are marked for all
   queries together. The benchmark is read from its prepared Parquet, without the `datasets` library. Lists
   longer than the board uses are cut to what it uses, so that a metric without cutoff (`mean_rank`) sees the
   same depth from everybody.
4. Compute: the metrics of the board (`cir_metrics.evaluation`), and further ones (`further_metrics`).
5. Report: the numbers with their signatures (`score_report`) and the values per query behind them
   (`evidence`). What `cir score` prints is made of that by `submissions.report.full_report`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cir_datasets.registry import members_of
from cir_datasets.rows import distinct, flattened, id_array, numbers
from cir_metrics.catalogue import METRICS, reads_subset
from cir_metrics.errors import InputError
from cir_metrics.evaluation import (
    CodedQueries,
    CodedSessions,
    evaluate_coded,
    first_ranks,
    mark,
    parse_wanted,
)
from cir_metrics.sums import UNLISTED
from submissions.errors import WithheldError
from submissions.rank_file.benchmarks import Benchmarks, board_depth
from submissions.rank_file.columns import Codes, Columns
from submissions.rank_file.content import MAX_BYTES
from submissions.rank_file.findings import REPAIRED, RefusedError, ValidationReport, evident_gallery
from submissions.rank_file.model import RankFile, as_columns
from submissions.rank_file.texts import is_oracle
from submissions.scoring.evidence import RANKED, Evidence
from submissions.scoring.score_report import ScoreReport, main_value, signatures
from submissions.validation import validate

if TYPE_CHECKING:
    import pyarrow as pa

    from cir_datasets.registry import BenchmarkSpec
    from cir_datasets.rows.benchmark import Benchmark
    from cir_metrics.evaluation import Results
    from cir_metrics.sums import FloatArray
    from submissions.rank_file.benchmarks import BenchmarkLike, FileLike
    from submissions.rank_file.model import Method
    from submissions.scoring.evidence import Rounds
    from submissions.scoring.further_metrics import Further

_FORGIVEN = frozenset({"missing-query", "missing-turn"})
_COLUMNS = {
    "target": "target_image_id",
    "positives": "positive_image_ids",
    "negatives": "negative_image_ids",
    "sessions": "ground_truth_ids",
}
_MASKS = {"target": "target", "positives": "positive", "negatives": "negative"}


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
    checked = validate(file, benchmarks, part=True, max_bytes=max_bytes, name=name)
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
    errors = checked.errors
    if any(finding.code == REPAIRED for finding in errors):
        from submissions.scoring.repaired import unexcused

        errors = unexcused(checked)
    blocking = [finding for finding in errors if not (allow_missing and finding.code in _FORGIVEN)]
    if blocking or read is None:
        forgivable = read is not None and all(finding.code in _FORGIVEN for finding in errors)
        hint = " --allow-missing counts what is missing as misses." if forgivable else ""
        raise RefusedError(f"{checked.file} cannot be scored.{hint}", checked)
    if isinstance(read, RankFile):
        return _score_run(read, benchmarks.load(read.benchmark), checked, further, per_query=per_query)
    from submissions.scoring.suites import suite_report

    by_id = {run.benchmark: run for run in read.runs}
    loaded = [benchmarks.load(member) for member in members_of(read.suite)]
    asked: Sequence[Sequence[Further]] = [further] * len(loaded)
    if further:
        from submissions.scoring.further_metrics import for_members

        asked = for_members(further, loaded)
    members = [
        _score_run(by_id[benchmark.id], benchmark, checked, own, per_query=per_query)
        for benchmark, own in zip(loaded, asked, strict=True)
    ]
    return suite_report(
        read.suite,
        members,
        file=checked.file,
        warnings=checked.warnings,
        per_query=per_query,
        further=asked,
    )


def _refuse_withheld(checked: ValidationReport, benchmarks: Benchmarks) -> None:
    # A bundle that could not be read names its suite: its findings are shown, and a suite is never withheld.
    is_one = isinstance(checked.rank_file, RankFile)
    if checked.benchmark is None or not (is_one or members_of(checked.benchmark) == (checked.benchmark,)):
        return
    spec = benchmarks.spec(checked.benchmark)
    if spec.config.ground_truth == "withheld":
        raise _withheld(checked.file, spec)


def _withheld(file: str, spec: BenchmarkSpec) -> WithheldError:
    """What a file for a benchmark of withheld ground truth is refused with; it names the way out."""
    if spec.card.source.publisher == "challenge":
        return WithheldError(
            f"{file}: {spec.id} is a challenge: its ground truth is sealed. Fix: cir submit {file} --to URL"
        )
    from submissions.formats.servers import server_format

    server = server_format(spec.card.name)
    if server is not None:
        way_out = (
            f"The {spec.card.short_title} server scores it. "
            f"Fix: cir convert {file} --to {server} --benchmark {spec.id}"
        )
    else:
        public = [f"{spec.card.name}/{n}" for n, c in spec.card.configs.items() if c.ground_truth == "public"]
        near = [i for i in public if i.endswith("_val")] or public
        way_out = f"No server scores it any more. Fix: rank one with public ground truth, such as {near[0]}."
    return WithheldError(f"{file}: the ground truth of {spec.id} is withheld by its publisher. {way_out}")


def _score_run(
    rank_file: RankFile,
    benchmark: Benchmark,
    checked: ValidationReport,
    further: Sequence[Further],
    *,
    per_query: bool,
) -> ScoreReport:
    metrics, left_out = computable(rank_file, benchmark)
    wanted = parse_wanted(metrics, "multi_turn" if benchmark.multi_turn else "single_turn")
    if further:
        from submissions.scoring.further_metrics import check_further

        further = check_further(further, benchmark, rank_file)
    coding = code_rankings(rank_file, benchmark, [name for name, _ in wanted], further)
    results = evaluate_coded(wanted, coding.coded)
    extra: Mapping[str, float] = {}
    if further:
        from submissions.scoring.further_metrics import with_further

        results, extra = with_further(results, further, coding.coded)
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


def computable(rank_file: RankFile, benchmark: Benchmark) -> tuple[list[str], tuple[str, ...]]:
    """The board's metrics that the file holds rankings for, and the others."""
    has_all = bool(rank_file.rankings) or not rank_file.subset_rankings
    has_subset = rank_file.subset_rankings is not None
    wanted = benchmark.spec.metrics
    possible = [metric for metric in wanted if (has_subset if reads_subset(metric) else has_all)]
    if rank_file.method.repaired:
        from submissions.scoring.repaired import within_reach

        possible = within_reach(possible, rank_file, benchmark)
    return possible, tuple(metric for metric in wanted if metric not in possible)


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
        **{name: getattr(results, name) for name in RANKED},
        sessions=sessions,
        rounds=rounds,
        reach=None
        if not method.repaired or results.list_lengths is None
        else int(results.list_lengths.min()),
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
        aggregation=method.aggregation,
        evidence=evidence,
    )


@dataclass(frozen=True)
class Coding:
    """A rank file's rankings in the benchmark's order, coded against its ground truth.

    Args:
        coded: what the metrics read.
        missing: rankings that the file does not hold.
        answered: queries or sessions that have all theirs.
        reference_held: how many lists hold the reference of their query or turn, wherever it stands, and how
            many were looked at; None where no list answers a query with a reference.
    """

    coded: CodedQueries | CodedSessions
    missing: int
    answered: int
    reference_held: tuple[int, int] | None = None


def code_rankings(
    rank_file: RankFile, benchmark: Benchmark, metrics: Sequence[str], further: Sequence[Further]
) -> Coding:
    """The third step: rankings in the benchmark's order, coded for some metrics and further ones."""
    columns, depth = as_columns(rank_file.rankings, by_turn=benchmark.multi_turn), board_depth(benchmark).used
    modules = {*metrics, *(each.module for each in further)}
    fields = {field for module in modules for field in METRICS[module].fields}
    if benchmark.multi_turn:
        return _coded_sessions(columns, benchmark, depth, fields)
    subset_ranks, found = None, _positions(columns, benchmark)
    if rank_file.subset_rankings is not None:
        subset_ranks, found_subsets = _subset_ranks(rank_file.subset_rankings, benchmark)
        found = found if len(columns) else found_subsets
    missing = int((found < 0).sum())
    answered = len(found) - missing
    if not len(columns) and subset_ranks is not None:
        return Coding(CodedQueries(n=len(found), subset_ranks=subset_ranks), missing, answered)
    codes, kinds = columns.places(found, depth), [kind for kind in _MASKS if kind in fields]
    truth = dict(zip(kinds, _truth(benchmark, kinds, columns), strict=True))
    masks = mark(codes, list(truth.values()), len(columns.images))
    coded = CodedQueries(
        n=len(found),
        list_lengths=(codes >= 0).sum(axis=1),
        n_positives=np.diff(truth["positives"][0]) if "positives" in truth else None,
        subset_ranks=subset_ranks,
        **{_MASKS[kind]: mask for kind, mask in zip(kinds, masks, strict=True)},
    )
    return Coding(coded, missing, answered, _references_held(columns, found, benchmark.references))


def _coded_sessions(columns: Columns, benchmark: Benchmark, depth: int, fields: Collection[str]) -> Coding:
    num_turns = np.array(benchmark.column("num_turns"), dtype=np.int64)
    turns = np.arange(int(num_turns.max()))
    asked = turns < num_turns[:, None]
    rankings = np.full(asked.shape, -1, dtype=np.int64)
    if len(columns):
        found = _positions(columns, benchmark)
        starts = columns.offsets if columns.turn_offsets is None else columns.turn_offsets
        ranked = np.where(found < 0, 0, np.diff(starts)[found])
        rankings = np.where(asked & (turns < ranked[:, None]), starts[found][:, None] + turns, -1)
    [truth] = _truth(benchmark, ["sessions"], columns)
    ranks, list_lengths = np.full_like(rankings, UNLISTED), np.zeros_like(rankings)
    targets, turn_ranks = np.full_like(rankings, -1), None
    if "turn_targets" in fields and benchmark.turn_targets is not None:
        turn_ranks = np.full_like(rankings, UNLISTED)
        targets[asked] = columns.codes_of(benchmark.turn_targets)
    for turn in turns:
        codes = columns.places(rankings[:, turn], depth)
        if turn_ranks is not None:
            turn_ranks[:, turn] = first_ranks((codes == targets[:, turn, None]) & (codes >= 0))
        [positive] = mark(codes, [truth], len(columns.images))
        ranks[:, turn] = first_ranks(positive)
        list_lengths[:, turn] = (codes >= 0).sum(axis=1)
    # An empty ranking is refused but where it stands for a turn that a TREC run leaves out.
    gone = (asked & (list_lengths == 0)).sum(axis=1)
    coded = CodedSessions(ranks, list_lengths, num_turns, turn_ranks)
    held = _references_held(columns, rankings[asked], benchmark.references)
    return Coding(coded, int(gone.sum()), int((gone == 0).sum()), held)


def _rows(query_ids: list[str], per_query: Mapping[str, FloatArray]) -> list[dict[str, Any]]:
    columns = {metric: values.tolist() for metric, values in per_query.items()}
    return [
        {"query_id": query, **{metric: values[place] for metric, values in columns.items()}}
        for place, query in enumerate(query_ids)
    ]


def _references_held(
    columns: Columns, rankings: NDArray[np.int64], references: pa.Array
) -> tuple[int, int] | None:
    """How many lists hold the reference of their query or turn, anywhere, and how many were looked at."""
    answered = np.flatnonzero((rankings >= 0) & (numbers(references.is_valid().cast("uint8")) > 0))
    answered = answered[columns.lengths[rankings[answered]] > 0]
    if not len(answered):
        return None
    wanted = np.full(len(columns.lengths), -1, dtype=np.int32)
    wanted[rankings[answered]] = columns.codes_of(references)[answered]
    return int(columns.holding(wanted).sum()), len(answered)


def _positions(columns: Columns, benchmark: Benchmark) -> NDArray[np.int64]:
    """Where the rankings of the benchmark's queries or sessions stand; -1 for one that has none."""
    queries = benchmark.query_ids
    return np.fromiter(map(columns.position.get, queries, repeat(-1)), np.int64, len(queries))


def _truth(
    benchmark: Benchmark, kinds: Sequence[str], columns: Columns
) -> list[tuple[NDArray[np.int64], Codes]]:
    """Of each kind where a query's images start, and their codes: -1 for one that the file does not name."""
    of_gallery: Codes | None = None
    truth = []
    for kind in kinds:
        name = _COLUMNS[kind]
        places = None if benchmark.gallery is None else benchmark.places(name)
        counts, parts = flattened(benchmark.ids(name) if places is None else places)
        if kind != "negatives" and not counts.all():
            query = benchmark.query_ids[int(np.argmin(counts))]
            raise InputError(
                f"{benchmark.id}: query {query!r} has no {name}. Fix: use a metric that this benchmark has "
                "or, where the ground truth is withheld, the publisher's server."
            )
        if benchmark.gallery is None or places is None:
            images, ids = distinct(parts)
            codes = columns.codes_of(ids)
        else:
            if of_gallery is None:
                of_gallery = _codes_of_gallery(id_array(benchmark.gallery), columns)
            images, codes = np.concatenate([numbers(part) for part in parts]), of_gallery
        truth.append((np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]), codes[images]))
    return truth


def _codes_of_gallery(gallery: pa.Array, columns: Columns) -> Codes:
    places = columns.in_gallery(gallery)
    codes = np.full(len(gallery), -1, dtype=np.int32)
    named = np.flatnonzero(places >= 0)
    codes[places[named]] = named
    return codes


def _subset_ranks(
    rankings: Mapping[str, Any], benchmark: Benchmark
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rank of each query's target in its subset, and where the subset's ranking lies."""
    columns = as_columns(rankings)
    found = _positions(columns, benchmark)
    codes = columns.places(found, int(columns.lengths.max(initial=0)))
    [target] = mark(codes, _truth(benchmark, ["target"], columns), len(columns.images))
    return first_ranks(target), found
