"""What stands at each place of a file's rankings: the reference, an outsider, an image that stood before.

Validation says whether a file may have these; here they are found and taken out, whatever they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cir_datasets.rows import numbers
from cir_metrics.sums import UNLISTED
from submissions.rank_file.benchmarks import image_family
from submissions.rank_file.columns import Columns
from submissions.validation import strange_places

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from cir_metrics.sums import BoolArray, IntArray
    from submissions.rank_file.benchmarks import AskedLists


class Places:
    """The places of rankings, all of them one after the other; marks of them have the shape (n_places,).

    Args:
        columns: a file's rankings; those of queries that the benchmark does not have are left out.
        benchmark: what they answer.
        asked: which of its rankings these are.

    Attributes:
        columns: the rankings that are left, in the benchmark's order.
        owners: the ranking of each place.
        counts: rankings that each query or session wants.
        rankings: the ranking of each query or turn, as `Benchmark.references` has them; -1 for none.
        referring: marks rankings whose query or turn has a reference, shape (n_rankings,).
        reference: marks where the reference of the place's own query or turn stands.
        strange: marks images that the query does not rank.
        outside: these without the reference, where each query has a list of its own.
        again: marks images that stood further up in the same ranking.
    """

    def __init__(self, columns: Columns, benchmark: Benchmark, asked: AskedLists) -> None:
        """See the class."""
        self.benchmark, self.asked = benchmark, asked
        self.columns = columns = columns.picked([name for name in benchmark.query_ids if name in columns])
        self.owners = np.repeat(np.arange(len(columns.lengths)), columns.lengths)
        self.counts = np.array(list(asked.references.turns.values()))
        at, wanted = asked.references.places(columns), asked.references.array
        self.rankings = np.full(self.counts.sum(), -1)
        self.rankings[at[at >= 0]] = np.flatnonzero(at >= 0)
        self.referring = np.append(numbers(wanted.is_valid().cast("uint8")) > 0, False)[at]
        self.reference: BoolArray = columns.codes == asked.references.codes(columns)[self.owners]
        self.strange: BoolArray = strange_places(columns, asked, image_family(benchmark.spec))
        # A list of the query's own may lack the reference because it is not to be ranked.
        self.outside = self.strange if asked.own is None else self.strange & ~self.reference
        self.again: BoolArray = columns.repeated

    def ranks(self, marks: BoolArray) -> IntArray:
        """The first marked place of each ranking, from 1; `UNLISTED` where none is marked."""
        found = np.full(len(self.columns.lengths), UNLISTED, dtype=np.int64)
        owners, first = np.unique(self.owners[marks], return_index=True)
        found[owners] = np.flatnonzero(marks)[first] - self.columns.offsets[owners] + 1
        return found

    def without(self, marks: BoolArray) -> Columns:
        """The rankings without the marked places; what stood behind moves up."""
        columns, before = self.columns, np.concatenate([[0], np.cumsum(~marks, dtype=np.int64)])
        return columns.with_codes(columns.codes[~marks], before[columns.offsets])

    def backwards(self) -> Places:
        """The same lists, the last image first."""
        columns, offsets = self.columns, self.columns.offsets
        order = (offsets[:-1] + offsets[1:] - 1)[self.owners] - np.arange(len(columns.codes))
        return Places(columns.with_codes(columns.codes[order], offsets), self.benchmark, self.asked)
