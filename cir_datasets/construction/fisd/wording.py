"""What is asked of each picture: relative caption, the target's caption, and the hard negative's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cir_datasets.common.stages import FAILED, Row
from cir_datasets.construction.backends import Failed, Question, Words
from cir_datasets.construction.fisd.manners import Manner
from cir_datasets.construction.fisd.options import ASPECTS, COMPLEX
from cir_datasets.errors import ConstructionError
from cir_datasets.shapes.draws import Draws

LIKES = ("the target", "the request")
"""What a hard negative is close to."""


def edits_of(chunk: Sequence[Row], *, manner: Manner, words: Words | None, seed: int) -> list[Row]:
    """Relative and target caption of each row, from template, file or model."""
    answers: dict[str, Any] = {}
    for aspect in ASPECTS:
        open_ = [
            row
            for row in chunk
            if row["aspect"] == aspect and "target_caption" not in row and "noun" not in row
        ]
        found = _asked(words, f"edit_{aspect}", [{"caption": row["caption"]} for row in open_])
        answers |= {row["id"]: answer for row, answer in zip(open_, found, strict=True)}
    return [_edit(row, answers.get(row["id"], row), manner, seed) for row in chunk]


def _edit(row: Row, answer: Any, manner: Manner, seed: int) -> Row:
    if "noun" in row:
        before, after, _ = row["numbers"]
        request = manner.number_request(row["noun"], before, after, request_draws(seed, row["id"]))
        answer = {"relative_caption": request, "target_caption": manner.counted(row["noun"], after)}
    why = answer.why if isinstance(answer, Failed) else _edit_fault(row, answer, manner)
    if why is not None:
        return {"id": row["id"], FAILED: why}
    return {"id": row["id"], **{name: _line(answer[name]) for name in ("relative_caption", "target_caption")}}


def request_draws(seed: int, id: str) -> Draws:
    """What decides on the words of a request for another number."""
    return Draws("fisd request", seed, id)


def _edit_fault(row: Row, answer: Mapping[str, str], manner: Manner) -> str | None:
    """Why an edit is of no use, or None."""
    if manner.meaning(_line(answer["target_caption"])) == manner.meaning(row["caption"]):
        return "the target's caption is that of the reference"
    words = len(answer["relative_caption"].split())
    if row["aspect"] == COMPLEX and words <= manner.complex_words:
        return f"its relative caption has {words} words, and a complex one more than {manner.complex_words}"
    return None


def negatives_of(chunk: Sequence[Row], *, manner: Manner, words: Words | None, seed: int) -> list[Row]:
    """The caption of each row's hard negative: another number, or what a model writes."""
    likes = {row["id"]: Draws("fisd negative", seed, row["id"]).choice(LIKES) for row in chunk}
    open_ = [row for row in chunk if "noun" not in row]
    asked = [
        {
            "reference": row["caption"],
            "change": row["relative_caption"],
            "target": row["target_caption"],
            "like": likes[row["id"]],
        }
        for row in open_
    ]
    found = _asked(words, "hard_negative", asked)
    answers = {row["id"]: answer for row, answer in zip(open_, found, strict=True)}
    return [_negative(row, answers.get(row["id"]), likes[row["id"]], manner) for row in chunk]


def _negative(row: Row, answer: Any, like: str, manner: Manner) -> Row:
    if "noun" in row:
        return {"id": row["id"], "negative_caption": manner.counted(row["noun"], row["numbers"][2])}
    if isinstance(answer, Failed):
        return {"id": row["id"], FAILED: answer.why}
    caption = _line(answer["negative_caption"])
    for name, other in (("target", row["target_caption"]), ("reference", row["caption"])):
        if manner.meaning(caption) == manner.meaning(other):
            return {"id": row["id"], FAILED: f"the hard negative's caption is that of the {name}"}
    return {"id": row["id"], "negative_caption": caption, "like": like}


def _asked(words: Words | None, prompt: str, questions: Sequence[Mapping[str, str]]) -> list[Any]:
    if not questions:
        return []
    if words is None:
        raise ConstructionError(
            "edits of captions need a language backend. Fix: add --language, or give captions with "
            "relative_caption and target_caption."
        )
    return list(words.ask(prompt, [Question(each) for each in questions]))


def _line(words: str) -> str:
    return " ".join(words.split())
