"""Scripts in `examples/`: short, over public functions alone, in no wheel, and each of them runs."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from programs import run_program

from examples.seen_gallery import learned
from submissions.encoders.loading import load_encoder
from submissions.training import Plan

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted((ROOT / "examples").rglob("*.py"))
MOST_LINES = 200
PACKAGES = ("cir_metrics", "cir_datasets", "submissions", "leaderboard")
INTERVALS = "submissions.scoring.intervals"
"""A module that is public by its name: where the name of 0.1 sends its callers."""


def borrowed(script: Path) -> Iterator[tuple[str, str]]:
    """Each name of ours that a script imports, and the module that it takes it from."""
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PACKAGES:
            yield from ((str(node.module), alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                assert "." not in alias.name or alias.name.split(".")[0] not in PACKAGES


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_script_is_short_and_uses_public_names(script: Path) -> None:
    assert len(script.read_text(encoding="utf-8").splitlines()) < MOST_LINES
    for module, name in borrowed(script):
        imported = importlib.import_module(module)
        public = hasattr(imported, "__path__") and name in imported.__all__
        assert public or module == INTERVALS, f"{module} does not offer {name}"


def test_no_package_imports_a_script() -> None:
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            assert "examples." not in "".join(
                line for line in path.read_text(encoding="utf-8").splitlines(True) if line.startswith("from ")
            )


def run(*words: str, cwd: Path = ROOT) -> str:
    call = [sys.executable, "-m", *words]
    done = run_program(call, cwd=cwd)
    return done.stdout


@pytest.mark.slow
def test_the_figures_are_what_the_package_draws() -> None:
    run("examples.query_figures", "--check")


@pytest.mark.slow
def test_clips_are_written_once(tmp_path: Path) -> None:
    call = ("examples.clips", "--out", str(tmp_path / "clips"), "--videos", "2", "--first", "3")
    assert run(*call).strip() == str(tmp_path / "clips")
    clips = sorted((tmp_path / "clips").iterdir())
    assert [path.name for path in clips] == ["clip-000003.mp4", "clip-000004.mp4"]
    before = [path.stat().st_mtime_ns for path in clips]
    run(*call)
    assert [path.stat().st_mtime_ns for path in clips] == before


@pytest.mark.slow
def test_an_encoder_is_trained_scored_and_written(tmp_path: Path) -> None:
    folder = tmp_path / "encoder"
    call = ("examples.shapes_encoder", "--out", str(folder), "--steps", "1")
    assert run(*call).strip() == str(folder)
    assert {"model.safetensors", "recipe.yaml", "tokenizer.json"} <= {path.name for path in folder.iterdir()}
    assert load_encoder(folder).encode_texts(["a blue star"]).shape[0] == 1
    again = run_program([sys.executable, "-m", *call], cwd=ROOT, code=None)
    assert again.returncode
    assert "a trained encoder is in it already" in again.stderr


@pytest.mark.slow
def test_an_encoder_that_has_seen_the_gallery_is_compared(tmp_path: Path) -> None:
    call = ("examples.seen_gallery", "--out", str(tmp_path), "--steps", "2", "--batch-size", "4")
    text = run(*call)
    assert "3 methods on shapes/val#2, 300 queries" in text
    assert "before against after its gallery\n" in text
    before, after = (load_encoder(name) for name in ("shapes", tmp_path / "gallery"))
    assert before.identity.revision != after.identity.revision
    with pytest.raises(ValueError, match="learned by another plan"):
        learned(["val-000000", "val-000001"], Plan(3), tmp_path / "gallery")
