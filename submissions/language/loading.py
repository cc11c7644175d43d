"""Language backends by name."""

from __future__ import annotations

import importlib
import inspect
import re
from typing import TYPE_CHECKING, Any

from cir_metrics.errors import CallError, UnknownNameError, did_you_mean

if TYPE_CHECKING:
    from submissions.language import Language

_HOMES = {
    "oracle": "submissions.language.oracle:OracleLanguage",
    "openai": "submissions.language.server:ServerLanguage",
    "transformers": "submissions.language.local:LocalLanguage",
}
_NONE = "It takes none. Fix: leave it out."
_BOTH = re.compile(rf"\+(?=(?:{'|'.join(_HOMES)})(?:[:+]|$))")


def load_language(name: str, **options: Any) -> Language:
    """A language backend.

    Args:
        name: `oracle` (shapes), `openai:MODEL` (any server that speaks OpenAI's chat API),
            `transformers:NAME` (a model's folder in Hugging Face format, or its name on the Hub), or two of
            them as `SEES+WRITES`: the first captions pictures, the second does everything else.
        options: of `ServerLanguage` and `LocalLanguage`; of two backends each gets those that it takes.

    Raises:
        UnknownNameError: no backend has that name.
        CallError: the name lacks its model, or an option is unknown or out of range.
        LanguageError: the model cannot be loaded, or the prompts cannot be used.
        MissingExtraError: what the backend needs is not installed.

    Example:
        >>> load_language("oracle").identity.text()
        'oracle (scene graphs of shapes)'
    """
    parts = _BOTH.split(name)
    if len(parts) > 2:
        raise CallError(f"language {name!r}: two backends at most. Fix: write SEES+WRITES.")
    made = [_class(part) for part in parts]
    known = set[str]().union(*(_options(cls) for cls, _ in made))
    for option in options:
        if option not in known:
            there = f"There are {', '.join(sorted(known))}. Fix: use one of them." if known else _NONE
            raise CallError(f"language {name!r}: no option {option!r}.{did_you_mean(option, known)} {there}")
    loaded = [
        cls(*model, **{option: value for option, value in options.items() if option in _options(cls)})
        for cls, model in made
    ]
    if len(loaded) == 1:
        only: Language = loaded[0]
        return only
    from submissions.language.pairing import PairedLanguage

    return PairedLanguage(*loaded)


def _class(part: str) -> tuple[Any, tuple[str, ...]]:
    """The class of a backend, and the model that it is to be made with."""
    backend, colon, model = part.partition(":")
    if backend not in _HOMES:
        raise UnknownNameError(
            f"no language backend {backend[:60]!r}.{did_you_mean(backend, _HOMES)} "
            "Fix: use oracle (shapes), openai:MODEL or transformers:NAME."
        )
    if backend == "oracle":
        if colon:
            raise CallError("language 'oracle' has no models. Fix: leave out what follows it.")
    elif not model:
        raise CallError(f"language {part!r}: no model is named. Fix: write {backend}:MODEL.")
    module, _, attribute = _HOMES[backend].partition(":")
    return getattr(importlib.import_module(module), attribute), (model,) if model else ()


def _options(cls: Any) -> set[str]:
    """Names of the keyword arguments of a backend."""
    if "__init__" not in vars(cls):
        return set()
    return set(inspect.signature(cls).parameters) - {"model"}
