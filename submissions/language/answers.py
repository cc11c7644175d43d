"""What became of a question: a usable answer, or why there is none."""

from __future__ import annotations

import re
from dataclasses import dataclass

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
