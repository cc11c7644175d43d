"""Data files in YAML: read strictly, checked by a pydantic model, and every fault told in words."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from cir_metrics.errors import CirError, did_you_mean

if TYPE_CHECKING:
    from pydantic import BaseModel

    Model = TypeVar("Model", bound=BaseModel)

_MAP_TAG = "tag:yaml.org,2002:map"
_MERGE_TAG = "tag:yaml.org,2002:merge"
_MOST_FAULTS = 5
_SHOWN = 60


def parse_yaml(text: str) -> Any:
    """The value of a YAML text; by the parser in C where PyYAML has it, ten times as fast as the other.

    Raises:
        yaml.YAMLError: it is not YAML, or holds a key twice in one mapping.

    Example:
        >>> parse_yaml("a: [1, 2]")
        {'a': [1, 2]}
    """
    import yaml

    return yaml.load(text, Loader=_loader())


def read_model(
    model: type[Model],
    text: str,
    where: str,
    error: Callable[[str], CirError],
    /,
    **further: Any,
) -> Model:
    """A pydantic model from a YAML text whose top level is a mapping.

    Args:
        model: what the text must hold.
        text: the YAML.
        where: the file's name in messages.
        error: makes the error of a message.
        further: fields that the text does not hold, such as the name of its file.

    Raises:
        CirError: of `error`: the text is not YAML, or a field is missing, unknown or refused. The message
            names the file, the line or the field, and the fix.
    """
    import yaml

    try:
        fields = parse_yaml(text)
    except yaml.YAMLError as fault:
        raise error(f"{where}: {yaml_fault(fault)}") from fault
    if not isinstance(fields, dict):
        raise error(f"{where}: it does not hold fields. Fix: write lines such as `name: value`.")
    return checked(model, {**fields, **further}, where, error)


def checked(model: type[Model], fields: Any, where: str, error: Callable[[str], CirError]) -> Model:
    """A pydantic model from parsed fields; `error` with file, field and fix where one is refused."""
    from pydantic import ValidationError

    try:
        return model.model_validate(fields)
    except ValidationError as fault:
        raise error(f"{where}: {_said(list(_faults(model, fault)))}") from fault


def yaml_fault(error: Exception) -> str:
    """What PyYAML says of a text, with line and fix, in a sentence."""
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or (str(error).splitlines() or ["it is not YAML"])[0]
    line = "" if mark is None else f"line {mark.line + 1}: "
    fix = "" if "Fix: " in what else " Fix: correct it there."
    return f"{line}{what.rstrip('.')}.{fix}"


@functools.cache
def _loader() -> Any:
    """PyYAML's safe loader, which refuses a mapping that holds a key twice."""
    import yaml
    from yaml.constructor import ConstructorError

    def mapping(loader: Any, node: Any) -> Iterator[dict[Any, Any]]:
        lines: dict[Any, int] = {}
        for key_node, _ in node.value:
            if key_node.tag == _MERGE_TAG:
                continue
            key = loader.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                continue  # PyYAML's own complaint comes below
            line = key_node.start_mark.line + 1
            if key in lines:
                what = f"the key {key!r} is there twice (first in line {lines[key]}). Fix: keep one of them"
                raise ConstructorError(None, None, what, key_node.start_mark)
            lines[key] = line
        made: dict[Any, Any] = {}
        yield made
        made.update(loader.construct_mapping(node))

    strict: Any = type("StrictLoader", (getattr(yaml, "CSafeLoader", yaml.SafeLoader),), {})
    strict.add_constructor(_MAP_TAG, mapping)
    return strict


def _said(faults: list[tuple[str, str]]) -> str:
    """One fault in a sentence, several a line each."""
    lines = [f"{path}: {what.rstrip('.')}." if path else f"{what.rstrip('.')}." for path, what in faults]
    if len(lines) == 1:
        what = "that field" if faults[0][0] else "the file"
        return lines[0] if "Fix: " in lines[0] else f"{lines[0]} Fix: correct {what}."
    left = [f"and {len(lines) - _MOST_FAULTS} more."] if len(lines) > _MOST_FAULTS else []
    shown = "\n  ".join([*lines[:_MOST_FAULTS], *left])
    return f"{len(lines)} faults.\n  {shown}\n  Fix: correct these fields."


def _faults(model: type[BaseModel], error: Any) -> Iterator[tuple[str, str]]:
    """Path and complaint of every fault that pydantic found, once each."""
    found: dict[str, str] = {}
    for fault in error.errors():
        steps = [step for step in fault["loc"] if not (isinstance(step, str) and step in _UNION_MEMBERS)]
        found[".".join(map(str, steps)).replace(".[key]", "")] = _complaint(model, steps, fault)
    yield from found.items()


_UNION_MEMBERS = frozenset({"int", "float", "str", "bool"})
"""Pydantic puts the member of a union behind the field's own path."""


def _complaint(model: type[BaseModel], steps: list[Any], fault: Mapping[str, Any]) -> str:
    kind, given, limits = fault["type"], _shown(fault["input"]), fault.get("ctx", {})
    if kind == "missing":
        return "is missing. Fix: add it"
    if kind == "extra_forbidden":
        hint = did_you_mean(steps[-1], _fields_at(model, steps[:-1]))
        return f"there is no such field.{hint} Fix: leave it out, or correct its name"
    if kind == "value_error":
        return str(limits["error"])
    if kind == "string_pattern_mismatch":
        return f"{given} does not have the form {limits['pattern']}"
    if kind == "literal_error":
        return f"must be {limits['expected']}, not {given}"
    if kind.startswith("greater_than"):
        return f"must be {limits.get('ge', limits.get('gt'))} or more, not {given}"
    if kind in ("too_short", "string_too_short"):
        return f"must hold at least {limits['min_length']} {'character' if 'string' in kind else 'item'}(s)"
    for start, wanted in _KINDS.items():
        if kind.startswith(start):
            return f"must be {wanted}, not {given}"
    return f"{fault['msg']}, not {given}"


_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "string": "text",
    "bool": "true or false",
    "tuple": "a list",
    "list": "a list",
    "dict": "a mapping",
    "model": "a mapping",
}
"""What a field wants, by how pydantic's name of the fault starts."""


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _fields_at(model: type[BaseModel], steps: list[Any]) -> list[str]:
    """Names of the fields of the models that lie at a path."""
    here = [model]
    for step in steps:
        inner = [each for one in here if step in one.model_fields for each in _models(one, step)]
        here = inner or here  # the key of a mapping or the place in a list: the models stay
    return [name for one in here for name in one.model_fields]


def _models(model: type[BaseModel], name: str) -> list[type[BaseModel]]:
    from pydantic import BaseModel

    found, left = [], [model.model_fields[name].annotation]
    while left:
        annotation = left.pop()
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            found.append(annotation)
        left += get_args(annotation)
    return found
