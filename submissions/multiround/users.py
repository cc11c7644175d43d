"""Users of a dialogue: who looks at what was found, has a target in mind, and says what is to change.

FISD, equation 2: t_(r+1) = LLM(MLLM(candidate), MLLM(target)), or one model that sees both pictures.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from cir_datasets.common.yaml import package_yaml
from cir_metrics.errors import UnknownNameError
from submissions.errors import MethodError
from submissions.language.answers import EmptyAnswerError, bare_words
from submissions.language.asking import answered
from submissions.language.forms import NOTHING_LEFT, Caption, Instruction
from submissions.language.protocol import FormLanguage, Item, Picture, pictures_by_id
from submissions.rank_file.texts import plain_text

if TYPE_CHECKING:
    from submissions.embeddings.pictures import Pictures
    from submissions.language.protocol import Language

WAYS = ("captions", "pictures")
"""How a simulated user tells two pictures apart: by captions of both, or by looking at both."""

LONGEST = 2000
"""Characters of an answer that a transcript holds."""

_LATIN = "LATIN"
_In = TypeVar("_In")
_Out = TypeVar("_Out")


@dataclass(frozen=True)
class Style:
    """How a user speaks.

    Args:
        words: about how many words.
        limits: a sentence on what the words are limited to, or "".
        caption: the prompt that captions pictures.
        aspect: the only kind of change that is named, or None.
    """

    words: int
    limits: str
    caption: str
    aspect: str | None = None


@dataclass(frozen=True)
class Exchange:
    """What a user is shown.

    Args:
        session: id of the session.
        candidate: the image that was found, which becomes the next reference.
        target: the image that the user has in mind.
        style: how they speak.
        said: their words in the rounds before, the published caption first.
        most_repeats: equal words in a row that end the session, 2 or more; None where none do.
    """

    session: str
    candidate: str
    target: str
    style: Style
    said: tuple[str, ...]
    most_repeats: int | None = 3


@dataclass(frozen=True)
class Silence:
    """Why a user says nothing that can be used; the session ends with it."""

    why: str


NOTHING = Silence("it says nothing")


class User(Protocol):
    """Whoever answers: simulated or not."""

    @property
    def description(self) -> Mapping[str, Any]:
        """Who it is, for the transcript's header: JSON values."""

    def say(self, exchanges: Sequence[Exchange]) -> list[str | Silence]:
        """The next relative caption of each exchange."""


class SimulatedUser:
    """A language backend in the place of a person.

    Args:
        language: what answers.
        pictures: of the gallery.
        way: one of `WAYS`.

    Raises:
        UnknownNameError: no way has that name.
        MethodError: the backend cannot be asked in that way.
    """

    def __init__(self, language: Language, pictures: Pictures, way: str = "captions") -> None:
        """See the class."""
        if way not in WAYS:
            raise UnknownNameError.of("simulator", way, WAYS)
        if not isinstance(language, FormLanguage):
            raise MethodError(
                f"{language.identity.text()} has no ask, which a simulated user needs. "
                "Fix: use another backend."
            )
        self._language = language
        self._pictures = pictures
        self._way = way
        self._captions: dict[tuple[str, str], str] = {}

    @property
    def description(self) -> Mapping[str, Any]:
        """Who it is."""
        return {"kind": "simulated", "way": self._way, "language": self._language.identity.to_dict()}

    def say(self, exchanges: Sequence[Exchange]) -> list[str | Silence]:
        """The next relative caption of each exchange.

        Raises:
            LanguageError: no further question would be answered either (a key that is refused, say).
        """
        said = self._by_captions(exchanges) if self._way == "captions" else self._by_pictures(exchanges)
        return [
            words if isinstance(words, Silence) else checked_words(words, exchange)
            for words, exchange in zip(said, exchanges, strict=True)
        ]

    def prompts(self, captioned_by: str) -> dict[str, str]:
        """Version and hash of each prompt in use, by name; of a backend without prompts none.

        Args:
            captioned_by: the prompt that captions pictures.
        """
        sees, writes = (getattr(self._language, name, self._language) for name in ("sees", "writes"))
        asked = [(sees, captioned_by), (writes, "feedback")]
        if self._way == "pictures":
            asked = [(sees, "feedback_pictures")]
        return {name: speaker.prompts[name].label for speaker, name in asked if hasattr(speaker, "prompts")}

    def _by_pictures(self, exchanges: Sequence[Exchange]) -> list[str | Silence]:
        opened = self._opened(image for each in exchanges for image in (each.candidate, each.target))
        items = [Item(_words(each), (opened[each.candidate], opened[each.target])) for each in exchanges]
        return _answered(lambda asked: self._asked("feedback_pictures", asked), items)

    def _by_captions(self, exchanges: Sequence[Exchange]) -> list[str | Silence]:
        wanted = [
            (each.style.caption, image) for each in exchanges for image in (each.target, each.candidate)
        ]
        # What has no caption now is asked for again in the next round, as it is after a kill.
        captions: dict[tuple[str, str], str | Silence] = {**self._captions}
        for prompt in dict.fromkeys(prompt for prompt, _ in wanted):
            new = list(dict.fromkeys(i for p, i in wanted if p == prompt and (p, i) not in captions))
            opened = self._opened(new)
            found = _answered(functools.partial(self._captioned, prompt), [opened[image] for image in new])
            captions.update(zip(((prompt, image) for image in new), found, strict=True))
        self._captions = {key: words for key, words in captions.items() if isinstance(words, str)}
        said: list[str | Silence] = []
        items: list[Item] = []
        for each in exchanges:
            first, second = (captions[each.style.caption, i] for i in (each.candidate, each.target))
            silent = next((one for one in (first, second) if isinstance(one, Silence)), None)
            said.append(silent or "")
            if isinstance(first, str) and isinstance(second, str):
                items.append(Item({"first": first, "second": second, **_words(each)}))
        answers = iter(_answered(lambda asked: self._asked("feedback", asked), items))
        return [one if isinstance(one, Silence) else next(answers) for one in said]

    def _captioned(self, prompt: str, pictures: Sequence[Picture]) -> list[str]:
        if prompt == "caption":
            return self._language.caption(pictures)
        items = [Item(pictures=(picture,)) for picture in pictures]
        return [answer.caption for answer in self._form_language.ask(prompt, items, Caption)]

    def _asked(self, prompt: str, items: Sequence[Item]) -> list[str]:
        return [answer.instruction for answer in self._form_language.ask(prompt, items, Instruction)]

    @property
    def _form_language(self) -> FormLanguage:
        return self._language

    def _opened(self, ids: Iterable[str]) -> dict[str, Picture]:
        return {picture.id: picture for picture in pictures_by_id(self._pictures, dict.fromkeys(ids))}


