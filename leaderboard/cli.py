"""The `cir` command: which commands there are, and what becomes of their errors.

A new command has one line in `COMMANDS` or `GROUPS`, and its name stands in `TASKS`. Its module is imported
when the command is named, and imports nothing heavy itself, so that `cir --help` answers at once. Data goes
to stdout, words to stderr; exit code 0 means done, 1 that the input is wrong, 2 that the call is.
"""

from __future__ import annotations

import ctypes
import errno
import inspect
import os
import re
import sys
import traceback
import warnings
from collections import UserDict
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from types import TracebackType
from typing import Annotated, Any, NamedTuple, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from cir_datasets.commands import CommandOfOptions, DataDirForAll, NoChecksForAll
from cir_datasets.common.terminal import echo
from cir_metrics.errors import CirError, did_you_mean

_UsageError: Any = typer.BadParameter.__base__
"""What typer raises for every wrong call."""

_OUTPUT_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
"""What writing to stdout can fail with."""

COMMANDS = {
    "setup": "cir_datasets.commands.setup:setup_command",
    "run": "submissions.commands.run:run_command",
    "rank": "submissions.commands.rank:rank_command",
    "multiround": "submissions.commands.multiround:multiround_command",
    "embed": "submissions.commands.embed:embed_command",
    "entries": "submissions.commands.entries:entries_command",
    "fuse": "submissions.commands.fuse:fuse_command",
    "rerank": "submissions.commands.rerank:rerank_command",
    "play": "leaderboard.play.commands:play_command",
    "validate": "submissions.commands.validate:validate_command",
    "score": "submissions.commands.score:score_command",
    "explain": "submissions.commands.explain:explain_command",
    "compare": "submissions.commands.compare:compare_command",
    "table": "submissions.commands.table:table_command",
    "plot": "submissions.commands.plot:plot_command",
    "browse": "submissions.commands.browse:browse_command",
    "convert": "submissions.commands.convert:convert_command",
    "repair": "submissions.commands.repair:repair_command",
    "submit": "leaderboard.commands.submit:submit",
    "help": "leaderboard.cli:help_command",
}
"""By name the module and the function of a command."""

GROUPS = {
    "datasets": "cir_datasets.commands.datasets:datasets_commands",
    "metrics": "cir_datasets.commands.metrics:metrics_commands",
    "make": "submissions.commands.make:make_commands",
    "methods": "submissions.commands.methods:methods_commands",
    "train": "submissions.commands.train:train_commands",
    "embeddings": "submissions.commands.embeddings:embeddings_commands",
    "leaderboard": "leaderboard.commands.groups:leaderboard_commands",
    "challenge": "leaderboard.challenge.commands:challenge_commands",
    "receipt": "leaderboard.commands.receipt:receipt_commands",
}
"""By name the module and the function that gives a group of commands."""


class TaskCommands(NamedTuple):
    """Commands that serve one purpose.

    Args:
        first: those that `cir --help` shows; at most twelve over all tasks.
        further: those that `cir help --all` lists as well.
    """

    first: tuple[str, ...]
    further: tuple[str, ...] = ()


TASKS = {
    "Data": TaskCommands(("setup", "datasets", "make"), ("metrics",)),
    "Rank": TaskCommands(
        ("run", "rank", "train"),
        ("multiround", "play", "fuse", "rerank", "methods", "embed", "embeddings", "entries"),
    ),
    "Judge": TaskCommands(
        ("validate", "score", "compare", "table"),
        ("plot", "explain", "browse", "convert", "repair"),
    ),
    "Share": TaskCommands(("submit", "leaderboard"), ("challenge", "receipt")),
    "Help": TaskCommands((), ("help",)),
}
"""The headings of the help, in its order, with their commands."""

_START = "Start with: cir datasets list, then cir validate FILE and cir score FILE."
_FURTHER = "More commands: cir help --all. About one: cir COMMAND --help."
_EXAMPLE = 78
"""Characters of an example's line, in a terminal of 80."""
_ALL = "cir.all"
"""In a context's `meta`: the help is to list all commands."""


