"""What people say of triplets, by the form `fisd`: taken in with checks, kept as it came."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from cir_datasets.common.stages import Row
from cir_datasets.construction.fisd.triplets import ROLES, Decided, ReviewedTriplet
from cir_datasets.construction.review import page
from cir_datasets.construction.review.answers import accepted_answers, keep_file, kept_files, read_answers
from cir_datasets.construction.review.form import ReviewForm, load_form
from cir_datasets.construction.workspace import BENCHMARK
from cir_datasets.errors import ConstructionError
from cir_datasets.registry.folder_card import PICTURES

REVIEWS = "reviews"
"""Folder of the files that were taken in, as they came."""
COUNTS = tuple(f"{role}_count" for role in ROLES)


def review_form(most: int) -> ReviewForm:
    """The form, with the highest number that a picture can show."""
    form = load_form("fisd")
    for name in COUNTS:
        form = form.changed(name, max=most)
    return form


def decided(folder: Path, ids: Sequence[str], seed_of: Callable[[str, int], int]) -> Iterator[Decided]:
    """What the files that were taken in say of each triplet.

    Args:
        folder: of the run.
        ids: of all triplets.
        seed_of: the seed of a triplet's pictures after so many drawings; words on other pictures are
            passed over.
    """
    said: dict[str, list[Row]] = {id: [] for id in ids}
    form = load_form("fisd")
    for path in kept_files(folder / REVIEWS):
        for row in read_answers(form, path, ConstructionError):
            answers = form.answers_in(row)
            if answers and row["id"] in said:
                said[row["id"]].append({"file": path.name, "seed": row["seed"], **answers})
    for id, rows in said.items():
        attempt = 0
        now: dict[str, str] = {}
        for row in rows:
            if row["seed"] != str(seed_of(id, attempt)):
                continue
            if row.get("verdict") == "redraw":
                attempt, now = attempt + 1, {}
            else:
                now |= form.answers_in(row)
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
        path: the file, as the page saved it, or CSV with the columns of `review.csv`; columns that are only
            shown may be missing.
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
    file, form = Path(path).expanduser(), review_form(most)
    there = kept_files(folder / REVIEWS)
    known = {each.id: each for each in decided(folder, list(triplets), seed_of)}

    def stale(answer: Row, item: Row) -> str | None:
        decision, said = known[answer["id"]], form.answers_in(answer)
        if not said or answer["seed"] == str(seed_of(answer["id"], decision.attempt)):
            return None
        before = [(one["seed"], form.answers_in(one)) for one in decision.said]
        again = (answer["seed"], said) in before
        return None if again else "its pictures were drawn anew since, look at them in review.html again"

    if there and file.is_file() and there[-1].read_bytes() == file.read_bytes():
        return False
    rows = accepted_answers(form, file, triplets, stale)
    if not any(map(form.answers_in, rows)):
        raise ConstructionError(f"{file}: no row has a verdict or a correction. Fix: fill it in.")
    content = file.read_bytes()
    forget()
    keep_file(folder / REVIEWS, content, ".json" if content.lstrip().startswith(b"{") else ".csv")
    return True


def write_review(
    folder: Path,
    triplets: Sequence[ReviewedTriplet],
    most: int,
    title: str,
    *,
    taken_in: str | Path | None = None,
) -> bool:
    """Write the page and the table to fill in: all triplets that have pictures, with what was said of them.

    Args:
        folder: of the run; the page shows the pictures that lie there, and needs nothing else.
        triplets: all of them.
        most: the highest number that a picture can show.
        title: heading of the page.
        taken_in: a file that the run took in; it is never touched.

    Returns:
        Whether a file was left that says something that was not taken in.

    Raises:
        ConstructionError: the system refuses to write there.
    """
    items = [_item(each) for each in triplets if each.images]
    return page.write_review(folder, review_form(most), items, title, taken_in=taken_in)


def _item(triplet: ReviewedTriplet) -> Row:
    """A triplet as the form shows it, with what was said of the present pictures."""
    decision = triplet.decision
    item = {
        "id": triplet.id,
        "seed": triplet.seed,
        page.VERSION: triplet.seed,
        page.SAID: decision.said,
        "verdict": decision.verdict,
        "relative_caption": decision.relative_caption,
        "note": decision.note,
        "aspect": triplet.aspect,
        "asked": triplet.relative_caption,
        "failed": triplet.failed,
        "noun": triplet.noun,
    }
    for place, role in enumerate(ROLES):
        caption = item[role] = triplet.captions[place]
        file = f"{BENCHMARK}/{PICTURES}/{triplet.images[place]}"
        item[f"{role}_picture"] = {"picture": file, "text": caption}
        if triplet.numbers:
            item[f"{role}_number"] = triplet.numbers[place]
            item[f"{role}_count"] = (decision.counts[place] if decision.counts else 0) or None
    return item
