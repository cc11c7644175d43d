"""Review by people, by the form `zerosight`: queries as page and table, and what they decided read back.

A query that nobody decided on stays as it is; one that is dropped stays in the stage's rows with that reason.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import orjson

from cir_datasets.common.stages import FAILED, Row
from cir_datasets.construction.review import page
from cir_datasets.construction.review.answers import accepted_answers
from cir_datasets.construction.review.form import load_form, names_in
from cir_datasets.construction.zerosight.frames import FRAMES


def write_review(
    folder: Path, queries: Sequence[Row], reviewed: Sequence[Row] = (), *, taken_in: str | Path | None = None
) -> bool:
    """Write the page and the table that are to be filled in, with what was decided before.

    Args:
        folder: of the pipeline; pictures lie in `benchmark/images` there.
        queries: rows with a caption.
        reviewed: of `reviewed_rows`; none stands for queries that nobody decided on.
        taken_in: a table that the run took in; it is never touched.

    Returns:
        Whether a table was left that says something else than `reviewed`.

    Raises:
        ConstructionError: the system refuses to write there.
    """
    now = list(reviewed) or list(reviewed_rows(queries, {}))
    items = [_item(query, row) for query, row in zip(queries, now, strict=True)]
    title = f"Review of {len(items)} queries"
    return page.write_review(folder, load_form("zerosight"), items, title, taken_in=taken_in)


def _item(query: Row, reviewed: Row) -> Row:
    """A query as the form shows it: all targets that it had, and what each is now."""
    return reviewed | {
        page.VERSION: hashlib.sha256(orjson.dumps(query)).hexdigest()[:16],
        page.SAID: [query],
        "reference_picture": {"picture": f"{FRAMES}/{query['reference']}", "text": query["reference"]},
        "targets": [
            {"picture": f"{FRAMES}/{image}", "name": image}
            for image in query["positives"] + query["negatives"]
        ],
    }


def read_review(path: Path, queries: Sequence[Row], reviewed: Sequence[Row] = ()) -> dict[str, Row]:
    """What people decided, by query.

    Args:
        path: the table, or what the page saved.
        queries: rows with a caption.
        reviewed: of an earlier review; a line may stand as it stood there.

    Raises:
        ConstructionError: the table cannot be read, or a line does not fit its query; all faults are named.
    """
    known = {str(row["query"]): row for row in queries}
    before = {str(row["query"]): row for row in reviewed}

    def undecided(answer: Row, query: Row) -> str | None:
        decision = _decision(answer)
        if decision["verdict"] or not all(
            _changes(decision, row) for row in (query, before.get(answer["query"], query))
        ):
            return None
        return "it is changed, and has no verdict: write keep to take the change"

    rows = accepted_answers(
        load_form("zerosight"), path, {query: _item(row, row) for query, row in known.items()}, undecided
    )
    return {row["query"]: _decision(row) for row in rows}


def _decision(answer: Row) -> Row:
    fields = {name: answer[name] for name in ("verdict", "caption", "category", "note")}
    return fields | {name: names_in(answer[name]) for name in ("positives", "negatives")}


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
