"""What a run would ask of models and people, before anything is asked: calls, tokens, pictures, hours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from cir_datasets.common.terminal import Cell, Table, counted

PICTURE_TOKENS = 85
"""Of a small picture, as in the low detail of OpenAI's older models; servers count pictures differently."""
ANSWER_TOKENS = 40
"""About those of a sentence or two."""
CHARACTERS = 4
"""About those of a token of English."""
CALL_SECONDS = 1.5
"""About what an answer takes."""
_HOUR = 3600


class Work(NamedTuple):
    """One kind of work, as much of it as there can be.

    Args:
        what: its name.
        calls: questions to a language backend; equal ones are asked once, those with an answer on disk never.
        tokens_in: of all questions.
        tokens_out: of all answers.
        pictures: that are drawn.
        tasks: for people.
    """

    what: str
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    pictures: int = 0
    tasks: int = 0


def questions(
    what: str,
    calls: int,
    *,
    tokens: int = 0,
    letters: int = 0,
    pictures: int = 0,
    picture_tokens: int = PICTURE_TOKENS,
    answer: int = ANSWER_TOKENS,
) -> Work:
    """Questions to a language backend.

    Args:
        what: their name.
        calls: their number.
        tokens: of the words of each.
        letters: of all of them together, in the place of `tokens`.
        pictures: that each shows.
        picture_tokens: of a picture, as the model counts them.
        answer: tokens of an answer.

    Example:
        >>> questions("captions", 10, tokens=280, pictures=6)
        Work(what='captions', calls=10, tokens_in=7900, tokens_out=400, pictures=0, tasks=0)
    """
    asked = calls * (tokens + pictures * picture_tokens) - (-letters // CHARACTERS)
    return Work(what, calls, asked, calls * answer)


@dataclass(frozen=True)
class Estimate:
    """What a run would ask for.

    Args:
        assumed: what the numbers rest on, in words.
        work: its kinds.
        at_once: calls that are open at the same time, from 1.
        call_seconds: of a call.
        picture_seconds: of drawing one picture; they are drawn one after the other.
        people: how many share the tasks.
        notes: sentences below the table.
    """

    assumed: str
    work: Sequence[Work]
    at_once: int = 1
    call_seconds: float = CALL_SECONDS
    picture_seconds: float = 0.0
    people: int = 0
    notes: tuple[str, ...] = ()

    def hours(self, work: Work) -> float:
        """How long a kind of work takes; of people's nothing is known.

        Example:
            >>> Estimate("", (), at_once=3).hours(Work("captions", calls=7200))
            1.0
        """
        return (work.calls * self.call_seconds / self.at_once + work.pictures * self.picture_seconds) / _HOUR

    @property
    def total(self) -> Work:
        """All kinds together."""
        _, *columns = zip(*self.work, strict=True) if self.work else [()] * len(Work._fields)
        return Work("together", *map(sum, columns))

    def values(self) -> list[dict[str, Any]]:
        """The questions as JSON values, with hours.

        Example:
            >>> Estimate("", [Work("captions", 7200, 100, 50)], at_once=3).values()[0]["hours"]
            1.0
        """
        fields = ("what", "calls", "tokens_in", "tokens_out")
        return [
            {**{name: getattr(kind, name) for name in fields}, "hours": self.hours(kind)}
            for kind in self.work
        ]

    def table(self) -> Table:
        """A row a kind of work, and one of all together; columns are what there is of any.

        Example:
            >>> Estimate("one a photo", [Work("captions", tasks=90)], people=3).table().title
            'Estimate: 3 people; one a photo'
        """
        total = self.total
        asks = total.calls or not (total.pictures or total.tasks)
        says = (
            (asks, f"{self.call_seconds:g} seconds a call, {self.at_once} at once"),
            (total.pictures, f"{self.picture_seconds:g} seconds a picture, one after the other"),
            (total.tasks, counted(self.people, "person", "people")),
        )
        names = [
            *(("calls", "tokens_in", "tokens_out") if asks else ()),
            *(name for name in ("pictures", "tasks") if getattr(total, name)),
        ]
        hours = ("hours",) if asks or total.pictures else ()
        rows = [
            (
                Cell(kind.what),
                *(Cell(f"{getattr(kind, name):,}") for name in names),
                *(Cell(f"{self.hours(kind):,.2f}") for _ in hours),
            )
            for kind in ((*self.work, total) if self.work else ())
        ]
        return Table(
            f"Estimate: {'; '.join([*(words for is_said, words in says if is_said), self.assumed])}",
            ("what", *(name.replace("_", " ") for name in names), *hours),
            tuple(rows),
            self.notes,
        )
