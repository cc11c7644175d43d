"""Every metric of the catalogue has a module, a card, an example that runs and a golden case."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

import cir_metrics.evaluate_hook as hook
from cir_metrics.catalogue import METRICS

ROOM = Path(hook.__file__).parent
SECTIONS = ("## Equation", "## Inputs", "## Example", "## Other names, other definitions", "## Limits")


def test_catalogue_and_folders_agree() -> None:
    assert set(hook.module_names()) == set(METRICS)
    assert {path.parent.name for path in ROOM.glob("*/README.md")} == set(METRICS)


@pytest.mark.parametrize("name", METRICS)
def test_card_has_every_section_and_names_its_source(name: str) -> None:
    text = (ROOM / name / "README.md").read_text(encoding="utf-8")
    assert [section for section in SECTIONS if section not in text] == []
    assert "\nSource: " in text
    assert f'evaluate.load("{name}")' in text
    for variant in METRICS[name].variants[1:]:
        assert f'variant="{variant}"' in text
    for k in METRICS[name].default_ks:
        assert str(k) in text


@pytest.mark.parametrize("name", METRICS)
def test_example_of_the_card_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = doctest.testfile(str(ROOM / name / "README.md"), module_relative=False)
    assert outcome.attempted >= 4
    assert outcome.failed == 0


@pytest.mark.parametrize("name", METRICS)
def test_folder_is_no_package(name: str) -> None:
    # With an __init__.py a folder would hide the function of its name.
    assert sorted(path.name for path in (ROOM / name).iterdir() if path.name != "__pycache__") == [
        "README.md",
        f"{name}.py",
    ]


def test_pnr_map_card_tells_what_its_reader_must_know() -> None:
    text = (ROOM / "pnr_map" / "README.md").read_text(encoding="utf-8")
    for words in ("Not monotone", "NPNP has 0.25", "NPPN 0.2361", "fingerprint", "released_code"):
        assert words in text
