"""Plots as SVG text: curves by turn, bars by aspect, best values over time, distributions of ranks.

Pure functions from numbers to text. Nothing in a plot is said by colour alone: lines have dashes and markers,
bars a letter and their number. Colours are the style sheet's (Okabe and Ito's palette, by the classes `s1` to
`s7`), text has the page's colour, and no style stands in an attribute `style`, which the pages' policy
forbids. Coordinates are rounded, so that the same numbers give the same text on every machine.
"""

from __future__ import annotations

import hashlib
import math
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leaderboard.inspection.numbers import TurnPoint

_WIDTH = 760
_LEFT, _RIGHT, _BOTTOM = 52, 16, 46
_PLOT_HEIGHT = 260
_LINE = 20
"""Height of a line of text."""
_LETTERS = {"narrow": 5.4, "small": 8.4, "large": 10.5, "wide": 13.5}
"""Widths of letters of 13 pixels, as far as they can be known here: the widest of common fonts."""
_NARROW, _WIDE = frozenset("fijlrtI.,:;!|'()[]/- "), frozenset("MWmw@%&…")
_BESIDE = 270.0
"""Width of a name in a legend where names share lines; where one is longer, each may take a line."""
_ABOVE = 220.0
"""Width of a name above its point."""
_FEW = 3
"""So many names may have a line each."""
_DASHES = ("", "7 4", "2 4", "9 3 2 3", "12 5", "4 2", "1 3")
_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25)
_MOST_STEPS = 6
_MARK = 72.0
"""Width of a mark in a legend with its letter, and the gap behind the name."""
MOST_SERIES = 7
"""Methods that a plot can tell apart."""


@dataclass(frozen=True)
class Dated:
    """A value of some moment.

    Args:
        name: of its method.
        year: the moment, such as 2024.5 for the middle of 2024.
        value: a fraction.
        words: what is said where the mouse rests on it.
    """

    name: str
    year: float
    value: float
    words: str


Bars = tuple[str, Sequence[float | None]]
"""A method, and its numbers by group."""
Trend = tuple[str, Sequence[Dated]]
"""What values over time are, of which the best so far make a line."""


def hits_svg(curves: Sequence[tuple[str, Sequence[TurnPoint]]], metric: str, turn: str) -> str:
    """A metric by turn of one method or several, with their 95 % intervals as bands.

    Args:
        curves: names of one to seven methods, and the numbers by turn.
        metric: what it is called, `Hits@10`.
        turn: what a step is called, `turn` or `round`.

    Returns:
        An `svg` element.

    Example:
        >>> from leaderboard.inspection.numbers import TurnPoint
        >>> points = TurnPoint(1, 0.25, 0.2, 0.3), TurnPoint(2, 0.5, 0.4, 0.6)
        >>> svg = hits_svg([("A < B", points)], "Hits@10", "turn")
        >>> "A &lt; B" in svg, "style=" in svg
        (True, False)
    """
    names = [name for name, _ in curves]
    turns = sorted({each.turn for _, points in curves for each in points})
    most = max(max(each.value, each.high) for _, points in curves for each in points)
    frame = _Frame(_legend_height(names), (turns[0] - 0.25, turns[-1] + 0.25), most)
    parts = [*_legend(names), *frame.grid(f"{metric}, %")]
    parts += [text for each in turns for text in frame.tick(each, f"{each}")]
    parts.append(frame.below(turn))

    def line(points: Iterable[TurnPoint], end: str) -> list[str]:
        return [f"{_n(frame.x(each.turn))},{_n(frame.y(getattr(each, end)))}" for each in points]

    for number, (name, points) in enumerate(curves):
        band = " ".join([*line(points, "high"), *line(reversed(points), "low")])
        inner = [
            f'<polygon points="{band}" fill="currentColor" opacity="0.13"/>',
            (
                f'<polyline points="{" ".join(line(points, "value"))}" fill="none" stroke="currentColor" '
                f'stroke-width="2.2"{_dash(number)}/>'
            ),
        ]
        for each in points:
            ends = f"[{_percent(each.low)}, {_percent(each.high)}]"
            words = f"{name}, {each.turn}: {_percent(each.value)} {ends}"
            inner.append(_marker(number, frame.x(each.turn), frame.y(each.value), words))
        parts.append(_series(number, inner))
    about = "Bands are 95 % intervals. The table below has the numbers."
    return _svg(parts, frame.height, f"{metric} by {turn}", about)


