"""Plots: SVG that any parser reads, with every number in it, without styles of their own."""

from __future__ import annotations

import re
from collections.abc import Callable
from xml.etree import ElementTree

import pytest

from leaderboard.inspection.numbers import TurnPoint
from leaderboard.pages.plots import MOST_SERIES, Dated, bars_svg, histogram_svg, hits_svg, trend_svg

HOSTILE = '<script>alert(1)</script> & "quoted"'
SVG = "{http://www.w3.org/2000/svg}"


def curves(names: list[str]) -> str:
    points = [TurnPoint(turn, turn / 10, turn / 10 - 0.05, turn / 10 + 0.05) for turn in (1, 2, 3)]
    return hits_svg([(name, points) for name in names], "Hits@10", HOSTILE)


def bars(names: list[str]) -> str:
    found = [(name, (0.25, None, 1 / 3)) for name in names]
    return bars_svg(["Change", HOSTILE, "Negation"], found, title=HOSTILE, description=HOSTILE)


def trends(names: list[str]) -> str:
    values = ((2019, 0.2), (2021.5, 0.4), (2023, 0.3))
    found = [
        (name, [Dated(name, year, value, f"{name}, {year}") for year, value in values]) for name in names
    ]
    return trend_svg(found, title=HOSTILE, description=HOSTILE, y_label="R@10, %")


def histogram(names: list[str]) -> str:
    bins = [(name, 1 / len(names), "1") for name in names]
    return histogram_svg(bins, title=HOSTILE, description=HOSTILE, x_label="rank")


EVERY = pytest.mark.parametrize(
    "draw", [curves, bars, trends, histogram], ids=["curves", "bars", "trends", "histogram"]
)
Draw = Callable[[list[str]], str]


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))


@EVERY
def test_a_plot_is_well_formed_named_and_without_styles(draw: Draw) -> None:
    svg = draw([HOSTILE, "Other"])
    root = parsed(svg)
    assert root.get("role") == "img"
    title, described = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert HOSTILE in (title.text or "")
    assert described.text
    assert (root.get("aria-labelledby") or "").split() == [title.get("id"), described.get("id")]
    tags = {each.tag.removeprefix(SVG) for each in root.iter()}
    known = {"svg", "title", "desc", "g", "path", "rect", "circle", "polyline", "polygon", "text"}
    assert tags <= known
    names = {name for each in root.iter() for name in each.attrib}
    assert not [name for name in names if name == "style" or name.startswith("on") or "href" in name]


@EVERY
def test_coordinates_are_rounded_and_within_the_picture(draw: Draw) -> None:
    root = parsed(draw(["a", "b", "c"]))
    places = " ".join(value for each in root.iter() for value in each.attrib.values())
    assert not re.search(r"\d\.\d{3}", places)
    _, _, width, height = map(float, (root.get("viewBox") or "").split())
    for text in root.iter(f"{SVG}text"):
        assert 0 <= float(text.get("x") or 0) <= width
        assert 0 <= float(text.get("y") or 0) <= height


def test_no_two_methods_look_alike_without_colours() -> None:
    names = [f"Method {number}" for number in range(MOST_SERIES)]
    root = parsed(curves(names))
    groups = [each for each in root.iter(f"{SVG}g") if each.find(f"{SVG}polyline") is not None]
    assert [each.get("class") for each in groups] == [f"s{number}" for number in range(1, MOST_SERIES + 1)]
    dashes = [each.find(f"{SVG}polyline").get("stroke-dasharray") for each in groups]  # type: ignore[union-attr]
    assert len(set(dashes)) == MOST_SERIES
    bar = bars(names[:3])
    assert all(f"{letter} 25.00" in bar for letter in "ABC")


def said_by(text: ElementTree.Element) -> str:
    """What a text shows: its title is shown by the mouse alone."""
    return "".join(part for part in (text.text, *(one.tail for one in text)) if part)


