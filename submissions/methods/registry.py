"""The methods by name: those of this package, those that other packages bring, and a user's own class."""

from __future__ import annotations

import importlib
import inspect
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Any, Literal

from cir_metrics.errors import UnknownNameError, did_you_mean
from submissions.errors import MethodError

if TYPE_CHECKING:
    from cir_datasets.benchmark import Benchmark
    from submissions.methods.composing import Composer
    from submissions.methods.scorers import Scorer

PIXELS = "pixels"
"""`--encoder pixels`: the methods that need no weights."""

GROUP = "cir_benchmarks.methods"
"""The entry point group by which other packages bring methods: `name = package.module:Class`."""

_SCORERS = {
    "random": "submissions.methods.random:Random",
    "image_only": "submissions.methods.pixels.image_only:ImageOnly",
    "text_only": "submissions.methods.pixels.text_only:TextOnly",
    "image_text_sum": "submissions.methods.pixels.image_text_sum:ImageTextSum",
}
"""Methods without weights, in the order of tables."""

_COMPOSERS = {
    "image_only": "submissions.methods.image_only:ImageOnly",
    "text_only": "submissions.methods.text_only:TextOnly",
    "image_text_sum": "submissions.methods.image_text_sum:ImageTextSum",
    "captioning": "submissions.methods.captioning:Captioning",
    "concat": "submissions.methods.concat:Concat",
    "pic2word": "submissions.methods.pic2word:Pic2Word",
    "cirevl": "submissions.methods.cirevl:CIReVL",
    "magiclens": "submissions.methods.magiclens:MagicLens",
}
"""Methods on embeddings, in the order of tables; a file is imported when its method is asked for."""

Kind = Literal["scorer", "composer"]


@dataclass(frozen=True)
class MethodCard:
    """A method as lists show it.

    Args:
        name: the name of `--method`.
        kind: "scorer" (without weights, `--encoder pixels`) or "composer" (on an encoder's embeddings).
        needs: what it cannot do without beside pictures and encoder: "language", "checkpoint".
        summary: the first line of its class.
    """

    name: str
    kind: Kind
    needs: tuple[str, ...]
    summary: str


def method_names() -> tuple[str, ...]:
    """Names of all methods, in the order of tables; those of other packages come last.

    Example:
        >>> method_names()[:4]
        ('random', 'image_only', 'text_only', 'image_text_sum')
    """
    return tuple(dict.fromkeys([*_SCORERS, *_COMPOSERS, *_brought()]))


def scorer_names() -> tuple[str, ...]:
    """Names of the methods of this package that need no weights.

    Example:
        >>> scorer_names()
        ('random', 'image_only', 'text_only', 'image_text_sum')
    """
    return tuple(_SCORERS)


def composer_names() -> tuple[str, ...]:
    """Names of the methods of this package that work on an encoder's embeddings.

    Example:
        >>> composer_names()[:3]
        ('image_only', 'text_only', 'image_text_sum')
    """
    return tuple(_COMPOSERS)


def scorer(name: str) -> Scorer:
    """The weight-free method of a name, or of `module:Class`.

    Raises:
        UnknownNameError: no method without weights has that name; the message names the nearest.
        MethodError: the class that is named cannot be had, or is no scorer.

    Example:
        >>> scorer("random").needs_pictures
        False
    """
    found: Scorer = _made(name, "scorer", {})
    return found


def composer(name: str, *, checkpoint: str | None = None) -> Composer:
    """The method on embeddings of a name, or of `module:Class`.

    Args:
        name: a name of `method_names()`, or `module:Class` of a class that fulfils `Composer`.
        checkpoint: file or folder of its own trained weights, for a method that needs them.

    Raises:
        UnknownNameError: no method on embeddings has that name; the message names the nearest.
        MethodError: the class that is named cannot be had or is no composer; a checkpoint is missing, or
            given to a method that takes none.

    Example:
        >>> composer("image_text_sum").name
        'image_text_sum'
    """
    cls = _class(name, "composer")
    takes = "checkpoint" in getattr(cls, "needs", ())
    if takes and checkpoint is None:
        raise MethodError(
            f"the method {name} needs weights of its own. Fix: add --checkpoint PATH (checkpoint=)."
        )
    if checkpoint is not None and not takes:
        raise MethodError(f"the method {name} takes no checkpoint. Fix: leave --checkpoint out.")
    found: Composer = _made(name, "composer", {"checkpoint": checkpoint} if takes else {})
    return found


