"""Answers of several people put together, and how far they agree: Krippendorff's alpha."""

from __future__ import annotations

import math
import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from cir_datasets.common.stages import FAILED, Row
from cir_datasets.construction.review.answers import checked_answers, picture_names, read_answers
from cir_datasets.construction.review.form import ReviewForm, ReviewQuestion, Scale, names_in
from cir_datasets.errors import missing_extra


@dataclass(frozen=True)
class Review:
    """What people said of the items of a form.

    Args:
        answers: all answers, those that are refused with the reason (`checked_answers`).
        merged: a row a unit (`merged_answers`).
        alpha: agreement by question (`agreement`).
    """

    answers: tuple[Row, ...]
    merged: tuple[Row, ...]
    alpha: dict[str, float | None]


def import_answers(form: ReviewForm, items: Sequence[Row], files: Sequence[Path], *, run: str = "") -> Review:
    """Read, check, merge and compare the answers of any number of files.

    Args:
        form: what was asked.
        items: all items that were given out.
        files: what people handed in.
        run: of the items.

    Raises:
        RecordError: a file cannot be read.
        MissingExtraError: several people answered, and krippendorff is not installed.
    """
    # Who gives no name is told apart by the file; browsers save all under one name, in folders of their own.
    together = os.path.commonpath([file.absolute().parent for file in files]) if files else ""
    answers = (
        {**row, "annotator": row["annotator"] or os.path.relpath(file.absolute(), together)}
        for file in files
        for row in read_answers(form, file)
    )
    rows = checked_answers(form, answers, items, run=run)
    return Review(tuple(rows), tuple(merged_answers(form, items, rows)), agreement(form, items, rows))


def merged_answers(form: ReviewForm, items: Sequence[Row], answers: Sequence[Row]) -> Iterator[Row]:
    """A row a unit: how many answered it and, by column, what they say together.

    Of choices it is what most say, none where two are as frequent; of numbers and stars the median; of texts
    the first, the others are in `further`; pictures are in a column where more than half of the people put
    them.

    Args:
        form: what was asked.
        items: all items that were given out.
        answers: rows of `checked_answers`; refused ones do not count.
    """
    unit = form.unit or form.id
    by_unit: dict[str, list[Row]] = {str(item[unit]): [] for item in items}
    for row in answers:
        if FAILED not in row:
            by_unit[row[unit]].append(row)
    for name, rows in by_unit.items():
        found: Row = {unit: name, "answers": len(rows)}
        for question in form.questions:
            for column in question.columns:
                said = [row[column] for row in rows if row[column]]
                found[column] = _together(question, said, len(rows))
            if question.kind == "text" and len(said) > 1:
                found.setdefault("further", {})[question.name] = said[1:]
        yield found


def _together(question: ReviewQuestion, said: Sequence[str], people: int) -> Any:
    if question.kind == "sort":
        votes = Counter(image for text in said for image in names_in(text))
        return [image for image, number in votes.items() if 2 * number > people]
    if not said:
        return None
    if question.kind == "text":
        return said[0]
    if question.kind == "choice":
        (first, most), *rest = Counter(said).most_common(2)
        return None if rest and rest[0][1] == most else first
    return median(map(int, said))


def agreement(form: ReviewForm, items: Sequence[Row], answers: Sequence[Row]) -> dict[str, float | None]:
    """Krippendorff's alpha of each question but texts; None where nothing is compared, or all is the same.

    Args:
        form: what was asked.
        items: all items that were given out.
        answers: rows of `checked_answers`; refused ones do not count.

    Raises:
        MissingExtraError: several people answered, and krippendorff is not installed.
    """
    good = [row for row in answers if FAILED not in row]
    known = {str(item[form.id]): item for item in items}
    people = list(dict.fromkeys(row["annotator"] for row in good))
    unit = form.unit or form.id
    found: dict[str, float | None] = {}
    for question in form.questions:
        if question.level is None:
            continue
        by_unit: defaultdict[tuple[str, str], dict[str, float]] = defaultdict(dict)
        for row in good:
            for part, value in _codes(question, row, known[row[form.id]]):
                by_unit[row[unit], part][row["annotator"]] = value
        values = [[of.get(name, math.nan) for of in by_unit.values()] for name in people]
        found[question.name] = krippendorff_alpha(values, question.level) if len(people) > 1 else None
    return found


def _codes(question: ReviewQuestion, row: Row, item: Row) -> Iterator[tuple[str, float]]:
    """The parts of an answer as numbers: one, or one for each picture that is sorted."""
    if question.kind == "sort":
        columns = [names_in(row[column]) for column in question.columns]
        for image in picture_names(item, question.pictures):
            yield image, next((at for at, named in enumerate(columns) if image in named), len(columns))
    elif text := row[question.name]:
        yield "", list(question.choices).index(text) if question.kind == "choice" else int(text)


def krippendorff_alpha(values: Sequence[Sequence[float]], level: Scale = "ordinal") -> float | None:
    """Agreement of people or judges; None where their values do not vary, or nothing has two.

    Args:
        values: a row a person, NaN where one gave none.
        level: what differences mean.

    Raises:
        MissingExtraError: krippendorff is not installed.

    Example:
        >>> krippendorff_alpha([[1, 2, 5, 4], [1, 2, 5, 4]])
        1.0
    """
    try:
        import krippendorff
    except ImportError as error:
        raise missing_extra("the agreement of judges", "krippendorff", "construction") from error
    units = [[one for one in unit if not math.isnan(one)] for unit in zip(*values, strict=True)]
    compared = [one for unit in units if len(unit) > 1 for one in unit]
    if len(set(compared)) < 2:
        return None
    return float(
        krippendorff.alpha(reliability_data=[list(row) for row in values], level_of_measurement=level)
    )