def bars_svg(groups: Sequence[str], bars: Sequence[Bars], *, title: str, description: str) -> str:
    """Bars by group, the methods of a group below each other.

    Args:
        groups: names of the groups, from above.
        bars: names of one to seven methods, each with a fraction a group, or None where it holds no query.
        title: what the plot shows, with the metric.
        description: what a reader who does not see it is told.

    Returns:
        An `svg` element.

    Example:
        >>> svg = bars_svg(["Change", "All"], [("Sum", (0.5, None))], title="R@10", description="two")
        >>> "Sum, Change: 50.00" in svg, "Sum, All" in svg
        (True, False)
    """
    names = [name for name, _ in bars]
    top = _legend_height(names)
    left = min(240.0, 20 + max(map(_wide, groups), default=0.0))
    thick, gap = (18, 12) if len(bars) < 3 else (14, 12)
    rows = len(bars) * thick + gap
    height = top + len(groups) * rows + _BOTTOM
    most = _ceiling(max((value for _, values in bars for value in values if value is not None), default=0.0))
    # Behind the longest bar there is room for its letter and number.
    wide = _WIDTH - left - 84
    parts = list(_legend(names, letters=True))
    for mark in _ticks(most):
        x = left + wide * mark / most
        parts.append(_rule(x, top, x, height - _BOTTOM))
        parts.append(_words(x, height - _BOTTOM + 18, _axis(mark), "middle"))
    parts.append(_words(left + wide / 2, height - 8, "per cent", "middle"))
    for place, group in enumerate(groups):
        above = top + place * rows + gap / 2
        parts.append(_words(left - 8, above + len(bars) * thick / 2 + 4.5, _cut(group, left - 12), "end"))
        for number, (name, values) in enumerate(bars):
            y = above + number * thick
            value = values[place]
            said = "-" if value is None else _percent(value)
            inner = []
            length = 0.0
            if value is not None:
                length = wide * value / most
                inner.append(
                    f'<rect x="{_n(left)}" y="{_n(y + 1)}" width="{_n(length)}" height="{thick - 3}" '
                    f'fill="currentColor"><title>{escape(f"{name}, {group}: {said}")}</title></rect>'
                )
            parts.append(_series(number, inner))
            letter = f"{_letter(number)} " if len(bars) > 1 else ""
            parts.append(_words(left + length + 6, y + thick / 2 + 4, f"{letter}{said}", "start", 12))
    return _svg(parts, height, title, description)


