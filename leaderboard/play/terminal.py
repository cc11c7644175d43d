"""`cir play` in a terminal: pictures as coloured half blocks, words typed below them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from rich.color import Color
from rich.console import Console, Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from cir_metrics.errors import CallError
from cir_metrics.terminal import visible
from leaderboard.play.words import best_found, end_words, rank_words
from submissions.multiround.person import SHOWN, SKIPPED, PersonDialogue, WordsError
from submissions.rank_file.findings import ordinal

if TYPE_CHECKING:
    from PIL.Image import Image

    from submissions.multiround.person import Stage

SKIP, QUIT = "/skip", "/quit"
_LARGEST = 48
"""Columns of a large picture at most: one a pixel, and two pixels a line."""
_SMALLEST = 32
"""Columns that it has also where the window is so low that one must scroll."""
_OTHERS = 20
"""Lines below it and above it, about."""
_GAP = 3


def coloured_console() -> Console:
    """The terminal, on standard error: words are not data.

    Raises:
        CallError: it shows no colours, so that there would be no pictures.
    """
    console = Console(stderr=True)
    if console.color_system is None:
        raise CallError(
            "this terminal shows no colours, and pictures are drawn with them. "
            "Fix: add --web for a page, or set FORCE_COLOR=1 where it does show them."
        )
    return console


def play_in_terminal(dialogue: PersonDialogue, console: Console) -> None:
    """Play session after session, until all have ended or the person leaves."""
    while (stage := dialogue.current()) is not None:
        console.print(_screen(dialogue, stage, console))
        after = _answered(dialogue, console)
        if after is None:
            return
        if after.exchange is None:
            console.print(_ended(dialogue, after, console))


def _answered(dialogue: PersonDialogue, console: Console) -> Stage | None:
    """The stage after the person's words, for which they are asked until they can be taken; None to leave."""
    while True:
        try:
            typed = console.input(Text(f"What is to change? ({SKIP}, {QUIT}) ", style="bold")).strip()
        except EOFError:
            return None
        if typed == QUIT:
            return None
        if typed.startswith("/") and typed != SKIP:
            console.print(Text(f"{visible(typed[:20])} is neither {SKIP} nor {QUIT}.", style="red"))
            continue
        try:
            return dialogue.say(SKIPPED if typed == SKIP else typed)
        except WordsError as error:
            console.print(Text(visible(str(error)), style="red"))


def _screen(dialogue: PersonDialogue, stage: Stage, console: Console) -> RenderableType:
    """A session that waits for words."""
    exchange = stage.exchange
    found = "" if exchange is None else exchange.candidate
    target = "" if exchange is None else exchange.target
    number = len(stage.rounds) + 1
    head = (
        f"\nSession {stage.number} of {len(dialogue)}, round {number} of {dialogue.settings.max_rounds}"
        f" ({visible(stage.session)})"
    )
    return Group(
        Text(head, style="bold"),
        _side_by_side(
            dialogue, target, found, console, "What was found" if stage.rounds else "What is there"
        ),
        *_so_far(dialogue, stage, console),
    )


def _ended(dialogue: PersonDialogue, stage: Stage, console: Console) -> RenderableType:
    """A session that has ended."""
    last = stage.rounds[-1]
    return Group(
        _side_by_side(dialogue, last.target, best_found(last), console, "What was found"),
        *_so_far(dialogue, stage, console),
        Text(end_words(stage.rounds, dialogue.settings.k), style="bold"),
    )


def _side_by_side(
    dialogue: PersonDialogue, target: str, found: str, console: Console, label: str
) -> RenderableType:
    side = max(8, min(_LARGEST, (console.width - _GAP) // 2, max(_SMALLEST, 2 * (console.height - _OTHERS))))
    grid = Table.grid(padding=(0, _GAP))
    grid.add_row(Text("What you want", style="bold"), Text(label, style="bold"))
    grid.add_row(_drawn(dialogue, target, side), _drawn(dialogue, found, side))
    return grid


def _so_far(dialogue: PersonDialogue, stage: Stage, console: Console) -> list[RenderableType]:
    """The best images of the last round, the words of all, and how the rank moved."""
    if not stage.rounds:
        return []
    side = max(6, min(_LARGEST // 4, (console.width - _GAP * SHOWN) // SHOWN))
    best = Table.grid(padding=(0, _GAP, 0, 0))
    best.add_row(*(_drawn(dialogue, image, side) for image in stage.rounds[-1].top[:SHOWN]))
    lines: list[RenderableType] = [Text("Best of the last round"), best, Text("Words so far")]
    for each in stage.rounds:
        words = visible(each.caption) or "(skipped)"
        lines.append(Text(f"  {each.round}. {words} ({ordinal(each.rank)})"))
    lines.append(Text(f"Rank: {rank_words(stage.rounds, len(dialogue.gallery.ids))}", style="bold"))
    return lines


def _drawn(dialogue: PersonDialogue, image: str, side: int) -> Text:
    """A picture of so many columns at most; each character shows two pixels, one above the other."""
    opened = dialogue.picture(image)
    return Text("(no picture)") if opened is None else half_blocks(opened, side)


def half_blocks(picture: Image, side: int) -> Text:
    """A picture as text.

    Args:
        picture: RGB.
        side: columns, and twice the lines, at most.

    Example:
        >>> from PIL import Image
        >>> text = half_blocks(Image.new("RGB", (96, 96), "red"), 4)
        >>> text.plain, str(text.spans[0].style)
        ('▀▀▀▀\\n▀▀▀▀', '#ff0000 on #ff0000')
    """
    small = picture.copy()
    small.thumbnail((side, side))
    # An odd line has no partner.
    small = small.crop((0, 0, small.width, max(2, small.height - small.height % 2)))
    text = Text()
    pixels = np.asarray(small).tolist()
    for line in range(0, small.height, 2):
        for column in range(small.width):
            upper, lower = (Color.from_rgb(*pixels[line + below][column]) for below in (0, 1))
            text.append("▀", Style(color=upper, bgcolor=lower))
        if line + 2 < small.height:
            text.append("\n")
    return text
