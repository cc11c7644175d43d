"""Options once: a model says what a command, a file of options and a Python call take.

A subclass of `Options` is a frozen dataclass. Its fields are the options: a field is `option(...)`,
`argument(...)`, or an `Annotated` alias that several models share. Type, default, range and help stand there,
and whether it is on the command line or in the file of `--config` alone; `cir_datasets.commands` makes the
command. What concerns several options at once is checked in `__post_init__`.
"""

from __future__ import annotations

import datetime
import functools
import inspect
import re
import sys
import textwrap
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    NamedTuple,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from cir_metrics.errors import CallError, CirError, UnknownNameError, did_you_mean

if TYPE_CHECKING:
    from pydantic import BaseModel

_INFO = "option"
"""In a field's metadata: its `Declared`."""
_COLUMNS = 100
_EXPONENT = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+")
_ON_THE_LINE_ALONE = ("json",)
"""How this call prints is no setting."""
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Declared:
    """What is said of an option beside its type and its default; `option` says what each part is."""

    help: str
    names: tuple[str, ...] = ()
    min: float | None = None
    max: float | None = None
    choices: tuple[str, ...] = ()
    words: str = ""
    form: str = ""
    kind: Any = None
    in_file: bool = False
    is_argument: bool = False
    values: Callable[..., Any] | None = None
    more: Mapping[str, Any] = field(default_factory=dict)


class Parameter(NamedTuple):
    """A field of a model that is an option or an argument.

    Args:
        name: the field's.
        key: how a file of options names it, as the command line does with `_` for `-`.
        kind: its type, on the line and in a file.
        default: `MISSING` where it must be given.
        info: its `Declared`, or what typer has of an alias.
        in_file: whether the command line has it no more.
    """

    name: str
    key: str
    kind: Any
    default: Any
    info: Any
    in_file: bool


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Options:
    """The base of every model of options.

    Subclasses name in `in_file=` those options of their bases that they have in the file alone, and in
    `on_line=` those that they have on the command line, too.
    """

    in_file: ClassVar[frozenset[str]] = frozenset()
    was_on_line: ClassVar[bool] = True
    """Whether the command line had what the file alone has, so that it warns there instead of refusing."""

    def __init_subclass__(
        cls, in_file: tuple[str, ...] = (), on_line: tuple[str, ...] = (), kw_only: bool = True
    ) -> None:
        """Make a dataclass of it."""
        dataclass(frozen=True, kw_only=kw_only)(cls)
        there = {entry.name: entry.metadata.get(_INFO) for entry in fields(cls)}  # type: ignore[arg-type]
        new = vars(cls).get("__annotations__", {}).keys() & there.keys()
        inherited = frozenset().union(*(getattr(base, "in_file", ()) for base in cls.__bases__))
        declared = {name for name in new if getattr(there[name], "in_file", False)}
        cls.in_file = (inherited - new | declared | {*in_file}) - {*on_line}

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
    default: Any,
    help: str,
    *names: str,
    min: float | None = None,
    max: float | None = None,
    choices: tuple[str, ...] = (),
    words: str = "",
    form: str = "",
    kind: Any = None,
    in_file: bool = False,
    values: Callable[..., Any] | None = None,
    **more: Any,
) -> Any:
    """A field that is an option.

    Args:
        default: `...` where the option must be given.
        help: one sentence, with the unit.
        names: such as `"--json"`; without a long one that is made of the field's name, as for `"-o"`.
        min: the least value.
        max: the greatest value.
        choices: the texts that it may be.
        words: what a message calls a right value, such as "a folder"; default: what its type is called.
        form: a regular expression that the whole text must match.
        kind: the type on the line and in a file, where a Python call may give objects, too.
        in_file: leave it to the file of `--config`: few calls need it.
        values: what a shell offers for a value that is begun.
        more: what `typer.Option` takes, such as `metavar` and `callback`.
    """
    declared = Declared(help, names, min, max, choices, words, form, kind, in_file, values=values, more=more)
    return field(default=MISSING if default is ... else default, metadata={_INFO: declared})


def argument(default: Any, help: str, **more: Any) -> Any:
    """A field that is an argument, with what `typer.Argument` takes."""
    declared = Declared(help, is_argument=True, more=more)
    return field(default=MISSING if default is ... else default, metadata={_INFO: declared})


def by_call_alone(default: Any) -> Any:
    """A field that a Python call alone has: neither an option nor in a file."""
    return field(default=default, metadata={_INFO: False})


