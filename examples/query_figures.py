"""Draw the pictures of queries of `docs/benchmarks.md`; shapes' pictures are drawn by the package and CC0.

`python -m examples.query_figures` writes them to `docs/images`; with `--check` it fails where pixels differ.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

import cir_datasets
from cir_datasets.shapes import picture

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
SIDE, GAP, TEXT = 150, 14, 20
INK, REFERENCE, POSITIVE, NEGATIVE = (40, 44, 52), (90, 96, 108), (24, 140, 72), (196, 52, 44)
Cell = tuple[str, str, tuple[int, int, int]]
"""Image id, the words below it, and their colour."""


def query_figure() -> Image.Image:
    """Two queries of shapes/val: reference, positives, hard negatives."""
    benchmark = cir_datasets.load("shapes/val")
    rows = []
    for number in (6, 16):
        query = benchmark.rows()[number]
        positives = [query["target_image_id"], *query["positive_image_ids"]]
        cells: list[Cell] = [(query["reference_image_id"], "reference", REFERENCE)]
        cells += [
            (image, "target" if image == positives[0] else "positive", POSITIVE)
            for image in dict.fromkeys(positives)
        ][:2]
        cells += [
            (image, "hard negative", NEGATIVE) for image in query["negative_image_ids"][: 5 - len(cells)]
        ]
        rows.append((f"{query['query_id']}: \u201c{query['relative_caption']}\u201d", cells))
    return _drawn(rows)


def session_figure() -> Image.Image:
    """Two sessions of shapes/multiturn_val: the reference of each turn, and the target."""
    benchmark = cir_datasets.load("shapes/multiturn_val")
    rows = []
    for number in (3, 10):
        session = benchmark.rows()[number]
        turns = session["turns"]
        cells: list[Cell] = [
            (each["reference_image_id"], f"turn {each['turn']}", REFERENCE) for each in turns
        ]
        cells.append((session["ground_truth_ids"][0], "target", POSITIVE))
        said = "; ".join(f"{each['turn']}. {each['relative_caption']}" for each in turns)
        rows.append((f"{session['session_id']}: {said}", cells))
    return _drawn(rows)


def _drawn(rows: list[tuple[str, list[Cell]]]) -> Image.Image:
    """Rows of pictures, each below its words."""
    font = ImageFont.load_default(size=15)
    wide = max(len(cells) for _, cells in rows)
    high = SIDE + 2 * TEXT + 2 * GAP
    sheet = Image.new("RGB", (wide * (SIDE + GAP) + GAP, len(rows) * high + GAP), "white")
    draw = ImageDraw.Draw(sheet)
    for number, (words, cells) in enumerate(rows):
        top = GAP + number * high
        draw.text((GAP, top), words, fill=INK, font=font)
        for column, (image, label, colour) in enumerate(cells):
            left = GAP + column * (SIDE + GAP)
            sheet.paste(picture(image).resize((SIDE, SIDE), Image.Resampling.NEAREST), (left, top + TEXT + 4))
            draw.rectangle(
                (left - 2, top + TEXT + 2, left + SIDE + 1, top + TEXT + SIDE + 5), outline=colour, width=2
            )
            draw.text((left, top + TEXT + SIDE + 8), label, fill=colour, font=font)
    return sheet


FIGURES = {"shapes-val.png": query_figure, "shapes-multiturn_val.png": session_figure}


def main() -> int:
    """Write or check every figure."""
    stale = []
    for name, make in FIGURES.items():
        made = make().quantize(128, dither=Image.Dither.NONE)
        if "--check" not in sys.argv[1:]:
            made.save(IMAGES / name, optimize=True)
            continue
        with Image.open(IMAGES / name) as stored:
            same = np.array_equal(np.asarray(stored.convert("RGB")), np.asarray(made.convert("RGB")))
        if not same:
            stale.append(name)
    if stale:
        sys.stderr.write(
            f"{', '.join(stale)}: not what the code draws. Fix: python -m examples.query_figures\n"
        )
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
