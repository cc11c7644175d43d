"""Which benchmarks there are, by id: `spec` resolves `cirr/val`, from cards of this package or of others.

An id such as `cirr/val+shortcut_free` is a benchmark with a registered overlay on it (see `overlays`). A card
of this package is read when its benchmark is asked for; `BenchmarkSpec` is one configuration of a card.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata, resources
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cir_datasets.common.paths import FOLDERS_GROUP, FOLDERS_VARIABLE
from cir_datasets.common.yaml import read_model
from cir_datasets.errors import CardError
from cir_metrics.errors import UnknownNameError, did_you_mean

if TYPE_CHECKING:
    from cir_datasets.registry.folders import Known
    from cir_datasets.registry.overlays import Overlay
    from cir_datasets.registry.schema import Card, Config

IMAGES_SUFFIX = "_images"
"""`<config>_images` is the configuration that holds the gallery of `<config>`."""

GALLERY_NOTES = {"common": "", "per_query": " in per-query lists"}
"""By the card's `gallery` what stands behind a number of images."""


_OF_SESSIONS = ("multiturn_", "dialogues_")
"""How the names of a mixed card's configurations begin whose rows are sessions."""


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
            return "multi_turn" if self.config_name.startswith(_OF_SESSIONS) else "single_turn"
        return self.card.kind

    @property
    def per_query(self) -> bool:
        """Whether each query ranks a list of its own in place of a common gallery."""
        return self.card.gallery == "per_query"

    @property
    def gallery_note(self) -> str:
        """What stands behind the number of images in the gallery: `2,734 in per-query lists`, or nothing."""
        return GALLERY_NOTES[self.card.gallery]

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
    from cir_datasets.registry.overlays import overlay_ids, registered

    overlay = registered(base.id, base.card.version, overlay_name)
    if overlay is None:
        fix = "Fix: register it with `cir datasets overlay add FILE`."
        raise UnknownNameError(f"{unknown_benchmark(benchmark_id, overlay_ids())} {fix}")
    return BenchmarkSpec(base.card, base.config_name, overlay)


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
    found = _find_card(name)
    if found is not None and config_name in found.configs:
        return BenchmarkSpec(found, config_name)
    if found is not None and not config_name:
        raise UnknownNameError(_several(name, [f"{name}/{config}" for config in found.configs]))
    from cir_datasets.registry.suites import suite_ids

    known = (*benchmark_ids(), *suite_ids())
    if found is None:
        from cir_datasets.registry.challenges import CONFIG, challenge_names

        known += tuple(f"{challenge}/{CONFIG}" for challenge in challenge_names())
    raise UnknownNameError(unknown_benchmark(base_id, known))


def unknown_benchmark(wanted: str, known: tuple[str, ...]) -> str:
    """What is said of an id that no benchmark has; it may be a suite's."""
    from cir_datasets.registry.suites import find_suite

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
    from cir_datasets.registry.suites import suites_of

    said = f"{name!r} names several benchmarks. Fix: choose one of {', '.join(benchmarks)}."
    suites = suites_of(benchmarks)
    return f"{said} Suites of them, where a suite is taken: {', '.join(suites)}." if suites else said


def members_of(benchmark_id: str) -> tuple[str, ...]:
    """The benchmarks that an id stands for: a suite's members, else itself.

    Example:
        >>> members_of("fashioniq/val")
        ('fashioniq/dress_val', 'fashioniq/shirt_val', 'fashioniq/toptee_val')
        >>> members_of("cirr/val")
        ('cirr/val',)
    """
    from cir_datasets.registry.suites import find_suite

    declared = find_suite(benchmark_id)
    return (benchmark_id,) if declared is None else declared.benchmarks


