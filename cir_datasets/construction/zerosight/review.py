"""Review by people: queries as a page and as a table, and what they decided read back.

The page works offline beside the pictures and saves the same table. A query that nobody decided on stays as
it is; one that is dropped stays in the stage's rows with that reason.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path

from cir_datasets.builders.zerosight import CATEGORIES
from cir_datasets.construction.workspace import FAILED, Row
from cir_datasets.construction.zerosight.frames import FRAMES
from cir_datasets.errors import ConstructionError
from cir_metrics.atomic import write_whole
from cir_metrics.errors import MissingExtraError

FIELDS = ("query", "verdict", "caption", "category", "positives", "negatives", "reference", "note")
"""Columns; images of a list stand with blanks between."""
VERDICTS = ("", "keep", "drop")
PAGE, TABLE = "review.html", "review.csv"


def write_review(folder: Path, queries: Sequence[Row]) -> tuple[Path, Path]:
    """Write the page and the table that are to be filled in.

    Args:
        folder: of the pipeline; pictures lie in `frames` there.
        queries: rows with a caption.

    Raises:
        ConstructionError: the system refuses to write there.
        MissingExtraError: Jinja is not installed.
    """
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError as error:
        raise MissingExtraError(
            'the page of a review needs Jinja. Fix: pip install "cir-benchmarks[construction]".'
        ) from error
    out = io.StringIO()
    table = csv.DictWriter(out, FIELDS, lineterminator="\n")
    table.writeheader()
    table.writerows(_line(row) for row in queries)
    template = (resources.files(__package__ or "") / "review_page.html").read_text("utf-8")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    page = environment.from_string(template).render(
        queries=queries, categories=CATEGORIES, frames=FRAMES, fields=list(FIELDS), table=TABLE
    )
    try:
        write_whole(folder / PAGE, page.encode())
        write_whole(folder / TABLE, out.getvalue().encode())
    except OSError as error:
        raise ConstructionError(
            f"{folder}: cannot be written: {error.strerror}. Fix: make room, or name another folder."
        ) from error
    return folder / PAGE, folder / TABLE


def _line(row: Row) -> dict[str, str]:
    return {
        "query": row["query"],
        "verdict": "",
        "caption": row["caption"],
        "category": row["category"],
        "positives": " ".join(row["positives"]),
        "negatives": " ".join(row["negatives"]),
        "reference": row["reference"],
        "note": "",
    }


def read_review(path: Path, queries: Sequence[Row]) -> dict[str, Row]:
    """What people decided, by query.

    Raises:
        ConstructionError: the table cannot be read, or a line does not fit its query; all faults are named.
    """
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConstructionError(
            f"{path}: it cannot be read: {error}. Fix: save it as CSV in UTF-8."
        ) from error
    table = csv.DictReader(io.StringIO(text))
    lacking = [name for name in FIELDS[:6] if name not in (table.fieldnames or ())]
    if lacking:
        raise ConstructionError(
            f"{path}: it has no column {', '.join(lacking)}. Fix: fill in {TABLE} as it was written."
        )
    known = {str(row["query"]): row for row in queries}
    found: dict[str, Row] = {}
    seen: set[str] = set()
    faults = []
    for line, given in enumerate(table, start=2):
        query = (given["query"] or "").strip()
        said = list(_faults(given, known.get(query)))
        if query in seen:
            said.append("the query stands there twice")
        seen.add(query)
        faults += [f"line {line}, query {query!r}: {fault}." for fault in said]
        if not said:
            found[query] = _decision(given)
    if faults:
        shown = "\n  ".join(faults[:10])
        more = f"\n  and {len(faults) - 10:,} more" if len(faults) > 10 else ""
        raise ConstructionError(
            f"{path}: {len(faults):,} faults:\n  {shown}{more}\nFix: correct these lines."
        )
    return found


def _faults(given: Mapping[str, str | None], row: Row | None) -> Iterator[str]:
    if row is None:
        yield "there is no such query"
        return
    verdict = (given["verdict"] or "").strip()
    if verdict not in VERDICTS:
        yield f"the verdict is {verdict!r}, not keep, drop or nothing"
    if verdict == "drop":
        return
    if not (given["caption"] or "").strip():
        yield "the caption is empty"
    if (given["category"] or "").strip() not in CATEGORIES:
        yield f"the category is {given['category']!r}, not one of {', '.join(CATEGORIES)}"
    positives, negatives = ((given[name] or "").split() for name in ("positives", "negatives"))
    if not positives:
        yield "it has no positive"
    targets = {*row["positives"], *row["negatives"]}
    for image in (*positives, *negatives):
        if image not in targets:
            yield f"{image} is not one of its targets"
    named = [*positives, *negatives]
    if len(set(named)) < len(named):
        yield "an image is named twice"


def _decision(given: Mapping[str, str | None]) -> Row:
    plain = {name: (given.get(name) or "").strip() for name in FIELDS}
    return {
        "verdict": plain["verdict"],
        "caption": plain["caption"],
        "category": plain["category"],
        "positives": plain["positives"].split(),
        "negatives": plain["negatives"].split(),
        "note": plain["note"],
    }


def reviewed_rows(queries: Sequence[Row], decisions: Mapping[str, Row]) -> Iterator[Row]:
    """A row a query, as it goes on: what people changed is named, and what it was before.

    Args:
        queries: rows of final captions; those that failed there are passed over.
        decisions: of `read_review`.
    """
    for row in queries:
        if row.get(FAILED):
            continue
        decision = decisions.get(str(row["query"]))
        if decision is None:
            yield row | {"verdict": ""}
            continue
        if decision["verdict"] == "drop":
            yield row | {"verdict": "drop", FAILED: f"review: {decision['note'] or 'dropped'}"}
            continue
        changed = {
            name: row[name]
            for name in ("caption", "category", "positives", "negatives")
            if decision[name] != row[name]
        }
        yield row | decision | ({"before": changed} if changed else {})
