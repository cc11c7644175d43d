"""The price of a sealed board: bits that its answers give, and how many answers its labels afford."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from cir_datasets.common.yaml import package_yaml
from cir_metrics.errors import CallError

Unit = Literal["percent", "rank"]


class _PriceOffer(BaseModel):
    """What a new challenge tells, if it affords so many answers."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    columns: Literal["all", "primary"]
    step: float = Field(gt=0, le=50)
    answers: int = Field(ge=1)


class _PriceRule(BaseModel):
    """The numbers of `pricing.yaml`, which says what each is."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    share: float = Field(gt=0, lt=1)
    at_end_below: int = Field(ge=1)
    in_all: int = Field(ge=1)
    a_day: int = Field(ge=1)
    shares_of_queries: tuple[str, ...]
    offers: tuple[_PriceOffer, ...] = Field(min_length=1)


@functools.cache
def rule() -> _PriceRule:
    """The rule by which sealed boards are priced."""
    return _PriceRule.model_validate(package_yaml("leaderboard", "pricing.yaml"))


@dataclass(frozen=True)
class BoardPrice:
    """What a sealed board sells.

    Args:
        queries: queries or sessions, each with a label.
        choices: images that a label is one of.
        units: of each metric that is told, by its printed name.
        step: in which they are told, in per cent or in ranks.
    """

    queries: int
    choices: int
    units: Mapping[str, Unit]
    step: float

    @property
    def of_labels(self) -> float:
        """Bits of all labels: queries x log2(choices)."""
        return self.queries * math.log2(max(2, self.choices))

    @property
    def of_answer(self) -> float:
        """Bits that an answer gives at most: of each metric, the logarithm of how many values it may have."""
        return math.fsum(math.log2(self._values(metric)) for metric in self.units)

    @property
    def affordable(self) -> int:
        """How many answers the labels afford; 0 where one is too many."""
        return int(rule().share * self.of_labels / self.of_answer)

    @property
    def answers(self) -> int:
        """How many answers an owner may have in all: at least one, or nobody could take part."""
        return min(rule().in_all, max(1, self.affordable))

    @property
    def small(self) -> bool:
        """Whether so few answers are affordable that results wait until their phase has closed."""
        return self.affordable < rule().at_end_below

    def words(self) -> str:
        """The price in a sentence.

        Example:
            >>> print(BoardPrice(50, 500, {"recall@10": "percent"}, 5.0).words())
            up to 4.4 bits an answer (columns: 1, steps: 5), 448 bits of labels (50 x log2 500): 4 answers
        """
        return (
            f"up to {self.of_answer:.1f} bits an answer (columns: {len(self.units)}, steps: {self.step:g}), "
            f"{self.of_labels:,.0f} bits of labels ({self.queries:,} x log2 {self.choices:,}): "
            f"{self.affordable} {'answer' if self.affordable == 1 else 'answers'}"
        )

    def _values(self, metric: str) -> float:
        if self.units[metric] == "rank":
            return self.choices / self.step + 1
        steps = 100 / self.step + 1
        counted = metric.partition("@")[0] in rule().shares_of_queries
        return min(steps, self.queries + 1) if counted else steps


def oversold(price: BoardPrice, in_all: Sequence[int | None], *, at_end: bool) -> Iterator[str]:
    """Why what a board declares sells its test, a sentence with a fix each.

    Args:
        price: of the board.
        in_all: an owner's answers in each phase; None leaves it to the server, to what is afforded.
        at_end: whether all phases show their results when they have closed.
    """
    if not price.affordable:
        yield (
            f"{price.words()}. Fix: tell less, with fewer columns or a larger step (in the board's file, "
            "step: 5.0), or seal more queries."
        )
    wanted = sum(each or 0 for each in in_all)
    if wanted > price.answers:
        sold = wanted * price.of_answer / price.of_labels
        yield (
            f"in_all: {wanted} answers sell up to {min(1, sold):.0%} of the labels; {price.words()}. "
            f"Fix: write {price.answers} for all phases together, tell less, or seal more queries."
        )
    if price.small and not (at_end and in_all):
        yield (
            f"{price.words()}: so small a test shows results at the end. "
            "Fix: give the board phases, each with  results: at_end"
        )


def offered(
    queries: int, choices: int, primary: Sequence[str], units: Mapping[str, Unit], phases: int
) -> BoardPrice:
    """What a new challenge tells: the first offer of the rule that affords the answers it promises.

    Args:
        queries: of the test.
        choices: images that a label is one of.
        primary: the metrics that what ranks is made of.
        units: of all metrics that may be told.
        phases: how many phases share the answers.

    Raises:
        CallError: not even the last offer affords an answer in each phase.

    Example:
        >>> price = offered(4000, 2000, ["recall@10"], {"recall@1": "percent", "recall@10": "percent"}, 1)
        >>> price.step, list(price.units), price.answers, price.small
        (0.01, ['recall@1', 'recall@10'], 73, False)
    """
    for offer in rule().offers:
        shown = {name: unit for name, unit in units.items() if offer.columns == "all" or name in primary}
        price = BoardPrice(queries, choices, shown, offer.step)
        if price.affordable >= offer.answers * phases:
            return price
    raise CallError(
        f"{price.words()}, and phases: {phases}. Fix: seal more queries, take fewer phases, or what ranks by "
        "one metric."
    )
