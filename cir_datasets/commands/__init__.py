"""`cir datasets ...`: one module a subject, each free of heavy imports; and how any command gets its options.

Options are written once: a model says what a command takes, and `command` makes it one. A subclass of
`Options` is a frozen dataclass. Its fields are the options: those that must be given, then the others, those
of the bases behind its own. A field is `option(...)`, `argument(...)`, or an `Annotated` alias that several
models share. Typer reads the values by the fields' types, checks ranges and writes the help. What concerns
several options at once is checked in `__post_init__`.

Behind that stand the options that several commands have in the same words, what shells offer for them, and
how a file is written.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, TypeVar, dataclass_transform, get_type_hints

import typer
from typer.models import OptionInfo

from cir_datasets.common.terminal import echo

_INFO = "typer"
"""In a field's metadata: what typer is told of it."""
_Result = TypeVar("_Result")
_Model = TypeVar("_Model", bound="Options")


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Options:
    """The base of every model of options."""

    def __init_subclass__(cls) -> None:
        """Make a dataclass of it."""
        dataclass(frozen=True, kw_only=True)(cls)

    def call(self, function: Callable[..., _Result], **others: Any) -> _Result:
        """Call a function with all options that it has parameters of the same names for.

        Args:
            function: a function or a class; what it has no parameter for is left out.
            others: further arguments; they take the place of options.

        Example:
            >>> class Rounding(Options):
            ...     ndigits: int = option(2, "Digits.")
            >>> Rounding().call(round, number=3.14159)
            3.14
        """
        names = inspect.signature(function).parameters
        return function(**{name: value for name, value in vars(self).items() if name in names} | others)

    def by_option(self, *names: str) -> dict[str, Any]:
        """By option those values of some fields that are not None; the fields have their options' names.

        Example:
            >>> class Numbers(Options):
            ...     max_size: int | None = option(None, "Pixels.")
            ...     seed: int | None = option(None, "Seed.")
            >>> Numbers(max_size=3).by_option("max_size", "seed")
            {'--max-size': 3}
        """
        values = {f"--{name.replace('_', '-')}": getattr(self, name) for name in names}
        return {name: value for name, value in values.items() if value is not None}


def option(
    default: Any, help: str, *names: str, values: Callable[..., Any] | None = None, **more: Any
) -> Any:
    """A field that is an option.

    Args:
        default: `...` where the option must be given.
        help: one sentence, with the unit.
        names: such as `"--json"`; without a long one that is made of the field's name, as for `"-o"`.
        values: what a shell offers for a value that is begun.
        more: what `typer.Option` takes, such as `min`, `max`, `metavar`, `callback` and `hidden`.
    """
    return _field(default, typer.Option(..., *names, help=help, autocompletion=values, **more))


def argument(default: Any, help: str, **more: Any) -> Any:
    """A field that is an argument, with what `typer.Argument` takes."""
    return _field(default, typer.Argument(..., help=help, **more))


def _field(default: Any, info: Any) -> Any:
    return field(default=MISSING if default is ... else default, metadata={_INFO: info})


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

    @wraps(function)
    def run(**values: Any) -> None:
        function(model(**values))

    run.__signature__ = inspect.Signature(_parameters(model))  # type: ignore[attr-defined]
    run.__annotations__ = {}
    return run


def _parameters(model: type[Any]) -> list[inspect.Parameter]:
    """The parameters that typer reads: first those without a default, own ones before those of bases."""
    types = get_type_hints(model, include_extras=True)
    known = {each.name: each for each in fields(model)}
    order = dict.fromkeys(name for base in model.__mro__ for name in vars(base).get("__annotations__", ()))
    names = sorted(filter(known.__contains__, order), key=lambda name: known[name].default is not MISSING)
    parameters = []
    for name in names:
        default, info, annotation = known[name].default, known[name].metadata.get(_INFO), types[name]
        if isinstance(info, OptionInfo) and not any(word.startswith("--") for word in info.param_decls or ()):
            info.param_decls = (f"--{name.replace('_', '-')}", *(info.param_decls or ()))
        parameters.append(
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if default is MISSING else default,
                annotation=annotation if info is None else Annotated[annotation, info],
            )
        )
    return parameters


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
NoChecks = Annotated[bool, typer.Option("--no-checks", help=_NO_CHECKS)]
DataDirAnywhere = Annotated[Path | None, typer.Option("--data-dir", callback=_data_from, help=_DATA_DIR)]
"""Of commands that load benchmarks by way of other rooms, which hand no folder on."""
NoChecksAnywhere = Annotated[bool, typer.Option("--no-checks", callback=_without_checks, help=_NO_CHECKS)]
"""Of commands that load benchmarks by way of other rooms, which hand no mode on."""


class LoadsBenchmarks(Options):
    """Of commands that load benchmarks by way of other rooms, which hand no folder and no mode on."""

    data_dir: DataDirAnywhere = None
    no_checks: NoChecksAnywhere = False


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
        from cir_metrics.errors import CallError

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


def mode_of(no_checks: bool) -> str | None:
    """The `verification_mode` that the command names, or None where it names none."""
    return "no_checks" if no_checks else None


def write_out(out: Path, content: bytes) -> None:
    """Write a file and print its name.

    Raises:
        DatasetError: the system refuses to write there.
    """
    from cir_datasets.errors import DatasetError

    try:
        out.write_bytes(content)
    except OSError as error:
        raise DatasetError(
            f"{out}: cannot be written: {error.strerror}. Fix: choose another --out."
        ) from error
    echo(str(out))
