"""A user's own method: what it raises is named as its own, and what it gives is checked before it is used."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cir_metrics.errors import CirError
from submissions.errors import MethodError
from submissions.rank_file.model import Method

if TYPE_CHECKING:
    from submissions.methods.composing import Composer, Context, Vectors
    from submissions.methods.protocols import Ranker, Scorer
    from submissions.methods.turns import Candidates, Turn

_OURS = "submissions."


@contextmanager
def failing_as_its_own(name: str, method: object) -> Iterator[None]:
    """Report what a user's own method raises as its failure; an error of a method of ours stays as it is.

    Args:
        name: what the method is called in the message.
        method: the method, or its class.

    Raises:
        MethodError: its code raised; the cause hangs on it.
    """
    cls = method if isinstance(method, type) else type(method)
    try:
        yield
    except (CirError, MemoryError):
        raise
    except Exception as error:
        if cls.__module__.startswith(_OURS):
            raise
        raise MethodError(
            f"the method {name} failed: {type(error).__name__}: {error}. "
            "Fix: correct it; `cir --debug ...` shows where it failed."
        ) from error


def made(name: str, cls: Callable[..., Any], **given: str | None) -> Any:
    """A method of its class.

    Raises:
        MethodError: its code raised.
    """
    with failing_as_its_own(name, cls):
        return cls(**given)


def bound_encoder(method: object) -> str | None:
    """Name or folder of the encoder that a method brings, or None."""
    name: str | None = getattr(method, "bound_encoder", None)
    if name is None and (name := getattr(method, "own_encoder", None)) is not None:
        words = "own_encoder of a method is called bound_encoder, and goes with 0.3. Fix: rename it."
        warnings.warn(words, FutureWarning, stacklevel=2)
    return name


def describe_method(name: str, method: Composer | Scorer | Ranker, *given: object) -> Method:
    """What a method says of itself.

    Args:
        name: what it is called in messages.
        method: the method.
        given: the encoder, to a method on embeddings.

    Raises:
        MethodError: its code raised, or it does not return a `Method`.
    """
    say: Callable[..., object] = method.method
    with failing_as_its_own(name, method):
        described = say(*given)
    if not isinstance(described, Method):
        raise MethodError(
            f"the method {name}: method() gave {type(described).__name__}. "
            "Fix: give submissions.methods.Method(...)."
        )
    return described


def composed(name: str, method: Composer, turns: Sequence[Turn], context: Context) -> Vectors:
    """What a method on embeddings composes, float32, shape (turns, dimensions).

    Raises:
        MethodError: its code raised; another shape or type, or values that are not finite.
    """
    with failing_as_its_own(name, method):
        given = method.compose(turns, context)
    vectors = _array(given)
    wanted = (len(turns), context.dimensions)
    if vectors.shape != wanted or vectors.dtype != np.float32 or not np.isfinite(vectors).all():
        raise MethodError(
            f"the method {name} composed {_described(given, vectors)}. "
            f"Fix: compose() gives finite float32 of shape {wanted}, a row a turn."
        )
    return vectors


def scored(name: str, method: Scorer, turns: Sequence[Turn], gallery: Candidates) -> NDArray[np.float64]:
    """The scores of a method without weights, shape (turns, images); an array that may be written to.

    Raises:
        MethodError: its code raised; another shape, no numbers, or numbers that are not finite.
    """
    with failing_as_its_own(name, method):
        given = method.scores(turns, gallery)
    scores = _array(given)
    wanted = (len(turns), len(gallery.ids))
    if scores.shape != wanted or scores.dtype.kind not in "fiub" or not np.isfinite(scores).all():
        raise MethodError(
            f"the method {name} gave {_described(given, scores)} as scores. "
            f"Fix: scores() gives finite numbers of shape {wanted}, a row a turn."
        )
    return np.array(scores, dtype=np.float64)


def listed(name: str, method: Ranker, turns: Sequence[Turn], gallery: Candidates, k: int) -> list[list[str]]:
    """The lists of a method that ranks by itself, one a turn.

    Raises:
        MethodError: its code raised, or it gives something else than lists of image ids.
    """
    with failing_as_its_own(name, method):
        given: object = method.rank(turns, gallery, k)
        lists = _listed(given)
        rankings = None if lists is None else [_listed(each) for each in lists]
    if rankings is None:
        raise MethodError(f"{name} gave {type(given).__name__} as rankings. Fix: rank() gives a list a turn.")
    if len(rankings) != len(turns):
        raise MethodError(f"{name} gave {len(rankings)} rankings for {len(turns)} turns. Fix: one for each.")
    found = []
    for turn, ranking in zip(turns, rankings, strict=True):
        if ranking is None or not all(isinstance(image, str) for image in ranking):
            raise MethodError(f"{name}, turn {turn.key}: no list of image ids. Fix: rank gallery.ids.")
        # Without the types of other libraries, which no JSON can hold.
        found.append([str(image) for image in ranking])
    return found


def _listed(given: object) -> list[Any] | None:
    return list(given) if isinstance(given, Iterable) and not isinstance(given, str | bytes) else None


def _array(given: object) -> NDArray[Any]:
    """An array of what was given; without elements where none can be made of it."""
    try:
        return np.asarray(given)
    except (ValueError, TypeError):
        return np.empty(0, dtype=object)


def _described(given: object, array: NDArray[Any]) -> str:
    if not isinstance(given, np.ndarray | list | tuple) or (len(given) and not array.size):
        return f"{type(given).__name__}, which is not an array"
    is_float = np.issubdtype(array.dtype, np.floating)
    finite = " with values that are not finite" if is_float and not np.isfinite(array).all() else ""
    return f"an array of shape {array.shape} and type {array.dtype}{finite}"
