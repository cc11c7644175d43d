"""The benchmarks that exist: reads `cards/*.yaml` and resolves ids such as `cirr/val`."""

from __future__ import annotations

import difflib
import functools
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Literal

from cir_datasets.errors import CardError
from cir_metrics.errors import UnknownNameError

if TYPE_CHECKING:
    from cir_datasets.card import Card, Config

IMAGES_SUFFIX = "_images"
"""`<config>_images` is the configuration that holds the gallery of `<config>`."""


@dataclass(frozen=True)
class BenchmarkSpec:
    """A benchmark's card together with one of its configurations."""

    card: Card
    config_name: str

    @property
    def config(self) -> Config:
        """The configuration's own part of the card."""
        return self.card.configs[self.config_name]

    @property
    def id(self) -> str:
        """The benchmark id, `name/config`."""
        return f"{self.card.name}/{self.config_name}"

    @property
    def kind(self) -> Literal["single_turn", "multi_turn"]:
        """Whether a row is a query or a session."""
        if self.card.kind == "mixed":
            return "multi_turn" if self.config_name.startswith("multiturn_") else "single_turn"
        return self.card.kind

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics that the benchmark's board shows."""
        mixed = self.card.kind == "mixed" and self.kind == "multi_turn"
        return self.card.multi_turn_metrics if mixed else self.card.metrics

    @property
    def main_metric(self) -> str:
        """The metric that ranks, or `mean(a, b)`."""
        mixed = self.card.kind == "mixed" and self.kind == "multi_turn"
        return (self.card.multi_turn_main_metric or "") if mixed else self.card.main_metric


def names() -> tuple[str, ...]:
    """Names of all registered benchmarks, sorted."""
    folder = resources.files("cir_datasets") / "cards"
    return tuple(
        sorted(entry.name.removesuffix(".yaml") for entry in folder.iterdir() if entry.name.endswith(".yaml"))
    )


@functools.cache
def card(name: str) -> Card:
    """The card of a benchmark.

    Raises:
        UnknownNameError: no benchmark has that name.
        CardError: the card is malformed.
    """
    import yaml
    from pydantic import ValidationError

    from cir_datasets.card import Card

    if name not in names():
        raise UnknownNameError(_unknown(name, names()))
    text = (resources.files("cir_datasets") / "cards" / f"{name}.yaml").read_text(encoding="utf-8")
    try:
        found = Card.model_validate(yaml.safe_load(text))
    except (ValidationError, yaml.YAMLError) as error:
        raise CardError(f"cards/{name}.yaml: {error}") from error
    if found.name != name:
        raise CardError(f"cards/{name}.yaml: its name is {found.name!r}; name the file after the benchmark.")
    return found


def benchmark_ids() -> tuple[str, ...]:
    """Ids of all registered benchmarks, `name/config`, in card order."""
    return tuple(f"{name}/{config}" for name in names() for config in card(name).configs)


def spec(benchmark_id: str) -> BenchmarkSpec:
    """The benchmark of an id such as `cirr/val`.

    Raises:
        UnknownNameError: no benchmark has that id; the message names the nearest.

    Example:
        >>> spec("cirr/val").config.queries
        4181
    """
    name, _, config_name = benchmark_id.partition("/")
    if name not in names() or config_name not in card(name).configs:
        raise UnknownNameError(_unknown(benchmark_id, benchmark_ids()))
    return BenchmarkSpec(card(name), config_name)


def _unknown(wanted: str, known: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(wanted, known, n=1, cutoff=0.4)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"no benchmark {wanted!r}.{hint} `cir datasets list` shows all."
