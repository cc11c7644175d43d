"""Reading transcripts of strangers: what is wrong with a file becomes findings, with the line or the row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson
from pydantic import BaseModel, ValidationError

from cir_metrics.errors import CirError
from submissions.formats import unpacked
from submissions.formats.lines import values_by_line
from submissions.formats.native import parse_json
from submissions.formats.parquet import is_text, read_table
from submissions.rank_file.content import (
    LOOKED_AT,
    MAX_BYTES,
    Budget,
    OverBudgetError,
    Source,
    means_rank_file,
)
from submissions.rank_file.findings import Findings, json_type, shown
from submissions.rank_file.model import PARQUET
from submissions.transcripts.transcript import (
    FORMAT,
    Round,
    Transcript,
    TranscriptError,
    columns,
    shown_text,
)

if TYPE_CHECKING:
    import pyarrow as pa

_HEADER = f'start with the line  {{{{"format": "{FORMAT}", "version": 1, "benchmark": ...}}}}'
_COLUMNS = f"write the columns {', '.join(Round.model_fields)}, as cir multiround does"
_AGAIN = "play the dialogues with  cir multiround  or  cir play  , which write it"
_OF_RANK_FILES = (
    "score it by itself with  cir score {file}  , or hand it to a board of rank files; cir multiround and "
    "cir play write transcripts"
)
_OF_A_PARQUET = (
    "keep the schema's metadata when the file is written (pandas and SQL drop it), or play again with  "
    "cir multiround --out NAME.parquet"
)
_WITHOUT_HEADER = "put back its first line, or play again with  cir multiround"
_ROUNDS = re.compile(rb'"rounds"\s*:\s*\[')
_IN_LINES = (
    "write the header and each round as a line of its own, as  jq -c '{filter}' {{file}} > LINES.jsonl  does"
)
_CORRECT = "correct it, or run cir multiround again, then run  cir validate {file}"


@dataclass(frozen=True)
class Read:
    """What a file holds.

    Args:
        transcript: its content.
        places: where each round stands, such as `line 3`.
    """

    transcript: Transcript
    places: list[str]


def read_transcript(file: Source, *, max_bytes: int = MAX_BYTES) -> Transcript:
    """Read a transcript; `check_transcript` says what contradicts itself in it.

    Args:
        file: a path, or the file's bytes.
        max_bytes: bytes that are read at most.

    Raises:
        TranscriptError: the file is not one; the message names the line.
        MissingFileError: no file has that name.
    """
    findings = Findings("transcript" if isinstance(file, bytes) else str(file))
    read = parse_transcript(file, findings, max_bytes=max_bytes)
    if read is None or findings.errors:
        raise TranscriptError("\n".join(each.text(findings.file) for each in findings.listed()))
    return read.transcript


def parse_transcript(file: Source, findings: Findings, *, max_bytes: int = MAX_BYTES) -> Read | None:
    """What a file holds, or None with findings.

    Args:
        file: a path, or the file's bytes; JSON Lines or Parquet, plain or gzip.
        findings: collects what is wrong.
        max_bytes: bytes that are read at most.

    Raises:
        MissingFileError: no file has that name.
    """
    held = unpacked(file, findings, max_bytes=max_bytes)
    if held is None:
        return None
    if not held.content or held.content.isspace():
        findings.add("malformed", "the file is empty.", fix=_AGAIN)
        return None
    if means_rank_file(held.content):
        findings.add("wrong-kind", "it is a rank file, not a transcript of dialogues.", fix=_OF_RANK_FILES)
        return None
    reader = _TranscriptReader(findings, held.budget)
    try:
        if held.kind == PARQUET:
            return reader.of_parquet(held.content)
        return reader.of_lines(held.content)
    except OverBudgetError as error:
        findings.add("too-large", str(error), fix=error.fix, cause="budget", depth=50)
    return None


class _TranscriptReader:
    """Takes a file apart.

    Args:
        findings: collects what is wrong.
        budget: what reading may cost.
    """

    def __init__(self, findings: Findings, budget: Budget) -> None:
        """See the class."""
        self._findings, self._budget = findings, budget

    def of_lines(self, content: bytes) -> Read | None:
        """Of JSON Lines."""
        lists = content.count(b"[") + content.count(b"{")
        self._budget.spend("lines", content.count(b"\n"))
        self._budget.spend("odd_bytes", len(content))
        self._budget.spend("odd_values", lists + content.count(b","))
        start = content[:LOOKED_AT].lstrip()
        if start.startswith(b"[") or start.partition(b"\n")[0].rstrip() == b"{":
            self._findings.add(
                "wrong-format", "it is indented or a list; a transcript is JSON Lines.", fix=_in_lines(start)
            )
            return None
        lines = self._values(content)
        _, header = next(lines, ("", None))
        if isinstance(header, dict) and header.get("format") == FORMAT:
            return self._read(header, lines)
        if isinstance(header, dict) and {"session", "round"} <= set(header):
            said = "its first line is a round; the header before it is not there."
            self._findings.add("wrong-format", said, fix=_WITHOUT_HEADER)
        elif not self._findings.errors:
            said = f'its first line does not say "format": "{FORMAT}".'
            self._findings.add("wrong-format", said, fix=_HEADER)
        return None

    def of_parquet(self, content: bytes) -> Read | None:
        """Of Parquet."""
        table = read_table(content, self._findings, self._budget, _has_columns)
        if table is None:
            return None
        raw = (table.schema.metadata or {}).get(FORMAT.encode())
        header = None if raw is None else parse_json(raw, self._findings)
        if not isinstance(header, dict):
            self._findings.add(
                "wrong-format",
                f'the Parquet schema has no metadata "{FORMAT}" that is a JSON object, its header.',
                fix=_OF_A_PARQUET,
            )
            return None
        rows = table.select(list(Round.model_fields)).to_pylist()
        return self._read(header, ((f"row {n:,}", row) for n, row in enumerate(rows, start=1)))

    def _values(self, content: bytes) -> Iterator[tuple[str, Any]]:
        for number, _, value, faults in values_by_line(content, self._findings, self._budget):
            for fault in faults:
                self._refuse(
                    fault.code, f"line {number:,}", fault.message.removeprefix("line 1, "), fault.code
                )
            if value is not None:
                yield f"line {number:,}", value

    def _read(self, header: dict[str, Any], entries: Iterator[tuple[str, Any]]) -> Read | None:
        sound = self._header(header)
        rounds, places = [], []
        there: dict[tuple[str, int], tuple[Round, str]] = {}
        for place, entry in entries:
            if not isinstance(entry, dict):
                self._refuse("bad-type", place, f"it holds {json_type(entry)}; a round is an object.")
                continue
            one = self._model(Round, entry, place)
            if isinstance(one, Round):
                first, before = there.setdefault((one.session, one.round), (one, place))
                if before != place and first == one:
                    said = f"{place}: it is {before} again."
                    self._findings.add("repeated-query", said, query=one.session)
                    continue
                rounds.append(one)
                places.append(place)
        if sound is None or self._findings.errors:
            return None
        return Read(sound.model_copy(update={"rounds": rounds}), places)

    def _header(self, header: dict[str, Any]) -> Transcript | None:
        if "rounds" in header:
            self._findings.add(
                "bad-type",
                'the header: it holds "rounds"; each round has a line of its own.',
                fix=_in_lines(b'"rounds": ['),
            )
            return None
        if header.get("version", 1) != 1:
            said = f"it says version {shown(header['version'])}; version 1 is read here."
            self._refuse("wrong-version", "the header", said)
            return None
        found = self._model(Transcript, {**header, "rounds": []}, "the header")
        if not isinstance(found, Transcript):
            return None
        if "k" not in found.settings:
            said = "it is missing; a session is solved when a target is among the first k."
            self._refuse("bad-metadata", "the header, settings.k", said)
            return None
        try:
            shown_text(orjson.dumps(header).decode())
        except ValueError as error:
            self._refuse("bad-metadata", "the header", f"{error}.")
            return None
        try:
            found.choices  # noqa: B018
        except CirError as error:
            place = "the header, settings"
            self._findings.add_error("bad-metadata", error, where=f"{place}: ", value=place)
            return None
        return found

    def _model(self, kind: type[BaseModel], entry: dict[str, Any], place: str) -> BaseModel | None:
        try:
            return kind.model_validate_json(orjson.dumps(entry), strict=True)
        except ValidationError as error:
            for fault in error.errors(include_url=False, include_context=False, include_input=False)[:5]:
                field = shown(".".join(map(str, fault["loc"])))[1:-1]
                self._refuse("bad-type", f"{place}, {field}", f"{fault['msg']}.", cause=field)
        return None

    def _refuse(self, code: str, place: str, said: str, cause: str = "") -> None:
        self._findings.add(code, f"{place}: {said}", cause=cause, value=place, fix=_CORRECT)
        self._budget.spend("broken", where=f"{place}: ")


def _in_lines(start: bytes) -> str:
    """How JSON of another shape becomes JSON Lines."""
    if _ROUNDS.search(start):
        return _IN_LINES.format(filter="del(.rounds), .rounds[]")
    return _IN_LINES.format(filter=".[]" if start.startswith(b"[") else ".")


def _has_columns(schema: pa.Schema, findings: Findings) -> bool:
    wanted = columns()
    for name, kind in zip(wanted.names, wanted.types, strict=True):
        places = schema.get_all_field_indices(name)
        if len(places) != 1 or not _is_like(schema.field(places[0]).type, kind):
            findings.add(
                "wrong-format", f'the Parquet file has no column "{name}" of type {kind}.', fix=_COLUMNS
            )
            return False
    if len(schema.names) != len(wanted.names):
        findings.add("wrong-format", "the Parquet file has columns that no transcript has.", fix=_COLUMNS)
        return False
    return True


def _is_like(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a writer may have meant this type: integers and texts have several."""
    import pyarrow as pa

    if pa.types.is_integer(wanted):
        return bool(pa.types.is_integer(found))
    return is_text(found, depth=int(pa.types.is_list(wanted)))
