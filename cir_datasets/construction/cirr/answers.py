"""What annotators' answers come to: a caption for each pair, tasks that are asked again, and a comparison.

Answers are read and checked by the form `cirr`. Where a pair has several good captions, the first one counts
and the others stay in the rows.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from statistics import median
from typing import Any

from cir_datasets.common.stages import FAILED, Row
from cir_datasets.construction.review.answers import words_of
from cir_datasets.construction.review.form import ReviewForm, load_form

_AGAIN = re.compile(r"r(?P<round>[0-9]{1,4})-1-(?P<pair>[0-9]+-[0-9]+)")


def annotation_form(least_words: int = 3, most_alike: int = 2) -> ReviewForm:
    """What annotators are asked.

    Args:
        least_words: a caption with fewer different words is too short.
        most_alike: pairs for which one annotator may write the same caption.
    """
    return load_form("cirr").changed("caption", min_words=least_words, most_alike=most_alike)


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


def captions_of(pairs: Sequence[Row], answers: Sequence[Row]) -> list[Row]:
    """A row for each pair: its caption, or why it has none.

    Args:
        pairs: all pairs.
        answers: rows of `checked_answers`.
    """
    marks = next(one.choices for one in load_form("cirr").questions if one.name == "mark")
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
            row |= {"mark": marked[0], FAILED: f"annotators say: {marks[marked[0]]}"}
        elif written:
            further = [each["caption"] for each in written[1:]]
            row |= {"caption": written[0]["caption"], "by": written[0]["annotator"], "further": further}
        else:
            times = refused[pair["pair"]]
            row[FAILED] = f"{times} answers, all refused" if times else "no answer yet"
        rows.append(row)
    return rows


def soft_targets(pairs: Sequence[Row], captions: Sequence[Row]) -> dict[str, list[Row]]:
    """By pair its `target_soft`: the target, and what was marked beside its reference; none without marks.

    As in CIRR's files: a mark of a pair is a score of its second picture (table 9 of the paper) for all
    queries of the subset from that reference.

    Args:
        pairs: all pairs.
        captions: rows of `captions_of`.
    """
    scores = next(one.scores for one in load_form("cirr").questions if one.name == "mark")
    marked = {row["pair"]: scores[row["mark"]] for row in captions if "mark" in row}
    by_reference: defaultdict[tuple[int, str], list[Row]] = defaultdict(list)
    if not marked:
        return {}
    for pair in pairs:
        if pair["pair"] in marked:
            beside = by_reference[pair["subset"], pair["reference"]]
            beside.append({"image_id": pair["target"], "score": marked[pair["pair"]]})
    return {
        pair["pair"]: [
            {"image_id": pair["target"], "score": 1.0},
            *by_reference[pair["subset"], pair["reference"]],
        ]
        for pair in pairs
    }


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
        words = [len(words_of(row["caption"])) for row in rows if row["caption"]]
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
    first, second = set(words_of(one)), set(words_of(two))
    return len(first & second) / max(1, len(first | second))
