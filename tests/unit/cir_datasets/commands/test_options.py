"""Models of options: their order, their names, and the calls that are made of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from cir_datasets.commands import Options, argument, command, option

Size = Annotated[int, typer.Option("--size", help="Pixels.")]


class Shared(Options):
    size: Size = 3
    out: Path = option(..., "Where to.", "-o")


class Drawing(Shared):
    colour: str | None = option(None, "Of the pen.")
    no_frame: bool = option(False, "No frame.")
    as_json: bool = option(False, "Print JSON.", "--json")
    files: list[str] = argument(..., "Files.")


def app_of(function: Callable[..., None]) -> typer.Typer:
    app = typer.Typer()
    app.command()(function)
    return app


@pytest.fixture
def drawn() -> tuple[typer.Typer, list[Drawing]]:
    calls: list[Drawing] = []

    def draw(options: Drawing) -> None:
        """Draw."""
        calls.append(options)

    # The hint is a name of this module, as in the modules of commands.
    return app_of(command(draw)), calls


def test_what_must_be_given_comes_first_and_what_is_shared_last(drawn: tuple[typer.Typer, Any]) -> None:
    found: Any = get_command(drawn[0])
    names = [each.name for each in found.params if each.name not in ("install_completion", "show_completion")]
    assert names == ["files", "out", "colour", "no_frame", "as_json", "size"]


def test_a_name_is_made_of_the_field_unless_a_long_one_is_given(drawn: tuple[typer.Typer, Any]) -> None:
    found: Any = get_command(drawn[0])
    names = {each.name: (*each.opts, *each.secondary_opts) for each in found.params}
    assert names["out"] == ("--out", "-o")
    assert names["no_frame"] == ("--no-frame",), "a flag has no opposite unless one is named"
    assert names["as_json"] == ("--json",)


def test_a_call_gives_a_frozen_model(drawn: tuple[typer.Typer, list[Drawing]]) -> None:
    app, calls = drawn
    done = CliRunner().invoke(app, ["a", "b", "-o", "x", "--size", "4", "--json"])
    assert done.exit_code == 0, done.output
    assert calls == [Drawing(files=["a", "b"], out=Path("x"), size=4, as_json=True)]
    with pytest.raises(dataclasses.FrozenInstanceError):
        calls[0].size = 5  # type: ignore[misc]


def test_a_function_is_called_with_what_it_takes() -> None:
    def area(size: int, *, colour: str = "red", depth: int = 1) -> tuple[int, str, int]:
        return size, colour, depth

    options = Drawing(files=[], out=Path(), colour="blue")
    assert options.call(area) == (3, "blue", 1)
    assert options.call(area, depth=2, size=9) == (9, "blue", 2)


def test_only_what_is_given_is_named() -> None:
    assert Drawing(files=[], out=Path()).by_option("colour", "size") == {"--size": 3}
