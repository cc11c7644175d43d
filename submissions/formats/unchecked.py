"""A rank file while it is being read, structure checked, content not yet; and what its reader gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cir_datasets.rows.columns import numbers
from submissions.formats.budget import Budget
from submissions.rank_file.columns import Columns
from submissions.rank_file.findings import Findings, json_type, ordinal, shown
from submissions.rank_file.image_ids import Spelling, image_family
from submissions.rank_file.model import RankFile

if TYPE_CHECKING:
    import pyarrow as pa

    from cir_datasets.registry.cards import BenchmarkSpec
    from submissions.rank_file.benchmarks import Benchmarks
    from submissions.rank_file.model import Method


@dataclass
class ReaderContext:
    """What a format's reader gets besides the JSON value.

    Args:
        findings: collects what is wrong.
        benchmarks: resolves benchmark ids.
        expected: the benchmark id that the file must answer, or None where the file says.
        label: name of the file without ending: the method's name where a format has none.
        budget: what reading the file may cost.
        form: fields of the method block for a file whose own names no method.
    """

    findings: Findings
    benchmarks: Benchmarks
    expected: str | None
    label: str
    budget: Budget = field(default_factory=lambda: Budget(0))
    form: Mapping[str, Any] = field(default_factory=dict)

    def spelling(self, spec: BenchmarkSpec) -> Spelling:
        """How a benchmark spells its images, by its gallery where that is at hand."""
        return Spelling(image_family(spec), frozenset(self.benchmarks.gallery(spec) or ()))


Answers = Mapping[str, list[Any] | None]
"""By query or session id the ranking (or one a turn); None where it has a wrong type, which is reported.

