"""What people filled in: files read, every answer checked, and none lost.

A refused answer keeps its words and has the reason beside it. Files are JSON or CSV as the pages save them,
tables that a spreadsheet saved, or the results of Amazon Mechanical Turk.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from cir_datasets.common.atomic import write_errors, write_whole
from cir_datasets.common.stages import FAILED, Row
from cir_datasets.construction.filled_tables import delimiter_of, first_columns, read_filled, read_text
from cir_datasets.construction.review.form import COMMON, ReviewForm, ReviewQuestion, names_in, plain
from cir_datasets.errors import ConstructionError, RecordError
from cir_metrics.errors import CirError, did_you_mean

WITHOUT_BLANKS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"
)
"""Characters of scripts without blanks between words (Chinese, Japanese, Thai): each counts as a word."""

LONGEST_NAME = 200
"""Characters of an item's, a person's or a run's name at most."""

_CROWD = {"annotator": "WorkerId", "seconds": "WorkTimeInSeconds"}
"""Columns of Amazon Mechanical Turk's results; others are `Input.NAME` and `Answer.NAME`."""
_FAULTS_NAMED = 10
_WORD = re.compile(rf"(?=\w)[{WITHOUT_BLANKS}]|[^\W{WITHOUT_BLANKS}]+")
_UNSEEN = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters, and those that turn the direction of what follows."""


def words_of(text: str) -> list[str]:
    """The words of a text without case and punctuation.

    Example:
        >>> words_of("Two  dogs, not one!")
        ['two', 'dogs', 'not', 'one']
    """
    return _WORD.findall(text.casefold())


def read_answers(form: ReviewForm, path: Path, error: Callable[[str], CirError] = RecordError) -> list[Row]:
    """The answers of a file, as texts.

    Args:
        form: what was asked.
        path: the file.
        error: makes the error of a message.

    Returns:
        Rows with file, place in it, the form's id, keys and answers, annotator, run and seconds; what a file
        lacks is "" or, of seconds, null.

    Raises:
        CirError: of `error`: the file cannot be read, or is in neither form.
    """
    text = read_text(path, error)
    if text.lstrip().startswith(("{", "[")):
        rows = [(f"answer {at}", row) for at, row in enumerate(_of_json(form, path, text, error), start=1)]
    else:
        rows = [(f"line {line}", row) for line, row in _of_csv(form, path, text, error)]
    return [_plain_row(form, path, place, row, error) for place, row in rows]


def _of_json(
    form: ReviewForm, path: Path, text: str, error: Callable[[str], CirError]
) -> list[Mapping[str, Any]]:
    try:
        whole = orjson.loads(text)
    except orjson.JSONDecodeError as fault:
        raise error(f"{path}: it is not JSON ({fault}). Fix: save the answers again.") from fault
    answers = whole.get("answers") if isinstance(whole, dict) else None
    if not isinstance(answers, list) or not all(isinstance(each, dict) for each in answers):
        raise error(f'{path}: it has no list "answers". Fix: name a file that a page saved.')
    if whole.get("form", form.name) != form.name:
        raise error(
            f"{path}: it answers the form {whole['form']!r}, not {form.name!r}. Fix: name a file of this one."
        )
    return [{**{name: whole.get(name) for name in ("run", "annotator")}, **each} for each in answers]


def _of_csv(
    form: ReviewForm, path: Path, text: str, error: Callable[[str], CirError]
) -> list[tuple[int, Mapping[str, Any]]]:
    names = {name: (name, f"Input.{name}") for name in (form.id, *form.keys, "run")}
    names |= {name: (name, f"Answer.{name}") for name in form.columns}
    names |= {name: (name, other) for name, other in _CROWD.items()}
    heads = set(first_columns(text, delimiter_of(text)))
    missing = [name for name in form.required if heads.isdisjoint(names[name])]
    if heads and missing:
        raise error(
            f"{path}: line 1 does not name the columns {', '.join(missing)}. Fix: name a file that a page "
            "saved, or CSV with these columns (or Amazon Mechanical Turk's, which begin with Input. and "
            "Answer.), parted by commas, semicolons or tabs."
        )
    rows = read_filled(path, (), error, fix="name a file of answers.")
    if not rows:
        raise error(f"{path}: it has no rows. Fix: name a file of answers.")
    return [
        (line, {name: next((row[one] for one in of if one in row), None) for name, of in names.items()})
        for line, row in rows
    ]


def _plain_row(
    form: ReviewForm, path: Path, place: str, row: Mapping[str, Any], error: Callable[[str], CirError]
) -> Row:
    where = f"{path}, {place}"
    lists = {column for one in form.questions if one.kind == "sort" for column in one.columns}
    numbers = {one.name for one in form.questions if one.kind in {"number", "stars"}} | set(form.keys)
    found: Row = {"file": path.name, "place": place}
    names = [name for name in COMMON if name != "seconds"]
    for name in (form.id, *form.keys, *form.columns, *names):
        value = row.get(name)
        kinds = str | int if name in numbers else str | list if name in lists else str
        if value is not None and not isinstance(value, kinds):
            raise error(f"{where}: {name} is not text. Fix: write it in quotation marks.")
        found[name] = plain(value)
        if name not in form.columns and len(found[name]) > LONGEST_NAME:
            raise error(f"{where}: {name} is longer than {LONGEST_NAME} characters. Fix: shorten it.")
    for question in form.questions:
        if question.kind == "choice":
            spelled = {value.casefold(): value for value in question.choices}
            found[question.name] = spelled.get(found[question.name].casefold(), found[question.name])
    try:
        # Spreadsheets of some countries write 4,2.
        seconds = float(str(row.get("seconds") or 0).replace(",", "."))
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise error(f"{where}: seconds is not a number from 0. Fix: correct it, or leave it empty.")
    return {**found, "seconds": round(seconds, 1) or None}


def faults_of(form: ReviewForm, answer: Mapping[str, Any], item: Mapping[str, Any] | None) -> Iterator[str]:
    """What is wrong with an answer, whatever the others say.

    Args:
        form: what was asked.
        answer: a row of `read_answers`.
        item: what it answers; None where there is no such item.
    """
    if item is None:
        yield f"there is no such {form.item[0]}"
        return
    counts = form.answers_in(answer)
    ended = any(counts.get(one.name) in one.ends for one in form.questions)
    asked = list(form.of_item(item))
    for question in form.questions:
        name = question.name
        texts = [counts.get(column, "") for column in question.columns]
        ends = next(
            (
                other
                for other, values in question.unless.items()
                if counts.get(other) and (not values or counts[other] in values)
            ),
            None,
        )
        if any(texts) and question not in asked:
            yield f"{name} is not asked of this {form.item[0]}"
        elif any(texts) and ends is not None:
            yield f"{name} is answered, and {ends} is {counts[ends]!r}, which does without it"
        elif any(texts):
            yield from _faults_of_value(form, question, texts, item)
        elif question.needed and ends is None and not ended and question in asked:
            yield f"{name} is empty"


def _faults_of_value(
    form: ReviewForm, question: ReviewQuestion, texts: Sequence[str], item: Mapping[str, Any]
) -> Iterator[str]:
    """What is wrong with an answer to a question; `texts` are those of its columns."""
    name, text = question.name, texts[0]
    if question.kind == "text":
        yield from _faults_of_text(form, question, text)
    elif question.kind == "sort":
        named = [image for each in texts for image in names_in(each)]
        known = picture_names(item, question.pictures)
        unknown = [image for image in dict.fromkeys(named) if image not in known]
        yield from (f"{image} is not one of its {question.pictures}" for image in unknown)
        if len(set(named)) < len(named):
            yield "an image is named twice"
        if len(names_in(text)) < question.min:
            yield f"{question.columns[0]} names fewer than {question.min}"
        if question.max and len(names_in(text)) > question.max:
            yield f"{question.columns[0]} names more than {question.max}"
    elif question.kind == "choice":
        if text not in question.choices:
            like = did_you_mean(text, question.choices)
            yield f"{name} {text[:40]!r} is not known.{like} Use one of {', '.join(question.choices)}"
    else:
        low, high = question.lowest, math.inf if question.highest is None else question.highest
        if not re.fullmatch(r"-?[0-9]{1,15}", text) or not low <= int(text) <= high:
            span = f"{low} on" if question.highest is None else f"{low} to {high}"
            yield f"{name} {text[:40]!r} is not a whole number from {span}"


def _faults_of_text(form: ReviewForm, question: ReviewQuestion, text: str) -> Iterator[str]:
    name, unseen, words = question.name, _UNSEEN.search(text), words_of(text)
    if unseen:
        yield f"{name} holds U+{ord(unseen[0]):04X}, a character that is not seen"
    elif question.max and len(text) > question.max:
        yield f"{name} is longer than {question.max:,} characters"
    elif words in [words_of(example) for example in form.examples]:
        yield f"{name} is copied from the instructions"
    elif (number := len(set(words))) < question.min_words:
        yield f"{name} is too short: {number} different words, at least {question.min_words} are asked for"


def picture_names(item: Mapping[str, Any], field: str) -> list[str]:
    """What answers call the pictures of a field: their `name`, or their file."""
    value = item.get(field) or ()
    pictures = value if isinstance(value, list | tuple) else [value]
    return [
        str(one.get("name", one["picture"])) if isinstance(one, Mapping) else str(one) for one in pictures
    ]


def checked_answers(
    form: ReviewForm, answers: Iterable[Row], items: Sequence[Row], *, run: str = ""
) -> list[Row]:
    """The answers in order, each with the unit of its item, and with a reason where it is refused.

    A page saves all its answers each time: what is there again is passed over, and what its annotator has
    corrected takes the place of what it was.

    Args:
        form: what was asked.
        answers: rows of `read_answers`, of all files.
        items: all items that were given out.
        run: of these; an answer to another one is refused.
    """
    known = {str(item[form.id]): item for item in items}
    unit = form.unit or form.id
    by_item: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
    rows: list[Row] = []
    for answer in answers:
        item = known.get(answer[form.id])
        row = dict(answer)
        if unit != form.id:
            row[unit] = item and str(item[unit])
        if row["run"] and run and row["run"] != run:
            row[FAILED] = f"it answers {form.item[1]} of another run"
        elif why := next(faults_of(form, row, item), None) or _other_keys(form, row, item):
            row[FAILED] = why
        before_it = by_item[row["run"] or run, row[form.id]]
        before = next((one for one in before_it if _of_one_person(one, row)), None)
        if before is None:
            before_it.append(row)
            rows.append(row)
        elif FAILED not in row or FAILED in before:
            _correct(form, before, row)
    for question in form.questions:
        if question.kind == "text":
            written = [row for row in rows if FAILED not in row and row[question.name]]
            for row, why in _alike(form, question, written, known):
                row.setdefault(FAILED, why)
    if form.one_person:
        for some in by_item.values():
            for row in [row for row in some if FAILED not in row][1:]:
                row[FAILED] = "it was answered before, by another annotator"
    return rows


def _other_keys(form: ReviewForm, answer: Row, item: Row | None) -> str | None:
    other = next((key for key in form.keys if item is not None and answer[key] != plain(item[key])), None)
    return None if other is None else f"its {other} is not that of the {form.item[0]} now: look at it again"


def _of_one_person(one: Row, two: Row) -> bool:
    """Whether two answers to an item are by the same person, who may have given a name in one alone."""
    return one["annotator"] == two["annotator"] or not one["annotator"] or not two["annotator"]


def _correct(form: ReviewForm, before: Row, row: Row) -> None:
    """Put a later answer in the place of an earlier one; one that says the same stays as it was."""
    name = row["annotator"] or before["annotator"]
    if any(row[column] != before[column] for column in (*form.keys, *form.columns)):
        before.clear()
        before.update(row)
    before["annotator"] = name


def _alike(
    form: ReviewForm, question: ReviewQuestion, rows: Sequence[Row], items: Mapping[str, Row]
) -> Iterator[tuple[Row, str]]:
    """What is wrong with texts beside others: the same words again and again, or another person's."""
    if not (question.most_alike or question.distinct):
        return
    unit = form.unit or form.id
    by_words: defaultdict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        by_words[tuple(words_of(row[question.name]))].append(row)
    for alike in by_words.values():
        units: defaultdict[str, set[str]] = defaultdict(set)
        for row in alike:
            units[row["annotator"]].add(row[unit])
        one_each = {row[unit]: items[row[form.id]] for row in alike}
        shared = Counter(item.get(question.distinct) for item in one_each.values())
        first = alike[0]
        for row in alike:
            many = len(units[row["annotator"]])
            if question.most_alike and many > question.most_alike:
                yield row, f"the same words for {many} {form.item[1]}"
            elif question.distinct and shared[items[row[form.id]].get(question.distinct)] > 1:
                yield row, f"the same words for several {form.item[1]} with this {question.distinct}"
            elif row["annotator"] != first["annotator"] and row[unit] not in units[first["annotator"]]:
                yield row, f"the words of another annotator's {form.item[0]} {first[form.id]}"


