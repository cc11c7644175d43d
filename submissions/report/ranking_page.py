"""Rankings of one or two methods as a page to look at: targets and hard negatives marked, won and lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cir_datasets.browse import browse_queries, check_page, page_name
from cir_datasets.browse.queries import ShownRanking
from cir_datasets.registry.schema import main_metric_terms
from cir_datasets.rows.right import right_answers, right_by
from cir_metrics.errors import CallError, did_you_mean
from submissions.errors import SubmissionError
from submissions.rank_file.benchmarks import Benchmarks, board_depth
from submissions.rank_file.findings import RefusedError
from submissions.rank_file.model import RankBundle, RankFile
from submissions.validation import read, validate

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from cir_datasets.rows.records import Row
    from submissions.rank_file.benchmarks import BenchmarkLike, FileLike

_MOST = 100


def browse_rankings(
    files: Sequence[FileLike],
    benchmark: BenchmarkLike = None,
    *,
    out: str | Path | None = None,
    images: str | Path | None = None,
    pictures: str | None = None,
    k: int = 10,
) -> Path:
    """Write the rankings of one or two methods as a page.

    Args:
        files: one rank file, or two for one benchmark; `won` is what the first hits alone.
        benchmark: what they answer, as for `score`; of a bundle the member that is looked at.
        out: the page, ending in .html; None takes the benchmark's name.
        images: folder of the pictures, as for `cir_datasets.browse_queries`.
        pictures: `embed`, `link` or `none`, as for `cir_datasets.browse_queries`.
        k: images of each ranking that are shown, 1 to 100; a hit has a target among them.

    Returns:
        The absolute path.

    Raises:
        CallError: there are other than one or two files, they are for different benchmarks, or `k` or `out`
            cannot be used.
        RefusedError: a file has errors.
        DatasetError: the page cannot be written.

    Example:
        >>> from importlib import resources
        >>> import tempfile
        >>> file = resources.files("submissions.entries") / "random.shapes-val.json.gz"
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     browse_rankings([file], out=f"{folder}/page.html", pictures="none").name
        'page.html'
    """
    if not 1 <= len(files) <= 2:
        raise CallError(
            f"{len(files)} rank files: one is looked at, or two side by side. Fix: name two at most."
        )
    if not 1 <= k <= _MOST:
        raise CallError(f"--k {k}: a page shows 1 to {_MOST} images of a ranking. Fix: name such a number.")
    if out is not None:
        check_page(out)
    bundle = isinstance(benchmark, str) and any(map(_is_bundle, files))
    known = Benchmarks(None if bundle else benchmark)
    runs = [_run(file, known, benchmark) for file in files]
    ids = dict.fromkeys(f"{run.benchmark}#{run.benchmark_version}" for run in runs)
    if len(ids) > 1:
        raise CallError(f"the files answer {' and '.join(ids)}. Fix: name two for one benchmark.")
    loaded = known.load(runs[0].benchmark)
    for run in runs:
        if not run.rankings:
            raise CallError(
                f"{run.method.name}: holds rankings of subsets alone. Fix: name the file with the rankings "
                "of the gallery."
            )
    names = [run.method.name for run in runs]
    if len(set(names)) < len(names):
        names = [f"{name} ({place})" for place, name in enumerate(names, start=1)]
    return browse_queries(
        loaded,
        page_name(loaded.id) if out is None else out,
        images=images,
        pictures=pictures,
        runs=names,
        rankings=_rankings(loaded, runs, k),
        k=k,
        more=[f"{name}: the subset" for name, run in zip(names, runs, strict=True) if run.subset_rankings],
    )


def _is_bundle(file: FileLike) -> bool:
    if isinstance(file, RankFile | RankBundle):
        return isinstance(file, RankBundle)
    try:
        return isinstance(read(file), RankBundle)
    except SubmissionError:  # a format that does not say its benchmark; whatever else is wrong is said below
        return False


def _run(file: FileLike, known: Benchmarks, benchmark: BenchmarkLike) -> RankFile:
    report = validate(file, known, part=True)
    if not report.ok or report.rank_file is None:
        raise RefusedError(f"{report.file} cannot be shown.", report)
    checked: Any = report.rank_file
    if not isinstance(checked, RankBundle):
        return checked  # type: ignore[no-any-return]
    for run in checked.runs:
        if run.benchmark == benchmark:
            return run
    members = [run.benchmark for run in checked.runs]
    said = f"the file is a bundle for {checked.suite}."
    if isinstance(benchmark, str) and benchmark != checked.suite:
        said += f" It has no member {benchmark!r:.100}.{did_you_mean(benchmark, members)}"
    raise CallError(f"{said} Fix: name the member to look at with --benchmark: {', '.join(members)}.")


def _rankings(benchmark: Benchmark, runs: Sequence[RankFile], k: int) -> Mapping[str, Any]:
    known, depth = not benchmark.ground_truth_withheld, board_depth(benchmark).used
    metrics = right_by(main_metric_terms(benchmark.spec.main_metric), benchmark.spec.metrics)
    found = {}
    for name, row in zip(benchmark.query_ids, benchmark.rows(), strict=True):
        answers = [run.rankings[name] if benchmark.multi_turn else [run.rankings[name]] for run in runs]
        found[name] = [
            [
                _ranked(answer[turn][:depth], {*right_answers(row, metrics, turn)}, k, known)
                for answer in answers
            ]
            for turn in range(len(answers[0]))
        ]
        targets = {*right_answers(row, metrics)}
        found[name][0] += [
            _subset(run.subset_rankings[name], row, targets, known) for run in runs if run.subset_rankings
        ]
    return found


def _ranked(listed: Sequence[str], targets: set[str], k: int, known: bool) -> ShownRanking:
    rank = next((place for place, image in enumerate(listed, start=1) if image in targets), None)
    return ShownRanking(tuple(listed[:k]), rank, len(listed), known)


def _subset(listed: Sequence[str], row: Row, targets: set[str], known: bool) -> ShownRanking:
    """All members: those that are ranked, then the others; the reference is the last."""
    ranked = _ranked(listed, targets, len(listed), known)
    reference = row["reference_image_id"]
    others = (each for each in row["subset_image_ids"] if each not in ranked.top)
    return replace(ranked, others=tuple(sorted(others, key=lambda each: each == reference)))
