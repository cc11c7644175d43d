"""Language backends by name."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from cir_metrics.errors import CallError, UnknownNameError, did_you_mean
from submissions.errors import LanguageError
from submissions.language.protocol import FormLanguage, FormT, Item, LanguageIdentity, Picture, known_only

if TYPE_CHECKING:
    from submissions.language.protocol import Language

_HOMES = {
    "oracle": "submissions.language.oracle:OracleLanguage",
    "openai": "submissions.language.server:ServerLanguage",
    "transformers": "submissions.language.local:LocalLanguage",
}
_BOTH = re.compile(rf"\+(?=(?:{'|'.join(_HOMES)})(?:[:+,]|$))")
_OPTION = re.compile(r",(?=[a-z_]+=)")
_NOT_IN_NAMES = frozenset({"key", "clock", "sleep"})
"""A name ends up in shell histories and logs, and holds no functions."""


class _NamedBackend(NamedTuple):
    """One backend of a name: its class, what it is made with, and the options in the name."""

    made_by: Any
    model: tuple[str, ...]
    options: dict[str, Any]
    known: frozenset[str]

    def made(self, shared: Mapping[str, Any]) -> Any:
        """The backend; options in the name come before those of the call."""
        own = {option: value for option, value in shared.items() if option in self.known}
        return self.made_by(*self.model, **{**own, **self.options})


def load_language(name: str, **options: Any) -> Language:
    """A language backend.

    Args:
        name: `oracle` (shapes), `openai:MODEL` (any server that speaks OpenAI's chat API),
            `transformers:NAME` (a model's folder in Hugging Face format, or its name on the Hub), or two of
            them as `SEES+WRITES`: the first captions pictures, the second does everything else. Options may
            stand behind each, as in `openai:MODEL,concurrency=8,prompts=FOLDER`.
        options: of `ServerLanguage` and `LocalLanguage`; of two backends each gets those that it takes, and
            those in the name come first.

    Raises:
        UnknownNameError: no backend has that name.
        CallError: the name lacks its model, or an option is unknown or out of range.
        LanguageError: the model cannot be loaded, or the prompts cannot be used.
        MissingExtraError: what the backend needs is not installed.

    Example:
        >>> load_language("oracle").identity.text()
        'oracle (scene graphs of shapes)'
    """
    loaded = [part.made(options) for part in _parts(name, options)]
    if len(loaded) == 1:
        only: Language = loaded[0]
        return only

    return PairedLanguage(*loaded)


def calls_at_once(name: str) -> int:
    """How many questions a language backend is asked at once; nothing is loaded, and no key is needed.

    Args:
        name: as of `load_language`; of two backends the fewer.

    Raises:
        UnknownNameError: no backend has that name.
        CallError: as of `load_language`.

    Example:
        >>> calls_at_once("openai:gpt-4o,concurrency=16"), calls_at_once("openai:gpt-4o")
        (16, 4)
    """
    found = [
        part.options.get("concurrency", inspect.signature(part.made_by).parameters["concurrency"].default)
        if "concurrency" in part.known
        else 1
        for part in _parts(name, {})
    ]
    fewest = int(min(found))
    if fewest < 1:
        raise CallError(f"concurrency={fewest}; it is above 0. Fix: leave it out for our choice.")
    return fewest


def _parts(name: str, options: Mapping[str, Any]) -> list[_NamedBackend]:
    """The backends of a name, their options checked."""
    parts = [_part(part) for part in _BOTH.split(name)]
    if len(parts) > 2:
        raise CallError(f"language {name!r}: two backends at most. Fix: write SEES+WRITES.")
    _check(name, options, frozenset().union(*(part.known for part in parts)))
    for part in parts:
        _check(name, part.options, part.known - _NOT_IN_NAMES)
    return parts


def _part(text: str) -> _NamedBackend:
    named, *given = _OPTION.split(text)
    backend, colon, model = named.partition(":")
    if backend not in _HOMES:
        raise UnknownNameError(
            f"no language backend {backend[:60]!r}.{did_you_mean(backend, _HOMES)} "
            "Fix: use oracle (shapes), openai:MODEL or transformers:NAME."
        )
    if backend == "oracle":
        if colon:
            raise CallError("language 'oracle' has no models. Fix: leave out what follows it.")
    elif not model:
        raise CallError(f"language {named!r}: no model is named. Fix: write {backend}:MODEL.")
    module, _, attribute = _HOMES[backend].partition(":")
    made_by = getattr(importlib.import_module(module), attribute)
    known = _known(made_by)
    options = {}
    for option, _, value in (one.partition("=") for one in given):
        options[option] = _value(option, value, known.get(option, ""))
    return _NamedBackend(made_by, (model,) if model else (), options, frozenset(known))


def _value(option: str, text: str, kind: str) -> Any:
    """An option's value out of a name: a number, true or false, a {mapping}, else the text."""
    import yaml

    from cir_datasets.common.yaml import parse_yaml

    if "bool" in kind:
        return {"true": True, "false": False}.get(text, text)
    wanted: tuple[type, ...] = (int, float) if kind.startswith(("int", "float")) else (dict,)
    if wanted == (dict,) and not kind.startswith("Mapping"):
        return text
    try:
        value = parse_yaml(text)
    except yaml.YAMLError:
        value = None
    if isinstance(value, bool) or not isinstance(value, wanted):
        shown = "a number" if int in wanted else "a mapping such as {seed: 7}"
        raise CallError(f"language: {option}={text!r} is not {shown}. Fix: write {shown}.")
    return value


def _known(made_by: Any) -> dict[str, str]:
    """The options of a backend, and what each is."""
    if "__init__" not in vars(made_by):
        return {}
    found = inspect.signature(made_by).parameters
    return {name: str(option.annotation) for name, option in found.items() if name != "model"}


def _check(name: str, options: Mapping[str, Any], known: frozenset[str]) -> None:
    for option in options:
        if option not in known:
            there = f"There are {', '.join(sorted(known))}. Fix: use one of them."
            raise CallError(
                f"language {name!r}: no option {option!r}.{did_you_mean(option, known)} "
                f"{there if known else 'It takes none. Fix: leave it out.'}"
            )


class PairedLanguage:
    """Two backends as one, as CIReVL has them: the first sees, the second writes.

    Args:
        sees: captions pictures, and is asked whatever is about pictures.
        writes: does everything else.
    """

    def __init__(self, sees: Language, writes: Language) -> None:
        """See the class."""
        self.sees = sees
        self.writes = writes

    @property
    def identity(self) -> LanguageIdentity:
        """Both, the one that sees first."""
        first, second = self.sees.identity, self.writes.identity
        return LanguageIdentity(
            first.backend,
            first.model,
            first.revision,
            first.prompts,
            "; ".join(part for part in (first.settings, f"words by {second.text()}") if part),
        )

    def known_only(self) -> PairedLanguage | None:
        """Both with the answers that they have alone; None where one of them cannot do that."""
        sees, writes = known_only(self.sees), known_only(self.writes)
        return None if sees is None or writes is None else PairedLanguage(sees, writes)

    def caption(self, images: Sequence[Picture]) -> list[str]:
        """A caption of each picture."""
        return self.sees.caption(images)

    def merge(self, captions: Sequence[str], changes: Sequence[str]) -> list[str]:
        """The caption of each target."""
        return self.writes.merge(captions, changes)

    def difference(self, first: Sequence[str], second: Sequence[str]) -> list[str]:
        """The relative caption from each first caption to the second."""
        return self.writes.difference(first, second)

    def judge(self, prompt: str, items: Sequence[Mapping[str, str]]) -> list[str]:
        """The answer to a question of your own about each item."""
        return self.writes.judge(prompt, items)

    def ask(self, prompt: str, items: Sequence[Item], form: type[FormT]) -> list[FormT]:
        """The answer to one question about each item, in the fields of a form."""
        speaker = self.sees if any(item.pictures for item in items) else self.writes
        if not isinstance(speaker, FormLanguage):
            raise LanguageError(
                f"{speaker.identity.text()} has no ask, so that it fills in no forms. "
                "Fix: use another --language."
            )
        return speaker.ask(prompt, items, form)
