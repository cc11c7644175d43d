"""From scene graph to pixels, in whole numbers only.

A picture is 96 x 96 RGB. Each form is a set of integer inequalities, tested on a grid four times as fine in
each direction; how many of the sixteen points of a pixel are inside is its coverage, and colours are mixed by
that. No font, no drawing library and no floating point takes part, so that pixels are the same on every
machine and with every version of every library.
"""

from __future__ import annotations

import functools
import hashlib
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cir_datasets.shapes.draws import Draws
from cir_datasets.shapes.world import WORLD, Scene

SIDE = 96
"""Width and height of a picture, in pixels."""

Pixels = NDArray[np.uint8]
_Ints = NDArray[np.int64]
_Mask = NDArray[np.bool_]

_FINE = 4
"""Test points a pixel, in each direction."""
_UNIT = 512
"""A form's own scale: its radius."""
_PITCH = 29
"""Distance of the grid's cells, in pixels."""
_DRIFT = 16
"""The background's pattern is shifted by up to so many pixels."""
_TURN = 4096
"""Scale of the cameras' cosines and sines."""

_RADII = {"small": 16, "large": 25}
"""Radius of an object in half pixels."""


class _Camera(NamedTuple):
    zoom: int
    """In 64ths."""
    cosine: int
    sine: int


_CAMERAS = {
    name: _Camera(view["zoom"], view["cosine"], view["sine"]) for name, view in WORLD["viewpoints"].items()
}
_OUTLINE = ((30, 30, 36), (236, 236, 236))
"""Tones of the outline: dark, and light for black things."""