`Columns` where every type is right, which is nearly always."""


@dataclass
class UncheckedFile:
    """What could be read of a rank file.

    Args:
        spec: the benchmark that it answers.
        version: the benchmark's version that it names, or None where that is wrong.
        method: who answers, or None where the description is refused.
        rankings: the answers; None where there are none at all (the CIRR server's subset file).
        subset_rankings: rankings of the queries' subsets, or None.
        format: the format's name.
        kind: a name of `submissions.rank_file.model.FORMATS` where the format has several: JSON, JSON Lines,
            Parquet.
    """

    spec: BenchmarkSpec
    version: int | None
    method: Method | None
    rankings: Answers | None
    subset_rankings: Answers | None
    format: str
    kind: str = ""

    def finished(self) -> RankFile | None:
        """The rank file, or None where a part could not be read."""
        rankings = {} if self.rankings is None else _complete(self.rankings)
        subset = None if self.subset_rankings is None else _complete(self.subset_rankings)
        lost = rankings is None or (subset is None and self.subset_rankings is not None)
        if self.version is None or self.method is None or rankings is None or lost:
            return None
        return RankFile(
            benchmark=self.spec.id,
            benchmark_version=self.version,
            method=self.method,
            rankings=rankings,
            subset_rankings=subset,
            format=self.format,
        )


def _complete(answers: Answers) -> Mapping[str, list[Any]] | None:
    """The answers, or None where one of them could not be read."""
    if isinstance(answers, Columns):
        return answers
    found = {query: answer for query, answer in answers.items() if answer is not None}
    return found if len(found) == len(answers) else None


def read_rankings(
    raw: Any,
    spec: BenchmarkSpec,
    context: ReaderContext,
    *,
    section: str = "rankings",
    budget: Budget | None = None,
) -> Answers:
    """Check the types of `rankings` (or of `subset_rankings`) and bring the ids to the benchmark's spelling.

    Args:
        raw: what the file holds there.
        spec: the benchmark; sessions want one list a turn.
        context: findings, of which some are `bad-type`, and benchmarks.
        section: the key in the file.
        budget: what reading the file may cost; None for rankings of no file.

    Returns:
        The answers; empty where `raw` is not an object.

    Raises:
        OverBudgetError: there are more queries, or more different ids, than are read.
    """
    findings = context.findings
    if not isinstance(raw, Mapping):
        findings.add(
            "bad-type", f'"{section}" is {json_type(raw)}; it must be an object of rankings by query id.'
        )
        return {}
    if budget is not None:
        budget.check("lists", len(raw), where=f'"{section}": ')
        budget.check("id", max((len(query) for query in raw if isinstance(query, str)), default=0))
    by_turn = spec.kind == "multi_turn" and section == "rankings"
    spelling = context.spelling(spec)
    try:
        columns = raw if isinstance(raw, Columns) else Columns.of_lists(raw, by_turn=by_turn)
    except (TypeError, ValueError):
        columns = None  # Something is wrong with an id or a list: what, is said below.
    if budget is not None and columns is not None:
        check_images(columns.images, budget)
    if columns is not None and (columns.turn_offsets is not None) == by_turn:
        changed = spelling.changes(columns.image_ids)
        return (
            columns.respelled([changed.get(each, each) for each in columns.image_ids]) if changed else columns
        )
    answers: dict[str, list[Any] | None] = {}
    for query, answer in raw.items():
        if not isinstance(query, str):
            findings.add(
                "bad-type",
                f"{section}: the key {query!r} is not a string; query ids are.",
                cause=f"{section}-key",
            )
            continue
        if by_turn:
            answers[query] = _turns(answer, query, spelling, findings)
        else:
            answers[query] = _ranking(answer, query, None, spelling, findings, section)
    return answers


def check_images(images: pa.Array, budget: Budget) -> None:
    """Refuse more different image ids, or longer ones, than are read.

    Args:
        images: the ids, distinct.
        budget: what reading the file may cost.

    Raises:
        OverBudgetError: there are.
    """
    import pyarrow.compute as pc

    budget.check("ids", len(images))
    budget.check("id_bytes", images.nbytes)
    budget.check("id", int(numbers(pc.binary_length(images)).max(initial=0)))


def _turns(answer: Any, query: str, spelling: Spelling, findings: Findings) -> list[Any] | None:
    if not isinstance(answer, list | tuple):
        message = f"the session's answer is {json_type(answer)}; it must be a list of rankings, one a turn."
        findings.add("bad-type", message, cause="turns", query=query, value=answer)
        return None
    if answer and all(isinstance(item, str) for item in answer):
        message = "the session's answer is one ranking; it must be a list of rankings, one a turn."
        findings.add("bad-type", message, cause="turns", query=query)
        return None
    turns = [
        _ranking(item, query, number, spelling, findings, "rankings")
        for number, item in enumerate(answer, start=1)
    ]
    return None if any(turn is None for turn in turns) else turns


def _ranking(
    answer: Any, query: str, turn: int | None, spelling: Spelling, findings: Findings, section: str
) -> list[Any] | None:
    part = "subset ranking" if section != "rankings" else "ranking"
    if not isinstance(answer, list | tuple):
        message = f"the {part} is {json_type(answer)}; it must be a list of image ids, best first."
        findings.add("bad-type", message, cause=section, query=query, turn=turn, value=answer)
        return None
    ids = spelling.all(list(answer))
    if set(map(type, ids)) <= {str} and "" not in ids:
        return ids
    position, value = next(
        (place, item) for place, item in enumerate(ids, start=1) if type(item) is not str or not item
    )
    if type(value) is list and turn is None:
        message = f"the {part} holds lists; a benchmark without turns wants a flat list of image ids."
    elif value == "":
        message = f"the {ordinal(position)} image id of the {part} is an empty string."
    else:
        kind = json_type(value)
        said = f" ({shown(value)})" if not isinstance(value, list | dict) and value is not None else ""
        message = f"the {ordinal(position)} image of the {part} is {kind}{said}; an image id is a string."
    findings.add(
        "bad-type", message, cause=f"{section}-id", query=query, turn=turn, value=value, position=position
    )
    return None
