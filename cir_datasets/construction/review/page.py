"""The page of a form, which works offline in a browser, and the table that says the same to a spreadsheet.

What people wrote is never written over: a table in which somebody has written stays as it is.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import orjson

from cir_datasets.common.atomic import write_errors, write_whole
from cir_datasets.common.stages import Row
from cir_datasets.common.tables import unguarded
from cir_datasets.construction.filled_tables import filled_table, read_filled
from cir_datasets.construction.review.answers import WITHOUT_BLANKS, picture_names
from cir_datasets.construction.review.form import ReviewField, ReviewForm, cell, names_in, plain
from cir_datasets.errors import ConstructionError
from cir_datasets.pages import page_environment
from cir_metrics.errors import did_you_mean

PAGE, TABLE = "review.html", "review.csv"
SAID = "said"
"""Field of an item: what was answered before, rows that are known."""
VERSION = "version"
"""Field of an item: what its answers are about; a browser forgets those about another one."""


def page_html(
    form: ReviewForm,
    items: Sequence[Row],
    *,
    title: str,
    run: str = "",
    page: int = 1,
    memory: str = "",
    table: str = "",
) -> str:
    """The page.

    Args:
        form: what is asked.
        items: by the form's fields; pictures are files beside the page.
        title: its heading.
        run: of the items; answers have it, and those to another run are refused.
        page: number of the page, in the name of what it saves.
        memory: under which name a browser keeps the answers; by default that of the file's place.
        table: hash of the table that was written last beside it.

    Raises:
        ConstructionError: no item has a field that the form shows, an item has no id or key that it names, or
            the id of another one, or answers could not name a picture.

    Example:
        >>> from cir_datasets.construction.review.form import load_form
        >>> item = {"task": "t1", "reference": "1.jpg", "target": "2.jpg", "others": []}
        >>> html = page_html(load_form("cirr"), [item], title="A & B")
        >>> "<h1>A &amp; B</h1>" in html
        True
    """
    _check_items(form, items)
    data = {
        "form": form.model_dump(mode="json") | {"columns": form.columns, "done": form.done_by},
        "run": run,
        "page": page,
        "memory": memory,
        "without_blanks": WITHOUT_BLANKS,
        "items": [_shown(form, item) for item in items],
    }
    parts = resources.files(__package__)
    template = page_environment().from_string((parts / "page.html").read_text("utf-8"))
    return str(
        template.render(
            title=title,
            form=form,
            number=len(items),
            written=table,
            style=(parts / "page.css").read_text("utf-8"),
            script=(parts / "page.js").read_text("utf-8"),
            # "<" would let a name end the script.
            data=orjson.dumps(data).decode().replace("<", "\\u003c"),
        )
    )


def _check_items(form: ReviewForm, items: Sequence[Row]) -> None:
    known: set[str] = set()
    for place, item in enumerate(items, start=1):
        for key in (form.id, *form.keys):
            if key not in item:
                raise ConstructionError(
                    f"form {form.name}, item {place}: it has no {key!r}. Fix: give each item one."
                )
        if (id := str(item[form.id])) in known:
            raise ConstructionError(
                f"form {form.name}, item {place}: {form.id} {id!r} is that of an earlier item, and answers "
                "could not be told apart. Fix: give each item its own."
            )
        known.add(id)
        for name in (name for field in form.sorted_pictures for name in picture_names(item, field)):
            if names_in(plain([name])) != [name]:
                raise ConstructionError(
                    f"form {form.name}, item {place}: answers cannot name the picture {name!r}, which has "
                    "quotation marks or several blanks together. Fix: give it another `name`."
                )
    there = set().union(*items)
    for name in (*_picture_fields(form), *map(_field, form.texts)) if items else ():
        if name not in there:
            raise ConstructionError(
                f"form {form.name}: it shows the field {name!r}, which no item has."
                f"{did_you_mean(name, there)} Items have {', '.join(sorted(there))}. Fix: correct the form, "
                "or add the field to the items."
            )


def _shown(form: ReviewForm, item: Mapping[str, Any]) -> Row:
    """An item as the page needs it."""
    places = [one.placeholder for one in form.questions if one.placeholder]
    return {
        "id": str(item[form.id]),
        "version": str(item.get(VERSION, "")),
        "keys": {key: plain(item[key]) for key in form.keys},
        "pictures": {field: _pictures(item.get(field)) for field in _picture_fields(form)},
        "texts": {name: plain(item.get(name)) for name in (*map(_field, form.texts), *places)},
        "brings": {
            column: plain(item.get(column)) if question.prefilled or SAID in item else ""
            for question in form.questions
            for column in question.columns
        },
        "asked": [question.name for question in form.of_item(item)],
    }


def _picture_fields(form: ReviewForm) -> list[str]:
    return [*map(_field, form.pictures), *form.sorted_pictures]


def _field(shown: ReviewField) -> str:
    return shown.field


def _pictures(value: Any) -> list[Row]:
    found = value if isinstance(value, list | tuple) else [value] if value else []
    rows = [dict(one) if isinstance(one, Mapping) else {"picture": str(one)} for one in found]
    return [{"name": row["picture"], "text": "", **row} for row in rows]


def write_review(
    folder: Path,
    form: ReviewForm,
    items: Sequence[Row],
    title: str,
    *,
    run: str = "",
    taken_in: str | Path | None = None,
) -> bool:
    """Write page and table into the folder of a run, with what was answered before.

    A table is replaced where it is as an earlier run wrote it, which the page says, and nothing is lost.

    Args:
        folder: of the run.
        form: what is asked.
        items: all of them, with the answers that they bring; `said` has those that were taken in before.
        title: heading of the page.
        run: of the items, as for `page_html`.
        taken_in: a file that the run took in; it is never touched.

    Returns:
        Whether a table was left that says something that was not taken in.

    Raises:
        ConstructionError: the system refuses to write there.
    """
    path = folder / TABLE
    lines = ({name: cell(item.get(name)) for name in form.table_columns} for item in items)
    table = filled_table(form.table_columns, lines)
    known = {str(item[form.id]): item for item in items}
    with write_errors(folder, ConstructionError):
        there = path.read_bytes() if path.is_file() else table
        as_written = there == table or _is_ours(folder, there)
        touched = taken_in is not None and path.is_file() and Path(taken_in).expanduser().samefile(path)
        kept = as_written and not touched and all(_is_decided(form, row, known) for row in _rows(there))
        ours = there == table or kept
        # The page says which table was written last. In this order a run that ends between the two leaves a
        # table that the next run would write, too.
        if ours:
            write_whole(path, table)
        digest = hashlib.sha256(table if ours else there).hexdigest() if as_written else ""
        write_whole(folder / PAGE, page_html(form, items, title=title, run=run, table=digest).encode())
    return not ours and _says_more(form, path, known)


def _is_ours(folder: Path, there: bytes) -> bool:
    """Whether the page says that a run wrote this table."""
    page = folder / PAGE
    written = hashlib.sha256(there).hexdigest()
    return page.is_file() and f'content="{written}"' in page.read_text("utf-8", "replace")


def _rows(table: bytes) -> Iterator[dict[str, str]]:
    for row in csv.DictReader(io.StringIO(table.decode(), newline="")):
        yield {name: unguarded(text) for name, text in row.items()}


def _is_decided(form: ReviewForm, row: Mapping[str, str], items: Mapping[str, Row]) -> bool:
    """Whether a row of a table that a run wrote has no answer of a person, or its item has one, too."""
    item = items.get(row[form.id], {})
    return not _decision(form, row) or any(_decision(form, one) for one in (item, *item.get(SAID, ())))


def _decision(form: ReviewForm, row: Mapping[str, Any]) -> dict[str, str]:
    return {name: text for name, text in form.answers_in(row).items() if name not in form.brought}


def _says_more(form: ReviewForm, path: Path, items: Mapping[str, Row]) -> bool:
    """Whether a table says something that no item brings, and none was known to say."""
    try:
        rows = read_filled(path, (form.id,), ConstructionError, fix="keep its head.")
    except ConstructionError:
        return True
    for _, row in rows:
        item = items.get(row[form.id], {})
        known = [form.answers_in(one) for one in (item, *item.get(SAID, ()))]
        answers = form.answers_in(row)
        if answers and answers not in known:
            return True
    return False


def left_alone(table: Path) -> str:
    """What is said of a table that was left and says something that was not taken in."""
    return (
        f"{table}: it says something that was not taken in, and is left as it is. Fix: take it in with "
        f"`--review {table}`, or move it away, so that a fresh one is written."
    )
