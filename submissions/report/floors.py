"""Floors: what a random order, the picture alone and the text alone score on the same board."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from cir_datasets.registry.card import main_metric_terms
from cir_metrics.sums import exact_mean, exact_sums

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.report.chance import Chance
    from submissions.report.grouping import Values

FLOOR_NAMES = {"random": "random", "image_only": "image only", "text_only": "text only"}
"""Floors in the order of columns, and how tables call them."""


def random_floor(random: Chance, metrics: Iterable[str]) -> dict[str, float | None]:
    """The expected score of a random order by metric, None where it has no closed form.

    Args:
        random: the random ranker.
        metrics: printed names, with `:variant` behind those that are no default.
    """
    found: dict[str, float | None] = {}
    for metric in metrics:
        name, _, variant = metric.partition(":")
        values = random.values(name, variant or "equation")
        if values is None:
            found[metric] = None
        else:
            found[metric] = float(exact_sums(values)) if name == "censored" else exact_mean(values)
    return found


def recorded_floors(benchmark: Benchmark) -> tuple[dict[str, dict[str, float]], tuple[str, ...]]:
    """The card's floors by method, and notes that name the commands which made them.

    They are given for the rows and the gallery that they were recorded on and for no others.
    """
    card, config = benchmark.spec.card, benchmark.spec.config_name
    recorded = card.floors.get(config)
    if recorded is None:
        return {}, (f"No image-only and text-only floors are recorded for {benchmark.id}.",)
    hashes = (recorded.data_hash, recorded.gallery_hash)
    if benchmark.spec.overlay is not None or (benchmark.data_hash, benchmark.gallery_hash) != hashes:
        other = f"The floors recorded for {card.name}/{config} are of other rows or another gallery"
        return {}, (f"{other} and are left out.",)
    methods = recorded.methods()
    notes = tuple(f"{FLOOR_NAMES[name]}: {floor.command}" for name, floor in methods.items())
    return {name: dict(floor.metrics) for name, floor in methods.items()}, notes


def main_value(expression: str, values: Values) -> float | None:
    """The value of a main-metric expression, None where a term is not known."""
    terms = [values.get(term) for term in main_metric_terms(expression)]
    known = [value for value in terms if value is not None]
    return exact_mean(known) if len(known) == len(terms) else None