def check_values(options: Options, error: Callable[[str], CirError]) -> None:
    """Refuse values of another type, range, form or choice than is declared.

    Args:
        options: the values. A default is right whatever it is; where an option has a `kind`, an object is
            right, too.
        error: makes the error of a message.

    Raises:
        UnknownNameError: a text is no choice; the message has the nearest one.
        CirError: of `error`.

    Example:
        >>> class Rounding(Options):
        ...     digits: int = option(2, "Digits behind the point.", min=0)
        >>> check_values(Rounding(digits=-1), CallError)
        Traceback (most recent call last):
        cir_metrics.errors.CallError: digits=-1 is out of range. Fix: use a whole number, 0 or more.
    """
    for parameter in parameters_of(type(options)):
        info, value = parameter.info, getattr(options, parameter.name)
        if value is parameter.default or not isinstance(info, Declared) or info.is_argument:
            continue
        if info.choices and value not in info.choices:
            raise UnknownNameError(
                f"{parameter.name}={value!r} is not a choice.{did_you_mean(str(value), info.choices)} "
                f"Fix: use {' or '.join(info.choices)}."
            )
        plain, words = _plain(parameter.kind)
        empty = isinstance(value, str) and not value.strip()
        if info.kind is not None and not isinstance(value, str):
            continue
        right = plain == () or (isinstance(value, plain) and isinstance(value, bool) == (plain == (bool,)))
        if right and not empty and _within(info, value):
            continue
        if not info.words:
            raise error(f"{parameter.name}={value!r} is out of range. Fix: use {words}{_range(info)}.")
        default = f" (default: {parameter.default!r})" if parameter.default is not MISSING else ""
        raise error(
            f"{parameter.name}={value!r}; it is {info.words}. Fix: pass that, or leave it out{default}."
        )


def _plain(kind: Any) -> tuple[tuple[type, ...], str]:
    """The classes of an option's values, and what a message calls them; none where anything may come."""
    members = get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
    first = next(member for member in members if member is not type(None))
    return _CLASSES.get(first, ((), "a name or a folder"))


_CLASSES: dict[Any, tuple[tuple[type, ...], str]] = {
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
    bool: ((bool,), "True or False"),
    str: ((str,), "a text"),
    Path: ((str, Path), "a file or folder"),
}


def _within(info: Declared, value: Any) -> bool:
    if info.form:
        return re.fullmatch(info.form, str(value)) is not None
    return (info.min is None or value >= info.min) and (info.max is None or value <= info.max)


def parameters_of(model: Any) -> tuple[Parameter, ...]:
    """The options and arguments of a model: first those that must be given, then its own before its bases'.

    Example:
        >>> class Saved(Options):
        ...     seed: int = option(0, "Seed.")
        ...     out: str = option(..., "File.", "-o")
        >>> [each.key for each in parameters_of(Saved)]
        ['out', 'seed']
    """
    return _parameters_of(model)


@functools.cache
def _parameters_of(model: Any) -> tuple[Parameter, ...]:
    known = {entry.name: entry for entry in fields(model)}
    kinds = dict(reversed([*_kinds(model, known)]))
    parameters = []
    for name in dict.fromkeys(name for name, _ in _kinds(model, known)):
        default, info, kind = known[name].default, known[name].metadata.get(_INFO), kinds[name]
        if info is None:
            # An alias of several models, which has typer's own word for it.
            marks = (mark for mark in getattr(kind, "__metadata__", ()) if hasattr(mark, "param_decls"))
            info = next(marks, None)
        if info:
            names = info.names if isinstance(info, Declared) else info.param_decls or ()
            long = next((word for word in names if word.startswith("--")), f"--{name}")
            key = long.partition("/")[0][2:].replace("-", "_")
            parameters.append(Parameter(name, key, kind, default, info, name in model.in_file))
    return tuple(sorted(parameters, key=lambda parameter: parameter.default is not MISSING))


