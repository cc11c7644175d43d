"""`cir metrics list` and `cir metrics install`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from cir_datasets.commands.metrics import metrics_commands
from cir_metrics.catalogue import METRICS


@pytest.fixture
def app() -> typer.Typer:
    app = typer.Typer()
    app.add_typer(metrics_commands(), name="metrics")
    return app


def test_list_prints_every_metric(app: typer.Typer) -> None:
    done = CliRunner().invoke(app, ["metrics", "list"])
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["NAME", "PRINTED", "VERSION", "VARIANTS", "PROTOCOL", "SOURCE"]
    assert [line.split()[0] for line in lines[1:]] == list(METRICS)
    assert "equation, released_code" in done.stdout


def test_list_prints_json(app: typer.Typer) -> None:
    done = CliRunner().invoke(app, ["metrics", "list", "--json"])
    listed = json.loads(done.stdout)
    assert [entry["name"] for entry in listed] == list(METRICS)
    assert listed[0]["default_ks"] == [1, 5, 10, 50]


def test_install_prints_where_the_modules_lie(
    app: typer.Typer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import evaluate.config

    monkeypatch.setattr(evaluate.config, "HF_MODULES_CACHE", str(tmp_path))
    # evaluate puts its cache on the path.
    monkeypatch.setattr(sys, "path", list(sys.path))
    done = CliRunner().invoke(app, ["metrics", "install", "--json"])
    assert done.exit_code == 0
    installed = json.loads(done.stdout)
    assert list(installed) == sorted(METRICS)
    assert all(Path(path).is_file() and Path(path).is_relative_to(tmp_path) for path in installed.values())
    assert "Installing" in done.stderr
