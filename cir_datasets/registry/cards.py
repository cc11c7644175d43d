"""The benchmarks that exist: reads `cards/*.yaml`; a `BenchmarkSpec` is one configuration of a card."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Literal

from cir_datasets.common.yaml import read_model
from cir_datasets.errors import CardError
from cir_datasets.registry.folders import folders, missing, registered_card
from cir_metrics.errors import UnknownNameError, did_you_mean

if TYPE_CHECKING:
    from cir_datasets.registry.overlay import Overlay
    from cir_datasets.registry.schema import Card, Config

IMAGES_SUFFIX = "_images"
"""`<config>_images` is the configuration that holds the gallery of `<config>`."""


@dataclass(frozen=True)
class BenchmarkSpec:
    """A benchmark's card together with one of its configurations, and the overlay on it, if any."""

    card: Card
    config_name: str
    overlay: Overlay | None = None

    @functools.cached_property
    def config(self) -> Config:
        """The configuration's own part of the card; with an overlay the counts are the overlay's."""
        config = self.card.configs[self.config_name]
        if self.overlay is None:
            return config
        return config.model_copy(update={"queries": len(self.overlay.labels), "turns": None})

    @property
    def config_id(self) -> str:
        """The id's second part, `val` or `val+shortcut_free`, which names folders and configurations."""
        return self.config_name if self.overlay is None else f"{self.config_name}+{self.overlay.name}"

    @property
    def id(self) -> str:
        """The benchmark id, `name/config`, or `name/config+overlay`."""
        return f"{self.card.name}/{self.config_id}"

    @property
    def base(self) -> BenchmarkSpec:
        """The benchmark without its overlay."""
        return self if self.overlay is None else BenchmarkSpec(self.card, self.config_name)

    @property
    def kind(self) -> Literal["single_turn", "multi_turn"]:
        """Whether a row is a query or a session."""
        if self.card.kind == "mixed":
            return "multi_turn" if self.config_name.startswith("multiturn_") else "single_turn"
        return self.card.kind

    @property
    def per_query(self) -> bool:
        """Whether each query ranks a list of its own in place of a common gallery."""
        return self.card.gallery == "per_query"

    @property
    def turns(self) -> str:
        """Rankings that a row asks for: `1` for a query, `2-6` or so for sessions, `-` where unknown."""
        if self.kind == "single_turn":
            return "1"
        lengths = [turns for turns, count in (self.base.config.turns or {}).items() if count]
        if not lengths:
            return "-"
        shortest, longest = min(lengths), max(lengths)
        return str(shortest) if shortest == longest else f"{shortest}-{longest}"

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
    """Names of all registered benchmarks, those that are folders of their makers included, sorted."""
    return tuple(sorted({*packaged_names(), *folders()}))


@functools.cache
def packaged_names() -> frozenset[str]:
    """Names of the benchmarks of this package."""
    folder = resources.files("cir_datasets") / "cards"
    return frozenset(
        entry.name.removesuffix(".yaml") for entry in folder.iterdir() if entry.name.endswith(".yaml")
    )


def card(name: str) -> Card:
    """The card of a benchmark, or of a challenge that is known here.

    Raises:
        UnknownNameError: no benchmark has that name.
        CardError: the card is malformed, or two benchmarks have that name.
    """
    known, packaged = folders().get(name), name in packaged_names()
    if packaged and known is None:
        return _own_card(name)
    from cir_datasets.registry.challenges import challenge_card, challenge_names

    if known is not None and (packaged or challenge_card(name) is not None):
        what = "a benchmark of this package" if packaged else "a challenge"
        raise CardError(
            f"{known.folder}: its name, {name!r}, is that of {what}, so that neither is used. Fix: give it "
            f"another name in its card.yaml, or take it out of {known.origin}."
        )
    if known is not None:
        return registered_card(known)
    found = challenge_card(name)
    if found is None:
        raise UnknownNameError(no_benchmark(name, (*names(), *challenge_names())))
    return found


@functools.cache
def _own_card(name: str) -> Card:
    from cir_datasets.registry.schema import Card

    text = (resources.files("cir_datasets") / "cards" / f"{name}.yaml").read_text(encoding="utf-8")
    found = read_model(Card, text, f"cards/{name}.yaml", CardError)
    if found.name != name:
        raise CardError(f"cards/{name}.yaml: its name is {found.name!r}. Fix: name the file after it.")
    return found


def no_benchmark(wanted: str, known: tuple[str, ...]) -> str:
    """What is said of a name or id that no benchmark has."""
    name, of = wanted.partition("/")[0], {each.partition("/")[0] for each in known}
    near = did_you_mean(wanted, known) if name in of or did_you_mean(name, of) else ""
    own = near or " A benchmark of your own is found by its folder: export CIR_BENCHMARKS=FOLDER."
    said = f"no benchmark {wanted!r}.{own} `cir datasets list` shows all."
    return "\n  ".join((said, *missing()))


def benchmark_ids() -> tuple[str, ...]:
    """Ids of all registered benchmarks, `name/config`, in card order; not those of `broken` folders."""
    left_out = broken()
    return tuple(
        f"{name}/{config}" for name in names() if name not in left_out for config in card(name).configs
    )


def broken() -> dict[str, str]:
    """The folders that are registered and cannot be used: by name the reason."""
    found = {}
    for name in folders():
        try:
            card(name)
        except CardError as error:
            found[name] = str(error)
    return found