def trend_svg(trends: Sequence[Trend], *, title: str, description: str, y_label: str) -> str:
    """Values over the years, with a line through the best so far.

    Args:
        trends: names, such as `Entries of this board`, each with one value or more.
        title: what the plot shows.
        description: what a reader who does not see it is told.
        y_label: of the axis on the left, which shows per cent.

    Returns:
        An `svg` element.

    Example:
        >>> one = ("Published", (Dated("TIRG", 2019, 0.2, "TIRG, 2019: 20.00"),))
        >>> "TIRG, 2019: 20.00" in trend_svg([one], title="R@10", description="one", y_label="R@10, %")
        True
    """
    values = [value for _, dated in trends for value in dated]
    first, last = (math.floor(end([each.year for each in values])) for end in (min, max))
    names = [name for name, _ in trends]
    frame = _Frame(_legend_height(names) + 10, (first, last + 1), max(each.value for each in values))
    parts = [*_legend(names), *frame.grid(y_label)]
    every = max(1, math.ceil((last - first + 1) / 12))
    parts += [text for year in range(first, last + 1, every) for text in frame.tick(year + 0.5, str(year))]
    parts.append(frame.below("year"))
    for number, (_, dated) in enumerate(trends):
        best = _best_so_far(dated)
        # Steps: what was best stays so until something is better.
        line = [(frame.x(best[0].year), frame.y(best[0].value))]
        for each in best[1:]:
            line += [(frame.x(each.year), line[-1][1]), (frame.x(each.year), frame.y(each.value))]
        line.append((frame.x(last + 1), line[-1][1]))
        points = " ".join(f"{_n(x)},{_n(y)}" for x, y in line)
        inner = [
            f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="2"{_dash(number)}/>'
        ]
        inner += [_marker(number, frame.x(each.year), frame.y(each.value), each.words) for each in dated]
        parts.append(_series(number, inner))
    parts += _named(frame, [each for _, dated in trends for each in _best_so_far(dated)])
    return _svg(parts, frame.height, title, description)


def _named(frame: _Frame, best: Sequence[Dated]) -> Iterator[str]:
    """Names above their points, the highest first; where two would overlap, the lower has none."""
    taken: list[tuple[float, float, float]] = []
    for each in sorted(best, key=lambda one: (-one.value, -one.year)):
        words = _cut(each.name, _ABOVE)
        half = _wide(words) / 2
        x = min(max(frame.x(each.year), _LEFT + half), _WIDTH - _RIGHT - half)
        y = frame.y(each.value) - 9
        if all(abs(x - at) >= half + wide or abs(y - height) >= _LINE for at, wide, height in taken):
            taken.append((x, half, y))
            yield _words(x, y, words, "middle", 12, title=each.name)


def histogram_svg(
    bins: Sequence[tuple[str, float, str]],
    *,
    title: str,
    description: str,
    x_label: str,
    counted: str = "queries",
) -> str:
    """Shares of ranges, such as of the ranks of right answers.

    Args:
        bins: from the left a range's name, its share, and its count in words.
        title: what the plot shows.
        description: what a reader who does not see it is told.
        x_label: of the axis below.
        counted: what the shares are of, in the plural.

    Returns:
        An `svg` element.

    Example:
        >>> bins = [("1", 0.25, "75 of 300"), ("not listed", 0.75, "225 of 300")]
        >>> histogram_svg(bins, title="Ranks", description="...", x_label="rank").count("<rect")
        2
    """
    frame = _Frame(14, (0.0, float(len(bins))), max((share for _, share, _ in bins), default=0.0))
    parts = [*frame.grid(f"{counted}, %")]
    for place, (label, share, words) in enumerate(bins):
        x, width = frame.x(place + 0.14), frame.x(place + 0.86) - frame.x(place + 0.14)
        y = frame.y(share)
        bar = (
            f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(frame.base - y)}" '
            f'fill="currentColor"><title>{escape(f"{label}: {words}")}</title></rect>'
        )
        parts.append(_series(0, [bar]))
        parts.append(_words(x + width / 2, y - 5, _percent(share), "middle", 12))
        parts.append(_words(x + width / 2, frame.base + 18, label, "middle"))
    parts.append(frame.below(x_label))
    return _svg(parts, frame.height, title, description)


