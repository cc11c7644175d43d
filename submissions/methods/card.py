"""The methods' cards: what each does, what it reads and what it needs, as data beside the code."""

from __future__ import annotations

import inspect
from importlib import resources
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cir_datasets.common.yaml import read_model
from submissions.errors import MethodError
from submissions.methods.registry import (
    brought_names,
    class_of,
    composer_names,
    kind_of_class,
    method_names,
    needs_of,
    scorer_names,
)
from submissions.methods.sc4cir import SC4CIR
from submissions.rank_file.model import Method

if TYPE_CHECKING:
    from submissions.encoders.protocol import Encoder

_FOLDER = "methods/cards"
_ENCODERS: dict[str, tuple[Literal["none", "any"], ...]] = {
    "scorer": ("none",),
    "composer": ("any",),
    "ranker": ("none",),
}


class MethodCard(BaseModel):
    """A method's card; `cards/NAME.yaml` beside this module."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    title: str
    summary: str
    query: str = ""
    """How a turn becomes a query vector."""
    reads: tuple[Literal["reference", "captions"], ...] = ()
    """What of a turn it looks at."""
    encoders: tuple[Literal["none", "any", "clip", "own"], ...] = ()
    """`none`: runs without weights; `any`, `clip`: what encoders it takes; `own`: it is one itself."""
    needs: tuple[Literal["language", "checkpoint"], ...] = ()
    """What it cannot do without beside pictures and an encoder."""
    paper: str = ""
    trained: str = ""
    """What of it was trained, and on what."""
    sessions: str = ""
    """What it makes of earlier turns."""
    example: str = ""
    """A command that runs it."""
    limits: str = ""
    cost: str = ""
    """What it takes beside an ordinary run."""
    reported: str = ""
    """What its paper reports."""
    measured: str = ""
    """What it gives here, and the page with the commands."""
    notes: str = Field(default="", exclude=True)
    """What a rank file says of it."""

    def method(self, **more: Any) -> Method:
        """Who answers, as a rank file says it: the card's words, and what only a run knows.

        Example:
            >>> method_card("image_only").method().name
            'Image only'
        """
        reads = ["relative_caption"] if "captions" in self.reads else []
        fields = {"name": self.title, "paper": self.paper, "zero_shot": True, "notes": self.notes}
        return Method.model_validate({**fields, "text_fields": reads, **more})


class Described:
    """A method on embeddings of which a rank file says what its card says."""

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset()

    def method(self, encoder: Encoder) -> Method:
        """Who answers."""
        return method_card(self.name).method()


def reranker_names() -> tuple[str, ...]:
    """Names of the re-rankers (`--rerank`), which have cards as methods do.

    Example:
        >>> reranker_names()
        ('sc4cir',)
    """
    return (SC4CIR.name,)


def method_card(name: str) -> MethodCard:
    """The card of a method, or of a re-ranker.

    Args:
        name: a name of `method_names()` or `reranker_names()`, or `module:Class`; the card of another
            package's method is made of its class, whose docstring's first line is the summary.

    Raises:
        UnknownNameError: no method has that name; the message names the nearest.
        MethodError: another package's method cannot be imported.

    Example:
        >>> method_card("cirevl").needs
        ('language',)
    """
    if name in (*scorer_names(), *composer_names(), *reranker_names()):
        return _read(name)
    cls = class_of(name)
    summary = (inspect.getdoc(cls) or "").strip().split("\n")[0]
    encoders = _ENCODERS[kind_of_class(cls) or "composer"]
    needs = sorted(needs_of(cls))
    card = {"name": name, "title": cls.__name__, "summary": summary, "encoders": encoders, "needs": needs}
    try:
        return MethodCard.model_validate(card)
    except ValidationError as error:
        raise MethodError(
            f"the method {name}: needs holds {', '.join(map(repr, needs))}. "
            'Fix: it may hold "language" and "checkpoint".'
        ) from error


def method_cards() -> list[MethodCard]:
    """The cards of all methods, in the order of tables; a method that cannot be imported says why.

    Example:
        >>> method_cards()[0].title
        'Random'
    """
    found = []
    for name in method_names():
        try:
            found.append(method_card(name))
        except MethodError as error:
            if name not in brought_names():
                raise
            found.append(MethodCard(name=name, title=name, summary=str(error)))
    return found


def _read(name: str) -> MethodCard:
    text = (resources.files("submissions") / _FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    return read_model(MethodCard, text, f"{_FOLDER}/{name}.yaml", MethodError, name=name)
