"""Generators of pictures: several captions, one seed; and the renderer of shapes as one of them."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from cir_datasets.shapes.layout import SCENE_TEXT, scene_text, scenes_of
from cir_datasets.shapes.render import SIDE, pixels


class Generator(Protocol):
    """Draws pictures of captions; can be pickled, so that other machines draw, too."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """What the pictures depend on, as JSON values."""

    def draw(self, captions: Sequence[str], seed: int) -> list[bytes]:
        """A picture of each caption, all from the same seed, as the bytes of PNG files.

        Raises:
            DatasetError: these captions cannot be drawn; others can.
        """


@dataclass(frozen=True)
class ShapesGenerator:
    """Draws the scenes that captions of shapes' language describe; the scene is in each file's text."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """The renderer."""
        return {"generator": "shapes", "side": SIDE}

    def draw(self, captions: Sequence[str], seed: int) -> list[bytes]:
        """Scenes of one layout: what is not changed stays where it is.

        Raises:
            RecordError: a caption is not in the language of shapes, or not complete.

        Example:
            >>> one, same = ShapesGenerator().draw(["a small red star on a sandy background"] * 2, 7)
            >>> one[:4], one == same
            (b'\\x89PNG', True)
        """
        from PIL import Image, PngImagePlugin

        files = []
        for scene in scenes_of(captions, seed):
            text = PngImagePlugin.PngInfo()
            text.add_text(SCENE_TEXT, scene_text(scene))
            buffer = io.BytesIO()
            Image.fromarray(pixels(scene)).save(buffer, "PNG", pnginfo=text)
            files.append(buffer.getvalue())
        return files
