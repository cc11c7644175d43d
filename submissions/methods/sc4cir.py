"""SC4CIR: the best candidates of any method, ranked anew by whether the way back leads to the query.

Source: ZeroSight, arXiv:2606.07032, section 4. For the N best candidates c of a query (reference r, text T):

S1(c) = similarity of the query and c, as the method itself has it (forward process)
S2(c) = similarity of (c, T') and r by the same method (reverse process 1)
S3(c) = cos(t(T), t(T'')) by a text encoder t (reverse process 2)
S(c)  = S1(c) + S2(c) + S3(c)

T' is the reverse of T, written for (r, T) once a query; T'' the relative caption from r to c, written once a
candidate. What is behind the N best stays where it was. The released code does not show how the three are
added; here it is their plain sum, as in the paper's section 4.2. This module holds the settings, the
rankings of the forward process, and what it took; `reverse_processes` asks and adds up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from cir_datasets.common.options import Options, check_values, option
from cir_metrics.errors import UnknownNameError, did_you_mean
from submissions.errors import MethodError

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.methods.turns import Turn

TOP = 30
"""The paper's N."""

PROCESSES = ("s1", "s2", "s3")
"""Forward, reverse process 1, reverse process 2."""

TURNS = ("last", "each")
"""Which turns of a session are ranked anew."""

NO_ANSWER = "without an answer of the language backend"
NOTHING_TO_REVERSE = "without a reference image or words"
"""Why a ranking stayed as it was."""


class SC4CIR(Options, kw_only=False):
    """The settings of the re-ranker.

    Args:
        top: candidates of a ranking that are ranked anew, 1 or more.
        processes: what is added up: s1, s2, s3, or several with + between them.
        turns: of a session `last` or `each`.

    Raises:
        UnknownNameError: no process, or no choice of turns, has that name.
        MethodError: `top` is out of range, or a process is named twice.

    Example:
        >>> SC4CIR(processes="s3+s1").used
        ('s1', 's3')
    """

    name: ClassVar[str] = "sc4cir"
    title: ClassVar[str] = "SC4CIR"
    paper: ClassVar[str] = "https://arxiv.org/abs/2606.07032"

    top: int = option(TOP, "Candidates of a ranking that are ranked anew.", min=1, max=1_000)
    processes: str = option("+".join(PROCESSES), "What is added up.")
    turns: str = option(TURNS[0], "Of a session.", choices=TURNS)

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        check_values(self, MethodError)
        named = self.processes.split("+")
        for each in named:
            if each not in PROCESSES:
                raise UnknownNameError(
                    f"no process {each!r}.{did_you_mean(each, PROCESSES)} "
                    f"Fix: use one of {', '.join(PROCESSES)}, or several as in s1+s3."
                )
        if len(set(named)) < len(named):
            raise MethodError(f"processes={self.processes!r}: one is named twice. Fix: name it once.")

    @property
    def used(self) -> tuple[str, ...]:
        """The processes that are added up, in the order of the paper."""
        named = self.processes.split("+")
        return tuple(each for each in PROCESSES if each in named)

    @property
    def asks(self) -> bool:
        """Whether a language backend is asked: the forward process alone needs none."""
        return self.used != ("s1",)

    @property
    def label(self) -> str:
        """The re-ranker in a method's name; what is not the default stands behind it.

        Example:
            >>> SC4CIR().label, SC4CIR(top=10, processes="s3").label
            ('SC4CIR', 'SC4CIR s3 top 10')
        """
        usual = SC4CIR()
        words = [self.title]
        if self.used != usual.used:
            words.append("+".join(self.used))
        if self.top != usual.top:
            words.append(f"top {self.top}")
        if self.turns != usual.turns:
            words.append(f"{self.turns} turn")
        return " ".join(words)


@dataclass(frozen=True)
class Forward:
    """One ranking of the forward process.

    Args:
        turn: what was asked.
        ranking: the images, best first; SC4CIR changes the order of this very list.
        scores: S1 of the first of them, of those that are ranked anew; zeros where S1 is not added.
    """

    turn: Turn
    ranking: list[str]
    scores: Sequence[float]

    @property
    def candidates(self) -> list[str]:
        """The images that are ranked anew."""
        return self.ranking[: len(self.scores)]


def turns_to_rerank(benchmark: Benchmark, how: SC4CIR) -> Iterator[tuple[dict[str, Any], int, Turn]]:
    """The turns whose rankings are ranked anew: each with its row, and its place among the row's turns."""
    from submissions.methods.turns import turns_of

    for row in benchmark.rows():
        turns = list(enumerate(turns_of(row)))
        for place, turn in turns if how.turns == "each" else turns[-1:]:
            yield row, place, turn


def by_rank(top: int, images: Sequence[str]) -> list[float]:
    """S1 of a method without scores: 1 - (rank - 1) / N, from 1 for the first down to 1 / N.

    Example:
        >>> by_rank(4, ["a", "b"])
        [1.0, 0.75]
    """
    return [1.0 - place / top for place in range(len(images))]


@dataclass
class Cost:
    """What re-ranking took, and what it could not do.

    Args:
        queries: queries, or turns, whose rankings were ranked anew.
        left: of those whose rankings stayed as they were, how many for which reason.
        instructions: questions for T' that have an answer, of the backend or from its cache.
        captions: questions for T'' that have one.
        seconds: from beginning to end, S1 excluded.
        why: the first failure of the backend in its own words.
    """

    queries: int = 0
    left: Counter[str] = field(default_factory=Counter)
    instructions: int = 0
    captions: int = 0
    seconds: float = 0.0
    why: str = ""

    @property
    def counts(self) -> str:
        """What was ranked anew and what was not, without what differs from run to run.

        Example:
            >>> Cost(queries=299, left=Counter({NO_ANSWER: 1})).counts
            '299 of 300 ranked anew; left as before: 1 without an answer of the language backend'
        """
        done = f"{self.queries:,} of {self.queries + self.left.total():,} ranked anew"
        reasons = ", ".join(f"{number:,} {reason}" for reason, number in sorted(self.left.items()))
        return f"{done}; left as before: {reasons}" if reasons else done

    def text(self) -> str:
        """One line for a person.

        Example:
            >>> Cost(queries=2, instructions=2, captions=60, seconds=1.25).text()
            "2 of 2 ranked anew; answered: 2 questions for T', 60 for T''; 1.2 seconds"
        """
        asked = f"answered: {self.instructions:,} questions for T', {self.captions:,} for T''"
        return f"{self.counts}; {asked}; {self.seconds:.1f} seconds"
