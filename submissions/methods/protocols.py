"""What a method is that scores every image, or ranks by itself; `composing` holds the third kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from submissions.methods.turns import Candidates, Turn

if TYPE_CHECKING:
    from submissions.rank_file.model import Method


class Scorer(Protocol):
    """What a method without weights is."""

    needs_pictures: ClassVar[bool]
    """Whether it looks at pixels, so that it ranks only benchmarks whose pictures are available."""

    aggregation: ClassVar[Literal["latest", "average"]]
    """How a session's turns become one ranking, unless the caller names another way."""

    def method(self) -> Method:
        """Who answers: what the rank file says. No weights are loaded, so that `backbone` says "none"."""

    def scores(self, turns: Sequence[Turn], gallery: Candidates) -> NDArray[np.float64]:
        """A score for each turn and image, higher is better, shape (turns, images of the gallery)."""


class Ranker(Protocol):
    """A method that orders images itself: a cross-encoder, a generative model, a service."""

    def method(self) -> Method:
        """Who answers: all that the rank file says, encoder, caption rule and aggregation included."""

    def rank(self, turns: Sequence[Turn], gallery: Candidates, k: int) -> Sequence[Sequence[str]]:
        """The k best images of each turn, best first, none twice.

        The turns of a session follow one another, so that turn l may use those before it. A reference that
        the protocol removes may be listed: it is taken out, and k is one more for it.
        """