def _answered(ask: Callable[[Sequence[_In]], Sequence[str]], items: Sequence[_In]) -> list[str | Silence]:
    """The answers as words, with the reason in the place of those that did not come."""
    replies = answered(lambda: ask(items), Silence)
    return [one if isinstance(one, Silence) else _useful(_text(one)) for one in replies]


def _text(answer: Any) -> str:
    if isinstance(answer, Instruction):
        return answer.instruction
    return answer.caption if isinstance(answer, Caption) else str(answer)


def _useful(words: str) -> str | Silence:
    """Words that answer; a caption that refuses to be one tells nobody what to ask for."""
    try:
        bare_words(words)
    except EmptyAnswerError as error:
        return Silence(error.why)
    return words


def checked_words(words: str, exchange: Exchange) -> str | Silence:
    """A user's words as one line, or why they cannot be used.

    Example:
        >>> style = Style(10, "", "caption")
        >>> checked_words(" a red\\nstar", Exchange("1", "a", "b", style, ("a star",)))
        'a red star'
        >>> checked_words("A star!", Exchange("1", "a", "b", style, ("a dog", "a star", "a star.")))
        Silence(why='it says the same for the third time in a row')
        >>> checked_words("une robe rouge avec des fleurs", Exchange("1", "a", "b", style, ()))
        Silence(why='it answers in another language than English')
    """
    if not _spoken(words):
        return NOTHING
    if exchange.style.aspect is not None and _spoken(words) == NOTHING_LEFT:
        return Silence(f"no change of the aspect {exchange.style.aspect} is left")
    try:
        line = plain_text(" ".join(words.split()), LONGEST)
    except ValueError as error:
        return Silence(f"its words are not plain text: {error}")
    letters = [character for character in line if character.isalpha()]
    latin = sum(unicodedata.name(character, "").startswith(_LATIN) for character in letters)
    if letters and latin * 2 < len(letters):
        return Silence("it answers in another script than Latin")
    if _is_foreign(line):
        return Silence("it answers in another language than English")
    most = exchange.most_repeats
    if most is not None and list(map(_spoken, exchange.said[1 - most :])) == [_spoken(line)] * (most - 1):
        often = "for the third time" if most == 3 else f"{most} times"
        return Silence(f"it says the same {often} in a row")
    return line


def _spoken(words: str) -> str:
    """The letters and digits of words, case-folded: what makes two answers the same."""
    return "".join(filter(str.isalnum, words.casefold()))


def _is_foreign(line: str) -> bool:
    """Whether words are hardly English; "de la" of names such as "de la Renta" is not looked at."""
    known = _styles()["languages"]
    heard = " ".join(word for word in re.findall(r"\w+", line.casefold()) if word not in known["names"])
    return bool(dict(_languages().rank(heard))["en"] < known["english_below"])


@functools.cache
def _languages() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(_styles()["languages"]["told_apart"])
    return identifier


def _words(exchange: Exchange) -> dict[str, str]:
    """What a prompt is filled with; the oracle, which has no prompts, also reads what else is there."""
    style = exchange.style
    words = {"words": str(style.words), "limits": style.limits, "said": "\n".join(exchange.said)}
    return words if style.aspect is None else {**words, "aspect": style.aspect}


def _styles() -> Mapping[str, Any]:
    styles: Mapping[str, Any] = package_yaml("submissions", "multiround/feedback.yaml")
    return styles


def usual_aspect(name: str) -> str | None:
    """What feedback on a benchmark is limited to by itself: FISD's to each query's own aspect."""
    aspect: str | None = _styles()["benchmarks"].get(name, {}).get("aspect")
    return aspect


def style_of(name: str, aspect: str | None, words: int | None) -> Style:
    """How users speak about a benchmark.

    Args:
        name: of the benchmark's card, such as `cirr`.
        aspect: what they limit themselves to, or None.
        words: about how many words; None is what is usual there.

    Example:
        >>> style_of("cirr", None, None).words, style_of("fashioniq", None, None).caption
        (30, 'caption_clothes')
        >>> style_of("fisd", "negation", None).limits[:41]
        'Name changes of one kind alone: negation.'
    """
    styles = _styles()
    own = {**styles["default"], **styles["benchmarks"].get(name, {})}
    limits, usual = str(own["limits"]), int(own["words"])
    if aspect in styles["unlimited"]:
        usual = int(styles["unlimited"][aspect])
    elif aspect is not None:
        usual = int(styles["aspect"]["words"])
        limits = str(styles["aspect"]["limits"]).replace("{aspect}", aspect)
    return Style(usual if words is None else words, limits, str(own["caption"]), aspect)
