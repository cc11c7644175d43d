"""Calls of the trainings as 0.1 had them: encoder, benchmark and folder, then a plan and options by name."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

from submissions.training.training_options import Trains

_P = ParamSpec("_P")
_T = TypeVar("_T")


def takes_old_calls(
    *kinds: type[Trains], second: str = "benchmark", renamed: Mapping[str, str] | None = None
) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    """Let a training take the call of 0.1 too, with a warning; gone in 0.2.

    Args:
        kinds: of its options; of several, `composition` of the call names one.
        second: the second argument of 0.1.
        renamed: other names of 0.1, and what they are now.
    """
    names = {"folder": "out", **(renamed or {})}

    def decorate(train: Callable[_P, _T]) -> Callable[_P, _T]:
        passed_on = set(inspect.signature(train).parameters)

        @functools.wraps(train)
        def call(*args: _P.args, **named: _P.kwargs) -> _T:
            if not ("encoder" in named or (args and not isinstance(args[0], Trains))):
                return train(*args, **named)
            old: dict[str, Any] = {**dict(zip(("encoder", second, "folder"), args, strict=False)), **named}
            values = {names.get(name, name): value for name, value in old.items()}
            kind = _kind(kinds, values.pop("composition", None))
            warnings.warn(
                f"{train.__name__}(encoder, {second}, folder, ...) goes in 0.2. Fix: "
                f"{train.__name__}({kind.__name__}(encoder=..., out=..., ...)).",
                DeprecationWarning,
                stacklevel=2,
            )
            plan = values.pop("plan", None)
            rest: dict[str, Any] = {name: values.pop(name) for name in passed_on & set(values)}
            new: Callable[..., _T] = train
            return new(kind(**(plan.numbers if plan is not None else {}), **values), **rest)

        return call

    return decorate


def _kind(kinds: tuple[type[Trains], ...], composition: str | None) -> type[Trains]:
    return next((kind for kind in kinds if getattr(kind, "composition", None) == composition), kinds[0])
