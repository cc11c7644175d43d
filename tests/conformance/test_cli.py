"""Every command has help with an example, and `cir` keeps its promises about output and exit codes."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cir_here import cir, in_a_process
from typer.main import get_command
from typer.testing import CliRunner

from leaderboard.cli import COMMANDS as SINGLE
from leaderboard.cli import GROUPS, TASKS, build

ROOT = Path(__file__).resolve().parents[2]


def leaves(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    children = getattr(command, "commands", None)
    if children is None:
        yield path, command
    for name, child in (children or {}).items():
        yield from leaves(child, (*path, name))


COMMANDS = list(leaves(get_command(build())))


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=[" ".join(path) for path, _ in COMMANDS])
def test_every_command_has_an_example_and_every_option_help(path: tuple[str, ...], command: Any) -> None:
    assert "Example" in (command.help or ""), path
    assert f"cir {' '.join(path)}" in command.help
    assert [option.name for option in command.params if not getattr(option, "help", None)] == []


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=[" ".join(path) for path, _ in COMMANDS])
def test_help_loses_no_bracket(path: tuple[str, ...], command: Any) -> None:
    """Rich takes `[statistics]` for markup unless it is escaped, and the extra's name is gone."""
    shown = CliRunner().invoke(build(), [*path, "--help"], env={"COLUMNS": "200", "TERM": "dumb"}).output
    shown = "".join(shown.split())
    texts = [command.help or "", *(getattr(option, "help", None) or "" for option in command.params)]
    brackets = [found for text in texts for found in re.findall(r"\[[^\[\]]*\]", text)]
    assert [found for found in brackets if "".join(found.split()) not in shown] == []
    assert "\\[" not in shown
    assert 'cir-benchmarks"' not in shown


def listed(*words: str) -> list[str]:
    """The names in the boxes of a help, options left out."""
    shown = CliRunner().invoke(build(), list(words), env={"COLUMNS": "100", "TERM": "dumb"}, prog_name="cir")
    assert shown.exit_code == 0
    return re.findall(r"^│ ([a-z]\w*) ", shown.output, re.MULTILINE)


def test_every_command_stands_under_one_task() -> None:
    placed = [name for task in TASKS.values() for name in (*task.first, *task.further)]
    assert sorted(placed) == sorted([*SINGLE, *GROUPS]), "leaderboard/cli.py: TASKS holds each command once"


def test_the_short_help_lists_twelve_commands_at_most_and_the_long_one_all() -> None:
    first = [name for task in TASKS.values() for name in task.first]
    assert listed("--help") == first
    assert len(first) <= 12
    assert sorted(listed("help", "--all")) == sorted([*SINGLE, *GROUPS])


def test_help_of_a_command_is_that_commands_help() -> None:
    asked, direct = (
        CliRunner().invoke(build(), words, prog_name="cir").output
        for words in (["help", "datasets", "prepare"], ["datasets", "prepare", "--help"])
    )
    assert "cir datasets prepare" in direct
    assert asked == direct


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=[" ".join(path) for path, _ in COMMANDS])
def test_a_paragraph_of_help_is_wrapped_by_the_terminal_alone(path: tuple[str, ...], command: Any) -> None:
    paragraphs = (command.help or "").split("\n\n")
    assert [each for each in paragraphs if "\n" in each and not each.startswith("\b")] == []


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=[" ".join(path) for path, _ in COMMANDS])
def test_an_example_fits_a_terminal_and_can_be_copied(path: tuple[str, ...], command: Any) -> None:
    examples = [each for each in (command.help or "").split("\n\n") if each.startswith("\b")]
    lines = [line for each in examples for line in each.splitlines()]
    assert [line for line in lines if len(line) > 78] == []