def is_scorer(name: str, encoder: str | None) -> bool:
    """Whether a method's name means a weight-free method where that encoder is asked for.

    Args:
        name: a method's name or `module:Class`.
        encoder: "pixels", another encoder's name, or None for the benchmark's default.

    Raises:
        MethodError: the class that is named cannot be had.

    Example:
        >>> is_scorer("image_only", "pixels"), is_scorer("image_only", "shapes"), is_scorer("random", None)
        (True, False, True)
    """
    if encoder == PIXELS or (name in _SCORERS and name not in _COMPOSERS):
        return True
    if name in _COMPOSERS or not (":" in name or name in _brought()):
        return False
    return _kind(_class(name, None)) == "scorer"


def methods_for(benchmark: str | Benchmark) -> list[str]:
    """Names of the weight-free methods that can rank a benchmark; without its pictures those that need none.

    Args:
        benchmark: an id or a benchmark.

    Raises:
        UnknownNameError: no benchmark has that id.
    """
    from cir_datasets.registry import spec

    of = spec(benchmark) if isinstance(benchmark, str) else benchmark.spec
    embedded = of.card.source.publisher == "embedded"
    return [name for name in _SCORERS if embedded or not scorer(name).needs_pictures]


def cards() -> list[MethodCard]:
    """All methods with a line each; one that cannot be loaded says why in its place."""
    listed = [(name, "scorer", home) for name, home in _SCORERS.items()]
    listed += [(name, "composer", home) for name, home in _COMPOSERS.items()]
    listed += [(name, "", home) for name, home in _brought().items()]
    found = []
    for name, kind, home in listed:
        try:
            cls = _load(name, home)
        except MethodError as error:
            found.append(MethodCard(name, "composer", (), str(error)))
            continue
        summary = (inspect.getdoc(cls) or "").strip().split("\n")[0]
        which: Kind = "scorer" if (kind or _kind(cls)) == "scorer" else "composer"
        found.append(MethodCard(name, which, tuple(sorted(getattr(cls, "needs", ()))), summary))
    return found


def _brought() -> dict[str, str]:
    """Methods of other packages: name -> module:Class; a name of ours stays ours."""
    found = {point.name: point.value for point in metadata.entry_points(group=GROUP)}
    return {name: home for name, home in found.items() if name not in _SCORERS and name not in _COMPOSERS}


def _made(name: str, kind: Kind, options: dict[str, Any]) -> Any:
    return _class(name, kind)(**options)


def _class(name: str, kind: Kind | None) -> Any:
    """The class of a name of that kind."""
    own = {"scorer": _SCORERS, "composer": _COMPOSERS, None: _SCORERS | _COMPOSERS}[kind]
    known = own | _brought()
    if name not in known and ":" not in name:
        other = next((each for each in (_SCORERS, _COMPOSERS) if name in each), None)
        if other is not None:
            word, fix = ("an", "--encoder NAME") if kind == "scorer" else ("no", "--encoder pixels")
            raise UnknownNameError(
                f"the method {name!r} needs {word} encoder. Fix: {fix}, or one of {', '.join(own)}."
            )
        raise UnknownNameError(
            f"no method {name!r}.{did_you_mean(name, method_names())} There are {', '.join(method_names())}."
        )
    cls = _load(name, known.get(name, name))
    if kind is not None and _kind(cls) != kind:
        lacks = "scores(asks, gallery)" if kind == "scorer" else "compose(asks, context)"
        raise MethodError(
            f"the method {name}: its class has no {lacks}. "
            f"Fix: {'choose another --encoder' if kind == 'scorer' else 'see submissions.methods.Composer'}."
        )
    return cls


def _load(name: str, home: str) -> Any:
    module, _, attribute = home.partition(":")
    try:
        cls = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise MethodError(
            f"the method {name}: {home} cannot be imported ({error}). "
            "Fix: write module:Class of a module that Python finds, such as my_package.mine:Mine."
        ) from error
    if _kind(cls) is None:
        raise MethodError(
            f"the method {name}: {home} has neither compose(asks, context) nor scores(asks, gallery). "
            "Fix: write one of them, see submissions.methods.Composer."
        )
    return cls


def _kind(cls: Any) -> Kind | None:
    if callable(getattr(cls, "compose", None)):
        return "composer"
    return "scorer" if callable(getattr(cls, "scores", None)) else None
