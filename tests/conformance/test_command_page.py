"""The page of the commands can be read by a person, and nothing is missing on it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from test_cli import COMMANDS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
WORDS = 7_200
SECTIONS = dict(re.findall(r"^#{3,4} `cir ([^`]+)`\n(.*?)(?=^#{2,4} |\Z)", PAGE, re.MULTILINE | re.DOTALL))
"""By command, what stands below its heading."""
(SHARED,) = re.findall(r"^## Options of many commands\n(.*?)(?=^## )", PAGE, re.MULTILINE | re.DOTALL)


def explained(text: str) -> list[str]:
    """The options and arguments that have a line of their own, by their first name."""
    return re.findall(r"^- `([^`]+)`[^:\n]*: \S", text, re.MULTILINE)


def referred(text: str) -> dict[str, str]:
    """By option the command that explains it; empty where the page's head does."""
    lines = re.findall(r"^(?:Also|As \[([^\]]+)\]\([^)]*\)): (.*)\.$", text, re.MULTILINE)
    return {name: place for place, names in lines for name in re.findall(r"`([^`]+)`", names)}


def test_the_page_is_short_enough_to_be_read() -> None:
    assert len(PAGE.split()) <= WORDS


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=[" ".join(path) for path, _ in COMMANDS])
def test_every_visible_option_is_explained_once_and_no_hidden_one(
    path: tuple[str, ...], command: Any
) -> None:
    section = SECTIONS[" ".join(path)]
    here, elsewhere = explained(section), referred(section)
    options = [each for each in command.params if each.param_type_name == "option"]
    names = Counter([*here, *elsewhere])
    assert Counter({name: times for name, times in names.items() if name[0] == "-"}) == Counter(
        each.opts[0] for each in options if not each.hidden
    )
    assert sum(name[0] != "-" for name in names) == len(command.params) - len(options)
    for name, place in elsewhere.items():
        assert name in explained(SECTIONS[place] if place else SHARED), (name, place)


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=[" ".join(path) for path, _ in COMMANDS])
def test_every_command_says_what_it_does_with_an_example_where_it_needs_words(
    path: tuple[str, ...], command: Any
) -> None:
    section = SECTIONS[" ".join(path)]
    assert command.help.split("\n\n")[0] in section
    examples = re.findall(r"^    cir .*", section, re.MULTILINE)
    assert len(examples) <= 1
    assert all(each.startswith(f"    cir {' '.join(path)} ") for each in examples)
    if any(parameter.required for parameter in command.params):
        assert examples


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=[" ".join(path) for path, _ in COMMANDS])
def test_every_key_of_a_file_alone_has_a_line_with_its_command(path: tuple[str, ...], command: Any) -> None:
    rows = re.findall(r"^- `(\w+)` \(([^)]+)\): \S", PAGE, re.MULTILINE)
    here = {key for key, words in rows if {path[-1], path[0] * (path[0] == "train")} & {*words.split(", ")}}
    keys = {max(each.opts, key=len)[2:].replace("-", "_") for each in of_the_file(command)}
    assert here == keys


def test_there_are_such_keys() -> None:
    assert sum(bool(of_the_file(command)) for _, command in COMMANDS) >= 10


def of_the_file(command: Any) -> list[Any]:
    moved = getattr(command.callback, "in_file", ())
    return [each for each in getattr(command, "hidden_params", ()) if each.name in moved]
