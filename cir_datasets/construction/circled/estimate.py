"""How many calls, tokens and hours a run will take, by the shares of the paper and at most."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from cir_datasets.common.estimates import CALL_SECONDS, PICTURE_TOKENS, hours
from cir_datasets.common.terminal import Cell, Table, counted
from cir_datasets.common.yaml import package_yaml
from cir_datasets.construction.circled.settings import CircledSettings


@dataclass(frozen=True)
class CircledEstimate:
    """What is asked of a language backend.

    Args:
        captions: images to describe.
        merges: captions to merge.
        differences: relative captions to write, repeated attempts included.
    """

    captions: int
    merges: int
    differences: int

    @property
    def calls(self) -> int:
        """All questions."""
        return self.captions + self.merges + self.differences

    @property
    def tokens(self) -> tuple[int, int]:
        """Of questions, and of answers."""
        asked, answered = 0, 0
        known = _figures()
        for task, number in (
            ("caption", self.captions),
            ("merge", self.merges),
            ("difference", self.differences),
        ):
            of = known["tokens"][task]
            asked += number * (of["question"] + of["pictures"] * PICTURE_TOKENS)
            answered += number * of["answer"]
        return asked, answered

    def hours(self, at_once: int) -> float:
        """With so many questions at once."""
        return hours(self.calls, CALL_SECONDS, at_once)


def estimates(
    queries: int, gallery: int, settings: CircledSettings
) -> tuple[CircledEstimate, CircledEstimate]:
    """What a run takes by the shares of the paper, and at most.

    Args:
        queries: sessions that are begun.
        gallery: images that are searched.
        settings: K, turns, attempts.

    Example:
        >>> likely, most = estimates(200, 2297, CircledSettings())
        >>> likely.differences, most.differences, most.captions
        (460, 3000, 2297)
    """
    shares = _figures()["shares"]
    further = settings.max_turns - 1
    rest = 1 - shares["at_turn_1"] - shares["never"]
    turns = shares["never"] * further + rest * min(further, shares["turns_of_the_rest"] - 1)
    likely = round(queries * turns)
    return (
        CircledEstimate(min(gallery, queries + likely * settings.k), queries + likely, likely),
        CircledEstimate(
            min(gallery, queries * (2 + further * settings.k)),
            queries * settings.max_turns,
            queries * further * settings.attempts,
        ),
    )


def estimate_table(queries: int, gallery: int, settings: CircledSettings, at_once: int) -> Table:
    """The estimate as a table: a row a figure, by the paper's shares and at most.

    Args:
        queries: sessions that are begun.
        gallery: images that are searched.
        settings: K, turns, attempts.
        at_once: questions that the backend is asked at once.
    """
    likely, most = estimates(queries, gallery, settings)
    rows = [
        ("captions", likely.captions, most.captions),
        ("merges", likely.merges, most.merges),
        ("differences", likely.differences, most.differences),
        ("calls", likely.calls, most.calls),
        ("tokens of questions", likely.tokens[0], most.tokens[0]),
        ("tokens of answers", likely.tokens[1], most.tokens[1]),
    ]
    shown = [(Cell(name), Cell(f"{a:,}", float(a)), Cell(f"{b:,}", float(b))) for name, a, b in rows]
    hours = (
        Cell("hours"),
        *(Cell(f"{each:.1f}", each) for each in (likely.hours(at_once), most.hours(at_once))),
    )
    return Table(
        f"Estimate: {counted(queries, 'query', 'queries')}, {gallery:,} images",
        ("of the language backend", "by the paper's shares", "at most"),
        (*shown, hours),
        (
            "The paper's shares: 30 % of its queries succeed at turn 1, 32 % never do; one attempt each.",
            (
                f"Tokens: {PICTURE_TOKENS} a picture, which servers count differently. Hours: "
                f"{CALL_SECONDS} s an answer, {at_once} at once "
                "(`concurrency=` of the backend), without the encoder."
            ),
        ),
    )


@functools.cache
def _figures() -> dict[str, Any]:
    found: dict[str, Any] = package_yaml("cir_datasets", "construction/circled/estimate.yaml")
    return found
