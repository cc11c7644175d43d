"""Ray clusters: connecting to one, or starting one on this machine, for the length of a block."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from cir_metrics.errors import CallError

_ANSWER_SECONDS = 10
_READERS = ("iter_threaded", "StreamingExecutor", "ray-data-metadata-prefetch")
_READERS_SECONDS = 60


@dataclass(frozen=True)
class Cluster:
    """Where workers run, and what each takes.

    Args:
        address: of a running Ray cluster (`auto` on one of its machines, or `host:port`); None starts one on
            this machine alone for the length of the call. Where this process is connected to Ray already,
            that connection is used.
        workers: at most so many at a time, 1 or more; None is as many as the cluster has room for.
        cpus: processors of a worker, above 0; also the threads of its model.
        gpus: GPUs of a worker, 0 or more, a fraction where several share one; None is 1 where the cluster has
            any, else 0.
        retries: how often a shard is begun anew after its worker died, 0 or more.
    """

    address: str | None = None
    workers: int | None = None
    cpus: float = 1
    gpus: float | None = None
    retries: int = 3

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            CallError: a number is out of range, or the address is of Ray's client protocol.
        """
        if (self.workers is not None and self.workers < 1) or self.cpus <= 0 or self.retries < 0:
            raise CallError(
                f"workers={self.workers}, cpus={self.cpus}, retries={self.retries}; workers are 1 or more, "
                "cpus above 0, retries 0 or more."
            )
        if self.gpus is not None and self.gpus < 0:
            raise CallError(f"gpus={self.gpus}; a worker's GPUs are 0 or more.")
        if self.address is not None and self.address.startswith("ray://"):
            raise CallError(
                f"{self.address}: Ray's client protocol cannot carry this. Fix: run on a machine of the "
                "cluster, with --address auto."
            )


@contextmanager
def connected(cluster: Cluster) -> Iterator[Cluster]:
    """Connect to a cluster for the length of the block, and yield it with what a worker takes, decided.

    Raises:
        CallError: no cluster answers, or none of its machines has room for a worker.
    """
    import ray

    ours = not ray.is_initialized()
    if ours:
        _connect(cluster.address)
    try:
        nodes: Any = ray.nodes
        with _quiet_data():
            yield decided(cluster, [node["Resources"] for node in nodes() if node["Alive"]])
    finally:
        if ours:
            _wait_for_readers()
            ray.shutdown()


def _wait_for_readers() -> None:
    """Wait until Ray Data's threads have let go of what they read.

    They outlive a loop that ends early, as on an error. Ray ends the whole process, without a word of that
    error, when one of them lets go after Ray has been shut down.
    """
    until = time.monotonic() + _READERS_SECONDS
    for thread in threading.enumerate():
        if thread.name.startswith(_READERS):
            thread.join(max(0.0, until - time.monotonic()))


def _connect(address: str | None) -> None:
    import ray

    # A suite that scores files sends no word to others.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address is None:
        options["include_dashboard"] = False
    try:
        host, _, port = (address or "").rpartition(":")
        if host:
            # Ray itself asks a machine that does not answer for minutes.
            socket.create_connection((host, int(port)), timeout=_ANSWER_SECONDS).close()
        ray.init(address=address or "local", **options)
    except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        # Ray puts tracebacks into its messages; what was wrong comes last.
        reason = (str(error).strip() or type(error).__name__).splitlines()[-1]
        raise CallError(
            f"no Ray cluster can be had at {address or 'this machine'}: {reason} Fix: start one (docs/"
            "encoders.md), with the same versions of Python and Ray and the same token everywhere, or "
            "leave the address out."
        ) from error


def decided(cluster: Cluster, machines: Sequence[Mapping[str, float]]) -> Cluster:
    """The cluster with a number of GPUs a worker; refused where no machine has room for one."""
    gpus = cluster.gpus
    if gpus is None:
        gpus = 1 if any(machine.get("GPU", 0) >= 1 for machine in machines) else 0
    if not any(
        machine.get("CPU", 0) >= cluster.cpus and machine.get("GPU", 0) >= gpus for machine in machines
    ):
        have = ", ".join(f"{machine.get('CPU', 0):g} and {machine.get('GPU', 0):g}" for machine in machines)
        raise CallError(
            f"a worker is to have {cluster.cpus:g} processors and {gpus:g} GPUs, and no machine of the "
            f"cluster has so many; they have {have}. Fix: ask for less, or add machines."
        )
    return replace(cluster, gpus=gpus)


@contextmanager
def _quiet_data() -> Iterator[None]:
    """Keep Ray Data's own bars and plans off the screen: ours shows images."""
    from ray.data import DataContext

    context, log = DataContext.get_current(), logging.getLogger("ray.data")
    bars, level = context.enable_progress_bars, log.level
    context.enable_progress_bars = False
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        context.enable_progress_bars = bars
        log.setLevel(level)
