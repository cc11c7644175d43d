"""Queries and sessions as one HTML file to look at: paged, with filters, readable without JavaScript.

The file asks no other host for anything, unless a publisher's pictures are asked for. All queries lie in it,
packed, which a small script shows a page at a time; the first page is HTML already.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cir_datasets.browse.pictures import page_pictures
from cir_datasets.browse.queries import OUTCOMES, QueryRows, QueryView, ShownRanking
from cir_datasets.common.atomic import write_errors, write_whole
from cir_datasets.common.terminal import counted_rows
from cir_datasets.errors import DatasetError
from cir_datasets.images import COCO_PICTURES
from cir_datasets.pages import part, render, template_macros
from cir_datasets.registry.schema import main_metric_terms
from cir_datasets.rows.right import right_by
from cir_metrics.errors import CallError, CirError

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec
    from cir_datasets.rows.benchmark import Benchmark
    from cir_datasets.rows.records import Row

PAGE_QUERIES = 20
"""Queries or sessions of a page."""
_IN_A_NOTEBOOK = 5
"""Queries that a notebook shows."""

Rankings = Mapping[str, Sequence[Sequence[ShownRanking]]]
"""By query id the rankings of each turn, one a run; a query has one turn."""


def check_page(out: str | Path) -> Path:
    """The absolute path of a page that is to be written.

    Raises:
        CallError: it is a folder, or has another ending than .html.
    """
    target = Path(out).expanduser().absolute()
    if target.is_dir():
        raise CallError(f"--out {out} is a folder. Fix: name a file, such as {Path(out) / 'page.html'}.")
    if target.suffix.lower() not in (".html", ".htm"):
        raise CallError(f"--out {out}: a page ends in .html. Fix: name it {Path(out).with_suffix('.html')}.")
    return target


def browse_queries(
    benchmark: Benchmark,
    out: str | Path,
    *,
    images: str | Path | None = None,
    pictures: str | None = None,
    runs: Sequence[str] = (),
    rankings: Rankings | None = None,
    k: int = 10,
    more: Sequence[str] = (),
) -> Path:
    """Write the queries or sessions of a benchmark as a page.

    Rankings of one or two methods stand beside each, where there are any.

    Args:
        benchmark: whose.
        out: the file, ending in .html; replaced where it is there.
        images: folder of the pictures, or its parent; None looks below `CIR_IMAGES`, and draws shapes.
        pictures: `embed` (small copies in the page), `link` (to the files), `publisher` (to COCO's server, of
            CIRCO), `none` (ids). None embeds shapes, links to other pictures where their folder is known, and
            shows ids where it is not.
        runs: names of the methods.
        rankings: what they rank, first one ranking a run, then one for each of `more`; None for none.
        k: a hit has a target among the first k, of a session's last turn.
        more: headings of further rankings, such as those of a query's subset; they decide no hit.

    Returns:
        The absolute path.

    Raises:
        CallError: `out` or `pictures` cannot be used.
        SourceError: the folder of the pictures does not exist.
        DatasetError: the file cannot be written.

    Example:
        >>> import tempfile, cir_datasets
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     sessions = cir_datasets.load("shapes/multiturn_val")
        ...     page = browse_queries(sessions, f"{folder}/page.html", pictures="none")
        ...     "shapes_multiturn_val_00019" in page.read_text("utf-8")
        True
    """
    target = check_page(out)
    spec, rows = benchmark.spec, benchmark.rows()
    queries = QueryRows(spec, dict(zip(benchmark.query_ids, rows, strict=True)))
    views = [
        QueryView.of(row, metrics_of(spec), () if rankings is None else rankings[name])
        for name, row in queries.rows.items()
    ]
    shown = dict.fromkeys(image for view in views for image in view.images())
    src, said = page_pictures(spec, shown, target.parent, images, pictures)
    known = not benchmark.ground_truth_withheld
    lasts = [rankings[name][-1][: len(runs)] for name in queries.rows] if rankings and runs and known else ()
    hits = np.array([[(one.rank or k + 1) <= k for one in last] for last in lasts], dtype=np.bool_)
    outcomes = [OUTCOMES[tuple(each)] for each in hits.tolist()] or [""] * len(views)
    title = f"{benchmark.id}#{benchmark.version}"
    if len(runs) == 2 and known:
        won, lost = outcomes.count("won"), outcomes.count("lost")
        title = f"{title}: {won:,} won, {lost:,} lost, {len(views) - won - lost:,} same at k = {k}"
    elif runs:
        title = f"{title}: {' and '.join(runs)}"
    notes = [spec.card.title, counted_rows(len(views), benchmark.multi_turn) + f". {said}"]
    if lasts:
        against = f": {runs[0]} against {runs[1]}" if len(runs) == 2 else ""
        where = " at the last turn" if benchmark.multi_turn else ""
        notes.append(f"A hit has the target among the first {k}{where}{against}.")
    card, headings = template_macros("query.html").card, [*runs, *more]
    # Each address is in the page once: cards name it by its place.
    places = {image: str(place) for place, image in enumerate(src)}
    data = {
        "size": PAGE_QUERIES,
        "src": list(src.values()),
        "rows": [
            {
                "id": view.id,
                "aspect": view.aspects,
                "turns": len(view.turns),
                "outcome": outcome,
                "text": "\n".join([*texts, *view.targets, *view.positives, *view.references]).lower(),
                "html": str(card(view, headings, places, n=number)),
            }
            for number, (view, outcome, texts) in enumerate(
                zip(views, outcomes, queries.texts, strict=True), start=1
            )
        ],
    }
    page = render(
        "browser.html",
        title=title,
        notes=notes,
        style=part("query.css") + part("browser.css"),
        script=part("browser.js"),
        filters=queries.choices(list(hits.T)),
        headings=headings,
        marks=set().union(*(view.marks() for view in views)),
        src=src,
        hosts=COCO_PICTURES if any(each.startswith(COCO_PICTURES) for each in src.values()) else "",
        first=views[:PAGE_QUERIES],
        total=f"{len(views):,}",
        data=base64.b64encode(gzip.compress(json.dumps(data).encode(), mtime=0)).decode(),
    )
    with write_errors(target, DatasetError, "choose another --out."):
        write_whole(target, page.encode("utf-8", "replace"))
    return target


def metrics_of(spec: BenchmarkSpec) -> Sequence[str]:
    """What decides the right answers of a benchmark, as for `right_answers`."""
    return right_by(main_metric_terms(spec.main_metric), spec.metrics)


def page_name(benchmark_id: str) -> str:
    """The file that a page is written to where none is named.

    Example:
        >>> page_name("cirr/val")
        'cirr-val.html'
    """
    return f"{benchmark_id.replace('/', '-').replace(os.sep, '-')}.html"


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
    views = [QueryView.of(row, metrics_of(spec)).in_short for row in rows[:_IN_A_NOTEBOOK]]
    shown = dict.fromkeys(image for view in views for image in view.images())
    try:
        src, said = page_pictures(spec, shown, Path(), None, "embed")
    except CirError:  # a folder that is not known or cannot be read hides no query
        src, said = {}, "Images are shown by their ids. Set CIR_IMAGES to the parent of their folder."
    notes = [said]
    if len(views) < len(rows):
        notes.insert(0, f"The first {len(views)} of {len(rows):,}.")
    return render("queries.html", id=spec.id, queries=views, src=src, notes=notes, style=part("query.css"))
