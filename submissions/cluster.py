"""Work on parts of something on the machines of a Ray cluster, with the same results as in one process."""

from __future__ import annotations

import functools
import logging
import os
import pickle
import socket
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from cir_metrics.errors import CallError, CirError, UnknownNameError, did_you_mean
from submissions.encoders.extras import needs_ray
from submissions.errors import SubmissionError

ENGINES = ("local", "ray")
_OPTIONS = {
    "address": "--address",
    "workers": "--max-workers",
    "cpus": "--cpus-per-worker",
    "gpus": "--gpus-per-worker",
}
_In = TypeVar("_In")
_Out = TypeVar("_Out")
_ANSWER_SECONDS = 10
_AHEAD = 4
"""Parts that wait for each processor."""
_MOST_AHEAD = 200
"""Parts; the claim of a part may be an open file, and a process may open a thousand or fewer."""


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
        retries: how often a part is begun anew after its worker died, 0 or more.
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
        yield decided(cluster, [node["Resources"] for node in nodes() if node["Alive"]])
    finally:
        if ours:
            ray.shutdown()


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


def cluster_of(engine: str, address: str | None, **more: Any) -> Cluster | None:
    """The cluster that `--engine` and `--address` name, or None where a stage is made in this process.

    Args:
        engine: `local` or `ray`.
        address: `auto` or host:port; None begins a cluster on this machine.
        more: what else a `Cluster` takes; None is its default.

    Raises:
        UnknownNameError: `engine` is neither of the two.
        CallError: an address without a cluster.
        MissingExtraError: Ray is not installed.

    Example:
        >>> cluster_of("local", None) is None
        True
    """
    if engine not in ENGINES:
        raise UnknownNameError(
            f"no engine {engine!r}.{did_you_mean(engine, ENGINES)} Fix: use {' or '.join(ENGINES)}."
        )
    options = {"address": address, **more}
    sized = {name: value for name, value in options.items() if value is not None}
    if engine == "local":
        if sized:
            names = ", ".join(_OPTIONS[name] for name in sized)
            raise CallError(f"{names}: of a Ray cluster. Fix: add --engine ray, or leave it out.")
        return None
    needs_ray("--engine ray")
    return Cluster(**sized)


def engine_of(engine: str, address: str | None) -> RayEngine | None:
    """Where the chunks of a stage are worked on; None is this process. See `cluster_of`."""
    cluster = cluster_of(engine, address)
    return None if cluster is None else RayEngine(cluster)


class Anew:
    """Something that each worker makes for itself, once: models and their connections are not carried there.

    Here it is what was made here; a worker that it is sent to has what `make` gives.

    Args:
        here: what was made here.
        make: makes it anew; can be pickled.

    Example:
        >>> pickle.loads(pickle.dumps(Anew([1, 2], functools.partial(list, (3, 4)))))
        [3, 4]
        >>> Anew([1, 2], list).count(1)
        1
    """

    def __init__(self, here: Any, make: Callable[[], Any]) -> None:
        """See the class."""
        self._here = here
        self._make = make

    def __getattr__(self, name: str) -> Any:
        """Whatever the thing that was made here has."""
        return getattr(self._here, name)

    def __reduce__(self) -> tuple[Any, ...]:
        """As a call that makes it."""
        return made_once, (pickle.dumps(self._make),)


@functools.lru_cache(maxsize=8)
def made_once(make: bytes) -> Any:
    """What a pickled function makes; a process calls it once."""
    return pickle.loads(make)()


class RayEngine:
    """Works on parts on the machines of a cluster: the chunks of a stage, the shards of a gallery.

    Args:
        cluster: where, and what a part takes.
        named: what a message calls a part.
    """

    def __init__(self, cluster: Cluster, named: Callable[[int], str] = "part {}".format) -> None:
        """See the class."""
        self._cluster = cluster
        self._named = named

    def map(
        self, work: Callable[[_In], _Out], parts: Iterable[tuple[int, _In]]
    ) -> Iterator[tuple[int, _Out]]:
        """Each part's number and result, as they come; parts are taken as workers get free.

        Raises:
            MissingExtraError: Ray is not installed.
            CirError: a part raised it on its worker.
            SubmissionError: workers died at a part more often than it is begun anew.
        """
        needs_ray("work on many machines")
        import ray

        shared = ray.is_initialized()
        with connected(self._cluster) as decided:
            resources: Any = ray.cluster_resources
            most = decided.workers or min(_MOST_AHEAD, max(1, int(resources().get("CPU", 1))) * _AHEAD)
            begun: Any = ray.remote(_Begun).options(num_cpus=0, max_restarts=-1, max_task_retries=-1).remote()
            # By our own count: Ray itself begins anew without end what a lack of memory kills. Workers that
            # hold a GPU keep their models as the others do.
            remote: Any = ray.remote(
                num_cpus=decided.cpus, num_gpus=decided.gpus or 0, max_retries=-1, max_calls=0
            )(_worked)
            running: dict[Any, int] = {}
            waiting = iter(parts)
            try:
                while True:
                    while len(running) < most and (following := next(waiting, None)) is not None:
                        number, part = following
                        place = number, self._named(number), decided.retries
                        running[remote.remote(work, part, begun, *place)] = number
                    if not running:
                        return
                    (done,), _ = ray.wait(list(running), num_returns=1)
                    result, error = ray.get(done)
                    if error is not None:
                        raise error
                    yield running.pop(done), result
            finally:
                # A connection of our own ends with the block, and its tasks with it. Not by force: Ray ends
                # this process where a task that it kills gets ready meanwhile.
                for left in running if shared else ():
                    ray.cancel(left)


class _Begun:
    """Counts how often each part was begun."""

    def __init__(self) -> None:
        self._times: Counter[int] = Counter()

    def begin(self, number: int) -> int:
        self._times[number] += 1
        return self._times[number]


def _worked(
    work: Callable[[Any], Any], part: Any, begun: Any, number: int, named: str, retries: int
) -> tuple[Any, CirError | None]:
    """The result, or the error that a user is to read; Ray would wrap it."""
    import ray

    times = ray.get(begun.begin.remote(number))
    if times > retries + 1:
        return None, SubmissionError(
            f"a worker died {times - 1:,} times at {named}, perhaps for want of memory. Finished parts are "
            "kept. Fix: run the same again, with smaller batches or more of a machine for each worker."
        )
    try:
        return work(part), None
    except CirError as error:
        return None, error
