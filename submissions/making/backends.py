"""Encoders and language backends as the construction pipelines take them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from cir_datasets.common.stages import CALLED
from cir_datasets.construction.backends import Failed, Question
from cir_metrics.errors import UnknownNameError
from submissions.embeddings.embed import embed_gallery
from submissions.encoders.check import encoded_texts
from submissions.errors import MethodError
from submissions.language.asking import answered
from submissions.language.forms import (
    Caption,
    Edit,
    Form,
    FrameChoice,
    HardNegative,
    Instruction,
    NextFrameChoice,
    SessionScores,
    SortedInstruction,
)
from submissions.language.protocol import FormLanguage, Item, LanguageIdentity, pictures_by_id

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from submissions.embeddings.pictures import Pictures
    from submissions.embeddings.store import Embeddings
    from submissions.encoders.protocol import Encoder
    from submissions.language.protocol import Language

FORMS: Mapping[str, type[Form]] = {
    "caption_clothes": Caption,
    "edit_addition": Edit,
    "edit_background": Edit,
    "edit_change": Edit,
    "edit_complex": Edit,
    "edit_negation": Edit,
    "frame": FrameChoice,
    "frame_change": SortedInstruction,
    "hard_negative": HardNegative,
    "next_difference": Instruction,
    "next_frame": NextFrameChoice,
    "pair": Instruction,
    "session": SessionScores,
    "summary": SortedInstruction,
}
"""By prompt what an answer holds; a prompt of a user's own has the form of the prompt that it replaces."""

_TEXT_BATCH = 256
_T = TypeVar("_T")


class EncoderFeatures:
    """An encoder and pictures as `cir_datasets.construction.backends.Features`.

    Args:
        encoder: of `load_encoder`, or your own.
        pictures: makes the pictures of ids.
        store: folder in which vectors are kept, so that a killed run goes on; None is the store in the cache.
        batch_size: images that the model takes at once.
        workers: processes that open pictures.
        embed: embeds pictures elsewhere, and takes `store`; None does it here (`embed_gallery`).
    """

    def __init__(
        self,
        encoder: Encoder,
        pictures: Callable[[Sequence[str]], Pictures],
        *,
        store: str | Path | None = None,
        batch_size: int = 64,
        workers: int = 0,
        embed: Callable[..., Embeddings] | None = None,
    ) -> None:
        """See the class."""
        self._encoder = encoder
        self._pictures = pictures
        self._store = store
        self._embed = embed or partial(embed_gallery, encoder, batch_size=batch_size, workers=workers)

    @property
    def identity(self) -> Mapping[str, Any]:
        """What the vectors depend on, and beside it what the model is called."""
        identity = self._encoder.identity
        return {**identity.key(), CALLED: identity.model}

    def images(self, ids: Sequence[str]) -> NDArray[np.float32]:
        """Shape (n, dimensions), rows of length 1, in the order of the ids."""
        unique = tuple(dict.fromkeys(ids))
        made = self._embed(self._pictures(unique), store=self._store)
        places = {image: place for place, image in enumerate(unique)}
        vectors: NDArray[np.float32] = made.vectors[[places[image] for image in ids]]
        return vectors

    def texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Shape (n, dimensions), rows of length 1, in the order of the texts; each text is encoded once.

        A batch holds texts in sorted order, so that a text's vector does not depend on who asked before.
        """
        unique = sorted(set(texts))
        whole = encoded_texts(self._encoder, unique, _TEXT_BATCH)
        places = {text: place for place, text in enumerate(unique)}
        vectors: NDArray[np.float32] = whole[[places[text] for text in texts]]
        return vectors


class LanguageWords:
    """A language backend and pictures as `cir_datasets.construction.backends.Words`.

    Args:
        language: of `load_language`, or your own.
        pictures: those that questions may be about.

    Raises:
        MethodError: the backend fills in no forms.
    """

    def __init__(self, language: Language, pictures: Pictures) -> None:
        """See the class."""
        if not isinstance(language, FormLanguage):
            raise MethodError(
                f"{language.identity.text()} has no ask, which the construction of benchmarks needs. "
                "Fix: use another --language."
            )
        self._language: FormLanguage = language
        self._pictures = pictures

    @property
    def identity(self) -> Mapping[str, Any]:
        """What the answers depend on, prompts included, and beside it what the model is called."""
        return language_identity(self._language.identity)

    def caption(self, images: Sequence[str], prompt: str = "caption") -> list[str | Failed]:
        """A caption of each image."""
        if prompt != "caption":
            found = self.ask(prompt, [Question(pictures=(image,)) for image in images])
            return [one if isinstance(one, Failed) else str(one["caption"]) for one in found]
        return answered(lambda: self._language.caption(pictures_by_id(self._pictures, images)), Failed)

    def merge(self, captions: Sequence[str], changes: Sequence[str]) -> list[str | Failed]:
        """The caption of each target."""
        return answered(lambda: self._language.merge(captions, changes), Failed)

    def difference(self, first: Sequence[str], second: Sequence[str]) -> list[str | Failed]:
        """The relative caption from each first caption to the second."""
        return answered(lambda: self._language.difference(first, second), Failed)

    def ask(self, prompt: str, questions: Sequence[Question]) -> list[dict[str, Any] | Failed]:
        """The fields of the form that belongs to a prompt, for each question."""
        if prompt not in FORMS:
            raise UnknownNameError.of("form for the prompt", prompt, sorted(FORMS))
        flat = [image for question in questions for image in question.pictures]
        opened = {picture.id: picture for picture in pictures_by_id(self._pictures, dict.fromkeys(flat))}
        items = [
            Item(question.words, tuple(opened[image] for image in question.pictures))
            for question in questions
        ]
        found = answered(lambda: self._language.ask(prompt, items, FORMS[prompt]), Failed)
        return [one if isinstance(one, Failed) else one.model_dump() for one in found]


def language_identity(identity: LanguageIdentity) -> dict[str, Any]:
    """What answers depend on, and beside it what the model is called.

    Example:
        >>> one, two = (LanguageIdentity("openai", "m", f"server {digits}") for digits in ("5b", "c0"))
        >>> language_identity(one)["called"]
        'openai:m (server 5b)'
        >>> one.key() == two.key()
        True
    """
    return {**identity.key(), CALLED: identity.text()}
