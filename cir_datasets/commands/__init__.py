"""`cir datasets ...`: one module a subject, each free of heavy imports; and how any command gets its options.

`command` makes a command of a model of `cir_datasets.common.options`. Typer reads the values by the fields'
types, checks ranges and writes the help. What a model has in the file of `--config` alone is still taken from
the line, with a warning that says where it went.

Behind that stand the options that several commands have in the same words, what shells offer for them, and
how a file is written.
"""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Callable
from dataclasses import MISSING
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand

from cir_datasets.common.options import (
    Declared,
    Options,
    Parameter,
    argument,
    config_text,
    option,
    option_refusal,
    parameters_of,
    read_config,
)
from cir_datasets.common.terminal import echo
from cir_metrics.errors import CallError, CirError

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark

__all__ = ["CommandOfOptions", "Options", "argument", "command", "option"]

_Model = TypeVar("_Model", bound=Options)
_CONFIG, _WRITE_CONFIG = "config", "write_config"


class CommandOfOptions(TyperCommand):
    """A command that still takes from the line what only its file of options has, with a warning."""

    def __init__(self, *args: Any, **details: Any) -> None:
        """Keep what is hidden apart from the options that a help or a completion shows."""
        super().__init__(*args, **details)
        self.hidden_params = [parameter for parameter in self.params if getattr(parameter, "hidden", False)]
        self.params = [parameter for parameter in self.params if parameter not in self.hidden_params]

    def get_params(self, ctx: Any) -> list[Any]:
        """What is parsed."""
        return [*super().get_params(ctx), *self.hidden_params]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the line, and say of each option that left it where it is now."""
        moved: frozenset[str] = getattr(self.callback, "in_file", frozenset())
        if moved and sum(word.partition("=")[0] == f"--{_CONFIG}" for word in args) > 1:
            raise CallError(
                f"--{_CONFIG} is given more than once, and one file would go before the other. Fix: write "
                "all options into one file."
            )
        left = super().parse_args(ctx, args)
        for parameter in self.hidden_params:
            source = ctx.get_parameter_source(parameter.name)
            if parameter.name not in moved or source is None or source.name != "COMMANDLINE":
                continue
            long, path = max(parameter.opts, key=len), _path_of(ctx)
            fix = (
                f"Fix: write it into a file for --config, as `{long[2:].replace('-', '_')}: VALUE`; "
                f"cir {path} --write-config prints one."
            )
            if not getattr(self.callback, "was_on_line", True) and not ctx.resilient_parsing:
                raise CallError(f"{long} is not taken behind cir {path}. {fix}")
            words = f"{long} is deprecated behind cir {path} and goes with 0.3. {fix}"
            warnings.warn(words, FutureWarning, stacklevel=2)
        return left


def _path_of(context: Any) -> str:
    """The words of a command behind those that call the program."""
    return str(context.command_path).removeprefix(context.find_root().info_name).strip()


def command(function: Callable[[_Model], None]) -> Callable[..., None]:
    """A function of one model as a command with the model's options; its docstring is the help.

    Example:
        >>> class Greeting(Options):
        ...     name: str = option("you", "Whom.")
        >>> def greet(options: Greeting) -> None:
        ...     print(f"hello {options.name}")
        >>> command(greet)(name="world")
        hello world
    """
    (model,) = (hint for name, hint in get_type_hints(function).items() if name != "return")
    further = _of_files(model) if model.in_file else []

    @wraps(function)
    def run(**values: Any) -> None:
        paths = [values.pop(parameter.name, None) for parameter in further]
        try:
            function(model(**values))
        except CirError as error:
            error.args = (option_refusal(model, str(error), paths[0] if paths else None), *error.args[1:])
            raise

    taken = [_for_typer(parameter) for parameter in parameters_of(model)]
    run.__signature__ = inspect.Signature([*taken, *further])  # type: ignore[attr-defined]
    run.__annotations__ = {}
    run.in_file, run.was_on_line = model.in_file, model.was_on_line  # type: ignore[attr-defined]
    return run


def _for_typer(parameter: Parameter) -> inspect.Parameter:
    default = inspect.Parameter.empty if parameter.default is MISSING else parameter.default
    info = parameter.info
    if isinstance(info, Declared) and info.is_argument:
        info = typer.Argument(..., help=info.help, **info.more)
    elif isinstance(info, Declared) or parameter.in_file:
        info = _typer_option(parameter)
    kind = get_args(parameter.kind)[0] if get_origin(parameter.kind) is Annotated else parameter.kind
    return inspect.Parameter(
        parameter.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, info]
    )


def _typer_option(parameter: Parameter) -> Any:
    info = parameter.info
    if not isinstance(info, Declared):
        # An alias that several models share, which this one has in its file.
        return typer.Option(..., *info.param_decls, help=info.help, callback=info.callback, hidden=True)
    names = info.names
    if not any(word.startswith("--") for word in names):
        names = (f"--{parameter.name.replace('_', '-')}", *names)
    more: dict[str, Any] = {
        name: limit for name in ("min", "max") if (limit := getattr(info, name)) is not None
    }
    if parameter.in_file:
        more["hidden"] = True
    values = info.values or (benchmark_values if parameter.name == "benchmark" else None)
    return typer.Option(..., *names, help=info.help, autocompletion=values, **more, **info.more)


def _of_files(model: type[Options]) -> list[inspect.Parameter]:
    """The two options of a command whose rare options stand in a file."""

    def read(context: typer.Context, path: Path | None) -> Path | None:
        if path is not None:
            context.default_map = {**(context.default_map or {}), **read_config(model, path)}
        return path

    def write(context: typer.Context, wanted: bool) -> None:
        if wanted:
            echo(config_text(model, f"cir {_path_of(context)}"))
            raise typer.Exit

    both = (
        (
            _CONFIG,
            Path | None,
            None,
            read,
            "File of options (YAML), of the rare ones, too; what the line says goes before it.",
        ),
        (
            _WRITE_CONFIG,
            bool,
            False,
            write,
            "Print such a file with all options, each with its help and default, and stop.",
        ),
    )
    return [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=default,
            annotation=Annotated[
                kind, typer.Option(f"--{name.replace('_', '-')}", callback=callback, is_eager=True, help=text)
            ],
        )
        for name, kind, default, callback, text in both
    ]


def benchmark_values(incomplete: str) -> list[str]:
    """Ids of benchmarks and suites that begin so.

    Args:
        incomplete: what was typed.

    Example:
        >>> benchmark_values("cirr/t")
        ['cirr/test1', 'cirr/train']
    """
    from cir_datasets.registry import benchmark_ids
    from cir_datasets.registry.suites import suite_ids

    return sorted(name for name in {*benchmark_ids(), *suite_ids()} if name.startswith(incomplete))


def metric_values(context: typer.Context, incomplete: str) -> list[str]:
    """Metrics that begin so: of the benchmark that was named, or of all.

    Args:
        context: the command with the options that were read so far.
        incomplete: what was typed.
    """
    from cir_datasets.registry import benchmark_ids, spec

    named = context.params.get("benchmark")
    known = benchmark_ids()
    metrics = {metric for name in ([named] if named in known else known) for metric in spec(name).metrics}
    return sorted(metric for metric in metrics if metric.startswith(incomplete))


def format_values(incomplete: str) -> list[str]:
    """Formats of tables that begin so.

    Example:
        >>> format_values("l")
        ['latex']
    """
    from cir_datasets.common.terminal import FORMATS

    return [name for name in FORMATS if name.startswith(incomplete)]


def _set_for_the_call(context: typer.Context, variable: str, value: str) -> None:
    """Set an environment variable until the command ends, for all that it calls."""
    before = os.environ.get(variable)
    os.environ[variable] = value

    def put_back() -> None:
        os.environ.pop(variable)
        if before is not None:
            os.environ[variable] = before

    context.call_on_close(put_back)


def _without_checks(context: typer.Context, wanted: bool) -> bool:
    from cir_datasets.prepared import CHECKS_VARIABLE

    if wanted:
        _set_for_the_call(context, CHECKS_VARIABLE, "no_checks")
    return wanted


def _data_from(context: typer.Context, folder: Path | None) -> Path | None:
    from cir_datasets.common.paths import DATA_VARIABLE
    from cir_datasets.errors import SourceError

    if folder is not None:
        if not folder.is_dir():
            raise SourceError(
                f"--data-dir {folder}: no such folder. Fix: name the publisher's folder, or its parent."
            )
        _check_holds_some_file(folder)
        _set_for_the_call(context, DATA_VARIABLE, str(folder.absolute()))
    return folder


def _check_holds_some_file(folder: Path) -> None:
    """Refuse a folder without any publisher's file: else what was prepared would be taken unsaid."""
    from cir_datasets.errors import SourceError
    from cir_datasets.registry import benchmark_ids, spec

    configs = [spec(benchmark).config for benchmark in benchmark_ids()]
    files = dict.fromkeys(name for config in configs for name in (*config.files, *config.gallery_files))
    places = [folder, *(place for place in folder.glob("*/") if os.access(place, os.X_OK))]
    if not any((place / name).is_file() for place in places for name in files):
        raise SourceError(
            f"--data-dir {folder}: no publisher's file of any benchmark is in it, nor in a folder in it, "
            "such as captions/cap.rc2.val.json of cirr/val. Fix: name the folder of the publisher's files or "
            "its parent, or leave --data-dir out."
        )


