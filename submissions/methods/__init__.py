"""Methods that rank without any weights: floors under every learned method, and the smallest examples of one.

A method is one file with one class that fulfils `Scorer`: it gives every image of the gallery a score for
every question. Ordering by score is not its business (`cir_metrics.ranking` alone does that), nor are turns,
subsets and removed references (`submissions.methods.making`).
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from cir_metrics.errors import UnknownNameError, did_you_mean

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cir_datasets.benchmark import Benchmark
    from submissions.methods.asking import Ask, Gallery
    from submissions.methods.making import make_rank_file as make_rank_file
    from submissions.rank_file import Method

_METHODS = {
    "random": "Random",
    "image_only": "ImageOnly",
    "text_only": "TextOnly",
    "image_text_sum": "ImageTextSum",
}
"""Module below this package -> its class, in the order of tables."""


class Scorer(Protocol):
    """What a weight-free method is."""

    needs_pictures: ClassVar[bool]
    """Whether it looks at pixels, so that it ranks only benchmarks whose pictures are at hand."""

    aggregation: ClassVar[Literal["latest", "average"]]
    """How a session's turns become one ranking: the last turn's scores, or the mean of all turns' so far."""

    def method(self) -> Method:
        """Who answers: what the rank file says. No weights are loaded, so that `backbone` says "none"."""

    def scores(self, asks: Sequence[Ask], gallery: Gallery) -> NDArray[np.float64]:
        """A score for each question and image, higher is better, shape (questions, images of the gallery)."""


def method_names() -> tuple[str, ...]:
    """Names of all weight-free methods.

    Example:
        >>> method_names()
        ('random', 'image_only', 'text_only', 'image_text_sum')
    """
    return tuple(_METHODS)


def scorer(name: str) -> Scorer:
    """The method of a name.

    Raises:
        UnknownNameError: no method has that name; the message names the nearest.

    Example:
        >>> scorer("random").needs_pictures
        False
    """
    if name not in _METHODS:
        raise UnknownNameError(
            f"no method {name!r}.{did_you_mean(name, _METHODS)} There are {', '.join(_METHODS)}."
        )
    module = importlib.import_module(f"submissions.methods.{name}")
    made: Scorer = getattr(module, _METHODS[name])()
    return made


def methods_for(benchmark: str | Benchmark) -> list[str]:
    """Names of the methods that can rank a benchmark; without its pictures those that need none.

    Args:
        benchmark: an id or a benchmark.

    Raises:
        UnknownNameError: no benchmark has that id.
    """
    from cir_datasets.registry import spec

    of = spec(benchmark) if isinstance(benchmark, str) else benchmark.spec
    embedded = of.card.source.publisher == "embedded"
    return [name for name in _METHODS if embedded or not scorer(name).needs_pictures]


def __getattr__(name: str) -> Any:
    if name == "make_rank_file":
        from submissions.methods.making import make_rank_file

        return make_rank_file
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
