"""`explain`: what any file that can be read says, valid or not, and its numbers under each reading.

Validation refuses the files in which a field's errors live: a reference that was left in, images of another
split, a list of all categories. Here such a file is read by the same readers within the same bounds, what is
odd about it is counted, and the numbers are given for each way in which it may be meant.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from cir_datasets.registry import spec as benchmark_spec
from cir_datasets.registry.suites import suite, suite_ids
from cir_datasets.rows.benchmark import Benchmark
from cir_metrics.sums import UNLISTED
from submissions.errors import MethodError
from submissions.explaining.explanation import Explanation, Rankings
from submissions.explaining.places import Places
from submissions.explaining.readings import FileReading, near_rows, of_suite, readings
from submissions.formats import is_transcript, parse_file
from submissions.rank_file.benchmarks import MAX_DEPTH, Benchmarks, queries
from submissions.rank_file.columns import Columns
from submissions.rank_file.content import MAX_BYTES
from submissions.rank_file.model import SECTIONS, TRANSCRIPT
from submissions.rank_file.owners import held_by, known_list, owners_of_images, same_queries, sessions_of
from submissions.validation import check_rankings, report_of

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec
    from submissions.formats import Parsed
    from submissions.formats.native import UncheckedFile
    from submissions.rank_file.benchmarks import BenchmarkLike, FileLike
    from submissions.rank_file.content import Source
    from submissions.rank_file.findings import Findings

_RANGES = ((1, 1), (2, 5), (6, 10), (11, 50), (51, MAX_DEPTH))
"""Where references stand, from and to."""
_ANY_SESSIONS = "shapes/multiturn_val"


def explain(
    file: FileLike, benchmark: BenchmarkLike = None, *, max_bytes: int = MAX_BYTES, name: str | None = None
) -> Explanation:
    """Say what a file holds, valid or not, and its numbers under each reading that it allows.

    Args:
        file: a path, the file's bytes, a `RankFile` or a `RankBundle`.
        benchmark: what it answers, as in `validate`; None: what it says, else the one that has its queries.
        max_bytes: bytes that are read at most.
        name: the file's name in messages, where `file` is bytes.

    Returns:
        The explanation; of a file that cannot be read, with findings alone.

    Raises:
        CallError: `file` or `benchmark` is of none of these types.
        MissingFileError: no file has that name.
        UnknownNameError: `benchmark` is neither a benchmark nor a suite.
        SourceError: the benchmark's own data is not available.

    Example:
        >>> from submissions import make_rank_file
        >>> explain(make_rank_file("shapes/val", "random")).rankings[0].counts["reference_held"]
        0
    """
    if isinstance(file, str | os.PathLike | bytes) and is_transcript(file):
        return _of_transcript(file, benchmark, max_bytes, name)
    benchmarks, parsed = read_any(file, benchmark, max_bytes=max_bytes, name=name)
    ids, parts, form, whole = dict[str, int](), list[Rankings](), "", tuple[FileReading, ...]()
    for unchecked, findings in parsed.files:
        if unchecked is not None:
            form = form or unchecked.kind or unchecked.format
            answering = _answering(unchecked, findings, benchmarks, ids)
            parts += _counted(answering, findings, benchmarks)
            parsed.benchmark = parsed.benchmark if parsed.suite else answering.spec.id
    first = {part.benchmark: part.readings for part in parts if part.section == SECTIONS[0]}
    if parsed.suite is not None and list(first) == list(parsed.suite.benchmarks):
        whole = tuple(of_suite(parsed.suite, list(first.values())))
    numbers = [(part.readings, _printed_for(benchmarks.spec(part.benchmark))) for part in parts]
    near = near_rows([*numbers, (whole, [parsed.benchmark or ""])])
    name, answered, asked = parsed.findings.file, parsed.benchmark, benchmarks.expected or ""
    return Explanation(name, form, answered, asked, ids, report_of(parsed), tuple(parts), whole, near)


def _printed_for(spec: BenchmarkSpec) -> list[str]:
    """The benchmarks whose published rows are looked at: of the same queries, or of another split."""
    members = {member for name in suite_ids() for member in suite(name).benchmarks}
    splits = [f"{spec.card.name}/{name}" for name in spec.card.configs]
    # Members of a suite are its categories, and no splits of one thing.
    return [*dict.fromkeys([*same_queries(spec), *([] if members & {*splits} else splits)])]


def read_any(
    file: FileLike, benchmark: BenchmarkLike, *, max_bytes: int = MAX_BYTES, name: str | None = None
) -> tuple[Benchmarks, Parsed]:
    """A file as far as it can be read, by whichever benchmark reads it; the arguments are `explain`'s."""
    benchmarks = Benchmarks(benchmark)
    benchmarks.infers = True
    return benchmarks, parse_file(file, benchmarks, max_bytes=max_bytes, name=name)


