"""Review by people: queries as a page and as a table, and what they decided read back.

The page works offline beside the pictures and saves the same table. A query that nobody decided on stays as
it is; one that is dropped stays in the stage's rows with that reason. What people wrote is never written
over.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path

import orjson

from cir_datasets.builders.zerosight import CATEGORIES
from cir_datasets.construction.filled_tables import filled_table, read_filled
from cir_datasets.construction.review_files import TABLE, write_review_files
from cir_datasets.construction.workspace import FAILED, Row
from cir_datasets.construction.zerosight.frames import FRAMES
from cir_datasets.errors import ConstructionError
from cir_datasets.pages import page_environment

FIELDS = ("query", "verdict", "caption", "category", "positives", "negatives", "reference", "note")
"""Columns; images of a list stand with blanks between."""
VERDICTS = ("", "keep", "drop")


def write_review(
    folder: Path, queries: Sequence[Row], reviewed: Sequence[Row] = (), *, given: str | Path | None = None
) -> bool:
    """Write the page and the table that are to be filled in, with what was decided before.

    A table in which people have written is left as it is, unless it says nothing that is not decided already.

    Args:
        folder: of the pipeline; pictures lie in `benchmark/images` there.
        queries: rows with a caption.
        reviewed: of `reviewed_rows`; none stands for queries that nobody decided on.
        given: a table that the run took in; it is never touched.

    Returns:
        Whether a table was left that says something else than `reviewed`.

    Raises:
        ConstructionError: the system refuses to write there.
    """
    now = list(reviewed) or list(reviewed_rows(queries, {}))
    template = page_environment().from_string(
        (resources.files(__package__ or "") / "review_page.html").read_text("utf-8")
    )
    decided = {str(row["query"]) for row in now if row["verdict"] or row["note"]}

    def page(written: str) -> str:
        return str(
            template.render(
                queries=[_shown(query, row) for query, row in zip(queries, now, strict=True)],
                categories=CATEGORIES,
                frames=FRAMES,
                fields=list(FIELDS),
                table=TABLE,
                written=written,
                of_queries=hashlib.sha256(orjson.dumps(list(queries))).hexdigest()[:16],
            )
        )

    ours = write_review_files(
        folder,
        filled_table(FIELDS, map(_line, now)),
        page,
        given=given,
        holds=lambda row: row["query"] in decided or not (row["verdict"] or row["note"]),
    )
    return not ours and _says_more(folder / TABLE, queries, now)


def _says_more(path: Path, queries: Sequence[Row], reviewed: Sequence[Row]) -> bool:
    try:
        decisions = read_review(path, queries, reviewed)
    except ConstructionError:
        return True
    return list(reviewed_rows(queries, decisions, reviewed)) != list(reviewed)


def _shown(query: Row, reviewed: Row) -> Row:
    """A query of the page: all targets that it had, and what each is now."""
    kinds = {image: kind for kind in ("positive", "negative") for image in reviewed[f"{kind}s"]}
    targets = [
        {"image": image, "kind": kinds.get(image, "neither")}
        for image in (*query["positives"], *query["negatives"])
    ]
    return reviewed | {"targets": targets}


def _line(row: Row) -> dict[str, str]:
    return {
        "query": row["query"],
        "verdict": row["verdict"],
        "caption": row["caption"],
        "category": row["category"],
        "positives": " ".join(row["positives"]),
        "negatives": " ".join(row["negatives"]),
        "reference": row["reference"],
        "note": row["note"],
    }


def read_review(path: Path, queries: Sequence[Row], reviewed: Sequence[Row] = ()) -> dict[str, Row]:
    """What people decided, by query.

    Args:
        path: the table.
        queries: rows with a caption.
        reviewed: of an earlier review; a line may stand as it stood there.

    Raises:
        ConstructionError: the table cannot be read, or a line does not fit its query; all faults are named.
    """
    table = read_filled(path, FIELDS[:6], ConstructionError, fix=f"fill in {TABLE} as it was written.")
    known = {str(row["query"]): row for row in queries}
    before = {str(row["query"]): row for row in reviewed}
    found: dict[str, Row] = {}
    seen: set[str] = set()
    faults = []
    for line, given in table:
        query = given["query"]
        decision = _decision(given)
        said = list(_faults(decision, known.get(query), before.get(query)))
        if query in seen:
            said.append("the query stands there twice")
        seen.add(query)
        faults += [f"line {line}, query {query!r}: {fault}." for fault in said]
        if not said:
            found[query] = decision
    if faults:
        shown = "\n  ".join(faults[:10])
        more = f"\n  and {len(faults) - 10:,} more" if len(faults) > 10 else ""
        raise ConstructionError(
            f"{path}: {len(faults):,} faults:\n  {shown}{more}\nFix: correct these lines."
        )
    return found


def _faults(decision: Row, row: Row | None, before: Row | None) -> Iterator[str]:
    if row is None:
        yield "there is no such query"
        return
    verdict = decision["verdict"]
    if verdict not in VERDICTS:
        yield f"the verdict is {verdict!r}, not keep, drop or nothing"
    if verdict == "drop":
        return
    if not decision["caption"]:
        yield "the caption is empty"
    if any(letter < " " and letter not in "\t\r\n" for letter in decision["caption"]):
        yield "the caption has a character that cannot be shown"
    if decision["category"] not in CATEGORIES:
        yield f"the category is {decision['category']!r}, not one of {', '.join(CATEGORIES)}"
    if not decision["positives"]:
        yield "it has no positive"
    targets = {*row["positives"], *row["negatives"]}
    named = [*decision["positives"], *decision["negatives"]]
    for image in named:
        if image not in targets:
            yield f"{image} is not one of its targets"
    if len(set(named)) < len(named):
        yield "an image is named twice"
    if not verdict and all(_changes(decision, known) for known in (row, before or row)):
        yield "it is changed, and has no verdict: write keep to take the change"


def _decision(given: Mapping[str, str]) -> Row:
    return {
        "verdict": given["verdict"].lower(),
        "caption": given["caption"],
        "category": given["category"].lower(),
        "positives": given["positives"].split(),
        "negatives": given["negatives"].split(),
        "note": given.get("note", ""),
    }


def _changes(decision: Row, row: Row) -> Row:
    """The fields of a query that a decision changes, as they were; blanks alone are no change."""
    changed = {
        name: row[name] for name in ("category", "positives", "negatives") if decision[name] != row[name]
    }
    same = decision["caption"].split() == str(row["caption"]).split()
    return changed if same else {"caption": row["caption"], **changed}


def reviewed_rows(
    queries: Sequence[Row], decisions: Mapping[str, Row], earlier: Sequence[Row] = ()
) -> Iterator[Row]:
    """A row a query, as it goes on: what people changed is named, and what it was before.

    Args:
        queries: rows of final captions; those that failed there are passed over.
        decisions: of `read_review`; a query without a verdict stays as it is.
        earlier: rows of an earlier review of the same queries.
    """
    before = {str(row["query"]): row for row in earlier}
    for row in queries:
        if row.get(FAILED):
            continue
        query = str(row["query"])
        decision = decisions.get(query)
        now = before.get(query, row | {"verdict": "", "note": ""})
        if decision is None or not decision["verdict"]:
            note = decision["note"] if decision is not None else ""
            yield now if now["verdict"] or not note else now | {"note": note}
        elif decision["verdict"] == "drop":
            note = decision["note"]
            yield row | {"verdict": "drop", "note": note, FAILED: f"review: {note or 'dropped'}"}
        else:
            changed = _changes(decision, row)
            new = {name: decision[name] for name in ("verdict", "note", *changed)}
            yield row | new | ({"before": changed} if changed else {})
