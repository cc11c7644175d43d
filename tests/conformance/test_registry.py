"""Every registered benchmark has all that a benchmark needs."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from slowly import with_slow

import cir_datasets
from cir_datasets import registry, sources
from cir_datasets.builders import BenchmarkBuilder
from cir_datasets.registry.schema import Card, Source

ROOT = Path(__file__).resolve().parents[2]
NAMES = registry.names()
IDS = registry.benchmark_ids()

EXPECTED_CONFIGS = {
    "cirr": 7,
    "fashioniq": 18,
    "circo": 2,
    "genecis": 2,
    "circled": 9,
    "multiturn_fashioniq": 6,
    "fisd": 6,
    "zerosight": 3,
    "shapes": 4,
}
"""Configurations a name; the four protocols of FashionIQ's validation split are four benchmarks."""


def test_the_benchmarks_are_the_expected_ones() -> None:
    assert {name: len(registry.card(name).configs) for name in NAMES} == EXPECTED_CONFIGS


@pytest.mark.parametrize("name", NAMES)
def test_card_is_complete(name: str) -> None:
    card = registry.card(name)
    assert card.summary
    assert card.paper.url.startswith("https://")
    assert card.license.annotations
    assert card.license.images
    assert card.traps or card.status == "embedded"
    assert card.source.instructions


@pytest.mark.parametrize("name", NAMES)
def test_builder_is_named_after_the_benchmark(name: str) -> None:
    module = import_module(f"cir_datasets.builders.{name}")
    builder = getattr(module, name.title().replace("_", ""))
    assert issubclass(builder, BenchmarkBuilder)


@pytest.mark.parametrize("name", NAMES)
def test_every_source_file_is_listed_with_its_hash_or_as_unknown(name: str) -> None:
    card = registry.card(name)
    wanted = {file for config in card.configs.values() for file in (*config.files, *config.gallery_files)}
    if card.source.files is None:
        assert wanted == set()
        return
    listed = json.loads((ROOT / "cir_datasets" / "sources" / card.source.files).read_text(encoding="utf-8"))
    assert wanted <= set(listed)


@pytest.mark.parametrize("name", NAMES)
def test_a_revision_is_a_whole_commit_or_none_is_known(name: str) -> None:
    source = registry.card(name).source
    if source.revision is not None:
        assert re.fullmatch("[0-9a-f]{40}", source.revision)
    for shortened in ("f71b16c", "main"):
        with pytest.raises(ValueError, match="revision"):
            Source.model_validate(source.model_dump() | {"revision": shortened})


@pytest.mark.parametrize(
    "benchmark_id",
    with_slow(IDS, "shapes/train", "shapes/multiturn_train"),
)
def test_the_ids_of_the_examples_are_in_the_data(benchmark_id: str) -> None:
    spec = registry.spec(benchmark_id)
    example = spec.card.examples[spec.config_name]
    templates, fixture = ROOT / "cir_datasets/templates", ROOT / "tests/fixtures/publishers"
    options: dict[str, Any] = {}
    for folder in (templates / spec.card.name, fixture / spec.card.name):
        if folder.is_dir():
            options = {"data_dir": folder, "verification_mode": "no_checks"}
    if not options and example.invented:
        pytest.skip(f"the data of {benchmark_id} could not be had yet")
    if not options and sources.local_files(spec) is None:
        pytest.skip(f"the data of {benchmark_id} is not here")
    benchmark = cir_datasets.load(benchmark_id, **options)
    assert example.query in benchmark.query_ids
    rows = {row["session_id" if benchmark.multi_turn else "query_id"]: row for row in benchmark.rows()}
    row = rows[example.query]
    references = {turn["reference_image_id"] for row in rows.values() for turn in row.get("turns", [row])}
    assert set(example.images) <= set(benchmark.gallery or references)
    if not example.invented and spec.card.status != "embedded":
        # An example of a rank file that is made of the card has two, where any session has.
        lengths = spec.config.turns or {2: 0}
        assert row.get("num_turns", 2) == (2 if 2 in lengths else min(lengths))
    if benchmark.excludes_reference:
        asked = {turn["reference_image_id"] for turn in row.get("turns", [row])}
        assert asked.isdisjoint(example.images)
    if benchmark.per_query:
        assert set(example.images) <= set(row["gallery_image_ids"])
    if spec.config.subset is not None and spec.card.name == "cirr":
        assert set(example.images) < set(row["subset_image_ids"])


@pytest.mark.parametrize("name", NAMES)
def test_ids_are_said_in_a_sentence_with_an_example(name: str) -> None:
    card = registry.card(name)
    fields = card.model_dump()
    assert re.match(r"A (query|session|query or session) id is .*; an image id is .*\.$", card.ids)
    first = next(iter(card.configs))
    for change, words in (
        ({"ids": "They are strings."}, "must name the query and an image"),
        ({"examples": {}}, f"no line for the configuration '{first}'"),
        ({"examples": fields["examples"] | {"nowhere": fields["examples"][first]}}, "not a configuration"),
    ):
        with pytest.raises(ValueError, match=words):
            Card.model_validate(fields | change)
    del fields["ids"]
    with pytest.raises(ValueError, match="ids"):
        Card.model_validate(fields)


@pytest.mark.parametrize("benchmark_id", IDS)
def test_metrics_are_known_to_the_metrics_room(benchmark_id: str) -> None:
    from cir_metrics.catalogue import parse_metric

    spec = registry.spec(benchmark_id)
    assert spec.metrics
    assert spec.main_metric
    for metric in spec.metrics:
        parse_metric(metric)


@pytest.mark.parametrize("benchmark_id", IDS)
def test_gallery_of_another_benchmark_exists(benchmark_id: str) -> None:
    source = registry.spec(benchmark_id).config.gallery_from
    if source is not None:
        assert source in IDS
