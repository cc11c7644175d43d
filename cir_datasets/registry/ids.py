"""From an id such as `cirr/val` to a benchmark without overlay; the overlays resolve theirs with it."""

from __future__ import annotations

from cir_datasets.registry.cards import BenchmarkSpec, benchmark_ids, card, names, no_benchmark
from cir_datasets.registry.suites import find_suite, suite_ids, suites_of
from cir_metrics.errors import UnknownNameError


def base_spec(base_id: str) -> BenchmarkSpec:
    """The benchmark of an id without an overlay.

    Raises:
        UnknownNameError: no benchmark has that id; the message names the nearest.
        CardError: its card is malformed, or two benchmarks have that name.

    Example:
        >>> base_spec("cirr/val").config_name
        'val'
    """
    name, _, config_name = base_id.partition("/")
    found = card(name) if name in names() else None
    if found is None:
        from cir_datasets.registry.challenges import CONFIG, challenge_card, challenge_names

        found = challenge_card(name)
    if found is None:
        challenges = (f"{challenge}/{CONFIG}" for challenge in challenge_names())
        raise UnknownNameError(unknown_benchmark(base_id, (*benchmark_ids(), *suite_ids(), *challenges)))
    if not config_name:
        raise UnknownNameError(_several(name, [f"{name}/{config}" for config in found.configs]))
    if config_name not in found.configs:
        raise UnknownNameError(unknown_benchmark(base_id, (*benchmark_ids(), *suite_ids())))
    return BenchmarkSpec(found, config_name)


def unknown_benchmark(wanted: str, known: tuple[str, ...]) -> str:
    """What is said of an id that no benchmark has; it may be a suite's."""
    suite = find_suite(wanted)
    if suite is not None:
        members = suite.benchmarks
        return (
            f"{wanted!r} is a suite of {len(members)} benchmarks, and one benchmark is wanted here. "
            f"Fix: name its members one at a time: {', '.join(members)}."
        )
    return no_benchmark(wanted, known)


def _several(name: str, benchmarks: list[str]) -> str:
    """What is said of a name where an id is wanted."""
    said = f"{name!r} names several benchmarks. Fix: choose one of {', '.join(benchmarks)}."
    suites = suites_of(benchmarks)
    if not suites:
        return said
    return f"{said} Suites of them, where a suite is taken: {', '.join(suites)}."
