"""What the pipelines ask of models: features of pictures and texts, and answers in words.

`submissions.making` makes these of encoders and language backends; tests and users may pass their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_In = TypeVar("_In")
_Out = TypeVar("_Out")


@dataclass(frozen=True)
class Failed:
    """Why a question has no answer that can be used; what depends on it is dropped with that reason."""

    why: str


@dataclass(frozen=True)
class Question:
    """One question.

    Args:
        words: for the prompt's placeholders.
        pictures: ids of the images that are looked at, in order; a prompt calls them "Picture 1" and so on.
    """

    words: Mapping[str, str] = field(default_factory=dict)
    pictures: tuple[str, ...] = ()


class Features(Protocol):
    """Vectors of pictures and texts, in one space."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """What the vectors depend on, as JSON values."""

    def images(self, ids: Sequence[str]) -> NDArray[np.float32]:
        """Shape (n, dimensions), rows of length 1, in the order of the ids."""

    def texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Shape (n, dimensions), rows of length 1, in the order of the texts."""


class Words(Protocol):
    """Answers of a language model, one for each question, in the order of the questions.

    A question without a usable answer has `Failed` in its place. An error is raised only where no further
    question would be answered either (a key that is refused, say).
    """

    @property
    def identity(self) -> Mapping[str, Any]:
        """What the answers depend on, prompts included, as JSON values."""

    def caption(self, images: Sequence[str], prompt: str = "caption") -> list[str | Failed]:
        """A caption of each image."""

    def merge(self, captions: Sequence[str], changes: Sequence[str]) -> list[str | Failed]:
        """The caption of each target."""

    def difference(self, first: Sequence[str], second: Sequence[str]) -> list[str | Failed]:
        """The relative caption from each first caption to the second beside it."""

    def ask(self, prompt: str, questions: Sequence[Question]) -> list[dict[str, Any] | Failed]:
        """The fields of the form that belongs to a prompt, for each question."""