def _version(wanted: bool) -> None:
    if wanted:
        try:
            echo(version("cir-benchmarks"))
        except PackageNotFoundError:
            echo("not installed")
        raise typer.Exit


_TASK_OF = {name: task for task, names in TASKS.items() for name in (*names.first, *names.further)}


class _Commands(UserDict[str, Any]):
    """Commands by name, each imported when it is looked up."""

    def __init__(self) -> None:
        super().__init__(COMMANDS | GROUPS)

    def __getitem__(self, name: str) -> Any:
        found = super().__getitem__(name)
        if isinstance(found, str):
            module, _, function = found.partition(":")
            made = getattr(import_module(module), function)
            only = typer.Typer()
            if name in GROUPS:
                only.add_typer(made(), name=name)
            else:
                only.command(name, cls=CommandOfOptions)(made)
            found = cast("TyperCommand | TyperGroup", get_group(only).commands[name])
            self[name] = found
            found.rich_help_panel = _TASK_OF.get(name)
            _wrap_once(found)
        return found


def _wrap_once(command: Any) -> None:
    """Join the lines of every paragraph of a help; typer joins those of the first alone."""
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    command.help = "\n\n".join(
        _folded(each) if each.startswith("\b") else " ".join(each.split()) for each in paragraphs
    )
    for child in getattr(command, "commands", {}).values():
        _wrap_once(child)


def _folded(example: str) -> str:
    """An example whose commands fit a terminal and can be copied: lines are broken before options."""
    lines: list[str] = []
    for line in re.sub(r" \\\n\s*", " ", example).split("\n"):
        parts = re.split(r" (?=--?[a-z])", line)
        for place, part in enumerate(parts):
            room = _EXAMPLE - (2 if place < len(parts) - 1 else 0)
            if place and len(lines[-1]) + 1 + len(part) <= room:
                lines[-1] += f" {part}"
            elif place:
                lines[-1] += " \\"
                lines.append(f"        {part}")
            else:
                lines.append(part)
    return "\n".join(lines)


class _Root(TyperGroup):
    """The command `cir`, whose help lists the usual commands unless all are asked for."""

    def __init__(self, **details: Any) -> None:
        super().__init__(**details)
        self.commands = _Commands()
        self.listed = tuple(_TASK_OF)

    def make_context(self, *args: Any, **details: Any) -> Any:
        """Read the options before the command; a refusal says how to go on."""
        with _refusals_with_a_fix():
            return super().make_context(*args, **details)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; a refusal of its options says how to go on."""
        with _refusals_with_a_fix():
            return super().invoke(ctx)

    def list_commands(self, ctx: Any) -> list[str]:
        """The names that a help lists, or a completion offers."""
        return list(self.listed)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help of `cir --help`, or the whole one of `cir help --all`."""
        before = self.listed
        if not ctx.meta.get(_ALL):
            self.listed = tuple(name for task in TASKS.values() for name in task.first)
        try:
            super().format_help(ctx, formatter)
        finally:
            self.listed = before


@contextmanager
def _refusals_with_a_fix() -> Iterator[None]:
    """Put how to mend the call behind typer's own words."""
    try:
        yield
    except _UsageError as error:
        if type(error).__name__ != "NoArgsIsHelpError" and "Fix: " not in error.format_message():
            _add_fix(error)
        raise


def _add_fix(error: Any) -> None:
    command = error.ctx.command_path if error.ctx is not None else "cir"
    parameter, words = getattr(error, "param", None), error.message.replace("Input should", "it should")
    hint, fix = "", f"`{command} --help` shows how it is called."
    if error.ctx is None and hasattr(error, "option_name"):
        fix = "write its value behind it."
    if parameter is not None:
        is_option = parameter.param_type_name == "option"
        name = max(parameter.opts, key=len) if is_option else parameter.metavar or parameter.name.upper()
        if parameter.help:
            fix = f"give {name}: {parameter.help.rstrip('.')}."
    elif hasattr(error, "possibilities"):
        error.possibilities = None
        names = [name for option in error.ctx.command.get_params(error.ctx) for name in option.opts]
        hint = did_you_mean(error.option_name, names) if error.option_name.startswith("--") else ""
        fix = f"`{command} --help` lists its options."
    # Typer writes that something is missing itself, before a message of ours.
    sentence = words if not words or words.endswith((".", "?")) else f"{words}."
    error.message = f"{sentence}{hint} Fix: {fix}".lstrip()


