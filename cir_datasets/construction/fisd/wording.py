"""What is asked of each picture: relative caption, the target's caption, and the hard negative's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cir_datasets.common.stages import FAILED, Row
from cir_datasets.construction.backends import Failed, Question, Words
from cir_datasets.construction.fisd.edit_checks import EditFault
from cir_datasets.construction.fisd.manners import Manner
from cir_datasets.construction.fisd.options import ASPECTS, COMPLEX
from cir_datasets.errors import ConstructionError
from cir_datasets.shapes.draws import Draws

ATTEMPTS = 3
"""How often a model is asked for an edit at most."""
REFUSED = "refused"
"""Field of a row: earlier edits, each with the code of the rule that it breaks, and why."""
LIKES = ("the target", "the request")
"""What a hard negative is close to."""


def edits_of(chunk: Sequence[Row], *, manner: Manner, words: Words | None, seed: int) -> list[Row]:
    """Relative and target caption of each row, from template, file or model.

    A model whose edit is refused is told why and asked again, `ATTEMPTS` times in all; each refusal stays in
    the row.
    """
    rows: dict[str, Row] = {row["id"]: {} for row in chunk}
    for row in chunk:
        if "noun" in row:
            before, after, _ = row["numbers"]
            request = manner.number_request(row["noun"], before, after, request_draws(seed, row["id"]))
            answer = {"relative_caption": request, "target_caption": manner.counted(row["noun"], after)}
            rows[row["id"]] = _edit(row, answer, manner)
        elif "target_caption" in row:
            rows[row["id"]] = _edit(row, row, manner)
    pending = [row for row in chunk if not rows[row["id"]]]
    for attempt in range(1, ATTEMPTS + 1):
        for aspect in ASPECTS:
            open_ = [row for row in pending if row["aspect"] == aspect]
            refused = [rows[row["id"]].get(REFUSED, []) for row in open_]
            asked = [
                {"caption": row["caption"], "retry": _retry(earlier)}
                for row, earlier in zip(open_, refused, strict=True)
            ]
            answers = _asked(words, f"edit_{aspect}", asked)
            for row, answer, earlier in zip(open_, answers, refused, strict=True):
                rows[row["id"]] = _edit(row, answer, manner, earlier)
        pending = [row for row in pending if len(rows[row["id"]].get(REFUSED, ())) == attempt]
    return [rows[row["id"]] for row in chunk]


def _edit(row: Row, answer: Any, manner: Manner, earlier: Sequence[Row] = ()) -> Row:
    """A row of the stage: the edit, or why it is none, and the refusals."""
    refused = {REFUSED: list(earlier)} if earlier else {}
    if isinstance(answer, Failed):
        return {"id": row["id"], FAILED: answer.why, **refused}
    texts = {name: _line(answer[name]) for name in ("relative_caption", "target_caption")}
    fault = _edit_fault(row, texts, manner)
    if fault is None:
        return {"id": row["id"], **texts, **refused}
    return {"id": row["id"], FAILED: str(fault), REFUSED: [*earlier, {**texts, **fault._asdict()}]}


def _retry(refused: Sequence[Row]) -> str:
    """What a model is told of its earlier edits; nothing at first."""
    lines = "".join(f"\n- {e['relative_caption']} -> {e['target_caption']} ({e['why']})" for e in refused)
    return f"These answers were wrong, for the reason behind each; do better:{lines}\n" if lines else ""


def request_draws(seed: int, id: str) -> Draws:
    """What decides on the words of a request for another number."""
    return Draws("fisd request", seed, id)


def _edit_fault(row: Row, edit: Mapping[str, str], manner: Manner) -> EditFault | None:
    """Why an edit is of no use, or None."""
    request, target = edit["relative_caption"], edit["target_caption"]
    if manner.meaning(target) == manner.meaning(row["caption"]):
        return EditFault("unchanged", "the target's caption is that of the reference")
    words, least = len(request.split()), manner.complex_words
    if row["aspect"] == COMPLEX and words <= least:
        why = f"its relative caption has {words} words, and a complex one more than {least}"
        return EditFault("too_short", why)
    return manner.edit_fault(row["aspect"], row["caption"], request, target)


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
