"""docs/images.md says where images lie as the cards do, and its examples run."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

from cir_datasets import registry

PAGE = Path(__file__).resolve().parents[2] / "docs" / "images.md"
OWNERS = [
    name
    for name in registry.names()
    if any(config.gallery_from is None for config in registry.card(name).configs.values())
]


@pytest.mark.parametrize("name", OWNERS)
def test_the_layout_is_the_cards(name: str) -> None:
    card = registry.card(name)
    rows = [
        line for line in PAGE.read_text(encoding="utf-8").splitlines() if f"`{name}`" in line.split(" | ")[0]
    ]
    paths = ", ".join(f"`{path}`" for path in card.image_paths)
    assert [row.split(" | ")[1:] for row in rows] == [[f"`{card.image_folder}`", f"{paths} |"]]


@pytest.mark.slow
def test_the_examples_of_the_images_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testfile(str(PAGE), module_relative=False)
    assert (failed, tried > 8) == (0, True)
