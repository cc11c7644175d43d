"""Queries and sessions with their pictures in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cir_datasets.browse import images_of, query_card
from cir_datasets.browse.pictures import page_pictures
from cir_datasets.pages import render
from cir_datasets.registry.schema import main_metric_terms
from cir_datasets.rows.right import right_by
from cir_metrics.errors import CirError

if TYPE_CHECKING:
    from cir_datasets.registry.cards import BenchmarkSpec
    from cir_datasets.rows.records import Row

_FIRST = 5
"""Queries that are shown, and targets and other positives of each."""


def queries_html(spec: BenchmarkSpec, rows: Sequence[Row]) -> str:
    """The first queries or sessions as HTML: reference, caption, targets; what a notebook shows of them.

    Pictures are small copies where the folder of the images is known (`CIR_IMAGES`, or the benchmark's own),
    drawn for shapes, and ids elsewhere.

    Args:
        spec: the benchmark.
        rows: its queries or sessions; the first five are shown, with up to five targets each.

    Example:
        >>> import cir_datasets
        >>> benchmark = cir_datasets.load("shapes/val")
        >>> queries_html(benchmark.spec, benchmark.rows()).count("<figcaption>reference")
        5
    """
    metrics = right_by(main_metric_terms(spec.main_metric), spec.metrics)
    shown = [_few(query_card(row, None, 0, metrics)) for row in rows[:_FIRST]]
    wanted = dict.fromkeys(image for card in shown for image in images_of(card))
    try:
        src, said = page_pictures(spec, wanted, Path(), None, "embed")
    except CirError:  # a folder that is not known or cannot be read hides no query
        src, said = {}, "Images are shown by their ids. Set CIR_IMAGES to the parent of their folder."
    notes = [said]
    if len(shown) < len(rows):
        notes.insert(0, f"The first {len(shown)} of {len(rows):,}.")
    return render("queries.html", id=spec.id, queries=shown, src=src, notes=notes)


def _few(card: dict[str, Any]) -> dict[str, Any]:
    """A card without hard negatives, and with as many targets as fit."""
    targets, positives = card["targets"], card["positives"]
    few = {"targets": targets[:_FIRST], "positives": positives[: max(0, _FIRST - len(targets))]}
    more = len(targets) + len(positives) - sum(map(len, few.values()))
    return card | few | {"negatives": [], "more": more}