class _Frame:
    """Axes: numbers to places.

    Args:
        top: where the plot begins.
        span: first and last x.
        most: largest value.
    """

    def __init__(self, top: float, span: tuple[float, float], most: float) -> None:
        self.top, self._span, self.most = top + 8, span, _ceiling(most)
        self.base = self.top + _PLOT_HEIGHT
        self.height = self.base + _BOTTOM

    def x(self, value: float) -> float:
        first, last = self._span
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (value - first) / (last - first)

    def y(self, value: float) -> float:
        return self.base - _PLOT_HEIGHT * value / self.most

    def grid(self, label: str) -> Iterator[str]:
        for value in _ticks(self.most):
            y = self.y(value)
            yield _rule(_LEFT, y, _WIDTH - _RIGHT, y)
            yield _words(_LEFT - 8, y + 4.5, _axis(value), "end")
        middle = (self.top + self.base) / 2
        yield (
            f'<text x="13" y="{_n(middle)}" font-size="13" text-anchor="middle" fill="currentColor" '
            f'transform="rotate(-90 13 {_n(middle)})">{escape(label)}</text>'
        )

    def tick(self, value: float, label: str) -> Iterator[str]:
        yield _words(self.x(value), self.base + 18, label, "middle")

    def below(self, label: str) -> str:
        return _words((_LEFT + _WIDTH - _RIGHT) / 2, self.height - 8, label, "middle")


def _svg(parts: Iterable[str], height: float, title: str, description: str) -> str:
    inner = "".join(parts)
    # The page may hold several plots, and each names its own words.
    name = f"p{hashlib.sha256(f'{title}{description}{inner}'.encode()).hexdigest()[:10]}"
    return (
        f'<svg class="plot" viewBox="0 0 {_WIDTH} {_n(height)}" width="{_WIDTH}" height="{_n(height)}" '
        f'role="img" aria-labelledby="{name} {name}d"><title id="{name}">{escape(title)}</title>'
        f'<desc id="{name}d">{escape(description)}</desc>{inner}</svg>'
    )


def _series(number: int, inner: Iterable[str]) -> str:
    return f'<g class="s{number % MOST_SERIES + 1}">{"".join(inner)}</g>'


def _dash(number: int) -> str:
    dash = _DASHES[number % len(_DASHES)]
    return f' stroke-dasharray="{dash}"' if dash else ""


def _marker(number: int, x: float, y: float, words: str = "") -> str:
    shapes = (
        f'<circle cx="{_n(x)}" cy="{_n(y)}" r="4.5"',
        f'<rect x="{_n(x - 4)}" y="{_n(y - 4)}" width="8" height="8"',
        f'<path d="M{_n(x)} {_n(y - 5.5)}l5.5 9.5h-11z"',
        f'<path d="M{_n(x)} {_n(y - 6)}l6 6l-6 6l-6 -6z"',
        f'<path d="M{_n(x)} {_n(y + 5.5)}l5.5 -9.5h-11z"',
        f'<path d="M{_n(x - 5)} {_n(y - 1.5)}h3.5v-3.5h3v3.5h3.5v3h-3.5v3.5h-3v-3.5h-3.5z"',
        f'<rect x="{_n(x - 5.5)}" y="{_n(y - 2.5)}" width="11" height="5"',
    )
    said = f"<title>{escape(words)}</title>" if words else ""
    shape = shapes[number % len(shapes)]
    return f'{shape} fill="currentColor">{said}</{shape[1:].partition(" ")[0]}>'


def _legend_rows(names: Sequence[str]) -> list[tuple[float, float]]:
    """Where each name's mark stands, lines from above."""
    x, y, places = float(_LEFT), 14.0, []
    for name in names:
        width = _MARK + _wide(_cut(name, _most(names)))
        if x > _LEFT and x + width > _WIDTH - _RIGHT:
            x, y = float(_LEFT), y + _LINE
        places.append((x, y))
        x += width
    return places


def _legend_height(names: Sequence[str]) -> float:
    return _legend_rows(names)[-1][1] + 14


