"""`cir run` and `cir methods`: what they print, where, and what they refuse."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import submissions
from cir_metrics.errors import CirError, UnknownNameError
from leaderboard.cli import build
from submissions.errors import MethodError
from submissions.methods import method_names

SESSIONS = ["run", "--benchmark", "shapes/multiturn_val", "--method", "image_only", "--encoder", "pixels"]


def cir(*arguments: str) -> Any:
    return CliRunner().invoke(build(), list(arguments))


def test_methods_are_listed_in_the_order_of_tables() -> None:
    done = cir("methods", "list")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["NAME", "ENCODERS", "NEEDS", "SUMMARY"]
    assert [line.split()[0] for line in lines[1:]] == list(method_names())
    cards = json.loads(cir("methods", "list", "--json").stdout)
    assert [card["name"] for card in cards] == list(method_names())


def test_a_card_is_shown() -> None:
    lines = cir("methods", "show", "cirevl").stdout.splitlines()
    assert lines[0] == "CIReVL (cirevl)"
    assert "needs:     language" in lines
    assert "paper:     https://arxiv.org/abs/2310.09291" in lines
    assert json.loads(cir("methods", "show", "cirevl", "--json").stdout)["needs"] == ["language"]
    with pytest.raises(UnknownNameError, match=r"no method 'cirvl'\. Did you mean 'cirevl'\?"):
        raise cir("methods", "show", "cirvl").exception


def test_a_compressed_rank_file_and_the_way_on(tmp_path: Path) -> None:
    out = tmp_path / "run.json.gz"
    done = cir(*SESSIONS, "--aggregation", "weighted", "--alpha", "0.5", "--out", str(out))
    assert done.exit_code == 0, done.output
    assert done.stdout == f"{out}\n"
    assert done.stderr.splitlines() == [
        "image_only: ranking shapes/multiturn_val ...",
        f"Where it stands: cir score {out}",
    ]
    found = submissions.read(out)
    assert isinstance(found, submissions.RankFile)
    assert found.method.aggregation == "weighted (alpha 0.5)"
    assert gzip.decompress(out.read_bytes()) == found.to_json()
    again = cir(*SESSIONS, "--alpha", "0.5", "--out", str(tmp_path / "again.json.gz"))
    assert again.exit_code == 0, again.output
    assert (tmp_path / "again.json.gz").read_bytes() == out.read_bytes()


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        (["--all-baselines", "--alpha", "0.5"], CirError, "--alpha is for one --method."),
        (["--all-baselines", "--aggregation", "latest"], CirError, "--aggregation is for one --method."),
        (["--method", "random", "--search", "hnsw"], MethodError, "has no use for --search"),
        (["--method", "random", "--aggregation", "lates"], UnknownNameError, "Did you mean 'latest'?"),
        (["--method", "not_there:Method"], MethodError, "not_there:Method cannot be imported"),
        (["--method", "random", "--k", "0"], MethodError, "k=0; a ranking holds 1 to 1,000 images"),
    ],
)
def test_wrong_calls(arguments: list[str], error: type[CirError], said: str) -> None:
    done = cir("run", "--benchmark", "shapes/multiturn_val", *arguments)
    assert done.exit_code == 1
    assert done.stdout == ""
    assert isinstance(done.exception, error)
    assert said in str(done.exception)
    assert "Fix: " in str(done.exception) or "There are" in str(done.exception)
