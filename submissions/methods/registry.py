"""The methods by name: those of this package, those that other packages bring, and a user's own class.

Their cards, which say what each does, are in `submissions.methods.card`.
"""

from __future__ import annotations

import importlib
from importlib import metadata
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, cast

from cir_metrics.errors import UnknownNameError, did_you_mean
from submissions.errors import MethodError
from submissions.methods.user_methods import made

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.methods.composing import Composer
    from submissions.methods.protocols import Ranker, Scorer

GROUP = "cir_benchmarks.methods"
"""The entry point group by which other packages bring methods: `name = package.module:Class`."""

_SCORERS = {
    "random": "submissions.methods.random:Random",
    "image_only_pixels": "submissions.methods.pixels.image_only:ImageOnlyPixels",
    "text_only_pixels": "submissions.methods.pixels.text_only:TextOnlyPixels",
    "image_text_sum_pixels": "submissions.methods.pixels.image_text_sum:ImageTextSumPixels",
}
"""Methods without weights, in the order of tables."""

_COMPOSERS = {
    "image_only": "submissions.methods.image_only:ImageOnly",
    "text_only": "submissions.methods.text_only:TextOnly",
    "image_text_sum": "submissions.methods.image_text_sum:ImageTextSum",
    "captioning": "submissions.methods.captioning:Captioning",
    "concat": "submissions.methods.concat:Concat",
    "tirg": "submissions.methods.cirplant:Tirg",
    "cirplant": "submissions.methods.cirplant:Cirplant",
    "pic2word": "submissions.methods.pic2word:Pic2Word",
    "cirevl": "submissions.methods.cirevl:CIReVL",
    "magiclens": "submissions.methods.magiclens:MagicLens",
}
"""Methods on embeddings, in the order of tables; a file is imported when its method is wanted."""

Kind = Literal["scorer", "composer", "ranker"]
"""What a class does: `scores`, `compose` or `rank`."""

_DOES: dict[Kind, str] = {
    "composer": "compose(turns, context)",
    "scorer": "scores(turns, gallery)",
    "ranker": "rank(turns, gallery, k)",
}


def method_names() -> tuple[str, ...]:
    """Names of all methods, in the order of tables; those of other packages come last.

    Example:
        >>> method_names()[:4]
        ('random', 'image_only_pixels', 'text_only_pixels', 'image_text_sum_pixels')
    """
    return (*_SCORERS, *_COMPOSERS, *_brought())


def brought_names() -> tuple[str, ...]:
    """Names of the methods that other packages bring, by the entry point group `GROUP`."""
    return tuple(_brought())


