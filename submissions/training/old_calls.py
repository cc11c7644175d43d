"""Calls of the trainings as 0.1 had them: encoder, benchmark and folder, then a plan and options by name."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

from cir_metrics.errors import CallError, UnknownNameError, did_you_mean
from submissions.training.training_options import Trains

_P = ParamSpec("_P")
_T = TypeVar("_T")


def takes_old_calls(
    *kinds: type[Trains],
    second: str = "benchmark",
    renamed: Mapping[str, str] | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    """Let a training take the call of 0.1 too, with a warning; it goes with 0.3.

    Args:
        kinds: of its options; of several, `composition` of the call names one, in 0.1 by default the first.
        second: the second argument of 0.1.
        renamed: other names of 0.1, and what they are now.
        defaults: those of 0.1 that have another value now.
    """
    names = {"folder": "out", **(renamed or {})}

    def decorate(train: Callable[_P, _T]) -> Callable[_P, _T]:
        passed_on = set(inspect.signature(train).parameters)

        @functools.wraps(train)
        def call(*args: _P.args, **named: _P.kwargs) -> _T:
            if not ("encoder" in named or (args and not isinstance(args[0], Trains))):
                return train(*args, **named)
            first = ("encoder", second, "folder")
            if len(args) > len(first):
                raise TypeError(f"{train.__name__}() takes {len(first)} positional arguments: {first}")
            old: dict[str, Any] = {**dict(zip(first, args, strict=False)), **named}
            values = {**(defaults or {}), **{names.get(name, name): value for name, value in old.items()}}
            kind = _kind(kinds, values.pop("composition", None))
            warnings.warn(
                f"{train.__name__}(encoder, {second}, folder, ...) is deprecated and goes with 0.3. Fix: "
                f"{train.__name__}({kind.__name__}(encoder=..., out=..., ...)).",
                DeprecationWarning,
                stacklevel=2,
            )
            plan = values.pop("plan", None)
            rest: dict[str, Any] = {name: values.pop(name) for name in passed_on & set(values)}
            new: Callable[..., _T] = train
            return new(kind(**(plan.numbers if plan is not None else {}), **_known(kind, values)), **rest)

        return call

    return decorate


def _kind(kinds: tuple[type[Trains], ...], composition: str | None) -> type[Trains]:
    if composition is None:
        return kinds[0]
    by_name = {str(getattr(kind, "composition", "")): kind for kind in kinds}
    if composition not in by_name:
        raise UnknownNameError.of("composition", composition, by_name)
    return by_name[composition]


def _known(kind: type[Trains], values: dict[str, Any]) -> dict[str, Any]:
    """The options that still exist; an old one is dropped where it is None, and refused where it is not."""
    options = inspect.signature(kind).parameters
    known = {name: value for name, value in values.items() if name in options or value is not None}
    for name in known.keys() - options.keys():
        raise CallError(
            f"{name}={known[name]!r}: {kind.__name__} has no such option."
            f"{did_you_mean(name, tuple(options))} Fix: leave it out, or give the options that it stood for."
        )
    return known
