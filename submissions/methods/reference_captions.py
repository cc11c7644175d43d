"""What methods on words have instead of a reference's vector: its caption by a language backend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from submissions.errors import MethodError
from submissions.language.protocol import pictures_by_id
from submissions.methods.composing import Context
from submissions.methods.turns import Turn

if TYPE_CHECKING:
    from submissions.language.protocol import Language


def language_of(context: Context) -> Language:
    """The language backend.

    Raises:
        MethodError: the run has no language backend.
    """
    if context.language is None:
        raise MethodError(
            "the method needs a language backend. "
            "Fix: add --language NAME: oracle (shapes), openai:MODEL or transformers:FOLDER."
        )
    return context.language


def reference_captions(turns: Sequence[Turn], context: Context) -> list[str]:
    """The caption of each turn's reference; every picture is captioned once.

    Returns:
        a caption a turn, without a full stop; "" where it has no reference, or where the picture was
        skipped.

    Raises:
        LanguageError: pictures have no caption; the error names them.
        MissingImagesError: references outside the gallery have no picture, and may not be skipped.
    """
    wanted = [
        turn.reference for turn in turns if turn.reference and turn.reference not in context.gallery.missing
    ]
    ids = list(dict.fromkeys(wanted))
    known = set(context.pictures.ids)
    outside = [image for image in ids if image not in known]
    pictures = pictures_by_id(context.pictures, [image for image in ids if image in known])
    if outside:
        beside = context.pictures_outside(outside)
        there = [image for image in outside if image not in context.missing_outside]
        pictures += pictures_by_id(beside, there)
    captions = language_of(context).caption(pictures)
    said = {picture.id: caption for picture, caption in zip(pictures, captions, strict=True)}
    return [said.get(turn.reference or "", "").strip().rstrip(".") for turn in turns]