def accepted_answers(
    form: ReviewForm,
    path: Path,
    items: Mapping[str, Row],
    also: Callable[[Row, Row], str | None] = lambda answer, item: None,
) -> list[Row]:
    """The answers of a file that is taken in as a whole or not at all; empty rows are passed over.

    Args:
        form: what was asked.
        path: the file.
        items: by id.
        also: what else is wrong with an answer to an item, if anything.

    Raises:
        ConstructionError: the file cannot be read, or rows are malformed; the message names each.
    """
    rows = read_answers(form, path, ConstructionError)
    seen: set[str] = set()
    faults = []
    for row in rows:
        item = items.get(row[form.id])
        if item is None:
            why = [f"there is no such {form.item[0]}.{did_you_mean(row[form.id], items)}"]
        else:
            why = list(faults_of(form, row, item)) if form.answers_in(row) else []
            why += filter(None, [also(row, item)])
        if row[form.id] in seen:
            why.append("it is there twice")
        seen.add(row[form.id])
        where = f"{row['place']}, {form.item[0]} {row[form.id]!r}"
        faults += [f"{where}: {fault}{'' if fault[-1] in '.?' else '.'}" for fault in why]
    if faults:
        shown = "\n  ".join(faults[:_FAULTS_NAMED])
        more = f"\n  and {len(faults) - _FAULTS_NAMED:,} more" if len(faults) > _FAULTS_NAMED else ""
        raise ConstructionError(
            f"{path}: {len(faults):,} faults in {len(rows):,} rows, so that none was taken in:\n  "
            f"{shown}{more}\nFix: correct these rows."
        )
    return rows


def kept_files(folder: Path) -> list[Path]:
    """The files of answers that were taken in, in order; what a killed call left begins with a dot."""
    return sorted(path for path in folder.glob("[0-9][0-9][0-9][0-9]*") if path.is_file())


def kept_number(path: Path) -> int:
    """The place of a file among those that were taken in."""
    return int(path.name[:4])


def keep_file(folder: Path, content: bytes, name: str) -> None:
    """Keep a file of answers as it came, behind those that were taken in before.

    Args:
        folder: of the files that were taken in.
        content: its bytes.
        name: what follows its number.

    Raises:
        ConstructionError: the system refuses to write there.
    """
    # Not their count: somebody may have removed one, and no file is written over.
    number = max(map(kept_number, kept_files(folder)), default=0) + 1
    with write_errors(folder, ConstructionError):
        write_whole(folder / f"{number:04d}{name}", content)
