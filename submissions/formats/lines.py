"""JSON Lines: the native form a line at a time, so that a method can write it while it ranks.

The first line is the header, which is a native rank file without its rankings; then comes one line a query:
`{"query_id": ..., "ranking": [...]}`, for sessions `"rankings": [[...], ...]`, with `"subset_ranking"` where
the query's subset is ranked.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import orjson

from cir_metrics.errors import did_you_mean
from cir_metrics.ids import plain_id
from submissions.formats import native
from submissions.formats.budget import Budget
from submissions.formats.json_reader import parse_json
from submissions.formats.native import ReaderContext
from submissions.rank_file.columns import Columns, Gathering
from submissions.rank_file.findings import Findings, json_type, shown
from submissions.rank_file.model import LINES, LINES_FILE, RANK_FILE

if TYPE_CHECKING:
    from submissions.formats.native import UncheckedFile
    from submissions.rank_file.model import RankFile

NAME = LINES
QUERY, RANKING, TURNS, SUBSET = "query_id", "ranking", "rankings", "subset_ranking"
"""Keys of a query's line, and columns of the Parquet form."""

_KEYS = (QUERY, RANKING, TURNS, SUBSET)
_SECTIONS = ("rankings", "subset_rankings")
_PENDING = 2**15
"""Images that are Python strings at a time."""


def parse(content: bytes, context: ReaderContext) -> UncheckedFile | None:
    """Read a rank file in JSON Lines.

    Args:
        content: the file's bytes.
        context: findings, benchmarks, and what was asked for.

    Returns:
        What could be read, or None where a line cannot be read.
    """
    budget = context.budget
    lists = content.count(b"[") + content.count(b"{")
    budget.spend("lines", content.count(b"\n"))
    budget.spend("lists", lists)
    budget.spend("values", lists + content.count(b","))
    reader = _Reader(context.findings, budget)
    for number, line in enumerate(io.BytesIO(content), start=1):
        if not line.isspace():
            budget.check("line", len(line), where=f"line {number:,}: ")
            reader.take(number, line)
            if reader.stopped:
                return None
    if reader.broken or reader.header is None:
        return None
    document = {**reader.header, "format": RANK_FILE, "rankings": reader.rankings.all(reader.first)}
    if reader.subsets:
        document["subset_rankings"] = reader.subsets.all(reader.first)
    return native.parse(document, context)


def dump(rank_file: RankFile) -> bytes:
    """The rank file in JSON Lines, a newline after each line.

    Args:
        rank_file: what to write.

    Raises:
        SubmissionError: an id is not text that JSON can hold.
    """
    from submissions.rank_file.model import compact

    written = io.BytesIO()
    written.write(compact({**header_of(rank_file), "format": LINES_FILE}))
    for entry in entries_of(rank_file):
        written.write(compact(entry))
    return written.getvalue()


def header_of(rank_file: RankFile) -> dict[str, Any]:
    """The native form without its rankings."""
    from dataclasses import replace

    whole = replace(rank_file, rankings={}, subset_rankings=None).to_dict()
    return {key: value for key, value in whole.items() if key not in _SECTIONS}


def is_by_turn(answers: Mapping[str, Any]) -> bool:
    """Whether answers are lists of rankings, one a turn."""
    if isinstance(answers, Columns):
        return answers.turn_offsets is not None
    # An empty answer does not say what it is; the first that holds something says it of all.
    return next((not isinstance(answer[0], str) for answer in answers.values() if answer), False)


def entries_of(rank_file: RankFile) -> Iterator[dict[str, Any]]:
    """One entry a query: its ranking or its turns, and the ranking of its subset, where it has them."""
    subsets = rank_file.subset_rankings or {}
    by_turn = is_by_turn(rank_file.rankings)
    for query, answer in rank_file.rankings.items():
        entry = {QUERY: query, TURNS if by_turn else RANKING: answer}
        if query in subsets:
            entry[SUBSET] = subsets[query]
        yield entry
    for query in subsets:
        if query not in rank_file.rankings:
            yield {QUERY: query, SUBSET: subsets[query]}


class _RankingsByQuery:
    """Answers of one kind: the plain ones become columns a few at a time, the odd ones are kept as they are.

    Args:
        budget: what reading the file may cost.
    """

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._pending: dict[str, Any] = {}
        self._held = 0
        self._gathered: Gathering | None = None
        self._odd: dict[str, Any] = {}

    def __len__(self) -> int:
        gathered = 0 if self._gathered is None else len(self._gathered.names)
        return gathered + len(self._pending) + len(self._odd)

    def take(self, query: str, answer: Any) -> None:
        """Take the answer of a query that has none yet."""
        by_turn = _plain_shape(answer)
        if answer == [] and self._gathered is not None:
            by_turn = self._gathered.by_turn
        if by_turn is None or (self._gathered is not None and self._gathered.by_turn != by_turn):
            self._budget.spend("odd_values", 1 + (len(answer) if isinstance(answer, list) else 0))
            self._odd[query] = answer
            return
        self._gathered = self._gathered or Gathering(by_turn=by_turn)
        self._pending[query] = answer
        self._held += sum(map(len, answer)) if by_turn else len(answer)
        if self._held >= _PENDING:
            self._gather()

    def all(self, order: Iterable[str]) -> Mapping[str, Any]:
        """All that was taken, by query.

        Args:
            order: the queries of the file, in its order.
        """
        self._gather()
        columns: Mapping[str, Any] = {} if self._gathered is None else self._gathered.columns()
        if not self._odd:
            return columns
        self._budget.spend("odd_values", sum(map(len, columns.values())))
        both = {**columns, **self._odd}
        return {query: both[query] for query in order if query in both}

    def _gather(self) -> None:
        if self._gathered is not None:
            self._gathered.take(list(self._pending), list(self._pending.values()))
        self._pending, self._held = {}, 0


