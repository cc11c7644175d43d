"""What annotators wrote: files read, every answer checked, and none lost.

A refused answer keeps its words and has the reason beside it; its pair is asked for again. Where a pair has
several good captions, the first one counts and the others stay in the rows.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import orjson

from cir_datasets.common.paths import regular
from cir_datasets.construction.cirr.tasks import EXAMPLES, MARKS, WITHOUT_BLANKS
from cir_datasets.construction.filled_tables import read_filled
from cir_datasets.construction.workspace import FAILED, Row
from cir_datasets.errors import RecordError
from cir_metrics.errors import CallError

LONGEST = 1000
"""Characters of a caption at most."""

LONGEST_NAME = 200
"""Characters of a task's or an annotator's name at most."""

SEVERAL_TARGETS = "the same words lead from this reference to several targets"

_COLUMNS = {
    "task": ("task", "Input.task"),
    "caption": ("caption", "Answer.caption"),
    "mark": ("mark", "Answer.mark"),
    "annotator": ("annotator", "WorkerId"),
    "seconds": ("seconds", "WorkTimeInSeconds"),
    "run": ("run", "Input.run"),
}
"""Columns of a CSV file by field: ours, and those of Amazon Mechanical Turk's results."""

_AGAIN = re.compile(r"r(?P<round>[0-9]{1,4})-1-(?P<pair>[0-9]+-[0-9]+)")
_WORD = re.compile(rf"(?=\w)[{WITHOUT_BLANKS}]|[^\W{WITHOUT_BLANKS}]+")
_UNSEEN = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters, and those that turn the direction of what follows."""


@dataclass(frozen=True)
class AnswerLimits:
    """When an answer is refused.

    Args:
        least_words: a caption with fewer different words is too short.
        most_alike: pairs for which one annotator may write the same caption.

    Raises:
        CallError: a number is below 1.
    """

    least_words: int = 3
    most_alike: int = 2

    def __post_init__(self) -> None:
        """Refuse numbers below 1."""
        if min(self.least_words, self.most_alike) < 1:
            raise CallError("limits of answers are 1 or more. Fix: see --min-words and --max-alike.")

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


def read_answers(path: Path) -> list[Row]:
    """The answers of a file that a page saved, or of a crowd platform's CSV.

    Returns:
        Rows with file, place in it, task, caption, mark, annotator, run, seconds; what a file lacks is "" or
        null.

    Raises:
        RecordError: the file cannot be read, or is in neither form.
    """
    try:
        content = regular(path).read_bytes()
    except OSError as error:
        raise RecordError(
            f"{path}: cannot be read: {error.strerror}. Fix: name a file of answers."
        ) from error
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RecordError(
            f"{path}: byte {error.start} is not UTF-8. Fix: save it as UTF-8 (spreadsheets: as CSV UTF-8)."
        ) from error
    if text.lstrip().startswith(("{", "[")):
        answers = enumerate(_of_json(path, text), start=1)
        return [_plain(path, f"answer {number}", row) for number, row in answers]
    return [_plain(path, f"line {line}", row) for line, row in _of_csv(path)]


def _of_json(path: Path, text: str) -> list[Mapping[str, Any]]:
    try:
        whole = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise RecordError(f"{path}: it is not JSON ({error}). Fix: save the answers again.") from error
    answers = whole.get("answers") if isinstance(whole, dict) else None
    if not isinstance(answers, list) or not all(isinstance(each, dict) for each in answers):
        raise RecordError(f'{path}: it has no list "answers". Fix: name a file that a page of tasks saved.')
    common = {name: whole.get(name) for name in ("run", "annotator")}
    return [{**common, **each} for each in answers]


def _of_csv(path: Path) -> list[tuple[int, Mapping[str, Any]]]:
    rows = read_filled(path, (), RecordError, fix="name a file of answers.")
    if not rows:
        raise RecordError(f"{path}: it has no rows. Fix: name a file that a page of tasks saved, or CSV.")
    head = set(rows[0][1])
    if not {"task", "Input.task"} & head or not {"caption", "Answer.caption"} & head:
        raise RecordError(
            f"{path}: line 1 does not name the columns task and caption. Fix: name a file that a page of "
            "tasks saved, or a CSV file with these columns (or Input.task and Answer.caption), parted by "
            "commas or semicolons."
        )
    return [
        (
            line,
            {
                field: next((row[name] for name in names if name in row), None)
                for field, names in _COLUMNS.items()
            },
        )
        for line, row in rows
    ]


def _plain(path: Path, place: str, row: Mapping[str, Any]) -> Row:
    where = f"{path}, {place}"
    words = {name: row.get(name) or "" for name in ("task", "caption", "mark", "annotator", "run")}
    wrong = next((name for name, value in words.items() if not isinstance(value, str)), None)
    if wrong is not None:
        raise RecordError(f"{where}: {wrong} is not text. Fix: write it in quotation marks.")
    long = next(
        (name for name in ("task", "mark", "annotator", "run") if len(words[name]) > LONGEST_NAME), ""
    )
    if long:
        raise RecordError(f"{where}: {long} is longer than {LONGEST_NAME} characters. Fix: shorten it.")
    try:
        # Spreadsheets of some countries write 4,2.
        seconds = float(str(row.get("seconds") or 0).replace(",", "."))
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise RecordError(f"{where}: seconds is not a number from 0. Fix: correct it, or leave it empty.")
    return {
        "file": path.name,
        "place": place,
        **words,
        "caption": " ".join(words["caption"].split()),
        "seconds": round(seconds, 1) or None,
    }


def further_tasks(answers: Sequence[Row], pairs: Sequence[Row], *, rounds: int) -> list[Row]:
    """Of the tasks that were given out again (`r1-...`, `r2-...`), those that answers name.

    Args:
        answers: rows of `read_answers`.
        pairs: all pairs.
        rounds: how often tasks were given out again at most.
    """
    known = {pair["pair"]: pair for pair in pairs}
    found = {}
    for answer in answers:
        named = _AGAIN.fullmatch(answer["task"])
        if named is not None and 1 <= int(named["round"]) <= rounds and named["pair"] in known:
            found[answer["task"]] = {"task": answer["task"], **known[named["pair"]]}
    return list(found.values())


def checked_answers(
    answers: Sequence[Row], tasks: Sequence[Row], limits: AnswerLimits, *, run: str
) -> list[Row]:
    """The answers in order, each with its pair, and with a reason where it is refused.

    A page saves all its answers each time: what is there again is passed over, and what its annotator has
    corrected takes the place of what it was.

    Args:
        answers: rows of `read_answers`, of all files.
        tasks: all tasks that were given out.
        limits: when an answer is refused.
        run: that of the tasks.
    """
    known = {task["task"]: task for task in tasks}
    by_task: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
    rows: list[Row] = []
    for answer in answers:
        task = known.get(answer["task"])
        row = {**answer, "pair": task and task["pair"]}
        why = _alone(row, task, limits, run)
        if why is not None:
            row[FAILED] = why
        given = by_task[row["run"] or run, row["task"]]
        before = next((one for one in given if _of_one_person(one, row)), None)
        if before is None:
            given.append(row)
            rows.append(row)
        elif FAILED not in row or FAILED in before:
            _correct(before, row)
    for row, why in _together([row for row in rows if FAILED not in row and row["caption"]], known, limits):
        row.setdefault(FAILED, why)
    for given in by_task.values():
        for row in [row for row in given if FAILED not in row][1:]:
            row[FAILED] = "the task was answered before, by another annotator"
    return rows


def _of_one_person(one: Row, two: Row) -> bool:
    """Whether two answers to a task are by the same annotator, who may have given a name in one alone."""
    return one["annotator"] == two["annotator"] or not one["annotator"] or not two["annotator"]


def _correct(before: Row, row: Row) -> None:
    """Put a later answer in the place of an earlier one; one that says the same stays as it was."""
    name = row["annotator"] or before["annotator"]
    if any(row[field] != before[field] for field in ("caption", "mark")):
        before.clear()
        before.update(row)
    before["annotator"] = name


def _alone(row: Row, task: Row | None, limits: AnswerLimits, run: str) -> str | None:
    """Why an answer is refused whatever the others say, or None."""
    caption, mark = row["caption"], row["mark"]
    if row["run"] and row["run"] != run:
        return "it answers tasks of another run"
    if task is None:
        return "there is no such task"
    if mark and mark not in MARKS:
        return f"there is no reason {mark[:40]!r}"
    if mark:
        return "it has a caption, and a reason why there is none" if caption else None
    if not caption:
        return "it is empty"
    unseen = _UNSEEN.search(caption)
    if unseen:
        return f"it holds U+{ord(unseen[0]):04X}, a character that is not seen"
    if len(caption) > LONGEST:
        return f"it is longer than {LONGEST:,} characters"
    if normalised(caption) in {normalised(example) for example in EXAMPLES}:
        return "it is copied from the instructions"
    words = len(set(normalised(caption).split()))
    if words < limits.least_words:
        return f"it is too short: {words} different words, at least {limits.least_words} are asked for"
    return None


def _together(
    rows: Sequence[Row], tasks: Mapping[str, Row], limits: AnswerLimits
) -> Iterator[tuple[Row, str]]:
    """What is wrong with captions beside others."""
    by_words: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_words[normalised(row["caption"])].append(row)
    for alike in by_words.values():
        pairs_of: defaultdict[str, set[str]] = defaultdict(set)
        for row in alike:
            pairs_of[row["annotator"]].add(row["pair"])
        references = Counter(tasks[row["task"]]["reference"] for row in _one_a_pair(alike))
        first = alike[0]
        for row in alike:
            if len(pairs_of[row["annotator"]]) > limits.most_alike:
                yield row, f"the same words for {len(pairs_of[row['annotator']])} pairs"
            elif references[tasks[row["task"]]["reference"]] > 1:
                yield row, SEVERAL_TARGETS
            elif row["annotator"] != first["annotator"] and row["pair"] not in pairs_of[first["annotator"]]:
                yield row, f"the words of another annotator's task {first['task']}"


def _one_a_pair(rows: Sequence[Row]) -> list[Row]:
    return list({row["pair"]: row for row in rows}.values())


def normalised(caption: str) -> str:
    """Words without case and punctuation.

    Example:
        >>> normalised("Two  dogs, not one!")
        'two dogs not one'
    """
    return " ".join(_WORD.findall(caption.casefold()))


def captions_of(pairs: Sequence[Row], answers: Sequence[Row]) -> list[Row]:
    """A row for each pair: its caption, or why it has none.

    Args:
        pairs: all pairs.
        answers: rows of `checked_answers`.
    """
    good: defaultdict[str, list[Row]] = defaultdict(list)
    refused = Counter(row["pair"] for row in answers if FAILED in row)
    for row in answers:
        if FAILED not in row:
            good[row["pair"]].append(row)
    rows = []
    for pair in pairs:
        written = [row for row in good[pair["pair"]] if row["caption"]]
        marked = [row["mark"] for row in good[pair["pair"]] if row["mark"]]
        row = {"pair": pair["pair"]}
        if marked and len(marked) >= len(written):
            row |= {"mark": marked[0], FAILED: f"annotators say: {MARKS[marked[0]]}"}
        elif written:
            further = [each["caption"] for each in written[1:]]
            row |= {"caption": written[0]["caption"], "by": written[0]["annotator"], "further": further}
        else:
            times = refused[pair["pair"]]
            row[FAILED] = f"{times} answers, all refused" if times else "no answer yet"
        rows.append(row)
    return rows


def open_pairs(pairs: Sequence[Row], captions: Sequence[Row]) -> list[Row]:
    """Pairs that still need a caption: those without one, and without a reason to skip them."""
    needed = {row["pair"] for row in captions if FAILED in row and "mark" not in row}
    return [pair for pair in pairs if pair["pair"] in needed]


def annotators_of(answers: Sequence[Row]) -> list[Row]:
    """Of each annotator: answers, refused ones, marks, and medians of words and seconds."""
    by: defaultdict[str, list[Row]] = defaultdict(list)
    for row in answers:
        by[row["annotator"]].append(row)
    found = []
    for name, rows in sorted(by.items()):
        words = [len(_WORD.findall(row["caption"])) for row in rows if row["caption"]]
        seconds = [row["seconds"] for row in rows if row["seconds"]]
        found.append(
            {
                "annotator": name,
                "answers": len(rows),
                "refused": sum(FAILED in row for row in rows),
                "marked": sum(bool(row["mark"]) for row in rows),
                "median_words": median(words) if words else None,
                "median_seconds": round(median(seconds), 1) if seconds else None,
            }
        )
    return found


def agreement(answers: Sequence[Row]) -> dict[str, Any]:
    """How alike the answers of different annotators to one pair are.

    Returns:
        `pairs`: those that two or more annotators answered; `decided_alike`: the share of their couples that
        both wrote, or both marked; `shared_words`: of couples that wrote, the mean share of words in common.
    """
    by_pair: defaultdict[str, dict[str, Row]] = defaultdict(dict)
    for row in answers:
        if FAILED not in row:
            by_pair[row["pair"]].setdefault(row["annotator"], row)
    couples = [
        (one, two)
        for rows in by_pair.values()
        for at, one in enumerate(rows.values())
        for two in list(rows.values())[at + 1 :]
    ]
    alike = [bool(one["mark"]) == bool(two["mark"]) for one, two in couples]
    words = [
        _common(one["caption"], two["caption"]) for one, two in couples if one["caption"] and two["caption"]
    ]
    return {
        "pairs": sum(len(rows) > 1 for rows in by_pair.values()),
        "decided_alike": round(sum(alike) / len(alike), 6) if alike else None,
        "shared_words": round(sum(words) / len(words), 6) if words else None,
    }


def _common(one: str, two: str) -> float:
    first, second = set(normalised(one).split()), set(normalised(two).split())
    return len(first & second) / max(1, len(first | second))
