"""Page and table of a review in the folder of a run: what people wrote there is never written over."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Callable, Iterator
from pathlib import Path

from cir_datasets.common.atomic import write_whole
from cir_datasets.common.tables import unguarded
from cir_datasets.errors import ConstructionError

PAGE, TABLE = "review.html", "review.csv"


def write_review_files(
    folder: Path,
    table: bytes,
    page: Callable[[str], str],
    *,
    given: str | Path | None = None,
    holds: Callable[[dict[str, str]], bool] = lambda row: True,
) -> bool:
    """Write the page, and the table where nothing that a person wrote is lost with the one that is there.

    A table is replaced where it is as an earlier run wrote it, which the page says.

    Args:
        folder: of the run.
        table: `review.csv` as it would be now.
        page: makes the page; it is given the hash of the table that a run wrote last, or nothing where a
            person changed it, and has it as the content of its `<meta name="table">`.
        given: a file that the run took in; it is never touched.
        holds: whether what a row of the table that is there says is in the new one, too.

    Returns:
        Whether the table was written, or is there already.

    Raises:
        ConstructionError: the system refuses to write there.
    """
    path = folder / TABLE
    try:
        there = path.read_bytes() if path.is_file() else table
        known = there == table or _is_ours(folder, there)
        taken_in = given is not None and path.is_file() and Path(given).expanduser().samefile(path)
        ours = there == table or (known and not taken_in and all(map(holds, _rows(there))))
        # The page says which table was written last. In this order a run that ends between the two leaves a
        # table that the next run would write, too.
        if ours:
            write_whole(path, table)
        last = table if ours else there
        write_whole(folder / PAGE, page(hashlib.sha256(last).hexdigest() if known else "").encode())
    except OSError as error:
        raise ConstructionError(
            f"{folder}: cannot be written: {error.strerror}. Fix: make room, or name another folder."
        ) from error
    return ours


def _is_ours(folder: Path, there: bytes) -> bool:
    """Whether the page says that a run wrote this table."""
    page = folder / PAGE
    written = hashlib.sha256(there).hexdigest()
    return page.is_file() and f'content="{written}"' in page.read_text("utf-8", "replace")


def _rows(table: bytes) -> Iterator[dict[str, str]]:
    for row in csv.DictReader(io.StringIO(table.decode(), newline="")):
        yield {name: unguarded(text) for name, text in row.items()}


def left_alone(table: Path) -> str:
    """What is said of a table that was left and says something that was not taken in."""
    return (
        f"{table}: it says something that was not taken in, and is left as it is. Fix: take it in with "
        f"`--review {table}`, or move it away, so that a fresh one is written."
    )
