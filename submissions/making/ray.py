"""Chunks of a stage on a Ray cluster, with the same bytes as in one process."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from cir_metrics.errors import CallError, CirError, UnknownNameError, did_you_mean
from submissions.embeddings.ray_cluster import Cluster, connected
from submissions.encoders.extras import needs_ray
from submissions.errors import SubmissionError

_In = TypeVar("_In")
_Out = TypeVar("_Out")
_ENGINES = ("local", "ray")
_AHEAD = 4
"""Chunks that wait for each processor."""


def cluster_of(engine: str, address: str | None) -> Cluster | None:
    """The cluster that `--engine` and `--address` name, or None where a stage is made in this process.

    Args:
        engine: `local` or `ray`.
        address: `auto` or host:port; None begins a cluster on this machine.

    Raises:
        UnknownNameError: `engine` is neither of the two.
        CallError: an address without a cluster.
        MissingExtraError: Ray is not installed.

    Example:
        >>> cluster_of("local", None) is None
        True
    """
    if engine not in _ENGINES:
        raise UnknownNameError(
            f"no engine {engine!r}.{did_you_mean(engine, _ENGINES)} Fix: use {' or '.join(_ENGINES)}."
        )
    if engine == "local":
        if address is not None:
            raise CallError("--address: of a Ray cluster. Fix: add --engine ray, or leave it out.")
        return None
    needs_ray("--engine ray")
    return Cluster(address=address)


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
        return _made, (pickle.dumps(self._make),)


@functools.lru_cache(maxsize=8)
def _made(make: bytes) -> Any:
    return pickle.loads(make)()


class RayEngine:
    """Works on the chunks of a stage on the machines of a cluster.

    Args:
        cluster: where, and what a chunk takes.
    """

    def __init__(self, cluster: Cluster) -> None:
        """See the class."""
        self._cluster = cluster

    def map(
        self, work: Callable[[_In], _Out], chunks: Iterable[tuple[int, _In]]
    ) -> Iterator[tuple[int, _Out]]:
        """Each chunk's number and result, as they come.

        Raises:
            MissingExtraError: Ray is not installed.
            CirError: a chunk raised it on its worker.
            SubmissionError: workers died at a chunk more often than it is begun anew.
        """
        needs_ray("making a stage on many machines")
        import ray

        with connected(self._cluster) as decided:
            resources: Any = ray.cluster_resources
            ahead = max(1, int(resources().get("CPU", 1))) * _AHEAD
            remote: Any = ray.remote(
                num_cpus=decided.cpus, num_gpus=decided.gpus or 0, max_retries=decided.retries
            )(_caught)
            running: dict[Any, int] = {}
            waiting = iter(chunks)
            while True:
                while len(running) < (decided.workers or ahead):
                    following = next(waiting, None)
                    if following is None:
                        break
                    running[remote.remote(work, following[1])] = following[0]
                if not running:
                    return
                (done,), _ = ray.wait(list(running), num_returns=1)
                number = running.pop(done)
                try:
                    result, error = ray.get(done)
                except ray.exceptions.RayError as lost:
                    raise SubmissionError(
                        f"a worker died {decided.retries + 1} times at part {number}, perhaps for want of "
                        "memory. Finished parts are kept. Fix: run the same again, with more memory for each "
                        "worker."
                    ) from lost
                if error is not None:
                    raise error
                yield number, result


def _caught(work: Callable[[Any], Any], chunk: Any) -> tuple[Any, CirError | None]:
    """The result, or the error that a user is to read; Ray would wrap it."""
    try:
        return work(chunk), None
    except CirError as error:
        return None, error
