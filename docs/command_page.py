"""Makes `docs/cli.md` of what the commands declare: an option of several commands is told once."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from leaderboard.cli import COMMANDS, GROUPS, TASKS, build

SHARED = 4
"""Commands that have the same option, from which on it is told at the top of the page."""
PLAIN = ("`--benchmark`, `-b`", "`--json`")
"""Options that need no more than the first clause of their help, wherever they stand."""
PLACES = ("Where to", "Where to write")
"""Labels of `--to` and `--out`, which their names say."""
LONG = 40
"""Characters of a help that is not told again, if it is the only one."""
INTRODUCTION = """# The `cir` command

After this page you can name the command that does a thing, and its options. `cir COMMAND --help` prints
the rest: types, defaults, more examples. Written by `make docs` from what the commands declare.

Options behind "Also" are explained [once, for all commands](#options-of-many-commands); "As" names the
command where others are. Every command takes `-h`, `--help`. Before the command stand `--debug` (show the
traceback of an error), `--version`, and `--install-completion` or `--show-completion` (for this shell).
"""
FILES = """## Options in a file

Rare options stand in a file: `cir run --write-config > run.yaml` prints one with all options, each with its
help and default, and `cir run --config run.yaml` reads it. Commands of `cir make` and `cir train` stand
here by their last word.
"""


class Parameter(NamedTuple):
    """An option or an argument, as a command declares it."""

    names: str
    text: str
    option: bool

    @property
    def meaning(self) -> tuple[str, str]:
        """Its names and what the page says of it: the first sentence, or clause where that is enough."""
        plain = self.names in PLAIN
        text = re.split(r"[.,:;]", self.text)[0] if plain else _unlabelled(self.names, _short(self.text))
        return self.names, text


class Command(NamedTuple):
    """A command with its words, such as `datasets prepare`; `keys` are the options of its file alone."""

    words: str
    about: str
    example: str
    parameters: tuple[Parameter, ...]
    keys: tuple[Parameter, ...]


def commands() -> dict[str, list[Command]]:
    """By name that follows `cir`, the commands; of a group several, in its order."""
    from typer.main import get_command

    root: Any = get_command(build())
    return {name: list(_commands(root.commands[name], name)) for name in (*COMMANDS, *GROUPS)}


def _commands(command: Any, words: str) -> Iterator[Command]:
    children = getattr(command, "commands", None)
    if children is None:
        parts = (command.help or "").replace("\b\n", "").split("\n\n")
        about = [part.strip() for part in parts if part.strip() and not part.startswith("Example:")]
        example = re.search(rf"^ *(?:Example: )?(cir {words}\b(?:.*\\\n)*.*)", command.help, re.MULTILINE)
        visible = tuple(_parameter(each) for each in command.params if not getattr(each, "hidden", False))
        moved = getattr(command.callback, "in_file", frozenset())
        hidden = (each for each in getattr(command, "hidden_params", ()) if each.name in moved)
        shown = re.sub(r"\\\n +", "\\\n        ", example[1] if example else "")
        yield Command(words, about[0], shown, visible, tuple(_key(each) for each in hidden))
    for name, child in (children or {}).items():
        yield from _commands(child, f"{words} {name}")


def _parameter(parameter: Any) -> Parameter:
    option = parameter.param_type_name == "option"
    names = (*parameter.opts, *parameter.secondary_opts)
    if not option:
        names = (parameter.metavar or parameter.name.upper(),)
    text = (parameter.help or "").replace("\\[", "[")
    return Parameter(", ".join(f"`{name}`" for name in names), text, option)


def _key(parameter: Any) -> Parameter:
    """An option as its file names it."""
    name = max(parameter.opts, key=len).removeprefix("--").replace("-", "_")
    names, text = f"`{name}`", _short(parameter.help)
    return Parameter(names, _unlabelled(names, text), option=True)


def page() -> str:
    """The whole page, in the order of `cir help --all`."""
    tree = commands()
    shared = _shared(each for group in tree.values() for each in group)
    at = dict.fromkeys(shared, "")
    parts = [INTRODUCTION, *_contents(), "## Options of many commands\n"]
    for (names, short), text in sorted(shared.items()):
        parts.append(f"- {names}: {short if names in PLAIN else _unlabelled(names, text)}")
    parts += ["", FILES, *_keys(tree)]
    for task, names in TASKS.items():
        parts.append(f"\n## {task}\n")
        for name in (*names.first, *names.further):
            if name in GROUPS:
                parts.append(f"### `cir {name}`\n")
            for command in tree[name]:
                parts += _section(command, at)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts))


def _shared(every: Iterable[Command]) -> dict[tuple[str, str], str]:
    """What many commands say of an option, of a name as most say it: the help, or the part that is alike."""
    helps: dict[tuple[str, str], list[str]] = defaultdict(list)
    for each in (each for command in every for each in command.parameters if each.option):
        helps[each.meaning].append(each.text)
    shared = sorted(meaning for meaning, texts in helps.items() if len(texts) >= SHARED)
    most = {meaning[0]: meaning for meaning in sorted(shared, key=lambda each: len(helps[each]))}
    return {
        (names, text): helps[names, text][0] if len({*helps[names, text]}) == 1 else text
        for names, text in most.values()
    }


def _keys(tree: Mapping[str, list[Command]]) -> Iterator[str]:
    """The keys of the files, each with the commands that have it."""
    places: dict[Parameter, list[Command]] = defaultdict(list)
    for group in tree.values():
        for command in group:
            for key in command.keys:
                places[key].append(command)
    trainings = tree["train"]
    for key, there in sorted(places.items()):
        names = [command.words.rpartition(" ")[2] for command in there if command not in trainings]
        trained = [command.words.rpartition(" ")[2] for command in there if command in trainings]
        names += ["train"] if len(trained) == len(trainings) else trained
        yield f"- {key.names} ({', '.join(names)}): {key.text}"


def _contents() -> list[str]:
    lines = []
    for task, names in TASKS.items():
        links = (f"[{name}](#cir-{name})" for name in (*names.first, *names.further))
        lines.append(f"- {task}: {', '.join(links)}")
    return [*lines, ""]


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=[^.\s][\w)]\.) (?=[A-Z])", text)


def _unlabelled(names: str, text: str) -> str:
    """A help without the label that says an option's name again."""
    label, _, rest = text.partition(": ")
    repeats = label.lower().split() == re.split("[-_]", names.strip("`-").partition("`")[0])
    return rest if rest and (repeats or label in PLACES) else text


def _short(text: str) -> str:
    """What stands before the second sentence or the first semicolon, without what is in brackets."""
    return re.split("; ", re.sub(r" \([^()]*\)", "", _sentences(text)[0]))[0].rstrip(".")


def _section(command: Command, at: dict[tuple[str, str], str]) -> Iterator[str]:
    """A command with the options that no command above has, and where the others stand."""
    yield f"{'####' if ' ' in command.words else '###'} `cir {command.words}`\n"
    yield f"{command.about}\n"
    if command.example != f"cir {command.words}":
        yield f"    {command.example}\n"
    elsewhere = _elsewhere(command, at)
    for each in command.parameters:
        if not any(each in several for several in elsewhere.values()):
            yield f"- {each.names}: {each.meaning[1]}"
            at.setdefault(each.meaning, command.words)
    yield ""
    for place, several in elsewhere.items():
        start = f"As [{place}](#cir-{place.replace(' ', '-')})" if place else "Also"
        yield f"{start}: {', '.join(each.names.partition(',')[0] for each in several)}.\n"


def _elsewhere(command: Command, at: Mapping[tuple[str, str], str]) -> dict[str, list[Parameter]]:
    """By place what is explained there; a single short help is sooner read than looked up."""
    places: dict[str, list[Parameter]] = defaultdict(list)
    for each in command.parameters:
        if each.meaning in at:
            places[at[each.meaning]].append(each)
    return {
        place: several
        for place, several in places.items()
        if not place or len(several) > 1 or len(several[0].meaning[1]) >= LONG
    }
