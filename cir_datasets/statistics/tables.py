"""Statistics as text: tables in the form of CIRCLED's Tables 2 and 4 and of CIRR's Table 2."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence

from cir_datasets.common.tables import count
from cir_datasets.common.terminal import fitted
from cir_datasets.statistics.counts import Statistics, class_names, counted_once, total

CARDS_COUNT = "*"
"""Marks a gallery's size that was taken from the card, because the list is not available."""

REPEATED = "^"
"""Marks a benchmark that the total leaves out, because its queries are in another row."""

_CAPTIONS_NOTE = (
    "CAPTIONS: every caption of every query or turn that has a word; those without one are EMPTY, and are in "
    "no other number"
)
_CLASSES_NOTE = (
    "per cent of all words, each as often as it occurs (isn't is two: is, n't), tagged caption by caption by "
    "HanTa's English model\n"
    "OTHER: not, the to of an infinitive, possessive 's, foreign words, interjections"
)


def tables(parts: Sequence[Statistics], top: int) -> str:
    """All tables of one or several benchmarks, a row each, and a total where there are several.

    The total counts no query twice: see `counted_once`.

    Args:
        parts: statistics of the benchmarks, in the order of the rows.
        top: number of frequent terms.
    """
    rows, added = list(parts), counted_once(parts)
    notes = []
    if added is None:
        notes = ["no total: some of these benchmarks share a part of their queries"]
    elif len(parts) > 1:
        again = [part for part in parts if not any(part is one for one in added)]
        if again:
            parts = rows = [
                dataclasses.replace(part, id=part.id + REPEATED) if part in again else part for part in parts
            ]
            notes = [f"{REPEATED} not in the total: its queries are those of another row"]
        rows = [*rows, total(added)]
    shown = ["\n".join([rows_table(rows), *notes]), answers_table(rows), captions_table(rows)]
    if any(part.classes is not None for part in parts):
        shown.append(classes_table(rows))
    if top:
        shown.append(terms_table(parts, top))
    return "\n\n".join(shown)


def rows_table(rows: Sequence[Statistics]) -> str:
    """Queries or sessions, subsets, galleries, and sessions by number of turns.

    Args:
        rows: one a line; the total, if any, comes last.
    """
    sessions, lists = any(row.multi_turn for row in rows), any(row.lists for row in rows)
    second = any(row.subsets for row in rows)
    lengths = sorted({turns for row in rows if row.multi_turn for turns in row.turns}) if sessions else []
    head = ["BENCHMARK", *(["SUBSETS"] if second else []), "SESSIONS" if sessions else "QUERIES"]
    head += [*(["PER SUBSET"] if second else []), "GALLERY", *(["LIST PER QUERY"] if lists else [])]
    head += (
        ["AVG TURNS", *(f"{turns} TURN{'S' if turns > 1 else ''}" for turns in lengths)] if sessions else []
    )
    cells = [head]
    for row in rows:
        line = [row.id]
        line += [count(row.subsets)] if second else []
        line.append(count(row.queries))
        line += [_number(row.queries / row.subsets if row.subsets else None)] if second else []
        line.append(count(row.gallery) + ("" if row.gallery_listed or row.gallery is None else CARDS_COUNT))
        line += [_ends(row.lists)] if lists else []
        if sessions:
            line += [_number(row.average_turns), *(count(row.turns[turns]) for turns in lengths)]
        cells.append(line)
    text = fitted(cells, right=range(1, len(head)))
    if CARDS_COUNT in text:
        text += f"\n{CARDS_COUNT} the card's count: the list of that gallery is not available"
    return text


def _ends(lengths: Collection[int]) -> str:
    """The shortest and the longest of some lists, `14-15`, or one number; `-` where there are none."""
    return "-".join(map(count, sorted({min(lengths), max(lengths)}))) if lengths else "-"


def answers_table(rows: Sequence[Statistics]) -> str:
    """Positives and hard negatives a query; `-` where the ground truth is withheld or there are none."""
    cells = [["BENCHMARK", "POSITIVES A QUERY", "HARD NEGATIVES A QUERY"]]
    for row in rows:
        found = [None if n is None else n / row.queries for n in (row.positives, row.negatives)]
        cells.append([row.id, *map(_number, found)])
    return fitted(cells, right=(1, 2))


def captions_table(rows: Sequence[Statistics]) -> str:
    """Captions: how many, how long in words, and the type-token ratio; those without a word apart."""
    head = ["BENCHMARK", "CAPTIONS", "EMPTY", "WORDS", "AVG WORDS", "MEDIAN", "MAX", "TYPE-TOKEN RATIO"]
    cells = [head]
    for row in rows:
        cells.append(
            [
                row.id,
                count(row.caption_count),
                count(row.lengths[0]),
                count(row.words.total()),
                _number(row.mean_length),
                "-" if row.median_length is None else f"{row.median_length:g}",
                count(row.longest),
                "-" if row.type_token_ratio is None else f"{row.type_token_ratio:.4f}",
            ]
        )
    return f"{fitted(cells, right=range(1, len(head)))}\n{_CAPTIONS_NOTE}"


def classes_table(rows: Sequence[Statistics]) -> str:
    """Parts of speech in per cent of all words that the tagger was given."""
    names = class_names()
    cells = [["BENCHMARK", *(f"{name.upper()} %" for name in names)]]
    for row in rows:
        shares = row.class_shares
        cells.append([row.id, *("-" if shares is None else f"{100 * shares.get(n, 0):.1f}" for n in names)])
    return f"{fitted(cells, right=range(1, len(names) + 1))}\n{_CLASSES_NOTE}"


def terms_table(parts: Sequence[Statistics], top: int) -> str:
    """The most frequent terms of each benchmark with their counts, stop words left out."""
    cells = [["BENCHMARK", "MOST FREQUENT TERMS"]]
    cells += [
        [part.id, ", ".join(f"{term} {times:,}" for term, times in part.frequent_terms(top))]
        for part in parts
    ]
    return fitted(cells)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
