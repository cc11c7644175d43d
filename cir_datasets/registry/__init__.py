"""What exists: cards, suites, overlays, caption rules; `spec` resolves ids such as `cirr/val`.

An id such as `cirr/val+shortcut_free` is a benchmark with a registered overlay on it (see `overlay_files`).
"""

from __future__ import annotations

from cir_datasets.registry.cards import IMAGES_SUFFIX, BenchmarkSpec, benchmark_ids, card, names
from cir_datasets.registry.ids import base_spec, unknown_benchmark
from cir_datasets.registry.suites import members_of
from cir_metrics.errors import UnknownNameError

__all__ = ["IMAGES_SUFFIX", "BenchmarkSpec", "benchmark_ids", "card", "members_of", "names", "spec"]


def spec(benchmark_id: str) -> BenchmarkSpec:
    """The benchmark of an id: `cirr/val`, or `cirr/val+shortcut_free` where that overlay is registered.

    Raises:
        UnknownNameError: no benchmark has that id; the message names the nearest.
        OverlayError: the overlay's file is malformed, or was made for another version of the benchmark.

    Example:
        >>> spec("cirr/val").config.queries
        4181
    """
    if not isinstance(benchmark_id, str):
        raise UnknownNameError(
            f"{benchmark_id!r} is not a benchmark id. Fix: pass a string such as 'cirr/val'."
        )
    base_id, plus, overlay_name = benchmark_id.partition("+")
    base = base_spec(base_id)
    if not plus:
        return base
    from cir_datasets.registry import overlay_files

    overlay = overlay_files.registered(base, overlay_name)
    if overlay is None:
        fix = "Fix: register it with `cir datasets overlay add FILE`."
        raise UnknownNameError(f"{unknown_benchmark(benchmark_id, overlay_files.overlay_ids())} {fix}")
    return BenchmarkSpec(base.card, base.config_name, overlay)
