"""JSON Lines: the native form a line at a time, so that a method can write it while it ranks.

The first line is the header, which is a native rank file without its rankings; then comes one line a query:
`{"query_id": ..., "ranking": [...]}`, for sessions `"rankings": [[...], ...]`, with `"subset_ranking"` where
the query's subset is ranked.
"""

from __future__ import annotations

import functools
import io
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import orjson

from cir_metrics.errors import did_you_mean
from cir_metrics.ids import plain_id
from submissions.formats import native
from submissions.formats.native import ReaderContext, gathered, parse_json
from submissions.rank_file.columns import Columns
from submissions.rank_file.content import Budget, is_whole, strings_in
from submissions.rank_file.findings import Finding, Findings, json_type, shown
from submissions.rank_file.model import LINES, LINES_FILE, RANK_FILE, SECTIONS

if TYPE_CHECKING:
    from submissions.formats.native import UncheckedFile
    from submissions.rank_file.model import RankFile

NAME = LINES
QUERY, RANKING, TURNS, SUBSET = "query_id", "ranking", "rankings", "subset_ranking"
"""Keys of a query's line, and columns of the Parquet form."""

_LINE = re.compile(rb"[^\n]+")
_KEYS = (QUERY, RANKING, TURNS, SUBSET)


def parse(content: bytes, context: ReaderContext) -> UncheckedFile | None:
    """Read a rank file in JSON Lines.

    Args:
        content: the file's bytes.
        context: findings, benchmarks, and what was asked for.

    Returns:
        What could be read, or None where a line cannot be read.
    """
    budget = context.budget
    budget.spend("lines", content.count(b"\n"))
    values = budget.spend_text(content)
    document = _plain(content, budget)
    if document is None:
        budget.spend("odd_bytes", len(content))
        budget.spend("odd_values", values)
        document = _CarefulLines(context.findings, budget).document(content)
    return None if document is None else native.parse({**document, "format": RANK_FILE}, context)


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
    return {key: value for key, value in whole.items() if key not in SECTIONS}


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


def _plain(content: bytes, budget: Budget) -> dict[str, Any] | None:
    """The document of a file whose lines are plainly a header and queries, none there twice; else None."""
    import msgspec

    text = memoryview(content)
    lines = (text[line.start() : line.end()] for line in _LINE.finditer(content) if not line[0].isspace())
    parts: dict[str, dict[str, Any]] = {RANKING: {}, TURNS: {}, SUBSET: {}}
    queries, count = set[str](), 0
    try:
        header = orjson.loads(next(lines, b""))
        if not isinstance(header, dict) or header.get("format") != LINES_FILE or b"\\" in content:
            return None
        for count, line in enumerate(lines, start=1):  # noqa: B007
            budget.check("line", len(line))
            entry = _decoder().decode(line)
            answers = {key: answer for key in parts if len(answer := getattr(entry, key))}
            if not answers:
                return None
            queries.add(entry.query_id)
            for key, answer in answers.items():
                parts[key][entry.query_id] = answer
        strings = strings_in(header) + 2 * count
        columns: dict[str, Any] = {}
        for key in [key for key in parts if parts[key]]:
            # The key of each answer is counted in place of its query, which is counted above.
            columns[key], inside = gathered(parts.pop(key), budget)
            strings += inside
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None  # Something is odd: what, is said by those who look closer.
    if len(queries) < count or {RANKING, TURNS} <= columns.keys() or not is_whole(content, strings):
        return None
    if any(section in header for section in SECTIONS):
        return None
    subsets = columns.pop(SUBSET, None)
    rankings: Any = next(iter(columns.values()), {})
    return {**header, "rankings": rankings} | ({} if subsets is None else {"subset_rankings": subsets})


@functools.cache
def _decoder() -> Any:
    """Reads a query's line, and no other; the answers stay text."""
    from msgspec import Raw, defstruct
    from msgspec.json import Decoder

    answers = [(key, Raw, Raw()) for key in (RANKING, TURNS, SUBSET)]
    return Decoder(defstruct("Line", [(QUERY, str), *answers], forbid_unknown_fields=True))


