"""Reading transcripts of strangers: what is wrong with a file becomes findings, with the line or the row."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from pydantic import BaseModel, ValidationError

from cir_metrics.errors import CirError
from submissions.formats.budget import MAX_BYTES, Budget, OverBudgetError
from submissions.formats.containers import GZIP, unpack
from submissions.formats.json_reader import Source, parse_json, read_bytes
from submissions.formats.parquet import is_text, read_table
from submissions.rank_file.findings import Findings, json_type, shown
from submissions.rank_file.model import PARQUET
from submissions.transcripts.transcript import FORMAT, Round, Transcript, TranscriptError, columns

if TYPE_CHECKING:
    import pyarrow as pa

_HEAD = 2**16
_FOOTER = 2**20
_SAYS = re.compile(rb'"format"\s*:\s*"' + FORMAT.encode() + rb'"')
_HEADER = f'start with the line  {{{{"format": "{FORMAT}", "version": 1, "benchmark": ...}}}}'
_COLUMNS = f"write the columns {', '.join(Round.model_fields)}, as cir multiround does"
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


def is_transcript(file: Source) -> bool:
    """Whether a file says that it is a transcript; its content may still be wrong.

    Args:
        file: a path, or the file's bytes.
    """
    from submissions.formats.containers import kind_of

    try:
        head = file[:_HEAD] if isinstance(file, bytes) else _head(Path(file))
    except OSError:
        return False
    if head.startswith(GZIP):
        import zlib

        try:
            head = zlib.decompressobj(wbits=31).decompress(head, _HEAD)
        except zlib.error:
            return False
    if kind_of(head) == PARQUET:
        return _is_parquet(file)
    head = head.removeprefix(codecs.BOM_UTF8).lstrip()
    return head.startswith(b"{") and _SAYS.search(head.partition(b"\n")[0]) is not None


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
    content = read_bytes(file, findings, max_bytes=max_bytes)
    unpacked = None if content is None else unpack(content, findings, max_bytes=max_bytes)
    if unpacked is None:
        return None
    reader = _TranscriptReader(findings, unpacked.budget)
    try:
        if unpacked.kind == PARQUET:
            return reader.of_parquet(unpacked.content)
        return reader.of_lines(unpacked.content)
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
        lines = self._values(content)
        _, header = next(lines, ("", None))
        if not isinstance(header, dict) or header.get("format") != FORMAT:
            if not self._findings.errors:
                self._findings.add(
                    "wrong-format", f'its first line does not say "format": "{FORMAT}".', fix=_HEADER
                )
            return None
        return self._read(header, lines)

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
                f'the Parquet schema has no metadata "{FORMAT}" that is a JSON object.',
                fix=_COLUMNS,
            )
            return None
        rows = table.select(list(Round.model_fields)).to_pylist()
        return self._read(header, ((f"row {n:,}", row) for n, row in enumerate(rows, start=1)))

    def _values(self, content: bytes) -> Iterator[tuple[str, Any]]:
        for number, line in enumerate(io.BytesIO(content), start=1):
            if line.isspace():
                continue
            place = f"line {number:,}"
            self._budget.check("line", len(line), where=f"{place}: ")
            found = Findings(self._findings.file)
            value = parse_json(line.rstrip(b"\r\n"), found)
            for each in found.listed():
                said = each.message.removeprefix("line 1, ")
                self._refuse(each.code, place, said, f"{each.code}")
            if value is not None:
                yield place, value

    def _read(self, header: dict[str, Any], entries: Iterator[tuple[str, Any]]) -> Read | None:
        sound = self._header(header)
        rounds, places = [], []
        for place, entry in entries:
            if not isinstance(entry, dict):
                self._refuse("bad-type", place, f"it holds {json_type(entry)}; a round is an object.")
                continue
            one = self._model(Round, entry, place)
            if isinstance(one, Round):
                rounds.append(one)
                places.append(place)
        if sound is None or self._findings.errors:
            return None
        return Read(sound.model_copy(update={"rounds": rounds}), places)

    def _header(self, header: dict[str, Any]) -> Transcript | None:
        if "rounds" in header:
            self._refuse("bad-type", "the header", 'it holds "rounds"; each round has a line of its own.')
            return None
        if header.get("version", 1) != 1:
            said = f"it says version {shown(header['version'])}; version 1 is read here."
            self._refuse("wrong-version", "the header", said)
            return None
        found = self._model(Transcript, {**header, "rounds": []}, "the header")
        if not isinstance(found, Transcript):
            return None
        try:
            found.choices  # noqa: B018
        except CirError as error:
            self._refuse("bad-metadata", "the header, settings", str(error))
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


def _head(path: Path) -> bytes:
    with path.open("rb") as handle:
        return handle.read(_HEAD)


def _is_parquet(file: Source) -> bool:
    """Whether the footer of a file in Parquet holds our key; nothing of it is parsed."""
    if isinstance(file, bytes):
        return FORMAT.encode() in file[-_FOOTER:]
    path = Path(file)
    with path.open("rb") as handle:
        handle.seek(max(0, path.stat().st_size - _FOOTER))
        return FORMAT.encode() in handle.read()