OF_DIALOGUES = ("across_train", "across_val", "train", "val")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("cir da", ["datasets"]),
        ("cir mul", ["multiround"]),
        ("cir datasets overlay a", ["add"]),
        ("cir score --per", ["--per-query"]),
        (
            "cir run --benchmark cirr/",
            [*(f"cirr/dialogues_{x}" for x in OF_DIALOGUES), "cirr/test1", "cirr/train", "cirr/val"],
        ),
        (
            "cir datasets show fashioniq/val_union",
            [f"fashioniq/val_union{e}" for e in ("", "_without_reference")],
        ),
        ("cir play --method cire", ["cirevl"]),
        ("cir table --for circ", ["circled", "circo"]),
        ("cir score run.json --format l", ["latex"]),
        ("cir compare --benchmark circo/val --metric map@5", ["map@5", "map@50"]),
    ],
)
def test_shells_complete_commands_options_and_their_values(
    words: str, found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    monkeypatch.setenv("_CIR_COMPLETE", "complete_bash")
    done = CliRunner().invoke(build(), [], prog_name="cir")
    assert done.output.split() == found


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_given_its_script(shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shellingham.detect_shell", lambda: (shell, f"/bin/{shell}"))
    script = CliRunner().invoke(build(), ["--show-completion"], prog_name="cir").output
    assert f"_CIR_COMPLETE=complete_{shell}" in script


SAID = re.compile(r"(?:`|  |\brun |\band )cir ((?:[a-z][\w-]*[ `,.;:]?){1,3})")
"""How a message or a docstring names a command."""


def words_of(source: Path) -> Iterator[str]:
    """The strings of a module, what is filled in left out."""
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "?" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_a_command_that_a_message_names_exists() -> None:
    root, seen, unknown = get_command(build()), 0, []
    for package in ("cir_metrics", "cir_datasets", "submissions", "leaderboard"):
        for source in sorted((ROOT / package).rglob("*.py")):
            for said in itertools.chain.from_iterable(SAID.findall(text) for text in words_of(source)):
                command: Any = root
                for word in re.split(r"[ `,.;:]+", said.strip(" `,.;:")):
                    if not hasattr(command, "commands"):
                        break  # an argument
                    if word not in command.commands:
                        unknown.append(f"{source.relative_to(ROOT)}: cir {said}")
                        break
                    command = command.commands[word]
                seen += 1
    assert unknown == []
    assert seen > 300, "the messages that name commands are found"


def test_without_arguments_the_help_is_shown() -> None:
    done = cir()
    assert "datasets" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["datasets", "show", "cir/val"], 2, "no benchmark 'cir/val'. Did you mean 'cirr/val'?"),
        (["score", "missing.json"], 2, "missing.json: no such file"),
        (["validate", "missing.json"], 2, "missing.json: no such file"),
        (["frobnicate"], 2, "No such command"),
        (["run"], 2, "Fix: give --benchmark: Id of the benchmark"),
        (["run", "-b", "shapes/val", "-m", "random", "--k", "0"], 2, "Fix: give --k: First images"),
        (["rerank", "--rerank-top", "3", "x.json"], 2, "Did you mean '--top'? Fix: `cir rerank --help`"),
        (["run", "-b"], 2, "Fix: write its value behind it."),
        (["train", "concat", "-b", "shapes/tran", "--out", "head"], 2, "Did you mean 'shapes/train'? Fix: "),
    ],
)
def test_a_wrong_call_exits_with_2_and_says_why_and_what_to_do(
    arguments: list[str], code: int, words: str
) -> None:
    done = cir(*arguments)
    assert done.returncode == code
    assert words in " ".join(done.stderr.replace("│", " ").split())
    assert words == "No such command" or "Fix: " in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_debug_shows_the_traceback() -> None:
    done = in_a_process("--debug", "datasets", "show", "cir/val")
    assert "Traceback" in done.stderr


def test_a_warning_is_a_message_and_no_line_of_source(tmp_path: Path) -> None:
    for name in ("captions/cap.dress.val.json", "image_splits/split.dress.val.json"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("[]", encoding="utf-8")
    done = in_a_process("datasets", "prepare", "fashioniq/dress_val", "--data-dir", str(tmp_path))
    warned = [line for line in done.stderr.splitlines() if "not the file that the card pins" in line]
    assert len(warned) == 2
    assert all(line.startswith("cir: warning: ") for line in warned)
    assert "UnpinnedDataWarning" not in done.stderr