def values_by_line(
    content: bytes, findings: Findings, budget: Budget
) -> Iterator[tuple[int, bytes, Any, list[Finding]]]:
    """The lines of a file but for blank ones: number, bytes, the JSON value or None, what is wrong with it.

    Args:
        content: the file's bytes.
        findings: those of the file, which get nothing here.
        budget: what reading the file may cost.
    """
    for number, line in enumerate(io.BytesIO(content), start=1):
        if not line.isspace():
            budget.check("line", len(line), where=f"line {number:,}: ")
            faults = Findings(findings.file)
            yield number, line, parse_json(line.rstrip(b"\r\n"), faults), faults.listed()


class _CarefulLines:
    """Takes a file's lines one by one, and says what is wrong with each.

    Args:
        findings: collects what is wrong, with the number of the line.
        budget: what reading the file may cost.
    """

    def __init__(self, findings: Findings, budget: Budget) -> None:
        self.findings, self.budget = findings, budget
        self.broken = False
        self.first: dict[str, tuple[int, int]] = {}
        self.rankings: dict[str, Any] = {}
        self.subsets: dict[str, Any] = {}
        self.images: dict[str, str] = {}

    def document(self, content: bytes) -> dict[str, Any] | None:
        header = None
        for number, line, entry, faults in values_by_line(content, self.findings, self.budget):
            self.budget.spend("odd_lines", where=f"line {number:,}: ")
            for fault in faults:
                self._refuse(fault.code, number, fault.message)
            if header is None:
                if not isinstance(entry, dict) or entry.get("format") != LINES_FILE:
                    if entry is not None:
                        said = "is not a header, so that the file does not say what it answers."
                        self.findings.add("wrong-format", f"line {number:,} {said}", fix=_HEADER)
                    return None
                header = entry
                misplaced = next((key for key in SECTIONS if key in header), None)
                if misplaced is not None:
                    said = f'the header holds "{misplaced}"; rankings have lines of their own.'
                    self._refuse("bad-type", number, said)
            elif isinstance(entry, dict):
                self._take(number, entry, line)
            elif entry is not None:
                said = f"it holds {json_type(entry)}; a query's line is an object."
                self._refuse("bad-type", number, said)
        if self.broken or header is None:
            return None
        subsets = {"subset_rankings": self.subsets} if self.subsets else {}
        return {**header, "rankings": self.rankings, **subsets}

    def _take(self, number: int, entry: dict[str, Any], line: bytes) -> None:
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
            held = f'both "{RANKING}" and' if answers else f'neither "{RANKING}" nor'
            self._refuse("bad-type", number, f'query {shown(query)} has {held} "{TURNS}".', fix=_ONE_ANSWER)
            return
        mark = hash(line.strip())
        before, first_mark = self.first.setdefault(query, (number, mark))
        if before != number:
            if mark == first_mark:
                said = f"line {number:,}: it is line {before:,} again."
                self.findings.add("repeated-query", said, query=query)
            else:
                said = f"query {shown(query)} is answered in line {before:,} already."
                self._refuse("repeated-key", number, said)
            return
        if answers:
            self.rankings[query] = self._shared(entry[answers[0]])
        if SUBSET in entry:
            self.subsets[query] = self._shared(entry[SUBSET])

    def _shared(self, answer: Any) -> Any:
        """The answer with one string for each image id, however many lines name it."""
        if not isinstance(answer, list):
            return answer
        if set(map(type, answer)) == {str}:
            return list(map(self.images.setdefault, answer, answer))
        return list(map(self._shared, answer))

    def _refuse(self, code: str, number: int, message: str, *, fix: str | None = None) -> None:
        self.broken = True
        place, inside = f"line {number:,}", message.removeprefix("line 1, ")
        text = f"{place}: {message}" if inside == message else f"{place}, {inside}"
        self.findings.add(code, text, cause="lines", value=place, fix=fix)
        self.budget.spend("broken", where=f"{place}: ")


_HEADER = (
    f'start with  {{{{"format": "{LINES_FILE}", "format_version": 1, "benchmark": ..., "method": ...}}}}'
)
_DROP = "drop it (remarks go to method.notes in the header), then run  cir validate {file}"
_ONE_ANSWER = f'write "{RANKING}": [...] for a query, "{TURNS}": [[...], ...] for a session'
