"""Which benchmark or suite a file is checked against: by id, as an object, or several objects by id."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from cir_metrics.errors import CallError

if TYPE_CHECKING:
    from cir_datasets.registry.cards import BenchmarkSpec
    from cir_datasets.registry.suites import Suite
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.rank_file.model import RankBundle, RankFile

    BenchmarkLike = str | Benchmark | Mapping[str, Benchmark] | None
    FileLike = str | os.PathLike[str] | bytes | RankFile | RankBundle


class Benchmarks:
    """Resolves benchmark ids, asking the caller's own objects first, then the registry.

    Args:
        given: an id of a benchmark or a suite, a benchmark, a mapping of benchmarks by id, or None.

    Raises:
        CallError: it is of none of these types.
        UnknownNameError: no benchmark and no suite has that id.
    """

    def __init__(self, given: str | Benchmark | Mapping[str, Benchmark] | None) -> None:
        """See the class."""
        from cir_datasets.rows.benchmark import Benchmark

        self._own: dict[str, Benchmark] = {}
        self.expected: str | None = None
        """The id that a file must answer, or None where the file says."""
        self.suite: Suite | None = None
        """The suite that a bundle must answer, or None."""
        if isinstance(given, str):
            self.expected = given
            self.suite = find_suite(given)
            if self.suite is None:
                self.spec(given)
        elif isinstance(given, Mapping):
            self._own = dict(given)
        elif given is not None and not isinstance(given, Benchmark):
            raise CallError(
                f"benchmark is of type {type(given).__name__}. Fix: pass an id such as 'cirr/val', a "
                "Benchmark, or a mapping of benchmarks by id."
            )
        elif given is not None:
            self._own = {given.id: given}
            self.expected = given.id

    def spec(self, benchmark_id: str) -> BenchmarkSpec:
        """Card and configuration of a benchmark.

        Raises:
            UnknownNameError: no benchmark has that id.
        """
        if benchmark_id in self._own:
            return self._own[benchmark_id].spec
        from cir_datasets.registry import spec

        return spec(benchmark_id)

    def load(self, benchmark_id: str) -> Benchmark:
        """The benchmark with its rows.

        Raises:
            CirError: it is not known, or its data is not at hand.
        """
        if benchmark_id in self._own:
            return self._own[benchmark_id]
        import cir_datasets

        loaded: Benchmark = cir_datasets.load(benchmark_id)
        self._own[benchmark_id] = loaded
        return loaded


def find_suite(suite_id: str) -> Suite | None:
    """The suite of that id, or None."""
    from cir_datasets.registry.suites import suite, suite_ids

    return suite(suite_id) if suite_id in suite_ids() else None