def ids_of(*wanted: str) -> tuple[str, ...]:
    """The benchmark ids that names, ids or suites stand for, each once.

    Raises:
        UnknownNameError: no benchmark or suite has that name.

    Example:
        >>> ids_of("fashioniq/val")
        ('fashioniq/dress_val', 'fashioniq/shirt_val', 'fashioniq/toptee_val')
    """
    found: list[str] = []
    for name in wanted:
        if name in names():
            found += (f"{name}/{config}" for config in card(name).configs)
        else:
            found += (spec(member).id for member in members_of(name))
    return tuple(dict.fromkeys(found))


def names() -> tuple[str, ...]:
    """Names of all registered benchmarks, those that are folders of their makers included, sorted."""
    return tuple(sorted({*packaged_names(), *_folders()}))


def _folders() -> Mapping[str, Known]:
    """The folders of their makers, by name; what reads them is imported where any is named."""
    if not os.environ.get(FOLDERS_VARIABLE) and not _are_entry_points(tuple(sys.path)):
        return {}
    from cir_datasets.registry.folders import folders

    return folders()


@functools.lru_cache(maxsize=8)
def _are_entry_points(path: tuple[str, ...]) -> bool:
    """Whether a package names folders; asked once for what Python can import."""
    return bool(metadata.entry_points(group=FOLDERS_GROUP))


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
    found = _find_card(name)
    if found is None:
        from cir_datasets.registry.challenges import challenge_names

        raise UnknownNameError(no_benchmark(name, (*names(), *challenge_names())))
    return found


def _find_card(name: str) -> Card | None:
    """The card of a benchmark or a challenge, or None where none has that name."""
    known, packaged = _folders().get(name), name in packaged_names()
    if packaged and known is None:
        return _packaged_card(name)
    from cir_datasets.registry.challenges import challenge_card

    challenge = None if packaged else challenge_card(name)
    if known is None:
        return challenge
    if packaged or challenge is not None:
        what = "a benchmark of this package" if packaged else "a challenge"
        raise CardError(
            f"{known.folder}: its name, {name!r}, is that of {what}, so that neither is used. Fix: give it "
            f"another name in its card.yaml, or take it out of {known.origin}."
        )
    if known.problem is not None:
        raise CardError(known.problem)
    from cir_datasets.registry.folders import card_of_folder

    return card_of_folder(known.folder)


@functools.cache
def _packaged_card(name: str) -> Card:
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
    hint = near or " A benchmark of your own is found by its folder: export CIR_BENCHMARKS=FOLDER."
    said = f"no benchmark {wanted!r}.{hint} Fix: use one that `cir datasets list` shows."
    from cir_datasets.registry.folders import missing

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
    for name in _folders():
        try:
            card(name)
        except CardError as error:
            found[name] = str(error)
    return found


def queries_of(benchmark_id: str) -> int | None:
    """Queries or sessions of a benchmark, or of a suite's members, by the cards; None where not known.

    Example:
        >>> queries_of("cirr/val"), queries_of("shapes/val")
        (4181, 300)
    """
    counts = [spec(member).config.queries for member in members_of(benchmark_id)]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def read_overlay(path: str | Path, *, benchmark: str | None = None, name: str | None = None) -> Overlay:
    """Read an overlay from JSON, or from Parquet with the columns `query_id` and (optionally) `label`.

    JSON says what it is laid over: `{"overlay": "shortcut_free", "benchmark": "cirr/val",
    "benchmark_version": 1, "source": "...", "queries": ["10001", ...]}`, where `queries` may also be an
    object `{"10001": "label", ...}`. Parquet says so in its key-value metadata under the same names, or the
    caller does; without a version there it is taken to be made for the version in use.

    Args:
        path: the file; `.parquet` is read as Parquet, everything else as JSON.
        benchmark: what it must be laid over; None takes what the file says.
        name: its name where the file does not say one; None takes the file's stem then.

    Raises:
        OverlayError: the file is malformed, lists nothing or a query twice, or is for another benchmark or
            version.
        UnknownNameError: no benchmark has that id.
    """
    from cir_datasets.registry.overlays import overlay_of

    return overlay_of(path, lambda base: base_spec(base).card.version, benchmark=benchmark, name=name)
