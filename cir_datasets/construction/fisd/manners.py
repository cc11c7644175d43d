"""How captions speak: what a source must say for an aspect, how numbers are said, when two mean the same."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from cir_datasets.common.yaml import package_yaml
from cir_datasets.construction.filled_tables import read_text
from cir_datasets.construction.fisd.edit_checks import EditFault, edit_fault, rules_hash
from cir_datasets.construction.fisd.options import COMPLEX
from cir_datasets.errors import ConstructionError, RecordError
from cir_datasets.shapes.draws import Draws
from cir_datasets.shapes.language import NUMBERS, describe, difference, merge, plural
from cir_datasets.shapes.layout import scenes_of
from cir_datasets.shapes.queries import aspects
from cir_datasets.shapes.world import MOST_OBJECTS, MOST_THINGS, Scene, changes

_WORDS = (3, 77)
"""Fewest and most words of an English source caption; text encoders of diffusion models read no more."""
_NOUNS = {"addition": 1, "negation": 2, "change": 1, "background": 1, COMPLEX: 1}


class Manner(Protocol):
    """A language of captions."""

    @property
    def identity(self) -> dict[str, Any]:
        """What its answers depend on, as JSON values."""

    @property
    def most(self) -> int:
        """The highest number that a picture can show."""

    @property
    def complex_words(self) -> int:
        """A relative caption of the aspect `complex` has more words than this."""

    def lacks(self, aspect: str, caption: str) -> str | None:
        """Why a caption cannot be the source of an aspect other than cardinality, or None."""

    def edit_fault(self, aspect: str, caption: str, request: str, target: str) -> EditFault | None:
        """Why an edit is none of its aspect, or None."""

    def subjects(self, captions: Iterable[str]) -> list[str]:
        """What can be counted, each once."""

    def counted(self, subject: str, number: int) -> str:
        """The caption of a number of these, from 1 to `most`."""

    def number_request(self, subject: str, before: int, after: int, draws: Draws) -> str:
        """A relative caption that asks for another number."""

    def meaning(self, caption: str) -> Hashable:
        """What two captions share that mean the same."""


@dataclass(frozen=True)
class English:
    """English, with templates for numbers.

    Args:
        nouns: singular and plural of what can be counted.
        templates: whose words for numbers: `ours`, or `paper` (FISD's supplement A and Figure 5).
    """

    nouns: tuple[tuple[str, str], ...]
    most: int = 10
    complex_words: int = 25
    templates: str = "ours"

    @property
    def identity(self) -> dict[str, Any]:
        """Its templates, the rules of edits, and nouns."""
        return {
            "manner": "english",
            **_english()["templates"][self.templates],
            "checks": rules_hash(),
            "nouns": [list(pair) for pair in self.nouns],
        }

    def lacks(self, aspect: str, caption: str) -> str | None:
        """Whether it is too short or long, or lacks nouns or a place; parts of speech are HanTa's.

        Example:
            >>> english = English(default_nouns())
            >>> english.lacks("negation", "a dog runs fast")
            'it names 1 of at least 2 things'
            >>> english.lacks("negation", "a dog runs after a ball")
        """
        from cir_datasets.statistics.counts import count_classes

        words = caption.lower().split()
        if not _WORDS[0] <= len(words) <= _WORDS[1]:
            return f"it is not between {_WORDS[0]} and {_WORDS[1]} words long"
        nouns = count_classes({caption: 1}, "a caption")["noun"]
        if nouns < _NOUNS[aspect]:
            return f"it names {nouns} of at least {_NOUNS[aspect]} things"
        if aspect == "background" and not set(words) & set(_english()["places"]):
            return "it does not say where something is"
        return None

    def edit_fault(self, aspect: str, caption: str, request: str, target: str) -> EditFault | None:
        """The first rule of the aspect that it breaks; plurals of the nouns are known."""
        pairs = [(one.split(), many.split()) for one, many in self.nouns]
        words = [zip(many, one, strict=True) for one, many in pairs if len(one) == len(many)]
        return edit_fault(aspect, caption, request, target, dict(itertools.chain(*words)))

    def subjects(self, captions: Iterable[str]) -> list[str]:
        """The nouns; captions do not matter."""
        return [singular for singular, _ in self.nouns]

    def counted(self, subject: str, number: int) -> str:
        """A photo of so many.

        Example:
            >>> english = English((("mouse", "mice"),))
            >>> english.counted("mouse", 1), english.counted("mouse", 10)
            ('a photo of one mouse', 'a photo of ten mice')
        """
        noun = subject if number == 1 else dict(self.nouns)[subject]
        caption: str = _english()["templates"][self.templates]["caption"]
        return caption.format(count=_english()["numbers"][number - 1], noun=noun)

    def number_request(self, subject: str, before: int, after: int, draws: Draws) -> str:
        """One of the templates, with numbers in words.

        Example:
            >>> English((("dog", "dogs"),)).number_request("dog", 4, 1, Draws("example", 2))
            'Instead of four, show one.'
        """
        numbers: list[str] = _english()["numbers"]
        template: str = draws.choice(_english()["templates"][self.templates]["requests"])
        return template.format(**{"from": numbers[before - 1], "to": numbers[after - 1]})

    def meaning(self, caption: str) -> Hashable:
        """The words, without capitals and without punctuation."""
        return " ".join("".join(c if c.isalnum() else " " for c in caption.casefold()).split())


@dataclass(frozen=True)
class ShapesLanguage:
    """The language of shapes; a caption is complete, and a picture holds up to four objects."""

    most: int = MOST_OBJECTS
    complex_words: int = 0

    @property
    def identity(self) -> dict[str, Any]:
        """The language alone."""
        return {"manner": "shapes"}

    def lacks(self, aspect: str, caption: str) -> str | None:
        """Whether it is not of this language, or its scene has no room for the aspect.

        Example:
            >>> ShapesLanguage().lacks("negation", "a small red star on a sandy background")
            'its scene has one thing, and none can go'
        """
        try:
            scene = _scene(caption)
        except RecordError as error:
            return str(error).partition(" Fix: ")[0].partition(": ")[2] or str(error)
        if aspect == "negation" and len(scene.things) == 1:
            return "its scene has one thing, and none can go"
        full = sum(len(thing.cells) for thing in scene.things) == MOST_OBJECTS
        if aspect == "addition" and (full or len(scene.things) == MOST_THINGS):
            return "its scene is full"
        return None

    def edit_fault(self, aspect: str, caption: str, request: str, target: str) -> EditFault | None:
        """Whether the scenes differ in another aspect, or the request does not lead to the target.

        Example:
            >>> before, after = (f"a small red star on a {one} background" for one in ("sandy", "snowy"))
            >>> ShapesLanguage().edit_fault("background", before, "a snowy background", after)
            >>> ShapesLanguage().edit_fault("addition", before, "a snowy background", after).code
            'other_aspect'
        """
        try:
            before, after = _scene(caption), _scene(target)
            leads_there = merge(before, request).meaning == after.meaning
        except RecordError as error:
            return EditFault("no_scene", str(error).partition(" Fix: ")[0])
        kinds = aspects(changes(before, after, viewpoint=True))
        if aspect not in kinds or (aspect != COMPLEX and kinds != [aspect]):
            return EditFault("other_aspect", f"its change is {', '.join(kinds) or 'none'}")
        return None if leads_there else EditFault("not_requested", "the request does not lead to the target")

    def subjects(self, captions: Iterable[str]) -> list[str]:
        """The first thing of each caption on its background, in singular."""
        found: dict[str, None] = {}
        for caption in captions:
            try:
                scene = _scene(caption)
            except RecordError:
                continue
            look = scene.things[0].look
            found[f"{look.size} {look.texture} {look.colour} {look.shape} {scene.background}"] = None
        return list(found)

    def counted(self, subject: str, number: int) -> str:
        """A scene of so many equal objects.

        Example:
            >>> ShapesLanguage().counted("small plain red cross sandy", 3)
            'three small red crosses on a sandy background'
        """
        size, texture, colour, shape, background = subject.split()
        noun = shape if number == 1 else plural(shape)
        count = "a" if number == 1 else NUMBERS[number]
        texture = "" if texture == "plain" else f"{texture} "
        return describe(_scene(f"{count} {size} {texture}{colour} {noun} on a {background} background"))

    def number_request(self, subject: str, before: int, after: int, draws: Draws) -> str:
        """What the target has, as all relative captions of shapes."""
        return difference(_scene(self.counted(subject, before)), _scene(self.counted(subject, after)))

    def meaning(self, caption: str) -> Hashable:
        """The scene's meaning and viewpoint, or the words where it has no scene."""
        try:
            scene = _scene(caption)
        except RecordError:
            return caption
        return scene.meaning, scene.viewpoint


def _scene(caption: str) -> Scene:
    return scenes_of([caption], 0)[0]


@functools.cache
def _english() -> dict[str, Any]:
    found: dict[str, Any] = package_yaml("cir_datasets", "construction/fisd/english.yaml")
    return found


def default_nouns() -> tuple[tuple[str, str], ...]:
    """COCO's categories that can be counted, singular and plural.

    Example:
        >>> dict(default_nouns())["bus"], dict(default_nouns())["knife"]
        ('buses', 'knives')
    """
    return _pairs(_english()["nouns"], "english.yaml")


def read_nouns(path: str | Path) -> tuple[tuple[str, str], ...]:
    """Nouns out of a file: one a line, and where its plural is not regular a colon and the plural.

    Raises:
        ConstructionError: it cannot be read, holds no noun, or one twice.
    """
    file = Path(path).expanduser()
    lines = read_text(file, ConstructionError).splitlines()
    return _pairs([line for line in lines if line.strip()], str(file))


def _pairs(lines: Sequence[str], where: str) -> tuple[tuple[str, str], ...]:
    pairs: list[tuple[str, str]] = []
    for line in lines:
        noun, _, many = (part.strip() for part in line.partition(":"))
        if not noun or noun in dict(pairs):
            problem = f"it holds {noun!r} twice" if noun else f"{line!r} names no noun"
            raise ConstructionError(f"{where}: {problem}. Fix: write `mouse: mice`, each noun once.")
        pairs.append((noun, many or english_plural(noun)))
    if not pairs:
        raise ConstructionError(f"{where}: it holds no noun. Fix: write one a line.")
    return tuple(pairs)


def english_plural(noun: str) -> str:
    """A regular plural.

    Example:
        >>> [english_plural(noun) for noun in ("dog", "bus", "sandwich", "cherry", "boy")]
        ['dogs', 'buses', 'sandwiches', 'cherries', 'boys']
    """
    if noun.endswith(("s", "x", "z", "ch", "sh")):
        return f"{noun}es"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}s"
