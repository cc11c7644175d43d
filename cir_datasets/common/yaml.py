"""Data files in YAML: read strictly, checked by a pydantic model, and every fault put in words."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterator, Mapping
from importlib import resources
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from cir_datasets.common.paths import regular
from cir_metrics.errors import CirError, did_you_mean

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import BaseModel

    Model = TypeVar("Model", bound=BaseModel)

_MAP_TAG = "tag:yaml.org,2002:map"
_INT_TAG = "tag:yaml.org,2002:int"
_FLOAT_TAG = "tag:yaml.org,2002:float"
_MERGE_TAG = "tag:yaml.org,2002:merge"
_MOST_FAULTS = 5
_MOST_CHARACTERS = 2**22
_MOST_DEPTH = 50
_MOST_DIGITS = 100
_MOST_VALUES = 500_000
_SHOWN = 60


def parse_yaml(text: str, *, words: bool = False) -> Any:
    """The value of a YAML text; by the parser in C where PyYAML has it, ten times as fast as the other.

    No text may grow when it is read: aliases of aliases, of which a few lines make a billion values, deep
    nesting, on which the parser in C crashes, and numbers of hundreds of digits are refused before anything
    is made of them. So are texts of more than 4 MiB.

    Args:
        text: the YAML.
        words: whether `yes`, `no`, numbers and days stay the words that were written.

    Raises:
        yaml.YAMLError: it is not YAML, holds a key twice in one mapping, or would cost too much.

    Example:
        >>> parse_yaml("a: [1, 2]")
        {'a': [1, 2]}
    """
    import yaml

    _check_cost(text)
    try:
        return yaml.load(text, Loader=_loader(words))
    except (ValueError, ArithmeticError, LookupError, AttributeError, TypeError) as error:
        # PyYAML's own words on a date of 31 February, say, or on a tag that its text does not fit.
        raise yaml.YAMLError(f"a value does not have the form of its type ({error})") from error


def read_yaml(text: str, where: str, error: Callable[[str], CirError], *, words: bool = False) -> Any:
    """The value of a YAML text.

    Args:
        text: the YAML.
        where: the file's name in messages.
        error: makes the error of a message.
        words: as for `parse_yaml`.

    Raises:
        CirError: of `error`: the text is not YAML; the message names the file, the line and the fix.
    """
    import yaml

    try:
        return parse_yaml(text, words=words)
    except yaml.YAMLError as fault:
        raise error(f"{where}: {yaml_fault(fault)}") from fault


def read_fields(path: Path, error: Callable[[str], CirError], example: str) -> tuple[dict[str, Any], str]:
    """The fields of a YAML file that somebody else wrote, and its text.

    Args:
        path: the file.
        error: makes the error of a message.
        example: a line of such a file.

    Raises:
        CirError: of `error`: the file cannot be read, is not UTF-8 or not YAML, or holds something else.
    """
    try:
        text = regular(path).read_bytes().decode("utf-8-sig")
    except OSError as fault:
        said = f"{path}: cannot be read: {fault.strerror}. Fix: check the path and its permissions."
        raise error(said) from fault
    except UnicodeDecodeError as fault:
        raise error(f"{path}: byte {fault.start} is not UTF-8. Fix: save it as UTF-8.") from fault
    fields = read_yaml(text, str(path), error)
    if not isinstance(fields, dict):
        raise error(f"{path}: it does not hold fields. Fix: write lines such as `{example}`.")
    return fields, text


@functools.cache
def package_yaml(package: str, path: str) -> Any:
    """The value of a YAML file that lies in a package of ours, read once: nobody changes it.

    Args:
        package: such as `submissions`.
        path: of the file in it, such as `rank_file/findings.yaml`.

    Example:
        >>> package_yaml("cir_datasets", "statistics/stop_words.yaml")["articles"]
        ['a', 'an', 'the']
    """
    return parse_yaml((resources.files(package) / path).read_text(encoding="utf-8"))


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
    fields = read_yaml(text, where, error)
    if not isinstance(fields, dict):
        raise error(f"{where}: it does not hold fields. Fix: write lines such as `name: value`.")
    return checked(model, {**fields, **further}, where, error)


def checked(
    model: type[Model], fields: Any, where: str, error: Callable[[str], CirError], text: str | None = None
) -> Model:
    """A pydantic model from parsed fields; `error` with file, field and fix where one is refused.

    With the `text` that the fields were read from, the message has the line of each field, too.
    """
    from pydantic import ValidationError

    try:
        return model.model_validate(fields)
    except ValidationError as fault:
        raise error(f"{where}: {_said(list(_faults(model, fault, text)))}") from fault


def yaml_fault(error: Exception) -> str:
    """What PyYAML says of a text, with line and fix, in a sentence."""
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or (str(error).splitlines() or ["it is not YAML"])[0]
    line = "" if mark is None else f"line {mark.line + 1}: "
    fix = "" if "Fix: " in what else " Fix: correct it there."
    return f"{line}{what.rstrip('.')}.{fix}"


def _check_cost(text: str) -> None:
    """Refuse a text that would cost more than its length, by its events, which cost no more than that."""
    import yaml
    from yaml.composer import ComposerError

    if len(text) > _MOST_CHARACTERS:
        raise yaml.YAMLError(f"more than {_MOST_CHARACTERS:,} characters are not read as YAML")
    values = 0  # with every alias written out
    began: list[tuple[str | None, int]] = []
    sizes: dict[str | None, int] = {}
    for event in yaml.parse(text, Loader=_loader()):
        what = None
        if isinstance(event, yaml.CollectionStartEvent):
            began.append((event.anchor, values))
            values += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = began.pop()
            sizes[anchor] = values - before
        elif isinstance(event, yaml.ScalarEvent):
            values += 1
        elif isinstance(event, yaml.AliasEvent):
            values += sizes.get(event.anchor, 1)
            if event.anchor in (anchor for anchor, _ in began):
                what = "an alias stands in what it stands for. Fix: write out what is meant"
        if len(began) > _MOST_DEPTH:
            what = f"it is nested more than {_MOST_DEPTH} deep. Fix: write it flatter"
        elif values > _MOST_VALUES:
            what = f"it stands for more than {_MOST_VALUES:,} values. Fix: write fewer or fewer aliases"
        if what is not None:
            raise ComposerError(None, None, what, event.start_mark)  # type: ignore[arg-type]  # or C's own


@functools.cache
def _loader(words: bool = False) -> Any:
    """PyYAML's safe loader, which refuses a mapping that holds a key twice, and numbers of many digits."""
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

    def number(loader: Any, node: Any) -> int | float:
        if len(str(node.value)) > _MOST_DIGITS:
            what = f"a number of more than {_MOST_DIGITS} digits. Fix: write text in quotation marks"
            raise ConstructorError(None, None, what, node.start_mark)
        whole = node.tag == _INT_TAG
        made: int | float = loader.construct_yaml_int(node) if whole else loader.construct_yaml_float(node)
        return made

    strict: Any = type("StrictLoader", (getattr(yaml, "CSafeLoader", yaml.SafeLoader),), {})
    strict.add_constructor(_MAP_TAG, mapping)
    for tag in (_INT_TAG, _FLOAT_TAG):
        strict.add_constructor(tag, number)
    for name in ("bool", "int", "float", "timestamp") if words else ():
        strict.add_constructor(f"tag:yaml.org,2002:{name}", lambda loader, node: node.value)
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


def _faults(model: type[BaseModel], error: Any, text: str | None) -> Iterator[tuple[str, str]]:
    """Path and complaint of every fault that pydantic found, once each."""
    found: dict[str, str] = {}
    for fault in error.errors():
        steps = [step for step in fault["loc"] if not (isinstance(step, str) and step in _UNION_MEMBERS)]
        path = ".".join(map(str, steps)).replace(".[key]", "")
        line = None if text is None else _line_of(text, steps)
        found[path if line is None else f"{path} (line {line})"] = _complaint(model, steps, fault)
    yield from found.items()


def _line_of(text: str, steps: list[Any]) -> int | None:
    """The line of a field in a YAML text, or of what is nearest above it; None where nothing is."""
    import yaml

    node, line = yaml.compose(text, Loader=_loader()), None
    for step in steps:
        if isinstance(node, yaml.MappingNode):
            found = next((pair for pair in node.value if pair[0].value == str(step)), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int):
            found = (node.value[step], node.value[step])
        else:
            found = None
        if found is None:
            break
        line, node = found[0].start_mark.line + 1, found[1]
    return line


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
