"""What people say of triplets: a page and a CSV file to fill in, taken in with checks, kept as it came."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path

from cir_datasets.common.atomic import write_whole
from cir_datasets.construction.filled_tables import filled_table, read_filled
from cir_datasets.construction.fisd.triplets import Decided, ReviewedTriplet
from cir_datasets.construction.review_files import TABLE, write_review_files
from cir_datasets.construction.workspace import Row
from cir_datasets.errors import ConstructionError
from cir_datasets.pages import page_environment
from cir_metrics.errors import did_you_mean

REVIEWS = "reviews"
"""Folder of the files that were taken in, as they came."""
VERDICTS = ("", "keep", "drop", "redraw")
COUNTS = ("reference_count", "target_count", "negative_count")
FILLED_IN = ("verdict", "relative_caption", *COUNTS, "note")
COLUMNS = ("id", "seed", *FILLED_IN, "aspect", "asked", "reference", "target", "negative")
_NEEDED = ("id", "seed", "verdict")
_SHOWN = 10


def decided(folder: Path, ids: Sequence[str], seed_of: Callable[[str, int], int]) -> Iterator[Decided]:
    """What the files that were taken in say of each triplet.

    Args:
        folder: of the run.
        ids: of all triplets.
        seed_of: the seed of a triplet's pictures after so many drawings; words on other pictures are
            passed over.
    """
    said: dict[str, list[Row]] = {id: [] for id in ids}
    for path in sorted((folder / REVIEWS).glob("[0-9]*.csv")):
        for _, row in _read(path):
            if _filled(row) and row["id"] in said:
                said[row["id"]].append({"file": path.name, "seed": row["seed"], **_filled(row)})
    for id, rows in said.items():
        attempt = 0
        now: dict[str, str] = {}
        for row in rows:
            if row["seed"] != str(seed_of(id, attempt)):
                continue
            if row.get("verdict") == "redraw":
                attempt, now = attempt + 1, {}
            else:
                now |= {name: row[name] for name in FILLED_IN if name in row}
        counts = [int(now.get(name) or 0) for name in COUNTS]
        yield Decided(
            id=id,
            attempt=attempt,
            verdict=now.get("verdict", ""),
            relative_caption=" ".join(now.get("relative_caption", "").split()),
            counts=counts if any(counts) else [],
            note=" ".join(now.get("note", "").split()),
            said=rows,
        )


def take_in(
    path: str | Path,
    folder: Path,
    triplets: Mapping[str, Row],
    seed_of: Callable[[str, int], int],
    most: int,
    forget: Callable[[], object],
) -> bool:
    """Check a filled-in file and keep it beside those that were taken in before.

    Args:
        path: the file, CSV with the columns of `review.csv`; columns that are only shown may be missing.
        folder: of the run.
        triplets: what is known of those that were drawn, by id.
        seed_of: the seed of a triplet's pictures after so many drawings.
        most: the highest number that a picture can show.
        forget: called before the file is kept: a run that ends between the two makes the decisions anew.

    Returns:
        Whether it says something new; a file that was the last one taken in is not taken in again.

    Raises:
        ConstructionError: it cannot be read, or rows are malformed; the message names each, and nothing is
            taken in.
    """
    file = Path(path).expanduser()
    rows = list(_read(file))
    known = {each.id: each for each in decided(folder, list(triplets), seed_of)}
    there = sorted((folder / REVIEWS).glob("[0-9]*.csv"))
    content = file.read_bytes()
    if there and there[-1].read_bytes() == content:
        return False
    problems = []
    seen: set[str] = set()
    for line, row in rows:
        why = _problem(row, triplets, known, seed_of, most, seen)
        if why is not None:
            problems.append(f"line {line}, {row['id']!r}: {why}")
        seen.add(row["id"])
    if problems:
        shown = "\n  ".join(problems[:_SHOWN])
        more = f"\n  and {len(problems) - _SHOWN:,} more" if len(problems) > _SHOWN else ""
        raise ConstructionError(
            f"{file}: {len(problems):,} of {len(rows):,} rows cannot be taken in, so that none was.\n  "
            f"{shown}{more}"
        )
    if not any(_filled(row) for _, row in rows):
        raise ConstructionError(f"{file}: no row has a verdict or a correction. Fix: fill it in.")
    forget()
    number = int(there[-1].stem) + 1 if there else 1
    try:
        write_whole(folder / REVIEWS / f"{number:04d}.csv", content)
    except OSError as error:
        raise ConstructionError(f"{folder}: cannot be written: {error.strerror}. Fix: make room.") from error
    return True


def _problem(
    row: Mapping[str, str],
    triplets: Mapping[str, Row],
    decisions: Mapping[str, Decided],
    seed_of: Callable[[str, int], int],
    most: int,
    seen: set[str],
) -> str | None:
    """Why a row cannot be taken in, or None."""
    id = row["id"]
    if id not in triplets:
        return f"no triplet has this id.{did_you_mean(id, triplets)} Fix: correct it."
    if id in seen:
        return "it is there twice. Fix: keep one of the two."
    verdict, counts = row["verdict"], [row.get(name, "") for name in COUNTS]
    if verdict not in VERDICTS:
        known = ", ".join(VERDICTS[1:])
        like = did_you_mean(verdict, VERDICTS[1:])
        return f"verdict {verdict!r} is not known.{like} Fix: use {known}, or none."
    stale = row["seed"] != str(seed_of(id, decisions[id].attempt))
    said = [
        {name: each[name] for name in ("seed", *FILLED_IN) if name in each} for each in decisions[id].said
    ]
    if stale and _filled(row) and {"seed": row["seed"], **_filled(row)} not in said:
        return "its pictures were drawn anew since. Fix: look at them in review.html again."
    if any(counts) and "noun" not in triplets[id]:
        return "counts are of cardinality alone. Fix: leave them empty."
    wrong = next((count for count in counts if count and not _is_count(count, most)), None)
    if wrong is not None:
        return (
            f"count {wrong!r} is not a whole number from 1 to {most}. Fix: correct it, or drop the triplet."
        )
    if verdict == "redraw" and (any(counts) or row.get("relative_caption")):
        return "its pictures are to be drawn anew, and it is corrected, too. Fix: do one of the two."
    return None


def _is_count(text: str, most: int) -> bool:
    return text.isascii() and text.isdigit() and 1 <= int(text) <= most


def _filled(row: Mapping[str, str]) -> dict[str, str]:
    """What a person has filled in."""
    return {name: row[name] for name in FILLED_IN if row.get(name)}


def _read(file: Path) -> Iterator[tuple[int, dict[str, str]]]:
    for line, row in read_filled(file, _NEEDED, ConstructionError, fix="keep the head of review.csv."):
        fields = {name: value for name, value in row.items() if name in COLUMNS}
        yield line, fields | {"verdict": fields["verdict"].lower()}


def write_review(
    folder: Path,
    triplets: Sequence[ReviewedTriplet],
    most: int,
    title: str,
    *,
    given: str | Path | None = None,
) -> bool:
    """Write the page and the file to fill in: all triplets that have pictures, with what was said of them.

    A file in which people have written is left as it is.

    Args:
        folder: of the run; the page shows the pictures that lie there, and needs nothing else.
        triplets: all of them.
        most: the highest number that a picture can show.
        title: heading of the page.
        given: a file that the run took in; it is never touched.

    Returns:
        Whether a file was left that says something that was not taken in.

    Raises:
        ConstructionError: the system refuses to write there.
    """
    own = resources.files("cir_datasets") / "construction" / "fisd"
    shown = [each for each in triplets if each.images]
    template = page_environment().from_string((own / "review.html").read_text("utf-8"))

    def page(written: str) -> str:
        return str(
            template.render(
                title=title,
                written=written,
                style=(own / "review.css").read_text("utf-8"),
                script=(own / "review.js").read_text("utf-8"),
                columns=list(COLUMNS),
                counts=list(zip(COUNTS, ("Reference", "Target", "Negative"), strict=True)),
                most=most,
                rows=[(row, each) for row, each in zip(map(_row, shown), shown, strict=True)],
            )
        )

    ours = write_review_files(folder, filled_table(COLUMNS, map(_row, shown)), page, given=given)
    return not ours and _says_more(folder / TABLE, triplets)


def _says_more(path: Path, triplets: Sequence[ReviewedTriplet]) -> bool:
    """Whether a file says something that no file which was taken in has said."""
    known = {
        each.id: [_filled(_row(each)), *(_filled(row) for row in each.decision.said)] for each in triplets
    }
    try:
        return any(_filled(row) and _filled(row) not in known.get(row["id"], ()) for _, row in _read(path))
    except ConstructionError:
        return True


def _row(triplet: ReviewedTriplet) -> dict[str, str]:
    """A row of the file, with what was said of the present pictures."""
    decision = triplet.decision
    counts = [str(count) if count else "" for count in decision.counts] or [""] * len(COUNTS)
    reference, target, negative = triplet.captions
    return {
        "id": triplet.id,
        "seed": str(triplet.seed),
        "verdict": decision.verdict,
        "relative_caption": decision.relative_caption,
        **dict(zip(COUNTS, counts, strict=True)),
        "note": decision.note,
        "aspect": triplet.aspect,
        "asked": triplet.relative_caption,
        "reference": reference,
        "target": target,
        "negative": negative,
    }
