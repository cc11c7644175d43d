"""Transcripts: what was shown and said in every round of every session, and where the target stood.

A file is JSON Lines: a header, then one object a round; or Parquet with the header in its metadata. All
numbers are computed from it and from the benchmark's ground truth.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cir_metrics.atomic import write_whole
from submissions.errors import SubmissionError
from submissions.rank_file.model import Method
from submissions.transcripts.settings import DEPTH, MOST_ROUNDS, RoundSettings

FORMAT: Literal["cir-transcript"] = "cir-transcript"
VERSION: Literal[1] = 1
SOLVED, LAST, SILENT = "solved", "last round", "silent: "
"""How a session ends: the target was found, all rounds were played, or the user said nothing of use."""

Id = Annotated[str, Field(min_length=1, max_length=300)]


class TranscriptError(SubmissionError, ValueError):
    """A file is not a transcript."""


class Round(BaseModel):
    """One round of one session."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    session: Id
    round: Annotated[int, Field(ge=1, le=MOST_ROUNDS)]
    """From 1, the published query."""
    reference: Id | None
    """The image that the caption starts from."""
    caption: Annotated[str, Field(max_length=2000)]
    target: Id
    """The image that the user has in mind."""
    rank: Annotated[int, Field(ge=1)]
    """Of the best-ranked target among all images."""
    top: Annotated[list[Id], Field(max_length=DEPTH)]
    """The best images, best first."""
    end: Annotated[str, Field(max_length=300)] = ""
    """Why no round follows; empty where one does."""


class Transcript(BaseModel):
    """All sessions of one method with one user on one benchmark.

    Rounds stand session by session: in the benchmark's order of queries, or as they were drawn.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["cir-transcript"] = FORMAT
    version: Literal[1] = VERSION
    benchmark: Id
    benchmark_version: int
    method: Method
    user: dict[str, Any]
    """Who spoke: kind, way, language backend."""
    prompts: dict[str, str]
    """Version and hash of each prompt in use, by name."""
    settings: dict[str, Any]
    """The fields of `RoundSettings`."""
    rounds: list[Round]

    @property
    def choices(self) -> RoundSettings:
        """The settings, checked."""
        return RoundSettings(**self.settings)

    def sessions(self) -> dict[str, list[Round]]:
        """The rounds of each session, in order."""
        found: dict[str, list[Round]] = {}
        for each in self.rounds:
            found.setdefault(each.session, []).append(each)
        return found

    def header(self) -> dict[str, Any]:
        """All but the rounds."""
        return self.model_dump(exclude={"rounds"})


def write_transcript(transcript: Transcript, path: str | Path) -> Path:
    """Write a transcript, as JSON Lines or, to `.parquet`, as Parquet; the same one gives the same bytes.

    Raises:
        OSError: the system refuses to write there.
    """
    target = Path(path)
    if target.suffix == ".parquet":
        content = _parquet(transcript)
    else:
        lines = (transcript.header(), *(each.model_dump() for each in transcript.rounds))
        content = b"".join(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in lines)
    write_whole(target, content)
    return target


def read_transcript(path: str | Path) -> Transcript:
    """Read a transcript.

    Raises:
        TranscriptError: the file is not one; the message names the line.
        OSError: it cannot be read.
    """
    source = Path(path)
    if source.suffix == ".parquet":
        header, rounds = _from_parquet(source)
    else:
        header, rounds = _from_lines(source)
    try:
        return Transcript.model_validate({**header, "rounds": rounds})
    except ValidationError as error:
        raise TranscriptError(f"{source}: {_fault(error)}") from error


def is_transcript(path: str | Path) -> bool:
    """Whether a file says that it is a transcript; its content may still be wrong."""
    source = Path(path)
    if source.suffix == ".parquet":
        import pyarrow.parquet as pq

        try:
            return FORMAT.encode() in (pq.read_schema(source).metadata or {})
        except (OSError, ValueError):
            return False
    try:
        with source.open("rb") as handle:
            start = handle.readline(1 << 16)
        return bool(orjson.loads(start).get("format") == FORMAT)
    except (OSError, orjson.JSONDecodeError, AttributeError):
        return False


def _from_lines(source: Path) -> tuple[dict[str, Any], list[Any]]:
    values: list[Any] = []
    with source.open("rb") as handle:
        for number, line in enumerate(handle, start=1):
            if not line.strip():
                continue
            try:
                values.append(orjson.loads(line))
            except orjson.JSONDecodeError as error:
                raise TranscriptError(
                    f"{source}, line {number}: it is not JSON ({error}). Fix: write one object a line."
                ) from error
    if not values or not isinstance(values[0], dict) or values[0].get("format") != FORMAT:
        raise TranscriptError(
            f'{source}: its first line does not say "format": "{FORMAT}". '
            "Fix: use a file that cir multiround has written."
        )
    return values[0], values[1:]


def _parquet(transcript: Transcript) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema(
        [
            ("session", pa.string()),
            ("round", pa.int32()),
            ("reference", pa.string()),
            ("caption", pa.string()),
            ("target", pa.string()),
            ("rank", pa.int64()),
            ("top", pa.list_(pa.string())),
            ("end", pa.string()),
        ],
        metadata={FORMAT: orjson.dumps(transcript.header())},
    )
    table = pa.Table.from_pylist([each.model_dump() for each in transcript.rounds], schema)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _from_parquet(source: Path) -> tuple[dict[str, Any], list[Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(source)
        header = orjson.loads((table.schema.metadata or {})[FORMAT.encode()])
    except (pa.ArrowException, KeyError, orjson.JSONDecodeError) as error:
        raise TranscriptError(
            f"{source}: it is not a transcript in Parquet. Fix: use a file that cir multiround has written."
        ) from error
    return header, table.to_pylist()


def _fault(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = list(first["loc"])
    where = ""
    if place[:1] == ["rounds"] and len(place) > 1:
        # The header is the first line.
        where = f"line {int(place[1]) + 2}, "
        place = place[2:]
    field = ".".join(map(str, place))
    more = f" ({error.error_count() - 1:,} more faults)" if error.error_count() > 1 else ""
    return f"{where}{field}: {first['msg']}{more}. Fix: correct the file, or run cir multiround again."


def ended(rounds: Sequence[Round]) -> str:
    """Why a session has no further round."""
    return rounds[-1].end


def silent_reasons(transcript: Transcript) -> Mapping[str, int]:
    """How many sessions ended since the user said nothing of use, by reason."""
    found: dict[str, int] = {}
    for each in _last(transcript):
        if each.end.startswith(SILENT):
            why = each.end.removeprefix(SILENT)
            found[why] = found.get(why, 0) + 1
    return dict(sorted(found.items(), key=lambda one: (-one[1], one[0])))


def _last(transcript: Transcript) -> Iterator[Round]:
    for rounds in transcript.sessions().values():
        yield rounds[-1]
