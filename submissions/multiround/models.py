"""The method of a dialogue, with its memory of earlier rounds, and the ranker (FISD, section 3.2).

What a round adds is kept in one sum a session, S_r = w S_(r-1) + q_r: w = 1 ranks as the average of all
rounds does, w = 0 forgets, and anything between weighs earlier rounds less. Cosine does not see the length
of S. A method that gives scores instead of vectors is summed alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from cir_metrics.ranking import best_of, best_target_ranks, top_k
from submissions.errors import MethodError
from submissions.methods.composing import Context, unit
from submissions.methods.user_methods import composed, scored
from submissions.running.search import Searcher
from submissions.transcripts.settings import DEPTH, RoundSettings

if TYPE_CHECKING:
    from submissions.methods.composing import Composer
    from submissions.methods.protocols import Scorer
    from submissions.methods.turns import Candidates, Turn
    from submissions.rank_file.model import Method

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class RoundFound:
    """What a round found.

    Args:
        top: the best images of each session, at most `DEPTH`.
        ranks: rank of the best of each session's targets, shape (sessions,).
    """

    top: list[list[str]]
    ranks: Rows


class RoundModel(Protocol):
    """A method in a dialogue."""

    memory: NDArray[np.float64]
    """The sum of each session, shape (sessions, dimensions or images)."""

    def method(self) -> Method:
        """Who answers."""

    def hear(self, sessions: Rows, turns: Sequence[Turn]) -> None:
        """Add a round's queries to the memory of these sessions."""

    def rank(self, sessions: Rows, keys: Sequence[str], excluded: Rows, targets: list[Rows]) -> RoundFound:
        """Rank the gallery for these sessions.

        Args:
            sessions: their numbers.
            keys: names of the queries, which ties depend on.
            excluded: gallery row that is not ranked, -1 for none.
            targets: gallery rows of the targets of each.
        """

    def best(self, session: int, images: Sequence[str], key: str) -> str:
        """The best-ranked of a few images in one session."""


class VectorModel:
    """A method on embeddings.

    Args:
        name: for messages.
        composer: the method.
        context: what it works with.
        gallery: what is ranked.
        settings: how rounds become one query.
        sessions: their number.
        described: what the transcript says of the method.
    """

    def __init__(
        self,
        name: str,
        composer: Composer,
        context: Context,
        gallery: Candidates,
        settings: RoundSettings,
        sessions: int,
        described: Method,
    ) -> None:
        """See the class."""
        self._name = name
        self._composer = composer
        self._context = context
        self._settings = settings
        self._described = described
        self._searcher = Searcher(context.ranked, gallery.ids, missing=context.gallery.missing)
        self.memory = np.zeros((sessions, context.dimensions))

    def method(self) -> Method:
        """Who answers."""
        return self._described

    def hear(self, sessions: Rows, turns: Sequence[Turn]) -> None:
        """Compose this round's queries, in one pass of the encoder, and add them."""
        vectors = composed(self._name, self._composer, turns, self._context)
        new = unit(vectors) if self._settings.normalise else vectors
        self.memory[sessions] = self._settings.weight * self.memory[sessions] + new

    def rank(self, sessions: Rows, keys: Sequence[str], excluded: Rows, targets: list[Rows]) -> RoundFound:
        """One blocked product for all sessions."""
        queries = unit(self.memory[sessions])
        found = self._searcher.search(queries, DEPTH, query_ids=keys, excluded=excluded, targets=targets)
        # Targets were given, so there are ranks.
        return RoundFound(found.rankings, np.empty(0, dtype=np.int64) if found.ranks is None else found.ranks)

    def best(self, session: int, images: Sequence[str], key: str) -> str:
        """The best-ranked of a few images in one session."""
        query = unit(self.memory[session : session + 1])[0]
        return self._searcher.order(query, images, 1, key)[0]


class ScoreModel:
    """A method that scores every image.

    Args:
        name: for messages.
        scorer: the method.
        gallery: what is ranked.
        settings: how rounds become one score an image.
        sessions: their number.
        described: what the transcript says of the method.
    """

    def __init__(
        self,
        name: str,
        scorer: Scorer,
        gallery: Candidates,
        settings: RoundSettings,
        sessions: int,
        described: Method,
    ) -> None:
        """See the class."""
        self._name = name
        self._scorer = scorer
        self._gallery = gallery
        self._settings = settings
        self._described = described
        self.memory = np.zeros((sessions, len(gallery.ids)))

    def method(self) -> Method:
        """Who answers."""
        return self._described

    def hear(self, sessions: Rows, turns: Sequence[Turn]) -> None:
        """Add this round's scores.

        Raises:
            MethodError: as for `scored`; or their sum over rounds is too large for a number.
        """
        scores = scored(self._name, self._scorer, turns, self._gallery)
        with np.errstate(over="ignore"):
            summed = self._settings.weight * self.memory[sessions] + scores
        finite = np.isfinite(summed).all(axis=1)
        if not finite.all():
            key = turns[int(finite.argmin())].key
            raise MethodError(
                f"the method {self._name}, turn {key}: the sum of its scores over rounds is too large for a "
                "number. Fix: give scores of ordinary size."
            )
        self.memory[sessions] = summed

    def rank(self, sessions: Rows, keys: Sequence[str], excluded: Rows, targets: list[Rows]) -> RoundFound:
        """Rank by the summed scores."""
        scores = self.memory[sessions]
        return RoundFound(
            top_k(scores, self._gallery.ids, DEPTH, query_ids=keys, excluded=excluded),
            best_target_ranks(scores, targets, excluded=excluded),
        )

    def best(self, session: int, images: Sequence[str], key: str) -> str:
        """The best-ranked of a few images in one session."""
        row = self.memory[session]
        return best_of({image: float(row[self._gallery.place[image]]) for image in images}, 1, key)[0]