def _plain_shape(answer: Any) -> bool | None:
    """Whether an answer is a list of rankings; None where it is neither that nor a ranking."""
    if type(answer) is not list or not answer:
        return None
    kinds = set(map(type, answer))
    if kinds == {str}:
        return None if "" in answer else False
    if kinds != {list} or any(set(map(type, turn)) - {str} or "" in turn for turn in answer):
        return None
    return True


class _Reader:
    """Takes a file's lines one by one.

    Args:
        findings: collects what is wrong, with the number of the line.
        budget: what reading the file may cost.
    """

    def __init__(self, findings: Findings, budget: Budget) -> None:
        self.findings, self.budget = findings, budget
        self.header: dict[str, Any] | None = None
        self.rankings, self.subsets = _RankingsByQuery(budget), _RankingsByQuery(budget)
        self.broken = False
        self.stopped = False
        self.first: dict[str, tuple[int, int]] = {}

    def take(self, number: int, line: bytes) -> None:
        entry = self._value(number, line)
        if self.header is None:
            self._take_header(number, entry)
        elif isinstance(entry, dict):
            self._take_entry(number, entry, line)
        elif entry is not None:
            self._refuse("bad-type", number, f"it holds {json_type(entry)}; a query's line is an object.")

    def _take_header(self, number: int, entry: Any) -> None:
        if isinstance(entry, dict) and entry.get("format") == LINES_FILE:
            misplaced = [key for key in _SECTIONS if key in entry]
            if misplaced:
                self._refuse(
                    "bad-type",
                    number,
                    f'the header holds "{misplaced[0]}"; rankings have lines of their own.',
                )
            self.header = entry
            return
        self.stopped = True
        if entry is not None:
            self.findings.add(
                "wrong-format",
                f"line {number:,} is not a header, so that the file does not say what it answers.",
                fix=_HEADER,
            )

    def _take_entry(self, number: int, entry: dict[str, Any], line: bytes) -> None:
        query = plain_id(entry.get(QUERY))
        if query is None:
            said = f'"{QUERY}" is {json_type(entry.get(QUERY))}; it must be a string.'
            self._refuse("bad-type", number, said if QUERY in entry else f'the key "{QUERY}" is missing.')
            return
        unknown = next((key for key in entry if key not in _KEYS), None)
        if unknown is not None:
            said = f"a query's line has no key {shown(unknown)}.{did_you_mean(unknown, _KEYS)}"
            self._refuse("bad-metadata", number, said, fix=_DROP)
            return
        answers = [key for key in (RANKING, TURNS) if key in entry]
        if len(answers) == 2 or not (answers or SUBSET in entry):
            held = "both" if answers else "neither"
            said = f'query {shown(query)} has {held} "{RANKING}" and "{TURNS}".'
            said = said if answers else said.replace(" and ", " nor ")
            self._refuse("bad-type", number, said, fix=_ONE_ANSWER)
            return
        own = number, hash(line.strip())
        before, mark = self.first.setdefault(query, own)
        if before != number and mark == own[1]:
            said = f"line {number:,}: it is line {before:,} again."
            self.findings.add("repeated-query", said, query=query)
            return
        if before != number:
            said = f"query {shown(query)} is answered in line {before:,} already."
            self._refuse("repeated-key", number, said)
            return
        if answers:
            self.rankings.take(query, entry[answers[0]])
        if SUBSET in entry:
            self.subsets.take(query, entry[SUBSET])

    def _value(self, number: int, line: bytes) -> Any:
        """The JSON value of a line, or None with a finding."""
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            value = None
        if isinstance(value, dict) and _is_plain(line, value):
            return value
        # Something is odd or a key may stand twice: the careful reader says which.
        where = f"line {number:,}: "
        self.budget.spend("odd_lines", where=where)
        self.budget.spend("odd_bytes", len(line), where=where)
        found = Findings(self.findings.file)
        value = parse_json(line.rstrip(b"\r\n"), found)
        for finding in found.listed():
            self._refuse(finding.code, number, finding.message, fix=None)
        return value

    def _refuse(self, code: str, number: int, message: str, *, fix: str | None = None) -> None:
        self.broken = True
        if message.startswith("line 1, "):
            text = f"line {number:,}, {message.removeprefix('line 1, ')}"
        else:
            text = f"line {number:,}: {message}"
        self.findings.add(code, text, cause="lines", value=f"line {number:,}", fix=fix)
        self.budget.spend("broken", where=f"line {number:,}: ")


_HEADER = (
    f'start with  {{{{"format": "{LINES_FILE}", "format_version": 1, "benchmark": ..., "method": ...}}}}'
)
_DROP = "drop it (remarks go to method.notes in the header), then run  cir validate {file}"
_ONE_ANSWER = f'write "{RANKING}": [...] for a query, "{TURNS}": [[...], ...] for a session'


def _is_plain(line: bytes, entry: dict[str, Any]) -> bool:
    """Whether all quotes of the line belong to what was read, so that no key can have been there twice."""
    if b"\\" in line:
        return False
    strings = len(entry)
    for value in entry.values():
        kinds = set(map(type, value)) if type(value) is list else {type(value)}
        if kinds == {str}:
            strings += len(value) if type(value) is list else 1
        elif kinds == {list}:
            if any(set(map(type, turn)) - {str} for turn in value):
                return False
            strings += sum(map(len, value))
        elif kinds:
            return False
    return line.count(b'"') == 2 * strings
