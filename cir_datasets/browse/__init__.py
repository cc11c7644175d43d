"""Queries and sessions as one HTML file to look at: paged, with filters, readable without JavaScript.

The file asks no other host for anything. All queries lie in it as JSON, which a small script shows a page at
a time; the first page is HTML already.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cir_datasets.browse.pictures import PREFIX, page_pictures
from cir_datasets.browse.queries import OUTCOMES, QueryRows
from cir_datasets.common.atomic import write_whole
from cir_datasets.common.terminal import counted_rows
from cir_datasets.errors import DatasetError
from cir_datasets.pages import part, render
from cir_datasets.registry.schema import main_metric_terms
from cir_datasets.rows.right import right_answers, right_by
from cir_metrics.errors import CallError, CirError

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec
    from cir_datasets.rows.benchmark import Benchmark
    from cir_datasets.rows.records import Row

_PAGE = 20
_NEGATIVES = 10
"""Hard negatives of a query that are shown beside its targets."""
_IN_A_NOTEBOOK = 5
"""Queries that a notebook shows, and targets and other positives of each."""


@dataclass(frozen=True)
class ShownRanking:
    """The beginning of one ranking.

    Args:
        top: image ids, best first.
        rank: rank of the best target, from 1; None where none is listed, or targets are not public.
        listed: how many images the ranking has.
        known: whether the targets are public.
        others: images that are shown behind, without a rank: of a subset those that are not ranked.
    """

    top: tuple[str, ...]
    rank: int | None
    listed: int
    known: bool = True
    others: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """Where the target stands."""
        if not self.known:
            return "the ground truth is not public"
        return (
            f"target not among its {self.listed:,}" if self.rank is None else f"target at rank {self.rank:,}"
        )


Rankings = Mapping[str, Sequence[Sequence[ShownRanking]]]
"""By query id the rankings of each turn, one a run; a query has one turn."""


def browse_queries(
    benchmark: Benchmark,
    out: str | Path,
    *,
    images: str | Path | None = None,
    pictures: str | None = None,
) -> Path:
    """Write the queries or sessions of a benchmark as a page.

    Args:
        benchmark: whose.
        out: the file, ending in .html; replaced where it is there.
        images: folder of the pictures, or its parent; None looks below `CIR_IMAGES`, and draws shapes.
        pictures: `embed` (small copies in the page), `link` (to the files), `none` (ids). None embeds shapes,
            links to other pictures where their folder is known, and shows ids where it is not.

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
        ...     "shapes_multiturn_val_00199" in page.read_text("utf-8")
        True
    """
    return write_browser(benchmark, out, images=images, pictures=pictures)


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


def write_browser(
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
    """`browse_queries`, with the rankings of one or two methods.

    Args:
        benchmark: as for `browse_queries`.
        out: as for `browse_queries`.
        images: as for `browse_queries`.
        pictures: as for `browse_queries`.
        runs: names of the methods.
        rankings: what they rank, first one ranking a run, then one for each of `more`; None for none.
        k: a hit has a target among the first k, of a session's last turn.
        more: headings of further rankings, such as those of a query's subset; they decide no hit.

    Raises:
        CallError: as for `browse_queries`.
        SourceError: as for `browse_queries`.
        DatasetError: as for `browse_queries`.
    """
    target = check_page(out)
    metrics = right_by(main_metric_terms(benchmark.spec.main_metric), benchmark.spec.metrics)
    queries = QueryRows(benchmark.spec, dict(zip(benchmark.query_ids, benchmark.rows(), strict=True)))
    cards = [query_card(row, rankings, k, metrics, len(runs)) for row in queries.rows.values()]
    wanted = dict.fromkeys(image for card in cards for image in images_of(card))
    src, said = page_pictures(benchmark.spec, wanted, target.parent, images, pictures)
    number = {image: place for place, image in enumerate(wanted)}
    known = not benchmark.ground_truth_withheld
    outcomes = Counter(card["outcome"] for card in cards) if runs and known else Counter()
    turns = Counter(len(card["turns"]) for card in cards)
    data = {
        "size": _PAGE,
        "runs": [*runs, *more],
        "images": list(wanted),
        "prefix": PREFIX if any(each.startswith(PREFIX) for each in src.values()) else "",
        "src": {number[image]: each.removeprefix(PREFIX) for image, each in src.items()},
        "rows": [_packed(card, number) for card in cards],
    }
    title = f"{benchmark.id}#{benchmark.version}"
    if len(runs) == 2 and known:
        won, lost = outcomes["won"], outcomes["lost"]
        title = f"{title}: {won:,} won, {lost:,} lost, {len(cards) - won - lost:,} same at k = {k}"
    elif runs:
        title = f"{title}: {' and '.join(runs)}"
    order = [name for hits, name in OUTCOMES.items() if len(hits) == len(runs)]
    where = " at the last turn" if benchmark.multi_turn else ""
    page = render(
        "browser.html",
        title=title,
        notes=[benchmark.spec.card.title, counted_rows(len(cards), benchmark.multi_turn) + f". {said}"],
        style=part("browser.css"),
        script=part("browser.js"),
        aspects=[(name, int(having.sum())) for name, having in queries.aspects.items()],
        turns=sorted(turns.items()) if benchmark.multi_turn else [],
        outcomes=[(name, outcomes[name]) for name in order] if outcomes else [],
        outcome_words=f"Target among the first {k}{where}"
        + (f": {runs[0]} against {runs[1]}" if len(runs) == 2 else ""),
        runs=[*runs, *more],
        marks=_marks(cards),
        src=src,
        first=cards[:_PAGE],
        total=f"{len(cards):,}",
        data=json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c"),
    )
    try:
        write_whole(target, page.encode("utf-8", "replace"))
    except OSError as error:
        raise DatasetError(
            f"{target}: cannot be written: {error.strerror or error}. Fix: choose another --out."
        ) from error
    return target


def query_card(
    row: Row, rankings: Rankings | None, k: int, metrics: Sequence[str], runs: int = 0
) -> dict[str, Any]:
    """A query or session as templates take it.

    Args:
        row: the query or session.
        rankings: as for `write_browser`.
        k: as for `write_browser`.
        metrics: as for `right_answers`.
        runs: how many of the rankings decide whether it is a hit.
    """
    session = "turns" in row
    name = row["session_id" if session else "query_id"]
    targets = right_answers(row, metrics)
    positives = [] if session else [each for each in row["positive_image_ids"] if each not in targets]
    negatives = list(row.get("negative_image_ids") or ())
    lists = rankings[name] if rankings is not None else ()
    kinds = dict.fromkeys(negatives, "bad") | dict.fromkeys(positives, "right")
    kinds |= dict.fromkeys(targets, "good")
    turns = [
        {
            "reference": turn["reference_image_id"],
            "caption": "\n".join(turn.get("captions") or filter(None, [turn["relative_caption"]])),
            "lists": [
                _shown(each, kinds, turn["reference_image_id"]) for each in (lists[place] if lists else ())
            ],
        }
        for place, turn in enumerate(row["turns"] if session else [row])
    ]
    hits = [each.rank is not None and each.rank <= k for each in lists[-1][:runs]] if lists else []
    outcome = OUTCOMES.get(tuple(hits), "")
    return {
        "id": name,
        "aspects": list(row.get("aspects") or ()),
        "targets": targets,
        "positives": positives,
        "negatives": negatives[:_NEGATIVES] if rankings is None else [],
        "turns": turns,
        "outcome": outcome,
    }


def _marks(cards: Sequence[Mapping[str, Any]]) -> set[str]:
    """The marks that the page has, whose meaning it says."""
    found = {name for name in ("targets", "positives", "negatives") if any(card[name] for card in cards)}
    kinds = {
        kind for card in cards for turn in card["turns"] for one in turn["lists"] for kind in one["kinds"]
    }
    return found | ({"negatives"} if "bad" in kinds else set())


def _shown(ranked: ShownRanking, known: Mapping[str, str], reference: str | None) -> dict[str, Any]:
    top = (*ranked.top, *ranked.others)
    kinds = [known.get(each, "") for each in top]
    signs = {"good": " ✓ target", "right": " ✓ positive", "bad": " ✗ hard neg.", "": ""}
    places = [str(place) for place in range(1, len(ranked.top) + 1)]
    places += ["reference" if each == reference else "not ranked" for each in ranked.others]
    labels = [f"{place}{signs[kind]}" for place, kind in zip(places, kinds, strict=True)]
    return {"words": ranked.words, "top": top, "kinds": kinds, "labels": labels, "ranked": len(ranked.top)}


def images_of(card: Mapping[str, Any]) -> Iterator[str]:
    """All images of a query or session as templates take it."""
    yield from card["targets"]
    yield from card["positives"]
    yield from card["negatives"]
    for turn in card["turns"]:
        if turn["reference"] is not None:
            yield turn["reference"]
        for shown in turn["lists"]:
            yield from shown["top"]


def _packed(card: Mapping[str, Any], number: Mapping[str, int]) -> list[Any]:
    """A card as the script takes it, images as numbers."""
    marks = {"good": "+", "right": "*", "bad": "-", "": " "}
    turns = [
        [
            None if turn["reference"] is None else number[turn["reference"]],
            turn["caption"],
            [
                [
                    shown["words"],
                    [number[image] for image in shown["top"]],
                    "".join(marks[kind] for kind in shown["kinds"]),
                    shown["ranked"],
                ]
                for shown in turn["lists"]
            ],
        ]
        for turn in card["turns"]
    ]
    images = ([number[image] for image in card[name]] for name in ("targets", "positives", "negatives"))
    return [card["id"], card["aspects"], *images, turns, card["outcome"]]


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
    metrics = right_by(main_metric_terms(spec.main_metric), spec.metrics)
    shown = [_few(query_card(row, None, 0, metrics)) for row in rows[:_IN_A_NOTEBOOK]]
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
    few = {
        "targets": targets[:_IN_A_NOTEBOOK],
        "positives": positives[: max(0, _IN_A_NOTEBOOK - len(targets))],
    }
    more = len(targets) + len(positives) - sum(map(len, few.values()))
    return card | few | {"negatives": [], "more": more}