def _of_transcript(file: Source, benchmark: BenchmarkLike, max_bytes: int, name: str | None) -> Explanation:
    """A dialogue by the lists of its rounds, as sessions over the same gallery."""
    from submissions.multiround.sessions import lists_of, session_rows, sessions_spec
    from submissions.transcripts.checking import check_transcript

    checked = check_transcript(file, benchmark, max_bytes=max_bytes, name=name)
    transcript, played, parts = checked.transcript, checked.benchmark, list[Rankings]()
    if transcript is not None and played is not None:
        try:
            spec = sessions_spec(played)
        except MethodError:  # Any form of sessions will do, over the images that were played with.
            spec = benchmark_spec(_ANY_SESSIONS)
        rows = session_rows(transcript, played, spec)
        for row, rounds in zip(rows, transcript.sessions().values(), strict=True):
            for turn, each in zip(row["turns"], rounds, strict=True):
                if each.silent:  # Its list repeats the one before.
                    turn["reference_image_id"] = None
        sessions = Benchmark.from_rows(spec, rows, played.gallery)
        columns = Columns.of_lists(lists_of(transcript), by_turn=True)
        part = _rankings(Places(columns, sessions, queries(sessions).asked[0]), played.spec, unknown=0)
        own = tuple(replace(each, gallery=each.gallery and played.id) for each in part.readings)
        parts = [replace(part, protocol=played.reference_use, readings=own)]
    report, asked = checked.report, benchmark if isinstance(benchmark, str) else ""
    ids = {} if report.benchmark is None else {report.benchmark: report.queries}
    return Explanation(report.file, TRANSCRIPT, report.benchmark, asked, ids, report, tuple(parts))


def _answering(
    unchecked: UncheckedFile, findings: Findings, benchmarks: Benchmarks, ids: dict[str, int]
) -> UncheckedFile:
    """A file with the benchmark that has most of its queries; how many which has is put into `ids`."""
    answers = unchecked.rankings if unchecked.rankings is not None else unchecked.subset_rankings
    spec, asked = unchecked.spec, sessions_of([] if answers is None else answers.names)
    known = len(asked.intersection(benchmarks.load(spec.id).query_ids))
    # Whose they are is asked of all benchmarks only where it is not the one that was named.
    held = held_by(asked, datasets=[spec.card.name] if 2 * known > len(asked) else None)
    # Lists by turn answer no single queries, whoever has the ids: a dialogue's, of rounds that it alone has.
    owner = next((name for name in held if benchmarks.spec(name).kind == spec.kind), spec.id)
    if 2 * known <= len(asked) and held.get(owner, 0) > known:
        findings.add(
            "wrong-benchmark",
            f"{known:,} of its {len(asked):,} queries are of {spec.id}, {held[owner]:,} of {owner}.",
            value=spec.id,
            fix=f"check it against  --benchmark {owner}",
        )
        unchecked = replace(unchecked, spec=benchmarks.spec(owner))
    ids |= {unchecked.spec.id: max(known, held.get(unchecked.spec.id, 0)), **held}
    return unchecked


def _counted(unchecked: UncheckedFile, findings: Findings, benchmarks: Benchmarks) -> Iterator[Rankings]:
    benchmark = benchmarks.load(unchecked.spec.id)
    findings.benchmark = benchmark.id
    check_rankings(unchecked, benchmarks, findings, {}, part=True)
    for asked in queries(benchmark).asked:
        columns: Columns | None = getattr(unchecked, asked.section)
        if columns is not None:
            places = Places(columns, benchmark, asked)
            yield _rankings(places, benchmark.spec, unknown=len(columns) - len(places.columns))


def _rankings(places: Places, spec: BenchmarkSpec, *, unknown: int) -> Rankings:
    columns, benchmark, ids = places.columns, places.benchmark, places.columns.image_ids
    references, outside = places.ranks(places.reference), places.ranks(places.outside)
    lengths = columns.lengths[columns.lengths > 0]
    images = [ids[code] for code in np.unique(columns.codes).tolist()]
    strangers = [ids[code] for code in np.unique(columns.codes[places.outside]).tolist()]
    listed_in, listed = known_list(images, spec)
    ranges = {f"{first}-{last}": (references >= first) & (references <= last) for first, last in _RANGES}
    counts = {
        "queries": len(benchmark),
        "answered": np.count_nonzero(columns.turns if benchmark.multi_turn else columns.lengths),
        "unknown": unknown,
        "lists": len(lengths),
        "shortest": lengths.min(initial=lengths.max(initial=0)),
        "longest": lengths.max(initial=0),
        "short": np.count_nonzero(lengths < places.asked.depth.required),
        "doubled": np.count_nonzero(places.ranks(places.again) != UNLISTED),
        "turns": places.counts.sum() if benchmark.multi_turn else 0,
        "references": np.count_nonzero(places.referring & (columns.lengths > 0)),
        "reference_held": np.count_nonzero(references != UNLISTED),
        "reference_first": np.count_nonzero(references == 1),
        "outside_held": np.count_nonzero(outside != UNLISTED),
        "outside_first": np.count_nonzero(outside == 1),
        "images": len(images),
        "outside": len(strangers),
        "gallery": len(benchmark.gallery or ()),
        "listed": listed,
    }
    return Rankings(
        spec.id,
        places.asked.section,
        benchmark.reference_use,
        benchmark.ground_truth_withheld,
        {name: int(count) for name, count in counts.items()},
        {name: int(found.sum()) for name, found in ranges.items() if found.any()},
        owners_of_images(strangers, spec) if strangers and places.asked.own is None else "",
        listed_in,
        tuple(reading for reading in readings(places) if reading.values),
    )
