"""The scene oracle: what shapes' own grammar answers where other benchmarks need a model.

Of a picture it is given the scene graph; of everything else only the words that a model would get too:
`merge`, `difference` and `judge` read captions in the language of shapes (`cir_datasets.shapes.read`) and
know nothing of the pictures behind them. A merge is what a reader makes of a caption and a change, not a look
at the target.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

from cir_datasets.errors import RecordError
from cir_datasets.shapes import Draws, describe
from cir_datasets.shapes.language import Reading
from cir_metrics.errors import CallError, UnknownNameError
from submissions.errors import LanguageError
from submissions.language.asking import paired_up
from submissions.language.oracle.answers import ANSWERS, mistaken, scene_behind
from submissions.language.oracle.reading import apart, merged, read_caption, said
from submissions.language.protocol import FormT, Item, LanguageIdentity, Picture

YES, NO = "yes", "no"
_EXAMPLES = 5
_PARTS = 1_000_000
"""How finely a share of questions is drawn."""
_In = TypeVar("_In")
_Out = TypeVar("_Out")


class OracleLanguage:
    """Answers about shapes out of scene graphs and grammar; the same on every machine, and free.

    Args:
        noise: share of the questions about pictures, from 0 to 1, in which another picture is seen in the
            place of the last one, so that the answer is well put and, nearly always, wrong.
        seed: decides which questions these are, and which pictures.

    Raises:
        CallError: `noise` is out of range.

    Example:
        >>> oracle = OracleLanguage()
        >>> oracle.merge(["two small red circles on a sandy background"], ["a large circle and no star"])
        ['a large red circle on a sandy background']
        >>> OracleLanguage(noise=0.3, seed=7).identity.text()
        'oracle (scene graphs of shapes, noise 0.3, seed 7)'
    """

    def __init__(self, noise: float = 0.0, seed: int = 0) -> None:
        """See the class."""
        if isinstance(noise, bool) or not isinstance(noise, int | float) or not 0 <= noise <= 1:
            raise CallError(f"noise={noise!r}; it is a share from 0 to 1. Fix: choose it in that range.")
        self._noise = noise
        self._seed = seed

    @property
    def identity(self) -> LanguageIdentity:
        """What the answers depend on."""
        noise = f", noise {self._noise:g}, seed {self._seed}" if self._noise else ""
        return LanguageIdentity("oracle", "oracle", settings=f"scene graphs of shapes{noise}")

    def caption(self, images: Sequence[Picture]) -> list[str]:
        """The complete description of each scene, without positions; its pixels are not looked at.

        Raises:
            LanguageError: a picture is not one of shapes, and its file holds no scene.
        """
        return _each("caption", images, self._caption, lambda image: image.id)

    def merge(self, captions: Sequence[str], changes: Sequence[str]) -> list[str]:
        """What each caption says once its change is true; what the change does not mention stays.

        "no X" takes away, "also X" adds, and any other mention alters the thing of that shape, else the one
        of that colour. A thing that the caption does not name is added.

        Raises:
            LanguageError: a caption or a change is not in the language of shapes.
        """
        pairs = paired_up(captions, changes, "captions", "changes")
        return _each(
            "merge",
            pairs,
            lambda pair: said(merged(read_caption(pair[0]), read_caption(pair[1]))),
            " | ".join,
        )

    def difference(self, first: Sequence[str], second: Sequence[str]) -> list[str]:
        """What the second caption's scene has that the first one's lacks, as `cir_datasets.shapes` says it.

        Raises:
            LanguageError: a caption is not in the language of shapes, or leaves out the background, or a
                thing's size or colour.
        """
        pairs = paired_up(first, second, "first captions", "second captions")
        return _each("difference", pairs, apart, " | ".join)

    def judge(self, prompt: str, items: Sequence[Mapping[str, str]]) -> list[str]:
        """`yes` or `no`.

        Args:
            prompt: `same` (do `first` and `second` mean the same, wherever things stand and whatever the
                viewpoint?) or `fits` (is `target` what `change` makes of `caption`? viewpoint and places
                count where the change names them; a place that `target` does not name is not a fault).
            items: the captions by those names.

        Raises:
            LanguageError: another prompt, a caption that is missing, or one not in the language of shapes.
        """
        judges: dict[str, Callable[[Mapping[str, str]], bool]] = {"same": _is_same, "fits": _does_fit}
        if prompt not in judges:
            raise LanguageError(
                f"the oracle judges by {' and '.join(judges)} alone, not by {prompt[:60]!r}. "
                "Fix: use one of them, or another --language."
            )
        judged = judges[prompt]

        def answer(item: Mapping[str, str]) -> str:
            return YES if judged(item) else NO

        return _each(prompt, items, answer, lambda item: " | ".join(item.values()))

    def ask(self, prompt: str, items: Sequence[Item], form: type[FormT]) -> list[FormT]:
        """What scenes and grammar answer to the questions about pictures.

        Args:
            prompt: one of `submissions.language.oracle.answers`, which says what each answer is.
            items: their words and pictures, as the templates of those names need them. Feedback with a word
                `aspect` names changes of that kind alone.
            form: what an answer holds.

        Raises:
            LanguageError: another prompt, words that are missing or not in the language of shapes, or a
                picture that is not one of shapes.
        """
        if prompt not in ANSWERS:
            raise LanguageError(
                f"the oracle is asked by {', '.join(ANSWERS)} alone, not by {prompt[:60]!r}. "
                "Fix: use one of them, or another --language."
            )
        answer = ANSWERS[prompt]

        def filled(item: Item) -> FormT:
            question = f"{prompt}|{_about(item)}"
            if item.pictures and self._errs(question):
                for other in mistaken(question, item.pictures[-1], self._seed):
                    with suppress(RecordError):
                        return form.model_validate(answer(Item(item.words, (*item.pictures[:-1], other))))
            return form.model_validate(answer(item))

        return _each(prompt, items, filled, _about)

    def _caption(self, image: Picture) -> str:
        question = f"caption|{image.id}"
        seen = next(mistaken(question, image, self._seed)) if self._errs(question) else image
        return describe(scene_behind(seen))

    def _errs(self, question: str) -> bool:
        """Whether the noise is in this question."""
        return Draws("noise", self._seed, question).below(_PARTS) < self._noise * _PARTS


def _each(
    task: str, items: Sequence[_In], answer: Callable[[_In], _Out], about: Callable[[_In], str]
) -> list[_Out]:
    """The answer to each item, or one error that names all that have none."""
    answers: list[_Out | None] = []
    failed: list[tuple[str, str]] = []
    for item in items:
        try:
            answers.append(answer(item))
        except (RecordError, UnknownNameError) as error:
            answers.append(None)
            failed.append((about(item), str(error)))
        except KeyError as error:
            raise LanguageError(
                f"oracle, {task}: an item has no {error.args[0]!r}. Fix: give every item all its captions."
            ) from error
    if failed:
        shown = "".join(f"\n  {why}" for _, why in failed[:_EXAMPLES])
        more = f"\n  ... and {len(failed) - _EXAMPLES:,} more" if len(failed) > _EXAMPLES else ""
        raise LanguageError(
            f"oracle, {task}: {len(failed):,} of {len(items):,} questions have no answer:{shown}{more}\n"
            "The oracle knows shapes alone. Fix: use another --language for other pictures and other words.",
            failed,
            answers,
        )
    return [answer for answer in answers if answer is not None]


def _about(item: Item) -> str:
    return " | ".join((*(picture.id for picture in item.pictures), *item.words.values()))


def _meaning(reading: Reading) -> tuple[Counter[tuple[object, ...]], str | None]:
    looks: Counter[tuple[object, ...]] = Counter(
        (mention.shape, mention.colour, mention.size, mention.texture or "plain", mention.number)
        for mention in reading.mentions
        if mention.number
    )
    return looks, reading.background


def _is_same(item: Mapping[str, str]) -> bool:
    return _meaning(read_caption(item["first"])) == _meaning(read_caption(item["second"]))


def _does_fit(item: Mapping[str, str]) -> bool:
    caption, change, target = (read_caption(item[name]) for name in ("caption", "change", "target"))
    if change.viewpoint not in (None, target.viewpoint or "straight"):
        return False
    cells = {mention.shape: mention.cell for mention in target.mentions}
    moved = [mention for mention in change.mentions if mention.cell is not None]
    if any(cells.get(mention.shape) not in (None, mention.cell) for mention in moved):
        return False
    return _meaning(merged(caption, change)) == _meaning(target)
