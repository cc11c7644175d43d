"""The scene oracle: what shapes' own grammar answers where other benchmarks need a model.

Of a picture it is given the scene graph; of everything else only the words that a model would get too:
`merge`, `difference` and `judge` read captions in the language of shapes (`cir_datasets.shapes.read`) and
know nothing of the pictures behind them. A merge is what a reader makes of a caption and a change, not a look
at the target.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from cir_datasets.errors import RecordError
from cir_datasets.shapes import Scene, Thing, describe, read, scene
from cir_datasets.shapes import difference as describe_difference
from cir_datasets.shapes.captions import ADJECTIVES, VIEWS, noun_phrase
from cir_datasets.shapes.merging import Mention, Reading
from cir_datasets.shapes.world import CELLS, Look
from cir_metrics.errors import UnknownNameError
from submissions.errors import LanguageError
from submissions.language.asking import paired_up
from submissions.language.protocol import LanguageIdentity, Picture

YES, NO = "yes", "no"
_EXAMPLES = 5
_In = TypeVar("_In")


class OracleLanguage:
    """Answers about shapes out of scene graphs and grammar; the same on every machine, and free.

    Example:
        >>> oracle = OracleLanguage()
        >>> oracle.merge(["two small red circles on a sandy background"], ["a large circle and no star"])
        ['a large red circle on a sandy background']
    """

    @property
    def identity(self) -> LanguageIdentity:
        """What the answers depend on."""
        return LanguageIdentity("oracle", "oracle", settings="scene graphs of shapes")

    def caption(self, images: Sequence[Picture]) -> list[str]:
        """The complete description of each scene, without positions; the picture is not opened.

        Raises:
            LanguageError: an id is none of shapes.
        """
        return _each("caption", images, lambda image: describe(scene(image.id)), lambda image: image.id)

    def merge(self, captions: Sequence[str], changes: Sequence[str]) -> list[str]:
        """What each caption says once its change is true; what the change does not mention stays.

        "no X" takes away, "also X" adds, and any other mention alters the thing of that shape, else the one
        of that colour. A thing that the caption does not name is added.

        Raises:
            LanguageError: a caption or a change is not in the language of shapes.
        """
        pairs = paired_up(captions, changes, "captions", "changes")
        return _each("merge", pairs, lambda pair: _said(_merged(_read(pair[0]), _read(pair[1]))), " | ".join)

    def difference(self, first: Sequence[str], second: Sequence[str]) -> list[str]:
        """What the second caption's scene has that the first one's lacks, as `cir_datasets.shapes` says it.

        Raises:
            LanguageError: a caption is not in the language of shapes, or leaves out the background, or a
                thing's size or colour.
        """
        pairs = paired_up(first, second, "first captions", "second captions")
        return _each("difference", pairs, _apart, " | ".join)

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


def _each(
    task: str, items: Sequence[_In], answer: Callable[[_In], str], about: Callable[[_In], str]
) -> list[str]:
    """The answer to each item, or one error that names all that have none."""
    answers: list[str | None] = []
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


def _read(caption: str) -> Reading:
    """What a caption says, a capital at its start and a full stop at its end aside."""
    return read(caption.strip().rstrip(".").lower())


def _merged(caption: Reading, change: Reading) -> Reading:
    absent = [mention for mention in change.mentions if mention.number == 0]
    left = [
        thing
        for thing in caption.mentions
        if thing.number and not any(_is_meant(thing, mention) for mention in absent)
    ]
    things = list(left)
    for mention in change.mentions:
        if mention.number == 0:
            continue
        place = None if mention.added else _place(left, mention)
        if place is None:
            things.append(mention._replace(added=False))
        else:
            things[place] = _altered(things[place], mention)
    return Reading(
        tuple(things), change.background or caption.background, change.viewpoint or caption.viewpoint
    )


def _is_meant(thing: Mention, mention: Mention) -> bool:
    return thing.shape == mention.shape and mention.colour in (None, thing.colour)


def _place(things: Sequence[Mention], mention: Mention) -> int | None:
    """Of the thing that is meant: the one of that shape, else the one of that colour."""
    shapes = [thing.shape for thing in things]
    if mention.shape in shapes:
        return shapes.index(mention.shape)
    colours = [thing.colour for thing in things]
    return colours.index(mention.colour) if mention.colour in colours and mention.colour else None


def _altered(thing: Mention, mention: Mention) -> Mention:
    cell = thing.cell if mention.cell is None else mention.cell
    return Mention(
        number=mention.number,
        size=mention.size or thing.size,
        texture=mention.texture or thing.texture,
        colour=mention.colour or thing.colour,
        shape=mention.shape,
        cell=cell if mention.number == 1 else None,
        added=False,
    )


def _said(reading: Reading) -> str:
    """A reading in words again, as `describe` says complete captions."""
    items = []
    for mention in reading.mentions:
        look = Look(
            mention.shape, mention.colour or "", mention.size or "", mention.texture or "", mention.number
        )
        words = [word for word in ADJECTIVES if getattr(look, word) not in ("", "plain")]
        items.append(noun_phrase(look, words, mention.cell))
    text = " and ".join(part for part in (", ".join(items[:-1]), *items[-1:]) if part)
    if reading.background is not None:
        article = "an" if reading.background[0] in "aeiou" else "a"
        ground = f"{article} {reading.background} background"
        text = f"{text} on {ground}" if text else ground
    view = None if reading.viewpoint in (None, "straight") else VIEWS[str(reading.viewpoint)]
    return ", ".join(filter(None, (text, view)))


def _apart(pair: tuple[str, str]) -> str:
    first, second = (_scene(caption) for caption in pair)
    return describe_difference(first, second, viewpoint=True)


def _scene(caption: str) -> Scene:
    """A scene of which the caption is true; things whose place is not named stand where there is room."""
    reading = _read(caption)
    mentions = [mention for mention in reading.mentions if mention.number]
    taken = {mention.cell for mention in mentions}
    free = [cell for cell in range(CELLS) if cell not in taken]
    things = []
    for mention in mentions:
        for word in ("colour", "size"):
            if getattr(mention, word) is None:
                raise RecordError(
                    f"caption {caption!r}: it does not say the {word} of the {mention.shape}. "
                    "Fix: compare complete captions."
                )
        known = () if mention.cell is None else (mention.cell,)
        more = mention.number - len(known)
        cells, free = (*known, *free[:more]), free[more:]
        things.append(
            Thing(mention.shape, str(mention.colour), str(mention.size), mention.texture or "plain", cells)
        )
    if reading.background is None:
        raise RecordError(
            f"caption {caption!r}: it does not say the background. Fix: compare complete captions."
        )
    return Scene(tuple(things), reading.background, reading.viewpoint or "straight")


def _meaning(reading: Reading) -> tuple[Counter[tuple[object, ...]], str | None]:
    looks: Counter[tuple[object, ...]] = Counter(
        (mention.shape, mention.colour, mention.size, mention.texture or "plain", mention.number)
        for mention in reading.mentions
        if mention.number
    )
    return looks, reading.background


def _is_same(item: Mapping[str, str]) -> bool:
    return _meaning(_read(item["first"])) == _meaning(_read(item["second"]))


def _does_fit(item: Mapping[str, str]) -> bool:
    caption, change, target = (_read(item[name]) for name in ("caption", "change", "target"))
    if change.viewpoint not in (None, target.viewpoint or "straight"):
        return False
    cells = {mention.shape: mention.cell for mention in target.mentions}
    moved = [mention for mention in change.mentions if mention.cell is not None]
    if any(cells.get(mention.shape) not in (None, mention.cell) for mention in moved):
        return False
    return _meaning(_merged(caption, change)) == _meaning(target)