@pytest.mark.parametrize("letter", ["W", "m", "字", "n", "i", "A"])
@pytest.mark.parametrize("count", [1, 3, 4, MOST_SERIES])
@pytest.mark.parametrize("draw", [curves, bars])
def test_names_of_80_letters_stand_beside_each_other(
    draw: Callable[[list[str]], str], count: int, letter: str
) -> None:
    """A letter of 13 pixels is at most as wide as that of DejaVu Sans, in which W has 12.9 and n 8.3."""
    width = {"W": 12.9, "m": 12.7, "字": 13.0, "n": 8.3, "i": 3.7, "A": 8.9}[letter]
    root = ElementTree.fromstring(draw([letter * 80] * count))
    words = [text for text in root.iter() if text.tag.endswith("text") and said_by(text).count(letter) > 3]
    assert len(words) == count
    drawn = []
    for text in words:
        said = said_by(text)
        assert f"{letter}…{letter}" in said or said.count(letter) == 80
        x, wide = float(text.attrib["x"]), width * said.count(letter) + 13 * (len(said) - said.count(letter))
        assert x + wide <= 760
        drawn.append((float(text.attrib["y"]), x - 30, x + wide))
    for one, (y, _, end) in enumerate(drawn):
        assert all(other_y != y or start >= end for other_y, start, _ in drawn[one + 1 :])


def test_the_best_so_far_are_named_where_there_is_room() -> None:
    found = [("Old", 2020, 0.2), ("Worse", 2020.5, 0.1), ("New", 2022, 0.4), ("Newer", 2022.1, 0.41)]
    values = tuple(Dated(name, year, value, f"{name}: {value}") for name, year, value in found)
    root = ElementTree.fromstring(
        trend_svg([("Published", values)], title="t", description="d", y_label="R@10, %")
    )
    named = {said_by(text) for text in root.iter() if text.tag.endswith("text")}
    assert named & {name for name, _, _ in found} == {"Old", "Newer"}


def test_few_names_stand_whole() -> None:
    name = "Published results of the test split (cirr/test1), as reported"
    assert f">{name}</text>" in curves([name, "Entries of this board"])


def test_the_numbers_stand_where_they_belong() -> None:
    svg = hits_svg([("One", (TurnPoint(1, 0.0, 0.0, 0.1), TurnPoint(2, 0.5, 0.4, 0.5)))], "Hits@10", "turn")
    (line,) = parsed(svg).iter(f"{SVG}polyline")
    (_, low), (_, high) = (map(float, pair.split(",")) for pair in (line.get("points") or "").split())
    labels = {each.text: float(each.get("y") or 0) - 4.5 for each in parsed(svg).iter(f"{SVG}text")}
    assert (low, high) == (labels["0"], labels["50"])
    assert "One, 2: 50.00" in svg
    assert "[15.00, 25.00]" in curves(["a"])


def test_a_value_that_is_not_there_is_no_bar() -> None:
    root = parsed(bars(["a"]))
    drawn = [each for each in root.iter(f"{SVG}rect") if each.find(f"{SVG}title") is not None]
    assert [each.find(f"{SVG}title").text for each in drawn] == ["a, Change: 25.00", "a, Negation: 33.33"]  # type: ignore[union-attr]
    widths = [float(each.get("width") or 0) for each in drawn]
    assert widths[1] / widths[0] == pytest.approx(4 / 3, abs=0.001)


def test_the_best_so_far_makes_the_line() -> None:
    (line,) = parsed(trends(["a"])).iter(f"{SVG}polyline")
    heights = [float(pair.split(",")[1]) for pair in (line.get("points") or "").split()]
    assert heights == sorted(heights, reverse=True)
    assert len(set(heights)) == 2  # 2023 is not better than 2021


@pytest.mark.parametrize("most", [0.0, 0.004, 0.05, 0.31, 0.999, 1.0])
def test_an_axis_ends_above_the_largest_value(most: float) -> None:
    svg = histogram_svg([("a", most, "x")], title="t", description="d", x_label="x")
    (bar,) = parsed(svg).iter(f"{SVG}rect")
    assert float(bar.get("y") or 0) >= 22
    height = float(bar.attrib["height"])
    assert height <= 260
    assert (height > 0) == (most > 0)
    ticks = [each.text for each in parsed(svg).iter(f"{SVG}text") if each.get("text-anchor") == "end"]
    assert 2 <= len(ticks) <= 7
    assert float(ticks[-1] or 0) >= 100 * most


def test_the_same_numbers_give_the_same_text() -> None:
    assert curves(["a", "b"]) == curves(["a", "b"])
    assert curves(["a"]) != curves(["b"])
