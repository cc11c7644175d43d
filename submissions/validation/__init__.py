"""`validate`: everything that is wrong with a rank file, found without any ground truth.

The same code runs in `cir validate`, in the browser's upload and on the server. It may be as chatty as it
likes, because it knows only what is public: query ids, turns, references, subsets and the gallery.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from submissions.formats import Parsed, parse_file
from submissions.formats.budget import MAX_BYTES
from submissions.formats.native import UncheckedFile
from submissions.rank_file.benchmarks import Benchmarks, queries, warn_of_data
from submissions.rank_file.contradictions import (
    check_reference_of_form,
    check_reference_of_protocol,
    check_words,
)
from submissions.rank_file.findings import Findings, RefusedError, ValidationReport
from submissions.rank_file.model import CIRR_SERVER, LISTS

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.rank_file.benchmarks import BenchmarkLike, FileLike, Queries
    from submissions.rank_file.model import RankBundle, RankFile


def validate(
    file: FileLike,
    benchmark: BenchmarkLike = None,
    *,
    part: bool | None = None,
    max_bytes: int = MAX_BYTES,
    name: str | None = None,
) -> ValidationReport:
    """Check a rank file or a bundle and return every finding.

    Args:
        file: a path, the file's bytes, a `RankFile` or a `RankBundle`.
        benchmark: what it must answer: an id of a benchmark or suite, a `Benchmark`, a mapping of benchmarks
            by id (for a bundle of benchmarks made in memory), or None for what the file says itself. The CIRR
            and CIRCO servers' formats do not say it.
        part: whether one of the CIRR server's two files alone is enough. None: only where the ground truth is
            withheld, so that the server and no board of ours will read it.
        max_bytes: bytes that are read at most.
        name: the file's name in messages, where `file` is bytes.

    Returns:
        The report. Wrong content never raises.

    Raises:
        CallError: `file` or `benchmark` is of none of these types.
        MissingFileError: no file has that name.
        UnknownNameError: `benchmark` is neither a benchmark nor a suite.
        SourceError: the benchmark's own data is not available.

    Example:
        >>> report = validate(b'{"format": "cir-rank-file"', name="run.json")
        >>> print(report.text())
        malformed: run.json: line 1, column 27: unexpected end of data.
          Fix: write it with a JSON library, never by hand, then run  cir validate run.json
        run.json: refused, 1 error
    """
    return validate_with(file, Benchmarks(benchmark), part=part, max_bytes=max_bytes, name=name)


def validate_with(
    file: FileLike,
    benchmarks: Benchmarks,
    *,
    part: bool | None,
    max_bytes: int,
    name: str | None,
    form: Mapping[str, Any] | None = None,
) -> ValidationReport:
    """`validate` for a caller that needs the benchmarks again afterwards: `benchmarks` keeps what it loaded.

    With `form`, fields of the method block, a file that names no method is checked as if its own block said
    them; and any file that declares nothing of the reference, as if it declared what the form does.
    """
    parsed = parse_file(file, benchmarks, max_bytes=max_bytes, name=name, form=form)
    for unchecked, findings in parsed.files:
        if unchecked is not None:
            check_rankings(unchecked, benchmarks, findings, form or {}, part=part)
    return report_of(parsed)


def report_of(parsed: Parsed) -> ValidationReport:
    """The report of what was found so far."""
    found = [finding for collector in parsed.collectors() for finding in collector.listed()]
    files = [unchecked for unchecked, _ in parsed.files if unchecked is not None]
    parts = [file.rankings if file.rankings is not None else file.subset_rankings for file in files]
    answered = sum(len(part) for part in parts if part is not None)
    return ValidationReport.of(parsed.findings.file, found, parsed.benchmark, parsed.finished(), answered)


def check_rankings(
    unchecked: UncheckedFile,
    benchmarks: Benchmarks,
    findings: Findings,
    form: Mapping[str, Any],
    *,
    part: bool | None = None,
    queries_of: Callable[[Benchmark, str], Queries] = queries,
) -> None:
    """Check rankings that have been read, of a rank file or of a dialogue's rounds.

    Args:
        unchecked: what was read.
        benchmarks: resolves the benchmark.
        findings: collects what is wrong.
        form: fields of the method that came beside the file.
        part: as in `validate`.
        queries_of: makes of the benchmark, and of what is declared of the reference, what has to be ranked.
    """
    import numpy as np

    from submissions.rank_file.owners import note_ranked_gallery
    from submissions.validation.rules import check_content

    if unchecked.method is not None:
        check_words(unchecked.method.to_dict(), unchecked.spec, findings)
    benchmark = benchmarks.load(unchecked.spec.id)
    warn_of_data(benchmark, findings)
    if benchmark.left_out:
        _leave_out(unchecked, benchmark, findings)
    parts = unchecked.format in (CIRR_SERVER, LISTS)
    alone = parts and (benchmark.ground_truth_withheld if part is None else part)
    declared = "" if unchecked.method is None else unchecked.method.reference
    check_reference_of_form(declared, form.get("reference", ""), findings)
    declared = declared or form.get("reference", "")
    check_reference_of_protocol(declared, benchmark, findings)
    check_content(unchecked, queries_of(benchmark, declared), findings, part=alone)
    columns = unchecked.rankings
    if columns is not None and not columns.unreadable:
        counts = np.bincount(columns.codes, minlength=len(columns.images))
        lists, method = len(columns.lengths), unchecked.method
        note_ranked_gallery(columns.image_ids, counts, lists, benchmark, method, findings)


def _leave_out(unchecked: UncheckedFile, benchmark: Benchmark, findings: Findings) -> None:
    """Drop the answers to queries of the base that the overlay leaves out, and say how many there were."""
    outside = {
        query
        for answers in (unchecked.rankings, unchecked.subset_rankings)
        for query in answers or ()
        if query in benchmark.left_out
    }
    if outside:
        for part in ("rankings", "subset_rankings"):
            answers = getattr(unchecked, part)
            setattr(unchecked, part, None if answers is None else answers.without(outside))
        findings.add(
            "outside-overlay",
            f"queries that {benchmark.id} leaves out are answered, too; those answers are not counted.",
            count=len(outside),
        )


def read(
    file: str | os.PathLike[str] | bytes,
    *,
    benchmark: BenchmarkLike = None,
    max_bytes: int = MAX_BYTES,
    name: str | None = None,
) -> RankFile | RankBundle:
    """Read a rank file or bundle, checking its structure only; `validate` checks the content.

    Args:
        file: a path, or the file's bytes.
        benchmark: what it answers; needed for the formats of others, which do not say it.
        max_bytes: bytes that are read at most.
        name: the file's name in messages, where `file` is bytes.

    Raises:
        MissingFileError: no file has that name.
        UnknownNameError: `benchmark` is neither a benchmark nor a suite.
        RefusedError: the structure is broken; its `report` holds the findings.

    Example:
        >>> content = b'{"version": "rc2", "metric": "recall", "12060": ["dev-0-0-img0.png"]}'
        >>> read(content, benchmark="cirr/val").rankings
        {'12060': ['dev-0-0-img0']}
    """
    benchmarks = Benchmarks(benchmark)
    benchmarks.only_here = True
    parsed = parse_file(file, benchmarks, max_bytes=max_bytes, name=name)
    report = report_of(parsed)
    if report.rank_file is None or report.errors:
        raise RefusedError(f"{report.file} cannot be read.", report)
    return report.rank_file
