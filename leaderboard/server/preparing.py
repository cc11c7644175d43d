"""Benchmarks that a server prepares by itself when it starts, in the background.

A host without a command line (a Space) names them in `CIR_PREPARE`; a board takes files as soon as its data
is there. What is not public comes from a dataset repository of the host.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from cir_datasets.common.paths import challenge_home
from cir_datasets.errors import DatasetError
from cir_metrics.errors import CirError
from leaderboard.boards import organisers_folder
from leaderboard.errors import ServeError
from leaderboard.settings import HUB_DATASETS

log = logging.getLogger("leaderboard.preparing")

_AGAIN_SECONDS = 600.0
"""Seconds before what failed is tried again."""
_TAKEN = ("data", "challenges", "boards")
"""Folders of a host's repository that are fetched: a sealed ground truth lies beside them and stays there."""


@dataclass(frozen=True)
class ToPrepare:
    """What is prepared.

    Args:
        name: a benchmark, a suite, or `hf://datasets/OWNER/NAME`.
        state: how far it is.
        message: why it failed; empty otherwise.
    """

    name: str
    state: Literal["waiting", "preparing", "ready", "failed"] = "waiting"
    message: str = ""


class Preparing:
    """Prepares what its settings name, one after the other; what fails is tried again later.

    Args:
        names: of benchmarks and suites; repositories of the host, as `hf://datasets/OWNER/NAME`.
        home: of the leaderboard; what is fetched from repositories lies below it.
    """

    def __init__(self, names: Sequence[str], home: Path) -> None:
        """Nothing is prepared before `start`."""
        # What a repository has is there before the benchmarks that need it.
        ordered = sorted(names, key=lambda name: not name.startswith(HUB_DATASETS))
        self._steps = {name: ToPrepare(name) for name in ordered}
        self._fetched = home / "prepared"
        self._stopped = threading.Event()

    def start(self) -> None:
        """Begin in a thread that does not hold the process up."""
        if self._steps:
            threading.Thread(target=self._run, name="preparing", daemon=True).start()

    def stop(self) -> None:
        """Begin nothing more."""
        self._stopped.set()

    @property
    def steps(self) -> tuple[ToPrepare, ...]:
        """What is prepared, in order."""
        return tuple(self._steps.values())

    def view(self) -> list[dict[str, Any]]:
        """The same as JSON values, for `health`."""
        return [asdict(step) for step in self.steps]

    def _run(self) -> None:
        while not self._stopped.is_set():
            for name in [step.name for step in self.steps if step.state != "ready"]:
                if not self._stopped.is_set():
                    self._one(name)
            if all(step.state == "ready" for step in self.steps):
                return
            self._stopped.wait(_AGAIN_SECONDS)

    def _one(self, name: str) -> None:
        self._steps[name] = ToPrepare(name, "preparing")
        begun = time.monotonic()
        try:
            self._fetch(name) if name.startswith(HUB_DATASETS) else self._prepare(name)
        except CirError as error:
            log.error("CIR_PREPARE: %s: %s", name, error)
            # Its first line says what; paths and steps behind it are for the log.
            self._steps[name] = ToPrepare(name, "failed", str(error).partition("\n")[0])
        except Exception:
            log.exception("CIR_PREPARE: %s", name)
            self._steps[name] = ToPrepare(name, "failed", "the server's log says why.")
        else:
            log.warning("CIR_PREPARE: %s is ready after %.0f s", name, time.monotonic() - begun)
            self._steps[name] = ToPrepare(name, "ready")

    def _prepare(self, name: str) -> None:
        """Prepare from the host's files where they have the benchmark, else from its publisher.

        Raises:
            DatasetError: neither has it, or it is damaged.
            UnknownNameError: there is no such benchmark.
        """
        from cir_datasets.huggingface.prepare_all import prepare_all

        def prepare(root: Path | None) -> None:
            for _ in prepare_all([name], root, None, force=False, hub_cache=False, say=log.error):
                pass

        data = self._fetched / "data"
        try:
            prepare(data if data.is_dir() else None)
        except DatasetError:
            if not data.is_dir():
                raise
            prepare(None)

    def _fetch(self, address: str) -> None:
        """Fetch what a repository of the host holds: publishers' files, challenges, boards.

        Raises:
            ServeError: the Hub refused or could not be reached.
        """
        from huggingface_hub import snapshot_download

        from cir_datasets.publishing.hub import hub_push

        repository = address.removeprefix(HUB_DATASETS)
        with hub_push(f"datasets/{repository}", _refused) as there:
            there.step = "reading its files"
            snapshot_download(
                repository,
                repo_type="dataset",
                endpoint=there.api.endpoint,
                local_dir=self._fetched,
                allow_patterns=[f"{folder}/*" for folder in _TAKEN],
            )
        # Challenges first: a board names one.
        for folder, place in (("challenges", challenge_home()), ("boards", organisers_folder())):
            if (self._fetched / folder).is_dir():
                shutil.copytree(self._fetched / folder, place, dirs_exist_ok=True)


_refused: Callable[[str], CirError] = ServeError
