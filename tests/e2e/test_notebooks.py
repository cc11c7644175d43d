"""The notebooks of the docs run from the top, and what they print is what they show."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from docs_shell import ROOT
from nbclient import NotebookClient

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def outputs(notebook: nbformat.NotebookNode) -> list[str]:
    """What the cells print on stdout and return, as plain text; progress on stderr is left out."""
    found = []
    for cell in notebook.cells:
        # A kernel on a busy machine hands one cell's prints over in several pieces.
        printed = [each["text"] for each in cell.get("outputs", []) if each.get("name") == "stdout"]
        returned = [each.get("data", {}).get("text/plain", "") for each in cell.get("outputs", [])]
        found += [text.strip() for text in ("".join(printed), *returned)]
    return [text for text in found if text]


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_prints_what_it_shows(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    stored = nbformat.read(path, as_version=4)
    nbformat.validate(stored)
    shown = outputs(stored)
    fresh = NotebookClient(nbformat.read(path, as_version=4), timeout=600, kernel_name="python3").execute()
    assert len(shown) >= 3
    assert outputs(fresh) == shown


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_names_no_folder_of_a_machine(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"/(?:home|root|work|tmp|Users)/\S*", text) == []
    assert '"name": "stderr"' not in text
