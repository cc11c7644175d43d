"""What a metric is given, as checked columns: predictions, and of each query's ground truth what it reads.

Every error names the position and the value and says how to mend it; nothing is dropped and nothing guessed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cir_metrics.errors import InputError, did_you_mean
from cir_metrics.ids import alike, check_id, check_ids, check_list, order_fault, quoted, spellings, stranger
from cir_metrics.pairing import QUERY, SESSION, answered_once, frame_rows, paired, query_of, warn_of_padding
from cir_metrics.sums import check_count

Reference = dict[str, Any]
Check = Callable[[object, str, Reference], Any]
"""Takes a prediction, how messages name it, and its reference; gives the prediction that metrics read."""

FIELDS = ("target", "reference", "subset", "positives", "negatives", "gallery", "num_turns", "turn_targets")
"""What a reference may hold, beside the id of its query."""
_PLAIN = frozenset(FIELDS) - {"gallery", "num_turns"}

_ROW_FIELDS = {
    "target": "target_image_id",
    "reference": "reference_image_id",
    "subset": "subset_image_ids",
    "positives": "positive_image_ids",
    "negatives": "negative_image_ids",
    "gallery": "gallery_image_ids",
}
_SESSION_FIELDS = {"positives": "ground_truth_ids", "num_turns": "num_turns"}
_OUTSIDE = {
    "gallery": "the query's own gallery. Fix: rank the images of its gallery_image_ids.",
    "subset": "the subset. Fix: rank its members.",
}
"""By list of what a query ranks what is said of an image that is not in it."""
_ROW_MARKS = frozenset({"session_id", *_ROW_FIELDS.values(), "ground_truth_ids"})


def references(rows: Iterable[Mapping[str, Any]]) -> list[Reference]:
    """The references that the metrics take, picked from rows of `cir_datasets`.

    Args:
        rows: queries (`target_image_id`, `reference_image_id`, `subset_image_ids`, `positive_image_ids`,
            `negative_image_ids`, `gallery_image_ids`) or sessions (`ground_truth_ids`, `num_turns`): a
            `datasets.Dataset`, or dicts.

    Returns:
        One dict a row with those of target, reference, subset, positives, negatives, gallery, num_turns and
        turn_targets that the row has. Null fields are left out, and so is an empty subset or gallery.

    Raises:
        InputError: `rows` is not a list of rows; a row is not a dict, has none of these fields, or holds no
            ground truth (it is withheld); two rows are of one query.

    Example:
        >>> references([{"session_id": "s", "ground_truth_ids": ["a"], "num_turns": 2, "turns": []}])
        [{'positives': ['a'], 'num_turns': 2}]
    """
    rows = frame_rows(rows)
    if order_fault(rows) is not None:
        raise InputError(f"rows is {quoted(rows)}. Fix: pass a list of rows, or a whole dataset split.")
    rows = list(rows)
    _, twice = answered_once([query_of(row) for row in rows], range(len(rows)))
    if twice is not None:
        raise InputError(
            f"rows[{twice}] is of {query_of(rows[twice])!r}, as a row before it is. Fix: pass each once; or "
            "give the metrics the rows themselves, where equal answers to one query count once."
        )
    return [_from_row(row, f"rows[{position}]") for position, row in enumerate(rows)]


def check_reference(value: object, where: str, fields: Sequence[str]) -> Reference:
    """The fields that a metric needs, checked, from a reference or from a whole row of a dataset.

    Args:
        value: a dict with the fields of `FIELDS`, or a row (see `references`).
        where: how messages name it, such as `references[3]`.
        fields: the fields that the metric needs.

    Returns:
        A dict with exactly `fields`, and `gallery` and `num_turns` where the reference has them.

    Raises:
        InputError: not a dict, an unknown or missing key, a value of the wrong kind, no positives, an image
            that is both positive and hard negative, a subset that lacks target or reference, or a query's own
            gallery that lacks a target or hard negative.

    Example:
        >>> check_reference({"target": "a", "positives": ["a", "b"]}, "references[0]", ["target"])
        {'target': 'a'}
    """
    if not isinstance(value, Mapping):
        raise InputError(
            f"{where} is {quoted(value)}; a reference is a dict with {_listed(fields)}. "
            "Fix: take them from cir_metrics.references(rows)."
        )
    is_row = not _ROW_MARKS.isdisjoint(value) or (QUERY in value and _PLAIN.isdisjoint(value))
    given = _pick(value) if is_row else value
    if not is_row:
        _refuse_unknown(value, where)
    of_session = _SESSION_FIELDS if "ground_truth_ids" in value else {}
    names = {**_ROW_FIELDS, **of_session} if is_row else {}
    checked: Reference = {}
    for field in fields:
        name = names.get(field, field)
        if field not in given:
            raise InputError(_missing(value, where, name, is_row))
        checked[field] = _check_field(field, given[field], f"{where}[{name!r}]")
    if given.get("gallery") is not None:
        checked["gallery"] = _check_field("gallery", given["gallery"], f"{where}['gallery']")
        outside = ids_of(checked).difference(checked["gallery"])
        if outside:
            raise InputError(
                f"{where}: {min(outside)!r} is a target or hard negative, not in the query's own gallery. "
                "Fix: list it there, spelled alike."
            )
    if given.get("num_turns") is not None:
        said = "a session has 1 turn or more. Fix: give the number of turns."
        checked["num_turns"] = check_count(given["num_turns"], f"{where}['num_turns']", 1, said)
    if "positives" in checked and "negatives" in checked:
        both = set(checked["positives"]).intersection(checked["negatives"])
        if both:
            raise InputError(
                f"{where}: {min(both)!r} is both positive and hard negative. Fix: keep it in one of the two."
            )
    if "subset" in checked:
        _check_subset(checked, where)
    return checked


def ids_of(reference: Reference) -> set[str]:
    """The ids of targets and hard negatives that a checked reference names.

    Example:
        >>> sorted(ids_of({"target": "a", "positives": ["a", "b"], "num_turns": 2}))
        ['a', 'b']
    """
    named: set[str] = set()
    for field in ("target", "positives", "negatives", "turn_targets"):
        ids = reference.get(field, ())
        named.update((ids,) if isinstance(ids, str) else ids)
    return named


@dataclass(frozen=True)
class Inputs:
    """Predictions and references of the same queries or sessions, checked: an entry a query in each column.

    Args:
        columns: by the name that messages use, such as `rankings`, the predictions.
        references: what the metrics need of each query's ground truth (`check_reference`).
        queries: id of each query, None where nothing says it.
    """

    columns: dict[str, list[Any]]
    references: list[Reference]
    queries: list[str | None]

    def in_known_ids(self, name: str, *, by_turn: bool = False) -> Inputs:
        """With a column in the spelling of the ids that references name, of which its rankings hold some.

        Args:
            name: the column.
            by_turn: whether it has a list of rankings a session.

        Raises:
            InputError: a ranking then names an image twice, or all rankings are certainly of other ids; a
                warning where that is only likely.
        """
        column = self.columns[name]
        known = set().union(*map(ids_of, self.references))
        lists = [ranking for turns in column for ranking in turns] if by_turn else column
        changed = spellings(set().union(*lists), known)
        odd = None if changed else stranger(lists, known)
        if odd is not None:
            said = (
                f"no ranking holds any of the {len(known):,} ids that references name: {odd[0]!r} stands "
                f"where ids such as {min(known)!r} were meant. Fix: rank the gallery's own ids."
            )
            if odd[1]:
                raise InputError(said)
            warnings.warn(said, stacklevel=3)
        respelled = [_respelled(answer, changed, f"{name}[{n}]") for n, answer in enumerate(column)]
        return replace(self, columns={**self.columns, name: respelled})

    def once(self, before: Mapping[str, int] | None = None, first: int = 0) -> tuple[Inputs, dict[str, int]]:
        """Without what is there twice, answer and reference; and by query a hash of both, for a later call.

        Args:
            before: what earlier calls gave; None where this is the only one.
            first: number of the first entry.

        Raises:
            InputError: a query has two answers or references.
        """
        stated = [query for query in self.queries if query is not None]
        if before is None and len(set(stated)) == len(stated):
            return self, {}
        name, *_ = self.columns
        marks = [
            hash(repr((reference, [alike(each, ids_of(reference)) for each in answers])))
            for reference, *answers in zip(self.references, *self.columns.values(), strict=True)
        ]
        kept, other = answered_once(self.queries, marks, before or {})
        if other is not None:
            raise InputError(
                f"{name}[{first + other}] answers {self.queries[other]!r}, which has another answer or "
                "reference already. Fix: keep one of them."
            )
        if len(kept) < len(marks):
            warn_of_padding(name, self.queries, kept, stacklevel=4 if before is None else 5)
        columns = {each: [column[n] for n in kept] for each, column in self.columns.items()}
        counted = Inputs(columns, [self.references[n] for n in kept], [self.queries[n] for n in kept])
        answered = {q: mark for q, mark in zip(self.queries, marks, strict=True) if q is not None}
        return counted, answered


def check_inputs(
    references: Any, fields: Sequence[str], predictions: Mapping[str, tuple[Any, Check]], first: int = 0
) -> Inputs:
    """Predictions and references, paired and checked: references first, then a column after the other.

    Args:
        references: dicts, or rows of a dataset or a data frame.
        fields: what the metrics need of a reference.
        predictions: by the name that messages use what was given, and the check of one prediction.
        first: number of the first entry, where earlier ones were added before.

    Raises:
        InputError: as `paired`, `check_reference` and the checks.

    Example:
        >>> check_inputs([{"target": "a"}], ["target"], {"rankings": ([["b", "a"]], check_ranking)}).columns
        {'rankings': [['b', 'a']]}
    """
    *columns, rows = paired(references, **{name: column for name, (column, _) in predictions.items()})
    checked = [check_reference(row, f"references[{n}]", fields) for n, row in enumerate(rows, first)]
    given = {
        name: [
            check(each, f"{name}[{n}]", reference)
            for n, (each, reference) in enumerate(zip(column, checked, strict=True), first)
        ]
        for (name, (_, check)), column in zip(predictions.items(), columns, strict=True)
    }
    return Inputs(given, checked, [query_of(row) for row in rows])


def check_ranking(
    value: object, where: str, reference: Reference, *, among: str = "gallery", allow_empty: bool = True
) -> list[str]:
    """A ranking as it is spelled by the list of what the query ranks, where it has one of its own.

    Args:
        value: what was given.
        where: how messages name it, such as `rankings[3]`.
        reference: the query's, checked.
        among: the field of the reference that lists what is ranked: `gallery`, or `subset`, whose reference
            image is not; empty where any image may be ranked.
        allow_empty: whether it may hold nothing.

    Raises:
        InputError: as `check_ids`; an image that the query does not rank.
    """
    ranking = check_ids(value, where, what="ranking", allow_empty=allow_empty)
    if among not in reference:
        return ranking
    members = set(reference[among])
    if not members.issuperset(ranking):
        ranking = _respelled(ranking, spellings(ranking, members), where)
    left_out = reference["reference"] if among == "subset" else None
    if left_out in ranking:
        place = ranking.index(left_out)
        raise InputError(
            f"{where}[{place}] is the reference image {ranking[place]!r}; it is not ranked. Fix: drop it."
        )
    for place, image_id in enumerate(ranking):
        if image_id not in members:
            raise InputError(f"{where}[{place}] is {image_id!r}, which is not in {_OUTSIDE[among]}")
    return ranking


def _respelled(ranking: list[Any], changed: Mapping[str, str], where: str) -> list[Any]:
    """A ranking, or one a turn, in other spellings; in none of them an image stands twice."""
    if ranking and not isinstance(ranking[0], str):
        return [_respelled(turn, changed, f"{where}[{number}]") for number, turn in enumerate(ranking)]
    if changed.keys().isdisjoint(ranking):
        return ranking
    return check_ids([changed.get(each, each) for each in ranking], where, what="ranking")


def check_session(
    value: object, where: str, reference: Reference, *, allow_empty: bool = True
) -> list[list[str]]:
    """A session's prediction: one ranking a turn, as many as the reference has turns where it says so.

    Args:
        value: what was given.
        where: how messages name it, such as `predictions[3]`.
        reference: the session's, checked.
        allow_empty: whether a turn's ranking may hold nothing.

    Raises:
        InputError: not a list of lists, no turn, another number of turns, or a turn that `check_ranking`
            refuses.
    """
    turns = check_list(value, where, "a session is a list of rankings, one a turn", "give one ranking a turn")
    if not turns:
        raise InputError(f"{where} has no turn. Fix: give one ranking a turn.")
    if all(isinstance(turn, str) for turn in turns):
        raise InputError(
            f"{where} is one ranking; a session is a list of them. Fix: write a single turn as [ranking]."
        )
    rankings = [
        check_ranking(turn, f"{where}[{number}]", reference, allow_empty=allow_empty)
        for number, turn in enumerate(turns)
    ]
    expected = reference.get("num_turns", len(reference.get("turn_targets", turns)))
    if len(turns) != expected:
        raise InputError(
            f"{where} has {len(turns)} rankings, its session {expected} turns. Fix: give one ranking a turn."
        )
    return rankings


def _from_row(row: object, where: str) -> Reference:
    if not isinstance(row, Mapping):
        raise InputError(f"{where} is {quoted(row)}; a row is a dict. Fix: pass the rows of a benchmark.")
    picked = _pick(row)
    if not picked:
        names = _listed([*_ROW_FIELDS.values(), *_SESSION_FIELDS.values()])
        raise InputError(f"{where} has none of {names}. Fix: pass queries or sessions, not images.")
    if "target" not in picked and not picked.get("positives"):
        raise InputError(
            f"{where}{_row_name(row)}: its ground truth is withheld. Fix: ask the publisher's server."
        )
    return picked


def _pick(row: Mapping[str, Any]) -> Reference:
    fields = _SESSION_FIELDS if "ground_truth_ids" in row else _ROW_FIELDS
    picked = {field: row[name] for field, name in fields.items() if row.get(name) is not None}
    targets = [turn.get("target_image_id") for turn in row.get("turns") or ()]
    if targets and None not in targets:
        picked["turn_targets"] = targets
    for field in ("subset", "gallery"):
        if field in picked and not len(picked[field]):
            del picked[field]
    return picked


def _check_field(field: str, value: object, where: str) -> Any:
    if field in ("target", "reference"):
        return check_id(value, where)
    if field == "turn_targets":  # an image may be the target of several turns
        of_turns = check_list(value, where, "turn_targets are a list of ids, one a turn", "list them")
        return [check_id(each, f"{where}[{n}]") for n, each in enumerate(of_turns)]
    called = {"positives": "list of positives", "negatives": "list of hard negatives"}
    what = called.get(field, field)
    return check_ids(value, where, what=what, allow_empty=field == "negatives", ordered=False)


def _check_subset(checked: Reference, where: str) -> None:
    for field in ("target", "reference"):
        if checked[field] not in checked["subset"]:
            raise InputError(
                f"{where}: {field} {checked[field]!r} is not in the subset. Fix: give all its members."
            )
    if checked["target"] == checked["reference"]:
        raise InputError(
            f"{where}: {checked['target']!r} is both target and reference. Fix: correct one of them."
        )


def _refuse_unknown(value: Mapping[str, Any], where: str) -> None:
    for key in value:
        if key not in FIELDS and key != QUERY:
            hint = did_you_mean(key, FIELDS)
            raise InputError(f"{where} has the unknown key {key!r}.{hint} Fix: use {_listed(FIELDS)}.")


def _missing(value: Mapping[str, Any], where: str, name: str, is_row: bool) -> str:
    if not is_row:
        return f"{where} lacks {name!r}. Fix: add it; cir_metrics.references(rows) takes it from a benchmark."
    if name in value:
        return (
            f"{where}{_row_name(value)}: {name!r} is {'null' if value[name] is None else 'empty'}. Fix: use "
            "a metric that this benchmark has or, where the ground truth is withheld, the publisher's server."
        )
    return f"{where}{_row_name(value)} lacks {name!r}. Fix: pass a row of a benchmark that has this metric."


def _row_name(row: Mapping[str, Any]) -> str:
    return next((f" ({name} {row[name]!r})" for name in (QUERY, SESSION) if name in row), "")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)