def help_command(
    context: typer.Context,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="COMMAND", help="The words of a command.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All: every command, grouped by task.")] = False,
) -> None:
    """Explain a command, or list all commands.

    \b
    Example:
        cir help --all
        cir help datasets prepare
    """
    root = context.find_root()
    if every:
        root.meta[_ALL] = True
        echo(root.get_help())
        return
    root.command.main([*(words or ()), "--help"], prog_name=root.info_name)


def build() -> typer.Typer:
    """The whole command line as one typer application."""
    app = typer.Typer(
        name="cir",
        cls=_Root,
        epilog=f"{_START}\n\n{_FURTHER}",
        no_args_is_help=True,
        help="Benchmarks, metrics and a leaderboard for composed image retrieval.",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def root(
        debug: bool = typer.Option(False, "--debug", help="Show the traceback of an error."),
        show_version: bool = typer.Option(
            False, "--version", callback=_version, is_eager=True, help="Print the version and stop."
        ),
        data_dir: DataDirForAll = None,
        no_checks: NoChecksForAll = False,
    ) -> None:
        """Benchmarks, metrics and a leaderboard for composed image retrieval."""
        if debug:
            os.environ["CIR_DEBUG"] = "1"

    return app


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    echo(f"cir: warning: {message}", err=True)


def _debugging() -> bool:
    """Whether errors are raised, with a traceback that is written out as all else is (typer has its own)."""
    wanted = bool(os.environ.get("CIR_DEBUG"))
    if wanted:
        sys.excepthook = _show_traceback
    return wanted


def _show_traceback(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    echo("".join(traceback.format_exception(kind, error, trace)).rstrip(), err=True)


def main() -> None:
    """Run `cir`; errors and warnings become one message each on stderr, errors an exit code too."""
    warnings.showwarning = _show_warning
    give_back_freed_memory()
    try:
        if os.environ.get("HF_ENDPOINT"):
            from cir_datasets.common.addresses import endpoint

            # huggingface_hub reads it when it is imported, and its error would show a part of a password.
            endpoint("HF_ENDPOINT", "")
        build()()
    except CirError as error:
        if _debugging():
            raise
        echo(f"cir: {error}", err=True)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader of our output (head, less) has gone: that is not an error of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except KeyboardInterrupt:
        echo("cir: interrupted", err=True)
        sys.exit(130)
    except OSError as error:
        if _debugging():
            raise
        echo(f"cir: {_system_words(error)}", err=True)
        sys.exit(1)
    except Exception as error:
        # The last resort: a defect of ours, reported without a traceback.
        if _debugging():
            raise
        echo(
            f"cir: a defect of this program: {type(error).__name__}: {error}. "
            "Fix: run it again as `cir --debug ...` and report what it prints.",
            err=True,
        )
        sys.exit(1)


def _system_words(error: OSError) -> str:
    """What the system refused: a file that has a name, or else our output."""
    reason = error.strerror or str(error)
    if error.filename is not None:
        return f"{error.filename}: {reason}."
    if error.errno not in _OUTPUT_ERRORS:
        return f"the system refuses: {reason}."
    # What is left in the buffer would be refused once more, with a traceback, when the interpreter ends.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return f"cannot write the output: {reason}. Fix: make room, or send it elsewhere."


_M_MMAP_THRESHOLD = -3
"""mallopt(3)'s number for the size from which a block is the system's own."""
_BLOCK = 2**19
"""Bytes: more than a socket gives at once, or each read of an upload would take new pages from the system."""


def give_back_freed_memory() -> None:
    """Make what is freed go back to the system: scoring a large file then takes half the memory.

    Arrow's own allocators keep what was freed, and so does glibc after the first large block: it takes
    the next ones from its heap, where holes are not given back. Call this before pyarrow is imported;
    elsewhere than on Linux only Arrow's part is set.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is not None:  # musl has none
            mallopt(_M_MMAP_THRESHOLD, _BLOCK)


if __name__ == "__main__":
    main()
