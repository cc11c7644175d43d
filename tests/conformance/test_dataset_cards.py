"""Every benchmark can be published: its dataset card is there, and says something of every field."""

from __future__ import annotations

import pytest

from cir_datasets import registry
from cir_datasets.builders import builder_class
from cir_datasets.publishing.card_text import card_text
from cir_datasets.publishing.layout import flat, published_fields
from cir_datasets.rows.records import image_schema


@pytest.mark.parametrize("name", registry.names())
def test_the_dataset_card_is_written(name: str) -> None:
    text, card = card_text(name), registry.card(name)
    assert text.changes[-1].version == card.version
    assert text.bibtex.startswith("@")
    assert f"year = {{{text.year or card.paper.year}}}" in " ".join(text.bibtex.split())
    assert (text.license_id == "other") == (text.license_name is not None)
    assert text.body.startswith("## About")


@pytest.mark.parametrize("benchmark_id", registry.benchmark_ids())
def test_every_field_is_described(benchmark_id: str) -> None:
    spec = registry.spec(benchmark_id)
    kind = "session" if spec.kind == "multi_turn" else "query"
    schema = builder_class(spec.card.name)(spec, {}).schema()
    text = card_text(spec.card.name)
    described = [field.path for field in flat(published_fields(spec.card.name, kind, schema, text))]
    assert set(schema.names) <= set(described)
    assert len(list(flat(published_fields(spec.card.name, "image", image_schema(), text)))) == 8


@pytest.mark.parametrize("name", registry.names())
def test_no_field_is_described_that_does_not_exist(name: str) -> None:
    found: set[str] = set()
    for config in registry.card(name).configs:
        spec = registry.spec(f"{name}/{config}")
        kind = "session" if spec.kind == "multi_turn" else "query"
        schema = builder_class(name)(spec, {}).schema()
        found |= {field.path for field in flat(published_fields(name, kind, schema, card_text(name)))}
    assert set(card_text(name).fields) - found == set()