def _legend(names: Sequence[str], *, letters: bool = False) -> Iterator[str]:
    for number, (name, (x, y)) in enumerate(zip(names, _legend_rows(names), strict=True)):
        if letters:
            mark = f'<rect x="{_n(x)}" y="{_n(y - 6)}" width="24" height="12" fill="currentColor"/>'
        else:
            line = f'<path d="M{_n(x)} {_n(y)}h24" fill="none" stroke="currentColor"'
            line += f' stroke-width="2.2"{_dash(number)}/>'
            mark = line + _marker(number, x + 12, y)
        yield _series(number, [mark])
        letter = f"{_letter(number)} " if letters and len(names) > 1 else ""
        yield _words(x + 30, y + 4.5, f"{letter}{_cut(name, _most(names))}", "start", title=name)


def _letter(number: int) -> str:
    return "ABCDEFG"[number % MOST_SERIES]


def _most(names: Sequence[str]) -> float:
    """How wide a name in a legend may be."""
    has_lines = len(names) <= _FEW or any(_wide(name) > _BESIDE for name in names)
    return _WIDTH - _LEFT - _RIGHT - _MARK if has_lines else _BESIDE


def _wide(words: str) -> float:
    """How wide words are drawn, at most."""
    return sum(map(_letter_width, words))


def _letter_width(letter: str) -> float:
    if letter in _WIDE or unicodedata.east_asian_width(letter) in "WF":
        return _LETTERS["wide"]
    if letter in _NARROW:
        return _LETTERS["narrow"]
    return _LETTERS["large" if letter.isupper() else "small"]


def _cut(name: str, width: float) -> str:
    """A name that is too long, without its middle: names of one method often differ at their end.

    Example:
        >>> _cut("Composed", 100.0), _cut("W" * 6 + "I" * 6, 100.0)
        ('Composed', 'WWWW…IIIIII')
    """
    if _wide(name) <= width:
        return name
    left = width - _LETTERS["wide"]
    ends = accumulate(map(_letter_width, reversed(name)))
    last = max(1, sum(end <= left / 2 for end in ends))
    left -= _wide(name[-last:])
    first = max(1, sum(end <= left for end in accumulate(map(_letter_width, name))))
    return f"{name[:first].rstrip()}…{name[-last:].lstrip()}"


def _words(x: float, y: float, words: str, anchor: str, size: int = 13, title: str = "") -> str:
    return (
        f'<text x="{_n(x)}" y="{_n(y)}" font-size="{size}" text-anchor="{anchor}" fill="currentColor">'
        f"{f'<title>{escape(title)}</title>' if title and title not in words else ''}{escape(words)}</text>"
    )


def _rule(x: float, y: float, to_x: float, to_y: float) -> str:
    ends = f"M{_n(x)} {_n(y)}L{_n(to_x)} {_n(to_y)}"
    return f'<path d="{ends}" stroke="currentColor" opacity="0.22"/>'


def _step(most: float) -> float:
    return next((step for step in _STEPS if most / step <= _MOST_STEPS), _STEPS[-1])


def _ceiling(most: float) -> float:
    """The end of an axis: a whole number of steps, above the largest value."""
    step = _step(max(most, _STEPS[0]))
    return min(1.0, step * max(1, math.ceil(round(most / step, 9)))) if most <= 1 else most


def _ticks(most: float) -> list[float]:
    step = _step(most)
    return [number * step for number in range(int(round(most / step, 9)) + 1)]


def _best_so_far(values: Sequence[Dated]) -> list[Dated]:
    """Those that were better than everything of an earlier or the same moment."""
    best: list[Dated] = []
    for each in sorted(values, key=lambda one: (one.year, -one.value, one.name)):
        if not best or each.value > best[-1].value:
            best.append(each)
    return best


def _percent(value: float) -> str:
    return f"{100 * value:.2f}"


def _axis(value: float) -> str:
    return f"{round(100 * value, 6):g}"


def _n(value: float) -> str:
    """A coordinate: two digits behind the point, where they are not zero.

    Example:
        >>> _n(12.0), _n(3.14159), _n(-0.001)
        ('12', '3.14', '0')
    """
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
