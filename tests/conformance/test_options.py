"""One word, one option: what an option means in one command it means in every command that has it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from test_cli import COMMANDS
from typer.testing import CliRunner

from leaderboard.cli import build

DIFFER = {
    "--captions": "a prompt, a file, or who writes: three pipelines have captions from different places",
    "--config": "a configuration of a benchmark; elsewhere a file of options",
    "--dry-run": "an estimate of calls; of `leaderboard space` the files that would be pushed",
    "--format": "of `datasets show` an example of the rank file's format; elsewhere the format of a table",
    "--from": "a stage of a run, or what a challenge is made of",
    "--images": "of `rank` a file with the image id of each column; elsewhere the folder of the pictures",
    "--pictures": "a folder to play with, how a page shows pictures, or the format of frames",
    "--private": "of `submit` an entry that stays off the board; elsewhere what is new on the Hub",
    "--queries": "of `rank` the query id of each row; of `leaderboard export-html` how many pages",
    "--sessions": "a file to write, a kind of rows, or how many are drawn",
    "--to": "of `convert` a format; elsewhere the place that something goes to",
    "--top": "images that `rerank` puts in another order, or terms of `datasets stats`",
}
"""Options that may mean different things, and why."""

UNCHECKED = {
    ("datasets show", "--data-dir"): "it prints the card, and loads no rows",
    ("datasets show", "--no-checks"): "it prints the card, and loads no rows",
    ("datasets verify", "--no-checks"): "making the checks is what it is for",
}
"""Commands that name a benchmark and lack an option of those that load one, and why."""

NAMES = {"benchmark", "benchmarks", "sources", "source", "validation", "report"}
"""Parameters that name benchmarks; of `files` the rank files do."""


def options() -> Iterator[tuple[str, Any]]:
    for path, command in COMMANDS:
        yield from ((" ".join(path), each) for each in command.params if each.param_type_name == "option")


def meaning(help_text: str) -> str:
    """The first clause of a help."""
    return re.split(r"[.,:;(]", help_text)[0].strip()


def meanings() -> dict[str, dict[str, list[str]]]:
    """By option, by first clause of its help, the commands."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for command, option in options():
        for name in (*option.opts, *option.secondary_opts):
            if name.startswith("--"):
                found[name][meaning(option.help)].append(command)
    return found


def test_an_option_means_the_same_in_every_command() -> None:
    several = {name: dict(said) for name, said in meanings().items() if len(said) > 1}
    assert {name: said for name, said in several.items() if name not in DIFFER} == {}
    assert sorted(DIFFER.keys() - several.keys()) == [], "these mean one thing by now"


def test_a_short_option_stands_for_one_long_option() -> None:
    found = defaultdict(set)
    for _, option in options():
        long = [name for name in option.opts if name.startswith("--")]
        for name in option.opts:
            if not name.startswith("--"):
                found[name] |= set(long)
    assert {name: long for name, long in found.items() if len(long) > 1} == {}
    assert found["-m"] == {"--method"}


def loading() -> dict[str, set[str]]:
    """By command that names a benchmark, or reads rank files, its options."""
    found = {}
    for path, command in COMMANDS:
        names = {each.name for each in command.params}
        reads = path[0] in ("submit", "validate") or path == ("leaderboard", "add")
        if names & NAMES or reads:
            every = (*command.params, *getattr(command, "hidden_params", ()))  # those of a file, too
            found[" ".join(path)] = {name for each in every for name in each.opts}
    return found


@pytest.mark.parametrize("option", ["--data-dir", "--no-checks"])
def test_every_command_that_loads_a_benchmark_takes_the_publishers_folder_and_may_skip_checks(
    option: str,
) -> None:
    lacking = {command for command, has in loading().items() if option not in has}
    assert lacking == {command for command, lacks in UNCHECKED if lacks == option}


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=[" ".join(path) for path, _ in COMMANDS])
def test_no_line_of_an_options_help_is_wrapped_twice(path: tuple[str, ...], command: Any) -> None:
    """A line break in the source of a help would stand in the middle of the terminal's lines."""
    assert [each.name for each in command.params if "\n" in (getattr(each, "help", None) or "")] == []
    shown = CliRunner().invoke(build(), [*path, "--help"], env={"COLUMNS": "1000", "TERM": "dumb"}).output
    for each in (each for each in command.params if not getattr(each, "hidden", False)):
        help_text = (each.help or "").replace(
            "\\[", "["
        )  # Rich takes a bracket for markup unless it is escaped
        assert " ".join(help_text.split()) in " ".join(shown.split()), each.name
