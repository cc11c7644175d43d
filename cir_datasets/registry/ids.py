"""From an id such as `cirr/val` to a benchmark without overlay; the overlays resolve theirs with it."""

from __future__ import annotations

from cir_datasets.registry.cards import BenchmarkSpec, benchmark_ids, card, names, no_benchmark
from cir_datasets.registry.suites import suite_ids
from cir_metrics.errors import UnknownNameError


def base_spec(base_id: str) -> BenchmarkSpec:
    """The benchmark of an id without an overlay.

    Raises:
        UnknownNameError: no benchmark has that id; the message names the nearest.

    Example:
        >>> base_spec("cirr/val").config_name
        'val'
    """
    name, _, config_name = base_id.partition("/")
    if name in names() and not config_name:
        choices = ", ".join(f"{name}/{config}" for config in card(name).configs)
        raise UnknownNameError(f"{name!r} names several benchmarks. Fix: choose one of {choices}.")
    if name not in names() or config_name not in card(name).configs:
        raise UnknownNameError(unknown_benchmark(base_id, benchmark_ids()))
    return BenchmarkSpec(card(name), config_name)


def unknown_benchmark(wanted: str, known: tuple[str, ...]) -> str:
    """What is said of an id that no benchmark has; it may be a suite's."""
    if wanted in suite_ids():
        return (
            f"{wanted!r} is a suite, not a benchmark. Fix: name its benchmarks one by one; a bundle of rank "
            "files answers it whole."
        )
    return no_benchmark(wanted, known)