_DATA_DIR = "Folder of the publisher's files, or its parent; without it CIR_DATA_HOME, then a download."
_NO_CHECKS = (
    "Take a benchmark whose counts are not the card's, which scores then say; so does "
    "CIR_VERIFICATION_MODE=no_checks."
)

Benchmarks = Annotated[
    list[str],
    typer.Argument(
        metavar="ID...",
        autocompletion=benchmark_values,
        help="Benchmark ids, names (all configurations) or suites.",
    ),
]
DataDir = Annotated[Path | None, typer.Option("--data-dir", help=_DATA_DIR)]
NoChecks = Annotated[bool, typer.Option("--no-checks", help=_NO_CHECKS, hidden=True)]
DataDirForAll = Annotated[Path | None, typer.Option("--data-dir", callback=_data_from, help=_DATA_DIR)]
"""Of `cir` itself, before the command, and of `cir setup`."""
NoChecksForAll = Annotated[bool, typer.Option("--no-checks", callback=_without_checks, help=_NO_CHECKS)]
"""Of `cir` itself, before the command."""
DataDirAnywhere = Annotated[
    Path | None, typer.Option("--data-dir", callback=_data_from, help=_DATA_DIR, hidden=True)
]
"""Of commands that load benchmarks by way of other rooms, which hand no folder on."""
NoChecksAnywhere = Annotated[
    bool, typer.Option("--no-checks", callback=_without_checks, help=_NO_CHECKS, hidden=True)
]
"""Of commands that load benchmarks by way of other rooms, which hand no mode on."""