def pixels(scene: Scene) -> Pixels:
    """The picture of a scene.

    Args:
        scene: any scene.

    Returns:
        RGB values, shape (96, 96, 3), a new array.

    Example:
        >>> from cir_datasets.shapes.world import Thing
        >>> picture = pixels(Scene((Thing("circle", "red", "large", "plain", (4,)),), "snowy"))
        >>> picture.shape, picture[48, 48].tolist()
        ((96, 96, 3), [214, 40, 40])
    """
    draws = Draws("grain", scene.grain)
    x, y = draws.below(_DRIFT), draws.below(_DRIFT)
    canvas = _background(scene.background, scene.viewpoint)[y : y + SIDE, x : x + SIDE].copy()
    camera = _CAMERAS[scene.viewpoint]
    for thing in scene.things:
        paint, clear = _sprite(thing.shape, thing.size, thing.texture, thing.colour, scene.viewpoint)
        half = paint.shape[0] // 2
        for cell in thing.cells:
            across = (cell % 3 - 1) * _PITCH + draws.below(3) - 1
            down = (cell // 3 - 1) * _PITCH + draws.below(3) - 1
            left = SIDE // 2 - half + _scaled(across * camera.cosine - down * camera.sine, camera.zoom)
            top = SIDE // 2 - half + _scaled(across * camera.sine + down * camera.cosine, camera.zoom)
            _lay(canvas, paint, clear, left, top)
    return canvas.astype(np.uint8)


def pixel_sha256(picture: Pixels) -> str:
    """sha256 (hex) of a picture's decoded RGB bytes, row by row.

    Example:
        >>> pixel_sha256(np.zeros((1, 1, 3), dtype=np.uint8))[:8]
        '709e80c8'
    """
    return hashlib.sha256(np.ascontiguousarray(picture, dtype=np.uint8).tobytes()).hexdigest()


def _scaled(distance: int, zoom: int) -> int:
    whole = _TURN * 64
    return (distance * zoom + whole // 2) // whole


def _lay(
    canvas: NDArray[np.int16], paint: NDArray[np.int16], clear: NDArray[np.int16], left: int, top: int
) -> None:
    """Lay a sprite on the canvas; what juts out over the edge is cut off."""
    side = paint.shape[0]
    x0, x1 = max(left, 0), min(left + side, SIDE)
    y0, y1 = max(top, 0), min(top + side, SIDE)
    part = (slice(y0 - top, y1 - top), slice(x0 - left, x1 - left))
    region = canvas[y0:y1, x0:x1]
    canvas[y0:y1, x0:x1] = (region * clear[part] + paint[part] + _FINE * _FINE // 2) // (_FINE * _FINE)


@functools.cache
def _sprite(
    shape: str, size: str, texture: str, colour: str, viewpoint: str
) -> tuple[NDArray[np.int16], NDArray[np.int16]]:
    """An object ready to be laid: its colours times coverage, and the sixteenths that stay background."""
    body, marks, edge = _coverage(shape, size, texture, viewpoint)
    main, accent = WORLD["colours"][colour]
    outline = _OUTLINE[colour == "black"]
    tones = np.array([main, accent, outline], dtype=np.int16)
    layers = np.stack([body, marks, edge], axis=-1)
    return (layers @ tones).astype(np.int16), (_FINE * _FINE - layers.sum(axis=-1, keepdims=True)).astype(
        np.int16
    )


@functools.cache
def _coverage(shape: str, size: str, texture: str, viewpoint: str) -> tuple[NDArray[np.int16], ...]:
    """Sixteenths of each pixel that are main tone, texture tone and outline."""
    camera = _CAMERAS[viewpoint]
    radius = _RADII[size] * camera.zoom  # in 128ths of a pixel
    half = radius * 5 // (4 * 128) + 2
    steps = (2 * np.arange(2 * half * _FINE, dtype=np.int64) + 1 - 2 * half * _FINE) * 128 // (2 * _FINE)
    down, across = np.meshgrid(steps, steps, indexing="ij")
    x = (across * camera.cosine + down * camera.sine) // _TURN * _UNIT // radius
    y = (down * camera.cosine - across * camera.sine) // _TURN * _UNIT // radius
    rim = _UNIT + 128 * _UNIT * 9 // (radius * 8)  # the outline is nine eighths of a pixel wide
    outside = _inside(shape, x * _UNIT // rim, y * _UNIT // rim)
    inside: _Mask = _inside(shape, x, y)
    marks = inside & _marks(texture, size, x, y)
    return _counts(inside & ~marks), _counts(marks), _counts(outside & ~inside)


def _counts(mask: _Mask) -> NDArray[np.int16]:
    side = mask.shape[0] // _FINE
    counts: NDArray[np.int64] = mask.reshape(side, _FINE, side, _FINE).sum(axis=(1, 3))
    return counts.astype(np.int16)


def _inside(shape: str, x: _Ints, y: _Ints) -> _Mask:
    """Which points lie in a form of radius `_UNIT` around the origin; y points down."""
    if shape == "circle":
        return x * x + y * y <= 490 * 490
    if shape == "square":
        return np.maximum(abs(x), abs(y)) <= 430
    if shape == "triangle":
        return (y <= 430) & (9 * y >= 17 * abs(x) - 9 * 480)
    if shape == "diamond":
        return 3 * abs(x) + 2 * abs(y) <= 2 * 560
    if shape == "cross":
        near, wide = np.minimum(abs(x), abs(y)), np.maximum(abs(x), abs(y))
        return (near <= 170) & (wide <= 480)
    if shape == "star":
        # The five lines of a pentagram, fattened: a star is where at least four of five sides are kept to.
        lines = ((0, -1000), (951, -309), (588, 809), (-588, 809), (-951, -309))
        kept = sum((a * x + b * y <= 205 * 1000).astype(np.int64) for a, b in lines)
        return (kept >= 4) & (x * x + (y - 20) * (y - 20) <= 600 * 600)
    if shape == "heart":
        up, wide = -y * 5 // 4 + 60, x * 5 // 4
        bulge = wide * wide + up * up - _UNIT * _UNIT
        heart: _Mask = bulge * bulge * bulge <= wide * wide * up * up * up * _UNIT
        return heart
    return (x * x + y * y <= 490 * 490) & ((x - 230) * (x - 230) + (y + 90) * (y + 90) > 390 * 390)  # moon


def _marks(texture: str, size: str, x: _Ints, y: _Ints) -> _Mask:
    """Which points carry the texture's tone; small objects have fewer, broader marks."""
    if texture == "striped":
        period = 400 if size == "small" else 290
        return (x + y * 2 // 3 + 10 * period) % period < period * 2 // 5
    if texture == "checkered":
        square = 300 if size == "small" else 220
        checks: _Mask = (x // square + y // square) % 2 == 0
        return checks
    if texture == "dotted":
        period = 400 if size == "small" else 290
        a, b = (x + period // 2) % period - period // 2, (y + period // 2) % period - period // 2
        return a * a + b * b <= (period * 3 // 10) * (period * 3 // 10)
    return np.zeros(x.shape, dtype=np.bool_)


@functools.cache
def _background(background: str, viewpoint: str) -> NDArray[np.int16]:
    """A background somewhat larger than a picture, so that a picture can be any part of it."""
    camera = _CAMERAS[viewpoint]
    side = SIDE + _DRIFT
    steps = 2 * np.arange(side, dtype=np.int64) + 1 - side
    down, across = np.meshgrid(steps, steps, indexing="ij")
    turned_x = (across * camera.cosine + down * camera.sine) // _TURN
    turned_y = (down * camera.cosine - across * camera.sine) // _TURN
    x, y = 1000 + turned_x * 32 // camera.zoom, 1000 + turned_y * 32 // camera.zoom  # in pixels of the scene
    base, second, mask = _ground(background, x, y)
    return np.where(mask[..., None], np.array(second, dtype=np.int16), np.array(base, dtype=np.int16))


_Tone = tuple[int, int, int]


def _ground(background: str, x: _Ints, y: _Ints) -> tuple[_Tone, _Tone, _Mask]:
    """Of a background its tone, a second tone, and where the second lies."""
    if background == "sandy":
        return (226, 202, 152), (204, 176, 120), _noise(x // 2, y // 2, 1) % 7 == 0
    if background == "grassy":
        return (150, 196, 120), (112, 166, 88), (_noise(x // 2, y // 5, 2) % 4 == 0)
    if background == "snowy":
        return (232, 238, 246), (204, 216, 232), _spots(x, y, 14, 3, 5, 3)
    if background == "watery":
        wave = abs((x % 24) - 12) // 3
        return (134, 194, 222), (92, 160, 202), (y + wave) % 13 < 3
    if background == "starry":
        return (34, 38, 84), (222, 222, 190), _spots(x, y, 16, 1, 3, 4)
    if background == "stony":
        joint = ((x + (y // 18) % 3 * 9) % 25 < 2) | (y % 18 < 2)
        return (160, 162, 166), (128, 130, 136), joint | (_noise(x // 3, y // 3, 5) % 19 == 0)
    if background == "wooden":
        return (178, 132, 88), (142, 100, 62), (y % 16 < 2) | (_noise(x // 13, y // 2, 6) % 8 == 0)
    return (172, 92, 76), (206, 190, 178), ((x + (y // 12) % 2 * 12) % 24 < 2) | (y % 12 < 2)  # brick


def _spots(x: _Ints, y: _Ints, period: int, smallest: int, larger: int, salt: int) -> _Mask:
    """One round spot in each square of the given period, at a place of its own."""
    column, row = x // period, y // period
    margin = larger + 1
    across = x % period - margin - _noise(column, row, salt) % (period - 2 * margin)
    down = y % period - margin - _noise(row, column, salt + 10) % (period - 2 * margin)
    reach = smallest + _noise(column, row, salt + 20) % (larger - smallest)
    return across * across + down * down <= reach


def _noise(x: _Ints, y: _Ints, salt: int) -> _Ints:
    """A whole number of 0..65535 for each point, without a visible order."""
    mixed = ((x * 73856093) ^ (y * 19349663) ^ (salt * 83492791)) & 0x7FFFFFFF
    mixed = (mixed ^ (mixed >> 15)) * 0x2C1B3C6D & 0x7FFFFFFF
    mixed = (mixed ^ (mixed >> 12)) * 0x297A2D39 & 0x7FFFFFFF
    return (mixed ^ (mixed >> 15)) & 0xFFFF
