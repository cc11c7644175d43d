"""`explain`: what any file that can be read says, valid or not, and its numbers under each reading.

Validation refuses the files in which a field's errors live: a reference that was left in, images of another
split, a list of all categories. Here such a file is read by the same readers within the same bounds, what is
odd about it is counted, and the numbers are given for each way in which it may be meant.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from cir_metrics.sums import UNLISTED
from submissions.explaining.explanation import Explanation, Rankings
from submissions.explaining.near import near_rows
from submissions.explaining.places import Places
from submissions.explaining.readings import readings
from submissions.formats import parse_file
from submissions.formats.content import MAX_BYTES
from submissions.rank_file.benchmarks import MAX_DEPTH, Benchmarks, queries
from submissions.rank_file.owners import held_by, known_list, owners_of_images, same_queries, sessions_of
from submissions.validation import check_rankings, report_of

if TYPE_CHECKING:
    from submissions.formats.native import UncheckedFile
    from submissions.rank_file.benchmarks import BenchmarkLike, FileLike
    from submissions.rank_file.columns import Columns
    from submissions.rank_file.findings import Findings

_RANGES = ((1, 1), (2, 5), (6, 10), (11, 50), (51, MAX_DEPTH))
"""Where references stand, from and to."""


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
    benchmarks = Benchmarks(benchmark)
    benchmarks.infers = True
    parsed = parse_file(file, benchmarks, max_bytes=max_bytes, name=name)
    found: list[tuple[UncheckedFile, Findings, dict[str, int]]] = []
    for unchecked, findings in parsed.files:
        if unchecked is not None:
            found.append(_answering(unchecked, findings, benchmarks))
    counted = [each for one in found for each in _counted(*one[:2], benchmarks)]
    if parsed.suite is None and found:
        parsed.benchmark = found[0][0].spec.id
    ids: dict[str, int] = {}
    for _, _, held in found:
        ids.update(held)
    own = {name for unchecked, _, _ in found for name in same_queries(unchecked.spec)}
    return Explanation(
        file=parsed.findings.file,
        format=found[0][0].format if found else "",
        benchmark=parsed.benchmark,
        asked=benchmarks.expected or "",
        ids=ids,
        report=report_of(parsed),
        rankings=tuple(counted),
        near=near_rows([reading for each in counted for reading in each.readings], own),
    )


def _answering(
    unchecked: UncheckedFile, findings: Findings, benchmarks: Benchmarks
) -> tuple[UncheckedFile, Findings, dict[str, int]]:
    """A file with the benchmark that has most of its queries, and how many which has."""
    answers = unchecked.rankings if unchecked.rankings is not None else unchecked.subset_rankings
    ids = [] if answers is None else answers.names
    spec, asked = unchecked.spec, sessions_of(ids)
    known = len(asked.intersection(benchmarks.load(spec.id).query_ids))
    # Whose they are is asked of all benchmarks only where it is not the one that was named.
    held = held_by(asked, datasets=[spec.card.name] if 2 * known > len(asked) else None)
    owner = next(iter(held), spec.id)
    if 2 * known <= len(asked) and held.get(owner, 0) > known:
        findings.add(
            "wrong-benchmark",
            f"{known:,} of its {len(asked):,} queries are of {spec.id}, {held[owner]:,} of {owner}.",
            value=spec.id,
            fix=f"check it against  --benchmark {owner}",
        )
        unchecked = replace(unchecked, spec=benchmarks.spec(owner))
    held = {unchecked.spec.id: max(known, held.get(unchecked.spec.id, 0)), **held}
    return unchecked, findings, held


def _counted(unchecked: UncheckedFile, findings: Findings, benchmarks: Benchmarks) -> Iterator[Rankings]:
    benchmark = benchmarks.load(unchecked.spec.id)
    findings.benchmark = benchmark.id
    check_rankings(unchecked, benchmarks, findings, {}, part=True)
    for asked in queries(benchmark).asked:
        columns: Columns | None = getattr(unchecked, asked.section)
        if columns is not None:
            places = Places(columns, benchmark, asked)
            yield _rankings(places, unknown=len(columns) - len(places.columns))


def _rankings(places: Places, *, unknown: int) -> Rankings:
    columns, benchmark, ids = places.columns, places.benchmark, places.columns.image_ids
    references, outside = places.ranks(places.reference), places.ranks(places.outside)
    lengths = columns.lengths[columns.lengths > 0]
    images = [ids[code] for code in np.unique(columns.codes).tolist()]
    strangers = [ids[code] for code in np.unique(columns.codes[places.outside]).tolist()]
    listed_in, listed = known_list(images, benchmark.spec)
    ranges = {f"{first}-{last}": (references >= first) & (references <= last) for first, last in _RANGES}
    counts = {
        "queries": len(benchmark),
        "answered": np.count_nonzero(columns.turns),
        "unknown": unknown,
        "lists": len(lengths),
        "shortest": lengths.min(initial=lengths.max(initial=0)),
        "longest": lengths.max(initial=0),
        "short": np.count_nonzero(lengths < places.asked.depth.required),
        "doubled": np.count_nonzero(places.ranks(places.again) != UNLISTED),
        "references": np.count_nonzero(places.references >= -1),
        "reference_held": np.count_nonzero(references != UNLISTED),
        "reference_first": np.count_nonzero(references == 1),
        "outside_held": np.count_nonzero(outside != UNLISTED),
        "outside_first": np.count_nonzero(outside == 1),
        "images": len(images),
        "outside": len(strangers),
        "listed": listed,
    }
    return Rankings(
        benchmark.id,
        places.asked.section,
        benchmark.reference_use,
        benchmark.ground_truth_withheld,
        {name: int(count) for name, count in counts.items()},
        {name: int(found.sum()) for name, found in ranges.items() if found.any()},
        owners_of_images(strangers, benchmark.spec) if strangers else "",
        listed_in,
        tuple(readings(places)),
    )