def _kinds(model: type[Any], known: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Names and types of the fields of a model that are options, then of those of its bases."""
    for base in model.__mro__:
        declared_here = {
            name: vars(base)["__dataclass_fields__"][name].metadata.get(_INFO)
            for name in vars(base).get("__annotations__", ())
            if name in known
        }
        left = {
            name: base.__annotations__[name]
            for name, info in declared_here.items()
            if info is not False and getattr(info, "kind", None) is None
        }
        place = types.SimpleNamespace(__annotations__=left)
        hints = get_type_hints(place, vars(sys.modules[base.__module__]), include_extras=True)
        for name, info in declared_here.items():
            if info is not False:
                optional = known[name].default is None
                yield (
                    name,
                    _one(hints[name]) if name in hints else info.kind | None if optional else info.kind,
                )


def _one(kind: Any) -> Any:
    """The type of an option that may be a text or a path in a call: on the line it is a path."""
    members = get_args(kind)
    return Path | None if get_origin(kind) in (Union, types.UnionType) and Path in members else kind


def config_text(model: type[Options], command: str) -> str:
    """A file of all options of a command, each with its help and its default, to be changed and given back.

    Args:
        model: the options.
        command: such as `cir run`.

    Example:
        >>> class Rounding(Options):
        ...     digits: int = option(2, "Digits behind the point.", min=0)
        >>> print(config_text(Rounding, "cir score"))
        # Options of `cir score`: change what you want, and call it with --config FILE.
        # What the command line says goes before the file; null is an option that is not given.
        <BLANKLINE>
        # Digits behind the point. (0 or more.)
        digits: 2
        <BLANKLINE>
    """
    import yaml

    lines = [
        f"# Options of `{command}`: change what you want, and call it with --config FILE.",
        "# What the command line says goes before the file; null is an option that is not given.",
        "",
    ]
    for parameter in _in_a_file(model):
        value = None if parameter.default is MISSING else parameter.default
        plain = str(value) if isinstance(value, Path) else list(value) if isinstance(value, tuple) else value
        needed = " It must be given, here or on the command line." if parameter.default is MISSING else ""
        limits = _range(parameter.info).lstrip(", ")
        text = f"{parameter.info.help}{f' ({limits}.)' if limits else ''}{needed}"
        lines += textwrap.wrap(
            text, _COLUMNS, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False
        )
        lines.append(yaml.safe_dump({parameter.key: plain}, allow_unicode=True, width=10_000).rstrip("\n"))
        lines.append("")
    return "\n".join(lines)


def read_config(model: type[Options], path: Path) -> dict[str, Any]:
    """The values of a file of options, by field; those that are null are left out.

    Raises:
        CallError: the file cannot be read, or an option is unknown, there twice, of the wrong type or out of
            range; the message names the file, the line and the nearest name.
    """
    from cir_datasets.common.yaml import checked, read_fields

    values, text = read_fields(path, CallError, "seed: 1")
    known = {parameter.key: parameter for parameter in _in_a_file(model)}
    read = checked(_yaml_model(model), values, str(path), CallError, text)
    # No shell makes a home of `~` in a file.
    return {
        known[key].name: _at_home(value) if _is_path(known[key].kind) else value
        for key in values
        if (value := getattr(read, key)) is not None
    }


def option_refusal(model: type[Options], message: str, path: Path | None) -> str:
    """A refusal of a Python call's value in the words of a command: as `--name value`, or with file and line.

    Args:
        model: the options.
        message: begins with the field and its value, such as `seed=-1`; else it is given back.
        path: the file of options, if there is one.

    Example:
        >>> class Rounding(Options):
        ...     max_digits: int = option(2, "Digits behind the point.", min=0)
        >>> option_refusal(Rounding, "max_digits=-1 is out of range.", None)
        '--max-digits -1 is out of range.'
    """
    key, sign, rest = message.partition("=")
    if not sign or key not in {parameter.name for parameter in parameters_of(model)}:
        return message
    lines = [] if path is None else path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        if line.startswith(f"{key}:"):
            return f"{path}: {key} (line {number}): {message}"
    return f"--{key.replace('_', '-')} {rest}"


def _is_path(kind: Any) -> bool:
    return kind is Path or any(map(_is_path, get_args(kind)))


def _at_home(value: Any) -> Any:
    if isinstance(value, str):
        return str(Path(value).expanduser()) if value.startswith("~") else value
    return [_at_home(part) for part in value] if isinstance(value, list) else value


def _in_a_file(model: type[Options]) -> list[Parameter]:
    return [
        parameter
        for parameter in parameters_of(model)
        if parameter.key not in _ON_THE_LINE_ALONE and not getattr(parameter.info, "is_argument", False)
    ]


def _range(info: Any) -> str:
    """The limits of a number in words, behind what it is."""
    if info.min is None and info.max is None:
        return ""
    if info.max is None:
        return f", {info.min:,g} or more"
    return f", at most {info.max:,g}" if info.min is None else f" from {info.min:,g} to {info.max:,g}"


def _yaml_model(model: type[Options]) -> type[BaseModel]:
    from pydantic import ConfigDict, Field, create_model

    of_it: dict[str, Any] = {
        parameter.key: (
            Annotated[_yaml_kind(parameter.kind) | None, Field(ge=parameter.info.min, le=parameter.info.max)],
            None,
        )
        for parameter in _in_a_file(model)
    }
    return create_model(model.__name__, __config__=ConfigDict(extra="forbid"), **of_it)


def _yaml_kind(kind: Any) -> Any:
    """The type of an option as pydantic checks what YAML has: no text is a number, no number a text."""
    from pydantic import BeforeValidator, StrictBool, StrictFloat, StrictInt

    origin = get_origin(kind)
    if origin is Annotated:
        return _yaml_kind(get_args(kind)[0])
    if origin in (Union, types.UnionType):
        return Union[tuple(_yaml_kind(member) for member in get_args(kind))]  # noqa: UP007
    if origin is not None:
        several = origin[tuple(_yaml_kind(member) for member in get_args(kind))]
        # One value of what may be repeated needs no list, as on the line.
        return Annotated[several, BeforeValidator(_as_list)] if origin is list else several
    if kind in (str, Path):
        # A day is written without quotation marks, and YAML makes a date of it.
        return Annotated[
            str, BeforeValidator(lambda value: str(value) if isinstance(value, datetime.date) else value)
        ]
    if kind is float:
        return Annotated[StrictFloat, BeforeValidator(_as_number)]
    return {int: StrictInt, bool: StrictBool}.get(kind, kind)


def _as_list(value: Any) -> Any:
    return value if value is None or isinstance(value, list) else [value]


def _as_number(value: Any) -> Any:
    """A number as people write it: to YAML 1.1, `1e-4` is a text, for it has no point."""
    return float(value) if isinstance(value, str) and _EXPONENT.fullmatch(value) else value
