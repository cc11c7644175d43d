"""Numbers of a transcript, round by round (FISD, section 4.1 and supplement D).

A session that has ended keeps its last rank and list in the rounds that it does not play.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cir_metrics.sums import FloatArray

if TYPE_CHECKING:
    from submissions.transcripts.transcript import Round, Transcript

CUTOFFS = (1, 5, 10, 50)
"""Cutoffs of Hits and Recall that tables show."""


@dataclass(frozen=True)
class ByRound:
    """Values of each session in each round.

    Args:
        sessions: ids, in the transcript's order.
        ranks: rank of the best target, shape (sessions, rounds).
        tops: the lists, by session and round.
        played: whether the session played the round, shape (sessions, rounds).
    """

    sessions: list[str]
    ranks: NDArray[np.int64]
    tops: list[list[list[str]]]
    played: NDArray[np.bool_]

    @classmethod
    def of(cls, transcript: Transcript) -> ByRound:
        """Ranks and lists of a transcript, those of ended sessions carried on."""
        by_session = transcript.sessions()
        most = transcript.choices.max_rounds
        ranks = np.empty((len(by_session), most), dtype=np.int64)
        played = np.zeros((len(by_session), most), dtype=bool)
        tops = []
        for place, rounds in enumerate(by_session.values()):
            filled = _filled(rounds, most)
            ranks[place] = [each.rank for each in filled]
            played[place, : len(rounds)] = True
            tops.append([each.top for each in filled])
        return cls(list(by_session), ranks, tops, played)

    def recall(self, k: int) -> FloatArray:
        """Recall@k of each session and round: 1 where the target is among the first k in that round."""
        return (self.ranks <= k).astype(np.float64)

    def hits(self, k: int) -> FloatArray:
        """Hits@k: 1 where the target was among the first k in that round or an earlier one."""
        found: FloatArray = np.maximum.accumulate(self.recall(k), axis=1)
        return found

    def average_precision(self, positives: Mapping[str, Sequence[str]], k: int) -> FloatArray:
        """AP@k = (1 / min(k, P)) * sum over places i <= k of precision@i where i holds a positive.

        Args:
            positives: the images that are right, by session.
            k: places that count, up to the length of the lists.
        """
        found = np.zeros(self.ranks.shape)
        for place, session in enumerate(self.sessions):
            right = set(positives[session])
            for number, top in enumerate(self.tops[place]):
                hits, total = 0, 0.0
                for rank, image in enumerate(top[:k], start=1):
                    if image in right:
                        hits += 1
                        total += hits / rank
                found[place, number] = total / min(k, len(right))
        return found


def _filled(rounds: Sequence[Round], most: int) -> list[Round]:
    return [*rounds, *([rounds[-1]] * (most - len(rounds)))]
