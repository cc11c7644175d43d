"""What a language backend is, and the pictures that it is given."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from typing import Self

    from PIL.Image import Image

    from submissions.embeddings.pictures import Pictures
    from submissions.language.forms import Form

FormT = TypeVar("FormT", bound="Form")
LanguageT = TypeVar("LanguageT", bound="Language")


@dataclass(frozen=True)
class Picture:
    """A picture by id, opened when a backend needs its pixels.

    Args:
        id: the image's id; by it the oracle knows a picture, and errors name it.
        open: gives the picture, RGB; may be called several times, and from several threads.
    """

    id: str
    open: Callable[[], Image]


@dataclass(frozen=True)
class Item:
    """What one question of `Language.ask` is about.

    Args:
        words: for the template's placeholders.
        pictures: what is looked at; a prompt calls them "Picture 1", "Picture 2" and so on.
    """

    words: Mapping[str, str] = field(default_factory=dict)
    pictures: tuple[Picture, ...] = ()


@dataclass(frozen=True)
class LanguageIdentity:
    """What answers depend on; it goes into a rank file's method.

    Args:
        backend: `openai`, `transformers`, `oracle`, or a name of your own.
        model: the model's name; of a folder its name.
        revision: commit or hash of the weights; of a server the start of a hash of its address.
        prompts: sha256 (hex) of the prompt templates in use, or "none".
        settings: what else answers depend on (temperature, most tokens, ...), as one line.
    """

    backend: str
    model: str
    revision: str = ""
    prompts: str = "none"
    settings: str = ""

    def text(self) -> str:
        """One line for the notes of a rank file.

        Example:
            >>> LanguageIdentity("openai", "gpt-4o-mini", "server 5ba6ea8fd618", "3f" * 32).text()
            'openai:gpt-4o-mini (server 5ba6ea8fd618, prompts 3f3f3f3f3f3f)'
        """
        prompts = "" if self.prompts == "none" else f"prompts {self.prompts[:12]}"
        details = [part for part in (_short(self.revision), prompts, self.settings) if part]
        named = self.backend if self.model == self.backend else f"{self.backend}:{self.model}"
        return f"{named} ({', '.join(details)})" if details else named

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

    def key(self) -> dict[str, Any]:
        """What tells answers apart, as JSON: of a server its model, wherever it listens.

        Of a folder's model it is the hash of its content, whatever the folder is called.
        """
        whole = {**self.to_dict(), "settings": _SERVER.sub("server", self.settings)}
        if _SERVER.fullmatch(self.revision):
            del whole["revision"]
        elif _SHA256.fullmatch(self.revision):
            del whole["model"]
        return whole


_SERVER = re.compile(r"server [0-9a-f]+")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def _short(revision: str) -> str:
    """Hashes by their first twelve digits, everything else whole."""
    whole = len(revision) in (40, 64) and not set(revision) - set("0123456789abcdef")
    return f"revision {revision[:12]}" if whole else revision


@runtime_checkable
class Language(Protocol):
    """Answers in words, one for each question, in the order of the questions.

    Every function raises `LanguageError` where questions are left without an answer that can be used: the
    error names them, and what was answered is kept.
    """

    @property
    def identity(self) -> LanguageIdentity:
        """What the answers depend on."""

    def caption(self, images: Sequence[Picture]) -> list[str]:
        """A caption of each picture."""

    def merge(self, captions: Sequence[str], changes: Sequence[str]) -> list[str]:
        """The caption of each target.

        Args:
            captions: what each reference image shows.
            changes: the relative captions, one for each of `captions`.
        """

    def difference(self, first: Sequence[str], second: Sequence[str]) -> list[str]:
        """The relative caption that leads from each first caption to the second one beside it."""

    def judge(self, prompt: str, items: Sequence[Mapping[str, str]]) -> list[str]:
        """The answer to a question of your own about each item.

        Args:
            prompt: the name of a template in the prompts' folder (`fits`, `same`), or a template's text.
            items: for each question the words for the template's placeholders.
        """


@runtime_checkable
class FormLanguage(Language, Protocol):
    """A backend that also answers questions about several pictures and texts, in the fields of a form."""

    def ask(self, prompt: str, items: Sequence[Item], form: type[FormT]) -> list[FormT]:
        """The answer to one question about each item.

        A model that answers in another form is shown what is wrong and asked again.

        Args:
            prompt: as for `judge`.
            items: the words and pictures of each question.
            form: what an answer holds (`submissions.language.forms`, or one of your own).
        """


@runtime_checkable
class KeepingLanguage(Language, Protocol):
    """A backend that keeps its answers, and can be used without asking anybody."""

    def known_only(self) -> Self | None:
        """The same backend with the answers it has kept alone: every other question is left without one.

        None where a part of it keeps no answers.
        """


def known_only(language: LanguageT | None) -> LanguageT | None:
    """A backend with the answers it has kept alone; None where it keeps none."""
    return language.known_only() if isinstance(language, KeepingLanguage) else None


def pictures_by_id(pictures: Pictures, ids: Iterable[str]) -> list[Picture]:
    """The pictures of some ids, as language backends take them.

    Raises:
        LanguageError: an id is not among the pictures.
    """
    from submissions.errors import LanguageError

    places = {image: place for place, image in enumerate(pictures.ids)}
    found = []
    for image in ids:
        if image not in places:
            raise LanguageError(
                f"{pictures.name} has no picture of {image!r}. Fix: use an id of its gallery, or give the "
                "pictures that hold it."
            )
        found.append(Picture(image, _PictureOpener(pictures, places[image])))
    return found


@dataclass(frozen=True)
class _PictureOpener:
    pictures: Pictures
    place: int

    def __call__(self) -> Image:
        return self.pictures.open(self.place)