def scorer_names() -> tuple[str, ...]:
    """Names of the methods of this package that need no weights.

    Example:
        >>> scorer_names()
        ('random', 'image_only_pixels', 'text_only_pixels', 'image_text_sum_pixels')
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
    """The weight-free method of a name, or of `module:Class`; see `method_of`.

    Example:
        >>> scorer("random").needs_pictures
        False
    """
    return cast("Scorer", method_of(name, kind="scorer"))


def composer(name: str, *, checkpoint: str | None = None) -> Composer:
    """The method on embeddings of a name, or of `module:Class`; see `method_of`.

    Example:
        >>> composer("image_text_sum").name
        'image_text_sum'
    """
    return cast("Composer", method_of(name, kind="composer", checkpoint=checkpoint))


def method_of(
    name: str, *, kind: Kind | None = None, checkpoint: str | None = None
) -> Composer | Scorer | Ranker:
    """The method of a name.

    Args:
        name: a name of `method_names()`, or `module:Class`.
        kind: what its class does; None: any.
        checkpoint: file or folder of its own trained weights, for a method on embeddings that needs them.

    Raises:
        UnknownNameError: no method of that kind has that name; the message names the nearest.
        MethodError: the class that is named cannot be had or is of another kind; a checkpoint is missing, or
            given to a method on embeddings that takes none.

    Example:
        >>> type(method_of("image_only_pixels")).__module__
        'submissions.methods.pixels.image_only'
    """
    cls = class_of(name, kind)
    takes = "checkpoint" in needs_of(cls)
    if takes and checkpoint is None:
        raise MethodError(
            f"the method {name} needs weights of its own. Fix: add --checkpoint PATH (checkpoint=)."
        )
    if checkpoint is not None and not takes and kind_of_class(cls) == "composer":
        raise MethodError(f"the method {name} takes no checkpoint. Fix: leave --checkpoint out.")
    found: Composer | Scorer | Ranker = made(name, cls, **({"checkpoint": checkpoint} if takes else {}))
    return found


def kind_of(name: str) -> Kind:
    """What a method of that name does.

    Args:
        name: a method's name or `module:Class`.

    Raises:
        UnknownNameError: no method has that name; the message names the nearest.
        MethodError: the class that is named cannot be had.

    Example:
        >>> kind_of("image_only_pixels"), kind_of("image_only"), kind_of("random")
        ('scorer', 'composer', 'scorer')
    """
    return kind_of_class(class_of(name)) or "composer"


def kind_of_class(cls: Any) -> Kind | None:
    """What a class, or a method that is made already, does; None where it is not a method.

    Example:
        >>> kind_of_class(dict)
    """
    does: tuple[tuple[str, Kind], ...] = (("compose", "composer"), ("scores", "scorer"), ("rank", "ranker"))
    return next((kind for word, kind in does if callable(getattr(cls, word, None))), None)


def needs_of(method: Any) -> frozenset[str]:
    """What a method, or its class, cannot do without: its `needs`, nothing where it has none.

    Example:
        >>> sorted(needs_of(class_of("cirevl")))
        ['language']
    """
    return frozenset(getattr(method, "needs", None) or ())


def class_of(name: str, kind: Kind | None = None) -> Any:
    """The class of a name: of that kind, or of any; it is imported, not made.

    Raises:
        UnknownNameError: no method has that name; the message names the nearest.
        MethodError: it cannot be imported, or is not a method of that kind.

    Example:
        >>> class_of("random").__name__
        'Random'
    """
    own = {"scorer": _SCORERS, "composer": _COMPOSERS, "ranker": {}, None: _SCORERS | _COMPOSERS}[kind]
    known = own | _brought()
    if name not in known and ":" not in name:
        if name in _SCORERS or name in _COMPOSERS:
            word = "no" if name in _SCORERS else "an"
            raise UnknownNameError(
                f"the method {name!r} works with {word} encoder. Fix: use one of {', '.join(own)}."
            )
        names = method_names()
        raise UnknownNameError.of("method", name, names)
    cls = _load(name, known.get(name, name))
    if kind is not None and kind_of_class(cls) != kind:
        raise MethodError(f"the method {name}: its class has no {_DOES[kind]}. Fix: see docs/running.md.")
    return cls


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


def _brought() -> dict[str, str]:
    """Methods of other packages: name -> module:Class; a name of ours stays ours."""
    found = {point.name: point.value for point in metadata.entry_points(group=GROUP)}
    return {name: home for name, home in found.items() if name not in _SCORERS and name not in _COMPOSERS}


def _load(name: str, home: str) -> Any:
    module, _, attribute = home.partition(":")
    try:
        loaded = importlib.import_module(module)
        cls = getattr(loaded, attribute, None)
    except (ImportError, AttributeError, ValueError) as error:
        raise MethodError(
            f"the method {name}: {home} cannot be imported ({error}). "
            "Fix: write module:Class of a module that Python finds, such as my_package.mine:Mine."
        ) from error
    except Exception as error:
        raise MethodError(
            f"the method {name}: {home} failed while it was imported: {type(error).__name__}: {error}. "
            "Fix: correct it."
        ) from error
    if cls is None:
        raise MethodError(
            f"the method {name}: the module {module} has no class {attribute!r}.{_others(loaded, attribute)}"
        )
    if kind_of_class(cls) is None:
        raise MethodError(
            f"the method {name}: {home} has none of {', '.join(_DOES.values())}. "
            "Fix: write one of them, see docs/running.md."
        )
    return cls


def _others(module: ModuleType, wanted: str) -> str:
    """What a module has instead of a class: its methods, without the protocols that it may have imported."""
    found = [
        name
        for name, value in vars(module).items()
        if isinstance(value, type) and kind_of_class(value) and not getattr(value, "_is_protocol", False)
    ]
    if not found:
        return " Fix: write a method there, see docs/running.md."
    return f"{did_you_mean(wanted, found)} Fix: name one of its methods: {', '.join(found)}."
