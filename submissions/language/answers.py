"""What became of a question: a usable answer, or why there is none."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from cir_datasets.common.yaml import package_yaml
from cir_metrics.errors import CopiedError

_THOUGHTS = re.compile(r".*</think(?:ing)?>", re.DOTALL)
"""Up to the last end: some templates put the opening tag into the prompt, so that no answer has it."""
_OPEN_THOUGHT = re.compile(r"\s*<think(?:ing)?>")


@dataclass(frozen=True)
class Answer:
    """An answer that can be used.

    Args:
        text: the words, without blanks at their ends.
        prompt_tokens: tokens that the question took, as the model counts them; 0 where it does not say.
        completion_tokens: tokens of the answer.
    """

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0


class NoAnswerError(CopiedError):
    """A question got no answer that can be used; the text says why in a few words.

    Args:
        why: a few words.
        final: whether every other question would fare the same, so that asking on is pointless.
        unheard: whether it may be the backend that fails, and not this question: no reply came in time, say.
        fix: what to do about it.
        wrong_form: whether there was an answer, but not in the form that was asked for.
    """

    def __init__(
        self,
        why: str,
        *,
        final: bool = False,
        unheard: bool = False,
        fix: str = "",
        wrong_form: bool = False,
    ) -> None:
        """See the class."""
        super().__init__(why)
        self.why = why
        self.final = final
        self.unheard = unheard
        self.fix = fix
        self.wrong_form = wrong_form


class WrongFormError(NoAnswerError):
    """An answer is there, but not in the form that was asked for.

    Args:
        said: the answer.
        why: what is wrong with it, in the words that the model gets.
    """

    def __init__(self, said: str, why: str) -> None:
        """See the class."""
        super().__init__(
            f"the answer is not of the form that was asked for: {why}",
            fix="change the prompt",
            wrong_form=True,
        )
        self.said = said
        self.correction = (
            f"That answer is not of the form that was asked for: {why}. Answer again, in that form."
        )


class EmptyAnswerError(WrongFormError):
    """Words are there that answer nothing: a refusal, a label, the prompt.

    Args:
        said: the answer.
        why: which of them.
    """

    def __init__(self, said: str, why: str) -> None:
        """See the class."""
        super().__init__(said, why)
        self.why, self.args = why, (why,)


def usable(text: str | None) -> str:
    """An answer without a model's thoughts (`<think>...</think>`), blanks and one pair of quotation marks.

    Raises:
        NoAnswerError: nothing is left, or what is left is not text.

    Example:
        >>> usable('<think>Which colour?</think> "A red star."\\n')
        'A red star.'
    """
    answer = _THOUGHTS.sub("", text or "", count=1)
    if _OPEN_THOUGHT.match(answer):
        raise NoAnswerError("the answer ends in the model's thoughts", fix="raise max_tokens")
    cleaned = answer.strip()
    if len(cleaned) > 1 and cleaned[0] == cleaned[-1] == '"' and '"' not in cleaned[1:-1]:
        cleaned = cleaned[1:-1].strip()
    if not cleaned:
        raise NoAnswerError("the answer is empty")
    if not is_text(cleaned):
        raise NoAnswerError("the answer is not text: it holds half a character (a lone surrogate)")
    return cleaned


def bare_words(text: str) -> str:
    """Words without a code fence around them and a label before them.

    Raises:
        EmptyAnswerError: nothing is left, or what is left refuses to answer.

    Example:
        >>> bare_words("Instruction: **make it red**")
        'make it red'
        >>> bare_words("Instruction:")
        Traceback (most recent call last):
        submissions.language.answers.EmptyAnswerError: it is a label without an answer
    """
    label, refusal = _empty_answers()
    inside = _FENCE.sub("", text).strip()
    words = label.sub("", inside, count=1).strip().strip("*_`").strip()
    if len(words) > 1 and words[0] == words[-1] == '"':
        words = words[1:-1].strip()
    if "`" in text and not inside:
        raise EmptyAnswerError(text, "it is a code fence without an answer")
    if inside and not words:
        raise EmptyAnswerError(text, "it is a label without an answer")
    if refusal.match(words.casefold().replace("\u2019", "'")):
        raise EmptyAnswerError(text, "it refuses to answer")
    return words


def check_new_words(text: str, prompt: str) -> None:
    """Refuse an answer that gives a prompt's words back: three or more that stand in it, or a sentence of it.

    Args:
        text: the answer.
        prompt: as its author wrote it; what an item puts into its placeholders may come back.

    Raises:
        EmptyAnswerError: the answer does.

    Example:
        >>> check_new_words("a red dress", "Say what leads from a red dress to {second}.")
        Traceback (most recent call last):
        submissions.language.answers.EmptyAnswerError: it gives the prompt's own words back
    """
    answer, asked = _in_a_row(text), [_in_a_row(part) for part in _SENTENCE_ENDS.split(prompt)]
    inside = answer.count(" ") >= _FEW and any(answer in part for part in asked)
    if inside or any(part.count(" ") >= 2 * _FEW and part in answer for part in asked):
        raise EmptyAnswerError(text, "it gives the prompt's own words back")


_FEW = 4
"""Blanks of three words in a row, with one at each end."""
_FENCE = re.compile(r"```\w*")
_SENTENCE_ENDS = re.compile(r"[.:;!?]\s|\{\w+\}")


def _in_a_row(text: str) -> str:
    return " ".join(["", *re.findall(r"\w+", text.casefold()), ""])


@functools.cache
def _empty_answers() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Labels, and the beginnings of refusals."""
    known = package_yaml("submissions", "language/no_answers.yaml")
    before, labels = ("|".join(known[name]) for name in ("before_labels", "labels"))
    return (
        re.compile(rf"^\W*(?:(?:{before})\W+)*(?:{labels})\W*:[\s*_]*", re.IGNORECASE),
        re.compile("|".join(known["refusals"])),
    )


def is_text(words: str) -> bool:
    """Whether words can be written as UTF-8: half a character (a lone surrogate) cannot.

    Example:
        >>> is_text("a star"), is_text("\\ud800")
        (True, False)
    """
    try:
        words.encode()
    except UnicodeEncodeError:
        return False
    return True