class LoadsBenchmarks(Options):
    """Of commands that load benchmarks by way of other rooms, which hand no folder and no mode on."""

    data_dir: DataDirAnywhere = None
    no_checks: NoChecksAnywhere = False


class ReadsBenchmarks(Options):
    """Of commands that hand the publisher's folder on, and whether counts are checked."""

    data_dir: DataDir = None
    no_checks: NoChecks = False

    @property
    def verification_mode(self) -> str | None:
        """For `verification_mode=`; None takes `CIR_VERIFICATION_MODE`."""
        return "no_checks" if self.no_checks else None

    def load(self, benchmark: str) -> Benchmark:
        """A benchmark, as these options say."""
        from cir_datasets.prepared import load

        return load(benchmark, data_dir=self.data_dir, verification_mode=self.verification_mode)


class PrintsTables(LoadsBenchmarks):
    """Of commands that print a report in any format of `cir_datasets.common.tables`."""

    format: str | None = option(
        None,
        "table (per cent; the default), json (fractions), csv (a line a number), latex, markdown.",
        values=format_values,
    )
    as_json: bool = option(False, "Print JSON, as --format json does.", "--json")

    def __post_init__(self) -> None:
        """Refuse two formats, and one that there is not."""
        from cir_datasets.common.terminal import check_format

        if self.as_json and self.format not in (None, "json"):
            raise CallError(
                f"--json and --format {self.format} ask for two formats. Fix: leave one of them out."
            )
        check_format(self.printed)

    @property
    def printed(self) -> str:
        """The format that is printed."""
        return "json" if self.as_json else self.format or "table"


Images = Annotated[
    Path | None,
    typer.Option("--images", help="Folder of the images; default: below CIR_IMAGES. Shapes are drawn."),
]
Out = Annotated[Path, typer.Option("--out", "-o", help="Where to write: the file.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
JsonBenchmarks = Annotated[bool, typer.Option("--json", help="Print JSON: one object a benchmark.")]


def write_out(out: Path, content: bytes) -> None:
    """Write a file and print its name.

    Raises:
        DatasetError: the system refuses to write there.
    """
    from cir_datasets.common.atomic import write_errors
    from cir_datasets.errors import DatasetError

    with write_errors(out, DatasetError, "choose another --out."):
        out.write_bytes(content)
    echo(str(out))
