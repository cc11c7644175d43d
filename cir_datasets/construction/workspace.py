"""The folder of a construction: its stages, and the benchmark that they end in."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from cir_datasets.common.stages import Stages
from cir_datasets.errors import ConstructionError
from cir_datasets.registry.folders import CARD_FILE

BENCHMARK = "benchmark"
"""Folder of the result, in that of the run."""


class Workspace(Stages):
    """The folder of one run of a pipeline, as `Stages` describes it."""

    error = ConstructionError
    call_error = ConstructionError
    noun = "run of `cir make`"
    anew = "run `cir make again {folder} --from {stage}`, which makes it anew"
    taken = " `cir make again {folder} --from {stage}` takes your changes."

    def _half_written(self) -> Iterable[Path]:
        # Pages and pictures of tasks, too: the folder is this run's alone.
        return sorted(self.folder.rglob(f".*-{'[0-9a-f]' * 8}"))

    def _results(self) -> Iterable[Path]:
        # Without its card a folder is not a benchmark: nobody takes the old result for the new one.
        return sorted(self.folder.glob(f"*/{CARD_FILE}"))
