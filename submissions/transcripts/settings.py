"""What a dialogue depends on, beside the method and the user: each choice has a name, and is written down."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from cir_datasets.common.options import Options, check_values, option
from cir_metrics.errors import UnknownNameError, did_you_mean
from submissions.errors import MethodError

USER = " user:"
"""What stands in a signature between the choices of a dialogue and who its user was."""
DEPTH = 50
"""Images of a ranking that a transcript keeps."""
MOST_ROUNDS = 50
CUTOFFS = (1, 5, 10, 50)
"""Cutoffs of Hits and Recall; that of the dialogue comes beside them."""
MAP = 5
"""Cutoff of mAP, where queries have several targets (CIRCO's)."""
_RANDOM = re.compile(r"random-top([1-9][0-9]?)")
_REPEATS = "3"
_WEIGHT = 0.8
"""What an earlier round counts for one that is a round later, with `weighted` (CIRCLED, appendix B)."""


class RoundSettings(Options):
    """The choices of a multi-round evaluation.

    Args:
        max_rounds: rounds of a session at most, the published query included: 5 are at most 4 feedbacks.
        k: a session is solved when a target is among the first k.
        after_success: `stop` ends a solved session, which keeps its rank; `continue` asks on to the last
            round, and the current reference stays in the ranking (FISD's table 8 cannot come from `stop`).
        candidate: the next reference: `unseen`, the best image that has not been one in this session;
            `top1`, the very first, as FISD says it; `random-topM`, one of the first M by the seed.
        history: how the queries of all rounds become one: `average` (FISD), `weighted` (0.8 for each round
            that lies back), `none` (the last alone).
        normalise: whether each query has length 1 before they are added.
        feedback: `fresh` words each round, or `unchanged`, the published caption again.
        aim: with several targets, the one that the user has in mind: `target`, the annotated one, or
            `best`, the best-ranked.
        aspect: queries of this aspect alone, and feedback on it alone; `own` takes all queries, each with
            feedback on its own aspect; None limits nothing.
        words: about how many words the user says; None is what the benchmark's annotators say.
        start: `published`, where the queries are round 1; or `random`, where reference and target are any two
            images of the gallery and the user says the first words, too.
        seed: of what is drawn.
        repeats: a simulated user who says the same so often in a row, the published words too, ends the
            session; `off` never ends it so, as in the paper.

    Raises:
        UnknownNameError: a choice has another name.
        MethodError: a number is out of range.

    Example:
        >>> RoundSettings(max_rounds=3, k=1).text_of().partition(" candidate")[0]
        'rounds:3 k:1 after_success:stop'
    """

    max_rounds: int = option(5, "Rounds at most; round 1 is the published query.", min=1, max=MOST_ROUNDS)
    k: int = option(
        10,
        "First images of a ranking, 1 to 50, that are shown; a target among them is a success.",
        min=1,
        max=DEPTH,
    )
    after_success: str = option(
        "stop",
        "What follows a success: stop, or continue (all rounds are played, and references stay in the "
        "ranking).",
        choices=("stop", "continue"),
        in_file=True,
    )
    candidate: str = option(
        "unseen",
        "The next reference: unseen (the best that has not been one), top1, or random-topM, such as "
        "random-top10.",
        in_file=True,
    )
    history: str = option(
        "average",
        "How all rounds become one query: average, weighted (0.8 for each round back), or none (the "
        "last alone).",
        choices=("average", "weighted", "none"),
        in_file=True,
    )
    normalise: bool = option(
        True,
        "Scale embeddings to length 1: the query of each round, before rounds are added.",
        "--normalise/--no-normalise",
        in_file=True,
    )
    feedback: str = option(
        "fresh",
        "fresh words each round, or unchanged: the published ones again.",
        choices=("fresh", "unchanged"),
        in_file=True,
    )
    aim: str = option(
        "target",
        "Of several targets the one that the user aims at: target (the annotated one) or best (ranked).",
        choices=("target", "best"),
        in_file=True,
    )
    aspect: str | None = option(
        None,
        "This aspect alone: its queries, and feedback on it; own: each query's own aspect.",
        in_file=True,
    )
    words: int | None = option(
        None,
        "About how many words the user says; default: what is usual there.",
        min=1,
        max=200,
        in_file=True,
    )
    start: str = option(
        "published",
        "What begins a session: published (queries are round 1), or random (any two images of the "
        "gallery, and the user says the first words, too).",
        choices=("published", "random"),
        in_file=True,
    )
    seed: int = option(0, "Seed, a whole number from 0, of all that is drawn.", min=0, max=2**32 - 1)
    repeats: str = option(
        _REPEATS,
        "Equal answers that end a session: 2 to 50, or off.",
        form="off|[2-9]|[1-4][0-9]|50",
        words="a text, `off` or a whole number from 2 to 50",
        metavar="N|off",
        in_file=True,
    )

    def __post_init__(self) -> None:
        """Refuse what is not a choice."""
        check_values(self, MethodError)
        if self.candidate not in ("unseen", "top1") and not 0 < self.drawn_from <= DEPTH:
            raise UnknownNameError(
                f"candidate={self.candidate!r} is not a choice. "
                f"Fix: use unseen, top1 or random-topM with M from 1 to {DEPTH}, such as random-top10."
            )

    @property
    def drawn_from(self) -> int:
        """M of `random-topM`; 0 where nothing is drawn."""
        found = _RANDOM.fullmatch(self.candidate)
        return int(found[1]) if found else 0

    @property
    def weight(self) -> float:
        """What the sum of the earlier queries is multiplied by before the next one is added."""
        return {"average": 1.0, "weighted": _WEIGHT, "none": 0.0}[self.history]

    @property
    def most_repeats(self) -> int | None:
        """Equal answers that end a session; None where no number of them does."""
        return None if self.repeats == "off" else int(self.repeats)

    def text_of(self, sessions: int | None = None) -> str:
        """All choices in a line, as they stand in a signature; those without a value are left out.

        Args:
            sessions: how many were drawn; None where all were wanted.

        Example:
            >>> RoundSettings(seed=3).text_of(500).partition(" start:")[2]
            'published sessions:500 seed:3'
        """
        said = {name.replace("max_rounds", "rounds"): value for name, value in self.header().items()}
        if not self.drawn_from and self.start == "published":
            # Nothing is drawn, so that no number depends on it.
            del said["seed"]
        if sessions is not None:
            said["sessions"] = sessions
            said.setdefault("seed", self.seed)
        words = {True: "yes", False: "no"}
        return " ".join(
            f"{name}:{words[value] if isinstance(value, bool) else value}"
            for name, value in said.items()
            if value is not None
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

    def header(self) -> dict[str, Any]:
        """As a transcript begins with them: `repeats` where it is not 3, as before it was a choice."""
        written = self.to_dict()
        if self.repeats == _REPEATS:
            del written["repeats"]
        return written

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> RoundSettings:
        """The settings that a file says; what it leaves out is as it is by itself.

        Raises:
            UnknownNameError: a setting has a name that is not a field, or a choice is not one of its values.
            MethodError: a value is out of range, or of another type.

        Example:
            >>> RoundSettings.of({"max_rounds": 3}).max_rounds
            3
        """
        known = [each.name for each in fields(cls)]
        for name, value in said.items():
            if name not in known:
                raise UnknownNameError(
                    f"no setting {name!r}.{did_you_mean(name, known)} Fix: use {', '.join(known)}."
                )
            if value is not None and not isinstance(value, str | int):
                raise MethodError(f"{name} is neither a text nor a number. Fix: write it as one.")
        return cls(**said)


def round_metrics(k: int, rounds: int, *, several_targets: bool) -> list[str]:
    """Names of the numbers of dialogues.

    Args:
        k: cutoff within which a session is solved.
        rounds: rounds of a session at most.
        several_targets: whether some session has more than one target.

    Example:
        >>> names = round_metrics(1, 2, several_targets=False)
        >>> names[:3], names[-1]
        (['hits@1@turn1', 'hits@1@turn2', 'hits@5@turn1'], 'mean_rank@turn2')
    """
    numbers = range(1, rounds + 1)
    names = [f"hits@{cutoff}@turn{number}" for cutoff in cutoffs_of(k) for number in numbers]
    names.append(f"hits_auc@{k}")
    names += [f"recall@{cutoff}@turn{number}" for cutoff in cutoffs_of(k) for number in numbers]
    names += [f"map@{MAP}@turn{number}" for number in numbers if several_targets]
    return [*names, *(f"mean_rank@turn{number}" for number in numbers)]


def cutoffs_of(k: int) -> list[int]:
    """The cutoffs of Hits and Recall in a dialogue; k is its own."""
    return sorted({*CUTOFFS, k})
