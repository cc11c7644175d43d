"""Options of commands, each written once: a model says what a command takes, and `command` makes it one.

A subclass of `Options` is a frozen dataclass. Its fields are the options: those that must be given, then the
others, those of the bases behind its own. A field is `option(...)`, `argument(...)`, or an `Annotated` alias
that several models share. Typer reads the values by the fields' types, checks ranges and writes the help.
What concerns several options at once is checked in `__post_init__`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from functools import wraps
from typing import Annotated, Any, TypeVar, dataclass_transform, get_type_hints

import typer
from typer.models import OptionInfo

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
