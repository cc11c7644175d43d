"""What each round of a dialogue ranks, as the rules of rankings by turn ask for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from submissions.rank_file.benchmarks import Depth, Queries
from submissions.transcripts.settings import DEPTH
from submissions.transcripts.transcript import Round

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.transcripts.transcript import Transcript


@dataclass(frozen=True)
class RoundQueries(Queries):
    """Rounds as turns that are to be ranked.

    Args:
        lengths: by session how many images the list of each round holds at least.
    """

    lengths: Mapping[str, Sequence[int]] = field(default_factory=dict)

    def required(self, query: str, turn: int | None = None) -> int:
        """Images that the list of a round holds at least."""
        return self.lengths[query][(turn or 1) - 1]


class RoundLists:
    """How many images the rounds of a transcript rank, and without which.

    Args:
        transcript: the file.
        benchmark: what was played.
        declared: what is declared of the reference, in the file or beside it.
    """

    def __init__(self, transcript: Transcript, benchmark: Benchmark, declared: str) -> None:
        """See the class."""
        self._benchmark = benchmark
        self._removes = benchmark.excludes_reference or declared == "removed"
        self._stays = transcript.choices.after_success == "continue"
        self._skipped = transcript.method.skipped_images or 0

    def removed(self, each: Round) -> str | None:
        """The reference, where it is left out of a round's ranking."""
        stays = self._stays and each.round > 1
        return each.reference if self._removes and not stays else None

    def size(self, each: Round) -> int | None:
        """How many images are ranked in a round; None where the gallery is not known."""
        gallery = self._benchmark.gallery_set
        return None if gallery is None else len(gallery) - (self.removed(each) in gallery)

    def queries(self, sessions: Mapping[str, Sequence[Round]]) -> RoundQueries:
        """What the lists of these rounds have to be; that of a silent user's repeats the one before."""
        return RoundQueries(
            benchmark=self._benchmark.id,
            title=self._benchmark.spec.card.short_title,
            num_turns={session: len(rounds) for session, rounds in sessions.items()},
            multi_turn=True,
            removed={
                session: [None if each.silent else self.removed(each) for each in rounds]
                for session, rounds in sessions.items()
            },
            own=None,
            subsets=None,
            references={},
            gallery_ids=self._benchmark.gallery,
            depth=Depth(DEPTH, DEPTH),
            subset_wanted=False,
            readers="a transcript keeps",
            lengths={session: list(map(self._length, rounds)) for session, rounds in sessions.items()},
        )

    def _length(self, each: Round) -> int:
        size = self.size(each)
        return 0 if size is None or each.silent else max(0, min(DEPTH, size - self._skipped))
